"""Selectors of the grammar, answered by the product and by cel-go with the Kubernetes libraries."""

import itertools
import json
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from app.dra.selector import Match, Selector, Shape
from tests.controlplane.client import Json
from tests.truth.grammar import devices, selectors
from tests.truth.oracle import Oracle

DEVICES_EACH = 3


@dataclass(slots=True)
class SelectorFigures:
    """What came out: answers are pairs of selector and device."""

    selectors: set[str] = field(default_factory=set)
    """Those that Kubernetes would store; each may have been tried on several threes of devices."""
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What cel-go said, and what the product said."""
    unknown: list[tuple[str, Json]] = field(default_factory=list)
    """Pairs of which cel-go is sure and the product is not."""

    @property
    def unknown_share(self) -> float:
        """How much of what cel-go is sure of the product does not know."""
        return len(self.unknown) / max(1, sum(count for (said, _), count in self.answers.items() if said != "error"))

    def lines(self) -> str:
        """All of it, for a person."""
        answers = ", ".join(f"{said}/{ours} {count}" for (said, ours), count in sorted(self.answers.items()))
        return f"{len(self.selectors)} selectors, 0 wrong, {self.unknown_share:.2%} unknown (cel-go/ours: {answers})"


_OURS = {"true": Match.YES, "false": Match.NO, "error": Match.UNKNOWN}


def compare_selectors(number: int, seed_number: int) -> SelectorFigures:
    """Try so many different selectors. Raises AssertionError with the smallest wrong answer."""
    figures = SelectorFigures()
    with Oracle("celoracle") as oracle:
        for part in itertools.count():
            if len(figures.selectors) >= number:
                break
            _try_some(number, f"{seed_number}/{part}", oracle, figures)
    return figures


def _try_some(number: int, chance: str, oracle: Oracle, figures: SelectorFigures) -> None:
    """Of so many examples about half differ: hypothesis tries variants of what it has tried."""

    @seed(chance)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(selectors, st.lists(devices, min_size=DEVICES_EACH, max_size=DEVICES_EACH))
    def agree(text: str, tried: list[Json]) -> None:
        answer = oracle.ask({"expression": text, "devices": tried})
        if answer == "compile":
            return
        figures.selectors.add(text)
        selector = Selector(text)
        for said, device in zip(answer.split(), tried, strict=True):
            _note(figures, selector, said, device)

    agree()


def _note(figures: SelectorFigures, selector: Selector, said: str, device: Json) -> None:
    ours = selector.match(_shape(device))
    figures.answers[said, ours.name] += 1
    assert ours in (_OURS[said], Match.UNKNOWN), f"{selector.text}\non {json.dumps(device)}: {said}, ours {ours.name}"
    excluded = said == "true" and selector.excludes_driver(device["driver"])
    assert not excluded, f"{selector.text}\nexcludes {device['driver']}, yet matches {json.dumps(device)}"
    if said != "error" and ours is Match.UNKNOWN:
        figures.unknown.append((selector.text, device))


def _shape(device: Json) -> Shape:
    return Shape(
        device["driver"],
        json.dumps(device["attributes"]).encode(),
        json.dumps(device["capacity"]).encode(),
        device["allowMultipleAllocations"],
    )
