"""What a watch does about refusals, servers in trouble and objects it cannot read; and how long it holds the loop."""

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.cluster.watch import DENIALS_DOUBTED, State
from app.dra.demand import Ask
from app.dra.holders import PodRecord
from app.dra.witness import Kind
from tests.apiserver import ApiServer, eventually
from tests.apiserver_parts import CLAIMS, PODS, SLICES, Fault
from tests.builders import Json, device_class
from tests.cluster.watching import (
    PATHS,
    QUICK,
    Scene,
    a_slice,
    play,
    watching,
)

# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [403, 404])
def test_a_kind_that_may_not_be_read_stops_no_other(
    tmp_path: Path, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    def prepare(server: ApiServer) -> None:
        server.refused[CLAIMS] = code

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        await scene.becomes(State.DENIED, Kind.RESOURCE_CLAIMS)
        await eventually("it is tried again", lambda: scene.server.lists(CLAIMS) >= 3)
        assert scene.denied()
        assert [record.message for record in caplog.records].count("kind may not be read") == 1
        del scene.server.refused[CLAIMS]
        await scene.becomes(State.CURRENT, Kind.RESOURCE_CLAIMS)
        assert not scene.denied()
        scene.server.refused[CLAIMS] = code  # a right that is taken away while a watch is open
        scene.server.cut(await scene.open_watch(CLAIMS))
        await scene.becomes(State.DENIED, Kind.RESOURCE_CLAIMS)
        assert scene.health().state is State.CURRENT

    play(tmp_path, story, Kind.RESOURCE_SLICES, Kind.RESOURCE_CLAIMS, prepare=prepare)


def test_an_api_server_that_has_just_started_may_forbid_what_it_allows_a_moment_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT, Kind.RESOURCE_CLAIMS)
        scene.server.fault(Fault(status=403), path=CLAIMS, times=DENIALS_DOUBTED)
        scene.server.cut(await scene.open_watch(CLAIMS))
        await scene.becomes(State.LOST, Kind.RESOURCE_CLAIMS)
        await scene.becomes(State.CURRENT, Kind.RESOURCE_CLAIMS)
        assert "kind may not be read" not in [record.message for record in caplog.records]

    play(tmp_path, story, Kind.RESOURCE_CLAIMS, patience=replace(QUICK, denied=3600.0))


def test_a_rotated_token_is_read_and_nothing_is_listed_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")

    def prepare(server: ApiServer) -> None:
        server.token = "first"  # noqa: S105 - of a server that lives as long as a test

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        scene.server.token = "second"  # noqa: S105 - as above
        token.write_text("second")
        scene.server.end(await scene.open_watch())
        await eventually("a new watch", lambda: len(scene.server.asked) > 5 and scene.server.watches(SLICES))
        scene.server.put(SLICES, a_slice())
        await eventually("the slice is known", lambda: scene.slices() == {"s1"})
        assert scene.told("synced", "lost") == [("synced",)]
        assert scene.server.lists(SLICES) == 1

    play(tmp_path, story, prepare=prepare, tokenFile=str(token))


@pytest.mark.parametrize("status", [401, 429, 500, 503, 504])
def test_a_server_in_trouble_makes_a_kind_unknown_until_it_is_well(tmp_path: Path, status: int) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        scene.server.fault(Fault(status=status), times=None)
        scene.server.cut(await scene.open_watch())
        await scene.becomes(State.LOST)
        await eventually("it is tried again and again", lambda: len(scene.server.asked) > 12)
        scene.server.heal()
        await scene.becomes(State.CURRENT)
        assert scene.told("synced", "lost") == [("synced",), ("lost",), ("synced",)]

    play(tmp_path, story)


def test_a_server_that_asks_to_be_left_alone_is_left_alone(tmp_path: Path) -> None:
    def prepare(server: ApiServer) -> None:
        server.fault(Fault(status=429, headers={"Retry-After": "1"}))

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        first, second, *_ = scene.server.asked
        assert second.at - first.at >= 1.0

    play(tmp_path, story, prepare=prepare)


def test_an_outage_of_the_server_makes_all_unknown_and_ends(tmp_path: Path) -> None:
    kinds = list(Kind)

    async def story(scene: Scene) -> None:
        for kind in kinds:
            await scene.becomes(State.CURRENT, kind)
        await scene.server.stop()
        for kind in kinds:
            await scene.becomes(State.LOST, kind)
        assert scene.knows() == (False, False, False)
        await scene.server.start()
        for kind in kinds:
            await scene.becomes(State.CURRENT, kind)
        assert scene.knows() == (True, True, True)

    play(tmp_path, story, *kinds)


# --- Objects ----------------------------------------------------------------------------------------------------------

BAD: dict[Kind, Json] = {
    Kind.RESOURCE_SLICES: {"metadata": {"name": "bad"}, "spec": {"driver": 5}},
    Kind.DEVICE_CLASSES: {"metadata": {"name": "bad"}, "spec": {"selectors": "all"}},
    Kind.NODES: {"metadata": {"name": "bad"}, "status": {"capacity": ["gpu"]}},
    Kind.RESOURCE_CLAIMS: {"metadata": {"name": "bad", "namespace": "team"}, "status": {"allocation": 1}},
    Kind.DEVICE_TAINT_RULES: {"metadata": {"name": "bad"}, "spec": 0},
}
GOOD: dict[Kind, Json] = {
    Kind.RESOURCE_SLICES: a_slice("good"),
    Kind.DEVICE_CLASSES: {"metadata": {"name": "good"}, "spec": {}},
    Kind.NODES: {"metadata": {"name": "good"}},
    Kind.RESOURCE_CLAIMS: {"metadata": {"name": "good", "namespace": "team"}, "spec": {}},
    Kind.DEVICE_TAINT_RULES: {"metadata": {"name": "good"}, "spec": {"taint": {"key": "k", "effect": "NoSchedule"}}},
}


@pytest.mark.parametrize("kind", [Kind.RESOURCE_SLICES, Kind.DEVICE_CLASSES, Kind.NODES])
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "watched"])
def test_an_object_that_may_hide_a_free_device_keeps_its_kind_unknown_until_it_is_repaired(
    tmp_path: Path,
    kind: Kind,
    listed: bool,  # noqa: FBT001 - a row
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = PATHS[kind]

    def prepare(server: ApiServer) -> None:
        if listed:
            server.put(path, BAD[kind])
            server.put(path, GOOD[kind])

    async def story(scene: Scene) -> None:
        if not listed:
            await scene.becomes(State.CURRENT, kind)
            scene.server.put(path, BAD[kind])
            scene.server.put(path, GOOD[kind])
        await scene.becomes(State.LOST, kind)
        await eventually("the good one is known", lambda: ("apply", "good", "") in scene.witness.entries)
        await eventually("the bad one is counted", lambda: scene.health(kind).unreadable == 1)
        scene.server.put(path, BAD[kind])
        scene.server.put(path, GOOD[kind] | {"metadata": {"name": "bad"}})
        await scene.becomes(State.CURRENT, kind)
        scene.server.put(path, BAD[kind])
        await scene.becomes(State.LOST, kind)
        scene.server.remove(path, "bad")
        await scene.becomes(State.CURRENT, kind)
        assert scene.server.lists(path) == 1
        assert [record.message for record in caplog.records].count("object cannot be read") == 1

    play(tmp_path, story, kind, prepare=prepare)


@pytest.mark.parametrize("kind", [Kind.RESOURCE_CLAIMS, Kind.DEVICE_TAINT_RULES])
def test_an_object_that_can_only_take_a_device_is_as_good_as_gone_when_it_cannot_be_read(
    tmp_path: Path, kind: Kind
) -> None:
    path, namespace = PATHS[kind], BAD[kind]["metadata"].get("namespace", "")

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT, kind)
        scene.server.put(path, GOOD[kind])
        scene.server.put(path, BAD[kind] | {"metadata": GOOD[kind]["metadata"]})
        scene.server.put(path, GOOD[kind] | {"metadata": {"name": "next", "namespace": namespace}})
        await eventually("the next one is known", lambda: ("apply", "next", "") in scene.witness.entries)
        assert scene.told("apply", "remove") == [("apply", "good", ""), ("remove", "good"), ("apply", "next", "")]
        assert scene.health(kind).state is State.CURRENT
        assert scene.health(kind).unreadable == 1

    play(tmp_path, story, kind)


def test_a_huge_object_is_an_object(tmp_path: Path) -> None:
    huge = a_slice("huge", annotations={"note": "x" * 3_000_000})

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        scene.server.put(SLICES, huge)
        scene.server.put(SLICES, a_slice("small"))
        await eventually("both are known", lambda: scene.slices() == {"huge", "small"})
        assert scene.told("synced", "lost") == [("synced",)]

    play(tmp_path, story)


def test_of_pods_only_metadata_is_read_and_an_end_is_heard_of(tmp_path: Path) -> None:
    def pod(name: str, phase: str, **metadata: object) -> Json:
        meta = {"name": name, "namespace": "team", "uid": f"uid-of-{name}", **metadata}
        return {"metadata": meta, "spec": {"secret": name}, "status": {"phase": phase}}

    heard: list[tuple[Kind, PodRecord]] = []

    def prepare(server: ApiServer) -> None:
        server.put(PODS, pod("done", "Succeeded"))
        server.put(PODS, pod("runs", "Running"))

    async def story(scene: Scene) -> None:
        apply = scene.witness.apply

        def listen(kind: Kind, obj: Any, now: float, since: float | None = None) -> None:  # noqa: ANN401 - passed on
            heard.append((kind, obj))
            apply(kind, obj, now, since)

        scene.witness.apply = listen  # type: ignore[method-assign]
        for kind in (Kind.PODS, Kind.ENDED_PODS):
            await scene.becomes(State.CURRENT, kind)
        assert sorted((kind.value, pod.name) for kind, pod in heard) == [
            ("ended pods", "done"),
            ("pods", "done"),
            ("pods", "runs"),
        ]
        heard.clear()
        scene.server.put(PODS, pod("runs", "Running", deletionTimestamp="2026-01-01T12:00:30Z"))
        await eventually("the deletion is heard of", lambda: heard)
        assert heard == [(Kind.PODS, PodRecord("uid-of-runs", "team", "runs", 1767268830.0))]
        heard.clear()
        scene.server.put(PODS, pod("runs", "Failed"))
        await eventually("the end is heard of", lambda: len(heard) == 2)
        assert set(heard) == {(kind, PodRecord("uid-of-runs", "team", "runs")) for kind in (Kind.PODS, Kind.ENDED_PODS)}
        scene.server.remove(PODS, "runs", "team")
        await eventually("both hear that it is gone", lambda: scene.told("remove") == [("remove", "runs")] * 2)
        assert all("as=PartialObjectMetadata" in asked.headers["Accept"] for asked in scene.server.asked)

    play(tmp_path, story, Kind.PODS, Kind.ENDED_PODS, prepare=prepare)


# --- The loop ---------------------------------------------------------------------------------------------------------

ELSEWHERE = """
import asyncio, json, sys
from tests.apiserver import ApiServer
from tests.apiserver_parts import SLICES
from tests.cluster.watching import a_slice

async def main():
    async with ApiServer() as server:
        for number in range(2000):
            server.put(SLICES, a_slice(f"s{number}", devices=8))
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for number in range(2000):
            server.put(SLICES, a_slice(f"s{number}", devices=8, labels={"changed": "yes"}))
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


def test_the_loop_goes_on_while_thousands_of_slices_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints how long a task that wants the loop every millisecond has to wait; how long that is, is the machine's."""

    async def longest(condition: Awaitable[None]) -> str:
        """While waiting for a condition: the longest wait, and the longest work that made somebody wait."""
        waits: list[float] = []
        works: list[float] = []

        async def measure() -> None:
            while True:
                began, worked = time.perf_counter(), time.thread_time()
                await asyncio.sleep(0.001)
                waits.append(time.perf_counter() - began - 0.001)
                works.append(time.thread_time() - worked)

        task = asyncio.create_task(measure())
        await condition
        task.cancel()
        return f"loop held {1000 * max(works):.1f} ms, waited for {1000 * max(waits):.1f} ms"

    async def run(url: str, change: Callable[[], None]) -> None:
        server = ApiServer()
        server.url = url
        async with watching(server, tmp_path, [Kind.RESOURCE_SLICES], QUICK) as scene:
            scene.witness.apply(Kind.DEVICE_CLASSES, device_class(), time.time())
            scene.witness.tally(Ask("gpu"))
            listing = await longest(scene.becomes(State.CURRENT))
            change()
            told = scene.witness.entries
            burst = await longest(eventually("all changes are known", lambda: len(told) == 4002))
            assert len(scene.slices()) == 2000
        with capsys.disabled():
            print(f"\n2,000 slices listed: {listing}; changed at once: {burst}")  # noqa: T201 - a number for the reader

    with subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as elsewhere:
        assert elsewhere.stdin
        assert elsewhere.stdout
        stdin = elsewhere.stdin

        def change() -> None:
            stdin.write("change\n")
            stdin.flush()

        gc.collect()
        gc.freeze()  # as the server does when it is ready; else the longest hold would be a look at pytest's objects
        try:
            asyncio.run(run(elsewhere.stdout.readline().strip(), change))
        finally:
            gc.unfreeze()
