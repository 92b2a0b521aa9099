"""Lists, watches and their ends: when a kind is current and when it is not."""

import asyncio
import time
from pathlib import Path

import pytest

from app.cluster.pace import Pace
from app.cluster.watch import Patience, State
from tests.apiserver import ApiServer, eventually
from tests.apiserver_parts import CLASSES, SLICES, Fault
from tests.cluster.watching import (
    Scene,
    a_slice,
    play,
    slices,
)

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


def test_what_goes_through_all_objects_lets_others_work_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0
    turn = Pace.turn

    async def counted(pace: Pace) -> None:
        nonlocal turns
        turns += 1
        await turn(pace)

    monkeypatch.setattr(Pace, "turn", counted)

    async def story(scene: Scene) -> None:
        await scene.becomes(State.CURRENT)
        told, gone_through, pages = 250, 250, 4
        assert turns == told + gone_through + pages

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


def test_a_kind_that_is_not_heard_of_is_unknown_after_75_seconds_and_bookmarks_come_sooner() -> None:
    patience = Patience()
    assert patience.silence > 60
    assert patience.silence + patience.succession == 75


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
