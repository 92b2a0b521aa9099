"""All that pool statuses said at one moment, and what the sources `pool-status` and `both` conclude from it.

Rules for one pool are in `vacancy`; this room puts answers together. Frozen: the refresher builds a new snapshot and
replaces the old one whole. Devices and claims must not come in: what the live view knows arrives as plain arguments.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.dra.reasons import Reason
from app.dra.vacancy import PoolStatus, ResourcePoolStatusRequest, Vacancy, device_counts, pool_vacancy, why_unknown
from app.times import epoch_seconds

CLOCK_TOLERANCE_SECONDS = 5.0
"""An answer so little ahead of our clock is of age 0: timestamps have whole seconds, clocks drift. More is a fault."""


class Problem(enum.Enum):
    """Why nothing can be concluded about a driver, the least known first. The values are words for people."""

    SILENT = "silent"
    """No answer: an incomplete pool, generation 0, or a controller that is off; the object does not tell which."""
    FAILED = "failed"
    MALFORMED = "malformed"
    NO_POOLS = "no pools"
    """Not the same as no free device: a driver that restarts or is not installed looks like this."""
    CLOCK = "clock fault"


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """The newest answer for one driver."""

    driver: str
    taken_at: float | None
    """When the devices were counted, epoch seconds by the controller-manager's clock, but not after we received it; of
    several answers the oldest. None: never."""
    pools: Mapping[str, PoolStatus]
    """By pool name. Empty if there is a problem."""
    pool_count: int
    """Pools the driver had, listed or not."""
    truncated: bool
    """Pools are missing because the list was cut at its limit (1000 at most), and no answer for one pool filled in."""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The statuses of all drivers that were asked."""

    statuses: Mapping[str, DriverStatus]

    @property
    def taken_at(self) -> float | None:
        """Time of the oldest count, epoch seconds; None without any."""
        return min((s.taken_at for s in self.statuses.values() if s.taken_at is not None), default=None)


def build_snapshot(requests: Iterable[ResourcePoolStatusRequest], *, received_at: float) -> Snapshot:
    """The snapshot of requests for any drivers, in any order, as a file holds them."""
    by_driver: dict[str, list[ResourcePoolStatusRequest]] = {}
    for request in requests:
        by_driver.setdefault(request.spec.driver, []).append(request)
    return Snapshot({d: driver_status(of_driver, received_at=received_at) for d, of_driver in by_driver.items()})


def driver_status(requests: Iterable[ResourcePoolStatusRequest], *, received_at: float) -> DriverStatus:
    """What all requests for one driver (at least one) say together.

    The newest answer that covers the whole driver counts; answers for one pool replace or add what they know better.
    Requests without an answer hide no other. `received_at` is our clock, epoch seconds: a count from its future stays
    a fault even after the time has come, for we know no longer how old it is.
    """
    of_driver: list[_Answer | Problem] = []
    of_pool: dict[str, list[_Answer | Problem]] = {}
    drivers = set()
    for request in requests:
        drivers.add(request.spec.driver)
        name = request.spec.pool_name
        (of_driver if name is None else of_pool.setdefault(name, [])).append(_answer(request))
    (driver,) = drivers
    whole = _newest(of_driver)
    single = {name: newest for name, answers in of_pool.items() if (newest := _newest(answers)) is not None}
    if whole is None and not single:
        problems = [p for answers in (of_driver, *of_pool.values()) for p in answers if isinstance(p, Problem)]
        worst = max(problems, key=list(Problem).index)
        return DriverStatus(driver, None, {}, 0, truncated=False, problem=worst)
    if whole is not None and whole.pools is None:
        return DriverStatus(driver, None, {}, 0, truncated=False, problem=Problem.MALFORMED)
    pools, times, truncated = _merge(whole, single)
    pool_count = len(pools) if whole is None else whole.pool_count
    taken_at = min(*times, received_at)
    if max(times) > received_at + CLOCK_TOLERANCE_SECONDS:
        return DriverStatus(driver, taken_at, {}, pool_count, truncated=False, problem=Problem.CLOCK)
    problem = None if pools else Problem.NO_POOLS
    return DriverStatus(driver, taken_at, pools, pool_count, truncated and len(pools) < pool_count, problem)


def age_seconds(status: DriverStatus, now: float) -> float | None:
    """Seconds since the devices were counted; None if they never were."""
    return None if status.taken_at is None else max(0.0, now - status.taken_at)


def fresh(status: DriverStatus | None, now: float, max_age_seconds: float) -> bool:
    """Whether there is an answer to build on, not older than `max_age_seconds` and not from the future."""
    if status is None or status.problem is not None or status.taken_at is None:
        return False
    return -CLOCK_TOLERANCE_SECONDS <= now - status.taken_at <= max_age_seconds


def status_vacancy(
    status: DriverStatus | None, pools: Mapping[str, int], *, tolerates: bool, now: float, max_age_seconds: float
) -> tuple[Vacancy, Reason]:
    """The source `pool-status` for one driver: what its counts prove about `pools`.

    `pools`: name to generation, by the slices, of every pool that may hold a matching device. One free pool is enough
    for FREE; FULL needs the whole driver seen, and every one of `pools` in the same generation and full.
    """
    if status is None or status.problem is not None:
        return Vacancy.UNKNOWN, Reason.NoSource
    if not fresh(status, now, max_age_seconds):
        return Vacancy.UNKNOWN, Reason.StaleSnapshot
    unknown = Reason.NoSource if status.truncated else None
    full = False
    for name in sorted(pools):
        pool = _known_pool(status, name, pools[name])
        vacancy = Vacancy.UNKNOWN if pool is None else pool_vacancy(pool, tolerates=tolerates)
        if vacancy is Vacancy.FREE:
            return Vacancy.FREE, Reason.HasRoom
        if vacancy is Vacancy.UNKNOWN and unknown is None:
            unknown = Reason.StaleSnapshot if pool is None else why_unknown(pool)
        full = full or vacancy is Vacancy.FULL
    if unknown is not None:
        return Vacancy.UNKNOWN, unknown
    return (Vacancy.FULL, Reason.NoGPUCapacity) if full else (Vacancy.UNKNOWN, Reason.NoMatchingDevice)


def confirms(status: DriverStatus | None, slice_pools: Mapping[str, int], now: float, max_age_seconds: float) -> bool:
    """Whether, for the source `both`, a status speaks of the same pools as the slices do, with counts that make sense.

    `slice_pools`: name to generation of every pool of the driver. A cut list is excused for pools it does not name, not
    for those it names.
    """
    if status is None or not fresh(status, now, max_age_seconds):
        return False
    for name, generation in slice_pools.items():
        if name not in status.pools and status.truncated:
            continue
        pool = _known_pool(status, name, generation)
        if pool is None or device_counts(pool) is None:
            return False
    return True


def proves_free(pool: PoolStatus) -> bool:
    """Whether a plain pool certainly had a free device: its subtractions only ever take away too much.

    The caller sees to the rest: every device of the pool matches, none is shareable or consumes shared counters, none
    was taken since.
    """
    counts = device_counts(pool)
    return counts is not None and counts.available > 0


# --- Reading and merging answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """A request with `Complete`; `pools` is None if what it says cannot be."""

    at: float
    pools: tuple[PoolStatus, ...] | None
    pool_count: int


def _answer(request: ResourcePoolStatusRequest) -> _Answer | Problem:
    status = request.status
    if status is None:
        return Problem.SILENT
    conditions = status.conditions or ()
    if len(conditions) != 1:  # 1.37 writes exactly one; more is a newer API or a forgery
        return Problem.MALFORMED
    (condition,) = conditions
    if condition.type == "Failed":
        return Problem.FAILED
    if condition.type != "Complete" or condition.status != "True":
        return Problem.MALFORMED
    try:
        at = epoch_seconds(condition.last_transition_time)
    except ValueError:
        return Problem.MALFORMED
    pools, count, wanted = status.pools or (), status.pool_count, request.spec.pool_name
    names = {pool.pool_name for pool in pools}
    possible = (
        count is not None
        and len(names) == len(pools) <= count
        and (count == 0 or len(pools) > 0)  # the limit is 1 at least
        and all(pool.driver == request.spec.driver and pool.pool_name for pool in pools)
        and (wanted is None or (count <= 1 and names <= {wanted}))
    )
    return _Answer(at, pools if possible else None, count or 0)


def _newest(answers: Iterable[_Answer | Problem]) -> _Answer | None:
    """The newest answer; if two of one second (the resolution of the API) differ, one that cannot be."""
    finished = [answer for answer in answers if isinstance(answer, _Answer)]
    at = max((answer.at for answer in finished), default=None)
    newest = [answer for answer in finished if answer.at == at]
    if at is None or all(answer == newest[0] for answer in newest):
        return newest[0] if newest else None
    return _Answer(at, None, 0)


def _merge(whole: _Answer | None, single: Mapping[str, _Answer]) -> tuple[dict[str, PoolStatus], list[float], bool]:
    """Pools by name, the times of the answers used, and whether the answer for the whole driver was cut."""
    listed = () if whole is None else whole.pools or ()
    pools = {pool.pool_name: pool for pool in listed}
    times = [] if whole is None else [whole.at]
    truncated = whole is not None and len(listed) < whole.pool_count
    for name, answer in single.items():
        pool = answer.pools[0] if answer.pools else None  # None: the pool is gone, or the answer cannot be
        if whole is not None and (name in pools or not truncated):
            if answer.at < whole.at:
                continue
            if answer.at == whole.at and pool != pools.get(name):
                pool = None
        times.append(answer.at)
        if pool is None:
            pools.pop(name, None)
        else:
            pools[name] = pool
    return pools, times, truncated


def _known_pool(status: DriverStatus, name: str, generation: int) -> PoolStatus | None:
    """The pool, if counted in this generation. The API server accepts no count of generation 0 (seen on 1.37.2)."""
    pool = status.pools.get(name)
    return pool if pool is not None and pool.generation == generation >= 1 else None
