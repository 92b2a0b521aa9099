"""Where counts are all there is: silent and cut drivers asked pool by pool, and nothing left behind."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cluster.pool_status import LEFTOVER_SECONDS
from app.cluster.refresher import (
    POOLS_A_TICK,
    REQUESTS_IN_FLIGHT,
    SWEEP_SECONDS,
    DriverState,
)
from app.dra.judgement import Source
from app.dra.snapshot import Problem
from app.dra.witness import Kind
from tests.apiserver import eventually
from tests.apiserver_parts import POOL_STATUS_REQUESTS, Fault
from tests.builders import (
    DRIVER,
    NOON,
    Json,
    pool_counts,
    resource_slice,
    timestamp,
)
from tests.cluster.refreshing import (
    LABEL,
    LITTLE,
    N1,
    Plane,
    met,
    play,
)

# --- Pool by pool -----------------------------------------------------------------------------------------------------

ODD_POOLS = (
    resource_slice(pool="whole-1"),
    resource_slice(pool="whole-2"),
    resource_slice(pool="incomplete", slices=2),
    resource_slice(pool="generation-0", generation=0),
)


@pytest.mark.parametrize("source", Source)
def test_only_where_counts_are_all_there_is_a_silent_driver_is_asked_pool_by_pool(
    tmp_path: Path, source: Source
) -> None:
    async def story(plane: Plane) -> None:
        for name in ("whole-1", "whole-2"):
            plane.answer(pool_counts(name), pool=name)
        await plane.refresher.tick(NOON)
        if source is Source.POOL_STATUS:
            assert sorted(plane.asked(), key=str) == [(DRIVER, "whole-1"), (DRIVER, "whole-2"), (DRIVER, None)]
            assert plane.status().pools.keys() == {"whole-1", "whole-2"}
            assert plane.refresher.states[DRIVER] == DriverState("silent", "pool-status")
        else:
            assert plane.asked() == [(DRIVER, None)]
            assert plane.status().problem is Problem.SILENT
        assert plane.left() == []

    play(tmp_path, story, *ODD_POOLS, source=source, patience=LITTLE)


def test_where_claims_may_not_be_read_counts_are_all_there_is(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.watched.witness.deny(Kind.RESOURCE_CLAIMS)
        plane.answer(pool_counts("n1"), pool="n1")
        await plane.refresher.tick(NOON)
        assert plane.asked() == [(DRIVER, None), (DRIVER, "n1")]
        assert plane.refresher.states[DRIVER] == DriverState("silent", "pool-status")

    play(tmp_path, story, patience=LITTLE)


@pytest.mark.parametrize(("pools", "listed"), [(150, 0), (1200, 1000)], ids=["150, silent", "1,200, cut at 1,000"])
def test_more_pools_than_can_be_asked_for_in_a_tick_are_known_after_two(
    tmp_path: Path, pools: int, listed: int
) -> None:
    names = [f"n{number:04}" for number in range(pools)]

    async def story(plane: Plane) -> None:
        def counted(at: float) -> None:
            if listed:
                plane.answer(*(pool_counts(name) for name in names[:listed]), at=at, of=pools)
            for name in names[listed:]:
                plane.answer(pool_counts(name), pool=name, at=at)

        counted(NOON)
        await plane.refresher.tick(NOON)
        assert len(plane.asked()) == 1 + POOLS_A_TICK
        assert len(plane.status().pools) == listed + POOLS_A_TICK
        counted(NOON + 60)
        await plane.refresher.tick(NOON + 60)
        assert len(plane.asked()) == 2 * (1 + POOLS_A_TICK)
        assert plane.status().pools.keys() == set(names)
        assert (plane.status().truncated, plane.status().taken_at) == (False, NOON)
        counted(NOON + 120)
        await plane.refresher.tick(NOON + 120)
        assert plane.status().pools.keys() == set(names)
        assert plane.status().taken_at == NOON + 60
        assert plane.left() == []

    play(
        tmp_path,
        story,
        *(resource_slice(1, pool=name) for name in names),
        source=Source.POOL_STATUS,
        patience=2 * LITTLE,
    )


def test_a_count_from_the_future_is_not_kept_until_its_time_has_come(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"), pool="n1", at=NOON + 30)
        await plane.refresher.tick(NOON)
        assert plane.status().problem is Problem.CLOCK
        plane.server.answers.clear()
        await plane.refresher.tick(NOON + 60)
        assert plane.status().problem is Problem.SILENT

    play(tmp_path, story, source=Source.POOL_STATUS, patience=LITTLE)


def test_a_cut_list_stays_cut_where_the_witness_knows_the_rest(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"), of=2)
        await plane.refresher.tick(NOON)
        assert plane.asked() == [(DRIVER, None)]
        assert plane.status().truncated
        assert plane.refresher.states[DRIVER].outcome == "truncated"

    play(tmp_path, story, N1, resource_slice(pool="n2"))


def test_a_controller_manager_that_is_down_is_not_asked_for_every_pool(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        await plane.refresher.tick(NOON)
        assert len(plane.asked()) == 1 + REQUESTS_IN_FLIGHT
        assert plane.left() == []

    play(
        tmp_path,
        story,
        *(resource_slice(1, pool=f"n{n}") for n in range(50)),
        source=Source.POOL_STATUS,
        patience=LITTLE,
    )


def test_a_pool_that_is_never_answered_for_does_not_keep_others_from_being_asked(tmp_path: Path) -> None:
    names = [f"n{number:02}" for number in range(20)]

    async def story(plane: Plane) -> None:
        for name in names[1:]:
            plane.answer(pool_counts(name), pool=name)
        await plane.refresher.tick(NOON)
        assert plane.status().pools.keys() == set(names[1:])

    play(tmp_path, story, *(resource_slice(1, pool=name) for name in names), source=Source.POOL_STATUS, patience=LITTLE)


# --- What is left behind ----------------------------------------------------------------------------------------------


def leftover(name: str, created: float) -> Json:
    metadata = {"name": name, "labels": LABEL, "creationTimestamp": timestamp(created)}
    return {"metadata": metadata, "spec": {"driver": DRIVER}}


def test_leftovers_go_at_the_start_and_young_ones_when_they_are_old(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        plane.server.put(POOL_STATUS_REQUESTS, leftover("vacancy-old", NOON - 1000))
        plane.server.put(POOL_STATUS_REQUESTS, leftover("vacancy-young", NOON - 30))
        plane.server.put(POOL_STATUS_REQUESTS, {"metadata": {"name": "vacancy-foreign"}, "spec": {"driver": DRIVER}})
        await plane.refresher.tick(NOON)
        assert plane.left() == ["vacancy-foreign", "vacancy-young"]
        await plane.refresher.tick(NOON + 60)
        assert plane.left() == ["vacancy-foreign", "vacancy-young"]
        await plane.refresher.tick(NOON + LEFTOVER_SECONDS + 5)
        assert plane.left() == ["vacancy-foreign"]

    play(tmp_path, story)


def test_without_a_reason_leftovers_are_looked_for_once_an_hour(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        sweeps = []
        for seconds in (0, 60, SWEEP_SECONDS - 60, SWEEP_SECONDS + 60, SWEEP_SECONDS + 120):
            await plane.refresher.tick(NOON + seconds)
            sweeps.append(sum(a.method == "GET" and a.path == POOL_STATUS_REQUESTS for a in plane.server.asked))
        assert sweeps == [1, 1, 1, 2, 2]

    play(tmp_path, story)


def crash_after_creation(plane: Plane) -> None:
    def crash(_collection: str, _made: Json) -> None:
        raise RuntimeError("stored, and then a crash")

    plane.server.on_create = crash


LEAVING: dict[str, Callable[[Plane], object]] = {
    "a request that cannot be deleted": met(Fault(500), "DELETE"),
    "a request whose creation was not confirmed": crash_after_creation,
}


@pytest.mark.parametrize("fault", LEAVING.values(), ids=LEAVING)
def test_what_may_be_left_behind_is_gone_a_tick_after_two_minutes(
    tmp_path: Path, fault: Callable[[Plane], object]
) -> None:
    async def story(plane: Plane) -> None:
        now = time.time()  # the server writes the time of creation
        plane.answer(pool_counts("n1"), at=now)
        await plane.refresher.tick(now - 60)
        fault(plane)
        await plane.refresher.tick(now)
        assert len(plane.left()) == 1
        plane.server.heal()
        plane.server.on_create = lambda _collection, _made: None
        await plane.refresher.tick(now + 60)
        assert len(plane.left()) == 1
        await plane.refresher.tick(now + LEFTOVER_SECONDS + 5)
        assert plane.left() == []

    play(tmp_path, story, patience=LITTLE)


def test_who_is_cancelled_in_the_middle_of_a_tick_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        tick = asyncio.create_task(plane.refresher.tick(NOON))
        await eventually("two requests are under way", lambda: len(plane.left()) == 2)
        tick.cancel()
        with pytest.raises(asyncio.CancelledError):
            await tick
        assert plane.left() == []

    play(tmp_path, story, N1, resource_slice(pool="n9", driver="nic.example.com"))
