"""One live count: how many devices match an ask, and which of them are free.

A tally is kept for every ask that was made. A device that changes costs work only in the tallies it is part of; a
request reads numbers that are ready.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from app.dra.demand import Ask
from app.dra.nodes import tolerates
from app.dra.objects import Value
from app.dra.pools import Condition, DeviceState, PoolState
from app.dra.quantity import parse_quantity
from app.dra.reasons import Reason
from app.dra.selector import Match, Selector, Shape, match_all
from app.dra.vacancy import Vacancy
from app.dra.verdict import Unreachable

_Key = TypeVar("_Key")

REACH_AT_MOST = 64
"""Reach is looked at only while this many matching devices are free or fewer: a bound on the work of a review."""


class Standing(Value, frozen=True):
    """What the live view says of one ask at one moment."""

    vacancy: Vacancy
    reason: Reason
    total: int
    """Devices that match."""
    free: int
    """Of these, neither taken nor out of reach."""
    largest_block: int
    largest_free_block: int
    unreachable: tuple[Unreachable, ...] = ()


class Summary(Value, frozen=True):
    """What the devices of a tally have in common."""

    version: int = 0
    """Of the tally it was made of."""
    drivers: tuple[str, ...] = ()
    """Those of the devices that match."""
    possible_drivers: tuple[str, ...] = ()
    """These and those of devices that may match."""
    memory: tuple[str, str] | None = None
    """Smallest and largest memory among the matching devices, as the slices write it."""


@dataclass(frozen=True, slots=True)
class PoolCount:
    """What a tally counts in one pool."""

    matching: int
    free: int
    unavailable: int
    """Neither free nor held: tainted, or without counters to be allocated from."""
    shareable: int
    maybe_free: int
    """Free devices of which nobody can say whether they match."""

    @property
    def held(self) -> int:
        """Matching devices that a claim holds."""
        return self.matching - self.free - self.unavailable


class Blocks:
    """Devices per node, and the most on one node, kept while counting; devices of no one node count for every node."""

    def __init__(self, nodes: Iterable[str] = ()) -> None:
        """Count one device for each node named."""
        self._per_node: dict[str, int] = {}
        self._nodes_of_size = [0]
        """How many nodes have so many devices; the first number, of those without any, means nothing."""
        self._anywhere = 0
        self._most = 0
        for node in nodes:
            self.add(node)

    @property
    def largest(self) -> int:
        """Most devices that one node can use."""
        return self._most + self._anywhere

    def add(self, node: str) -> None:
        """One device more."""
        if not node:
            self._anywhere += 1
            return
        size = self._resize(node, 1)
        self._most = max(self._most, size)

    def discard(self, node: str) -> None:
        """One device fewer."""
        if not node:
            self._anywhere -= 1
            return
        size = self._resize(node, -1)
        if self._most > size and not self._nodes_of_size[self._most]:
            self._most = size

    def _resize(self, node: str, by: int) -> int:
        before = self._per_node.get(node, 0)
        size = before + by
        if size:
            self._per_node[node] = size
        else:
            del self._per_node[node]
        if size == len(self._nodes_of_size):
            self._nodes_of_size.append(0)
        self._nodes_of_size[before] -= 1
        self._nodes_of_size[size] += 1
        return size


class Tally:
    """The devices that match an ask (class and request selectors), and the free ones among them."""

    def __init__(self, ask: Ask, selectors: tuple[Selector, ...]) -> None:
        """Nothing counted yet."""
        self.ask = ask
        self._selectors = selectors
        self._excluded: dict[str, bool] = {}
        self.free: set[DeviceState] = set()
        self.pools: dict[PoolState, int] = {}
        self.blocking: dict[PoolState, Reason] = {}
        """Pools whose devices do not count now and may hold matching ones."""
        self.total = 0
        self.shareable = 0
        self.complete = False
        """Whether every device has been looked at (`tallies`)."""
        self.version = 0
        """Changes with the set of devices that match or may match."""
        self.agreements: dict[str, object] = {}
        """What is remembered of the status of each driver (`agreement`)."""
        self.spreads: object = None
        """What is remembered of how unequal the devices are (`spreads`)."""
        self._unavailable: set[DeviceState] = set()
        self._uncertain: set[DeviceState] = set()
        self._maybe_free: set[DeviceState] = set()
        self._free_in: dict[PoolState, int] = {}
        self._unavailable_in: dict[PoolState, int] = {}
        self._shareable_in: dict[PoolState, int] = {}
        self._uncertain_in: dict[PoolState, int] = {}
        self._maybe_free_in: dict[PoolState, int] = {}
        self._unusable: set[PoolState] = set()
        self._drivers: dict[str, int] = {}
        self._uncertain_drivers: dict[str, int] = {}
        self._blocks = Blocks()
        self._free_blocks = Blocks()
        self._memory: dict[str, int] = {}
        self._summary = Summary()
        self._standing: Standing | None = None
        """What is remembered until something is counted otherwise."""

    def excludes(self, driver: str) -> bool:
        """Whether no device of that driver can match, whatever its attributes."""
        known = self._excluded.get(driver)
        if known is None:
            known = self._excluded[driver] = any(s.excludes_driver(driver) for s in self._selectors)
        return known

    def match(self, shape: Shape) -> Match:
        """Whether a device that looks like this matches class and request."""
        return match_all(self._selectors, shape)

    @property
    def held(self) -> int:
        """Matching devices that a claim holds."""
        return self.total - len(self.free) - len(self._unavailable)

    @property
    def size(self) -> int:
        """Devices that match or may match: what the tally costs."""
        return self.total + len(self._uncertain)

    def add(self, device: DeviceState, match: Match) -> None:
        """A device that matches, or may match, counts from now on."""
        if match is Match.UNKNOWN:
            self._uncertain.add(device)
            self._count_uncertain(device, 1)
        else:
            self._count(device, 1)
        self.update(device)

    def drop(self, device: DeviceState) -> None:
        """A device does not count any more."""
        self._standing = None
        if device in self._uncertain:
            _mark(device, self._maybe_free, self._maybe_free_in, belongs=False)
            self._uncertain.discard(device)
            self._count_uncertain(device, -1)
        else:
            self._set_free(device, free=False)
            _mark(device, self._unavailable, self._unavailable_in, belongs=False)
            self._count(device, -1)

    def update(self, device: DeviceState) -> None:
        """A counted device was taken, freed or tainted."""
        self._standing = None
        free = not device.taken and (not device.taints or self._tolerates(device))
        if device in self._uncertain:
            _mark(device, self._maybe_free, self._maybe_free_in, belongs=free)
        else:
            self._set_free(device, free=free)
            _mark(device, self._unavailable, self._unavailable_in, belongs=not free and not device.holders)

    def block(self, pool: PoolState) -> None:
        """The condition of a pool has changed: note whether it may hold matching devices that do not count."""
        self._standing = None
        self.blocking.pop(pool, None)
        self._unusable.discard(pool)
        if pool.condition is Condition.INVALID and self._may_match(pool.published()):
            self.blocking[pool] = Reason.PoolInvalid
        elif pool.condition is Condition.INCOMPLETE:
            self.blocking[pool] = Reason.PoolIncomplete
        elif pool.condition is Condition.UNUSABLE:
            self._unusable.add(pool)

    def finish(self) -> None:
        """Every device has been looked at."""
        self.complete = True
        self._standing = None

    def unusable(self) -> set[PoolState]:
        """Pools the scheduler never allocates from, and of which nobody knows what they would hold were they complete.

        A pool that becomes complete is left out here: its devices are added one by one, and `block` is not called.
        """
        self._unusable = {pool for pool in self._unusable if pool.condition is Condition.UNUSABLE}
        return self._unusable

    def blocked(self) -> Reason | None:
        """Why devices that do not count may match; None: there are none."""
        return max(self.blocking.values(), default=None) if self.complete else Reason.SelectorUnknown

    def matches(self, device: DeviceState) -> bool:
        """Whether the device is counted as one that matches for certain."""
        return self in device.tallies and device not in self._uncertain

    def candidates(self) -> set[PoolState]:
        """Pools that hold, or may hold, a matching device."""
        return {*self.pools, *self._uncertain_in}

    def possible(self) -> set[PoolState]:
        """Those that hold none for certain."""
        return self._uncertain_in.keys() - self.pools.keys()

    def concerned(self) -> set[PoolState]:
        """These, and pools of which it is not known, or will never be."""
        return self.candidates() | self.blocking.keys() | self.unusable()

    def count_of(self, pool: PoolState) -> PoolCount:
        """What is counted in one pool."""
        return PoolCount(
            matching=self.pools.get(pool, 0),
            free=self._free_in.get(pool, 0),
            unavailable=self._unavailable_in.get(pool, 0),
            shareable=self._shareable_in.get(pool, 0),
            maybe_free=self._maybe_free_in.get(pool, 0),
        )

    def summary(self) -> Summary:
        """What its devices have in common; made anew when others are counted than before."""
        if self._summary.version != self.version:
            drivers, possible = self._drivers, {**self._drivers, **self._uncertain_drivers}
            memory = _range(self._memory)
            self._summary = Summary(self.version, tuple(sorted(drivers)), tuple(sorted(possible)), memory)
        return self._summary

    @property
    def few(self) -> bool:
        """Whether so few devices are free that it is looked at who can get to them."""
        return 0 < len(self.free) <= REACH_AT_MOST

    def standing(self, why_unreachable: Callable[[DeviceState], str] | None = None) -> Standing:
        """Free, full, empty or unknown. `why_unreachable` tells why a pod cannot get to a device; empty: it can."""
        if why_unreachable is not None and self.few:
            return self._stands(*_within_reach(self.free, why_unreachable))
        if self._standing is None:
            self._standing = self._stands(self._free_blocks)
        return self._standing

    def _stands(self, blocks: Blocks, unreachable: tuple[Unreachable, ...] = ()) -> Standing:
        free_count = len(self.free) - sum([u.devices for u in unreachable])
        vacancy, reason = self._vacancy(free_count)
        return Standing(
            vacancy=vacancy,
            reason=reason,
            total=self.total,
            free=free_count,
            largest_block=self._blocks.largest,
            largest_free_block=blocks.largest,
            unreachable=unreachable,
        )

    def _vacancy(self, free: int) -> tuple[Vacancy, Reason]:
        if free > 0:
            return Vacancy.FREE, Reason.HasRoom
        if self._maybe_free or not self.complete:
            return Vacancy.UNKNOWN, Reason.SelectorUnknown
        blocked = self.blocked()
        if blocked is not None:
            return Vacancy.UNKNOWN, blocked
        if self.shareable:
            return Vacancy.UNKNOWN, Reason.Shareable
        if not self.total:
            return (
                (Vacancy.UNKNOWN, Reason.SelectorUnknown)
                if self._uncertain
                else (Vacancy.EMPTY, Reason.NoMatchingDevice)
            )
        out_of_reach = len(self.free) == self.total
        return (Vacancy.UNKNOWN, Reason.OutOfReach) if out_of_reach else (Vacancy.FULL, Reason.NoGPUCapacity)

    def certain(self) -> bool:
        """Whether every device that could match is known to match: numbers can be compared with what is asked."""
        return self.complete and not self._uncertain and not self.blocking

    def _tolerates(self, device: DeviceState) -> bool:
        return all(tolerates(self.ask.tolerations, taint) for taint in device.taints)

    def _may_match(self, devices: Iterable[DeviceState]) -> bool:
        return any(self.match(device.shape) is not Match.NO for device in devices)

    def _set_free(self, device: DeviceState, *, free: bool) -> None:
        if not _mark(device, self.free, self._free_in, belongs=free):
            return
        if free:
            self._free_blocks.add(device.node)
        else:
            self._free_blocks.discard(device.node)

    def _count_uncertain(self, device: DeviceState, sign: int) -> None:
        self.version += 1
        _bump(self._uncertain_in, device.pool, sign)
        _bump(self._uncertain_drivers, device.pool.driver, sign)

    def _count(self, device: DeviceState, sign: int) -> None:
        pool = device.pool
        self.version += 1
        self.total += sign
        if device.shareable:
            self.shareable += sign
            _bump(self._shareable_in, pool, sign)
        _bump(self.pools, pool, sign)
        _bump(self._drivers, pool.driver, sign)
        if sign > 0:
            self._blocks.add(device.node)
        else:
            self._blocks.discard(device.node)
        if device.memory:
            _bump(self._memory, device.memory, sign)


def _bump(counts: dict[_Key, int], key: _Key, by: int) -> None:
    count = counts.get(key, 0) + by
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)


def _mark(device: DeviceState, devices: set[DeviceState], per_pool: dict[PoolState, int], *, belongs: bool) -> bool:
    """Put a device into a set or take it out, with the number of its pool; whether that was a change."""
    if belongs == (device in devices):
        return False
    if belongs:
        devices.add(device)
    else:
        devices.discard(device)
    _bump(per_pool, device.pool, 1 if belongs else -1)
    return True


def _within_reach(
    devices: Iterable[DeviceState], why_unreachable: Callable[[DeviceState], str]
) -> tuple[Blocks, tuple[Unreachable, ...]]:
    near = Blocks()
    far: dict[tuple[str, str], int] = {}
    for device in devices:
        why = why_unreachable(device) if device.node else ""
        if why:
            _bump(far, (device.node, why), 1)
        else:
            near.add(device.node)
    return near, tuple(Unreachable(node, why, count) for (node, why), count in sorted(far.items()))


def _range(amounts: Iterable[str]) -> tuple[str, str] | None:
    try:
        ordered = sorted(amounts, key=lambda amount: parse_quantity(amount).nano)
    except ValueError:
        return None
    return (ordered[0], ordered[-1]) if ordered else None
