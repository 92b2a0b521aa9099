"""How unequal the devices behind a name are: their attributes and capacities, and how many devices have which value.

Every device has to be looked at for it, so what was found is kept with the tally until other devices match.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter

import msgspec

from app.dra.pools import DeviceState
from app.dra.quantity import parse_quantity
from app.dra.tally import Tally

VALUES_AT_MOST = 12
"""A spread with more values is a list of names, not a difference in kind."""

DEVICES_AT_ONCE = 50
"""Between two moments in which others may work: about 0.3 ms (measured)."""

KEPT_SECONDS = 60.0
"""Devices may come and go all the time, and what kind they are is worth no second of work a second: as long as this
what was found of a large class is not found anew."""

LARGE = 1000
"""Devices that are not looked at anew whenever one of them changes: 6 ms (measured)."""

_STANDARD = "resource.kubernetes.io/"
_PLACES = frozenset({"index", "minor", "numa", "numaNode", "parentUUID", "parentIndex", "pciAddress", "pcieBusID"})
"""Attributes that tell where a device is; devices that differ in nothing else are alike."""

_Values = dict[str, Counter[str]]
"""How often each value occurs, by the full name of an attribute or a capacity."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One attribute or capacity of the devices, and how many devices have which value."""

    attribute: str
    values: tuple[tuple[str, int], ...]
    """Of a capacity the smallest first."""
    capacity: bool = False
    names_places: bool = False
    """A value is what a pool or node is called; names may be hidden."""

    @property
    def differs(self) -> bool:
        """Whether it makes one device another thing than the next."""
        domain, _, name = self.attribute.rpartition("/")
        place = not self.capacity and (f"{domain}/" == _STANDARD or name in _PLACES or self.names_places)
        return len(self.values) > 1 and not place


@dataclass(frozen=True, slots=True)
class _Found:
    version: int
    at: float
    spreads: tuple[Spread, ...]


def spreads(tally: Tally, now: float) -> Generator[None, None, tuple[Spread, ...]]:
    """The spreads of all matching devices, and on the way moments in which others may work."""
    known = tally.spreads
    if isinstance(known, _Found):
        young = tally.total > LARGE and 0 <= now - known.at < KEPT_SECONDS
        if known.version == tally.version or young:
            return known.spreads
    version = tally.version
    attributes: _Values = {}
    capacities: _Values = {}
    places: set[str] = set()
    for pool in list(tally.pools):
        yield
        places.add(pool.name)
        for number, device in enumerate(pool.devices(), 1):
            if number % DEVICES_AT_ONCE == 0:
                yield
            if tally.matches(device):
                _count(attributes, device, device.shape.attributes)
                _count(capacities, device, device.shape.capacity)
                places.add(device.node)
    found = tuple(_spreads(attributes, capacities, {each for name in places - {""} for each in _forms(name)}))
    tally.spreads = _Found(version, now, found)
    return found


def _spreads(attributes: _Values, capacities: _Values, places: set[str]) -> Iterator[Spread]:
    """Attributes and capacities that group the devices; an identifier, of which every device has its own, does not.

    Of a single device nobody can tell one from the other, so its attributes are not shown: names may be hidden.
    """
    of_attributes = [
        Spread(name, tuple(sorted(values.items())), names_places=not places.isdisjoint(_all_forms(values)))
        for name, values in attributes.items()
        if len(values) < values.total() and len(values) <= VALUES_AT_MOST
    ]
    of_capacities = [
        Spread(name, tuple(sorted(values.items(), key=_amount)), capacity=True)
        for name, values in capacities.items()
        if len(values) <= VALUES_AT_MOST
    ]
    yield from sorted((*of_attributes, *of_capacities), key=attrgetter("attribute"))


def _amount(value: tuple[str, int]) -> tuple[int, str]:
    try:
        return parse_quantity(value[0]).nano, value[0]
    except ValueError:
        return 0, value[0]


def _all_forms(values: Iterable[str]) -> Iterator[str]:
    return (form for value in values for form in _forms(value))


def _forms(name: str) -> tuple[str, str]:
    """What a node may be called: its name, and the first part of it."""
    return name, name.partition(".")[0]


def _count(values: _Values, device: DeviceState, written: bytes) -> None:
    """Count the values of one device: its attributes or its capacity, as in its slice; too many are counted no more."""
    entries = msgspec.json.decode(written) if written else None
    for name, kinds in entries.items() if isinstance(entries, dict) else ():
        counts = values.setdefault(name if "/" in name else f"{device.pool.driver}/{name}", Counter())
        if len(counts) <= VALUES_AT_MOST:
            value = kinds.get("value", next(iter(kinds.values()), "")) if isinstance(kinds, dict) else kinds
            counts[value if isinstance(value, str) else str(value).lower()] += 1
