"""What one pool status proves: free, full, empty or unknown.

A `ResourcePoolStatusRequest` (KEP-5677, resource.k8s.io/v1alpha3) is answered with four counts per pool. The counts
overlap: a device that is allocated *and* tainted is subtracted twice, a claim on a device that left its slice is
subtracted too, a shareable device counts as allocated with its first claim. So `availableDevices == 0` is not "full",
and full is concluded only where no overlap can explain the zero. How several pools and answers go together is the
business of `snapshot`; node constraints (which pools concern a pod) are the caller's.
"""

import enum
from dataclasses import dataclass

from app.dra.objects import Amount, ObjectMeta, View
from app.dra.quantity import parse_quantity
from app.dra.reasons import Reason


class Vacancy(enum.StrEnum):
    """What a pool, or all pools of a class, can still give."""

    FREE = "free"
    FULL = "full"
    """Proved: no device can be allocated."""
    EMPTY = "empty"
    """There is no device at all. Neutral beside other pools, and alone no reason to call anything full."""
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        """Refuse to be used as a truth value: unknown is neither."""
        raise TypeError("a vacancy is not a truth value; compare it")


# --- The object, as the API server of 1.37 writes it ------------------------------------------------------------------


class PartitionTypeStatus(View, frozen=True):
    """`partitionSummary[]`: devices of one type. `allocatable` looks at this type alone: never add them up."""

    attribute: str = ""
    type: str = ""
    total: int | None = None
    allocatable: int | None = None


class ShareableCapacityStatus(View, frozen=True):
    """`shareableSummary.capacity[]`: sums over the pool, not what fits on one device."""

    name: str = ""
    total: Amount | None = None
    consumed: Amount | None = None
    available: Amount | None = None


class ShareableSummaryStatus(View, frozen=True):
    """`shareableSummary`. A used-up device still counts as partially available (seen on 1.37.2)."""

    fully_available_devices: int | None = None
    partially_available_devices: int | None = None
    capacity: tuple[ShareableCapacityStatus, ...] | None = None


class PoolStatus(View, frozen=True):
    """`status.pools[]`. Counts of a pool that could not be counted are unset, which is not zero."""

    driver: str = ""
    pool_name: str = ""
    generation: int | None = None
    total_devices: int | None = None
    allocated_devices: int | None = None
    available_devices: int | None = None
    unavailable_devices: int | None = None
    partition_summary: tuple[PartitionTypeStatus, ...] | None = None
    shareable_summary: ShareableSummaryStatus | None = None
    validation_error: str | None = None


class Condition(View, frozen=True):
    """`status.conditions[]`: `lastTransitionTime` of `Complete` is when the devices were counted."""

    type: str = ""
    status: str = ""
    last_transition_time: str = ""


class ResourcePoolStatusRequestStatus(View, frozen=True):
    """`status`, written once. `poolCount` counts the pools before the list was cut at `spec.limit`."""

    pool_count: int | None = None
    pools: tuple[PoolStatus, ...] | None = None
    conditions: tuple[Condition, ...] | None = None


class ResourcePoolStatusRequestSpec(View, frozen=True):
    """`spec`: one driver, and one of its pools if `poolName` is set."""

    driver: str
    pool_name: str | None = None


class ResourcePoolStatusRequest(View, frozen=True):
    """resource.k8s.io/v1alpha3 ResourcePoolStatusRequest; without `status` it is not answered (yet, or ever)."""

    metadata: ObjectMeta
    spec: ResourcePoolStatusRequestSpec
    status: ResourcePoolStatusRequestStatus | None = None


# --- The judgement ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeviceCounts:
    """The four counts of a pool, once they have been found to make sense."""

    total: int
    allocated: int
    """May exceed `total`: claims on devices that have left the slices count."""
    available: int
    unavailable: int
    """Tainted NoSchedule or NoExecute, allocated or not."""


def device_counts(pool: PoolStatus) -> DeviceCounts | None:
    """The counts of `pool`; None if one is unset, negative, or they do not add up the way 1.37 adds them."""
    total, allocated = pool.total_devices, pool.allocated_devices
    available, unavailable = pool.available_devices, pool.unavailable_devices
    if total is None or allocated is None or available is None or unavailable is None:
        return None
    possible = allocated >= 0 and 0 <= unavailable <= total
    if not possible or available != max(0, total - allocated - unavailable):
        return None
    return DeviceCounts(total, allocated, available, unavailable)


def pool_vacancy(pool: PoolStatus, *, tolerates: bool) -> Vacancy:  # noqa: PLR0911  # a decision table: a return is a row
    """What the counts of one pool prove for a device request.

    `tolerates`: the request has tolerations, whichever; a pool status does not say which taints its devices carry.
    FULL rests on the counts alone: a claim on a device that was renamed in its slice makes it wrong, and nothing in a
    pool status shows that (seen on 1.37.2). Whatever contradicts itself is UNKNOWN.
    """
    counts = device_counts(pool)
    if counts is None:
        return Vacancy.UNKNOWN
    try:
        share = None if pool.shareable_summary is None else _share_vacancy(pool.shareable_summary, counts)
        partition = _partition_vacancy(pool.partition_summary, counts) if pool.partition_summary else None
    except ValueError:
        return Vacancy.UNKNOWN
    unallocated = counts.total > counts.allocated
    if pool.validation_error is not None:
        # The kinds known in 1.37 leave the counts valid, the next one may not: never full, and never neutral.
        roomy = counts.available > 0 or share is Vacancy.FREE or (tolerates and unallocated)
        return Vacancy.FREE if roomy else Vacancy.UNKNOWN
    if counts.total == 0:
        return Vacancy.EMPTY
    if not tolerates and counts.unavailable == counts.total:
        return Vacancy.FULL
    if share is not None:
        return share
    if partition is not None:
        return partition
    if counts.available > 0:
        return Vacancy.FREE
    if counts.allocated == counts.total:
        return Vacancy.FULL
    # Nothing is called available, yet names are left over. To a request with tolerations they are devices; without,
    # they are as many devices as there are allocated *and* tainted ones, a number nobody publishes.
    return Vacancy.FREE if tolerates and unallocated else Vacancy.UNKNOWN


def why_unknown(pool: PoolStatus) -> Reason:
    """The reason to give for a pool whose vacancy is UNKNOWN."""
    if device_counts(pool) is None:
        counts = (pool.total_devices, pool.allocated_devices, pool.available_devices, pool.unavailable_devices)
        return Reason.PoolIncomplete if None in counts else Reason.PoolInvalid
    if pool.shareable_summary is not None:
        return Reason.Shareable
    return Reason.NoSource


def _share_vacancy(summary: ShareableSummaryStatus, counts: DeviceCounts) -> Vacancy:
    """Vacancy of a pool with shareable devices: FREE or UNKNOWN, never FULL. Raises ValueError if malformed.

    A device without capacity never fills and hides among others in the sums, and a request policy may let a request
    consume nothing: sums of zero do not prove that nothing fits.
    """
    fully, partially = _count(summary.fully_available_devices), _count(summary.partially_available_devices)
    if fully + partially > counts.total:
        raise ValueError("more shareable devices than devices")
    sums = [(_amount(c.total), _amount(c.consumed), _amount(c.available)) for c in summary.capacity or ()]
    if fully > 0 or not sums or any(available > 0 for _, _, available in sums):
        return Vacancy.FREE
    overdrawn = any(consumed > total for total, consumed, _ in sums)  # claims on devices that left the slices
    return Vacancy.FREE if counts.available > 0 and not overdrawn else Vacancy.UNKNOWN


def _partition_vacancy(summary: tuple[PartitionTypeStatus, ...], counts: DeviceCounts) -> Vacancy:
    """Vacancy of a pool with shared counters, by what still fits them. Raises ValueError if malformed."""
    sizes = [(_count(entry.total), _count(entry.allocatable)) for entry in summary]
    listed = sum(total for total, _ in sizes)
    kinds = {(entry.attribute, entry.type) for entry in summary}
    named = all(entry.attribute and entry.type for entry in summary)
    distinct = named and len(kinds) == len(summary)
    if not distinct or listed > counts.total or any(fits > total for total, fits in sizes):
        raise ValueError("a partition summary that contradicts itself")
    if any(fits > 0 for _, fits in sizes):
        return Vacancy.FREE
    # Full whatever `availableDevices` says: it counts names without an allocation, not room in the counters.
    return Vacancy.FULL if listed == counts.total else Vacancy.UNKNOWN


def _count(number: int | None) -> int:
    if number is None or number < 0:
        raise ValueError("a count that is unset or negative")
    return number


def _amount(quantity: Amount | None) -> int:
    """A quantity in billionths. Raises ValueError if it is unset, negative or none at all."""
    if quantity is None:
        raise ValueError("an unset quantity")
    return _count(parse_quantity(quantity).nano)
