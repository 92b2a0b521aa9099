"""Device classes, and which of them an extended resource name may mean.

The rule (KEP-5004): the newest class that declares the name wins, then the smallest name. The scheduler's cache of 1.36
and 1.37 does not follow it in every history (kubernetes#141103): it may go on using a losing, renamed or formerly
declaring class until it restarts. So a name has *claimants*: all classes the scheduler may still resolve it to.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.dra.objects import DeviceClass, DeviceSelector
from app.dra.selector import Selector, selector
from app.times import epoch_seconds

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Every class is also an extended resource under this prefix (`ResourceDeviceClassPrefix`)."""

EDITED_AT_LEAST_TWICE = 3
"""`metadata.generation` of a class that may have declared any name once and declares another, or none, now."""

EDITED_ONCE = 2
"""Generation of a class that may have declared another name if, and only if, it declares one now."""


@dataclass(frozen=True, slots=True)
class ClassState:
    """One device class."""

    name: str
    created: float
    """Epoch seconds; API timestamps have a resolution of one second."""
    generation: int
    first_generation: int
    """The generation it had when it was first seen here, or after an edit that was missed; 1: none was."""
    declares: str
    """Its explicit extended resource name; empty: none."""
    selectors: tuple[Selector, ...]


def selectors_of(entries: list[DeviceSelector] | None) -> tuple[Selector, ...]:
    """The selectors in order; an entry of an unknown kind is one that cannot be evaluated."""
    return tuple(selector(entry.cel.expression if entry.cel else "") for entry in entries or ())


def _created(stamp: str | None) -> float:
    """A class of unknown age is an old one: it may have a history, which can only admit."""
    try:
        return epoch_seconds(stamp) if stamp else 0.0
    except ValueError:
        return 0.0


class ClassIndex:
    """All device classes by name and by the names they declare, declared or may still be taken to declare."""

    def __init__(self, started_at: float) -> None:
        """`started_at`: classes created before may have a history nobody here has seen (for files: the clock)."""
        self._started_at = started_at
        self._classes: dict[str, ClassState] = {}
        self._seen_declaring: dict[str, set[str]] = {}
        self._claimants: dict[str, tuple[str, ...]] = {}

    def __iter__(self) -> Iterator[ClassState]:
        """All classes, in no order."""
        return iter(self._classes.values())

    def get(self, name: str) -> ClassState | None:
        """The class of that name."""
        return self._classes.get(name)

    def apply(self, obj: DeviceClass) -> ClassState:
        """A class was seen, new or changed."""
        meta, spec = obj.metadata, obj.spec
        generation = meta.generation if meta.generation is not None else 1
        known = self._classes.get(meta.name)
        first_generation = generation
        if known is not None and generation <= known.generation + 1:  # no edit was missed
            first_generation = known.first_generation
        state = ClassState(
            name=meta.name,
            created=_created(meta.creation_timestamp),
            generation=generation,
            first_generation=first_generation,
            declares=spec.extended_resource_name or "",
            selectors=selectors_of(spec.selectors),
        )
        self._classes[state.name] = state
        if state.declares:
            self._seen_declaring.setdefault(state.declares, set()).add(state.name)
        self._claimants.clear()
        return state

    def remove(self, name: str) -> None:
        """A class is gone; that it declared a name is remembered by its name, as the scheduler does."""
        self._classes.pop(name, None)
        self._claimants.clear()

    def claimants(self, extended_resource: str) -> tuple[str, ...]:
        """Classes the scheduler may resolve the name to, the winner by the rule first; none: nobody declares it now."""
        known = self._claimants.get(extended_resource)
        if known is None:
            if extended_resource not in self._seen_declaring and not extended_resource.startswith(IMPLICIT_PREFIX):
                return ()
            known = self._find_claimants(extended_resource)
            if known:  # names nobody declares come from pods without bound: they are not kept
                self._claimants[extended_resource] = known
        return known

    def _find_claimants(self, name: str) -> tuple[str, ...]:
        if name.startswith(IMPLICIT_PREFIX):
            implied = name.removeprefix(IMPLICIT_PREFIX)
            return (implied,) if implied in self._classes else ()
        declaring = [c for c in self._classes.values() if c.declares == name]
        declaring.sort(key=lambda c: (-c.created, c.name))
        others = sorted(c.name for c in self._classes.values() if c.declares != name and self._may_linger(c, name))
        return (*(c.name for c in declaring), *others) if declaring else ()

    def _may_linger(self, candidate: ClassState, name: str) -> bool:
        """Whether the scheduler may still take the class for one that declares the name."""
        if candidate.name in self._seen_declaring.get(name, ()):
            return True
        if candidate.created >= self._started_at and candidate.first_generation == 1:
            return False  # all its history was seen here; by the time alone a clock that is ahead would say so too
        return candidate.generation >= EDITED_AT_LEAST_TWICE or (
            candidate.generation == EDITED_ONCE and bool(candidate.declares)
        )
