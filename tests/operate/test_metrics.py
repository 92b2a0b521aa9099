"""What a scrape is told: every series that can be there at its start is, what isn't known isn't, promtool agrees."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from app.cluster.pool_status import OUTCOMES
from app.dra.capacity import Counts, capacity
from app.dra.judgement import Policy, World
from app.dra.reasons import Reason
from app.dra.vacancy import Vacancy
from app.dra.wake import WakeQueue
from app.embedded import Embedded
from app.metrics import CertificateCounts, DoorCounts, Metrics, RiverCounts, WatchCounts
from tests.operate.alerts import promtool
from tests.operate.queries import OPERATE
from tests.test_docs import REFERENCE, column, table
from tests.web.reviews import pod, review
from tests.web.test_admit import Door

ROOT = Path(__file__).parents[2]
NOW = 1767268800.0  # 2026-01-01T12:00:00Z, the example's time


def example() -> World:
    return Embedded(ROOT / "examples" / "cluster", Policy(), lambda: NOW).latest.get()


def scraped(world: World, counts: DoorCounts | None = None, *watches: WatchCounts) -> str:
    metrics = Metrics(
        version="1.2.3",
        counts=counts or DoorCounts(),
        world=lambda: world,
        now=lambda: NOW,
        certificates=lambda: CertificateCounts({"serving": NOW, "ca": NOW}, {"created": 1}, in_step=True),
        river=lambda: RiverCounts(requests={("gpu.example.com", "complete"): 1}, refresh_seconds=0.1, watches=watches),
        wake=WakeQueue(),
    )
    pools = {("gpu.example.com", Vacancy.FREE): 1}
    return metrics.text(capacity(world, NOW).classes, pools).decode()


def samples(text: str, name: str) -> dict[tuple[str, ...], float]:
    """The values by their labels' values, in the order of the labels' names."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def test_promtool_finds_no_fault_with_them() -> None:
    assert promtool("check", "metrics", input=scraped(example()).encode()) == ""


def test_each_reason_is_there_from_the_start_with_its_verdict() -> None:
    documented = {(reason, verdict) for reason, verdict, *_ in table(REFERENCE, "Reasons")}
    assert samples(scraped(example()), "vacancy_verdicts_total") == dict.fromkeys(documented, 0)
    assert len(documented) == len(Reason)


def test_no_series_of_the_doors_begins_with_its_first_event() -> None:
    counts = DoorCounts()
    before = scraped(example(), counts)
    counts.answered("deny", "enforce", 0.06)
    counts.judged("full", "NoGPUCapacity")
    counts.refused(is_repeat=True)
    counts.bad_requests[400] += 1
    counts.panics += 1
    after = scraped(example(), counts)
    assert {line.rpartition(" ")[0] for line in after.splitlines()} == {
        line.rpartition(" ")[0] for line in before.splitlines()
    }
    assert sum(old != new for old, new in zip(before.splitlines(), after.splitlines(), strict=True)) > 5


def test_one_source_is_in_use_of_each_driver_and_the_others_are_zero() -> None:
    found = samples(scraped(example()), "vacancy_driver_source")
    drivers = {driver for driver, _ in found}
    assert "gpu.example.com" in drivers
    for driver in drivers:
        of_driver = {source: value for (each, source), value in found.items() if each == driver}
        assert set(of_driver) == {"both", "witness", "pool-status", "none"}
        assert sum(of_driver.values()) == 1


def test_the_devices_of_all_drivers_together_are_those_of_the_class() -> None:
    text = scraped(example())
    of_class, of_drivers = samples(text, "vacancy_class_devices"), samples(text, "vacancy_driver_devices")
    known = {(name, state) for name, state in of_class if name == "gpu.example.com"}
    assert {state for _, state in known} == {"total", "allocated", "available", "unavailable"}
    for name, state in known:
        parts = [value for (each, _, its), value in of_drivers.items() if (each, its) == (name, state)]
        assert sum(parts) == of_class[name, state]


def test_an_unknown_pool_leaves_the_sum_of_its_driver_unknown() -> None:
    assert Counts(1, 1, 0, 0) + Counts(2, None, 2, 0) == Counts(3, None, 2, 0)


def test_every_outcome_of_a_request_is_documented() -> None:
    assert column(OPERATE, "VacancyDriverSilent") == list(OUTCOMES)


def test_a_kind_that_may_not_be_read_is_neither_current_nor_lost() -> None:
    watches = (WatchCounts("pods", *(False, 1, 0, 1)), WatchCounts("devicetaintrules", *(None, 0, 0, 0)))
    assert samples(scraped(example(), None, *watches), "vacancy_watch_current") == {("pods",): 0}


def test_a_review_is_open_while_it_waits_for_its_answer(tmp_path: Path) -> None:
    door, seen = Door(tmp_path), []
    world = door.world

    def watched() -> World:
        seen.append(door.counts.open)
        return world()

    door.world = watched
    door.post(review(pod()))
    assert set(seen) == {1}
    assert door.counts.open == 0
    door.post(b"no review")
    assert door.counts.open == 0


def test_the_time_to_answer_is_told_by_decision(tmp_path: Path) -> None:
    """For a refusal is looked at twice, and what that takes must not make an admission look slow."""
    door = Door(tmp_path, second_look_seconds=0.001)
    door.post(review(pod()))
    door.post(review(pod("example.com/roomy")))
    times = door.counts.times
    assert [sum(times[decision].buckets) for decision in ("allow", "deny")] == [1, 1]
    assert times["deny"].seconds > 0.001
