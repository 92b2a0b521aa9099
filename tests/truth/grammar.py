"""A grammar of CEL selectors, and of devices to try them on, as hypothesis strategies.

Most of what it makes is typed as people write it; a part mixes types on purpose, asks for attributes no device has, and
for domains that do not exist.
"""

import json
from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

from tests.controlplane.client import Json

DRIVER, OTHER = "gpu.example.com", "nic.example.com"
_ABSENT = "absent.example.com"

Text = st.SearchStrategy[str]

# --- Devices ----------------------------------------------------------------------------------------------------------

_WORDS = ("", "a", "a100", "A100-80GB", "h100", "net-a", "1.0.0", "10.0.0.1", "äöü")
_NUMBERS = (*range(-2, 10), 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
_VERSIONS = ("0.0.0", "1.0.0", "1.2.3", "2.0.0-rc.1", "2.0.0", "10.0.0", "2.0.0+build")
_AMOUNTS = ("0", "1", "16", "80Gi", "40960Mi", "1G", "0.5", "1500m", "2k")

_KINDS: dict[str, tuple[str, Sequence[object]]] = {
    "model": ("string", _WORDS),
    "index": ("int", _NUMBERS),
    "ecc": ("bool", (True, False)),
    "version": ("version", _VERSIONS),
    "resource.kubernetes.io/pcieRoot": ("string", _WORDS),
    "networks": ("strings", _WORDS),
    "lanes": ("ints", _NUMBERS),
    "firmwares": ("versions", _VERSIONS),
}
"""The attributes that selectors ask for: which kind of value each has, and which values."""


def device(number: int) -> Json:
    """The device of that number: most attributes are of the kind that selectors expect, some are missing."""
    chance = Random(number)  # noqa: S311 - repeatable
    attributes = {name: _value(chance, *_KINDS[name]) for name in _KINDS if chance.random() < 0.8}
    if chance.random() < 0.3:
        attributes[chance.choice(["model", "index", "odd"])] = _value(chance, *chance.choice([*_KINDS.values()]))
    return {
        "driver": chance.choice([DRIVER, DRIVER, OTHER]),
        "attributes": attributes,
        "capacity": {name: {"value": chance.choice(_AMOUNTS)} for name in ("memory", "cores") if chance.random() < 0.8},
        "allowMultipleAllocations": chance.random() < 0.3,
    }


def _value(chance: Random, kind: str, values: Sequence[object]) -> Json:
    return {kind: chance.choices(values, k=chance.randint(1, 3)) if kind.endswith("s") else chance.choice(values)}


devices = st.integers(0, 2**32).map(device)  # drawn one by one they would take most of the time

# --- Selectors --------------------------------------------------------------------------------------------------------

_domains = st.sampled_from([*[DRIVER] * 6, OTHER, _ABSENT])


def _attribute(name: str) -> Text:
    """One attribute by any way of writing it."""
    domain, slash, plain = name.rpartition("/")
    ways = ['device.attributes["{}"].{}', 'device.attributes["{}"]["{}"]', "device.attributes['{}'].{}"]
    return st.builds(str.format, st.sampled_from(ways), st.just(domain) if slash else _domains, st.just(plain))


def _optional(name: str, default: Text) -> Text:
    ways = ['device.attributes["{}"].?{}.orValue({})', 'device.attributes[?"{}"].?{}.orValue({})']
    return st.builds(str.format, st.sampled_from(ways), _domains, st.just(name), default)


_string_literals = st.sampled_from(_WORDS).map(lambda word: json.dumps(word, ensure_ascii=False))
_strings: Text = st.one_of(
    _attribute("model"),
    _attribute("resource.kubernetes.io/pcieRoot"),
    _string_literals,
    st.just("device.driver"),
    st.builds("{}.lowerAscii()".format, _attribute("model")),
    _optional("model", _string_literals),
)
_ints: Text = st.one_of(
    _attribute("index"),
    st.integers(-2, 9).map(str),
    st.builds("size({})".format, _attribute("networks")),
    st.builds("{}.size()".format, _attribute("model")),
    st.builds("{} % 2".format, _attribute("index")),
    _optional("index", st.just("0")),
    st.builds("{}.major()".format, _attribute("version")),
)
_quantity_literals = st.sampled_from(_AMOUNTS).map('quantity("{}")'.format)
_quantities: Text = st.one_of(
    st.builds('device.capacity["{}"].{}'.format, _domains, st.sampled_from(["memory", "cores"])),
    _quantity_literals,
)
_version_literals = st.one_of(st.sampled_from(_VERSIONS).map('semver("{}")'.format), st.just('semver("v1.2", true)'))
_semvers: Text = st.one_of(_attribute("version"), _version_literals)
_lists: Text = st.one_of(
    _attribute("networks"),
    st.lists(_string_literals, min_size=1, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
)
_compared = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
_equal = st.sampled_from(["==", "!="])
_ordered = st.sampled_from(["isGreaterThan", "isLessThan"])
_tests = st.sampled_from(["exists", "all", "exists_one"])

_bound: Text = st.one_of(
    st.builds("cel.bind(v, {}, v == {} || v in {})".format, _attribute("model"), _string_literals, _lists),
    st.builds(
        'cel.bind(d, device.attributes["{}"], d.{} == {})'.format, _domains, st.sampled_from(["model", "no"]), _strings
    ),
    st.builds('device.attributes["{}"].?model.optMap(x, x == {}).orValue(true)'.format, _domains, _string_literals),
)
_typed: Text = st.one_of(
    st.builds("device.driver {} {}".format, _equal, st.sampled_from([f'"{DRIVER}"', f'"{OTHER}"'])),
    st.builds("{} {} {}".format, _strings, _compared, _strings),
    st.builds("{} {} {}".format, _ints, _compared, _ints),
    _attribute("ecc"),
    _optional("ecc", st.just("false")),
    st.builds("{}.{}({})".format, _quantities, _ordered, _quantities),
    st.builds("{}.compareTo({}) {} 0".format, _quantities, _quantities, _compared),
    st.builds("{} {} {}".format, _quantities, _equal, _quantities),
    st.builds("{}.isInteger()".format, _quantities),
    st.builds("{}.{}({})".format, _semvers, _ordered, _semvers),
    st.builds("{}.compareTo({}) {} 0".format, _semvers, _semvers, _compared),
    st.builds("{} {} {}".format, _semvers, _equal, _semvers),
    st.builds("{}.matches({})".format, _strings, st.sampled_from(['"^a1"', '"[0-9]+"', '"(?i)a100.*"', '"^.$"'])),
    st.builds("{}.{}({})".format, _strings, st.sampled_from(["startsWith", "endsWith", "contains"]), _string_literals),
    st.builds("{} in {}".format, _strings, _lists),
    st.builds("{} in {}".format, _ints, _attribute("lanes")),
    st.builds("{}.{}(x, x {} {})".format, _lists, _tests, _equal, _string_literals),
    st.builds("{}.{}(x, x {} {})".format, _attribute("lanes"), _tests, _compared, st.integers(-2, 9).map(str)),
    st.builds("{}.{}(v, v.isLessThan({}))".format, _attribute("firmwares"), _tests, _version_literals),
    st.builds('device.attributes["{}"].exists(name, name == "model")'.format, _domains),
    st.builds("sets.intersects({}, {})".format, _lists, _lists),
    st.builds("{}.includes({})".format, _lists, _strings),
    st.builds('"{}" in device.attributes["{}"]'.format, st.sampled_from(["model", "version", "no"]), _domains),
    st.builds('"{}" in device.attributes'.format, _domains),
    st.builds('has(device.attributes["{}"].{})'.format, _domains, st.sampled_from(["model", "ecc", "no"])),
    st.builds('has(device.capacity["{}"].memory)'.format, _domains),
    _bound,
    st.builds('device.attributes["{}"].?{}.hasValue()'.format, _domains, st.sampled_from(["model", "no"])),
    st.just("device.allowMultipleAllocations"),
    st.builds("device.attributes[device.driver].model == {}".format, _string_literals),
)
_some_value = st.one_of(
    _strings, _ints, _lists, _attribute("odd"), _attribute("ecc"), st.sampled_from(["1.5", "true", "1u", "dyn(1)"])
)
_mixed: Text = st.one_of(
    st.builds("{} {} {}".format, _some_value, _equal, _some_value),
    st.builds("dyn({}) {} {}".format, _some_value, _compared, _some_value),
    st.builds("{} in {}".format, _some_value, _lists),
    st.builds("{} {} {}".format, _attribute("odd"), _equal, st.one_of(_semvers, _quantities)),
    _attribute("odd"),
    _attribute("model"),
)
_terms = st.one_of(*[_typed] * 9, _mixed)

_selectors: Text = st.recursive(
    _terms,
    lambda inner: st.one_of(
        st.builds("{} && {}".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds(f'device.driver == "{DRIVER}" && {{}}'.format, inner),
    ),
    max_leaves=4,
)
selectors: Text = st.deferred(lambda: _selectors)  # of which a report prints the name, not megabytes
