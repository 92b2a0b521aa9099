"""`vacancy cleanup`, against an API server that stands in."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cleanup import cleanup
from app.cluster import webhooks
from app.cluster.client import ApiClient
from app.hooks import Finding
from tests.apiserver import ApiServer
from tests.apiserver_parts import POOL_STATUS_REQUESTS, Fault
from tests.builders import DRIVER

Prepare = Callable[[ApiServer], object]

NAMES = ("vacancy", "vacancy-workloads")


def cleaned(folder: Path, prepare: Prepare) -> tuple[list[Finding], list[str]]:
    """What a cleanup finds after `prepare` where there is one of all, and the names of what is left."""

    async def main() -> tuple[list[Finding], list[str]]:
        async with ApiServer() as server:
            for name in (*NAMES, "other"):
                server.put(webhooks.PATH, {"metadata": {"name": name}, "webhooks": []})
            for name, owner in {"vacancy-1": "vacancy", "vacancy-2": "vacancy", "mine": "me"}.items():
                labels = {"app.kubernetes.io/managed-by": owner}
                server.put(
                    POOL_STATUS_REQUESTS, {"metadata": {"name": name, "labels": labels}, "spec": {"driver": DRIVER}}
                )
            prepare(server)
            async with await ApiClient.connect(server.kubeconfig(folder), None) as client:
                findings = await cleanup(client, NAMES)
            objects = [*server.objects(webhooks.PATH), *server.objects(POOL_STATUS_REQUESTS)]
            return findings, [each["metadata"]["name"] for each in objects]

    return asyncio.run(main())


def test_what_is_ours_goes_and_nothing_else(tmp_path: Path) -> None:
    findings, left = cleaned(tmp_path, lambda _server: None)
    assert [str(finding) for finding in findings] == [
        "ok ValidatingWebhookConfiguration vacancy: deleted",
        "ok ValidatingWebhookConfiguration vacancy-workloads: deleted",
        "ok ResourcePoolStatusRequests: none of ours is left",
    ]
    assert left == ["other", "mine"]


def without_pool_statuses(server: ApiServer) -> None:
    server.refused[POOL_STATUS_REQUESTS] = 404


def test_what_is_not_there_is_fine(tmp_path: Path) -> None:
    def prepare(server: ApiServer) -> None:
        for name in NAMES:
            server.remove(webhooks.PATH, name)
        without_pool_statuses(server)

    findings, _ = cleaned(tmp_path, prepare)
    assert [(finding.is_amiss, finding.text) for finding in findings] == [
        (False, "not there"),
        (False, "not there"),
        (False, "not served by this cluster"),
    ]


def fault(fault: Fault, method: str, path: str | None = None) -> Prepare:
    return lambda server: server.fault(fault, method=method, path=path, times=None)


AMISS: dict[str, tuple[Prepare, str, list[str]]] = {
    # what happens: what is said of it, what is left
    "a configuration may not be deleted": (
        fault(Fault(403), "DELETE", f"{webhooks.PATH}/vacancy"),
        "FAILED ValidatingWebhookConfiguration vacancy: may not be deleted: grant this account 'delete' on it",
        ["other", "vacancy", "mine"],
    ),
    "requests may not be listed": (
        fault(Fault(403), "GET"),
        "FAILED ResourcePoolStatusRequests: may not be listed: grant this account 'list' and 'delete'",
        ["other", "mine", "vacancy-1", "vacancy-2"],
    ),
    "a request may not be deleted": (
        fault(Fault(403), "DELETE", f"{POOL_STATUS_REQUESTS}/vacancy-2"),
        (
            "FAILED ResourcePoolStatusRequests: 1 of ours could not be deleted: grant this account 'delete', "
            "or run this again"
        ),
        ["other", "mine", "vacancy-2"],
    ),
    "the API server fails": (
        fault(Fault(503), "DELETE", f"{webhooks.PATH}/vacancy-workloads"),
        (
            "FAILED ValidatingWebhookConfiguration vacancy-workloads: not deleted, "
            f"DELETE {webhooks.PATH}/vacancy-workloads: 503 Service Unavailable: run this again"
        ),
        ["other", "vacancy-workloads", "mine"],
    ),
    "a list that is none": (
        fault(Fault(200, body=b"{}"), "GET"),
        f"FAILED ResourcePoolStatusRequests: not listed, GET {POOL_STATUS_REQUESTS}: expected a list: run this again",
        ["other", "mine", "vacancy-1", "vacancy-2"],
    ),
}


@pytest.mark.parametrize("what", AMISS)
def test_what_is_amiss_is_told_and_keeps_nothing_else_from_going(tmp_path: Path, what: str) -> None:
    prepare, said, left = AMISS[what]
    findings, objects = cleaned(tmp_path, prepare)
    assert [str(finding) for finding in findings if finding.is_amiss] == [said]
    assert objects == left
