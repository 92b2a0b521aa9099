"""The capacity table: what each device class can still give, as JSON and as a page."""

from typing import TYPE_CHECKING

import msgspec

from app.presubmit.report import timestamp

if TYPE_CHECKING:  # a client reads these structs, and what judges would cost it 0.1 s (measured)
    from app.dra.capacity import Capacity, ClassCapacity, PoolCapacity


class Counted(msgspec.Struct, frozen=True, rename="camel"):
    """The four counts; null where they are not known, which is not zero."""

    total: int | None
    allocated: int | None
    available: int | None
    unavailable: int | None


class PoolReport(Counted, frozen=True, rename="camel", gc=False):
    """One pool. `node` is empty for a pool of no single node; names are empty where they are hidden.

    There are so many of them that the garbage collector is told to leave them alone (measured: 10 ms at 40,000).
    """

    driver: str
    pool: str
    node: str
    vacancy: str
    reason: str


class ClassReport(Counted, frozen=True, rename="camel"):
    """One device class over all pools with a matching device."""

    name: str
    extended_resource_name: str
    vacancy: str
    reason: str
    age_seconds: float | None
    """Age of the count; null where the devices were seen live."""
    source: str
    listed_not_counted: int
    """Devices the pool statuses call available that do not count: of another kind, or no longer fitting."""
    never_refused: str
    """Why nobody who asks by its name (the one it declares, else its implicit one) is refused; empty: they may be."""
    shadowed_by: str
    """The class that the name it declares leads to instead; empty: to this one."""
    pools: tuple[PoolReport, ...]


class CapacityReport(msgspec.Struct, frozen=True, rename="camel"):
    """`GET /api/v1/capacity`."""

    snapshot_time: str | None
    """Time of the oldest pool status, RFC 3339."""
    classes: tuple[ClassReport, ...]


def capacity_report(capacity: "Capacity", *, hide_names: bool) -> CapacityReport:
    """The table in its wire form."""
    time = None if capacity.snapshot_time is None else timestamp(capacity.snapshot_time)
    return CapacityReport(time, tuple(class_report(each, hide_names=hide_names) for each in capacity.classes))


def counted(source: str, age_seconds: float | None) -> str:
    """How old the counts are, in words."""
    if age_seconds is not None:
        return f"counted {age_seconds:.0f}s ago"
    return "not counted" if source in {"", "pool-status"} else "seen live"


def class_report(each: "ClassCapacity", *, hide_names: bool) -> ClassReport:
    """The line of one class, and those of its pools, in their wire form."""
    name = each.names[0] if each.names else None
    winner = name.claimants[0] if name and name.explicit and name.claimants else each.name
    return ClassReport(
        total=each.counts.total,
        allocated=each.counts.allocated,
        available=each.counts.available,
        unavailable=each.counts.unavailable,
        name=each.name,
        extended_resource_name=each.extended_resource_name,
        vacancy=each.vacancy,
        reason=each.reason,
        age_seconds=each.age_seconds,
        source=each.source,
        listed_not_counted=each.listed,
        never_refused=(name.never_refused if name else each.never_refused) or "",
        shadowed_by="" if winner == each.name else winner,
        pools=tuple(_pool_report(pool, hide_names=hide_names) for pool in each.pools),
    )


def _pool_report(pool: "PoolCapacity", *, hide_names: bool) -> PoolReport:
    return PoolReport(
        total=pool.counts.total,
        allocated=pool.counts.allocated,
        available=pool.counts.available,
        unavailable=pool.counts.unavailable,
        driver=pool.driver,
        pool="" if hide_names else pool.pool,
        node="" if hide_names else pool.node,
        vacancy=pool.vacancy,
        reason=pool.reason,
    )
