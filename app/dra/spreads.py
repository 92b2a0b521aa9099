"""How unequal the devices behind a name are: their attributes and capacities, and how many devices have which value.

Every device has to be looked at for it, so what was found is kept with the tally until other devices match.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter

import msgspec

from app.dra.places import Places
from app.dra.pools import DeviceState
from app.dra.quantity import parse_quantity
from app.dra.shapes import entries
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

WELL_KNOWN = ("productname", "model", "type", "profile", "memory")
"""What a reader wants to know first of a device, as drivers call it: text that says what it is."""

_STANDARD = "resource.kubernetes.io/"
_PLACES = frozenset({"index", "minor", "numa", "numaNode", "parentUUID", "parentIndex", "pciAddress", "pcieBusID"})
"""Attributes that tell where a device is; devices that differ in nothing else are alike."""


@dataclass(slots=True)
class _Values:
    """Of one attribute or capacity."""

    counts: Counter[str] = field(default_factory=Counter)
    """How often each value occurs."""
    private: bool = False


_ByName = dict[str, _Values]
"""By the full name of an attribute or a capacity."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One attribute or capacity of the devices, and how many devices have which value."""

    attribute: str
    values: tuple[tuple[str, int], ...]
    """Of a capacity the smallest first."""
    capacity: bool = False
    names_places: bool = False
    """A value is what a pool or node is called."""
    private: bool = False
    """Not for readers from whom names are hidden: text that may name anything, or does name a pool or node."""

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


def spreads(tally: Tally, places: Places, now: float) -> Generator[None, None, tuple[Spread, ...]]:
    """The spreads of all matching devices, and on the way moments in which others may work."""
    known = tally.spreads
    young = isinstance(known, _Found) and tally.total > LARGE and 0 <= now - known.at < KEPT_SECONDS
    if not isinstance(known, _Found) or not (young or known.version == tally.version):
        known = yield from _found(tally, now)
        tally.spreads = known if tally.complete else None  # of a part it says nothing of the rest
    return tuple(each if each.capacity else _placed(each, places) for each in known.spreads)


def _found(tally: Tally, now: float) -> Generator[None, None, _Found]:
    """As the devices are now, wherever they may be."""
    version = tally.version
    attributes: _ByName = {}
    capacities: _ByName = {}
    for pool in list(tally.pools):
        yield
        for number, device in enumerate(pool.devices(), 1):
            if number % DEVICES_AT_ONCE == 0:
                yield
            if tally.matches(device):
                _count(attributes, device, device.shape.attributes)
                _count(capacities, device, device.shape.capacity)
    return _Found(version, now, tuple(_spreads(attributes, capacities)))


def _placed(spread: Spread, places: Places) -> Spread:
    """What follows from what pools and nodes are called, and none of them need have a device of this kind."""
    values = [value for value, _ in spread.values]
    return replace(
        spread,
        names_places=any(map(places.is_one, values)),
        private=spread.private or any(map(places.named_in, values)),
    )


def _spreads(attributes: _ByName, capacities: _ByName) -> Iterator[Spread]:
    """Attributes and capacities that group the devices; an identifier, of which every device has its own, does not.

    Of a single device nobody can tell one from the other, so its attributes are not shown: names may be hidden.
    """
    of_attributes = [
        Spread(name, tuple(sorted(values.counts.items())), private=values.private)
        for name, values in attributes.items()
        if len(values.counts) < values.counts.total() and len(values.counts) <= VALUES_AT_MOST
    ]
    of_capacities = [
        Spread(name, tuple(sorted(values.counts.items(), key=_amount)), capacity=True)
        for name, values in capacities.items()
        if len(values.counts) <= VALUES_AT_MOST
    ]
    yield from sorted((*of_attributes, *of_capacities), key=attrgetter("attribute"))


def _amount(value: tuple[str, int]) -> tuple[int, str]:
    try:
        return parse_quantity(value[0]).nano, value[0]
    except ValueError:
        return 0, value[0]


def _count(known: _ByName, device: DeviceState, written: bytes) -> None:
    """Count the values of one device: its attributes or its capacity, as in its slice; too many are counted no more."""
    for name, kinds in entries(written).items():
        full_name = name if "/" in name else f"{device.pool.driver}/{name}"
        values = known.get(full_name)
        if values is None:
            values = known[full_name] = _Values()
        if len(values.counts) <= VALUES_AT_MOST:
            kind, value = _value(kinds)
            values.counts[_text(value)] += 1
            values.private |= _private(full_name, kind, value)


def _value(kinds: object) -> tuple[str, object]:
    """Of an attribute the kind and the value, as `{"string": "L4"}`; of a capacity how much it is."""
    if not isinstance(kinds, dict):
        return "", kinds
    return ("value", kinds["value"]) if "value" in kinds else next(iter(kinds.items()), ("", ""))


def _text(value: object) -> str:
    """A list as its entries, with commas; else as JSON has it."""
    listed = value if isinstance(value, list) else (value,)
    return ", ".join([each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in listed])


def _private(full_name: str, kind: str, value: object) -> bool:
    """Whether it is text, or a list, that may be anything."""
    if isinstance(value, str):
        return kind != "version" and full_name.rpartition("/")[2].lower() not in WELL_KNOWN
    return not isinstance(value, int)
