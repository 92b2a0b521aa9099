"""`POST /api/v1/check`: a manifest comes in, the report of its pods goes out. Nothing is created.

The text may come from anybody, and reviews run in the same process: it is parsed in a thread, and its pods are judged a
few at a time.
"""

import asyncio
from collections.abc import Callable

from app.dra.demand import REQUESTS_AT_MOST, claim_references
from app.dra.explain import Audience
from app.dra.judgement import World
from app.presubmit.asked import Asked
from app.presubmit.manifest import ManifestError, parse
from app.presubmit.report import Report
from app.web.admit import Reader
from app.web.question import Question, answer, question
from app.web.table import in_pieces

MAX_BYTES = 1024 * 1024
"""Of one submitted text: people and pipelines submit a few objects of some kilobytes each."""

MAX_PODS = 500
"""In one submitted text: each is judged, and its answer of a kilobyte is kept until the last one is there."""

MAX_ASKS = 1024
"""Of one pod, in containers, amounts of resources, and requests its claims may hold. It is judged in one piece, for
which reviews wait: 25 ms (measured on a busy machine)."""

_AT_A_TIME = 2
"""Texts that are parsed at once."""


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
                asking = await asyncio.to_thread(_question, body, namespace)
        except ManifestError as error:
            raise Unreadable(str(error)) from error
        checks = []
        async for pod in in_pieces(asking.pods):
            found = asking.given.over(
                pod.namespace, await self._reader.lookups(pod.namespace, claim_references(pod.pod))
            )
            checks.append(answer(pod, found, self._world(), self._audience, self._now()))
        return Report(tuple(checks))


def _question(body: bytes, namespace: str) -> Question:
    """What the text asks, within the limits. Raises ManifestError, Unreadable."""
    asking = question(parse(body, "manifest", MAX_BYTES), namespace)
    if len(asking.pods) > MAX_PODS:
        raise Unreadable(f"{len(asking.pods)} pods are more than the limit of {MAX_PODS}")
    if (most := max(map(_asks, asking.pods), default=0)) > MAX_ASKS:
        raise Unreadable(f"a pod asks for up to {most} resources and devices, more than the limit of {MAX_ASKS}")
    return asking


def _asks(asked: Asked) -> int:
    """What judging the pod costs, in amounts and device requests it may look at."""
    spec = asked.pod.spec
    resources = [each.resources for each in (*spec.containers, *(spec.init_containers or ()))]
    amounts = sum(len(each.limits or ()) + len(each.requests or ()) for each in resources if each)
    return len(resources) + amounts + len(spec.resource_claims or ()) * REQUESTS_AT_MOST
