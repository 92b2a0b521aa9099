"""200 owners before a full class, and 20 devices that free at once."""

# ruff: noqa: T201 - the figures are to be written down

import time
from pathlib import Path

import pytest

from app.dra.wake import End
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.owners import Owner
from tests.live.scene import Scene
from tests.live.serving import Vacancy

OWNERS, DEVICES = 200, 20
KINDS = ("ReplicaSet", "StatefulSet", "Deployment")

QUIET_SECONDS = 20.0
"""Without a refusal: all owners are then between two far-off attempts of their own, and what happens is our doing."""

BOUND_SECONDS = 10.0
WASTED_AT_MOST = 0.02


def test_as_many_as_devices_get_one_within_seconds_and_hardly_any_is_woken_in_vain(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Vacancy(plane, tmp_path / "crowd", "auto") as vacancy:
        vacancy.register(plane)
        scene = Scene(plane, vacancy.label)
        scene.fill_up(DEVICES)
        until("full", lambda: vacancy.refuses(scene.pod("late"), scene.name))
        owners = [
            Owner.make(scene, KINDS[number % len(KINDS)], f"owner-{number:03}", podManagementPolicy="Parallel")
            if KINDS[number % len(KINDS)] == "StatefulSet"
            else Owner.make(scene, KINDS[number % len(KINDS)], f"owner-{number:03}")
            for number in range(OWNERS)
        ]
        until("all refused", lambda: vacancy.metric("vacancy_wake_waiting_owners") == OWNERS)
        until_quiet(vacancy)
        before = {end: vacancy.metric("vacancy_wake_nudges_total", outcome=end) for end in End}
        began = time.monotonic()
        for number in range(DEVICES):
            scene.free(f"holder-{number}")
        until("all devices taken again", lambda: len(bound(scene)) == DEVICES)
        took = time.monotonic() - began
        time.sleep(3)  # until the last nudge has had its effect
        ends = {end: vacancy.metric("vacancy_wake_nudges_total", outcome=end) - before[end] for end in End}
        pending = len(scene.client.get(scene.pods)["items"]) - DEVICES
        for owner in owners:
            scene.client.delete(owner.path, propagationPolicy="Background")
        scene.close()
    total = sum(ends.values())
    with capsys.disabled():
        print(f"\n{OWNERS} owners, {DEVICES} devices: all bound after {took:.1f} s, {pending} more pods pending")
        print(f"{total:.0f} nudges: { {end.value: count for end, count in ends.items() if count} }")
    assert took < BOUND_SECONDS
    assert total - ends[End.ADMITTED] <= WASTED_AT_MOST * total


def until_quiet(vacancy: Vacancy) -> None:
    """Return when nobody has been refused for a while: in the gap before the attempts after 328 s, or 656 s."""
    last, since = -1.0, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(1)
        refused = vacancy.metric("vacancy_refusals_total")
        if refused != last:
            last, since = refused, time.monotonic()


def bound(scene: Scene) -> list[str]:
    found = scene.client.get(scene.pods)["items"]
    return [pod["metadata"]["name"] for pod in found if pod["spec"].get("nodeName")]
