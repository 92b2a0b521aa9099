"""How soon the answer follows the cluster, measured, with the pool statuses at their usual once a minute."""

import time
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.scene import Scene
from tests.live.serving import Vacancy

FULL_SECONDS, FREED_SECONDS = 10.0, 1.0
"""What is promised: a class that became full 10 s ago is refused, one freed 1 s ago is not."""

MINUTE = 60.0


@pytest.mark.parametrize("source", ["witness", "both", "auto"])
def test_what_was_taken_or_freed_a_moment_ago_is_known(
    source: str, plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = Scene(plane)
    scene.add_class()
    scene.publish(2)
    late = scene.pod("late")
    full, freed = [], []
    with Vacancy(plane, tmp_path / f"delays-{source}", source, refresh_seconds=MINUTE) as vacancy:
        until("room", lambda: vacancy.reason(late, scene.name) == "HasRoom")
        if source != "witness":  # from here on there is one status, of a time when both were free
            until("counted", lambda: vacancy.metric("vacancy_snapshot_age_seconds", driver=scene.driver))
        scene.hold(scene.pod("kept"))
        for number in range(5):
            name = f"holder-{number}"
            scene.client.post(scene.pods, scene.pod(name))
            scene.bound(name)
            began = time.perf_counter()
            until("full", lambda: vacancy.refuses(late, scene.name))
            full.append(time.perf_counter() - began)
            began = time.perf_counter()
            scene.free(name)
            until("room", lambda: vacancy.admits(late, scene.name))
            freed.append(time.perf_counter() - began)
        requests = vacancy.metric("vacancy_pool_status_requests_total", driver=scene.driver)
    scene.close()
    with capsys.disabled():
        print(  # noqa: T201 - to be written down
            f"\n{source}: refused at most {max(full) * 1e3:.0f} ms after the last device was taken,"
            f" admitted at most {max(freed) * 1e3:.0f} ms after one was freed"
        )
    assert requests == (0 if source == "witness" else 1)
    assert max(full) < FULL_SECONDS
    assert max(freed) < FREED_SECONDS
