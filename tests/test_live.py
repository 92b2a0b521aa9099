"""A live cluster as a whole: what is read of it, and when it is ready."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

import pytest

from app.cluster.lookups import READS_AT_ONCE
from app.dra.demand import Ask, ClaimReferences, Lookup
from app.dra.judgement import Policy, Source
from app.dra.tallies import Tallies
from app.live import Live
from tests.apiserver import ApiServer, eventually
from tests.apiserver_parts import CLAIMS, CLASSES, NODES, PODS, SLICES, TAINT_RULES, Fault
from tests.cluster.watching import a_slice

Story = Callable[[ApiServer, Live], Awaitable[None]]


def play(folder: Path, source: Source, story: Story, withheld: Collection[str] = ()) -> None:
    """Run a story with a cluster that is followed."""

    async def run() -> None:
        async with ApiServer() as server:
            kubeconfig = server.kubeconfig(folder)
            live = await Live.connect(
                kubeconfig, None, Policy(source), time.time, refresh_seconds=60.0, withheld=withheld
            )
            following = asyncio.create_task(live.follow())
            try:
                await story(server, live)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                await live.close()

    asyncio.run(run())


ALL = {CLASSES, SLICES, TAINT_RULES, NODES, CLAIMS, PODS}


@pytest.mark.parametrize(
    ("source", "read"),
    [(Source.POOL_STATUS, ALL - {CLAIMS, PODS}), (Source.WITNESS, ALL), (Source.BOTH, ALL), (Source.AUTO, ALL)],
)
def test_who_holds_what_is_read_for_every_source_but_counts_alone(
    tmp_path: Path, source: Source, read: set[str]
) -> None:
    async def story(server: ApiServer, live: Live) -> None:
        await live.read()
        assert {asked.path for asked in server.asked if asked.path != "/version" and asked.method == "GET"} == read
        assert live.problem == ""

    play(tmp_path, source, story)


def test_what_is_withheld_is_not_asked_for_and_lacks_nothing(tmp_path: Path) -> None:
    async def story(server: ApiServer, live: Live) -> None:
        await live.read()
        references = ClaimReferences(("claim",), ("template",))
        for reader in (live, live.claims_of_checks):
            found = await reader.lookups("team-a", references)
            assert (found.claims["claim"], found.templates["template"]) == (Lookup.FAILED, Lookup.FAILED)
        asked = {asked.path for asked in server.asked if asked.method == "GET"}
        assert asked - {"/version"} == ALL - {NODES, TAINT_RULES}
        assert (live.problem, live.switches()["nodes"]) == ("", "off")

    play(tmp_path, Source.WITNESS, story, ("claims", "nodes", "taint-rules"))


def test_checks_take_no_reads_from_reviews(tmp_path: Path) -> None:
    async def story(server: ApiServer, live: Live) -> None:
        await live.read()
        server.fault(
            Fault(silent=True), path="/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims/slow", times=None
        )
        names = ClaimReferences(("slow",))
        async with asyncio.TaskGroup() as checks:
            asked = [checks.create_task(live.claims_of_checks.lookups("team-a", names)) for _ in range(READS_AT_ONCE)]
            await asyncio.sleep(0)
            found = await live.lookups("team-a", ClaimReferences(("none",)))
            assert found.claims["none"] is Lookup.MISSING
            for each in asked:
                each.cancel()

    play(tmp_path, Source.WITNESS, story)


def test_once_ready_it_stays_ready_whatever_the_api_server_does(tmp_path: Path) -> None:
    async def story(server: ApiServer, live: Live) -> None:
        assert live.missing().startswith("not read yet: ")
        await eventually("ready", lambda: not live.missing())
        await server.stop()
        await eventually("all lost", lambda: live.problem)
        assert not live.known
        assert live.missing() == ""

    play(tmp_path, Source.AUTO, story)


def many_devices(server: ApiServer) -> None:
    """More than a review may look at."""
    server.put(CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
    for number in range(10):
        server.put(SLICES, a_slice(f"s{number}", devices=100))


def is_counted(live: Live) -> bool:
    witness = live.latest.get().witness
    return witness.devices_unknown is None and witness.tally(Ask("gpu")).complete


def test_a_kind_that_cannot_be_read_keeps_no_class_from_being_counted(tmp_path: Path) -> None:
    async def story(server: ApiServer, live: Live) -> None:
        many_devices(server)
        server.fault(Fault(status=500), path=TAINT_RULES, times=None)
        await eventually("counted", lambda: "devicetaintrules" in live.problem and is_counted(live))
        assert not live.known
        assert live.missing()
        server.heal()
        await eventually("ready", lambda: not live.missing())

    play(tmp_path, Source.WITNESS, story)


def test_a_bug_in_counting_leaves_a_class_unknown_for_a_while_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("app.live.COUNTING_AGAIN_SECONDS", 0.01)
    work, bugs = Tallies.work, [ZeroDivisionError(), ZeroDivisionError()]

    def with_bugs(tallies: Tallies, looks: int) -> bool:
        if bugs:
            raise bugs.pop()
        return work(tallies, looks)

    monkeypatch.setattr(Tallies, "work", with_bugs)

    async def story(server: ApiServer, live: Live) -> None:
        many_devices(server)
        await eventually("counted", lambda: not bugs and is_counted(live))

    play(tmp_path, Source.WITNESS, story)
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert errors == ["counting failed"] * 2
