"""Which devices a CEL selector of a DeviceClass or a claim matches, as the allocator of Kubernetes 1.37 would say.

With `selector_library.py` the only home of the CEL engine. A selector is evaluated once per distinct *projection* of a
device, the attributes and capacities that it can see, because every real device has a unique `uuid` or `pciBusID`.

Certainty before coverage: YES and NO only where cel-go with the Kubernetes libraries is sure to give that bool.
A run-time error ("no such key") makes the allocator give up; it is not "no match" but UNKNOWN, like every doubt.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple
from weakref import ref

import msgspec
from cel_expr_python import cel  # type: ignore[import-untyped] # has stubs and, up to 0.1.3, no py.typed

from app.dra.quantity import parse_quantity
from app.dra.selector_kinds import Kind, is_trusted, mixes_up_variables
from app.dra.selector_library import environment, is_usual, quantity_carrier, semver_carrier
from app.dra.selector_reads import Read, device_map, domain_maps, fails_without_fields, is_bounded, reads, steps
from app.dra.selector_syntax import Form, Node, parse, tokens

# Distinct expressions of a cluster, and distinct projections that all of them together have answered for: far more than
# seen. An answer takes about 0.6 KB (measured), so that tenants who write selectors at will cannot fill the memory.
_SELECTORS = 1024
_ANSWERS = 100_000
_SHAPES = 64  # at least those of one slice, which all selectors look at in turn
_VIEWS = 64  # of one device: many selectors in a row look at it, and read the same; answers then share it (measured)
_WRITTEN = 4096  # names by which entries may be written, of all selectors and drivers

EVALUATION = 20
"""Looks that an answer takes which is not remembered (measured: 60 to 100 us; a look that is takes 3 to 5)."""

_STEPS_OF_A_LOOK = 500  # about those of a usual selector
_CHARACTERS_OF_A_LOOK = 5

_INT64 = 2**63
# A map of domains in which every domain the expression can name is present, if only empty.
_TWINS = {"attributes": "attributes_with_absent", "capacity": "capacity_with_absent"}


class Match(Enum):
    """Whether a device matches."""

    NO = auto()
    YES = auto()
    UNKNOWN = auto()

    def __bool__(self) -> bool:
        raise TypeError("a match has three values; compare it")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a selector can see of a device, as JSON of the ResourceSlice; many devices share one."""

    driver: str
    attributes: bytes
    """`.devices[].attributes`, empty when absent."""
    capacity: bytes
    """`.devices[].capacity`, empty when absent."""
    allow_multiple: bool


class _Attribute(msgspec.Struct, forbid_unknown_fields=True):
    """resource.k8s.io/v1 DeviceAttribute; a kind of value not listed here is unknown."""

    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: list[int] | None = None
    bools: list[bool] | None = None
    strings: list[str] | None = None
    versions: list[str] | None = None


class _Capacity(msgspec.Struct):
    """resource.k8s.io/v1 DeviceCapacity, as far as a selector sees it."""

    value: str | int | float


_fields = functools.lru_cache(maxsize=_SHAPES)(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode)
_attribute = msgspec.json.Decoder(_Attribute)
_capacity = msgspec.json.Decoder(_Capacity)


class _View(NamedTuple):
    """What a selector sees of a shape; devices of one view are the same to it."""

    driver: str
    allow_multiple: bool
    domains: frozenset[tuple[str, str]]
    entries: tuple[tuple[Read, bytes], ...]


_NO_DOMAINS: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class _Program:
    """A compiled expression and what its syntax tells."""

    expression: cel.Expression
    tree: Node
    names: frozenset[str]
    """Every string and name in it: no other domain can be asked for."""
    reads: tuple[Read, ...] | None
    """The entries it can see; None for all of them."""
    sees_domains: bool
    """Whether it can tell an absent domain from an empty one."""
    excludes_drivers: bool
    """Whether an evaluation with nothing but a driver proves anything."""
    steps: int


class Selector:
    """One CEL expression, compiled when it is first needed. Immutable to its users; it remembers its answers."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._excluded: dict[str, bool] = {}  # the drivers of a cluster are few

    @functools.cached_property
    def program(self) -> _Program | None:
        """What it is compiled to; None: nothing is known of its answers."""
        return _compiled(self.text)

    @property
    def compilation(self) -> int:
        """What there is to be done before the first look, in looks (below); about 1 us per character (measured)."""
        return 0 if "program" in vars(self) else len(self.text) // _CHARACTERS_OF_A_LOOK

    @property
    def cost(self) -> int:
        """What a look at a device costs at most: 1 for a usual selector (about 5 us, measured). Compiles it."""
        return 1 if self.program is None else 1 + self.program.steps // _STEPS_OF_A_LOOK

    def match(self, shape: Shape) -> Match:
        """Whether a device of that shape matches."""
        program = self.program
        if program is None:
            return Match.UNKNOWN
        try:
            return _answer(ref(self), _view(program.reads, program.sees_domains, shape))
        except (ValueError, RecursionError):
            return Match.UNKNOWN

    def excludes_driver(self, driver: str) -> bool:
        """Whether no device of that driver can match, whatever its attributes and capacity."""
        if self.program is None or not self.program.excludes_drivers:
            return False
        excluded = self._excluded.get(driver)
        if excluded is None:
            excluded = self._excluded[driver] = _run(self.program, {"driver": driver}) is Match.NO
        return excluded


def evaluations() -> int:
    """How many answers were not remembered so far, and took `EVALUATION` looks each."""
    return _answer.cache_info().misses


@functools.lru_cache(maxsize=_ANSWERS)
def _answer(asked: ref[Selector], view: _View) -> Match:
    """One memory for all selectors, by reference, so that it keeps none of them alive."""
    each = asked()
    return Match.UNKNOWN if each is None or each.program is None else _evaluated(each.program, view)


@functools.lru_cache(maxsize=_SELECTORS)
def selector(text: str) -> Selector:
    """The selector of an expression. What cannot be compiled is UNKNOWN for every device and excludes no driver."""
    return Selector(text)


def match_all(selectors: Iterable[Selector], shape: Shape) -> Match:
    """Whether a device matches all selectors. One certain NO decides, wherever it stands."""
    answer = Match.YES
    for each in selectors:
        match each.match(shape):
            case Match.NO:
                return Match.NO
            case Match.UNKNOWN:
                answer = Match.UNKNOWN
            case Match.YES:
                pass
    return answer


def _compiled(text: str) -> _Program | None:
    try:
        source = tokens(text)
        tree = parse(source)
        if not is_bounded(tree) or mixes_up_variables(tree):
            return None
        words = [token.text for token in source]
        taken = list(domain_maps(tree))
        for node in taken:
            words[node.token] = _TWINS[node.text]
        # The conditional makes an error of every result that is no bool, so that only bools leave the engine: reading
        # null results aborts the process on Python 3.11 (cel-expr-python 0.1.3).
        expression = environment().compile(f"({' '.join(words)}) ? true : false")
        nodes = list(tree.walk())
        seen = reads(tree)
        return _Program(
            expression=expression,
            tree=tree,
            names=frozenset(node.text for node in nodes if node.form in (Form.STRING, Form.FIELD, Form.OPTIONAL_FIELD)),
            reads=None if seen is None else tuple(sorted(seen)),
            sees_domains=seen is None or sum(device_map(node) is not None for node in nodes) > len(taken),
            excludes_drivers=fails_without_fields(tree) and is_trusted(tree, {}),
            steps=steps(tree),
        )
    except Exception:  # noqa: BLE001 - no selector may stop us; one that cannot be read is unknown
        return None


@functools.lru_cache(maxsize=_VIEWS)
def _view(wanted: tuple[Read, ...] | None, sees_domains: bool, shape: Shape) -> _View:  # noqa: FBT001 - as `_Program` has it
    """What a program that reads this sees of the shape; an error for what is no ResourceSlice."""
    if wanted == () and not sees_domains:
        return _View(shape.driver, shape.allow_multiple, _NO_DOMAINS, ())
    fields: dict[str, dict[str, msgspec.Raw]] = {
        "attributes": _fields(shape.attributes) if shape.attributes else {},
        "capacity": _fields(shape.capacity) if shape.capacity else {},
    }
    domains = _NO_DOMAINS
    if sees_domains:
        domains = frozenset(
            (field, _qualified(name, shape.driver)[0]) for field, raws in fields.items() for name in raws
        )
    if wanted is None:
        entries = [
            (Read(field, *_qualified(name, shape.driver)), raw)
            for field, raws in fields.items()
            for name, raw in raws.items()
        ]
    else:
        entries = [
            (read, raw)
            for read in wanted
            for name in _written(read, shape.driver)
            if (raw := fields[read.field].get(name)) is not None
        ]
    if len(entries) > 1 and len(dict(entries)) < len(entries):
        raise ValueError("an attribute with and without the driver as its domain: Go takes either")
    return _View(shape.driver, shape.allow_multiple, domains, tuple([(read, bytes(raw)) for read, raw in entries]))


@functools.lru_cache(maxsize=_WRITTEN)
def _written(read: Read, driver: str) -> tuple[str, ...]:
    """The names by which a slice of that driver may write an entry."""
    names = f"{read.domain}/{read.name}", read.name
    return tuple(name for name in names if _qualified(name, driver) == (read.domain, read.name))


def _qualified(name: str, driver: str) -> tuple[str, str]:
    """Domain and name: an unqualified name is in the domain of the driver."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _evaluated(program: _Program, view: _View) -> Match:
    maps: dict[str, dict[str, dict[str, Any]]] = {"attributes": {}, "capacity": {}}
    contents: dict[Read, Kind] = {}
    for field, domain in view.domains:
        maps[field][domain] = {}
    try:
        for read, raw in view.entries:
            contents[read], value = _attribute_value(raw) if read.field == "attributes" else _capacity_value(raw)
            maps[read.field].setdefault(read.domain, {})[read.name] = value
    except (ValueError, msgspec.DecodeError):
        return Match.UNKNOWN
    if not is_trusted(program.tree, contents):
        return Match.UNKNOWN
    absent: dict[str, dict[str, Any]] = {domain: {} for domain in (*program.names, view.driver)}
    return _run(
        program,
        {
            "driver": view.driver,
            "allowMultipleAllocations": view.allow_multiple,
            **maps,
            **{twin: absent | maps[field] for field, twin in _TWINS.items()},
        },
    )


def _attribute_value(raw: bytes) -> tuple[Kind, Any]:
    attribute = _attribute.decode(raw)
    (value,) = (each for name in attribute.__struct_fields__ if (each := getattr(attribute, name)) is not None)
    for each in value if isinstance(value, list) else (value,):
        if isinstance(each, str) and "\0" in each:
            raise ValueError("the engine cuts strings at NUL")
        if isinstance(each, int) and not -_INT64 <= each < _INT64:
            raise ValueError("not an int64")
    if attribute.version is not None:
        return Kind.SEMVER, semver_carrier(attribute.version)
    if attribute.versions is not None:
        return Kind.SEMVERS, [semver_carrier(version) for version in attribute.versions]
    return Kind.PLAIN, value


def _capacity_value(raw: bytes) -> tuple[Kind, bytes]:
    quantity = parse_quantity(_capacity.decode(raw).value)
    return Kind.QUANTITY if is_usual(quantity) else Kind.UNUSUAL_QUANTITY, quantity_carrier(quantity)


def _run(program: _Program, device: dict[str, Any]) -> Match:
    if any("\0" in name for name in (device["driver"], *_keys(device))):
        return Match.UNKNOWN
    try:
        result = program.expression.eval(data={"device": device})
        if result.type() != cel.Type.BOOL:
            return Match.UNKNOWN
        return Match.YES if result.value() else Match.NO
    except Exception:  # noqa: BLE001 - whatever goes wrong in foreign code is a doubt, and a doubt is UNKNOWN
        return Match.UNKNOWN


def _keys(value: Any) -> Iterable[str]:  # noqa: ANN401 - a tree of maps
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield key
        yield from _keys(inner)
