"""How it stands with each driver: whom the judgement believes about its devices, and what of it is not known, and why.

The judgement asks per pool and per status; here the same is put into words for a person who looks after the driver.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from app.dra.demand import Ask
from app.dra.judgement import Source, World
from app.dra.pools import Condition, PoolState
from app.dra.snapshot import DriverStatus, Problem, fresh
from app.dra.words import age, counted_noun, number

POOLS_AT_ONCE = 1000
"""Looked at between two moments in which others may work: under 1 ms (measured)."""

NAMED_AT_MOST = 3
"""Pools that are named; the others are counted."""

_UNANSWERED = {
    Problem.SILENT: "no count of its devices came when it was last asked for",
    Problem.FAILED: "the cluster could not count its devices",
    Problem.MALFORMED: "the count of its devices cannot be right",
    Problem.NO_POOLS: "the count of its devices lists no pool",
    Problem.CLOCK: "the count of its devices is from the future: two clocks differ",
}


@dataclass(frozen=True, slots=True)
class UnknownPool:
    """A pool whose devices do not count, for now."""

    name: str
    words: str
    """What is wrong, as a sentence goes on after its name."""


@dataclass(frozen=True, slots=True)
class DriverView:
    """One driver."""

    driver: str
    source: str
    """Whom the judgement believes about its devices; empty: nobody, so that all of it is unknown."""
    state: str
    """What is wrong with its status in one word: `silent`, `stale` or `incomplete`; empty: nothing."""
    words: str
    """The same in some more."""
    pools: tuple[UnknownPool, ...] = ()
    """Some of the pools whose devices are not known."""
    unknown_pools: int = 0
    """How many these are in all."""

    @property
    def is_known(self) -> bool:
        """Whether all that it publishes counts."""
        return bool(self.source) and not self.unknown_pools


def driver_views(world: World, now: float) -> Iterator[DriverView | None]:
    """All drivers that publish slices, by name; None: a moment in which others may work."""
    for driver in world.witness.drivers():
        unknown: list[UnknownPool] = []
        count = 0
        for seen, pool in enumerate(list(world.witness.pools(driver)), 1):
            if seen % POOLS_AT_ONCE == 0:
                yield None
            if pool.condition in (Condition.INCOMPLETE, Condition.INVALID):
                count += 1
                if len(unknown) < NAMED_AT_MOST:
                    unknown.append(UnknownPool(pool.name, _wrong(pool)))
        state, words = _counted(world.snapshot.statuses.get(driver), world, now)
        yield DriverView(driver, source_in_use(driver, world, now), state, words, tuple(unknown), count)


def unknown_entries(world: World) -> Iterator[str | None]:
    """What `autoscaled` and `dynamic` list that is neither driver nor class now, as `SETTING=NAME`; None: as above."""
    for setting, listed in (("autoscaled", world.policy.autoscaled), ("dynamic", world.policy.dynamic)):
        for name in sorted(listed):
            if not (
                world.witness.has_class(name) or name in world.witness.drivers() or (yield from _meant(name, world))
            ):
                yield f"{setting}={name}"


def _meant(driver: str, world: World) -> Generator[None, None, bool]:
    """Whether a class is for the devices of that driver, which has no slices before its first node comes."""
    for known in list(world.witness.classes):
        yield
        tally = world.witness.tally(Ask(known.name))
        if tally.excludes("") and not tally.excludes(driver):
            return True
    return False


def source_in_use(driver: str, world: World, now: float) -> str:
    """Whom `judgement.find` believes about a driver's devices; empty: nobody, so that nothing is refused."""
    source, witness = world.policy.source, world.witness
    counted = fresh(world.snapshot.statuses.get(driver), now, world.policy.max_age_seconds)
    if witness.devices_unknown is not None:
        return ""
    if counts_are_all(world):
        return Source.POOL_STATUS.value if counted else ""
    if witness.holds_unknown is not None or (source is Source.BOTH and not counted):
        return ""
    return Source.BOTH.value if counted and source is not Source.WITNESS else Source.WITNESS.value


def counts_are_all(world: World) -> bool:
    """Whether pool statuses are all there is to go by."""
    source = world.policy.source
    return source is Source.POOL_STATUS or (source is Source.AUTO and world.witness.holds_denied)


def _counted(status: DriverStatus | None, world: World, now: float) -> tuple[str, str]:
    """What is wrong with a status, in one word and in some more; nothing if it is not asked for."""
    limit = world.policy.max_age_seconds
    if world.policy.source is Source.WITNESS:
        return "", ""
    if status is None:
        return "silent", "its devices have not been counted yet"
    if status.problem is not None:
        return "silent", _UNANSWERED[status.problem]
    if not fresh(status, now, limit):
        return "stale", f"counted {age(now - (status.taken_at or 0.0))} ago, and a count is believed for {age(limit)}"
    if status.truncated:
        listed = f"the count lists {number(len(status.pools))} of {counted_noun(status.pool_count, 'pool')}"
        return "incomplete", listed
    return "", ""


def _wrong(pool: PoolState) -> str:
    if pool.condition is Condition.INVALID:
        return "contradicts itself"
    newest = pool.newest()
    declared = max((part.declared for part in newest.values()), default=0)
    return f"has published {number(len(newest))} of {counted_noun(declared, 'slice')}"
