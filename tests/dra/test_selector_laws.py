"""Laws of CEL selectors: projection, memory and proofs change no answer, and nothing takes the process down."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dra.selector import Match, Selector, Shape, selector

_DOMAINS, _NAMES = ("a", "b", "c"), ("x", "y", "a/x")
_values = st.one_of(
    st.integers(-2, 2).map(lambda value: {"int": value}),
    st.booleans().map(lambda value: {"bool": value}),
    st.sampled_from(["", "a", "1.0.0"]).map(lambda value: {"string": value}),
    st.sampled_from(["1.0.0", "2.0.0-rc.1"]).map(lambda value: {"version": value}),
    st.lists(st.sampled_from(["1.0.0", "2.0.0"]), max_size=2).map(lambda value: {"versions": value}),
    st.lists(st.integers(0, 2), max_size=2).map(lambda value: {"ints": value}),
)
_qualified = st.one_of(st.sampled_from(["x", "y"]), st.sampled_from(["a/x", "a/y", "b/x", "b/y"]))
_quantities = st.sampled_from(["0", "1", "1000m", "2Gi", "0.5"]).map(lambda value: {"value": value})


def _json(value: object) -> bytes:
    return json.dumps(value).encode() if value else b""


def _once(fields: dict[str, Any], driver: str) -> dict[str, Any]:
    """Without names that are there with the driver as their domain too."""
    return {name: value for name, value in fields.items() if f"{driver}/{name}" not in fields}


_shapes = st.builds(
    lambda driver, attributes, capacity, shareable: Shape(
        driver, _json(_once(attributes, driver)), _json(_once(capacity, driver)), shareable
    ),
    st.sampled_from(["a", "b"]),
    st.dictionaries(_qualified, _values, max_size=4),
    st.dictionaries(_qualified, _quantities, max_size=3),
    st.booleans(),
)


def _access(field: str, domain: str, name: str, style: int) -> str:
    access = f'device.{field}["{domain}"]'
    return access + (f'["{name}"]' if style or "/" in name else f".{name}")


_attributes = st.builds(
    _access, st.just("attributes"), st.sampled_from(_DOMAINS), st.sampled_from(_NAMES), st.integers(0, 1)
)
_capacities = st.builds(
    _access, st.just("capacity"), st.sampled_from(_DOMAINS), st.sampled_from(_NAMES), st.integers(0, 1)
)
_literals = st.sampled_from(["1", "true", '"a"', 'semver("1.0.0")', 'quantity("1")'])
_operands = st.one_of(_attributes, _literals, _capacities)
_terms = st.one_of(
    st.builds("{} {} {}".format, _operands, st.sampled_from(["==", "!=", "<", "in"]), _operands),
    st.builds("has({})".format, _attributes.filter(lambda text: not text.endswith('"]'))),
    st.builds('"{}" in device.attributes["{}"]'.format, st.sampled_from(_NAMES), st.sampled_from(_DOMAINS)),
    st.builds("{} in device.attributes".format, st.one_of(st.sampled_from(['"a"', '"b"']), _attributes)),
    st.builds('device.driver == "{}"'.format, st.sampled_from(_DOMAINS)),
    st.builds("{}.isGreaterThan({})".format, _operands, _operands),
    st.builds("{}.isInteger()".format, _capacities),
    st.builds(
        'cel.bind(v, device.attributes["{}"], v.{} == 1)'.format, st.sampled_from(_DOMAINS), st.sampled_from("xy")
    ),
    st.builds('device.attributes["{}"].?{}.orValue(1) == 1'.format, st.sampled_from(_DOMAINS), st.sampled_from("xy")),
    st.just("device.allowMultipleAllocations"),
    _attributes,
)
_expressions = st.recursive(
    _terms,
    lambda inner: st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
    ),
    max_leaves=4,
)


def _whole(text: str) -> Selector:
    """The same selector, made to look at the whole device."""
    return selector(f"({text}\n) && device.attributes.size() >= 0 && device.capacity.size() >= 0")


@given(_expressions, _shapes)
def test_what_a_selector_does_not_see_changes_nothing(text: str, device: Shape) -> None:
    assert _whole(text).match(device) is selector(text).match(device)


@given(_expressions, _shapes)
def test_an_excluded_driver_has_no_match(text: str, device: Shape) -> None:
    if selector(text).excludes_driver(device.driver):
        assert selector(text).match(device) is not Match.YES


@given(_expressions, _shapes, _shapes)
def test_memory_does_not_change_answers(text: str, device: Shape, other: Shape) -> None:
    used = Selector(text)
    used.match(other)
    assert used.match(device) is Selector(text).match(device)
    assert used.match(device) is used.match(device)


_pieces = [*"()[]{}.,?:!-+*/<>=&|\"'\\ \n1axr", "device", ".attributes", " in ", "has(", "cel.bind(", ".all(", "size("]


@given(st.lists(st.sampled_from(_pieces), max_size=30).map("".join), _shapes)
def test_no_text_raises(text: str, device: Shape) -> None:
    match = selector(text).match(device)
    assert isinstance(match, Match)
    if selector(text).excludes_driver(device.driver):
        assert match is not Match.YES


# ── The process survives ─────────────────────────────────────────────────────────────────────────────────────────────

_NESTED = """
from app.dra.selector import Match, Shape, selector
shape = Shape("d", b"", b"", allow_multiple=False)
for text in (
    "(" * 5000 + "true" + ")" * 5000,
    "!" * 10200 + "true",
    "-" * 10000 + "1 < 0",
    "[" * 5000 + "]" * 5000 + " == []",
    "{1:" * 2500 + "1" + "}" * 2500 + " == {}",
    "1+" * 5000 + "1 > 0",
    "true?true:" * 1020 + "true",
    "device" + ".a" * 5000,
    "device" + "[0]" * 3000,
    "[1].all(x, " * 850 + "true" + ")" * 850,
    "cel.bind(x, [1], " * 500 + "true" + ")" * 500,
    "'a'" + ".trim()" * 1400 + " == 'a'",
):
    assert 8000 < len(text) <= 10240
    assert selector(text).match(shape) is Match.UNKNOWN, text[:20]
for operator in ("&&", "||"):
    assert selector(operator.join(["true"] * 1000)).match(shape) is Match.YES
print("survived")
"""
_NULLS = """
from app.dra.selector import Match, Shape, selector
chosen = selector('device.attributes["d"].x < 0 ? dyn(true) : dyn(null)')
for x in range(4000):  # reading null results kills the process (cel-expr-python 0.1.3 on Python 3.11)
    assert chosen.match(Shape("d", b'{"x":{"int":%d}}' % x, b"", allow_multiple=False)) is Match.UNKNOWN
print("survived")
"""


@pytest.mark.parametrize("script", [_NESTED, _NULLS], ids=["deep nesting and long chains", "null results"])
def test_the_process_survives(script: str) -> None:
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("survived\n", 0), run.stderr
