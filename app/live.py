"""A live cluster: watches keep the view current, and pool statuses are asked for beside them. The other `embedded`.

Starting waits for nothing: until the first lists are complete everything is unknown, which admits.
"""

import asyncio
import gc
import logging
import random
from collections.abc import Callable, Collection, Mapping
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import NoReturn, Self

from app import mistakes
from app.cluster.client import ApiClient, ApiError
from app.cluster.collection import COLLECTIONS
from app.cluster.lookups import ClaimReader, Withheld
from app.cluster.pool_status import OUTCOMES, Unanswered
from app.cluster.refresher import Refresher
from app.cluster.watch import State, Watch, watches
from app.dra.demand import Ask, ClaimReferences, Lookups
from app.dra.judgement import Policy, Source, World
from app.dra.snapshot import Snapshot
from app.dra.witness import HOLDS, Kind, Witness
from app.latest_snapshot import LatestSnapshot
from app.metrics import RiverCounts, WatchCounts

FIRST_SYNC_SECONDS = 10.0
"""Readiness waits so long for the first lists; then to answer "unknown" is better than not to be there."""

VERSION_SECONDS = (0.5, 5.0)
"""Between two times the API server is asked for its version while it does not answer."""

CLAIMS = "claims"
OPTIONAL = {"nodes": Kind.NODES, "taint-rules": Kind.DEVICE_TAINT_RULES}
"""What may be withheld: claims and templates by name, and whole kinds."""

COUNTED_DEVICES = 25
"""Looked at for asks that are new between two looks at the clock."""

COUNTING_SECONDS = 0.001
"""In one piece. What is added to it is the step that was begun last, of 100 looks at most."""

COUNTING_PAUSE_SECONDS = 0.002
"""Between two such pieces; a review needs several turns of the loop."""

CLASSES_SECONDS = 1.0
"""Between two looks for classes that are not counted yet, so that their first review finds them ready."""

COUNTING_AGAIN_SECONDS = 60.0
"""After a mistake of ours: what was being counted stays unknown, and a look at all devices costs the CPU of seconds."""

_log = logging.getLogger(__name__)


class Live:
    """One cluster, followed for as long as `follow` runs."""

    def __init__(
        self,
        client: ApiClient,
        policy: Policy,
        now: Callable[[], float],
        refresh_seconds: float,
        withheld: Collection[str] = (),
    ) -> None:
        """`withheld`: what is not to be read, of `CLAIMS` and the keys of `OPTIONAL`."""
        self._client, self._now = client, now
        self._witness = Witness(now())
        self.latest = LatestSnapshot(World(self._witness, Snapshot({}), policy))
        self._claims = Withheld() if CLAIMS in withheld else ClaimReader(client)
        self.claims_of_checks = Withheld() if CLAIMS in withheld else ClaimReader.of_checks(client)
        # Counts alone: who holds what is not read at all, for which the rights are not there either.
        unread = {OPTIONAL[name] for name in withheld if name in OPTIONAL}
        for kind in unread:
            self._witness.deny(kind)
        unread |= HOLDS if policy.source is Source.POOL_STATUS else set()
        self._watches = watches(client, self._witness, now, [each for each in COLLECTIONS if each.kind not in unread])
        self._refresher = Refresher(client, self.latest, refresh_seconds=refresh_seconds)
        self._started_at = now()
        self._was_known = False
        self._unreachable = ""

    @classmethod
    async def connect(  # noqa: PLR0913 - the cluster, and all that `__init__` wants
        cls,
        kubeconfig: Path | None,
        context: str | None,
        policy: Policy,
        now: Callable[[], float],
        *,
        refresh_seconds: float,
        withheld: Collection[str] = (),
    ) -> Self:
        """For the cluster that kubectl would talk to; nothing is read yet. Raises BadConfig."""
        return cls(await ApiClient.connect(kubeconfig, context), policy, now, refresh_seconds, withheld)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def lookups(self, namespace: str, references: ClaimReferences) -> Lookups:
        """The claims and templates a pod names, read for its review."""
        return await self._claims.lookups(namespace, references)

    @property
    def client(self) -> ApiClient:
        """The cluster's API, for others that have to do with it."""
        return self._client

    @property
    def problem(self) -> str:
        """What is not current, for the page; empty where all is."""
        return self._unreachable or "; ".join(
            f"{health.kind.value}: {health.problem or health.state}"
            for health in (watch.health for watch in self._watches)
            if health.state is not State.CURRENT
        )

    @property
    def known(self) -> bool:
        """Whether everything that may be read has been read once and is current."""
        return all(watch.health.state in (State.CURRENT, State.DENIED) for watch in self._watches)

    async def read(self) -> None:
        """Return when everything that may be read has been read; `follow` has to run."""
        while not self.known:  # noqa: ASYNC110 - seven watches, each with a state of its own
            await asyncio.sleep(COUNTING_PAUSE_SECONDS)

    def missing(self) -> str:
        """What readiness waits for; empty: it was all there once, or was waited for long enough."""
        self._was_known = self._was_known or self.known
        late = self._now() - self._started_at >= FIRST_SYNC_SECONDS
        return "" if late or self._was_known else f"not read yet: {self.problem}"

    def switches(self) -> dict[str, str]:
        """What optional rights are used for: "on", "off" by a setting, "missing" if not allowed or not served."""
        states = {watch.collection.kind: watch.health.state for watch in self._watches}
        outcomes = {state.outcome for state in self._refresher.states.values()}
        statuses = "on" if outcomes.isdisjoint((Unanswered.FORBIDDEN, Unanswered.NOT_SERVED)) else "missing"
        return {
            "pool statuses": "off" if self.latest.get().policy.source is Source.WITNESS else statuses,
            "live view of claims and pods": _switch(states, *HOLDS),
            "nodes": _switch(states, Kind.NODES),
            "taint rules": _switch(states, Kind.DEVICE_TAINT_RULES),
        }

    def counts(self) -> RiverCounts:
        """What a scrape is told of the slow river."""
        healths = [watch.health for watch in self._watches]
        return RiverCounts(
            requests=dict.fromkeys(product(self._refresher.states, OUTCOMES), 0) | self._refresher.requests,
            refresh_seconds=self._refresher.tick_seconds,
            watches=tuple(
                WatchCounts(
                    h.kind.value,
                    None if h.state is State.DENIED else h.state is State.CURRENT,
                    h.objects,
                    h.unreadable,
                    h.interruptions,
                )
                for h in healths
            ),
        )

    async def follow(self) -> NoReturn:
        """Read and go on reading until cancelled."""
        await self._learn_version()
        async with asyncio.TaskGroup() as group:
            for watch in self._watches:
                group.create_task(self._run(watch))
            if self.latest.get().policy.source is not Source.WITNESS:
                group.create_task(self._refresher.run(self._now))
            await self._count()
        raise AssertionError("what is followed for ever has ended")

    async def _learn_version(self) -> None:
        """The version decides how the rest is read, so that nothing is read before it is known."""
        while True:
            try:
                self._witness.server_minor = await self._client.server_minor()
            except ApiError as error:
                if str(error) != self._unreachable:
                    _log.warning("API server does not tell its version", extra={"facts": {"problem": str(error)}})
                self._unreachable = str(error)
                await asyncio.sleep(random.uniform(*VERSION_SECONDS))  # noqa: S311 - no secret
            else:
                self._unreachable = ""
                return

    async def _run(self, watch: Watch) -> None:
        """Claims wait for pods: to learn of the pods last would mean to look at all claims once more, in one piece."""
        if watch.collection.kind is Kind.RESOURCE_CLAIMS:
            pods = [other for other in self._watches if other.collection.kind in (Kind.PODS, Kind.ENDED_PODS)]
            while any(other.health.state is State.STARTING for other in pods):  # noqa: ASYNC110 - once, at the start
                await asyncio.sleep(COUNTING_PAUSE_SECONDS * 25)
        await watch.run()

    async def _count(self) -> NoReturn:
        """Count for asks that are new, a little at a time, and for every class before it is asked for."""
        while any(watch.health.state is State.STARTING for watch in self._watches):
            gc.freeze()  # what was read stays: to look through it again and again would hold the loop (measured)
            await asyncio.sleep(COUNTING_PAUSE_SECONDS * 25)
        gc.freeze()
        counted = False
        while True:
            try:
                await self._count_classes()
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not end what goes well for other classes
                _log.error("counting failed", extra={"facts": {"problem": mistakes.place(error)}})
                await asyncio.sleep(COUNTING_AGAIN_SECONDS)
            if not counted and self._witness.devices_unknown is None:
                counted = True
                gc.freeze()  # the counts too

    async def _count_classes(self) -> None:
        """Those that are new, and for a second whatever else is asked for."""
        for known in list(self._witness.classes) if self._witness.devices_unknown is None else ():
            self._witness.tally(Ask(known.name))  # counted below: one pass over all devices is for all that are new
            await asyncio.sleep(COUNTING_PAUSE_SECONDS)
        for _ in range(50):
            await self._count_some()
            await asyncio.sleep(CLASSES_SECONDS / 50)

    async def _count_some(self) -> None:
        """What is waiting to be counted, with pauses."""
        more = True
        while more:
            await asyncio.sleep(COUNTING_PAUSE_SECONDS)
            until = perf_counter() + COUNTING_SECONDS
            while more and perf_counter() < until:
                more = self._witness.tallies.work(COUNTED_DEVICES)


def _switch(states: Mapping[Kind, State], *kinds: Kind) -> str:
    if not states.keys() >= set(kinds):
        return "off"
    return "missing" if State.DENIED in {states[kind] for kind in kinds} else "on"
