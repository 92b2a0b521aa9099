"""A figure is held against what is wanted, the right way round, and every single result is kept."""

import json
from pathlib import Path

import pytest

from loadtest import targets
from loadtest.targets import TARGETS, Better, Figure, Target, recorder


@pytest.mark.parametrize(
    ("better", "value", "met", "passes"),
    [
        (Better.HIGHER, 1.0, True, True),
        (Better.HIGHER, 0.9, False, True),
        (Better.HIGHER, 0.7, False, False),
    ],
)
def test_more_is_better_of_reviews_per_core(better: Better, value: float, met: bool, passes: bool) -> None:  # noqa: FBT001
    target = Target(1.0, 0.75, better)
    assert (target.met(value), target.passes(value)) == (met, passes)


@pytest.mark.parametrize(("value", "met", "passes"), [(1.3, True, True), (1.5, False, True), (1.7, False, False)])
def test_less_is_better_of_a_latency(value: float, met: bool, passes: bool) -> None:  # noqa: FBT001
    target = Target(1.3, 1.6)
    assert (target.met(value), target.passes(value)) == (met, passes)


def test_what_has_no_gate_passes() -> None:
    assert Target(1.0, None).passes(99.0)


def test_no_gate_is_stricter_than_its_target() -> None:
    assert all(each.gate is None or each.passes(each.value) for each in TARGETS.values())
    assert all(each.gate is None or not each.met(each.gate) for each in TARGETS.values())


def test_a_row_says_what_was_aimed_at_and_whether_it_was_reached() -> None:
    row = Figure(targets.FLOOR, 0.6512, "", 0.61, 0.68).row()
    assert row == "| reviews per core, against the floor | 0.651 | 0.61 .. 0.68 | ≥ 0.7 | ≥ 0.5 | **missed** |"
    assert Figure(targets.SOAK, 0.4, "MB/h").row() == "| growth of resident memory | 0.4 MB/h |  | ≤ 1 |  | met |"
    assert Figure("something", 1234, "us").row() == "| something | 1,234 us |  |  |  |  |"


def test_every_result_is_a_line(tmp_path: Path) -> None:
    record = recorder(tmp_path / "results")
    record({"a": 1})
    record({"b": 2})
    assert [json.loads(line) for line in (tmp_path / "results").read_text().splitlines()] == [{"a": 1}, {"b": 2}]
    recorder(None)({"a": 1})
