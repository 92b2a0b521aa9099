"""Ours and its peers in turn: CPU per review, and latency at constant rates, as ratios within a round.

What a shared machine does to one server it does to the next one a second later; over the minutes of a run it does not
stay the same.
"""

import itertools
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from loadtest import latency, payloads, saturation, targets
from loadtest.payloads import Review
from loadtest.servers import FLOOR, MINIMAL, OURS, PYDANTIC, WHOLE, Running, serving
from loadtest.targets import Figure, Run

ROWS = {FLOOR: targets.FLOOR, MINIMAL: targets.MINIMAL, WHOLE: targets.WHOLE, PYDANTIC: targets.PYDANTIC}
"""What our reviews per core are held against."""

RATES = (200, 1000)

_ROUND = (FLOOR, MINIMAL, OURS, WHOLE, PYDANTIC, OURS, MINIMAL, FLOOR)
"""What runs twice is taken as the mean of both: a round that drifts hurts nobody."""


def peers(run: Run) -> Iterator[Figure]:
    """CPU per review, for every size of review."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), (OURS, *ROWS)) as servers:
        for size in payloads.SIZES:
            rounds = [cpu_round(servers, size, run) for _ in range(run.rounds)]
            for name in servers:
                yield median(f"{size / 1000:.1f} kB, {name}: CPU per review", [each[name] for each in rounds], "us")
            for name, row in ROWS.items():
                title = row if size == payloads.SIZE else f"{size / 1000:.1f} kB, {row}"
                yield median(title, [each[name] / each[OURS] for each in rounds])
        for name, server in servers.items():
            yield Figure(f"{name}: resident memory after that", server.resident_mb(), "MB")


def cpu_round(servers: Mapping[str, Running], size: int, run: Run) -> dict[str, float]:
    """Microseconds per review of each of these servers, each measured once or twice."""
    found = defaultdict(list)
    for name in _ROUND:
        if name in servers:
            cost = saturation.cost(servers[name], payloads.mix(size), run.seconds)
            run.record({"part": "peers", "server": name, "size": size, "us": cost.micros, "busy": cost.busy})
            found[name].append(cost.micros)
    return {name: statistics.fmean(each) for name, each in found.items()}


def kinds(run: Run) -> Iterator[Figure]:
    """What each kind of review costs ours, beside the floor and the minimal webhook in Go."""
    names = (FLOOR, MINIMAL, OURS)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), names) as servers:
        for kind in payloads.KINDS:
            alike = [Review(kind, payloads.body(kind, number=number)) for number in range(kind.share)]
            found = defaultdict(list)
            for _, (name, server) in itertools.product(range(run.rounds), servers.items()):
                found[name].append(saturation.cost(server, alike, run.seconds).micros)
                run.record({"part": "kinds", "server": name, "kind": kind.name, "us": found[name][-1]})
            for name in names:
                yield median(f"8.6 kB, {kind.name}, {name}: CPU per review", found[name], "us")
            ratios = [floor / ours for floor, ours in zip(found[FLOOR], found[OURS], strict=True)]
            yield median(f"8.6 kB, {kind.name}: {targets.FLOOR}", ratios)


def latencies(run: Run) -> Iterator[Figure]:
    """p50 and p99 of ours and of the minimal webhook in Go at each rate."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), (MINIMAL, OURS)) as servers:
        for rate in RATES:
            rounds = [latency_round(servers, rate, run) for _ in range(run.rounds)]
            for name, (what, share) in itertools.product(servers, (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))):
                quantiles = [each[name].quantile(share) * 1e3 for each in rounds]
                yield median(f"{what} at {rate} a second, {name}", quantiles, "ms")
            late = [each[name].late(0.5) * 1e3 for each in rounds for name in servers]
            yield median(f"at {rate} a second: of that, the client was late by", late, "ms")
            errors = sum(each[name].errors for each in rounds for name in servers)
            yield Figure(f"at {rate} a second: requests without an answer", errors, "")
            if rate == RATES[-1]:
                yield median(targets.P50, [each[OURS].p50 / each[MINIMAL].p50 for each in rounds])
                yield median(targets.P99, [each[OURS].p99 / each[MINIMAL].p99 for each in rounds])


def latency_round(servers: Mapping[str, Running], rate: int, run: Run) -> dict[str, latency.Latency]:
    """Each of these servers once."""
    found = {}
    for name, server in servers.items():
        reviews = [latency.Target(server.url(each.kind.path), each.body) for each in payloads.mix()]
        found[name] = latency.measure(reviews, rate, run.seconds, server.ca)
        quantiles = {"p50": found[name].p50, "p99": found[name].p99, "p99.9": found[name].p999}
        errors = {"longest": found[name].longest, "errors": found[name].errors}
        run.record({"part": "latency", "server": name, "rate": rate} | quantiles | errors)
    return found


def median(name: str, values: Sequence[float], unit: str = "") -> Figure:
    """The row of values that should be alike."""
    return Figure(name, statistics.median(values), unit, min(values), max(values))
