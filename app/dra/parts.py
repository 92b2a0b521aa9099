"""What can still be had of devices that are given away in parts: partitions of each type, and capacity to share.

Partitions are counted in the live view, where it is what counts; else, and always for what is left of a device that is
shared, by the pool statuses.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.dra.counters import Consumption
from app.dra.judgement import World
from app.dra.places import Places
from app.dra.pools import DeviceState, PoolState, SliceState
from app.dra.quantity import Quantity, parse_quantity
from app.dra.shapes import entries
from app.dra.snapshot import fresh
from app.dra.vacancy import PoolStatus

KINDS_AT_MOST = 32
"""Of partition types and of capacities: as many as one pool status may list."""

PARTITIONS_AT_MOST = 8000
"""Looked at for one class: 2.4 us each (measured), and a node has hundreds. More: nothing is said."""

PARTITIONS_AT_ONCE = 300
"""Between two moments in which others may work: a rack published as one pool has thousands."""

_TYPES = ("profile", "type")
"""Attributes that drivers tell their partitions apart by, the more exact one first."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """Partitions of one type. Types take their room from each other: their numbers must not be added up."""

    type: str
    total: int
    allocatable: int
    private: bool = False
    """Not for readers from whom names are hidden: the type names a pool or node."""


@dataclass(frozen=True, slots=True)
class SharedCapacity:
    """One capacity of the devices that can be shared, over all of them: not what fits on one device."""

    name: str
    total: str
    available: str


@dataclass(frozen=True, slots=True)
class Parts:
    """What is left of all pools whose status is fresh."""

    partitions: tuple[Partitions, ...] = ()
    shared: tuple[SharedCapacity, ...] = ()


NO_PARTS = Parts()


@dataclass(slots=True)
class PartsSum:
    """The parts of some pools so far."""

    seen_live: bool
    """Whether the live view is what counts."""
    _partitions: dict[str, tuple[int, int]] = field(default_factory=dict)
    _shared: dict[str, tuple[int, int]] = field(default_factory=dict)
    _looked_at: int = 0

    def add(self, pools: Iterable[PoolState], world: World, now: float) -> Iterator[None]:
        """More pools, and a moment for others after each that took work; one that is not known says nothing."""
        for pool in pools:
            if self.seen_live and pool.counting:
                self._looked_at += len(pool.counting)
                if self._looked_at <= PARTITIONS_AT_MOST:
                    yield from self._add_live(pool)
                    yield
            status = world.snapshot.statuses.get(pool.driver)
            counted = status.pools.get(pool.name) if status is not None else None
            if counted is None or (counted.partition_summary is None and counted.shareable_summary is None):
                continue
            if counted.generation == pool.generation and fresh(status, now, world.policy.max_age_seconds):
                self._add_counted(counted)

    def parts(self, places: Places) -> Parts:
        """All together."""
        partitions = self._partitions if self._looked_at <= PARTITIONS_AT_MOST else {}
        return Parts(
            partitions=tuple(
                Partitions(name, *numbers, private=places.named_in(name))
                for name, numbers in sorted(partitions.items())
            ),
            shared=tuple(
                SharedCapacity(name, _text(total), _text(available))
                for name, (total, available) in sorted(self._shared.items())
            ),
        )

    def _add_live(self, pool: PoolState) -> Iterator[None]:
        """Of each type as many as fit one after the other, as a pool status counts them; of one moment."""
        left_now = pool.counters.copy()
        now = [(device, not device.holders and not device.taints) for device in pool.counting]
        by_type: dict[str, list[Consumption | None]] = {}
        for number, (device, free) in enumerate(now, 1):
            if name := _type(device):
                by_type.setdefault(name, []).append(device.consumes if free else None)
            if number % PARTITIONS_AT_ONCE == 0:
                yield
        for name, partitions in by_type.items():
            left, fits = left_now.copy(), 0
            for number, consumed in enumerate(partitions, 1):
                if consumed is not None and left.fit(consumed):
                    left.take(consumed)
                    fits += 1
                if number % PARTITIONS_AT_ONCE == 0:
                    yield
            _sum_up(self._partitions, name, len(partitions), fits)

    def _add_counted(self, counted: PoolStatus) -> None:
        for entry in () if self.seen_live else counted.partition_summary or ():
            if entry.total is not None and entry.allocatable is not None:
                _sum_up(self._partitions, entry.type, entry.total, entry.allocatable)
        summary = counted.shareable_summary
        for capacity in (summary.capacity if summary is not None else None) or ():
            try:
                total, available = parse_quantity(capacity.total or ""), parse_quantity(capacity.available or "")
            except ValueError:
                continue
            _sum_up(self._shared, capacity.name, total.nano, available.nano)


def _sum_up(sums: dict[str, tuple[int, int]], name: str, total: int, left: int) -> None:
    if name in sums or len(sums) < KINDS_AT_MOST:
        before = sums.get(name, (0, 0))
        sums[name] = (before[0] + total, before[1] + left)


def _type(device: DeviceState) -> str:
    part = device.part
    if part.partition_types is None:
        part.partition_types = _types(part)
    return part.partition_types[device.index]


def _types(part: SliceState) -> tuple[str, ...]:
    """What the devices of a slice are as partitions; empty for one that does not say."""
    return tuple(_type_of(shape.attributes) for shape in part.shapes())


def _type_of(written: bytes) -> str:
    values = {name.rpartition("/")[2]: value for name, value in entries(written).items()}
    texts = (value.get("string") for name in _TYPES if isinstance(value := values.get(name), dict))
    return next((text for text in texts if isinstance(text, str)), "")


def _text(nano: int) -> str:
    return str(Quantity(nano, integer=False))
