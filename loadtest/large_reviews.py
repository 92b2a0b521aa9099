"""What is asked of a Vacancy that follows the large cluster, and whether it is answered rightly.

A wrong answer is one that turns away who could be served, or says that there is room where there is none. To say that
it is not known is never wrong; how often that was said is told apart.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loadtest.latency import Latency, Sample, Target
from loadtest.payloads import KINDS, SIZE, Kind, body
from loadtest.servers import Running
from loadtest.standin_cluster import EVERY, FULL, HELD_CLAIM, LARGE, MODELS, TIDE

PROMPT_SECONDS = 0.25
"""After a change within which an answer is right by either: what it takes to send it, and a review to be answered."""

LATE_SECONDS = 10.0
"""After a change within which an answer that does not know of it is late. On a machine that is busy with other things
somebody is always waiting: the API server to send, or Vacancy to hear."""

ROOM, TAKEN, UNKNOWN = "room", "full", "unknown"
"""What an answer's annotation calls it."""

NOT_JUDGED = "not judged"
"""There is no annotation."""

RIGHT, LATE, WRONG, FAILED = "right", "late", "wrong", "failed"
"""What becomes of a review, beside UNKNOWN where something is known to be so."""

_Ask = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class _Question:
    share: int
    """Percent."""
    so: str
    """What is so; empty: as the tide is."""
    asks: tuple[_Ask, ...]
    real: str = "replicaset.json"
    path: str = "/validate/warn"


def _classes(*names: str) -> tuple[_Ask, ...]:
    def asks(name: str) -> _Ask:
        return lambda spec: spec["containers"][0].update(resources={"limits": {name: "1"}, "requests": {name: "1"}})

    return tuple(asks(name) for name in names)


def _held_claim(spec: dict[str, Any]) -> None:
    spec["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": HELD_CLAIM}]


_FREE = (
    f"gpu{driver}.example.com/{what}"
    for driver in range(1, LARGE.drivers)
    for what in ("gpu", *(f"model-{model:02}" for model in range(MODELS)))
)
_IMPLICIT = "deviceclass.resource.kubernetes.io"
_QUESTIONS = {
    "nothing": _Question(20, NOT_JUDGED, (KINDS[0].ask,), "job.json"),
    "free": _Question(45, ROOM, _classes(*_FREE), "bare.json"),
    "every": _Question(5, ROOM, _classes(f"{_IMPLICIT}/{EVERY}")),
    "taken": _Question(18, TAKEN, _classes(f"{_IMPLICIT}/{FULL}")),
    "refused": _Question(2, TAKEN, _classes(f"{_IMPLICIT}/{FULL}"), path="/validate/enforce"),
    "tide": _Question(5, "", _classes(f"{_IMPLICIT}/{TIDE}"), path="/validate/enforce"),
    "claim": _Question(5, UNKNOWN, (_held_claim,), "job.json"),
}


def targets(server: Running) -> list[Target]:
    """A hundred reviews by these shares, in an order without a pattern; the URL tells which is which."""
    order = [name for name, question in _QUESTIONS.items() for _ in range(question.share)]
    random.Random(3).shuffle(order)  # noqa: S311 - no secret
    return [target(server, name, number) for number, name in enumerate(order)]


def target(server: Running, name: str, number: int = 0) -> Target:
    """One review of that kind."""
    question = _QUESTIONS[name]
    kind = Kind(name, 0, question.real, question.asks[number % len(question.asks)])
    return Target(server.url(f"{question.path}?{name}"), body(kind, SIZE, number))


@dataclass(slots=True)
class Tide:
    """When the tide turned, and what was so since."""

    turns: list[tuple[float, str]] = field(default_factory=lambda: [(0.0, TAKEN)])

    def turned(self, *, high: bool) -> None:
        """It has just turned."""
        self.turns.append((time.time(), TAKEN if high else ROOM))

    def between(self, start: float, end: float) -> set[str]:
        """All that was so in between, in epoch seconds."""
        before = [so for at, so in self.turns if at <= start][-1:]
        return {*before, *(so for at, so in self.turns if start < at <= end)}


def verdict(response: Mapping[str, Any]) -> str:
    """What the answer to a review says."""
    return str(response.get("auditAnnotations", {}).get("verdict", NOT_JUDGED))


def judged(latency: Latency, tide: Tide) -> Counter[str]:
    """How many reviews became what."""
    return Counter(became(sample, latency.began, tide) for sample in latency.samples)


def became(sample: Sample, began: float, tide: Tide) -> str:
    """What became of one of them."""
    if sample.code != 200:  # noqa: PLR2004 - the status code is its own name
        return FAILED
    response = json.loads(sample.answer)["response"]
    said, question = verdict(response), _QUESTIONS[sample.url.partition("?")[2]]
    sent = began + sample.intended
    for outcome, seconds in ((RIGHT, PROMPT_SECONDS), (LATE, LATE_SECONDS)):
        so = {question.so} if question.so else tide.between(sent - seconds, sent + sample.seconds)
        if said in so and (response["allowed"] or said == TAKEN):
            return outcome
    return UNKNOWN if said == UNKNOWN and response["allowed"] else WRONG


def at_once(latency: Latency) -> Latency:
    """Without those that wait on purpose: refusals are looked at twice, 50 ms apart, named claims are read first."""
    return _those(latency, lambda sample: not (b'"allowed":false' in sample.answer or _reads(sample)))


def with_claims(latency: Latency) -> Latency:
    """Those that name a claim, which the API server is asked for."""
    return _those(latency, _reads)


def _reads(sample: Sample) -> bool:
    return sample.url.endswith("?claim")


def _those(latency: Latency, belongs: Callable[[Sample], bool]) -> Latency:
    return Latency(tuple(sample for sample in latency.samples if belongs(sample)), latency.began)
