"""Quantities as Go reads them; what CEL sees of them is in cel.json."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dra.quantity import OversizedQuantity, Quantity, parse_quantity, whole_devices

_NANO = 10**9
_VALUES = {
    "0": (0, True),
    "1": (_NANO, True),
    "+1": (_NANO, True),
    "-1": (-_NANO, True),
    "007": (7 * _NANO, True),
    "5.": (5 * _NANO, True),
    ".5": (_NANO // 2, False),
    "1.0": (_NANO, False),
    "1000m": (_NANO, False),
    "1500m": (1_500_000_000, False),
    "100n": (100, False),
    "7u": (7_000, False),
    "1k": (1_000 * _NANO, True),
    "200G": (200 * 10**9 * _NANO, True),
    "12E": (12 * 10**18 * _NANO, False),
    "1e3": (1_000 * _NANO, True),
    "1E+3": (1_000 * _NANO, True),
    "1E": (10**18 * _NANO, True),
    "15e-1": (1_500_000_000, False),
    "80Gi": (80 * 2**30 * _NANO, True),
    "1.5Gi": (3 * 2**29 * _NANO, False),
    "99Ti": (99 * 2**40 * _NANO, True),
    "100Ti": (100 * 2**40 * _NANO, False),
    "Gi": (0, True),
    "": None,
    "1K": None,
    "1e": None,
    "1GiB": None,
    "1 Gi": None,
    " 1": None,
    "1\n": None,
    "1.1.1": None,
    "0x10": None,
    "1_000": None,
    "i": None,
    "Ei": None,
    "\uff11": None,
    "nan": None,
    "inf": None,
}
_EDGES = {
    "finer than nano is rounded away from zero": ("0.0000000001", 1),
    "finer than nano is rounded away from zero, also below it": ("-0.1n", -1),
    "binary suffixes are capped": ("8Ei", (2**63 - 1) * _NANO),
    "binary suffixes are capped, also below zero": ("-9Ei", -(2**63 - 1) * _NANO),
    "decimal suffixes are not": ("10E", 10**19 * _NANO),
    "large exponents are exact": ("1e400", 10**409),
    "small exponents are almost nothing": ("1e-4000", 1),
}


@pytest.mark.parametrize(("text", "expected"), _VALUES.items())
def test_value_and_whether_cel_calls_it_an_integer(text: str, expected: tuple[int, bool] | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="quantity"):
            parse_quantity(text)
    else:
        assert parse_quantity(text) == Quantity(*expected)


@pytest.mark.parametrize(("text", "nano"), _EDGES.values(), ids=_EDGES)
def test_edges_of_the_range(text: str, nano: int) -> None:
    assert parse_quantity(text).nano == nano


@pytest.mark.parametrize(
    "text", ["1e4097", "1e-99999999999999999999", "9" * 5000, "1e" + "9" * 4000, "9" * 2000 + "e2097"]
)
def test_what_is_too_large_to_be_meant_is_refused_at_once(text: str) -> None:
    with pytest.raises(OversizedQuantity):
        parse_quantity(text)


@pytest.mark.parametrize(("number", "nano"), [(2, 2 * _NANO), (0.5, _NANO // 2), (1e22, 10**31), (-3, -3 * _NANO)])
def test_json_numbers_are_quantities(number: float, nano: int) -> None:
    assert parse_quantity(number).nano == nano


@pytest.mark.parametrize(
    ("text", "shortest"),
    [
        ("0", "0"),
        ("1", "1"),
        ("1024", "1Ki"),
        ("1000", "1k"),
        ("85899345920", "80Gi"),
        ("1500m", "1500m"),
        ("-1.5", "-1500m"),
        ("2500n", "2500n"),
        ("9856Mi", "9856Mi"),
        ("-2Gi", "-2Gi"),
        ("200G", "200G"),
    ],
)
def test_shortest_text(text: str, shortest: str) -> None:
    assert str(parse_quantity(text)) == shortest


@given(st.integers(-(10**30), 10**30))
def test_the_shortest_text_is_exact(nano: int) -> None:
    text = str(Quantity(nano, integer=False))
    # Binary suffixes cannot say more than 2^63-1: Go's cap.
    assert parse_quantity(text).nano == nano or (text.endswith("i") and abs(nano) > (2**63 - 1) * _NANO)


@given(st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,12})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_a_sign_changes_the_sign_only(text: str) -> None:
    text = text.lstrip("+-")
    try:
        positive = parse_quantity(text)
    except ValueError:
        return
    assert parse_quantity("-" + text).nano == -positive.nano


@pytest.mark.parametrize(
    ("value", "devices"),
    [
        ("1", 1),
        ("0", 0),
        ("007", 7),
        ("1000m", 1),
        ("2k", 2000),
        ("1.0", 1),
        (4, 4),
        (2.0, 2),
        ("1e30", 10**30),
        ("9" * 100, int("9" * 100)),
        ("500m", None),
        ("0.1", None),
        (0.5, None),
    ],
)
def test_devices_asked_for(value: str | float, devices: int | None) -> None:
    assert whole_devices(value) == devices


@pytest.mark.parametrize(
    "value", ["-1", -2, "-500m", "", "x", "\u0661", "\u00b2", "1e99999", "9" * 5000, True, float("nan")]
)
def test_what_is_no_number_of_devices(value: str | float) -> None:
    with pytest.raises(ValueError, match=r"quantity|negative"):
        whole_devices(value)
