"""One tick: what is answered is published, and in a fault the last counts age."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cluster.pool_status import ANSWER_SECONDS
from app.cluster.refresher import (
    REQUESTS_IN_FLIGHT,
    DriverState,
)
from app.dra.drivers import source_in_use
from app.dra.snapshot import Problem
from tests.apiserver import eventually
from tests.apiserver_parts import POOL_STATUS_REQUESTS, Answer, Fault
from tests.builders import (
    DRIVER,
    NOON,
    Json,
    pool_counts,
    resource_slice,
    timestamp,
)
from tests.cluster.refreshing import (
    LITTLE,
    N1,
    REFRESH_SECONDS,
    Plane,
    met,
    play,
)

# --- What is answered -------------------------------------------------------------------------------------------------


def test_what_is_answered_is_published_for_every_driver(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1", total=4, allocated=1))
        plane.answer(pool_counts("n9", driver="nic.example.com"), driver="nic.example.com", at=NOON - 10)
        await plane.refresher.tick(NOON)
        assert plane.status().pools["n1"].available_devices == 3
        assert plane.latest.get().snapshot.taken_at == NOON - 10
        assert plane.refresher.requests == {(DRIVER, "complete"): 1, ("nic.example.com", "complete"): 1}
        assert plane.refresher.states[DRIVER] == DriverState("complete", "both")
        assert plane.left() == []

    play(tmp_path, story, N1, resource_slice(pool="n9", driver="nic.example.com"))


def test_a_driver_whose_slices_are_gone_is_forgotten(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        await plane.refresher.tick(NOON)
        plane.watched.gone(N1)
        await plane.refresher.tick(NOON + 60)
        assert plane.latest.get().snapshot.statuses == {}
        assert plane.refresher.states == {}
        assert len(plane.asked()) == 1

    play(tmp_path, story)


def test_no_more_than_four_requests_are_under_way(tmp_path: Path) -> None:
    drivers = [f"d{number}.example.com" for number in range(10)]
    most = 0

    async def story(plane: Plane) -> None:
        def on_create(_collection: str, _made: Json) -> None:
            nonlocal most
            most = max(most, len(plane.left()))

        plane.server.on_create = on_create
        for driver in drivers:
            plane.answer(pool_counts("n1", driver=driver), driver=driver)
        await plane.refresher.tick(NOON)
        assert most == REQUESTS_IN_FLIGHT
        assert plane.latest.get().snapshot.statuses.keys() == set(drivers)

    play(tmp_path, story, *(resource_slice(pool="n1", driver=driver) for driver in drivers))


def test_two_replicas_do_not_take_each_other_s_requests(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        replicas = [plane.replica(), plane.replica()]
        for turn in range(3):
            await asyncio.gather(*(replica.tick(NOON + REFRESH_SECONDS * turn) for replica in replicas))
        assert [replica.requests for replica in replicas] == [{(DRIVER, "complete"): 3}] * 2
        assert plane.left() == []

    play(tmp_path, story)


# --- Faults -----------------------------------------------------------------------------------------------------------


def somebody_else_s(plane: Plane) -> None:
    """Every request of ours is exchanged at once for an answered one of the same name."""

    def replace(_collection: str, made: Json) -> None:
        name = made["metadata"]["name"]
        plane.server.remove(POOL_STATUS_REQUESTS, name)
        forged = pool_counts("n1", total=9, allocated=0)
        status = {"poolCount": 1, "pools": [forged], "conditions": [{"type": "Complete", "status": "True"}]}
        plane.server.put(POOL_STATUS_REQUESTS, {"metadata": {"name": name}, "spec": made["spec"], "status": status})

    plane.server.on_create = replace


def failed(plane: Plane) -> None:
    condition = {"type": "Failed", "status": "True", "lastTransitionTime": timestamp(NOON + 60)}
    plane.server.answers[DRIVER, None] = Answer({"conditions": [condition]})


FAULTS: dict[str, tuple[Callable[[Plane], object], str]] = {
    "nobody answers": (lambda plane: plane.server.answers.clear(), "silent"),
    "the kind is not served": (lambda plane: plane.server.refused.update({POOL_STATUS_REQUESTS: 404}), "not-served"),
    "the kind may not be used": (lambda plane: plane.server.refused.update({POOL_STATUS_REQUESTS: 403}), "forbidden"),
    "our token has expired": (met(Fault(401)), "refused"),
    "the API server is busy": (met(Fault(429, {"Retry-After": "1"})), "throttled"),
    "the API server fails": (met(Fault(503)), "unreachable"),
    "the API server fails while we wait": (met(Fault(500), "GET"), "silent"),
    "the connection breaks": (met(Fault(cut=True)), "unreachable"),
    "the connection is silent": (met(Fault(silent=True)), "unreachable"),
    "the connection is silent while we wait": (met(Fault(silent=True), "GET"), "silent"),
    "the answer comes too late": (met(Fault(delay_seconds=0.5), "GET"), "silent"),
    "the calculation fails": (failed, "failed"),
    "a foreign object has our name": (somebody_else_s, "replaced"),
}


@pytest.mark.parametrize(("fault", "outcome"), FAULTS.values(), ids=FAULTS)
def test_in_a_fault_the_last_counts_age_and_the_tick_after_it_brings_new_ones(
    tmp_path: Path, fault: Callable[[Plane], object], outcome: str
) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        await plane.refresher.tick(NOON)
        counted = plane.status()
        fault(plane)
        await plane.refresher.tick(NOON + 60)
        assert plane.status() is counted
        assert plane.refresher.states[DRIVER] == DriverState(outcome, "both")
        assert source_in_use(DRIVER, plane.latest.get(), NOON + 120) == "witness"
        foreign = 1 if fault is somebody_else_s else 0
        assert len(plane.left()) == foreign

        plane.server.heal()
        plane.server.refused.clear()
        plane.server.on_create = lambda _collection, _made: None
        plane.answer(pool_counts("n1", allocated=2), at=NOON + 180)
        await plane.refresher.tick(NOON + 180)
        assert plane.status().taken_at == NOON + 180
        assert plane.refresher.states[DRIVER].outcome == "complete"
        assert len(plane.left()) == foreign

    play(tmp_path, story, patience=LITTLE)


def test_a_driver_never_counted_is_known_to_be_silent(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        await plane.refresher.tick(NOON)
        assert (plane.status().problem, plane.status().taken_at) == (Problem.SILENT, None)
        assert plane.refresher.states[DRIVER] == DriverState("silent", "witness")

    play(tmp_path, story, patience=LITTLE)


def test_an_api_server_that_is_stopped_for_a_while_is_asked_again(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        await plane.refresher.tick(NOON)
        await plane.server.stop()
        await plane.refresher.tick(NOON + 60)
        assert plane.refresher.states[DRIVER].outcome == "unreachable"
        assert plane.status().taken_at == NOON
        await plane.server.start()
        plane.answer(pool_counts("n1"), at=NOON + 120)
        await plane.refresher.tick(NOON + 120)
        assert plane.status().taken_at == NOON + 120
        assert plane.left() == []

    play(tmp_path, story)


def test_one_silent_driver_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        tick = asyncio.create_task(plane.refresher.tick(NOON))
        await eventually("the answer is published", lambda: DRIVER in plane.latest.get().snapshot.statuses)
        assert not tick.done()
        assert "silent.example.com" not in plane.latest.get().snapshot.statuses
        await tick
        assert plane.status("silent.example.com").problem is Problem.SILENT
        assert plane.status().problem is None

    play(tmp_path, story, N1, resource_slice(pool="n9", driver="silent.example.com"), patience=LITTLE)


def test_counts_from_a_clock_two_minutes_fast_take_the_place_of_good_ones(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        await plane.refresher.tick(NOON)
        plane.answer(pool_counts("n1"), at=NOON + 60 + 120)
        await plane.refresher.tick(NOON + 60)
        assert plane.status().problem is Problem.CLOCK
        assert plane.refresher.states[DRIVER] == DriverState("clock fault", "witness")
        plane.answer(pool_counts("n1"), at=NOON + 120)
        await plane.refresher.tick(NOON + 120)
        assert plane.refresher.states[DRIVER] == DriverState("complete", "both")

    play(tmp_path, story)


def test_time_goes_on_during_a_tick(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"), at=NOON + 6)
        plane.server.fault(Fault(delay_seconds=1.1))  # received at 1.1 s, it is less than 5 s ahead
        await plane.refresher.tick(NOON)
        assert plane.status().problem is None
        assert 1.1 < plane.refresher.tick_seconds < 1.1 + ANSWER_SECONDS

    play(tmp_path, story)


def test_counts_from_a_clock_two_minutes_slow_are_too_old_to_build_on(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"), at=NOON - 120)
        await plane.refresher.tick(NOON)
        assert plane.refresher.states[DRIVER] == DriverState("complete", "witness")

    play(tmp_path, story)


def test_no_pools_are_an_answer_and_no_reason_to_call_anything_full(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        await plane.refresher.tick(NOON)
        plane.answer()
        await plane.refresher.tick(NOON + 60)
        assert plane.status().problem is Problem.NO_POOLS

    play(tmp_path, story)
