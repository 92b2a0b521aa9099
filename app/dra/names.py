"""The extended resource names that lead to a device class, and who else may be meant by them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.dra.classes import IMPLICIT_PREFIX
from app.dra.judgement import World, never_refused
from app.dra.reasons import Reason
from app.dra.vacancy import Vacancy


@dataclass(frozen=True, slots=True)
class Name:
    """One name a pod may ask by."""

    text: str
    explicit: bool
    """Declared by the class; else the one that every class has."""
    claimants: tuple[str, ...]
    """Classes the scheduler may resolve it to, the winner by the rule first."""
    plugin_node: str
    """A node that may serve it by device plugin; empty: none."""
    never_refused: Reason | None = None
    """Why nobody who asks by it is refused, free or not; None: they may be."""


def names(class_name: str, declares: str, world: World, now: float) -> Iterator[Name]:
    """The names of a class; `declares`: the explicit one, if any."""
    if declares:
        yield named(declares, world, now)
    yield named(IMPLICIT_PREFIX + class_name, world, now)


def named(text: str, world: World, now: float) -> Name:
    """What a name leads to."""
    claimants, plugin_node = world.witness.claimants(text), world.witness.plugin_node(text, now) or ""
    reason = never_refused(claimants, world) if world.witness.judges_extended_resources() else Reason.NoSource
    return Name(
        text=text,
        explicit=not text.startswith(IMPLICIT_PREFIX),
        claimants=claimants,
        plugin_node=plugin_node,
        never_refused=Reason.DevicePlugin if plugin_node else reason,
    )


def holding_back(claimants: tuple[str, ...], vacancies: Mapping[str, Vacancy]) -> str:
    """The class because of which a winner that is full, or matches no device, does not lead to a refusal; or empty."""
    if not claimants or vacancies.get(claimants[0]) not in (Vacancy.FULL, Vacancy.EMPTY):
        return ""
    others = (name for name in claimants[1:] if vacancies.get(name) in (Vacancy.FREE, Vacancy.UNKNOWN))
    return next(others, "")
