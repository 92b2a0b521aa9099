"""The capacity table: for every device class and every pool that serves it, how many devices there are and are free."""

from collections.abc import Iterator
from dataclasses import dataclass

from app.dra.demand import Ask, PodDemand
from app.dra.judgement import Finding, Source, World, find
from app.dra.pools import Condition, DeviceState, PoolState
from app.dra.reasons import Reason
from app.dra.snapshot import status_vacancy
from app.dra.tally import REACH_AT_MOST, Tally
from app.dra.vacancy import Vacancy


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
            _sum(self.total, other.total),
            _sum(self.allocated, other.allocated),
            _sum(self.available, other.available),
            _sum(self.unavailable, other.unavailable),
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
    vacancy: Vacancy
    reason: Reason
    age_seconds: float | None
    """Age of the oldest count used; None: seen live, or nothing is known."""
    source: str
    pools: tuple[PoolCapacity, ...]


@dataclass(frozen=True, slots=True)
class Capacity:
    """All classes by name."""

    snapshot_time: float | None
    """Epoch seconds of the oldest pool status; None without any."""
    classes: tuple[ClassCapacity, ...]


def capacity(world: World, now: float) -> Capacity:
    """The table at the moment `now`."""
    world.witness.advance(now)
    classes = sorted(world.witness.classes, key=lambda known: known.name)
    return Capacity(
        snapshot_time=world.snapshot.taken_at,
        classes=tuple(_class_capacity(known.name, known.declares, world, now) for known in classes),
    )


def _class_capacity(name: str, declares: str, world: World, now: float) -> ClassCapacity:
    finding = find(Ask(name), PodDemand(), world, now)
    tally = finding.tally
    rows = [_row(pool, finding, world, now) for pool in tally.pools]
    pools = sorted((*rows, *_others(tally, world)), key=lambda row: (row.driver, row.pool))
    return ClassCapacity(
        name=name,
        extended_resource_name=declares,
        counts=_known(sum((row.counts for row in rows), Counts(0, 0, 0, 0)), finding),
        vacancy=finding.vacancy,
        reason=finding.reason,
        age_seconds=None if finding.counted_at is None else max(0.0, now - finding.counted_at),
        source=finding.source,
        pools=tuple(pools),
    )


def _known(counts: Counts, finding: Finding) -> Counts:
    """What can be said of a whole class: not what is left if that is unknown, nor a total if more may match."""
    unknown = finding.vacancy is Vacancy.UNKNOWN
    if finding.tally.certain():
        return Counts(counts.total, counts.allocated) if unknown else counts
    return Counts() if unknown else Counts(available=counts.available)


def _row(pool: PoolState, finding: Finding, world: World, now: float) -> PoolCapacity:
    """A pool that holds a matching device."""
    counts = _counts(pool, finding, world, now)
    if finding.source == Source.POOL_STATUS:
        vacancy, reason = _by_status(pool, world, now)
    else:
        vacancy, reason = _standing(counts, finding)
    if vacancy is Vacancy.UNKNOWN:
        counts = Counts(counts.total, counts.allocated)
    return PoolCapacity(pool.driver, pool.name, pool.node(), counts, vacancy, reason)


def _others(tally: Tally, world: World) -> Iterator[PoolCapacity]:
    """Pools that may hold one, or never will."""
    for pool in tally.candidates() - tally.pools.keys():
        yield PoolCapacity(pool.driver, pool.name, pool.node(), Counts(), Vacancy.UNKNOWN, Reason.SelectorUnknown)
    for pool, reason in tally.blocking.items():
        yield PoolCapacity(pool.driver, pool.name, pool.node(), Counts(), Vacancy.UNKNOWN, reason)
    for pool in world.witness.pools():
        if pool.condition is Condition.UNUSABLE and not tally.excludes(pool.driver):
            yield PoolCapacity(pool.driver, pool.name, pool.node(), Counts(), Vacancy.EMPTY, Reason.PoolIncomplete)


def _by_status(pool: PoolState, world: World, now: float) -> tuple[Vacancy, Reason]:
    return status_vacancy(
        world.snapshot.statuses.get(pool.driver),
        {pool.name: pool.generation},
        tolerates=False,
        now=now,
        max_age_seconds=world.policy.max_age_seconds,
    )


def _counts(pool: PoolState, finding: Finding, world: World, now: float) -> Counts:
    tally = finding.tally
    if not finding.source:
        return Counts(total=tally.pools[pool])
    if finding.source == Source.POOL_STATUS:
        status = world.snapshot.statuses.get(pool.driver)
        counted = status.pools.get(pool.name) if status else None
        if counted is None:
            return Counts(total=tally.pools[pool])
        return Counts(
            counted.total_devices, counted.allocated_devices, counted.available_devices, counted.unavailable_devices
        )
    devices = [device for device in pool.devices() if tally.matches(device)]
    held = sum(device.holders > 0 for device in devices)
    free = sum(device in tally.free and not _far(device, tally, world, now) for device in devices)
    return Counts(len(devices), held, free, len(devices) - held - free)


def _far(device: DeviceState, tally: Tally, world: World, now: float) -> bool:
    if not device.node or len(tally.free) > REACH_AT_MOST:
        return False
    return bool(world.witness.nodes.out_of_reach(device.node, device.since, (), (), now))


def _standing(counts: Counts, finding: Finding) -> tuple[Vacancy, Reason]:
    if counts.available:
        return Vacancy.FREE, Reason.HasRoom
    if finding.vacancy is Vacancy.UNKNOWN:
        return Vacancy.UNKNOWN, finding.reason
    return Vacancy.FULL, Reason.NoGPUCapacity


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
