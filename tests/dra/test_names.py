"""The names that lead to a class."""

import pytest

from app.dra.names import Name, holding_back, names
from app.dra.vacancy import Vacancy
from tests.builders import GPU, IMPLICIT_GPU, NOON, device_class, node
from tests.dra.watched import Watched

NEW, OLD = device_class("gpu", declares=GPU, created=NOON - 60), device_class("old", declares=GPU, created=NOON - 120)


def test_a_class_has_an_implicit_name_and_perhaps_an_explicit_one() -> None:
    witness = Watched(NEW, OLD).witness
    assert list(names("gpu", GPU, witness, NOON)) == [
        Name(GPU, explicit=True, claimants=("gpu", "old"), plugin_node=""),
        Name(IMPLICIT_GPU, explicit=False, claimants=("gpu",), plugin_node=""),
    ]
    assert [name.explicit for name in names("gpu", "", witness, NOON)] == [False]


def test_a_node_may_serve_either_name_by_device_plugin() -> None:
    witness = Watched(NEW, node("n1", plugin={GPU: "1"}), node("n2", plugin={IMPLICIT_GPU: "1"})).witness
    assert [name.plugin_node for name in names("gpu", GPU, witness, NOON)] == ["n1", "n2"]


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
