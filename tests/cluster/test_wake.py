"""The patch that wakes an owner: what is sent, and what each answer means."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import pytest

from app.cluster.client import ApiClient
from app.cluster.wake import OFF_SECONDS, Waker
from app.dra.objects import OwnerReference
from app.dra.snapshot import build_snapshot
from app.dra.wake import FORBIDDEN_SECONDS, REST_SECONDS, End
from tests.apiserver import ApiServer
from tests.apiserver_parts import Fault
from tests.builders import NOON
from tests.dra.c0 import N1_TAKEN
from tests.dra.line import Line, owner

Story = Callable[[ApiServer, Line, Waker], Awaitable[None]]


def play(folder: Path, line: Line, story: Story) -> None:
    async def run() -> None:
        async with ApiServer() as server, await ApiClient.connect(server.kubeconfig(folder), None) as client:
            await story(server, line, Waker(client, line.queue, lambda: line.world, lambda: line.now))

    asyncio.run(run())


def patched(server: ApiServer) -> list[str]:
    return [asked.path for asked in server.asked]


PATHS = {
    ("apps/v1", "ReplicaSet"): "/apis/apps/v1/namespaces/default/replicasets/a/status",
    ("apps/v1", "StatefulSet"): "/apis/apps/v1/namespaces/default/statefulsets/a/status",
    ("v1", "ReplicationController"): "/api/v1/namespaces/default/replicationcontrollers/a/status",
    ("batch/v1", "Job"): "/apis/batch/v1/namespaces/default/jobs/a/status",
}


@pytest.mark.parametrize("kind", PATHS)
def test_one_annotation_of_the_very_object_is_patched_by_its_status(tmp_path: Path, kind: tuple[str, str]) -> None:
    line = Line()
    line.queue.refused(owner("a", kind[1], kind[0]), "default", line.demand(), line.now)

    async def story(server: ApiServer, line: Line, waker: Waker) -> None:
        server.fault(Fault(status=200))
        await waker.look()
        assert server.asked == []
        line.freed(N1_TAKEN[0])
        await waker.look()
        await waker.look()
        (asked,) = server.asked
        assert (asked.method, asked.path) == ("PATCH", PATHS[kind])
        assert asked.headers["Content-Type"] == "application/merge-patch+json"
        annotations = {"gpu-vacancy.dev/wake": "2026-01-01T12:00:00Z"}
        assert json.loads(asked.body) == {"metadata": {"uid": "uid-of-a", "annotations": annotations}}

    play(tmp_path, line, story)


def test_two_replicas_that_see_a_device_within_one_slot_write_the_same(tmp_path: Path) -> None:
    written = []
    for late in (0.1, 1.9):

        async def story(server: ApiServer, _: Line, waker: Waker) -> None:
            server.fault(Fault(status=200))
            await waker.look()
            written.append(server.asked[0].body)

        play(tmp_path, Line().refused("a").freed(N1_TAKEN[0]).later(late), story)
    assert written[0] == written[1]


@pytest.mark.parametrize("status", [404, 422])
def test_an_owner_that_is_gone_is_forgotten_and_the_next_is_woken(tmp_path: Path, status: int) -> None:
    async def story(server: ApiServer, line: Line, waker: Waker) -> None:
        server.fault(Fault(status=status))
        server.fault(Fault(status=200))
        await waker.look()
        await waker.look()
        assert [path.split("/")[-2] for path in patched(server)] == ["a", "b"]
        assert line.queue.ends == {End.GONE: 1}
        assert len(line.queue) == 1

    play(tmp_path, Line().refused("a", "b").freed(N1_TAKEN[0]), story)


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=429), Fault(status=409), Fault(cut=True)])
def test_an_owner_that_could_not_be_patched_is_tried_again_after_its_rest(tmp_path: Path, fault: Fault) -> None:
    async def story(server: ApiServer, line: Line, waker: Waker) -> None:
        server.fault(fault)
        server.fault(Fault(status=200))
        await waker.look()
        assert line.queue.ends == {End.FAILED: 1}
        line.later(REST_SECONDS - 0.1)
        await waker.look()
        assert len(server.asked) == 1
        line.later(0.1)
        await waker.look()
        assert len(server.asked) == 2

    play(tmp_path, Line().refused("a").freed(N1_TAKEN[0]), story)


def test_without_the_right_nobody_is_woken_for_a_while_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(server: ApiServer, line: Line, waker: Waker) -> None:
        server.fault(Fault(status=403), times=2)
        server.fault(Fault(status=200))
        await waker.look()
        allowed = [waker.allowed]
        line.later(FORBIDDEN_SECONDS - 1)
        await waker.look()
        assert len(server.asked) == 1
        for _ in range(2):
            line.later(FORBIDDEN_SECONDS)
            await waker.look()
            allowed.append(waker.allowed)
        assert allowed == [False, False, True]
        assert len(server.asked) == 3
        assert line.queue.ends == {End.FORBIDDEN: 2}

    play(tmp_path, Line().refused("a").freed(N1_TAKEN[0]), story)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.WARNING, "may not wake owners of refused pods")
    assert "403" in record.facts["problem"]


def test_a_namespace_that_somebody_protects_holds_up_no_other(tmp_path: Path) -> None:
    line = Line()
    for name, namespace in (("a", "protected"), ("b", "protected"), ("c", "open")):
        line.queue.refused(owner(name), namespace, line.demand(), line.now)

    async def story(server: ApiServer, _: Line, waker: Waker) -> None:
        server.fault(Fault(status=403))
        server.fault(Fault(status=200))
        await waker.look()
        await waker.look()
        assert [path.split("/")[5] for path in patched(server)] == ["protected", "open"]

    play(tmp_path, line.freed(N1_TAKEN[0]), story)


@pytest.mark.parametrize("name", ["../../../../api/v1/nodes/n1", "A", "a/status?x=", ""])
def test_a_name_that_nothing_can_have_is_never_part_of_a_path(tmp_path: Path, name: str) -> None:
    line = Line()
    forged = OwnerReference("ReplicaSet", name, "uid", "apps/v1", controller=True)
    line.queue.refused(forged, "default", line.demand(), line.now)

    async def story(server: ApiServer, line: Line, waker: Waker) -> None:
        await waker.look()
        assert server.asked == []
        assert len(line.queue) == 0

    play(tmp_path, line.freed(N1_TAKEN[0]), story)


def test_a_mistake_of_ours_is_logged_and_does_not_end_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Enough(Exception):
        """Ends a loop that has no end."""

    class Broken:
        """A world that quotes what it holds."""

        snapshot = build_snapshot([], received_at=NOON)

        @property
        def witness(self) -> NoReturn:
            raise ValueError("what a tenant has written")

    line = Line().refused("a").freed(N1_TAKEN[0])
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        line.later(OFF_SECONDS)
        if len(slept) == 3:
            raise Enough

    async def story(_: ApiServer, line: Line, waker: Waker) -> None:
        line.world = Broken()  # type: ignore[assignment]
        with pytest.raises(Enough):
            await waker.run(sleep)

    play(tmp_path, line, story)
    records = caplog.records
    assert [record.getMessage() for record in records] == ["waking failed"] * 2
    for record in records:
        assert record.facts["problem"].startswith("ValueError in test_wake.witness, line ")
        assert record.exc_info is None
