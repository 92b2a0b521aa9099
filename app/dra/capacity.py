"""The capacity table: for every device class and every pool that serves it, how many devices there are and are free."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import TypeVar

from app.dra.demand import Ask
from app.dra.judgement import ANYBODY, Finding, Source, World, find, never_refused, shown, total
from app.dra.names import Name, names
from app.dra.parts import NO_PARTS, Parts, PartsSum
from app.dra.places import Places, places
from app.dra.pools import PoolState
from app.dra.reasons import Reason
from app.dra.snapshot import status_vacancy
from app.dra.spreads import Spread, spreads
from app.dra.tally import REACH_AT_MOST, PoolCount, Tally
from app.dra.vacancy import Vacancy

_T = TypeVar("_T")

POOLS_AT_ONCE = 200
"""Pools between two moments in which others may work: under 1 ms (measured)."""

_NAME = attrgetter("driver", "pool")


@dataclass(frozen=True, slots=True)
class Counts:
    """The four counts of a pool status, for the devices that match a class; None: not known."""

    total: int | None = None
    allocated: int | None = None
    available: int | None = None
    unavailable: int | None = None
    """Not allocated, and yet not to be had: tainted, out of shared counters, or on a node nobody gets to."""

    def __add__(self, other: "Counts") -> "Counts":
        """Both together; unknown spoils the sum."""
        return Counts(
            _plus(self.total, other.total),
            _plus(self.allocated, other.allocated),
            _plus(self.available, other.available),
            _plus(self.unavailable, other.unavailable),
        )


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """One pool, as far as a class is concerned."""

    driver: str
    pool: str
    node: str
    """Empty: not tied to one node."""
    counts: Counts
    vacancy: Vacancy
    reason: Reason


@dataclass(frozen=True, slots=True)
class ClassCapacity:
    """One device class."""

    name: str
    extended_resource_name: str
    counts: Counts
    listed: int
    """Devices the pool statuses call available that do not count: of another kind, or no longer fitting."""
    vacancy: Vacancy
    reason: Reason
    judged: Vacancy
    """What pods are judged by: pools that are never used hold no device."""
    age_seconds: float | None
    """Age of the oldest count used; None: seen live, or nothing is known."""
    source: str
    pools: tuple[PoolCapacity, ...]
    names: tuple[Name, ...] = ()
    """Extended resource names that lead to the class, or seem to."""
    spreads: tuple[Spread, ...] = ()
    """How unequal its devices are."""
    drivers: tuple[tuple[str, Counts], ...] = ()
    """The counts of each driver's pools together."""
    parts: Parts = NO_PARTS
    """What is left of devices that are given away in parts, where that was counted."""
    never_refused: Reason | None = None
    """Why nobody is refused its devices, free or not, whatever they ask by; None: they may be."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """All classes by name."""

    snapshot_time: float | None
    """Epoch seconds of the oldest pool status; None without any."""
    classes: tuple[ClassCapacity, ...]


def capacity(world: World, now: float) -> Capacity:
    """The table at the moment `now`."""
    classes = (each for each in class_capacities(world, now) if each is not None)
    return Capacity(snapshot_time=world.snapshot.taken_at, classes=tuple(classes))


def class_capacities(world: World, now: float) -> Iterator[ClassCapacity | None]:
    """The classes of the table by name, and between them None: a moment in which the caller may let others work.

    What the world hears in such a moment is in the rows that follow; the line of a class is of one moment.
    """
    world.witness.advance(now)
    known_places = yield from places(world.witness.pools(), world.witness.nodes.names())
    for name, declares in sorted((known.name, known.declares) for known in world.witness.classes):
        yield None
        if world.witness.has_class(name):
            yield from _class_capacity(name, declares, world, known_places, now)


def _class_capacity(
    name: str, declares: str, world: World, known_places: Places, now: float
) -> Iterator[ClassCapacity | None]:
    finding = find(Ask(name), ANYBODY, world, now)
    tally = finding.tally
    matching, held = total(tally, world), tally.held
    some: list[list[PoolCapacity]] = []
    parts = PartsSum(seen_live=finding.source in (Source.WITNESS, Source.BOTH))
    for pools in _some_at_a_time(tally.pools):
        yield None
        far = _out_of_reach(tally, world, now)  # of this moment, as the rows are
        some.append(sorted((_row(p, finding, far[p], world, now) for p in pools if p in tally.pools), key=_NAME))
        for _ in parts.add(pools, world, now):
            yield None
    counts = _counts_of_class(finding, matching, held, [row for rows in some for row in rows])
    for others in _some_at_a_time(_others(tally)):
        yield None
        some.append(sorted((_unknown_row(*other) for other in others), key=_NAME))
    rows: list[PoolCapacity] = []
    drivers: dict[str, Counts] = {}
    for row in merge(*some, key=_NAME):
        if len(rows) % POOLS_AT_ONCE == 0:
            yield None
        rows.append(row)
        known = drivers.get(row.driver)
        drivers[row.driver] = row.counts if known is None else known + row.counts
    of_devices = yield from spreads(tally, known_places, now)
    vacancy, reason = shown(finding)
    if vacancy is not finding.vacancy:
        counts = Counts()
    yield ClassCapacity(
        name=name,
        extended_resource_name=declares,
        counts=counts,
        listed=finding.listed,
        vacancy=vacancy,
        reason=reason,
        judged=finding.vacancy,
        age_seconds=None if finding.counted_at is None else max(0.0, now - finding.counted_at),
        source=finding.source,
        pools=tuple(rows),
        names=tuple(names(name, declares, world, now)),
        spreads=of_devices,
        drivers=tuple(drivers.items()),
        parts=parts.parts(known_places),
        never_refused=never_refused([name], world),
    )


def _some_at_a_time(items: Iterable[_T]) -> Iterator[list[_T]]:
    """All that there are now, some at a time: nothing stands still between two parts."""
    listed = list(items)
    for start in range(0, len(listed), POOLS_AT_ONCE):
        yield listed[start : start + POOLS_AT_ONCE]


def _counts_of_class(finding: Finding, matching: int | None, held: int, rows: list[PoolCapacity]) -> Counts:
    """What can be said of a whole class: not what is left if that is unknown, nor a total if more may match."""
    free = finding.free
    if matching is None:
        return Counts(available=free)
    if not finding.source:
        return Counts(matching)
    if finding.source == Source.POOL_STATUS:
        allocated = _sum(row.counts.allocated for row in rows)
        unavailable = _sum(row.counts.unavailable for row in rows)
        return Counts(matching, allocated, free, None if finding.vacancy is Vacancy.UNKNOWN else unavailable)
    return Counts(matching, held, free, None if free is None else matching - held - free)


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _sum(numbers: Iterable[int | None]) -> int | None:
    """All together; unknown spoils the sum."""
    known = list(numbers)
    return None if None in known else sum(number for number in known if number is not None)


# --- One pool ---------------------------------------------------------------------------------------------------------


def _row(pool: PoolState, finding: Finding, far: int, world: World, now: float) -> PoolCapacity:
    """A pool that holds a matching device; `far`: so many of its free ones nobody gets to."""
    count = finding.tally.count_of(pool)
    if finding.source == Source.POOL_STATUS:
        counts = _counts_by_status(pool, count, world)
        vacancy, reason = _by_status(pool, world, now)
    else:
        counts = _counts_by_witness(count, far) if finding.source else Counts(count.matching)
        vacancy, reason = _by_witness(counts, finding)
    if vacancy is Vacancy.FULL and (doubt := _doubt(count, finding)):
        vacancy, reason = Vacancy.UNKNOWN, doubt
    if vacancy is Vacancy.UNKNOWN:
        counts = Counts(counts.total, counts.allocated)
    if not finding.tally.complete:  # a part says nothing of the whole
        counts = Counts()
    return PoolCapacity(pool.driver, pool.name, pool.node(), counts, vacancy, reason)


def _counts_by_status(pool: PoolState, count: PoolCount, world: World) -> Counts:
    """A status counts a whole pool: it counts a class only where all devices match, and none is more than one."""
    status = world.snapshot.statuses.get(pool.driver)
    counted = status.pools.get(pool.name) if status and pool.plain and count.matching == pool.size else None
    if counted is None:
        return Counts(count.matching)
    return Counts(
        counted.total_devices, counted.allocated_devices, counted.available_devices, counted.unavailable_devices
    )


def _by_status(pool: PoolState, world: World, now: float) -> tuple[Vacancy, Reason]:
    return status_vacancy(
        world.snapshot.statuses.get(pool.driver),
        {pool.name: pool.generation},
        tolerates=False,
        now=now,
        max_age_seconds=world.policy.max_age_seconds,
    )


def _counts_by_witness(count: PoolCount, far: int) -> Counts:
    return Counts(count.matching, count.held, count.free - far, count.unavailable + far)


def _by_witness(counts: Counts, finding: Finding) -> tuple[Vacancy, Reason]:
    if counts.available:
        return Vacancy.FREE, Reason.HasRoom
    if finding.vacancy is Vacancy.UNKNOWN:
        return Vacancy.UNKNOWN, finding.reason
    return Vacancy.FULL, Reason.NoGPUCapacity


def _doubt(count: PoolCount, finding: Finding) -> Reason | None:
    """Why a pool in which nothing is free is not full: a shareable device never is, nor one that may match and is free.

    Devices that may match concern the witness alone: a status that calls a pool full has counted them.
    """
    if count.maybe_free and finding.source != Source.POOL_STATUS:
        return Reason.SelectorUnknown
    return Reason.Shareable if count.shareable else None


def _unknown_row(pool: PoolState, vacancy: Vacancy, reason: Reason) -> PoolCapacity:
    return PoolCapacity(pool.driver, pool.name, pool.node(), Counts(), vacancy, reason)


def _others(tally: Tally) -> Iterator[tuple[PoolState, Vacancy, Reason]]:
    """Pools that may hold a matching device, or never will."""
    for pool in tally.possible():
        yield pool, Vacancy.UNKNOWN, Reason.SelectorUnknown
    for pool, reason in tally.blocking.items():
        yield pool, Vacancy.UNKNOWN, reason
    for pool in tally.unusable():
        yield pool, Vacancy.UNKNOWN, Reason.PoolIncomplete


def _out_of_reach(tally: Tally, world: World, now: float) -> Counter[PoolState]:
    """Free devices nobody gets to, by pool; looked at for few devices only, as a review does."""
    few = tally.free if len(tally.free) <= REACH_AT_MOST else ()
    out_of_reach = world.witness.nodes.out_of_reach
    return Counter(d.pool for d in few if d.node and out_of_reach(d.node, d.since, None, (), now))
