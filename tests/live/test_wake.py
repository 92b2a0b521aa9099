"""Refused owners and the device that frees: the real controllers try again, and the real scheduler binds their pods."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.cluster.rights import CORE, WAKE, WITNESS
from app.dra.wake import End
from tests.controlplane.client import Json
from tests.controlplane.helm import Helm
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.owners import KINDS, Owner
from tests.live.scene import Scene
from tests.live.serving import Vacancy

CHART = Path(__file__).parents[2] / "charts/vacancy"

ACCOUNT = "vacancy-wake"

PROMISED_SECONDS = 2.0
"""From a device's release to the pod that is bound to it."""

PAUSE_SECONDS = 7.2
"""Into the backoff of every controller: until 10.3 s and, for a Job, 15 s none tries by itself."""

WOKEN = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job")


@pytest.fixture(scope="module")
def policy(plane: ControlPlane, helm4: Helm) -> None:
    """The chart's bounds for our service account, so that all that is tested here is tested within them."""
    options = ("--namespace=default", f"--set=fullnameOverride={ACCOUNT}", "--kube-version=1.37.0")
    rendered = helm4("template", "vacancy", CHART, *options, "--show-only=templates/wake-policy.yaml")
    applied = plane.kubectl("apply", "-f", "-", input=rendered)
    assert applied.returncode == 0, applied.stderr


@pytest.fixture(scope="module")
def vacancy(
    plane: ControlPlane,
    policy: None,  # noqa: ARG001 - in force
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Vacancy]:
    with Vacancy(plane, tmp_path_factory.mktemp("wake") / ACCOUNT, "auto") as vacancy:
        vacancy.register(plane)
        yield vacancy


@pytest.fixture
def scene(plane: ControlPlane, vacancy: Vacancy) -> Iterator[Scene]:
    scene = full(plane, vacancy)
    yield scene
    scene.close()


def full(plane: ControlPlane, vacancy: Vacancy, devices: int = 1) -> Scene:
    """A scene whose devices are all taken, as the server knows."""
    scene = Scene(plane, vacancy.label)
    scene.fill_up(devices)
    until("full", lambda: vacancy.refuses(scene.pod("late"), scene.name))
    return scene


def nudges(vacancy: Vacancy, outcome: str) -> float:
    return vacancy.metric("vacancy_wake_nudges_total", outcome=outcome)


def outcomes(vacancy: Vacancy) -> dict[str, float]:
    return {end.value: nudges(vacancy, end) for end in End}


def test_each_kind_of_owner_gets_its_pod_bound_soon_after_a_device_is_free(
    plane: ControlPlane, vacancy: Vacancy, capsys: pytest.CaptureFixture[str]
) -> None:
    owners = [Owner.make(full(plane, vacancy), kind) for kind in WOKEN]
    refused_at = max(owner.until_refused() for owner in owners)
    time.sleep(max(0.0, refused_at + PAUSE_SECONDS - time.monotonic()))
    created, bound = {}, {}
    for owner in owners:
        began = time.monotonic()
        owner.scene.free("holder-0")
        until(f"a pod of {owner.kind}", owner.pods)
        created[owner.kind] = time.monotonic() - began
        owner.until_bound()
        bound[owner.kind] = time.monotonic() - began
    for owner in owners:
        owner.scene.client.delete(owner.path, propagationPolicy="Background")
        owner.scene.close()
    with capsys.disabled():
        said = ", ".join(f"{kind} {created[kind]:.2f} s, {bound[kind]:.2f} s" for kind in WOKEN)
        print(f"\nfrom a device's release to a pod, and to a bound pod: {said}")  # noqa: T201 - to be written down
    assert max(created.values()) < PROMISED_SECONDS, outcomes(vacancy)
    assert max(bound.values()) < 2 * PROMISED_SECONDS  # the scheduler's part, on a machine that may be busy
    assert nudges(vacancy, "admitted") >= len(WOKEN)


def test_an_owner_of_several_pods_gets_each_device_as_it_frees(plane: ControlPlane, vacancy: Vacancy) -> None:
    scene = full(plane, vacancy, devices=3)
    owner = Owner.make(scene, "ReplicaSet", replicas=3)
    owner.until_refused()
    for number in range(3):
        began = time.monotonic()
        scene.free(f"holder-{number}")
        owner.until_bound(number + 1)
        assert time.monotonic() - began < 2 * PROMISED_SECONDS  # an owner rests for 2 s
    scene.client.delete(owner.path, propagationPolicy="Background")
    scene.close()


def test_of_many_owners_as_many_get_a_pod_as_devices_are_free_and_nobody_is_woken_in_vain(
    plane: ControlPlane, vacancy: Vacancy
) -> None:
    devices, crowd = 5, 20
    scene = full(plane, vacancy, devices)
    before = {outcome: nudges(vacancy, outcome) for outcome in ("admitted", "refused")}
    owners = [Owner.make(scene, "ReplicaSet", f"rs-{number:02}") for number in range(crowd)]
    for owner in owners:
        owner.until_refused()
    began = time.monotonic()
    for number in range(devices):
        scene.free(f"holder-{number}")
    until("all devices taken again", lambda: len(bound_pods(scene)) == devices)
    took = time.monotonic() - began
    assert took < 5 * PROMISED_SECONDS
    assert not [pod for pod in pods(scene) if not pod["spec"].get("nodeName")]
    assert nudges(vacancy, "refused") - before["refused"] <= 1  # one that tried by itself may have been faster
    for owner in owners:
        scene.client.delete(owner.path, propagationPolicy="Background")
    scene.close()


def pods(scene: Scene) -> list[Json]:
    return list(scene.client.get(scene.pods)["items"])


def bound_pods(scene: Scene) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods(scene) if pod["spec"].get("nodeName")]


def test_a_template_that_is_tried_without_being_created_wakes_nobody_later(scene: Scene, vacancy: Vacancy) -> None:
    before = vacancy.metric("vacancy_wake_waiting_owners")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}
    pod = scene.pod("tried")
    pod["metadata"]["ownerReferences"] = [owner]
    tried = plane_create(scene, pod, "--dry-run=server")
    assert "[NoGPUCapacity]" in tried
    assert vacancy.metric("vacancy_wake_waiting_owners") == before
    assert "[NoGPUCapacity]" in plane_create(scene, pod)
    assert vacancy.metric("vacancy_wake_waiting_owners") == before + 1
    gone = nudges(vacancy, "gone")
    scene.free("holder-0")
    until("known to be gone", lambda: nudges(vacancy, "gone") == gone + 1)
    assert vacancy.metric("vacancy_wake_waiting_owners") == before


def plane_create(scene: Scene, pod: Json, *flags: str) -> str:
    """What kubectl says against it."""
    return scene.plane.kubectl("create", "-f", "-", *flags, input=json.dumps(pod)).stderr


def test_by_pool_statuses_alone_the_next_count_wakes(plane: ControlPlane, tmp_path: Path) -> None:
    with Vacancy(plane, tmp_path / "vacancy-wake-counts", "pool-status", roles=(CORE, WAKE)) as vacancy:
        vacancy.register(plane)
        scene = full(plane, vacancy)
        owner = Owner.make(scene, "ReplicaSet")
        time.sleep(max(0.0, owner.until_refused() + 21 - time.monotonic()))  # none tries by itself until 41 s
        scene.free("holder-0")
        began = time.monotonic()
        owner.until_bound()
        assert time.monotonic() - began < 10
        assert nudges(vacancy, "admitted") == 1
        scene.client.delete(owner.path, propagationPolicy="Background")
        scene.close()


def test_without_the_right_all_else_goes_on_and_it_is_said_once(plane: ControlPlane, tmp_path: Path) -> None:
    with Vacancy(plane, tmp_path / "vacancy-wake-denied", "witness", roles=(CORE, WITNESS)) as vacancy:
        vacancy.register(plane)
        scene = full(plane, vacancy)
        owner = Owner.make(scene, "Job")
        owner.until_refused()
        scene.free("holder-0")
        owner.until_bound()  # by its own next attempt
        scene.client.delete(owner.path, propagationPolicy="Background")
        scene.close()
        assert nudges(vacancy, "forbidden") <= 1
        said = [line for line in vacancy.log if line["msg"] == "may not wake owners of refused pods"]
        assert len(said) == nudges(vacancy, "forbidden")


# --- The policy -------------------------------------------------------------------------------------------------------


def patched(scene: Scene, path: str, patch: Json) -> httpx.Response:
    """What the API server says to a patch by our service account."""
    headers = {
        "Content-Type": "application/merge-patch+json",
        "Impersonate-User": f"system:serviceaccount:default:{ACCOUNT}",
    }
    return scene.client.http.patch(path, content=json.dumps(patch), headers=headers)


def woken(value: str, **metadata: object) -> Json:
    return {"metadata": {"annotations": {"gpu-vacancy.dev/wake": value}, **metadata}}


FORBIDDEN: dict[str, Json] = {
    "a label": {"metadata": {"labels": {"app": "other"}}},
    "a label beside the annotation": woken("1", labels={"new": "label"}),
    "a long value": woken("x" * 33),
    "a prefix for names": {"metadata": {"generateName": "other-"}},
    "a link": {"metadata": {"selfLink": "/other"}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/forever"]}},
    "an owner": {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}},
    "another annotation": {"metadata": {"annotations": {"example.com/note": "x"}}},
    "another annotation's value": {"metadata": {"annotations": {"example.com/kept": "y"}}},
    "another annotation's end": {"metadata": {"annotations": {"example.com/kept": None}}},
    "the status": {"status": {"observedGeneration": 99}},
}


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController", "Job"])
def test_the_chart_lets_our_account_change_one_annotation_and_nothing_else(scene: Scene, kind: str) -> None:
    owner = Owner.make(scene, kind)
    scene.client.patch(owner.path, {"metadata": {"annotations": {"example.com/kept": "x"}}})
    owner.until_refused()
    for what, patch in FORBIDDEN.items():
        patch = {"status": {"terminating": 7}} if (kind, what) == ("Job", "the status") else patch  # noqa: PLW2901
        answered = patched(scene, f"{owner.path}/status", patch)
        assert answered.status_code == 403, (what, answered.text)
        assert "only the annotation gpu-vacancy.dev/wake may change" in answered.text, what
    assert patched(scene, owner.path, woken("1")).status_code == 403
    uid = scene.client.get(owner.path)["metadata"]["uid"]
    assert patched(scene, f"{owner.path}/status", woken("1", uid="another")).status_code == 422
    kept = scene.client.get(owner.path)["metadata"]
    assert kept["annotations"].get("gpu-vacancy.dev/wake") is None
    assert (kept.get("finalizers"), kept.get("ownerReferences")) == (None, None)

    assert patched(scene, f"{owner.path}/status", woken("1", uid=uid)).status_code == 200
    version = patched(scene, f"{owner.path}/status", woken("2", uid=uid)).json()["metadata"]["resourceVersion"]
    again = patched(scene, f"{owner.path}/status", woken("2", uid=uid)).json()["metadata"]["resourceVersion"]
    if again != version:  # its controller has written in between
        version, again = (
            again,
            patched(scene, f"{owner.path}/status", woken("2", uid=uid)).json()["metadata"]["resourceVersion"],
        )
    assert again == version
    scene.client.delete(owner.path, propagationPolicy="Background")


def test_every_kind_that_is_woken_is_known_here() -> None:
    assert set(WOKEN) < set(KINDS)
