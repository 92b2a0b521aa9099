"""One question to the controller manager, over HTTP, and what is left in the cluster afterwards: nothing."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.cluster import pool_status
from app.cluster.client import ApiClient
from app.cluster.pool_status import LEFTOVER_SECONDS, Reply, Unanswered, ask, remove_all, sweep
from app.dra.vacancy import ResourcePoolStatusRequest
from tests.apiserver import ApiServer, eventually
from tests.apiserver_parts import POOL_STATUS_REQUESTS, Answer, Fault
from tests.builders import DRIVER, NOON, Json, pool_counts, timestamp

LABEL = {"app.kubernetes.io/managed-by": "vacancy"}
COMPLETE: Json = {
    "poolCount": 1,
    "pools": [pool_counts("n1")],
    "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": timestamp(NOON)}],
}
FAILED: Json = {"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": timestamp(NOON)}]}

Story = Callable[[ApiServer, ApiClient], Awaitable[None]]


def play(folder: Path, story: Story) -> None:
    async def main() -> None:
        async with ApiServer() as server:
            client = await ApiClient.connect(server.kubeconfig(folder), None)
            try:
                await story(server, client)
            finally:
                await client.close()

    asyncio.run(main())


def asked(folder: Path, prepare: Callable[[ApiServer], object], pool: str | None = None) -> tuple[Reply, list[Json]]:
    """What came of one request for the driver with half a second of patience, and the objects that are left."""
    result: list[tuple[Reply, list[Json]]] = []

    async def story(server: ApiServer, client: ApiClient) -> None:
        prepare(server)
        reply = await ask(client, DRIVER, pool, timeout_seconds=0.5)
        result.append((reply, server.objects(POOL_STATUS_REQUESTS)))

    play(folder, story)
    return result[0]


def answers(
    status: Json = COMPLETE, pool: str | None = None, after_seconds: float = 0.0
) -> Callable[[ApiServer], None]:
    def prepare(server: ApiServer) -> None:
        server.answers[DRIVER, pool] = Answer(status, after_seconds)

    return prepare


@pytest.mark.parametrize("after_seconds", [0.0, 0.2])
def test_what_is_answered_is_returned_and_nothing_is_left(tmp_path: Path, after_seconds: float) -> None:
    reply, left = asked(tmp_path, answers(after_seconds=after_seconds))
    assert isinstance(reply.answer, ResourcePoolStatusRequest)
    assert reply.answer.status is not None
    assert [pool.pool_name for pool in reply.answer.status.pools or ()] == ["n1"]
    assert (reply.withdrawn, reply.outcome, left) == (True, "complete", [])


def test_a_failed_calculation_is_an_answer(tmp_path: Path) -> None:
    reply, left = asked(tmp_path, answers(FAILED))
    assert isinstance(reply.answer, ResourcePoolStatusRequest)
    assert (reply.withdrawn, reply.outcome, left) == (True, "failed", [])


def test_a_status_without_a_condition_we_know_is_no_answer(tmp_path: Path) -> None:
    unknown = COMPLETE | {"conditions": [{"type": "Progressing", "status": "True"}]}
    reply, left = asked(tmp_path, answers(unknown))
    assert (reply, left) == (Reply(Unanswered.SILENT, withdrawn=True), [])


@pytest.mark.parametrize(
    ("pool", "spec"),
    [(None, {"driver": DRIVER, "limit": 1000}), ("n/1", {"driver": DRIVER, "limit": 1000, "poolName": "n/1"})],
)
def test_the_request_asks_for_as_many_pools_as_it_may_and_says_whose_it_is(
    tmp_path: Path, pool: str | None, spec: Json
) -> None:
    created: list[Json] = []

    def prepare(server: ApiServer) -> None:
        answers(pool=pool)(server)
        server.on_create = lambda _collection, made: created.append(made)

    reply, _ = asked(tmp_path, prepare, pool)
    (made,) = created
    assert (made["apiVersion"], made["kind"]) == ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest")
    assert (made["spec"], made["metadata"]["labels"]) == (spec, LABEL)
    assert made["metadata"]["generateName"] == "vacancy-"
    assert reply.outcome == "complete"


def replaced(server: ApiServer) -> None:
    """Somebody deletes our request and puts an answered one of the same name in its place."""

    def replace(_collection: str, made: Json) -> None:
        server.remove(POOL_STATUS_REQUESTS, made["metadata"]["name"])
        foreign = {"metadata": {"name": made["metadata"]["name"]}, "spec": made["spec"], "status": COMPLETE}
        server.put(POOL_STATUS_REQUESTS, foreign)

    server.on_create = replace


def removed(server: ApiServer) -> None:
    server.on_create = lambda _collection, made: server.remove(POOL_STATUS_REQUESTS, made["metadata"]["name"])


def fault(fault: Fault, method: str = "POST") -> Callable[[ApiServer], None]:
    return lambda server: server.fault(fault, method=method, times=None)


def lost_answer(server: ApiServer) -> None:
    def break_down(_collection: str, _made: Json) -> None:
        raise RuntimeError("stored, and then a crash")

    server.on_create = break_down


UNANSWERED: dict[str, tuple[Callable[[ApiServer], Any], Unanswered, bool, int]] = {
    # what happens: why there is no answer, is certainly nothing left, how many objects are
    "nobody answers": (lambda _server: None, Unanswered.SILENT, True, 0),
    "the kind is not served": (fault(Fault(404)), Unanswered.NOT_SERVED, True, 0),
    "we may not create": (fault(Fault(403)), Unanswered.FORBIDDEN, True, 0),
    "we may create and not read": (fault(Fault(403), "GET"), Unanswered.FORBIDDEN, True, 0),
    "we are not known": (fault(Fault(401)), Unanswered.REFUSED, True, 0),
    "the API server finds it invalid": (fault(Fault(422)), Unanswered.REFUSED, True, 0),
    "the name is taken": (fault(Fault(409)), Unanswered.REFUSED, True, 0),
    "the API server is busy": (fault(Fault(429, {"Retry-After": "1"})), Unanswered.THROTTLED, True, 0),
    "the API server fails": (fault(Fault(500)), Unanswered.UNREACHABLE, False, 0),
    "the connection breaks": (fault(Fault(cut=True)), Unanswered.UNREACHABLE, False, 0),
    "the API server does not react": (fault(Fault(silent=True)), Unanswered.UNREACHABLE, False, 0),
    "the creation is answered with something else": (fault(Fault(200, body=b"hello")), Unanswered.REFUSED, False, 0),
    "reading is answered with something else": (fault(Fault(200, body=b"hello"), "GET"), Unanswered.REFUSED, True, 0),
    "reading fails all the time": (fault(Fault(503), "GET"), Unanswered.SILENT, True, 0),
    "it is created and the answer is lost": (lost_answer, Unanswered.UNREACHABLE, False, 1),
    "somebody deletes it": (removed, Unanswered.REPLACED, True, 0),
    "an answered one of somebody else has its name": (replaced, Unanswered.REPLACED, True, 1),
}


@pytest.mark.parametrize(("prepare", "why", "withdrawn", "left"), UNANSWERED.values(), ids=UNANSWERED)
def test_no_answer_has_a_reason(
    tmp_path: Path, prepare: Callable[[ApiServer], object], why: Unanswered, *, withdrawn: bool, left: int
) -> None:
    reply, objects = asked(tmp_path, prepare)
    assert reply == Reply(why, withdrawn)
    assert reply.outcome == why.value
    assert len(objects) == left


def test_what_passes_while_waiting_is_waited_out(tmp_path: Path) -> None:
    def prepare(server: ApiServer) -> None:
        answers()(server)
        for passing in (Fault(503), Fault(cut=True)):
            server.fault(passing, method="GET")

    reply, left = asked(tmp_path, prepare)
    assert (reply.outcome, left) == ("complete", [])


def test_an_answer_counts_though_the_request_cannot_be_deleted(tmp_path: Path) -> None:
    def prepare(server: ApiServer) -> None:
        answers()(server)
        fault(Fault(500), "DELETE")(server)

    reply, left = asked(tmp_path, prepare)
    assert (reply.outcome, reply.withdrawn, len(left)) == ("complete", False, 1)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_who_is_cancelled_leaves_nothing_behind(tmp_path: Path, method: str) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        answers()(server)
        server.fault(Fault(delay_seconds=0.1), method=method)  # comes to pass, unless the client breaks it off
        task = asyncio.create_task(ask(client, DRIVER, timeout_seconds=60))
        await eventually(f"{method} under way", lambda: method in [each.method for each in server.asked])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert server.asked[-1].method == "DELETE"
        assert server.objects(POOL_STATUS_REQUESTS) == []

    play(tmp_path, story)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_who_is_cancelled_does_not_wait_for_an_api_server_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(pool_status, "WITHDRAWAL_SECONDS", 0.1)

    async def story(server: ApiServer, client: ApiClient) -> None:
        answers()(server)
        server.fault(Fault(silent=True), method=method)
        task = asyncio.create_task(ask(client, DRIVER, timeout_seconds=60))
        await eventually(f"{method} under way", lambda: method in [each.method for each in server.asked])
        task.cancel()
        _, late = await asyncio.wait([task], timeout=2)
        assert not late
        assert task.cancelled()
        going_on = {coroutine.__name__ for task in asyncio.all_tasks() if (coroutine := task.get_coro())}
        assert not going_on & {"_create", "_withdrawn"}

    play(tmp_path, story)


def test_all_of_ours_are_removed_and_nothing_else(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        foreign = {"metadata": {"name": "vacancy-0", "labels": {}}, "spec": {"driver": DRIVER}}
        server.put(POOL_STATUS_REQUESTS, foreign)
        for number in range(1, 150):
            metadata = {"name": f"vacancy-{number}", "labels": LABEL}
            server.put(POOL_STATUS_REQUESTS, {"metadata": metadata, "spec": {"driver": DRIVER}})
        server.fault(Fault(500), method="DELETE", times=2)
        assert await remove_all(client) == 2
        assert await remove_all(client) == 0
        assert [each["metadata"]["name"] for each in server.objects(POOL_STATUS_REQUESTS)] == ["vacancy-0"]

    play(tmp_path, story)


# --- Leftovers --------------------------------------------------------------------------------------------------------

NOW = time.time()
OLD, YOUNG = timestamp(NOW - LEFTOVER_SECONDS - 1), timestamp(NOW - LEFTOVER_SECONDS + 10)
LEFTOVERS: dict[str, tuple[Json, bool, bool]] = {
    # metadata: does it go, is nothing of ours left
    "ours and old": ({"labels": LABEL, "creationTimestamp": OLD}, True, True),
    "ours and young, so that somebody may wait for it": ({"labels": LABEL, "creationTimestamp": YOUNG}, False, False),
    "ours and from the future": ({"labels": LABEL, "creationTimestamp": timestamp(NOW + 3600)}, False, False),
    "ours and without an age": ({"labels": LABEL, "creationTimestamp": "yesterday"}, False, False),
    "old and of another owner": (
        {"labels": {"app.kubernetes.io/managed-by": "helm"}, "creationTimestamp": OLD},
        False,
        True,
    ),
    "old and without labels": ({"creationTimestamp": OLD}, False, True),
    "old, with our label and another name": (
        {"name": "mine-1", "labels": LABEL, "creationTimestamp": OLD},
        False,
        True,
    ),
}


@pytest.mark.parametrize(("metadata", "goes", "none_left"), LEFTOVERS.values(), ids=LEFTOVERS)
def test_only_what_is_ours_and_old_is_swept(tmp_path: Path, metadata: Json, *, goes: bool, none_left: bool) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        server.put(POOL_STATUS_REQUESTS, {"metadata": {"name": "vacancy-1"} | metadata, "spec": {"driver": DRIVER}})
        assert await sweep(client, NOW) is none_left
        assert (server.objects(POOL_STATUS_REQUESTS) == []) is goes

    play(tmp_path, story)


def test_a_server_that_ignores_the_selector_does_not_make_us_delete_what_is_not_ours(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        metadata = {"name": "vacancy-1", "uid": "u", "labels": {"team": "a"}, "creationTimestamp": OLD}
        page = msgspec.json.encode({"metadata": {}, "items": [{"metadata": metadata}]})
        server.fault(Fault(200, body=page), method="GET")
        await sweep(client, NOW)
        assert [each.method for each in server.asked] == ["GET"]

    play(tmp_path, story)


def test_leftovers_are_swept_to_the_last_page(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        for number in range(250):
            metadata = {"name": f"vacancy-{number}", "labels": LABEL, "creationTimestamp": OLD}
            server.put(POOL_STATUS_REQUESTS, {"metadata": metadata, "spec": {"driver": DRIVER}})
        assert await sweep(client, NOW)
        assert server.objects(POOL_STATUS_REQUESTS) == []
        assert sum("continue" in asked.query for asked in server.asked) == 2

    play(tmp_path, story)


SWEEP_FAULTS: dict[str, tuple[Fault, str, bool]] = {
    "the list is refused": (Fault(403), "GET", False),
    "the kind is not served": (Fault(404), "GET", False),
    "the list breaks off": (Fault(cut=True), "GET", False),
    "the list is none": (Fault(200, body=b"{}"), "GET", False),
    "deleting fails": (Fault(500), "DELETE", False),
    "it is deleted by another replica": (Fault(404), "DELETE", True),
    "it is replaced by somebody else": (Fault(409), "DELETE", True),
}


@pytest.mark.parametrize(("fault", "method", "none_left"), SWEEP_FAULTS.values(), ids=SWEEP_FAULTS)
def test_a_sweep_that_fails_says_so_and_raises_nothing(
    tmp_path: Path, fault: Fault, method: str, *, none_left: bool
) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        metadata = {"name": "vacancy-1", "labels": LABEL, "creationTimestamp": OLD}
        server.put(POOL_STATUS_REQUESTS, {"metadata": metadata, "spec": {"driver": DRIVER}})
        server.fault(fault, method=method, times=None)
        assert await sweep(client, NOW) is none_left

    play(tmp_path, story)
