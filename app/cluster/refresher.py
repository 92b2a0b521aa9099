"""The slow river's clock: once a minute one question per driver, and what was answered published as it comes in.

A driver that is silent keeps its last counts, which age until nobody builds on them any more. Replicas are independent:
each asks for itself and deletes what it created, and any of them sweeps up what another left behind.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace

from app import mistakes
from app.cluster.client import ApiClient
from app.cluster.pool_status import ANSWER_SECONDS, LEFTOVER_SECONDS, Unanswered, ask, sweep
from app.dra.drivers import counts_are_all, source_in_use
from app.dra.pools import Condition
from app.dra.reasons import Reason
from app.dra.snapshot import DriverStatus, Problem, Snapshot, driver_status
from app.dra.vacancy import ResourcePoolStatusRequest
from app.latest_snapshot import LatestSnapshot

REQUESTS_IN_FLIGHT = 4
"""At once, over all drivers. The controller manager answers 20 a second, to all who ask (measured on 1.37.2)."""

POOLS_A_TICK = 100
"""Of one driver, where pools are asked one by one: 5 s of the controller manager's time."""

SWEEP_SECONDS = 3600.0
"""Between two looks for leftovers when there is no reason to expect any."""

JITTER = 0.1
"""Part of the time between two ticks by which it varies, so that replicas do not stay in step."""

START_SECONDS = 1.0
"""Between two looks for the first drivers."""

COMPLETE, TRUNCATED = "complete", "truncated"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DriverState:
    """How it stands with one driver, for the log, the page and metrics."""

    outcome: str
    """Of the last driver-wide request: "complete", "truncated", or what an `Unanswered` or a `Problem` is called."""
    source: str
    """See `drivers.source_in_use`."""


class Refresher:
    """Asks for the pool statuses of all drivers that publish slices."""

    def __init__(
        self,
        client: ApiClient,
        latest: LatestSnapshot,
        *,
        refresh_seconds: float,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._client, self._latest = client, latest
        self._refresh_seconds, self._answer_seconds = refresh_seconds, answer_seconds
        self._in_flight = asyncio.Semaphore(REQUESTS_IN_FLIGHT)
        self._singles: dict[str, dict[str, ResourcePoolStatusRequest]] = {}
        """Answers for single pools in the last tick, by driver and pool."""
        self._sweep_at = 0.0
        self.states: dict[str, DriverState] = {}
        """Of every driver asked in the last tick."""
        self.requests: Counter[tuple[str, str]] = Counter()
        """How many requests were made, by driver and outcome."""
        self.tick_seconds = 0.0
        """How long the last tick took, in seconds."""

    async def run(
        self,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Tick for ever, from when the slices are first known. `now`: epoch seconds. `jitter`: from 0 to 1."""
        while True:
            if self._latest.get().witness.devices_unknown is Reason.NoSource:
                await sleep(START_SECONDS)
                continue
            try:
                await self.tick(now())
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not end what a minute later may go well
                _log.error("refreshing failed", extra={"facts": {"problem": mistakes.place(error)}})
            await sleep(self._refresh_seconds * (1 + JITTER * (2 * jitter() - 1)))

    async def tick(self, now: float) -> None:
        """Ask every driver once. `now`: epoch seconds. Returns when all have answered or have had their time."""
        loop = asyncio.get_running_loop()
        started = loop.time()

        def clock() -> float:
            return now + loop.time() - started

        drivers = self._latest.get().witness.drivers()
        self._forget_all_but(drivers)
        async with asyncio.TaskGroup() as group:
            for driver in drivers:
                group.create_task(self._refresh(driver, clock))
        await self._sweep(clock())
        self.tick_seconds = loop.time() - started

    async def _refresh(self, driver: str, clock: Callable[[], float]) -> None:
        whole = await self._ask(driver, None, clock)
        heard = [] if isinstance(whole, Unanswered) else [whole]
        status = _status(driver, heard, clock())
        outcome = whole.value if isinstance(whole, Unanswered) else _outcome(status)
        singles: dict[str, ResourcePoolStatusRequest] = {}
        if counts_are_all(self._latest.get()) and (status.truncated or whole is Unanswered.SILENT):
            pools = self._missing_pools(driver, status)
            singles = await self._ask_pools(driver, pools, clock)
            # Those of the last tick count too, or no driver of more than a hundred such pools would ever be known.
            known = self._singles.get(driver, {}) | singles
            heard += [known[pool] for pool in pools if pool in known]
            status = _status(driver, heard, clock())
        self._singles[driver] = singles if status.problem is None else {}
        self._publish(status)
        self._note(driver, outcome, clock())

    def _missing_pools(self, driver: str, status: DriverStatus) -> list[str]:
        """Pools that the driver-wide answer does not tell of, and that can be answered for by themselves."""
        return [
            pool.name
            for pool in self._latest.get().witness.pools(driver)
            if pool.condition is Condition.USABLE and pool.generation >= 1 and pool.name not in status.pools
        ]

    async def _ask_pools(
        self, driver: str, pools: list[str], clock: Callable[[], float]
    ) -> dict[str, ResourcePoolStatusRequest]:
        """Answers for single pools, those first that were not answered for in the last tick.

        Otherwise in any order: one that is never answered must not keep the same others waiting tick after tick.
        """
        last, answers = self._singles.get(driver, {}), {}
        order = sorted(pools, key=lambda pool: (pool in last, random.random()))  # noqa: S311 - no secret
        waiting = iter(order[:POOLS_A_TICK])

        async def ask_some() -> None:
            for pool in waiting:
                answer = await self._ask(driver, pool, clock)
                if isinstance(answer, Unanswered):
                    return  # a controller manager that is down must cost 5 s, not 5 s for every pool
                answers[pool] = answer

        async with asyncio.TaskGroup() as group:
            for _ in range(REQUESTS_IN_FLIGHT):
                group.create_task(ask_some())
        return answers

    async def _ask(
        self, driver: str, pool: str | None, clock: Callable[[], float]
    ) -> ResourcePoolStatusRequest | Unanswered:
        async with self._in_flight:
            reply = await ask(self._client, driver, pool, timeout_seconds=self._answer_seconds)
        if not reply.withdrawn:
            self._sweep_at = min(self._sweep_at, clock() + LEFTOVER_SECONDS)
        self.requests[driver, reply.outcome] += 1
        return reply.answer

    async def _sweep(self, now: float) -> None:
        if now < self._sweep_at:
            return
        none_left = await sweep(self._client, now)
        self._sweep_at = now + (SWEEP_SECONDS if none_left else LEFTOVER_SECONDS)

    def _publish(self, status: DriverStatus) -> None:
        """Publish what was counted; where nothing was, what was counted last goes on ageing."""
        world = self._latest.get()
        known = world.snapshot.statuses.get(status.driver)
        if status.problem in (Problem.SILENT, Problem.FAILED) and known is not None and known.problem is None:
            return
        self._latest.publish(replace(world, snapshot=Snapshot({**world.snapshot.statuses, status.driver: status})))

    def _forget_all_but(self, drivers: Collection[str]) -> None:
        """Drivers without slices are not asked: a driver that is not there has no counts."""
        world = self._latest.get()
        statuses = {driver: status for driver, status in world.snapshot.statuses.items() if driver in drivers}
        self._latest.publish(replace(world, snapshot=Snapshot(statuses)))
        for driver in [driver for driver in self.states if driver not in drivers]:
            del self.states[driver]
            self._singles.pop(driver, None)
            _log.info("driver publishes no slices any more", extra={"facts": {"driver": driver}})

    def _note(self, driver: str, outcome: str, now: float) -> None:
        state = DriverState(outcome, source_in_use(driver, self._latest.get(), now))
        if state == self.states.get(driver):
            return
        self.states[driver] = state
        facts = {"driver": driver, "outcome": outcome, "source": state.source or "none"}
        _log.log(logging.INFO if outcome == COMPLETE else logging.WARNING, "pool status", extra={"facts": facts})


def _status(driver: str, heard: list[ResourcePoolStatusRequest], received_at: float) -> DriverStatus:
    if not heard:
        return DriverStatus(driver, None, {}, 0, truncated=False, problem=Problem.SILENT)
    return driver_status(heard, received_at=received_at)


def _outcome(status: DriverStatus) -> str:
    if status.problem is not None:
        return status.problem.value
    return TRUNCATED if status.truncated else COMPLETE
