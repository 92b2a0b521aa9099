"""Several requests for one driver, and laws of all answers: what order and loss must not change."""

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dra.reasons import Reason
from app.dra.snapshot import (
    Problem,
    Snapshot,
    age_seconds,
    build_snapshot,
    confirms,
)
from app.dra.vacancy import Vacancy
from tests.dra.requests_for_statuses import (
    BOTH_FULL,
    FREE,
    FULL,
    GPU,
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
)

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
