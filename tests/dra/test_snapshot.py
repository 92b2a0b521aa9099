"""One answer: what it says, how old it is, and what the sources conclude from it."""

from pathlib import Path

import msgspec
import pytest
import yaml

from app.dra.reasons import Reason
from app.dra.snapshot import (
    Problem,
    age_seconds,
    confirms,
    driver_status,
    fresh,
    proves_free,
    status_vacancy,
)
from app.dra.vacancy import PoolStatus, Vacancy
from tests.dra.requests_for_statuses import (
    BOTH_FULL,
    FREE,
    FULL,
    MAX_AGE,
    NOON,
    UNANSWERED,
    UNKNOWN,
    Json,
    answered,
    conclusion,
    condition,
    decoded,
    pool,
    request,
    status_of,
    unset_counts,
)

# --- One request (the rows R1 to R8 and R16 end at the border: no object, a foreign one, an old server) ---------------

R_TABLE: dict[str, tuple[Json, Problem | None, Vacancy]] = {
    "R6 no status": (UNANSWERED, Problem.SILENT, UNKNOWN),
    "R9 failed": (request(condition("Failed"), status={"poolCount": 0}), Problem.FAILED, UNKNOWN),
    "R10 no condition": (request(status={"poolCount": 1, "pools": [pool("n1")]}), Problem.MALFORMED, UNKNOWN),
    "R10 not complete": (
        request(condition(status="False"), status={"poolCount": 1, "pools": [pool("n1")]}),
        Problem.MALFORMED,
        UNKNOWN,
    ),
    "R10 complete and failed": (
        request(condition(), condition("Failed"), status={"poolCount": 1, "pools": [pool("n1")]}),
        Problem.MALFORMED,
        UNKNOWN,
    ),
    "R10 complete twice": (
        request(condition(), condition(), status={"poolCount": 1, "pools": [pool("n1")]}),
        Problem.MALFORMED,
        UNKNOWN,
    ),
    "R10 an unknown condition only": (
        request(condition("Done"), status={"poolCount": 1, "pools": [pool("n1")]}),
        Problem.MALFORMED,
        UNKNOWN,
    ),
    "R10 an unknown condition beside complete": (
        request(condition(), condition("Partial"), status={"poolCount": 1, "pools": [pool("n1")]}),
        Problem.MALFORMED,
        UNKNOWN,
    ),
    "R10 complete at no time": (
        request({"type": "Complete", "status": "True"}, status={"poolCount": 1, "pools": [pool("n1")]}),
        Problem.MALFORMED,
        UNKNOWN,
    ),
    "R10 complete at a time without a zone": (
        request(
            condition() | {"lastTransitionTime": "2026-01-01T12:00:00"}, status={"poolCount": 1, "pools": [pool("n1")]}
        ),
        Problem.MALFORMED,
        UNKNOWN,
    ),
    "R10 complete before the first year": (
        request(
            condition() | {"lastTransitionTime": "0001-01-01T00:00:00+23:59"},
            status={"poolCount": 1, "pools": [pool("n1")]},
        ),
        Problem.MALFORMED,
        UNKNOWN,
    ),
    "R11 no pool": (answered(), Problem.NO_POOLS, UNKNOWN),
    "R12 truncated, a listed pool is free": (answered(pool("n1", free=1), count=2), None, FREE),
    "R12 truncated, the listed pools are full": (answered(pool("n1"), count=2), None, UNKNOWN),
    "R13 more pools than counted": (answered(pool("n1"), pool("n2"), count=1), Problem.MALFORMED, UNKNOWN),
    "R13 a pool twice": (answered(pool("n1"), pool("n1")), Problem.MALFORMED, UNKNOWN),
    "R13 a pool of another driver": (answered(pool("n1", driver="b.example.com")), Problem.MALFORMED, UNKNOWN),
    "R13 a pool without a name": (answered(pool("n1"), pool("")), Problem.MALFORMED, UNKNOWN),
    "R13 no count of pools": (request(condition(), status={"pools": [pool("n1")]}), Problem.MALFORMED, UNKNOWN),
    "R13 a negative count of pools": (request(condition(), status={"poolCount": -1}), Problem.MALFORMED, UNKNOWN),
    "R13 pools counted, none listed": (request(condition(), status={"poolCount": 3}), Problem.MALFORMED, UNKNOWN),
    "R14 the whole driver seen": (answered(pool("n1"), pool("n2")), None, FULL),
    "R15 from the future": (answered(pool("n1"), at=NOON + 6), Problem.CLOCK, UNKNOWN),
}


@pytest.mark.parametrize(("made", "problem", "vacancy"), R_TABLE.values(), ids=R_TABLE.keys())
def test_a_request_concludes(made: Json, problem: Problem | None, vacancy: Vacancy) -> None:
    status = status_of(made)
    assert status.problem is problem
    assert conclusion(status, n1=1)[0] is vacancy
    if problem is not None:
        assert status.pools == {}
        assert conclusion(status, n1=1) == (UNKNOWN, Reason.NoSource)


EXAMPLES = list(yaml.safe_load_all((Path(__file__).parent / "pool_status_examples.yaml").read_text(encoding="utf-8")))


@pytest.mark.parametrize("example", EXAMPLES, ids=[e["example"] for e in EXAMPLES])
@pytest.mark.parametrize("tolerates", [False, True], ids=["without tolerations", "with tolerations"])
def test_an_example_proves(example: Json, tolerates: bool) -> None:  # noqa: FBT001  # filled in by pytest
    [asked] = decoded(example["request"])
    status = driver_status([asked], received_at=NOON + 1e9)
    listed = (asked.status.pools if asked.status else None) or ()
    pools = {p.pool_name: p.generation or 0 for p in listed}
    pools |= {f"beyond-{i}": 1 for i in range(status.pool_count - len(pools))}
    now = status.taken_at or NOON
    found, _ = status_vacancy(status, pools, tolerates=tolerates, now=now, max_age_seconds=MAX_AGE)
    assert found.value == example["proves"][tolerates]


# --- Age --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "is_fresh", "age"),
    [
        pytest.param(NOON, True, 0, id="just counted"),
        pytest.param(NOON + 90, True, 90, id="as old as allowed"),
        pytest.param(NOON + 90.5, False, 90.5, id="a moment older"),
        pytest.param(NOON - 5, True, 0, id="5 s in the future is age 0"),
        pytest.param(NOON - 5.5, False, 0, id="more is a clock fault"),
    ],
)
def test_freshness_at_the_edges(now: float, is_fresh: bool, age: float) -> None:  # noqa: FBT001  # filled in by pytest
    status = status_of(answered(pool("n1")))
    assert fresh(status, now, MAX_AGE) is is_fresh
    assert age_seconds(status, now) == age
    expected = (FULL, Reason.NoGPUCapacity) if is_fresh else (UNKNOWN, Reason.StaleSnapshot)
    assert conclusion(status, now, n1=1) == expected
    assert confirms(status, {"n1": 1}, now, MAX_AGE) is is_fresh


def test_a_stale_count_frees_nothing_either() -> None:
    assert conclusion(status_of(answered(pool("n1", free=1))), NOON + 91, n1=1) == (UNKNOWN, Reason.StaleSnapshot)


def test_what_was_never_counted_has_no_age() -> None:
    status = status_of(UNANSWERED)
    assert age_seconds(status, NOON) is None
    assert not fresh(status, NOON, MAX_AGE)
    assert not fresh(None, NOON, MAX_AGE)


def test_a_count_is_as_old_as_its_receipt_at_least() -> None:
    status = status_of(answered(pool("n1"), at=NOON + 5), received_at=NOON)
    assert status.problem is None
    assert age_seconds(status, NOON + 60) == 60


def test_a_clock_fault_stays_one_when_the_time_has_come() -> None:
    assert not fresh(status_of(answered(pool("n1"), at=NOON + 60), received_at=NOON), NOON + 60, MAX_AGE)


# --- The source pool-status -------------------------------------------------------------------------------------------


CONCLUSIONS: dict[str, tuple[Json, dict[str, int], tuple[Vacancy, Reason]]] = {
    "every matching pool is full": (BOTH_FULL, {"n1": 1, "n2": 1}, (FULL, Reason.NoGPUCapacity)),
    "only matching pools count": (answered(pool("n1"), pool("n2", free=2)), {"n1": 1}, (FULL, Reason.NoGPUCapacity)),
    "one is free": (answered(pool("n1"), pool("n2", free=2)), {"n1": 1, "n2": 1}, (FREE, Reason.HasRoom)),
    "free beside unknown": (
        answered(unset_counts("n1"), pool("n2", free=1)),
        {"n1": 1, "n2": 1},
        (FREE, Reason.HasRoom),
    ),
    "full beside unknown": (
        answered(unset_counts("n1"), pool("n2")),
        {"n1": 1, "n2": 1},
        (UNKNOWN, Reason.PoolIncomplete),
    ),
    "counts that contradict each other": (
        answered(pool("n1", availableDevices=1), pool("n2")),
        {"n1": 1, "n2": 1},
        (UNKNOWN, Reason.PoolInvalid),
    ),
    "full beside a pool without devices": (
        answered(pool("n1"), pool("n2", totalDevices=0, allocatedDevices=0)),
        {"n1": 1, "n2": 1},
        (FULL, Reason.NoGPUCapacity),
    ),
    "no devices anywhere": (
        answered(pool("n1", totalDevices=0, allocatedDevices=0)),
        {"n1": 1},
        (UNKNOWN, Reason.NoMatchingDevice),
    ),
    "no matching pool": (BOTH_FULL, {}, (UNKNOWN, Reason.NoMatchingDevice)),
    "the slices are a generation ahead": (BOTH_FULL, {"n1": 1, "n2": 2}, (UNKNOWN, Reason.StaleSnapshot)),
    "the slices are a generation behind": (
        answered(pool("n1", generation=8)),
        {"n1": 7},
        (UNKNOWN, Reason.StaleSnapshot),
    ),
    "free, but in another generation": (
        answered(pool("n1", generation=7, free=1)),
        {"n1": 8},
        (UNKNOWN, Reason.StaleSnapshot),
    ),
    "a generation nobody can have counted": (
        answered(pool("n1", generation=0)),
        {"n1": 0},
        (UNKNOWN, Reason.StaleSnapshot),
    ),
    "generation unset": (answered(pool("n1", generation=None)), {"n1": 1}, (UNKNOWN, Reason.StaleSnapshot)),
    "a pool the status does not know": (BOTH_FULL, {"n1": 1, "n3": 1}, (UNKNOWN, Reason.StaleSnapshot)),
    "a cut list, a matching pool is not listed": (
        answered(pool("n1"), pool("n2"), count=150),
        {"n1": 1, "n3": 1},
        (UNKNOWN, Reason.NoSource),
    ),
    "a cut list, every matching pool is listed and full": (
        answered(pool("n1"), pool("n2"), count=150),
        {"n1": 1, "n2": 1},
        (UNKNOWN, Reason.NoSource),
    ),
    "a cut list, a matching pool is free": (
        answered(pool("n1"), pool("n2", free=1), count=150),
        {"n1": 1, "n2": 1},
        (FREE, Reason.HasRoom),
    ),
}


@pytest.mark.parametrize(("made", "pools", "expected"), CONCLUSIONS.values(), ids=CONCLUSIONS.keys())
def test_the_source_pool_status(made: Json, pools: dict[str, int], expected: tuple[Vacancy, Reason]) -> None:
    assert conclusion(status_of(made), **pools) == expected


def test_a_driver_nobody_asked_is_unknown() -> None:
    assert conclusion(None, n1=1) == (UNKNOWN, Reason.NoSource)


# --- The source both --------------------------------------------------------------------------------------------------

CONFIRMATIONS: dict[str, tuple[Json, dict[str, int], bool]] = {
    "the same pools": (BOTH_FULL, {"n1": 1, "n2": 1}, True),
    "counts that say free confirm as well": (answered(pool("n1", free=2)), {"n1": 1}, True),
    "a pool that is gone from the slices": (BOTH_FULL, {"n1": 1}, True),
    "a pool the status does not know": (BOTH_FULL, {"n1": 1, "n3": 1}, False),
    "another generation": (BOTH_FULL, {"n1": 1, "n2": 2}, False),
    "counts unset": (answered(pool("n1"), unset_counts("n2")), {"n1": 1, "n2": 1}, False),
    "counts that contradict each other": (answered(pool("n1", availableDevices=1)), {"n1": 1}, False),
    "stale claims are no contradiction": (answered(pool("n1", allocatedDevices=5)), {"n1": 1}, True),
    "an error beside valid counts": (answered(pool("n1", validationError="PartitionCostMismatch: x")), {"n1": 1}, True),
    "beyond a cut list": (answered(pool("n1"), count=150), {"n1": 1, "n3": 1}, True),
    "in a cut list, of another generation": (answered(pool("n1"), count=150), {"n1": 2}, False),
    "silent": (UNANSWERED, {"n1": 1}, False),
    "failed": (request(condition("Failed"), status={"poolCount": 0}), {"n1": 1}, False),
    "no pools": (answered(), {"n1": 1}, False),
}


@pytest.mark.parametrize(("made", "pools", "expected"), CONFIRMATIONS.values(), ids=CONFIRMATIONS.keys())
def test_a_status_confirms_the_slices(made: Json, pools: dict[str, int], expected: bool) -> None:  # noqa: FBT001  # filled in by pytest
    assert confirms(status_of(made), pools, NOON, MAX_AGE) is expected


def test_nobody_asked_confirms_nothing() -> None:
    assert not confirms(None, {}, NOON, MAX_AGE)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(pool("n1", free=1), True, id="one available"),
        pytest.param(pool("n1"), False, id="none available"),
        pytest.param(unset_counts("n1"), False, id="unset is not free"),
        pytest.param(pool("n1", availableDevices=1), False, id="a contradiction proves nothing"),
        pytest.param(pool("n1", free=-1, availableDevices=1), False, id="neither does a stale claim"),
    ],
)
def test_what_proves_a_free_device(made: Json, expected: bool) -> None:  # noqa: FBT001  # filled in by pytest
    assert proves_free(msgspec.convert(made, PoolStatus)) is expected
