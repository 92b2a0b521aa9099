"""What one pool status says about the devices a tally counts, worked out once per status and slices.

A review must not walk over all pools; what depends on neither the pod nor the moment is kept with the tally until the
status, the slices or the matching devices are others.
"""

from dataclasses import dataclass

from app.dra.pools import Condition, PoolState
from app.dra.reasons import Reason
from app.dra.snapshot import DriverStatus, confirms, proves_free, status_vacancy
from app.dra.tally import Blocks, Tally
from app.dra.vacancy import Vacancy
from app.dra.witness import Witness


@dataclass(frozen=True, slots=True)
class Agreement:
    """One status held against the slices. `made_for` tells what it was worked out from."""

    made_for: tuple[DriverStatus, int, int]
    confirms: bool
    """It speaks of the same pools as the slices do (source `both`)."""
    vacancy: Vacancy
    """What it proves by itself about all pools that may hold a matching device (source `pool-status`)."""
    reason: Reason
    listed: int
    """Devices it calls available in the pools of the tally, whatever they are."""
    lists: tuple[tuple[PoolState, int], ...]
    """The same by pool, where there are any."""
    exact: bool
    """These are the free ones: it knows every pool of the tally, and all devices of each match and are plain ones."""
    roomy: tuple[tuple[PoolState, int], ...]
    """Pools in which its available devices can only be matching ones, with their number."""
    largest_block: int
    """Most of these on one node."""

    def uncounted(self) -> int:
        """Devices it calls available that do not count: of another kind, or no longer fitting.

        In a pool of which something was taken since the count, that may be what it lists.
        """
        counted_at = self.made_for[0].taken_at or 0.0
        return sum(available for pool, available in self.lists if pool.last_taken < counted_at)

    def doubt(self, tally: Tally) -> Reason | None:
        """Why the witness may not call the tally full: the status does not know its pools, or proves a device free.

        Proof is a free device that the witness believes taken since before the count.
        """
        if not self.confirms:
            return Reason.PoolIncomplete
        counted_at = self.made_for[0].taken_at or 0.0
        proven = any(
            pool.last_taken < counted_at  # both are whole seconds: in one second either may have come first
            and available > sum(device.pool is pool and not device.taints for device in tally.free)
            for pool, available in self.roomy
        )
        return Reason.StaleSnapshot if proven else None


def agreement(status: DriverStatus, tally: Tally, witness: Witness) -> Agreement:
    """What a status says; freshness is the caller's to look at."""
    made_for = (status, tally.version, witness.pools_version(status.driver))
    known = tally.agreements.get(status.driver)
    if not isinstance(known, Agreement) or known.made_for[0] is not status or known.made_for[1:] != made_for[1:]:
        known = tally.agreements[status.driver] = _work_out(made_for, tally, witness)
    return known


def _work_out(made_for: tuple[DriverStatus, int, int], tally: Tally, witness: Witness) -> Agreement:
    status = made_for[0]
    counted_at = status.taken_at or 0.0
    candidates = {pool.name: pool.generation for pool in tally.candidates() if pool.driver == status.driver}
    usable = {
        pool.name: pool.generation for pool in witness.pools(status.driver) if pool.condition is not Condition.UNUSABLE
    }
    vacancy, reason = status_vacancy(
        status, candidates, tolerates=bool(tally.ask.tolerations), now=counted_at, max_age_seconds=0.0
    )
    counted = [
        (pool, matching, status.pools[pool.name])
        for pool, matching in tally.pools.items()
        if pool.driver == status.driver and pool.name in status.pools
    ]
    lists = tuple((pool, counts.available_devices) for pool, _, counts in counted if counts.available_devices)
    fitting = [(pool, counts) for pool, matching, counts in counted if pool.plain and matching == pool.size]
    roomy = tuple((pool, counts.available_devices or 0) for pool, counts in fitting if proves_free(counts))
    known = sum(_is_known(pool, status) for pool, _ in fitting)
    return Agreement(
        made_for=made_for,
        confirms=confirms(status, usable, counted_at, 0.0),
        vacancy=vacancy,
        reason=reason,
        listed=sum(available for _, available in lists),
        lists=lists,
        exact=known == len(candidates),
        roomy=roomy,
        largest_block=Blocks(pool.node() for pool, count in roomy for _ in range(min(count, pool.size))).largest,
    )


def _is_known(pool: PoolState, status: DriverStatus) -> bool:
    vacancy, _ = status_vacancy(
        status, {pool.name: pool.generation}, tolerates=False, now=status.taken_at or 0.0, max_age_seconds=0.0
    )
    return vacancy is not Vacancy.UNKNOWN
