"""Changing what runs on a full class: how each kind of roll-out ends, told with no kubelet but a few status patches."""

import json

import httpx
import pytest

from tests.controlplane.client import Json
from tests.controlplane.waiting import until
from tests.live.owners import Owner
from tests.live.scene import Scene
from tests.live.serving import Vacancy

auto = pytest.mark.parametrize("source", ["auto"])


def running(scene: Scene, kind: str, devices: int = 1, **spec: object) -> Owner:
    """An object whose pods run and hold all devices."""
    scene.add_class()
    scene.publish(devices)
    owner = Owner.make(scene, kind, replicas=devices, **spec)
    owner.until_bound(devices)
    owner.say_running()
    return owner


def is_full(scene: Scene, vacancy: Vacancy) -> None:
    until("full", lambda: vacancy.refuses(scene.pod("late"), scene.name))


def is_known_to_end(scene: Scene, vacancy: Vacancy) -> None:
    """A kubelet would take a second or more to end a pod; the server knows of it after some milliseconds."""
    until("room", lambda: vacancy.admits(scene.pod("late"), scene.name))


def roll(owner: Owner) -> None:
    """Give it another template."""
    owner.scene.client.patch(owner.path, {"spec": {"template": owner.template("2")}})


@auto
def test_a_pod_that_replaces_one_being_deleted_is_admitted_and_bound_when_that_has_gone(
    scene: Scene, vacancy: Vacancy
) -> None:
    """`maxSurge: 0`: the old pod goes first, and holds its device until it has ended.

    The controllers do both within milliseconds, in any order: held up, they find the old pod on its way out.
    """
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    owner = running(scene, "Deployment", strategy=rolling)
    is_full(scene, vacancy)
    [old] = owner.bound()
    with scene.plane.without_controllers():
        scene.client.delete(f"{scene.pods}/{old}")
        roll(owner)
        is_known_to_end(scene, vacancy)
    until("the new pod waits with the scheduler", lambda: owner.pods("2"))
    assert scene.refusals() == []
    assert owner.bound("2") == []
    scene.free(old)
    owner.until_bound(version="2")
    scene.client.delete(owner.path, propagationPolicy="Background")


@auto
def test_a_pod_too_many_is_refused_the_old_one_runs_on_and_the_roll_ends_when_a_device_frees(
    scene: Scene, vacancy: Vacancy
) -> None:
    """`maxSurge: 1` on a full class."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    scene.add_class()
    scene.publish(2)
    scene.fill(1)
    owner = Owner.make(scene, "Deployment", strategy=rolling)
    [old] = owner.until_bound()
    owner.say_running()
    is_full(scene, vacancy)
    roll(owner)
    until("the surge pod refused", scene.refusals)
    assert owner.bound("1") == [old]
    scene.free("holder-0")
    [new] = owner.until_bound(version="2")
    owner.say_running(new)
    until("the old pod is told to go", lambda: owner.bound("1") == [])
    scene.client.delete(owner.path, propagationPolicy="Background")


@auto
def test_recreate_waits_for_the_old_pods_and_then_finds_their_devices_free(scene: Scene, vacancy: Vacancy) -> None:
    owner = running(scene, "Deployment", devices=2, strategy={"type": "Recreate"})
    is_full(scene, vacancy)
    old = owner.bound()
    roll(owner)
    until("all told to go", lambda: owner.bound("1") == [])
    is_known_to_end(scene, vacancy)
    for name in old:
        scene.free(name)
    owner.until_bound(2, version="2")
    assert scene.refusals() == []
    scene.client.delete(owner.path, propagationPolicy="Background")


@auto
def test_a_stateful_sets_pod_finds_the_device_of_its_predecessor_free(scene: Scene, vacancy: Vacancy) -> None:
    owner = running(scene, "StatefulSet", devices=2, podManagementPolicy="Parallel")
    is_full(scene, vacancy)
    roll(owner)
    for name in ("statefulset-1", "statefulset-0"):  # the last one first, and one at a time
        until(f"{name} is told to go", lambda: name not in owner.bound("1"))  # noqa: B023 - called at once
        is_known_to_end(scene, vacancy)
        scene.free(name)
        until(f"{name} is there anew", lambda: name in owner.bound("2"))  # noqa: B023
        owner.say_running(name)
    assert scene.refusals() == []
    scene.client.delete(owner.path, propagationPolicy="Background")


@auto
def test_a_workload_is_told_how_many_of_its_pods_fit_and_nothing_when_they_stay_as_they_are(
    scene: Scene, vacancy: Vacancy
) -> None:
    scene.add_class()
    scene.publish(3)
    scene.fill(1)
    vacancy.register_workloads(scene.plane)
    owner = Owner(scene, "Deployment", "told")
    until("asked", lambda: "2 of 5 pods fit now" in applied(owner, "--dry-run=server", replicas=5))
    said = applied(owner, replicas=5)
    assert "Warning: [FewerThanAsked]" in said
    assert "Warning: 2 of 5 pods fit now; the others start by themselves when devices are free" in said
    assert applied(owner, replicas=5) == ""
    annotated = {"metadata": {"annotations": {"example.com/note": "x"}}}
    assert "warning" not in patched(owner, annotated).headers
    assert "warning" not in patched(owner, {"spec": {"replicas": 3}}).headers
    is_full(scene, vacancy)
    assert "0 of 1 pod fits now" in patched(owner, {"spec": {"replicas": 4}}).headers["warning"]
    scene.client.delete(owner.path, propagationPolicy="Background")


def applied(owner: Owner, *flags: str, **spec: object) -> str:
    """What kubectl prints on standard error."""
    tried = owner.scene.plane.kubectl("apply", "-f", "-", *flags, input=json.dumps(owner.body(**spec)))
    assert tried.returncode == 0, tried.stderr
    return tried.stderr


def patched(owner: Owner, patch: Json) -> httpx.Response:
    """The API server's answer to a change."""
    headers = {"Content-Type": "application/merge-patch+json"}
    return owner.scene.client.http.patch(owner.path, content=json.dumps(patch), headers=headers)
