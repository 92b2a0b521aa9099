"""Latency of reviews while a large cluster is read for the first time, and while everything in it changes."""

import itertools
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadtest import large_reviews, latency, targets
from loadtest.large import Standin, wait_until_calm, wait_until_counted
from loadtest.large_life import CLAIM_EVENTS_A_SECOND, life
from loadtest.large_reviews import FAILED, LATE, ROOM, TAKEN, UNKNOWN, WRONG, Tide, at_once, judged, with_claims
from loadtest.latency import Latency
from loadtest.peer_rounds import median
from loadtest.servers import Running
from loadtest.targets import Figure, Run

RATE = 1000

SYNC_SECONDS = 20
"""Longer than the first lists take; what comes after them is left out."""

OFTEN_SECONDS = 2.0
"""Between two rounds of pool statuses where they are what is measured; otherwise a minute, of which little is seen."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """What happens meanwhile."""

    name: str
    every: Mapping[str, int]
    rate: int = CLAIM_EVENTS_A_SECOND


_CALM = (
    _Condition("quiet", {}, 0),
    _Condition("200 claim events a second", {"tide": 2}),
    _Condition("a slice changes each second", {"slice": 1}, 0),
    _Condition("a class of all 80,000 devices changes each 2 s", {"class": 2}, 0),
)
_REFRESHING = (
    _Condition("all 10,000 pools counted each 2 s", {}, 0),
    _Condition("all of that together", {"tide": 2, "slice": 1, "class": 2}),
)


def churn(run: Run) -> Iterator[Figure]:
    """p50 to the longest under each condition, of reviews that do not wait on purpose; and what was answered."""
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, Standin(Path(folder), "large") as standin:
        for refresh, conditions in ((60.0, _CALM), (OFTEN_SECONDS, _REFRESHING)):
            with standin.followed(refresh) as server:
                found = _first_sync(server)
                worst = max(worst, at_once(found).p99)
                name = "first sync" if refresh > OFTEN_SECONDS else "first sync, pools counted each 2 s"
                now = Tide([(0.0, TAKEN if standin.tell(rate=0) else ROOM)])
                yield from _rows(name, [found], now, run)
                yield Figure(f"{name}: until refusals are possible", found.samples[-1].intended, "s")
                wait_until_calm(server)
                yield Figure(f"{name}: until all classes are counted", time.time() - found.began, "s")
                for condition in conditions:
                    with life(standin, condition.every, rate=condition.rate) as tide:
                        rounds = [_measured(server, run.seconds) for _ in range(run.rounds)]
                    worst = max(worst, statistics.median(at_once(each).p99 for each in rounds))
                    yield from _rows(condition.name, rounds, tide, run)
    yield Figure(targets.P99_LARGE, worst * 1e3, "ms")


def _measured(server: Running, seconds: float) -> Latency:
    return latency.measure(large_reviews.targets(server), RATE, seconds, server.ca)


def _first_sync(server: Running) -> Latency:
    """From when it listens until it knows enough to refuse."""
    found = latency.measure(large_reviews.targets(server), RATE, SYNC_SECONDS, server.ca, warm_up_requests=0)
    wait_until_counted(server)
    verdict = f'"verdict":"{TAKEN}"'.encode()
    known = next((s.intended for s in found.samples if verdict in s.answer), float("inf"))
    return Latency(tuple(sample for sample in found.samples if sample.intended <= known), found.began)


def _rows(name: str, rounds: list[Latency], tide: Tide, run: Run) -> Iterator[Figure]:
    prompt = [at_once(each) for each in rounds]
    answers: Counter[str] = Counter()
    for each, quick in zip(rounds, prompt, strict=True):
        seconds = {
            "p50": quick.p50,
            "p99": quick.p99,
            "p99.9": quick.p999,
            "longest": quick.longest,
            "late": quick.late(0.99),
        }
        became = judged(each, tide)
        run.record({"part": "churn", "condition": name} | seconds | became)
        answers += became
    for what, share in (("p50", 0.5), ("p99", 0.99)):
        values = [each.quantile(share) * 1e3 for each in prompt]
        yield median(f"{name}: {what}", values, "ms")
    late = [each.late(0.99) * 1e3 for each in prompt]
    yield median(f"{name}: of that, the client was late by, p99", late, "ms")
    whole = Latency(tuple(itertools.chain.from_iterable(each.samples for each in prompt)))
    yield Figure(f"{name}: p99.9 of all rounds", whole.p999 * 1e3, "ms")
    yield Figure(f"{name}: longest", whole.longest * 1e3, "ms")
    claims = [with_claims(each).p99 * 1e3 for each in rounds]
    yield median(f"{name}: p99 of reviews that read a claim", claims, "ms")
    for what in (WRONG, FAILED, LATE, UNKNOWN):
        yield Figure(f"{name}: {what} answers of {answers.total():,}", answers[what], "")
