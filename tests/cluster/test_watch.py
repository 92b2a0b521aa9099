"""Watches of a server that misbehaves: what the witness is told, in which order, and when that it does not know."""

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from app.cluster.client import ApiClient
from app.cluster.collection import COLLECTIONS
from app.cluster.watch import DENIALS_DOUBTED, Health, Patience, State, Watch, watches
from app.dra.demand import Ask
from app.dra.holders import PodRecord
from app.dra.witness import Heard, Kind, Witness
from tests.apiserver import (
    CLAIMS,
    CLASSES,
    NODES,
    PODS,
    SLICES,
    TAINT_RULES,
    ApiServer,
    Fault,
    Watcher,
    eventually,
)
from tests.builders import Json, device_class

QUICK = Patience(quiet=0.05, succession=30.0, apart=0.01, shortest_pause=0.01, longest_pause=0.05, denied=0.05)
"""Impatient with failures; patient where only a fault of ours would make it wait."""

PATHS = {
    Kind.DEVICE_CLASSES: CLASSES,
    Kind.RESOURCE_SLICES: SLICES,
    Kind.RESOURCE_CLAIMS: CLAIMS,
    Kind.DEVICE_TAINT_RULES: TAINT_RULES,
    Kind.NODES: NODES,
}


class Diary(Witness):
    """A witness that writes down what it is told."""

    def __init__(self) -> None:
        super().__init__(started_at=0.0)
        self.entries: list[tuple[str, ...]] = []

    def apply(self, kind: Kind, obj: Heard, now: float, since: float | None = None) -> None:
        name, version = (obj.name, "") if isinstance(obj, PodRecord) else (obj.metadata.name, "")
        self.entries.append(("apply", name, version))
        super().apply(kind, obj, now, since)

    def remove(self, kind: Kind, namespace: str, name: str, now: float) -> None:
        self.entries.append(("remove", name))
        super().remove(kind, namespace, name, now)

    def synced(self, kind: Kind, now: float, since: float | None = None) -> None:
        self.entries.append(("synced",))
        super().synced(kind, now, since)

    def lost(self, kind: Kind) -> None:
        self.entries.append(("lost",))
        super().lost(kind)


@dataclass
class Scene:
    """A server, and watches of some kinds of it."""

    server: ApiServer
    witness: Diary
    watching: dict[Kind, Watch]

    def health(self, kind: Kind = Kind.RESOURCE_SLICES) -> Health:
        return self.watching[kind].health

    async def becomes(self, state: State, kind: Kind = Kind.RESOURCE_SLICES) -> None:
        await eventually(f"{kind} {state}", lambda: self.health(kind).state is state)

    async def open_watch(self, path: str = SLICES) -> Watcher:
        await eventually("a watch is open", lambda: self.server.watches(path))
        return self.server.watches(path)[-1]

    async def end_watch(self) -> None:
        watcher = await self.open_watch()
        self.server.end(watcher)
        await eventually("it is closed", lambda: watcher not in self.server.watchers)

    def slices(self) -> set[str]:
        return {name for pool in self.witness.pools() for name in pool.slices}

    def knows(self) -> tuple[bool, bool, bool]:
        """Whether devices, what is taken, and device plugins are known."""
        witness = self.witness
        return (
            witness.devices_unknown is None,
            witness.holds_unknown is None,
            witness.judges_extended_resources(),
        )

    def denied(self) -> bool:
        return self.witness.holds_denied

    def told(self, *what: str) -> list[tuple[str, ...]]:
        return [entry for entry in self.witness.entries if entry[0] in what]


Story = Callable[[Scene], Awaitable[None]]


@asynccontextmanager
async def watching(
    server: ApiServer, folder: Path, kinds: Iterable[Kind], patience: Patience, **user: object
) -> AsyncIterator[Scene]:
    witness = Diary()
    collections = [each for each in COLLECTIONS if each.kind in kinds]
    async with await ApiClient.connect(server.kubeconfig(folder, **user), None) as client:
        made = watches(client, witness, time.time, collections, patience)
        tasks = [asyncio.create_task(watch.run()) for watch in made]
        try:
            yield Scene(server, witness, {watch.collection.kind: watch for watch in made})
            for task in tasks:
                assert not task.done(), task.exception()
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def play(
    folder: Path,
    story: Story,
    *kinds: Kind,
    prepare: Callable[[ApiServer], None] = lambda _server: None,
    patience: Patience = QUICK,
    **user: object,
) -> None:
    """Run a story with watches of some kinds (slices, if none is named) of a server that was prepared before."""

    async def run() -> None:
        async with ApiServer() as server:
            prepare(server)
            async with watching(server, folder, kinds or (Kind.RESOURCE_SLICES,), patience, **user) as scene:
                await story(scene)

    asyncio.run(run())


def a_slice(name: str = "s1", *, devices: int = 1, **metadata: object) -> Json:
    names = [f"{name}-{number}" for number in range(devices)]
    return {
        "metadata": {"name": name, **metadata},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": each, "attributes": {"model": {"string": "a"}}} for each in names],
        },
    }


def slices(count: int) -> Callable[[ApiServer], None]:
    def prepare(server: ApiServer) -> None:
        for number in range(count):
            server.put(SLICES, a_slice(f"s{number}"))

    return prepare


# --- Lists ------------------------------------------------------------------------------------------------------------


def test_a_list_is_read_in_pages_and_the_watch_goes_on_from_it(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        pages = [asked for asked in scene.server.asked if asked.query.get("limit") == "100"]
        assert [bool(page.query.get("continue")) for page in pages] == [False, True, True]
        assert len(scene.slices()) == scene.health().objects == 250
        (watch,) = scene.server.watches(SLICES)
        assert watch.asked.query["resourceVersion"] == "1250"
        assert watch.asked.query["allowWatchBookmarks"] == "true"
        scene.server.put(SLICES, a_slice("s250"))
        await eventually("the new slice is known", lambda: len(scene.slices()) == 251)
        scene.server.remove(SLICES, "s0")
        await eventually("the slice is gone", lambda: len(scene.slices()) == 250)
        assert scene.health().objects == 250
        assert scene.told("synced", "lost") == [("synced",)]

    play(tmp_path, story, prepare=slices(250))


def test_a_list_whose_next_page_has_expired_begins_anew(tmp_path: Path) -> None:
    def prepare(server: ApiServer) -> None:
        slices(150)(server)
        server.fault(Fault(delay_seconds=0.1), path=SLICES)  # the first page; the second meets the next
        server.fault(Fault(status=410), path=SLICES)

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        assert scene.server.lists(SLICES) == 2
        assert len(scene.slices()) == 150

    play(tmp_path, story, prepare=prepare)


def test_what_a_new_list_lacks_is_gone(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        server = scene.server
        await server.stop()
        await scene.becomes(State.LOST)
        server.remove(SLICES, "s1")
        server.put(SLICES, a_slice("s9"))
        server.compact()
        await server.start()
        await scene.becomes(State.CURRENT)
        assert scene.slices() == {"s0", "s2", "s9"}

    play(tmp_path, story, prepare=slices(3))


def test_a_slow_server_is_waited_for(tmp_path: Path) -> None:
    def prepare(server: ApiServer) -> None:
        slices(150)(server)
        server.fault(Fault(delay_seconds=0.2), times=4)

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        assert len(scene.slices()) == 150
        assert scene.health().interruptions == 0

    play(tmp_path, story, prepare=prepare)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"<html>",
        b'{"metadata": {}, "items": []}',
        b'{"metadata": {"resourceVersion": ""}, "items": []}',
        b'{"metadata": {"resourceVersion": "new"}, "items": []}',
    ],
)
def test_a_list_that_is_none_makes_nothing_current(tmp_path: Path, body: bytes) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.LOST)
        assert scene.slices() == set()
        scene.server.heal()
        await scene.becomes(State.CURRENT)

    def prepare(server: ApiServer) -> None:
        slices(1)(server)
        server.fault(Fault(status=200, body=body), times=None)

    play(tmp_path, story, prepare=prepare)


# --- Current only when caught up --------------------------------------------------------------------------------------


def test_what_happened_while_the_list_was_read_is_known_before_the_kind_is_current(tmp_path: Path) -> None:
    def prepare(server: ApiServer) -> None:
        slices(1)(server)
        server.fault(Fault(delay_seconds=0.2), watch=True)

    async def story(scene: Scene) -> None:
        await eventually("the watch is asked for", lambda: any(asked.watch for asked in scene.server.asked))
        for number in range(50):
            scene.server.put(SLICES, a_slice(f"late-{number}"))
        await scene.becomes(State.CURRENT)
        assert scene.told("synced", "lost") == [("synced",)]
        assert scene.witness.entries.index(("synced",)) == len(scene.witness.entries) - 1 == 51

    play(tmp_path, story, prepare=prepare)


def test_a_kind_that_never_rests_becomes_current_all_the_same(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        async def never_rest() -> None:
            while True:
                scene.server.put(SLICES, a_slice("busy"))
                await asyncio.sleep(0.002)

        busy = asyncio.create_task(never_rest())
        await scene.becomes(State.CURRENT)
        busy.cancel()

    play(tmp_path, story, patience=Patience(quiet=3600.0))


def test_a_watch_that_ends_before_it_has_caught_up_does_not_count(tmp_path: Path) -> None:
    patience = Patience(quiet=3600.0, apart=0.01, shortest_pause=0.01, longest_pause=0.05)

    async def story(scene: Scene) -> None:
        await eventually("the watch is asked for", lambda: any(asked.watch for asked in scene.server.asked))
        scene.server.put(CLASSES, {"metadata": {"name": "c"}})  # the cluster's version is past that of the list
        scene.server.end(await scene.open_watch())
        await scene.becomes(State.LOST)
        assert "caught up" in scene.health().problem
        assert scene.told("synced") == []

    def prepare(server: ApiServer) -> None:
        server.fault(Fault(delay_seconds=0.1), watch=True)

    play(tmp_path, story, patience=patience, prepare=prepare)


# --- Ends of a watch --------------------------------------------------------------------------------------------------


def test_an_orderly_end_loses_nothing_and_is_no_loss(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        for number in range(1, 6):
            await scene.end_watch()
            scene.server.put(SLICES, a_slice(f"s{number}"))
            await eventually("the slice is known", lambda: len(scene.slices()) == number)  # noqa: B023 - waited for
        assert scene.told("synced", "lost") == [("synced",)]
        assert scene.server.lists(SLICES) == 1

    play(tmp_path, story)


def test_a_watch_without_a_successor_is_lost(tmp_path: Path) -> None:
    patience = Patience(quiet=0.05, apart=0.01, succession=0.1)

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        scene.server.fault(Fault(silent=True), watch=True)
        scene.server.end(await scene.open_watch())
        await scene.becomes(State.LOST)
        assert scene.health().problem == "no watch took over"

    play(tmp_path, story, patience=patience)


def test_a_watch_that_is_cut_is_lost_and_goes_on_where_it_was(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        scene.server.fault(Fault(delay_seconds=0.2), watch=True)  # time for things to happen that nobody watches
        scene.server.cut(await scene.open_watch())
        await scene.becomes(State.LOST)
        expected: list[tuple[str, ...]] = [("lost",)]
        for number in range(100):
            scene.server.put(SLICES, a_slice(f"s{number % 7}"))
            expected.append(("apply", f"s{number % 7}", ""))
            if number % 7 == 6:
                scene.server.remove(SLICES, "s3")
                expected.append(("remove", "s3"))
        await scene.becomes(State.CURRENT)
        assert scene.witness.entries[1:] == [*expected, ("synced",)]
        assert scene.server.lists(SLICES) == 1
        assert scene.health().interruptions == 1

    play(tmp_path, story)


def test_a_connection_cut_within_a_line_loses_no_event_and_doubles_none(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        watcher = await scene.open_watch()
        scene.server.put(SLICES, a_slice("before"))
        await eventually("the slice is known", lambda: scene.slices() == {"before"})
        scene.server.say(watcher, b'{"type": "ADDED", "object": {"metadata": {"na')
        await eventually("half a line is sent", watcher.lines.empty)
        scene.server.cut(watcher)
        await scene.becomes(State.LOST)
        scene.server.put(SLICES, a_slice("after"))
        await scene.becomes(State.CURRENT)
        assert scene.told("apply") == [("apply", "before", ""), ("apply", "after", "")]
        assert scene.server.lists(SLICES) == 1

    play(tmp_path, story)


SOON_SILENT = Patience(silence=0.3, quiet=0.05, succession=0.3, apart=0.01, shortest_pause=0.01, longest_pause=0.05)


def test_a_silent_watch_gets_a_successor_though_its_connection_is_not_closed(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        (await scene.open_watch()).hushed = True
        scene.server.put(SLICES, a_slice())
        await eventually("the slice is known", lambda: scene.slices() == {"s1"})
        await eventually("the silent watch is closed", lambda: not any(each.hushed for each in scene.server.watchers))
        assert scene.server.lists(SLICES) == 1

    play(tmp_path, story, patience=SOON_SILENT)


def test_a_server_that_has_fallen_silent_is_noticed(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        (await scene.open_watch()).hushed = True
        scene.server.fault(Fault(silent=True), times=None)
        await scene.becomes(State.LOST)

    play(tmp_path, story, patience=SOON_SILENT)


def test_a_kind_that_gets_no_bookmarks_stays_current(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        await eventually("successors for a while", lambda: sum(asked.watch for asked in scene.server.asked) > 5)
        assert scene.told("synced", "lost") == [("synced",)]

    play(tmp_path, story, patience=Patience(silence=0.7, quiet=0.05, succession=1.5, apart=0.01))


def test_bookmarks_alone_keep_a_watch_current_and_say_where_to_go_on(tmp_path: Path) -> None:
    patience = Patience(silence=0.5, quiet=0.05, shortest_pause=0.01, longest_pause=0.05)

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        watcher = await scene.open_watch()
        began = time.monotonic()
        await eventually("a time longer than the limit of silence", lambda: time.monotonic() > began + 1.0)
        scene.server.put(CLASSES, {"metadata": {"name": "c"}})
        sent = watcher.sent
        await eventually("another bookmark", lambda: watcher.sent > sent + 1)
        assert scene.server.watches(SLICES) == [watcher]
        scene.server.cut(watcher)
        await scene.becomes(State.LOST)
        await scene.becomes(State.CURRENT)
        assert scene.server.watches(SLICES)[0].asked.query["resourceVersion"] == "1001"

    def prepare(server: ApiServer) -> None:
        server.bookmark_seconds = 0.05

    play(tmp_path, story, patience=patience, prepare=prepare)


@pytest.mark.parametrize("in_watch", [True, False], ids=["as an event", "as a status code"])
def test_a_version_that_is_too_old_is_followed_by_a_list(tmp_path: Path, in_watch: bool) -> None:  # noqa: FBT001 - a row
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        server = scene.server
        server.gone_in_watch = in_watch
        server.fault(Fault(delay_seconds=0.1), watch=True)
        server.cut(await scene.open_watch())
        await scene.becomes(State.LOST)
        server.remove(SLICES, "s0")
        server.compact()
        await scene.becomes(State.CURRENT)
        assert scene.slices() == {"s1"}
        assert server.lists(SLICES) == 2

    play(tmp_path, story, prepare=slices(2))


@pytest.mark.parametrize("code", [410, 500, 504])
def test_an_error_event_is_followed_by_a_list(tmp_path: Path, code: int) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        scene.server.error(await scene.open_watch(), code)
        await scene.becomes(State.LOST)
        await scene.becomes(State.CURRENT)
        assert scene.server.lists(SLICES) == 2

    play(tmp_path, story)


@pytest.mark.parametrize(
    "line",
    [b"garbage", b"{}", b"[]", b"5", b'{"type": "ADDED"}', b'{"type": "MOVED", "object": {}}', b"\xff\xfe", b""],
)
def test_a_line_that_is_no_event_is_followed_by_a_list(tmp_path: Path, line: bytes) -> None:
    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        scene.server.say(await scene.open_watch(), line + b"\n")
        await scene.becomes(State.LOST)
        await scene.becomes(State.CURRENT)
        assert scene.server.lists(SLICES) == 2

    play(tmp_path, story)


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
from tests.apiserver import SLICES, ApiServer
from tests.cluster.test_watch import a_slice

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
