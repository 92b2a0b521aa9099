"""Replicas are replaced while pods are created: not one of them slips through."""

import contextlib
import http
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import httpx
import pytest

from tests.controlplane.client import Client, Json
from tests.controlplane.waiting import until
from tests.install.release import Release
from tests.live.scene import Scene

THREADS = 8
"""As many reviews at once: with one alone the API server would never reuse a connection that is about to close."""


class Creations:
    """Creates a pod again and again, for a try only, from several threads, until it is left."""

    def __init__(self, client: Client, path: str, pod: Json) -> None:
        self.milliseconds: list[float] = []
        """How long each refusal took."""
        self.slipped_through: list[str] = []
        """Every other answer."""
        self._client, self._path, self._pod = client, path, pod
        self._told_to_stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(THREADS)]

    def wait_for_more(self) -> None:
        """Return when every replica must have been asked again, many times."""
        count = len(self.milliseconds) + 200
        until("creations flow", lambda: len(self.milliseconds) + len(self.slipped_through) > count)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._told_to_stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._told_to_stop.is_set():
            began = time.monotonic()
            try:
                answer = self._client.http.post(f"{self._path}?dryRun=All", json=self._pod)
            except httpx.TransportError as error:
                self.slipped_through.append(str(error))
                continue
            if answer.status_code == http.HTTPStatus.FORBIDDEN and "[NoGPUCapacity]" in answer.text:
                self.milliseconds.append((time.monotonic() - began) * 1e3)
            else:
                self.slipped_through.append(answer.text)


def failed_open(client: Client) -> float:
    """How often the API server has let a pod through because a webhook did not answer."""
    lines = client.http.get("/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("apiserver_admission_webhook_fail_open_count{")]
    return sum(float(line.rpartition(" ")[2]) for line in found)


@contextlib.contextmanager
def creations_refused(release: Release, scene: Scene) -> Iterator[Creations]:
    """They go on all the while, and not one slips through."""
    release.upgrade(webhook={"timeoutSeconds": 10})  # an answer that is late on a busy machine is not lost
    release.wait_for_full(scene.name)
    before = failed_open(scene.client)
    with Creations(scene.client, scene.pods, scene.pod("late")) as creations:
        creations.wait_for_more()
        yield creations
        creations.wait_for_more()
    assert creations.slipped_through == []
    assert failed_open(scene.client) == before


def test_no_pod_slips_through_while_both_replicas_are_replaced(
    release: Release, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    old = {each["metadata"]["name"] for each in release.replicas()}
    with creations_refused(release, scene) as creations:
        began = time.monotonic()
        for command in (("restart",), ("status", "--timeout=5m")):
            arguments = (*command, f"deployment/{release.name}", f"--namespace={release.name}")
            done = release.plane.kubectl("rollout", *arguments)
            assert done.returncode == 0, done.stderr
        replaced = time.monotonic() - began
        until("old pods gone", lambda: not old & {each["metadata"]["name"] for each in release.pods()})
        gone = time.monotonic() - began
    asked, slowest = len(creations.milliseconds), max(creations.milliseconds)
    with capsys.disabled():
        print(  # noqa: T201 - to be written down
            f"\nboth replicas replaced in {replaced:.1f} s, and gone in {gone:.1f} s:"
            f" {asked} pods refused, the slowest in {slowest:.0f} ms, none slipped through"
        )


def test_no_pod_slips_through_while_a_replica_that_ends_is_still_an_endpoint(release: Release, scene: Scene) -> None:
    with creations_refused(release, scene) as creations:
        for replica in release.replicas():
            with release.plane.without_controllers():  # the API server goes on sending to where it sent before
                release.client.delete(f"/api/v1/namespaces/{release.name}/pods/{replica['metadata']['name']}")
                until("draining", lambda replica=replica: not release.page(replica, "readyz"))  # type: ignore[misc]
                creations.wait_for_more()
            until("replaced", lambda: len(release.ready_replicas()) == 2)
