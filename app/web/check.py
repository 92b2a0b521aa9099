"""`POST /api/v1/check`: a manifest comes in, the report of its pods goes out. Nothing is created.

The text may come from anybody, and reviews run in the same process: it is parsed in a thread, and its pods are judged a
few at a time.
"""

import asyncio
from collections.abc import Callable

from app.dra.demand import claim_references
from app.dra.explain import Audience
from app.dra.judgement import World
from app.presubmit.manifest import ManifestError, parse
from app.presubmit.report import Report
from app.web.admit import Reader
from app.web.question import answer, question

MAX_BYTES = 1024 * 1024
"""Of one submitted text: people and pipelines submit a few objects of some kilobytes each."""

MAX_PODS = 1000
"""In one submitted text: 1 MiB of pods of 1 KiB each."""

_AT_A_TIME = 2
"""Texts that are parsed at once."""

_PAUSE_AFTER = 20
"""Pods judged before reviews get their turn."""


class Unreadable(Exception):
    """A text that is no manifest. The message is for the person who sent it."""


class Checker:
    """The check, as a function of a text and the namespace for objects that name none."""

    def __init__(
        self, *, world: Callable[[], World], reader: Reader, now: Callable[[], float], audience: Audience
    ) -> None:
        self._world, self._reader, self._now, self._audience = world, reader, now, audience
        self._slots = asyncio.Semaphore(_AT_A_TIME)

    async def __call__(self, body: bytes, namespace: str) -> Report:
        """The report for a YAML or JSON text. Raises Unreadable."""
        try:
            async with self._slots:
                asking = await asyncio.to_thread(lambda: question(parse(body, "manifest", MAX_BYTES), namespace))
        except ManifestError as error:
            raise Unreadable(str(error)) from error
        if len(asking.pods) > MAX_PODS:
            raise Unreadable(f"{len(asking.pods)} pods are more than the limit of {MAX_PODS}")
        checks = []
        for number, pod in enumerate(asking.pods, 1):
            found = asking.given.over(
                pod.namespace, await self._reader.lookups(pod.namespace, claim_references(pod.pod))
            )
            checks.append(answer(pod, found, self._world(), self._audience, self._now()))
            if number % _PAUSE_AFTER == 0:
                await asyncio.sleep(0)
        return Report(tuple(checks))
