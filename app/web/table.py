"""The capacity table, kept for a moment and made a little at a time: for page, API and metrics alike.

It is as large as the cluster, and reviews are answered by the same event loop: whoever walks through it pauses for
them, and nobody makes it again while it is new.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Generic, TypeVar

from app.dra.capacity import ClassCapacity
from app.dra.drivers import DriverView, driver_views, unknown_entries
from app.dra.judgement import World
from app.dra.reasons import Reason
from app.dra.vacancy import Vacancy
from app.presubmit.report import timestamp
from app.web.capacity import CapacityReport, ClassReport, class_report

KEPT_SECONDS = 2.0
"""How old the table may get: what `vacancy capacity --watch` waits between two looks."""

WORK_SECONDS = 0.001
"""In one piece, then a review may come. What is added to it is the step that was begun last."""

PAUSE_SECONDS = 0.001
"""A review needs several turns of the loop, so to yield once is not enough (measured: no gain by `sleep(0)`)."""

_log = logging.getLogger(__name__)

T = TypeVar("T")

Steps = Callable[[World, float], Iterable[ClassCapacity | None]]
"""The classes by name, each with its pools; None: a moment to let others work."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What all classes can still give, at one moment."""

    made_at: float
    """Epoch seconds."""
    report: CapacityReport
    classes: tuple[ClassCapacity, ...]
    """The same without pools."""
    pools: Mapping[tuple[str, Vacancy], int]
    """Number of pools by driver and by what they can still give."""
    drivers: tuple[DriverView, ...] = ()
    unknown: Reason | None = None
    """Why nothing is known of classes and devices; None: they are known and current."""
    unknown_entries: tuple[str, ...] = ()
    """What settings list and the cluster does not know."""


class CapacityTable:
    """The table as of now or of a moment ago."""

    def __init__(self, steps: Steps, *, world: Callable[[], World], now: Callable[[], float], hide_names: bool) -> None:
        self._steps, self._world, self._now, self._hide_names = steps, world, now, hide_names
        self._lock = asyncio.Lock()
        self._table: Table | None = None
        self._of: World | None = None
        self._kept_until = 0.0
        self._unknown_entries: tuple[str, ...] = ()

    async def get(self) -> Table:
        """The table; who asks while it is being made waits for that one.

        A clock that stands still tells no age: with it, only another world is a reason to make it again.
        """
        async with self._lock:
            world, now = self._world(), self._now()
            table = self._table
            if table is None or self._of is not world or not table.made_at <= now < self._kept_until:
                table = await self._made(world, now)
                self._table, self._of, self._kept_until = table, world, self._now() + KEPT_SECONDS
            return table

    async def _made(self, world: World, now: float) -> Table:
        taken_at = world.snapshot.taken_at
        reports: list[ClassReport] = []
        classes: list[ClassCapacity] = []
        pools: dict[tuple[str, str], Vacancy] = {}
        drivers: list[DriverView] = []

        def steps() -> Iterator[None]:
            for each in self._steps(world, now):
                yield
                if each is not None:
                    reports.append(class_report(each, hide_names=self._hide_names))
                    yield
                    classes.append(replace(each, pools=()))
                    for pool in each.pools:
                        key = pool.driver, pool.pool
                        if (known := pools.setdefault(key, pool.vacancy)) is not pool.vacancy:
                            pools[key] = _better(known, pool.vacancy)
                    yield
            for view in driver_views(world, now):
                if view is not None:
                    drivers.append(view)
                yield
            yield from self._look_entries_up(world)

        async for _ in in_pieces(steps()):
            pass
        return Table(
            made_at=now,
            report=CapacityReport(None if taken_at is None else timestamp(taken_at), tuple(reports)),
            classes=tuple(classes),
            pools=Counter((driver, vacancy) for (driver, _), vacancy in pools.items()),
            drivers=tuple(drivers),
            unknown=world.witness.devices_unknown,
            unknown_entries=self._unknown_entries,
        )

    def _look_entries_up(self, world: World) -> Iterator[None]:
        """What settings list and the cluster does not know; the log is told when it changes."""
        if world.witness.devices_unknown is not None:
            return
        found: list[str] = []
        for entry in unknown_entries(world):
            if entry is not None:
                found.append(entry)
            yield
        entries = tuple(found)
        if entries and entries != self._unknown_entries:
            _log.warning("settings name no driver or class", extra={"facts": {"entries": ",".join(entries)}})
        self._unknown_entries = entries


class Kept(Generic[T]):
    """Something made of a table, kept until it is wanted of something else."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._made: tuple[Hashable, T] | None = None

    async def get(self, of: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """What `make` made of `of`; who asks meanwhile waits for the same."""
        async with self._lock:
            if self._made is None or self._made[0] != of:
                self._made = (of, await make())
            return self._made[1]


async def in_pieces(steps: Iterable[T]) -> AsyncIterator[T]:
    """What an iterator gives, with pauses in which reviews are answered."""
    works_until = perf_counter() + WORK_SECONDS
    for each in steps:
        yield each
        if perf_counter() >= works_until:
            await asyncio.sleep(PAUSE_SECONDS)
            works_until = perf_counter() + WORK_SECONDS


def _better(one: Vacancy, other: Vacancy) -> Vacancy:
    """What a pool can give to two classes: free if either still gets a device."""
    order = (Vacancy.FREE, Vacancy.UNKNOWN, Vacancy.FULL, Vacancy.EMPTY)
    return min(one, other, key=order.index)
