"""The names that lead to a class."""

import pytest

from app.dra.judgement import Policy, World
from app.dra.names import Name, holding_back, names
from app.dra.reasons import Reason
from app.dra.snapshot import Snapshot
from app.dra.vacancy import Vacancy
from app.dra.witness import Heard, Kind
from tests.builders import GPU, IMPLICIT_GPU, NOON, device_class, node
from tests.dra.watched import Watched

NEW, OLD = device_class("gpu", declares=GPU, created=NOON - 60), device_class("old", declares=GPU, created=NOON - 120)


def world(*objects: Heard, dynamic: frozenset[str] = frozenset()) -> World:
    return World(Watched(*objects).witness, Snapshot({}), Policy(dynamic=dynamic))


def test_a_class_has_an_implicit_name_and_perhaps_an_explicit_one() -> None:
    known = world(NEW, OLD)
    assert list(names("gpu", GPU, known, NOON)) == [
        Name(GPU, explicit=True, claimants=("gpu", "old"), plugin_node=""),
        Name(IMPLICIT_GPU, explicit=False, claimants=("gpu",), plugin_node=""),
    ]
    assert [name.explicit for name in names("gpu", "", known, NOON)] == [False]


def test_a_node_may_serve_either_name_by_device_plugin() -> None:
    known = world(NEW, node("n1", plugin={GPU: "1"}), node("n2", plugin={IMPLICIT_GPU: "1"}))
    found = list(names("gpu", GPU, known, NOON))
    assert [name.plugin_node for name in found] == ["n1", "n2"]
    assert {name.never_refused for name in found} == {Reason.DevicePlugin}


@pytest.mark.parametrize(
    ("listed", "reasons"),
    [("", [None, None]), ("gpu", [Reason.Dynamic, Reason.Dynamic]), ("old", [Reason.Dynamic, None])],
)
def test_a_name_is_never_refused_for_any_class_that_may_claim_it(listed: str, reasons: list[Reason | None]) -> None:
    known = world(NEW, OLD, dynamic=frozenset(filter(None, [listed])))
    assert [name.never_refused for name in names("gpu", GPU, known, NOON)] == reasons


@pytest.mark.parametrize("minor", [36, 37])
def test_where_names_are_not_judged_nobody_who_asks_by_one_is_refused(minor: int) -> None:
    known = world(NEW)
    known.witness.server_minor = minor
    if minor > 36:
        known.witness.deny(Kind.NODES)
    assert [name.never_refused for name in names("gpu", GPU, known, NOON)] == [Reason.NoSource, Reason.NoSource]


FREE, FULL, EMPTY, UNKNOWN = Vacancy.FREE, Vacancy.FULL, Vacancy.EMPTY, Vacancy.UNKNOWN


@pytest.mark.parametrize(
    ("vacancies", "holder"),
    [
        ([FULL, FREE], "1"),
        ([FULL, UNKNOWN], "1"),
        ([FULL, FULL, EMPTY, FREE], "3"),
        ([EMPTY, FREE], "1"),
        ([FULL, FULL], ""),
        ([FULL, EMPTY], ""),
        ([FREE, FREE], ""),
        ([UNKNOWN, FREE], ""),
        ([FULL], ""),
        ([], ""),
    ],
)
def test_who_holds_refusals_back(vacancies: list[Vacancy], holder: str) -> None:
    known = {str(number): vacancy for number, vacancy in enumerate(vacancies)}
    assert holding_back(tuple(known), known) == holder
