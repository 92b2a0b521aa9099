"""An hour in the life of a large cluster: whether memory grows, answers get slow, or one is wrong.

`python -m loadtest soak --minutes 60 --out FILE`. It asks little of the machine, so that other work may go on beside
it: latencies are then those of a busy machine; memory and answers are not touched by that.
"""

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadtest import large_reviews, latency, targets
from loadtest.large import Standin, wait_until_calm, wait_until_counted
from loadtest.large_life import life
from loadtest.large_reviews import FAILED, LATE, UNKNOWN, WRONG, Tide, at_once, became, judged
from loadtest.servers import Running
from loadtest.targets import Figure, Run

REVIEWS_A_SECOND = 60

SAMPLE_SECONDS = 10
"""Between two looks at memory."""

EVERY_SECONDS = {"tide": 15, "slice": 20, "class": 300}

_ROUND_SECONDS = 55  # of a minute; the rest goes into starting and reading


def soak(run: Run) -> Iterator[Figure]:
    """Memory, latency by the minute, and answers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Standin(Path(folder), "large") as standin,
        standin.followed() as server,
    ):
        wait_until_counted(server)
        wait_until_calm(server)
        memory: list[tuple[float, float]] = []

        def note(second: int) -> None:
            if second % SAMPLE_SECONDS == 0:
                memory.append((second, server.resident_mb()))
                run.record({"part": "soak", "second": second, "mb": memory[-1][1], "cpu": server.cpu_seconds()})

        with life(standin, EVERY_SECONDS, each_second=note) as tide:
            minutes, answers = _asked(server, tide, run)
    later = [(at, mb) for at, mb in memory if at >= memory[-1][0] / 4]
    low, high = min(mb for _, mb in later), max(mb for _, mb in later)
    yield Figure(targets.SOAK, hourly_growth(later), "MB/h")
    yield Figure("soak: resident memory at the end, and of the last three quarters", later[-1][1], "MB", low, high)
    yield Figure("soak: p99 by the minute", statistics.median(minutes), "ms", min(minutes), max(minutes))
    yield Figure("soak: reviews", answers.total(), "")
    for what in (WRONG, FAILED, LATE, UNKNOWN):
        yield Figure(f"soak: {what} answers", answers[what], "")


def _asked(server: Running, tide: Tide, run: Run) -> tuple[list[float], Counter[str]]:
    """p99 in ms of every minute, and what became of all reviews."""
    minutes: list[float] = []
    answers: Counter[str] = Counter()
    asked, until = large_reviews.targets(server), time.monotonic() + run.minutes * 60
    while time.monotonic() < until:
        found = latency.measure(asked, REVIEWS_A_SECOND, _ROUND_SECONDS, server.ca)
        counts, prompt = judged(found, tide), at_once(found)
        minutes.append(prompt.p99 * 1e3)
        answers += counts
        seconds = {"p50": prompt.p50, "p99": prompt.p99, "p99.9": prompt.p999, "longest": prompt.longest}
        run.record({"part": "soak", "minute": len(minutes)} | seconds | counts)
        for sample in found.samples:
            if became(sample, found.began, tide) == WRONG:
                at = found.began + sample.intended
                run.record({"part": "soak", "wrong": sample.url, "at": at, "answer": sample.answer.decode()})
    return minutes, answers


def hourly_growth(points: Sequence[tuple[float, float]]) -> float:
    """By least squares, of points that are apart by seconds."""
    return statistics.linear_regression(*zip(*points, strict=True)).slope * 3600
