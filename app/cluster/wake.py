"""Waking the owners of refused pods: an annotation on their status, which makes their controller try again at once.

The right for it is `patch` on the `status` of four kinds and no other. It would allow more than the annotation, labels
and owners among it, so the chart bounds it with a ValidatingAdmissionPolicy. Replicas do not talk to each other: what
one has written another writes in the same words, which changes nothing and wakes nobody twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import NoReturn

import msgspec

from app import mistakes
from app.cluster.client import ApiClient, ApiError, Forbidden, Invalid, NotFound
from app.cluster.names import is_name
from app.dra.judgement import World
from app.dra.promises import EFFECT_SECONDS
from app.dra.wake import WAKEABLE, End, Nudge, WakeQueue

ANNOTATION = "gpu-vacancy.dev/wake"
"""Says when the devices were seen free, in steps of `EFFECT_SECONDS`."""

LOOK_SECONDS = 0.25
"""Between two looks at what is free: a fraction of what the controllers take, and little work while nobody waits."""

PATCH_SECONDS = 2.0
"""For all patches of one look. An API server that needs longer is better left alone."""

OFF_SECONDS = 300.0
"""Nobody is woken for so long after a mistake of ours: what is wrong does not get better by trying on."""

_log = logging.getLogger(__name__)


class Waker:
    """Patches whoever is due."""

    def __init__(
        self, client: ApiClient, queue: WakeQueue, world: Callable[[], World], now: Callable[[], float]
    ) -> None:
        """`now`: epoch seconds."""
        self._client, self._queue, self._world, self._now = client, queue, world, now
        self._off_until = 0.0
        self.allowed = True
        """False: since the last 403 no patch has got through."""

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> NoReturn:
        """Look for ever."""
        while True:
            await sleep(LOOK_SECONDS)
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not end what a moment later may go well
                _log.error("waking failed", extra={"facts": {"problem": mistakes.place(error)}})
                self._off_until = self._now() + OFF_SECONDS

    async def look(self) -> None:
        """Wake whose turn it is now, if it is anybody's."""
        now = self._now()
        if now < self._off_until:
            return
        async with asyncio.TaskGroup() as group:
            for nudge in self._queue.due(self._world(), now):
                group.create_task(self._wake(nudge, now))

    async def _wake(self, nudge: Nudge, now: float) -> None:
        end: End | None = None
        try:
            await self._patch(nudge, now)
        except (NotFound, Invalid):  # no such name, or not with this uid
            end = End.GONE
        except Forbidden as error:
            end = End.FORBIDDEN
            if self.allowed:
                self.allowed = False
                _log.warning("may not wake owners of refused pods", extra={"facts": {"problem": str(error)}})
        except ApiError:
            end = End.FAILED  # an API server in trouble is told of by the watches
        else:
            self.allowed = True
        if end is not None:
            self._queue.ended(nudge, end, now)

    async def _patch(self, nudge: Nudge, now: float) -> None:
        owner = nudge.owner
        if not (is_name(nudge.namespace) and is_name(owner.name)):  # whoever makes a pod writes any text into its owner
            raise NotFound("nothing has such a name")
        group = "apis" if "/" in owner.api_version else "api"
        resource = WAKEABLE[owner.api_version, owner.kind]
        slot = datetime.fromtimestamp(now // EFFECT_SECONDS * EFFECT_SECONDS, UTC)
        body = {"metadata": {"uid": owner.uid, "annotations": {ANNOTATION: f"{slot:%Y-%m-%dT%H:%M:%SZ}"}}}
        await self._client.request(
            "PATCH",
            f"/{group}/{owner.api_version}/namespaces/{nudge.namespace}/{resource}/{owner.name}/status",
            body=msgspec.json.encode(body),
            content_type="application/merge-patch+json",
            timeout_seconds=PATCH_SECONDS,
        )
