"""CEL selectors against the answers of cel-go (cel.json), and what must hold beyond them."""

import functools
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

from app.dra.selector import Match, Selector, Shape, _answer, _view, match_all, selector

_FILE = json.loads((Path(__file__).parent / "cel.json").read_text())
_GPU = "gpu.example.com"


def shape(driver: str = _GPU, *, allow_multiple: bool = False, capacity: object = None, **attributes: object) -> Shape:
    """A device; attributes by name, with `__` for the `/` of a qualified name and `_` for its dots."""
    names = {name.replace("_", ".").replace("..", "/"): value for name, value in attributes.items()}
    return Shape(driver, _json(names), _json(capacity or {}), allow_multiple)


def _json(value: object) -> bytes:
    return json.dumps(value).encode() if value else b""


def _named(device: dict[str, Any]) -> Shape:
    capacity = {name: {"value": value} for name, value in device.get("capacity", {}).items()}
    shareable = device.get("allowMultipleAllocations", False)
    return Shape(device["driver"], _json(device.get("attributes")), _json(capacity), shareable)


_DEVICES = {name: _named(device) for name, device in _FILE["devices"].items()}


# ── The rows of cel.json ─────────────────────────────────────────────────────────────────────────────────────────────


def _rows(*kinds: str) -> Iterator[tuple[str, Shape, Any]]:
    for case in _FILE["cases"]:
        (kind, value), *_ = case["expect"].items()
        if kind == "value" and case["expect"]["type"] != "bool":
            kind, value = "other value", case["expect"]
        if kind in kinds:
            yield case["expression"], _DEVICES[case["device"]], value


def _bool(match: Match) -> bool | None:
    return {Match.YES: True, Match.NO: False, Match.UNKNOWN: None}[match]


def test_no_row_is_answered_wrongly() -> None:
    wrong = [
        (text, value) for text, device, value in _rows("value") if _bool(selector(text).match(device)) is not value
    ]
    unknown = [text for text, device, _ in _rows("value") if selector(text).match(device) is Match.UNKNOWN]
    assert [text for text, _ in wrong if text not in unknown] == []
    answered = [text for text, device, _ in _rows("error") if selector(text).match(device) is not Match.UNKNOWN]
    assert answered == []
    rows = len(list(_rows("value", "error")))
    assert rows == 974
    assert len(unknown) <= 0.02 * rows


def test_what_a_selector_does_not_see_changes_no_row() -> None:
    for text, device, _ in _rows("value", "error"):
        if "(device," in text:
            continue  # a variable of that name; beside the real one it is a doubt
        whole = f"({text}\n) && device.attributes.size() >= 0 && device.capacity.size() >= 0"
        assert selector(whole).match(device) is selector(text).match(device), text


def _literal(expect: dict[str, Any]) -> str | None:
    value = expect["value"]
    match expect["type"]:
        case "int":
            return str(value)
        case "string":
            return json.dumps(value)
        case "double" if "Inf" not in value["double"]:
            return f"double('{value['double']}')"
        case _:
            return None


def test_other_values_equal_what_cel_go_made_of_them() -> None:
    rows = [
        (f"({text}) == {_literal(expect)}", device) for text, device, expect in _rows("other value") if _literal(expect)
    ]
    answers = [selector(text).match(device) for text, device in rows]
    assert Match.NO not in answers
    assert answers.count(Match.YES) > 0.8 * len(rows)


def test_what_kubernetes_cannot_compile_does_no_harm() -> None:
    for text, device, _ in _rows("compileError"):
        assert isinstance(selector(text).match(device), Match)
        assert selector(text).excludes_driver("other.example.com") in (True, False)


# ── Doubts ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_X = f'device.attributes["{_GPU}"].x'
_Y = f'device.attributes["{_GPU}"].y'
_MEMORY = f'device.capacity["{_GPU}"].memory'
_LIST, _INTS = str(list(range(60))), {"ints": [1]}
_VERSION, _STRING = {"version": "8.0.0"}, {"string": "8.0.0"}
_DOUBTS: dict[str, tuple[str, Shape]] = {
    "a key that is missing": (f"{_X} == 1", shape()),
    "a result that is no bool": (_X, shape(x={"int": 1})),
    "a result that is null": ("dyn(null)", shape()),
    "a version compared with a string": (f'{_X} == "8.0.0"', shape(x=_VERSION)),
    "a version made here compared with a string": (f'semver("8.0.0") == {_X}', shape(x=_STRING)),
    "a version unequal to a string": (f'{_X} != "8.0.0"', shape(x=_VERSION)),
    "a version bound to a variable and compared": (f'cel.bind(v, {_X}, v == "8.0.0")', shape(x=_VERSION)),
    "a version in a list of strings": (f'{_X} in ["8.0.0"]', shape(x=_VERSION)),
    "an optional version compared": (
        f'semver("8.0.0") == dyn(device.attributes["{_GPU}"].?x)',
        shape(x=_VERSION),
    ),
    "versions ordered by operator": (f"{_X} >= {_Y}", shape(x=_VERSION, y=_VERSION)),
    "the length of a version": (f"size({_X}) > 0", shape(x=_VERSION)),
    "a version as string": (f'string({_X}).startsWith("8")', shape(x=_VERSION)),
    "a version in a format": (f'"%s".format([{_X}]) == "x"', shape(x=_VERSION)),
    "the type of a version": (f"type({_X}) == bytes", shape(x=_VERSION)),
    "versions among the values of a domain": (
        f'device.attributes["{_GPU}"].exists(k, v, v == "8.0.0")',
        shape(x=_VERSION),
    ),
    "versions in a domain computed at run time": ('device.attributes[device.driver].x == "8.0.0"', shape(x=_VERSION)),
    "a version compared with a quantity": (f'quantity("1") == {_X}', shape(x=_VERSION)),
    "quantities of one value and unequal form": (
        f'{_MEMORY} == quantity("1")',
        shape(capacity={"memory": {"value": "1000m"}}),
    ),
    "an address as string": ('string(ip("10.0.0.1")) == "10.0.0.1"', shape()),
    "the first name of a domain": (
        f'device.attributes["{_GPU}"].map(k, k)[0] == "x"',
        shape(x=_STRING, y=_STRING),
    ),
    "what the first name of a domain leads to": (
        f'device.attributes["{_GPU}"].map(k, k == "x")[0]',
        shape(x=_STRING, y=_STRING),
    ),
    "the place of a name in a domain": (
        f'device.attributes["{_GPU}"].map(k, k).exists(i, k, i == 0 && k == "x")',
        shape(x=_STRING, y=_STRING),
    ),
    "a panic of cel-go that nothing absorbs": (f"{_X}.distinct() == [1] && false", shape(x={"int": 1})),
    "an absent domain behind a variable": ('cel.bind(a, device.attributes, a[?"q"].hasValue())', shape()),
    "a variable after a loop that ended early": ("[1, 2].exists(k, true) && cel.bind(x, 5, x == 5)", shape()),
    "an optional's variable after a loop over names": (
        f'device.attributes["{_GPU}"].all(k, k != "x") || optional.of(5).optMap(v, v == 5).value()',
        shape(x=_STRING, y=_STRING),
    ),
    "a variable of a value a loop was needed for": (
        "optional.of([1, 2].exists(k, true)).optMap(x, x == true).value()",
        shape(),
    ),
    "an absent domain of a computed name": ('device.attributes[?"q" + "r"].hasValue()', shape()),
    "an absent domain asked for by name": ("has(device.attributes.q)", shape()),
    "an unknown kind of attribute": (f"{_X} == 1", shape(x={"quaternion": 1})),
    "an attribute of two kinds": (f"{_X} == 1", shape(x={"int": 1, "string": "1"})),
    "an attribute of no kind": (f"{_X} == 1", shape(x={})),
    "an int beyond int64": (f"{_X} > 1", shape(x={"int": 2**63})),
    "a version that is none": (f'{_X} == semver("1.0.0")', shape(x={"version": "1.0"})),
    "a capacity that is no quantity": (f'{_MEMORY} == quantity("1")', shape(capacity={"memory": {"value": "1K"}})),
    "NUL in a string": (f'{_X} == "a"', shape(x={"string": "a\0b"})),
    "NUL in the driver": ("device.driver.size() == 1", shape("a\0b")),
    "NUL in the name of a domain": (
        "device.attributes.exists(d, d.size() == 1)",
        Shape(_GPU, b'{"a\\u0000/x":{"int":1}}', b"", allow_multiple=False),
    ),
    "NUL in the expression": (f'{_X} == "a\\x00b"', shape(x={"string": "a"})),
    "an attribute with and without its domain": (
        f"{_X} == 1",
        Shape(_GPU, _json({"x": {"int": 1}, f"{_GPU}/x": {"int": 2}}), b"", allow_multiple=False),
    ),
    "attributes that are no JSON": (f"{_X} == 1", Shape(_GPU, b'{"x":', b"", allow_multiple=False)),
    "attributes that are no UTF-8": (
        f'{_X} == "a"',
        Shape(_GPU, b'{"x":{"string":"\xff"}}', b"", allow_multiple=False),
    ),
    "more iterations than the engine allows": (
        f"[1].exists(a, {'[1,2,3,4,5,6,7,8,9,10].all(x, ' * 5}x > 0{')' * 5})",
        shape(),
    ),
    "a function that is not ours": ('isURL("http://example.com")', shape()),
    "no expression": ("", shape()),
    "two expressions": ("true) || (false", shape()),
    "a list of expressions": ("true, false", shape()),
    "text beyond what the API server stores": ("true" + " " * 10240, shape()),
    "a list of millions": ("lists.range(1000000000).size() > 0", shape()),
    "a list doubled by every variable": (
        "cel.bind(a, [1, 1], cel.bind(b, [a, a], cel.bind(c, [b, b], cel.bind(d, [c, c], cel.bind(e, [d, d], true)))))",
        shape(),
    ),
    "more sums than any selector has": ("1 + 1 + 1 + 1 + 1 + 1 > 0", shape()),
    "a loop in a loop": (
        "lists.range(99).map(x, lists.range(99).map(y, x * y)) == [] || true",
        shape(),
    ),
    "loops over literals in loops": (
        f"{_LIST}.exists(x, {_LIST}.exists(y, {_LIST}.exists(z, x > 0))) || true",
        shape(),
    ),
    "loops over attributes in loops": (
        f"{_X}.all(x, {_Y}.all(y, {_X}.all(z, x == y || true)))",
        shape(x=_INTS, y=_INTS),
    ),
    "a loop over what a loop has made": (
        "lists.range(300).map(x, lists.range(300)).flatten().exists(y, y == 1) || true",
        shape(),
    ),
    "a loop over a list with a name": (
        f"cel.bind(l, {_LIST}, l.exists(x, l.exists(y, l.exists(z, x > 0)))) || true",
        shape(),
    ),
    "a loop over lists in a list": (f"[{_LIST}].exists(l, {_LIST}.exists(x, l.exists(y, l.exists(z, true))))", shape()),
    "a search in a long text in a loop": (f'lists.range(100).all(x, "{"a" * 8000}".findAll("a").size() > 0)', shape()),
    "a long list searched in a loop": ("lists.range(1000).all(x, lists.range(1000).includes(x))", shape()),
    "a long text taken apart": (f'"{"a" * 2000}".replace("a", "{"b" * 2000}").split("").size() > 0', shape()),
    "attributes too deep to be read": (
        'device.attributes["a.example.com"].x == 1',
        Shape("a.example.com", b'{"y":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b"", allow_multiple=False),
    ),
    "text multiplied by text": ('"aa".replace("a", "bb").replace("b", "cc") == ""', shape()),
}


@pytest.mark.parametrize(("text", "device"), _DOUBTS.values(), ids=_DOUBTS)
def test_doubt_is_unknown(text: str, device: Shape) -> None:
    assert selector(text).match(device) is Match.UNKNOWN


_CERTAIN: dict[str, tuple[str, Shape, Match]] = {
    "versions by their method": (f'{_X}.isLessThan(semver("10.0.0"))', shape(x=_VERSION), Match.YES),
    "a version and a version": (f'{_X} == semver("8.0.0+build")', shape(x=_VERSION), Match.YES),
    "a string and a version": (f'{_X} == semver("8.0.0")', shape(x=_STRING), Match.NO),
    "quantities of one value": (
        f'{_MEMORY} == quantity("1Ki")',
        shape(capacity={"memory": {"value": "1024"}}),
        Match.YES,
    ),
    "a capacity written as a number": (
        f'{_MEMORY} == quantity("2")',
        shape(capacity={"memory": {"value": 2}}),
        Match.YES,
    ),
    "a variable in a loop that ends early": ("[1, 2].exists(k, cel.bind(x, k, x == 2))", shape(), Match.YES),
    "a loop that ends early, about a variable": ("cel.bind(x, 2, [1, 2, 3].exists(k, k == x))", shape(), Match.YES),
    "an error that does not matter": (f"{_X} == 1 || true", shape(), Match.YES),
    "a version compared with one that is absent": (f'semver("8.0.0") == {_X} || true', shape(), Match.YES),
    "a capacity that is absent, behind a false": (
        f'device.driver == "q" && !(quantity("1") != {_MEMORY})',
        shape(),
        Match.NO,
    ),
    "a domain that is absent": ('device.attributes["q"].size() == 0', shape(x=_STRING), Match.YES),
    "an unknown kind that is not looked at": (f"{_X} == 1", shape(x={"int": 1}, y={"quaternion": 1}), Match.YES),
    "NUL that is not looked at": (f"{_X} == 1", shape(x={"int": 1}, y={"string": "\0"}), Match.YES),
    "a qualified name": ('device.attributes["example.com"].x == 1', shape(example_com__x={"int": 1}), Match.YES),
    "a name of another domain": (f"has({_X})", shape(example_com__x={"int": 1}), Match.NO),
    "text in a literal": (
        f'{_X} == "device.attributes[\\"q\\"]"',
        shape(x={"string": 'device.attributes["q"]'}),
        Match.YES,
    ),
    "an attribute that is the name of a domain": (f"{_X} in device.attributes", shape(x={"string": _GPU}), Match.YES),
    "a comment at the end": ("true // )", shape(), Match.YES),
    "a shareable device": ("device.allowMultipleAllocations", shape(allow_multiple=True), Match.YES),
    "a version in a list of versions": (f'semver("8.0.0") in {_X}', shape(x={"versions": ["8.0.0+b"]}), Match.YES),
    "a loop over a long list": ("lists.range(1000).all(x, x >= 0)", shape(), Match.YES),
    "a loop over attributes in a loop": (
        f"{_X}.all(x, {_Y}.exists(y, x == y))",
        shape(x=_INTS, y=_INTS),
        Match.YES,
    ),
    "a loop over a long literal": (f"[{', '.join(map(str, range(500)))}].exists(x, x == 499)", shape(), Match.YES),
    "a loop over some of a list": (f"{_X}.filter(x, x > 0).map(x, x + 1).exists(x, x == 2)", shape(x=_INTS), Match.YES),
    "a regular expression": (f'{_X}.find("[0-9]+") == "80"', shape(x={"string": "a80b9"}), Match.YES),
    "an address": (
        'ip("ff02::1").isLinkLocalMulticast() && !ip("255.255.255.255").isGlobalUnicast()',
        shape(),
        Match.YES,
    ),
    "a network": ('cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !isCIDR("10.0.0.0/08")', shape(), Match.YES),
    "a sum of quantities": ('quantity("500m").add(quantity("500m")).compareTo(quantity("1")) == 0', shape(), Match.YES),
    "the form of a sum of quantities": ('quantity("500m").add(quantity("500m")).isInteger()', shape(), Match.NO),
}


@pytest.mark.parametrize(("text", "device", "answer"), _CERTAIN.values(), ids=_CERTAIN)
def test_certainty(text: str, device: Shape, answer: Match) -> None:
    assert selector(text).match(device) is answer


def test_a_match_is_not_a_bool() -> None:
    with pytest.raises(TypeError, match="three values"):
        bool(Match.NO)


# ── What it costs ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        (f'device.driver == "{_GPU}" && {_X} == "A100" && {_MEMORY}.isGreaterThan(quantity("40Gi"))', 1),
        ('device.attributes["a"].exists(k, k.startsWith("cuda"))', 8),
        ("lists.range(1000).all(x, x >= 0)", 11),
        ("nonsense(", 1),
    ],
)
def test_a_selector_tells_what_a_look_costs(text: str, cost: int) -> None:
    assert selector(text).cost == cost


def test_a_selector_is_compiled_once_and_not_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr("app.dra.selector._compiled", compiled.append)
    unused, used = Selector("true"), Selector("false" + " " * 100)
    assert (unused.compilation, used.compilation) == (0, 21)
    for _ in range(2):
        used.match(shape())
        used.excludes_driver("a")
    assert compiled == [used.text]
    assert used.compilation == 0


def test_all_selectors_together_remember_a_bounded_number_of_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """80,000 devices with a UUID each, and a tenant who writes 1,000 selectors that look at it: 4.6 GB."""
    gc.collect()
    before = _views()
    monkeypatch.setattr("app.dra.selector._answer", functools.lru_cache(51)(_answer.__wrapped__))
    monkeypatch.setattr("app.dra.selector._view", functools.lru_cache(1)(_view.__wrapped__))
    looking = [Selector(f"{_X} == {number}") for number in range(3)]
    for number in [*range(40), *range(40)]:
        for each, text in enumerate(looking):
            assert text.match(shape(x={"int": number})) is (Match.YES if number == each else Match.NO)
    assert _views() - before == 17  # what they see of a device they share


def _views() -> int:
    return sum(type(each).__name__ == "_View" for each in gc.get_objects())


def test_the_memory_of_answers_keeps_no_selector_alive() -> None:
    """A compiled selector is much larger than an answer."""
    used = Selector(f"{_X} == 1")
    used.match(shape(x={"int": 1}))
    gone = ref(used)
    del used
    gc.collect()
    assert gone() is None


# ── Several selectors ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        ((), Match.YES),
        (("true", "true"), Match.YES),
        (("true", "1/0 > 0"), Match.UNKNOWN),
        (("1/0 > 0", "false"), Match.NO),
        (("false", "1/0 > 0"), Match.NO),
        (("nonsense(", "true"), Match.UNKNOWN),
    ],
)
def test_one_certain_no_decides(texts: tuple[str, ...], answer: Match) -> None:
    assert match_all(tuple(map(selector, texts)), shape()) is answer


# ── Drivers that cannot match ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "excluded"),
    [
        ('device.driver == "a"', True),
        ('device.driver == "b"', False),
        (f'device.driver == "a" && {_X} == 1 && {_MEMORY}.isGreaterThan(quantity("1Gi"))', True),
        (f'{_X} == 1 && device.driver == "a"', True),
        (f'device.driver == "a" && quantity("1Gi") == {_MEMORY}', True),
        ('device.driver == "a" && cel.bind(x, device.attributes["a"], x.y == 1)', True),
        (f'device.driver == "a" || {_X} == 1', False),
        ("device.driver.startsWith('b')", False),
        (f"{_X} == 1", False),
        (f"has({_X})", False),
        ('"a" in device.attributes', False),
        ("size(device.attributes) > 0", False),
        ("device.attributes == {'a': {'x': 1}}", False),
        ("has(device.attributes) && false", False),  # false for all, and not worth a proof
        ("device.?attributes.hasValue()", False),
        ("device.allowMultipleAllocations", False),
        ('device.driver == "a" && device.allowMultipleAllocations', True),
        ("has(device.allowMultipleAllocations)", False),
        ("false", True),
        ("true", False),
        ("1/0 > 0", False),
        ("nonsense(", False),
        ('[device].exists(d, d.driver == "a")', False),
    ],
)
def test_driver_b_is_excluded_only_for_certain(text: str, *, excluded: bool) -> None:
    assert selector(text).excludes_driver("b") is excluded
