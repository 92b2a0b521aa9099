"""One turn of the slow river after another, against an API server that answers, is silent or misbehaves.

In every fault the same holds: nothing is raised, what was counted goes on ageing, and of our requests nothing stays.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest

from app.cluster.client import ApiClient
from app.cluster.pool_status import ANSWER_SECONDS, LEFTOVER_SECONDS
from app.cluster.refresher import (
    JITTER,
    POOLS_A_TICK,
    REQUESTS_IN_FLIGHT,
    START_SECONDS,
    SWEEP_SECONDS,
    DriverState,
    Refresher,
    source_in_use,
)
from app.dra.demand import Ask, PodDemand
from app.dra.judgement import Policy, Source, World, find
from app.dra.snapshot import DriverStatus, Problem, Snapshot, driver_status
from app.dra.vacancy import Vacancy
from app.dra.witness import HOLDS, Heard, Kind, Witness
from app.latest_snapshot import LatestSnapshot
from tests.apiserver import POOL_STATUS_REQUESTS, Answer, ApiServer, Fault, eventually
from tests.builders import (
    DRIVER,
    NOON,
    Json,
    device_class,
    node,
    pod_record,
    pool_counts,
    pool_status,
    resource_claim,
    resource_slice,
    timestamp,
)
from tests.dra.watched import Watched

REFRESH_SECONDS = 60.0
LITTLE = 0.5
LABEL = {"app.kubernetes.io/managed-by": "vacancy"}
N1 = resource_slice(pool="n1")


class Plane:
    """An API server, a live view of slices, and a refresher between them."""

    def __init__(
        self, server: ApiServer, client: ApiClient, source: Source, patience: float, objects: Iterable[Heard]
    ) -> None:
        self.server, self._client, self._patience = server, client, patience
        self.watched = Watched(device_class(), *objects)
        self.latest = LatestSnapshot(World(self.watched.witness, Snapshot({}), Policy(source=source)))
        self.refresher = self.replica()

    def replica(self) -> Refresher:
        return Refresher(self._client, self.latest, refresh_seconds=REFRESH_SECONDS, answer_seconds=self._patience)

    def answer(
        self, *pools: Json, driver: str = DRIVER, pool: str | None = None, at: float = NOON, of: int | None = None
    ) -> None:
        """What is answered from now on; `of`: how many pools there are, if more than these."""
        condition = {"type": "Complete", "status": "True", "lastTransitionTime": timestamp(at)}
        status = {"poolCount": len(pools) if of is None else of, "pools": list(pools), "conditions": [condition]}
        self.server.answers[driver, pool] = Answer(status)

    def status(self, driver: str = DRIVER) -> DriverStatus:
        return self.latest.get().snapshot.statuses[driver]

    def left(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.server.objects(POOL_STATUS_REQUESTS)]

    def asked(self) -> list[tuple[str, str | None]]:
        """Driver and pool of every request so far."""
        specs = [json.loads(asked.body)["spec"] for asked in self.server.asked if asked.method == "POST"]
        return [(spec["driver"], spec.get("poolName")) for spec in specs]


def play(
    folder: Path,
    story: Callable[[Plane], Awaitable[None]],
    *objects: Heard,
    source: Source = Source.AUTO,
    patience: float = ANSWER_SECONDS,
) -> None:
    """`patience`: seconds a request has for its answer; `LITTLE` where somebody is silent."""

    async def main() -> None:
        async with ApiServer() as server, await ApiClient.connect(server.kubeconfig(folder), None) as client:
            await story(Plane(server, client, source, patience, objects or (N1,)))

    asyncio.run(main())


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


def met(fault: Fault, method: str = "POST") -> Callable[[Plane], None]:
    return lambda plane: plane.server.fault(fault, method=method, times=None)


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


# --- Time and words ---------------------------------------------------------------------------------------------------


class Enough(Exception):
    """Ends a loop that has no end."""


def pauses(plane: Plane, pauses: int, now: Callable[[], float], jitter: float = 0.5) -> Awaitable[list[float]]:
    """How long `run` sleeps, the first times; it ticks in between."""

    async def ran() -> list[float]:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 1:
                plane.watched.witness.synced(Kind.RESOURCE_SLICES, NOON)
            if len(slept) == pauses:
                raise Enough

        with pytest.raises(Enough):
            await plane.refresher.run(now, sleep, lambda: jitter)
        return slept

    return ran()


@pytest.mark.parametrize(
    ("jitter", "seconds"),
    [(0.0, REFRESH_SECONDS * (1 - JITTER)), (0.5, REFRESH_SECONDS), (1.0, REFRESH_SECONDS * (1 + JITTER))],
)
def test_ticks_come_once_a_minute_more_or_less(tmp_path: Path, jitter: float, seconds: float) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        assert await pauses(plane, 3, lambda: NOON, jitter) == pytest.approx([seconds] * 3)
        assert len(plane.asked()) == 3

    play(tmp_path, story)


def test_the_first_tick_comes_when_the_slices_are_known(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        witness = Witness(NOON)
        witness.synced(Kind.DEVICE_CLASSES, NOON)
        witness.apply(Kind.RESOURCE_SLICES, N1, NOON)
        plane.watched.witness = witness
        plane.latest.publish(World(witness, Snapshot({}), Policy()))
        assert await pauses(plane, 2, lambda: NOON) == [START_SECONDS, REFRESH_SECONDS]
        assert len(plane.asked()) == 1

    play(tmp_path, story)


def test_a_mistake_of_ours_in_one_tick_does_not_end_the_next(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        times = iter([None, NOON])

        def now() -> float:
            moment = next(times)
            if moment is None:
                raise ZeroDivisionError
            return moment

        await pauses(plane, 2, now)
        assert plane.status().taken_at == NOON

    play(tmp_path, story)
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == ["refreshing failed"]


def test_a_change_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="app.cluster")

    async def story(plane: Plane) -> None:
        for minute, answers in enumerate((True, True, False, False, False, True, True)):
            plane.server.answers.clear()
            if answers:
                plane.answer(pool_counts("n1"), at=NOON + 60 * minute)
            await plane.refresher.tick(NOON + 60 * minute)
        plane.watched.gone(N1)
        await plane.refresher.tick(NOON + 600)
        await plane.refresher.tick(NOON + 660)

    play(tmp_path, story, patience=LITTLE)
    assert [(record.levelname, *record.__dict__["facts"].values()) for record in caplog.records] == [
        ("INFO", DRIVER, "complete", "both"),
        ("WARNING", DRIVER, "silent", "both"),
        ("WARNING", DRIVER, "silent", "witness"),
        ("INFO", DRIVER, "complete", "both"),
        ("INFO", DRIVER),
    ]


@pytest.mark.parametrize("source", Source)
@pytest.mark.parametrize("age", [None, 30.0, 300.0], ids=["never counted", "fresh", "stale"])
@pytest.mark.parametrize("holds", ["known", "lost", "denied"])
def test_the_source_in_use_is_the_one_the_judgement_uses(source: Source, age: float | None, holds: str) -> None:
    taken = resource_claim("gpu-0", "gpu-1", "gpu-2", "gpu-3", consumers=["p1"])
    witness = Watched(device_class(), N1, taken, pod_record("p1"), node()).witness
    for kind in HOLDS if holds != "known" else ():
        (witness.deny if holds == "denied" else witness.lost)(kind)
    counted = [] if age is None else [driver_status([pool_status(pool_counts("n1"), at=NOON - age)], received_at=NOON)]
    snapshot = Snapshot({status.driver: status for status in counted})
    world = World(witness, snapshot, Policy(source=source))
    finding = find(Ask("gpu"), PodDemand(), world, NOON)
    in_use = source_in_use(DRIVER, world, NOON)
    assert in_use in ("", finding.source)
    assert bool(in_use) is (finding.vacancy is not Vacancy.UNKNOWN)
