"""What Prometheus is told: counters fed at the doors, gauges computed when they are scraped.

The only importer of `prometheus_client`. Its metric objects take a lock for every increment, so the doors count in
plain integers (one event loop, one writer) and a collector turns them into samples. Labels come from closed sets or
from the snapshot, never from a request.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from app.dra.capacity import ClassCapacity
from app.dra.judgement import World
from app.dra.snapshot import age_seconds
from app.dra.vacancy import Vacancy
from app.dra.wake import End, WakeQueue

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

BUCKETS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Seconds. A review takes tens of microseconds, one that reads a claim milliseconds; the API server waits for 1 s."""

MODES = ("enforce", "warn", "audit")
DECISIONS = ("allow", "deny")
BAD_REQUEST_CODES = (400, 404, 405, 413, 415)


class DoorCounts:
    """What happened at the webhook since the start. Written by the doors, on the event loop only."""

    __slots__ = ("bad_requests", "buckets", "decisions", "panics", "refusals", "seconds", "verdicts")

    def __init__(self) -> None:
        self.decisions: Counter[tuple[str, str]] = Counter()
        """By decision and mode."""
        self.verdicts: Counter[tuple[str, str]] = Counter()
        """By verdict and reason."""
        self.refusals = {"new": 0, "repeated": 0}
        """By attempt; "new" is one a minute of each owner, and every one of a bare pod."""
        self.bad_requests: Counter[int] = Counter()
        """By status code."""
        self.panics = 0
        """Exceptions of ours; each review that met one was admitted."""
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def answered(self, decision: str, mode: str) -> None:
        """Count one answered review."""
        self.decisions[decision, mode] += 1

    def judged(self, verdict: str, reason: str) -> None:
        """Count one verdict."""
        self.verdicts[verdict, reason] += 1

    def refused(self, *, is_repeat: bool) -> None:
        """Count one refusal."""
        self.refusals["repeated" if is_repeat else "new"] += 1

    def took(self, seconds: float) -> None:
        """Count the time of one answered review, from its body's last byte to ours."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


@dataclass(frozen=True, slots=True)
class WatchCounts:
    """How it stands with the watch of one kind."""

    kind: str
    current: bool
    objects: int
    unreadable: int
    interruptions: int


@dataclass(frozen=True, slots=True)
class RiverCounts:
    """What happened in the slow river since the start."""

    requests: Mapping[tuple[str, str], int]
    """Pool status requests by driver and outcome."""
    refresh_seconds: float
    """How long the last round of them took."""
    sources: Mapping[str, str]
    """Whom the judgement believes, by driver."""
    watches: tuple[WatchCounts, ...]


@dataclass(frozen=True, slots=True)
class CertificateCounts:
    """How it stands with the webhook's certificate."""

    ends: Mapping[str, float | None]
    """When the serving certificate and, where it is ours, its authority end; None: there is none yet."""
    rotations: Mapping[str, int] | None = None
    """Changes of our own certificates since the start, by outcome; None: others make them."""
    in_step: bool | None = None
    """Whether every webhook configuration trusts exactly what it should; None: that is others' business."""


class Metrics:
    """The text of `/metrics`."""

    def __init__(  # noqa: PLR0913 - parts are handed in
        self,
        *,
        version: str,
        counts: DoorCounts,
        world: Callable[[], World],
        now: Callable[[], float],
        certificates: Callable[[], CertificateCounts],
        river: Callable[[], RiverCounts] | None = None,
        wake: WakeQueue | None = None,
    ) -> None:
        """`river`: None where files stand in for a cluster; `wake`: None where nobody is woken."""
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._registry.register(_Doors(counts))
        self._registry.register(_Ages(world, now))
        if river is not None:
            self._registry.register(_River(river))
        if wake is not None:
            self._registry.register(_Wake(wake))
        self._registry.register(_Certificates(certificates))
        self._registry.register(_Process(version))

    def text(self, classes: Iterable[ClassCapacity], pools: Mapping[tuple[str, Vacancy], int]) -> bytes:
        """All samples, in the text format of Prometheus; `pools` by driver and vacancy."""
        return generate_latest(self._registry) + generate_latest(_Capacity(classes, pools))


class _Doors(Collector):
    def __init__(self, counts: DoorCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        counts = self._counts
        decisions = {(decision, mode): 0 for decision in DECISIONS for mode in MODES} | counts.decisions
        yield _counter("vacancy_decisions", "Reviews answered, by decision and mode.", ("decision", "mode"), decisions)
        yield _counter(
            "vacancy_verdicts", "Pods judged, by verdict and reason.", ("verdict", "reason"), counts.verdicts
        )
        yield _counter(
            "vacancy_refusals",
            "Pods refused; repeated: of an owner that was refused in the same minute.",
            ("attempt",),
            {(attempt,): count for attempt, count in counts.refusals.items()},
        )
        bad = {(str(code),): counts.bad_requests[code] for code in BAD_REQUEST_CODES}
        yield _counter("vacancy_bad_requests", "Requests to the webhook that were no review, by code.", ("code",), bad)
        yield _counter("vacancy_panics", "Exceptions while judging; the pods were admitted.", (), {(): counts.panics})
        histogram = HistogramMetricFamily("vacancy_admit_seconds", "Time to answer a review.")
        total, buckets = 0, []
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts.buckets, strict=True):
            total += count
            buckets.append((bound, float(total)))
        histogram.add_metric([], buckets, counts.seconds)
        yield histogram


class _Ages(Collector):
    """How old the counts of the cluster are."""

    def __init__(self, world: Callable[[], World], now: Callable[[], float]) -> None:
        self._world, self._now = world, now

    def collect(self) -> Iterator[GaugeMetricFamily]:
        world, now = self._world(), self._now()
        age = GaugeMetricFamily("vacancy_snapshot_age_seconds", "Age of the driver's newest count.", labels=("driver",))
        for driver, status in sorted(world.snapshot.statuses.items()):
            if (seconds := age_seconds(status, now)) is not None:
                age.add_metric((driver,), seconds)
        yield age


class _Capacity(Collector):
    """The same numbers as the page shows."""

    def __init__(self, classes: Iterable[ClassCapacity], pools: Mapping[tuple[str, Vacancy], int]) -> None:
        self._classes, self._pools = classes, pools

    def collect(self) -> Iterator[GaugeMetricFamily]:
        devices = GaugeMetricFamily(
            "vacancy_class_devices",
            "Devices of a class by state; no sample where it is unknown.",
            labels=("class", "state"),
        )
        vacancies = GaugeMetricFamily(
            "vacancy_class_vacancy", "1 for what the class can still give.", labels=("class", "vacancy", "source")
        )
        for each in self._classes:
            vacancies.add_metric((each.name, each.vacancy, each.source), 1)
            for state in ("total", "allocated", "available", "unavailable"):
                if (count := getattr(each.counts, state)) is not None:
                    devices.add_metric((each.name, state), count)
        yield devices
        yield vacancies
        gauge = GaugeMetricFamily("vacancy_pools", "Pools by what they can still give.", labels=("driver", "vacancy"))
        for labels, count in sorted(self._pools.items()):
            gauge.add_metric(labels, count)
        yield gauge


class _River(Collector):
    """The slow river: what is read of the cluster, and how current it is."""

    def __init__(self, counts: Callable[[], RiverCounts]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        counts = self._counts()
        yield _counter(
            "vacancy_pool_status_requests",
            "Requests for pool statuses, by driver and outcome.",
            ("driver", "outcome"),
            counts.requests,
        )
        yield GaugeMetricFamily("vacancy_refresh_seconds", "Time of the last round of them.", counts.refresh_seconds)
        sources = GaugeMetricFamily("vacancy_driver_source", "1, for the source in use.", labels=("driver", "source"))
        for labels in sorted(counts.sources.items()):
            sources.add_metric(labels, 1)
        yield sources
        current = GaugeMetricFamily("vacancy_watch_current", "1 while the kind is known and current.", labels=("kind",))
        objects = GaugeMetricFamily("vacancy_watch_objects", "Objects of the kind.", labels=("kind",))
        unreadable = GaugeMetricFamily("vacancy_watch_unreadable", "Of these, not understood.", labels=("kind",))
        for watch in counts.watches:
            current.add_metric((watch.kind,), watch.current)
            objects.add_metric((watch.kind,), watch.objects)
            unreadable.add_metric((watch.kind,), watch.unreadable)
        yield from (current, objects, unreadable)
        yield _counter(
            "vacancy_watch_interruptions",
            "How often the kind was lost.",
            ("kind",),
            {(watch.kind,): watch.interruptions for watch in counts.watches},
        )


class _Certificates(Collector):
    def __init__(self, counts: Callable[[], CertificateCounts]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        counts = self._counts()
        ends = GaugeMetricFamily(
            "vacancy_certificate_expiry_timestamp_seconds", "When the certificate ends.", labels=("kind",)
        )
        for kind, moment in counts.ends.items():
            if moment is not None:
                ends.add_metric((kind,), moment)
        yield ends
        if counts.rotations is not None:
            outcomes = {(outcome,): count for outcome, count in counts.rotations.items()}
            yield _counter("vacancy_certificate_rotations", "Changes of certificates.", ("outcome",), outcomes)
        if counts.in_step is not None:
            yield GaugeMetricFamily(
                "vacancy_ca_bundle_in_step", "1 while all configurations trust what they should.", counts.in_step
            )


class _Wake(Collector):
    """The owners of refused pods."""

    def __init__(self, queue: WakeQueue) -> None:
        self._queue = queue

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        ends = {(end.value,): self._queue.ends[end] for end in End}
        yield _counter("vacancy_wake_nudges", "Nudges of owners of refused pods, by outcome.", ("outcome",), ends)
        yield GaugeMetricFamily("vacancy_wake_waiting_owners", "Owners that wait for a device.", len(self._queue))
        dropped = {(): self._queue.dropped}
        yield _counter("vacancy_wake_dropped_owners", "Owners not remembered: too many, or too large.", (), dropped)


class _Process(Collector):
    def __init__(self, version: str) -> None:
        self._version = version

    def collect(self) -> Iterator[GaugeMetricFamily]:
        info = GaugeMetricFamily("vacancy_build_info", "1, for the version that runs.", labels=("version",))
        info.add_metric((self._version,), 1)
        yield info


def _counter(name: str, text: str, labels: tuple[str, ...], values: Mapping[Any, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family
