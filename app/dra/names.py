"""The extended resource names that lead to a device class, and who else may be meant by them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.dra.classes import IMPLICIT_PREFIX
from app.dra.vacancy import Vacancy
from app.dra.witness import Witness


@dataclass(frozen=True, slots=True)
class Name:
    """One name a pod may ask by."""

    text: str
    explicit: bool
    """Declared by the class; else the one that every class has."""
    claimants: tuple[str, ...]
    """Classes the scheduler may resolve it to, the winner by the rule first."""
    plugin_node: str
    """A node that may serve it by device plugin, so that nobody who asks by it is refused; empty: none."""


def names(class_name: str, declares: str, witness: Witness, now: float) -> Iterator[Name]:
    """The names of a class; `declares`: the explicit one, if any."""
    implicit = IMPLICIT_PREFIX + class_name
    if declares:
        yield Name(declares, True, witness.claimants(declares), witness.plugin_node(declares, now) or "")  # noqa: FBT003 - the field says it
    yield Name(implicit, False, witness.claimants(implicit), witness.plugin_node(implicit, now) or "")  # noqa: FBT003 - the same


def holding_back(claimants: tuple[str, ...], vacancies: Mapping[str, Vacancy]) -> str:
    """The class because of which a winner that is full, or matches no device, does not lead to a refusal; or empty."""
    if not claimants or vacancies.get(claimants[0]) not in (Vacancy.FULL, Vacancy.EMPTY):
        return ""
    others = (name for name in claimants[1:] if vacancies.get(name) in (Vacancy.FREE, Vacancy.UNKNOWN))
    return next(others, "")
