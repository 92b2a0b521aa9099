"""Answers put together: which request counts, how old it is, and what the sources conclude from it."""

import copy
import itertools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.dra.reasons import Reason
from app.dra.snapshot import (
    DriverStatus,
    Problem,
    Snapshot,
    age_seconds,
    build_snapshot,
    confirms,
    driver_status,
    fresh,
    proves_free,
    status_vacancy,
)
from app.dra.vacancy import PoolStatus, ResourcePoolStatusRequest, Vacancy

FREE, FULL, UNKNOWN = Vacancy.FREE, Vacancy.FULL, Vacancy.UNKNOWN
GPU = "gpu.example.com"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
MAX_AGE = 90.0

Json = dict[str, Any]


def pool(name: str, *, free: int = 0, generation: int | None = 1, driver: str = GPU, **fields: object) -> Json:
    """Four devices, `free` of them available."""
    counts = {"totalDevices": 4, "allocatedDevices": 4 - free, "availableDevices": free, "unavailableDevices": 0}
    return {"driver": driver, "poolName": name, "generation": generation} | counts | fields


def unset_counts(name: str) -> Json:
    return {"driver": GPU, "poolName": name, "generation": 1, "validationError": "PoolIncomplete: 1/2 slices"}


def condition(kind: str = "Complete", at: float = NOON, status: str = "True") -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": datetime.fromtimestamp(at, UTC).isoformat()}


def request(*conditions: Json, status: Json | None = None, driver: str = GPU, only: str | None = None) -> Json:
    spec = {"driver": driver, "limit": 1000} | ({} if only is None else {"poolName": only})
    whole = {"metadata": {"name": "vacancy-1"}, "spec": spec}
    return whole if status is None else whole | {"status": status | {"conditions": list(conditions)}}


def answered(*pools: Json, count: int | None = None, at: float = NOON, only: str | None = None) -> Json:
    """A request with `Complete`, counted at `at`."""
    count = len(pools) if count is None else count
    return request(condition(at=at), status={"poolCount": count, "pools": list(pools)}, only=only)


def decoded(*requests: Json) -> list[ResourcePoolStatusRequest]:
    return msgspec.convert(list(requests), list[ResourcePoolStatusRequest])


def status_of(*requests: Json, received_at: float = NOON) -> DriverStatus:
    return driver_status(decoded(*requests), received_at=received_at)


def conclusion(status: DriverStatus | None, now: float = NOON, **pools: int) -> tuple[Vacancy, Reason]:
    return status_vacancy(status, pools, tolerates=False, now=now, max_age_seconds=MAX_AGE)


UNANSWERED = request()

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

BOTH_FULL = answered(pool("n1"), pool("n2"))

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


# --- Several requests for one driver ----------------------------------------------------------------------------------

SEVERAL: dict[str, tuple[list[Json], tuple[Vacancy, Reason], float | None]] = {
    # sentence: requests, conclusion about n1 and n2, age at noon
    "the newest answer wins": (
        [answered(pool("n1", free=1), pool("n2"), at=NOON - 30), BOTH_FULL],
        (FULL, Reason.NoGPUCapacity),
        0,
    ),
    "the newest answer wins, free": (
        [answered(pool("n1"), pool("n2"), at=NOON - 30), answered(pool("n1", free=1), pool("n2"))],
        (FREE, Reason.HasRoom),
        0,
    ),
    "a request without an answer hides none": ([BOTH_FULL, UNANSWERED], (FULL, Reason.NoGPUCapacity), 0),
    "a failed one hides none": (
        [BOTH_FULL, request(condition("Failed", at=NOON + 1), status={"poolCount": 0})],
        (FULL, Reason.NoGPUCapacity),
        0,
    ),
    "an old answer beside none stays old": (
        [answered(pool("n1"), pool("n2"), at=NOON - 600), UNANSWERED],
        (UNKNOWN, Reason.StaleSnapshot),
        600,
    ),
    "no answer at all": ([UNANSWERED, request(only="n1")], (UNKNOWN, Reason.NoSource), None),
    "the newest answer cannot be": (
        [BOTH_FULL, answered(pool("n1"), pool("n1"), at=NOON + 1)],
        (UNKNOWN, Reason.NoSource),
        None,
    ),
    "the newest answer has no pools": ([answered(pool("n1"), at=NOON - 1), answered()], (UNKNOWN, Reason.NoSource), 0),
    "two answers of one second differ": (
        [BOTH_FULL, answered(pool("n1"), pool("n2", free=1))],
        (UNKNOWN, Reason.NoSource),
        None,
    ),
    "two answers of one second agree": ([BOTH_FULL, BOTH_FULL], (FULL, Reason.NoGPUCapacity), 0),
    "a silent driver answers pool by pool": (
        [UNANSWERED, answered(pool("n1"), at=NOON - 3, only="n1"), answered(pool("n2"), at=NOON - 2, only="n2")],
        (FULL, Reason.NoGPUCapacity),
        3,
    ),
    "a silent driver answers for one pool only": (
        [UNANSWERED, answered(pool("n1"), only="n1"), request(only="n2")],
        (UNKNOWN, Reason.StaleSnapshot),
        0,
    ),
    "a cut list is completed": (
        [answered(pool("n1"), count=2, at=NOON - 9), answered(pool("n2"), at=NOON - 4, only="n2")],
        (FULL, Reason.NoGPUCapacity),
        9,
    ),
    "one pool was counted again, free": (
        [answered(pool("n1"), pool("n2"), at=NOON - 9), answered(pool("n2", free=1), only="n2")],
        (FREE, Reason.HasRoom),
        9,
    ),
    "one pool was counted before, free": (
        [BOTH_FULL, answered(pool("n2", free=1), at=NOON - 9, only="n2")],
        (FULL, Reason.NoGPUCapacity),
        0,
    ),
    "one pool was counted in the same second, differently": (
        [BOTH_FULL, answered(pool("n2", free=1), only="n2")],
        (UNKNOWN, Reason.StaleSnapshot),
        0,
    ),
    "one pool was counted in the same second, alike": (
        [BOTH_FULL, answered(pool("n2"), only="n2")],
        (FULL, Reason.NoGPUCapacity),
        0,
    ),
    "one pool has vanished since": (
        [answered(pool("n1"), pool("n2"), at=NOON - 9), answered(only="n2")],
        (UNKNOWN, Reason.StaleSnapshot),
        9,
    ),
    "one pool had vanished before": ([BOTH_FULL, answered(at=NOON - 9, only="n2")], (FULL, Reason.NoGPUCapacity), 0),
    "one pool was counted before it vanished": (
        [answered(pool("n1")), answered(pool("n2"), at=NOON - 9, only="n2")],
        (UNKNOWN, Reason.StaleSnapshot),
        0,
    ),
    "an answer for one pool names another": (
        [answered(pool("n1"), pool("n2"), at=NOON - 9), answered(pool("n1"), only="n2")],
        (UNKNOWN, Reason.StaleSnapshot),
        9,
    ),
    "an answer for one pool counts two": (
        [answered(pool("n1"), pool("n2"), at=NOON - 9), answered(pool("n2"), count=2, only="n2")],
        (UNKNOWN, Reason.StaleSnapshot),
        9,
    ),
}


@pytest.mark.parametrize(("made", "expected", "age"), SEVERAL.values(), ids=SEVERAL.keys())
def test_several_requests_for_one_driver(made: list[Json], expected: tuple[Vacancy, Reason], age: float | None) -> None:
    for order in itertools.permutations(made):
        status = status_of(*order, received_at=NOON)
        assert conclusion(status, n1=1, n2=1) == expected
        assert age_seconds(status, NOON) == age


def test_a_list_made_up_pool_by_pool_is_not_cut() -> None:
    cut = answered(pool("n1"), count=3)
    second, third = answered(pool("n2"), only="n2"), answered(pool("n3"), only="n3")
    assert status_of(cut).truncated
    assert status_of(cut, second).truncated
    assert not status_of(cut, second, third).truncated
    assert status_of(cut, second, third).pool_count == 3


def test_a_pool_that_vanished_does_not_make_a_list_cut() -> None:
    status = status_of(answered(pool("n1"), pool("n2"), at=NOON - 9), answered(only="n2"))
    assert not status.truncated
    assert not confirms(status, {"n1": 1, "n2": 1}, NOON, MAX_AGE)


def test_requests_of_different_drivers_are_no_one_status() -> None:
    with pytest.raises(ValueError, match="unpack"):
        status_of(answered(pool("n1")), request(driver="b.example.com"))


def test_a_snapshot_is_as_old_as_its_oldest_count() -> None:
    nic = request(
        condition(at=NOON - 40),
        status={"poolCount": 1, "pools": [pool("n1", driver="nic.example.com")]},
        driver="nic.example.com",
    )
    silent = request(driver="mig.example.com")
    snapshot = build_snapshot(decoded(answered(pool("n1")), silent, nic, UNANSWERED), received_at=NOON)
    assert snapshot.taken_at == NOON - 40
    assert {driver: status.problem for driver, status in snapshot.statuses.items()} == {
        GPU: None,
        "nic.example.com": None,
        "mig.example.com": Problem.SILENT,
    }
    assert Snapshot({}).taken_at is None


# --- Laws -------------------------------------------------------------------------------------------------------------

some_pools = st.builds(
    pool,
    st.sampled_from(["n1", "n2", "n3"]),
    free=st.integers(-1, 2),
    generation=st.integers(0, 2),
    driver=st.sampled_from([GPU, GPU, GPU, "b.example.com"]),
)
some_requests = st.builds(
    lambda pools, extra, at, only: answered(*pools, count=len(pools) + extra, at=NOON + at, only=only),
    st.lists(some_pools, max_size=3),
    st.integers(-1, 1),
    st.integers(-100, 10),
    st.sampled_from([None, None, "n1"]),
) | st.just(UNANSWERED)


def losses(value: Json) -> list[Json]:
    """Copies of a request, each without one field of its status, or one pool or condition."""
    found = []

    def walk(whole: Json, path: list[Any]) -> None:
        inner: Any = whole
        for key in path:
            inner = inner[key]
        for key in inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ():
            changed = copy.deepcopy(whole)
            target: Any = changed
            for step in path:
                target = target[step]
            del target[key]
            found.append(changed)
            walk(whole, [*path, key])

    walk(value, ["status"] if "status" in value else ["metadata"])
    return found


@given(made=some_requests, now=st.floats(NOON, NOON + 20))
def test_losing_a_part_of_an_answer_never_makes_a_driver_full(made: Json, now: float) -> None:
    def full(changed: Json) -> bool:
        return conclusion(status_of(changed), now, n1=1, n2=1)[0] is FULL

    # Of an answer that cannot be, the contradiction itself may get lost.
    if not full(made) and status_of(made).problem is not Problem.MALFORMED:
        assert not any(full(lost) for lost in losses(made))


@given(made=st.lists(some_requests, min_size=2, max_size=4), data=st.data())
def test_the_order_of_requests_does_not_matter(made: list[Json], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(made))
    assert status_of(*shuffled) == status_of(*made)
