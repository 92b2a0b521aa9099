"""What a scrape is told of owners that wait."""

from app.dra.wake import End, WakeQueue
from app.metrics import CertificateCounts, DoorCounts, Metrics
from tests.builders import NOON
from tests.dra.line import Line


def scraped(queue: WakeQueue | None) -> list[str]:
    metrics = Metrics(
        version="1",
        counts=DoorCounts(),
        world=lambda: Line().world,
        now=lambda: NOON,
        certificates=lambda: CertificateCounts({}),
        wake=queue,
    )
    return [line for line in metrics.text([], {}).decode().splitlines() if line.startswith("vacancy_wake")]


def test_every_outcome_is_there_from_the_start() -> None:
    assert scraped(WakeQueue()) == [
        *(f'vacancy_wake_nudges_total{{outcome="{end}"}} 0.0' for end in sorted(End)),
        "vacancy_wake_waiting_owners 0.0",
        "vacancy_wake_dropped_owners_total 0.0",
    ]


def test_who_waits_is_counted() -> None:
    line = Line().refused("a", "b")
    line.queue.dropped = 3
    line.queue.ends[End.SILENT] = 2
    lines = scraped(line.queue)
    assert 'vacancy_wake_nudges_total{outcome="silent"} 2.0' in lines
    assert lines[-2:] == ["vacancy_wake_waiting_owners 2.0", "vacancy_wake_dropped_owners_total 3.0"]


def test_where_nobody_is_woken_there_is_nothing_to_tell() -> None:
    assert scraped(None) == []
