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

from app.admission.admit import Mode
from app.dra.capacity import ClassCapacity
from app.dra.drivers import source_in_use
from app.dra.judgement import Source, World
from app.dra.reasons import Reason
from app.dra.snapshot import age_seconds
from app.dra.vacancy import Vacancy
from app.dra.verdict import Outcome
from app.dra.wake import End, WakeQueue

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

BUCKETS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Seconds. A review takes tens of microseconds, one that reads a claim milliseconds; the API server waits for 1 s."""

DECISIONS = ("allow", "deny")
BAD_REQUEST_CODES = (400, 404, 405, 413, 415)
STATES = ("total", "allocated", "available", "unavailable")
NONE = "none"
"""The source where nothing is known."""
SOURCES = (*(source.value for source in Source if source is not Source.AUTO), NONE)

_OUTCOMES = {
    Reason.NoGPUCapacity: Outcome.FULL,
    Reason.NeverFits: Outcome.NEVER,
    Reason.HasRoom: Outcome.ROOM,
    Reason.FewerThanAsked: Outcome.ROOM,
    Reason.NoDeviceRequested: Outcome.ROOM,
}
_VERDICTS = {(str(_OUTCOMES.get(reason, Outcome.UNKNOWN)), str(reason)): 0 for reason in Reason}
"""All there are, not seen yet: of a series that begins with its first event, nobody can tell an increase."""


class Times:
    """How long it took, and how often."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


class DoorCounts:
    """What happened at the webhook since the start. Written by the doors, on the event loop only."""

    __slots__ = ("bad_requests", "decisions", "open", "panics", "refusals", "times", "verdicts")

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
        self.open = 0
        """Reviews that wait for their answer."""
        self.times = {decision: Times() for decision in DECISIONS}
        """By decision: a refusal takes longer on purpose, since it is looked at twice."""

    def answered(self, decision: str, mode: str, seconds: float) -> None:
        """Count one answered review, and the time from its body's last byte to the answer."""
        self.decisions[decision, mode] += 1
        self.times[decision].add(seconds)

    def judged(self, verdict: str, reason: str) -> None:
        """Count one verdict."""
        self.verdicts[verdict, reason] += 1

    def refused(self, *, is_repeat: bool) -> None:
        """Count one refusal."""
        self.refusals["repeated" if is_repeat else "new"] += 1


@dataclass(frozen=True, slots=True)
class WatchCounts:
    """How it stands with the watch of one kind."""

    kind: str
    current: bool | None
    """None: it may not be read, or is not served; nobody waits for it."""
    objects: int
    unreadable: int
    interruptions: int


@dataclass(frozen=True, slots=True)
class RiverCounts:
    """What happened in the slow river since the start."""

    requests: Mapping[tuple[str, str], int]
    """Pool status requests by driver and outcome, those that did not happen too."""
    refresh_seconds: float
    """How long the last round of them took."""
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
        self._registry.register(_Drivers(world, now))
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

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        counts = self._counts
        decisions = {(decision, str(mode)): 0 for decision in DECISIONS for mode in Mode} | counts.decisions
        yield _counter("vacancy_decisions", "Reviews answered, by decision and mode.", ("decision", "mode"), decisions)
        verdicts = _VERDICTS | counts.verdicts
        yield _counter("vacancy_verdicts", "Pods judged, by verdict and reason.", ("verdict", "reason"), verdicts)
        yield _counter(
            "vacancy_refusals",
            "Pods refused; repeated: of an owner that was refused in the same minute.",
            ("attempt",),
            {(attempt,): count for attempt, count in counts.refusals.items()},
        )
        bad = {(str(code),): counts.bad_requests[code] for code in BAD_REQUEST_CODES}
        yield _counter("vacancy_bad_requests", "Requests to the webhook that were no review, by code.", ("code",), bad)
        yield _counter("vacancy_panics", "Exceptions while judging; the pods were admitted.", (), {(): counts.panics})
        yield GaugeMetricFamily("vacancy_open_reviews", "Reviews that wait for their answer.", counts.open)
        histogram = HistogramMetricFamily("vacancy_admit_seconds", "Time to answer a review.", labels=("decision",))
        for decision, times in counts.times.items():
            total, buckets = 0, []
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), times.buckets, strict=True):
                total += count
                buckets.append((bound, float(total)))
            histogram.add_metric((decision,), buckets, times.seconds)
        yield histogram


class _Drivers(Collector):
    """What a refusal of each driver's devices rests on, and how old their counts are."""

    def __init__(self, world: Callable[[], World], now: Callable[[], float]) -> None:
        self._world, self._now = world, now

    def collect(self) -> Iterator[GaugeMetricFamily]:
        world, now = self._world(), self._now()
        age = GaugeMetricFamily("vacancy_snapshot_age_seconds", "Age of the driver's newest count.", labels=("driver",))
        for driver, status in sorted(world.snapshot.statuses.items()):
            if (seconds := age_seconds(status, now)) is not None:
                age.add_metric((driver,), seconds)
        yield age
        sources = GaugeMetricFamily("vacancy_driver_source", "1 for the source in use.", labels=("driver", "source"))
        for driver in world.witness.drivers():
            used = source_in_use(driver, world, now) or NONE
            for source in SOURCES:
                sources.add_metric((driver, source), source == used)
        yield sources


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
        of_drivers = GaugeMetricFamily(
            "vacancy_driver_devices",
            "Devices of a class that one driver publishes, by state; no sample where it is unknown.",
            labels=("class", "driver", "state"),
        )
        vacancies = GaugeMetricFamily(
            "vacancy_class_vacancy", "1 for what the class can still give.", labels=("class", "vacancy", "source")
        )
        for each in self._classes:
            vacancies.add_metric((each.name, each.vacancy, each.source or NONE), 1)
            for state in STATES:
                if (count := getattr(each.counts, state)) is not None:
                    devices.add_metric((each.name, state), count)
                for driver, counts in each.drivers:
                    if (count := getattr(counts, state)) is not None:
                        of_drivers.add_metric((each.name, driver, state), count)
        yield from (devices, of_drivers)
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
        current = GaugeMetricFamily("vacancy_watch_current", "1 while the kind is known and current.", labels=("kind",))
        objects = GaugeMetricFamily("vacancy_watch_objects", "Objects of the kind.", labels=("kind",))
        unreadable = GaugeMetricFamily("vacancy_watch_unreadable", "Of these, not understood.", labels=("kind",))
        for watch in counts.watches:
            if watch.current is not None:
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
