"""Resource pools as the scheduler reads them: which slices of a pool count, and whether the pool counts at all.

A pool is what its slices of the newest generation say. The scheduler refuses pools that contradict themselves and pools
that miss slices; both are states here, never "no devices".
"""

import enum
import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Protocol

import msgspec
from msgspec import UnsetType

from app.dra.counters import NO_COUNTERS, Consumption, Counters, consumption
from app.dra.objects import CounterSet, ResourceSlice, Taint
from app.dra.selector import Shape
from app.dra.shapes import packed, unpacked

INCOMPLETE_SETTLES_SECONDS = 300.0
"""An incomplete pool that stays unchanged this long is no roll-out: the scheduler never allocates from it."""

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
"""Taint effects that keep a device from pods that do not tolerate them; `None` is no taint (seen on 1.37.2)."""

DeviceId = tuple[str, str, str]
"""Driver, pool, device: how an allocation names a device."""

Mark = tuple[str, str]
"""Which nodes a slice is for: ("node", name), ("all", ""), ("selector", its JSON), ("device", a name like no other)."""


class Condition(enum.Enum):
    """Whether the devices of a pool can be allocated."""

    USABLE = enum.auto()
    INCOMPLETE = enum.auto()
    """Fewer slices than declared: perhaps a roll-out, more devices may appear any moment."""
    UNUSABLE = enum.auto()
    """Incomplete for good: the scheduler never allocates from it."""
    INVALID = enum.auto()
    """Contradicts itself; what the scheduler makes of it is not ours to guess."""


class Count(Protocol):
    """Something that counts devices and has to hear when one changes (`tally.Tally`)."""

    def update(self, device: "DeviceState", /) -> None:
        """The device was taken, freed or tainted."""

    def drop(self, device: "DeviceState", /) -> None:
        """The device does not count any more."""


@dataclass(slots=True, eq=False)
class DeviceState:
    """One published device and what is known of it now.

    A large cluster has 100,000 of them: each takes 145 bytes, and what it has in common with others is kept there.
    """

    name: str
    pool: "PoolState"
    part: "SliceState"
    index: int
    """Its place in the slice."""
    node: str
    """The one node that can use it; empty: not tied to one."""
    shareable: bool
    """`allowMultipleAllocations`."""
    consumes: Consumption
    slice_taints: tuple[Taint, ...]
    memory: str
    taints: tuple[Taint, ...] = ()
    """Slice taints and rule taints with a blocking effect."""
    holders: int = 0
    exhausted: bool = False
    """Its shared counters no longer fit."""
    tallies: tuple[Count, ...] = ()
    """The counts it is part of, so that a change of the device costs only those."""

    @property
    def id(self) -> DeviceId:
        """How an allocation names it."""
        return (self.pool.driver, self.pool.name, self.name)

    @property
    def since(self) -> float:
        """Since when it is published like this."""
        return self.part.since

    @property
    def shape(self) -> Shape:
        """What a selector can see of it."""
        return self.part.shapes()[self.index]

    @property
    def taken(self) -> bool:
        """Held by a claim, or without counters to be allocated from."""
        return self.holders > 0 or self.exhausted


@dataclass(slots=True, eq=False)
class SliceState:
    """One ResourceSlice, reduced to what judging needs."""

    name: str
    version: str
    """`metadata.resourceVersion`; empty in files."""
    generation: int
    declared: int
    reach: tuple[Mark, ...]
    """Of a device that selects nodes by itself only the node's name is read; otherwise its mark is like no other."""
    counters: tuple[CounterSet, ...]
    since: float
    driver: str
    packed: bytes
    devices: tuple[DeviceState, ...] = ()
    partition_types: tuple[str, ...] | None = None
    """What is remembered of their types as partitions (`parts`)."""

    def shapes(self) -> tuple[Shape, ...]:
        """What selectors can see of its devices."""
        return unpacked(self.packed, self.driver)


@dataclass(slots=True, eq=False)
class PoolState:
    """One pool: its slices, and the devices that count."""

    driver: str
    name: str
    slices: Mapping[str, SliceState] = field(default_factory=dict)
    active: Mapping[str, SliceState] = field(default_factory=dict)
    """Slices whose devices count now; like `slices` never changed, but replaced."""
    by_name: dict[str, DeviceState] = field(default_factory=dict)
    """The devices that count."""
    condition: Condition = Condition.USABLE
    generation: int = 0
    since: float = 0.0
    """Since when its slices are as they are."""
    counters: Counters = NO_COUNTERS
    counting: tuple[DeviceState, ...] = ()
    """Active devices that consume shared counters."""
    plain: bool = True
    """No active device is shareable or consumes counters: counts of a pool status mean what they say."""
    last_taken: float = 0.0
    """When a device of it was last taken, as far as known."""

    @property
    def size(self) -> int:
        """Number of devices that count."""
        return len(self.by_name)

    def devices(self) -> Collection[DeviceState]:
        """The devices that count."""
        return self.by_name.values()

    def published(self) -> Iterable[DeviceState]:
        """All devices of all slices, whatever generation."""
        return (device for part in self.slices.values() for device in part.devices)

    def node(self) -> str:
        """The node all slices are tied to; empty when there is no such one."""
        marks = {mark for part in self.slices.values() for mark in part.reach}
        return next(iter(marks))[1] if len(marks) == 1 and next(iter(marks))[0] == "node" else ""

    def publish(self, part: SliceState) -> None:
        """A slice is new or changed; nothing follows from that before it is judged."""
        self.slices = {**self.slices, part.name: part}

    def withdraw(self, name: str) -> None:
        """A slice is gone."""
        self.slices = {known: part for known, part in self.slices.items() if known != name}

    def judge(self, now: float) -> tuple[list[DeviceState], list[DeviceState]]:
        """Find out whether the pool counts: the devices that count no more, and those that do from now on."""
        self.condition = condition(self, now)
        newest = self.newest()
        self.generation = max((part.generation for part in newest.values()), default=0)
        before, self.active = self.active, newest if self.condition is Condition.USABLE else {}
        gone = [d for name, part in before.items() if self.active.get(name) is not part for d in part.devices]
        new = [d for name, part in self.active.items() if before.get(name) is not part for d in part.devices]
        if gone or new:
            self.by_name = {device.name: device for part in self.active.values() for device in part.devices}
        for name, part in before.items():
            if self.slices.get(name) is not part:
                part.devices = ()  # it knows them and they know it: the collector would have to find that out
        return gone, new

    def recount(self) -> None:
        """Its devices are others: what holds for the pool as a whole follows."""
        self.counting = tuple(device for device in self.devices() if device.consumes)
        self.plain = not self.counting and not any(device.shareable for device in self.devices())
        sets = [entry for part in self.active.values() for entry in part.counters]
        self.counters = Counters.of(sets) if sets else NO_COUNTERS
        for device in self.counting:
            if device.holders:
                self.counters.take(device.consumes)

    def newest(self) -> Mapping[str, SliceState]:
        """Slices of the newest generation."""
        generations = {part.generation for part in self.slices.values()}
        if len(generations) <= 1:
            return self.slices
        return {name: part for name, part in self.slices.items() if part.generation == max(generations)}


def condition(pool: PoolState, now: float) -> Condition:
    """Whether the pool's devices can be allocated (allocator: `GatherPools`; live runs on 1.37.2)."""
    newest = pool.newest()
    declared = {part.declared for part in newest.values()}
    names = [device.name for part in newest.values() for device in part.devices]
    sets = [counter_set.name for part in newest.values() for counter_set in part.counters]
    older = [part for name, part in pool.slices.items() if name not in newest]
    repeated = len(names) > len(set(names)) or len(sets) > len(set(sets))
    if len(declared) > 1 or repeated or not _covered(older, newest.values()):
        return Condition.INVALID
    missing = next(iter(declared), 0) - len(newest)
    if missing < 0:
        return Condition.INVALID
    if missing == 0:
        return Condition.USABLE
    settled = settles(pool) and now - pool.since >= INCOMPLETE_SETTLES_SECONDS
    return Condition.UNUSABLE if settled else Condition.INCOMPLETE


def settles(pool: PoolState) -> bool:
    """Whether an incomplete pool becomes unusable if nothing happens: it has one generation, on one node."""
    return bool(pool.node()) and len(pool.newest()) == len(pool.slices)


def _covered(older: Iterable[SliceState], newest: Iterable[SliceState]) -> bool:
    """Whether every node an older slice is for sees the newest generation; elsewhere the scheduler uses the old one."""
    marks = {mark for part in newest for mark in part.reach}
    return ("all", "") in marks or all(marks.issuperset(part.reach) for part in older)


def slice_state(obj: ResourceSlice, pool: PoolState, since: float) -> SliceState:
    """A slice as it was published."""
    spec = obj.spec
    devices = spec.devices or ()
    written = [(bytes(d.attributes), bytes(d.capacity), bool(d.allow_multiple_allocations)) for d in devices]
    part = SliceState(
        name=intern(obj.metadata.name),
        version=obj.metadata.resource_version,
        generation=spec.pool.generation,
        declared=spec.pool.resource_slice_count,
        reach=_reach(obj),
        counters=tuple(spec.shared_counters or ()),
        since=since,
        driver=pool.driver,
        packed=packed(written),
    )
    node = intern(spec.node_name or "")
    part.devices = tuple(
        [
            DeviceState(
                name=intern(device.name),
                pool=pool,
                part=part,
                index=index,
                node=node or intern(device.node_name or ""),
                shareable=shareable,
                consumes=consumption(device.consumes_counters),
                slice_taints=tuple([t for t in device.taints or () if t.effect in BLOCKING_EFFECTS]),
                memory=memory_of(capacity),
            )
            for index, (device, (_, capacity, shareable)) in enumerate(zip(devices, written, strict=True))
        ]
    )
    return part


def _reach(obj: ResourceSlice) -> tuple[Mark, ...]:
    spec = obj.spec
    if spec.per_device_node_selection:
        slice_name = obj.metadata.name
        marks = (
            ("node", intern(d.node_name)) if d.node_name else ("device", f"{slice_name}/{d.name}")
            for d in spec.devices or ()
        )
        return tuple(dict.fromkeys(marks))
    if spec.node_name:
        return (("node", intern(spec.node_name)),)
    if spec.all_nodes:
        return (("all", ""),)
    written = b"" if isinstance(spec.node_selector, UnsetType) else bytes(spec.node_selector)
    return (("selector", written.decode()),)


class _Memory(msgspec.Struct, frozen=True):
    value: str | int = ""


class _MemoryCapacity(msgspec.Struct, frozen=True):
    memory: _Memory = _Memory()


_memory_decoder = msgspec.json.Decoder(_MemoryCapacity)


@functools.lru_cache(maxsize=1024)
def memory_of(capacity: bytes) -> str:
    """The `memory` capacity as the slice writes it, for sentences; empty when there is none. Most devices are alike."""
    try:
        return str(_memory_decoder.decode(capacity).memory.value) if capacity else ""
    except (ValueError, RecursionError):
        return ""
