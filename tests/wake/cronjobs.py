"""CronJobs on a full class: each minute one more Job that waits, and all that grows of ours is a list of names."""

# ruff: noqa: T201 - the figures are to be written down

import time
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.owners import Owner
from tests.live.scene import Scene
from tests.live.serving import Vacancy, requests_of_ours

CRON_JOBS, MINUTES = 5, 3
"""As many Jobs as one CronJob makes in 15 min."""

GROWTH_KB = 4096
"""Of the process, at most: what Python allocates at once is more than what 15 owners need."""


def test_what_waits_is_known_once_told_once_a_minute_and_forgotten(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs_to_come = CRON_JOBS * MINUTES
    with Vacancy(plane, tmp_path / "cronjobs", "auto") as vacancy:
        vacancy.register(plane)
        scene = Scene(plane, vacancy.label)
        scene.fill_up()
        until("full", lambda: vacancy.refuses(scene.pod("late"), scene.name))
        before = resident_kb(vacancy)
        began = time.monotonic()
        crons = [Owner.make(scene, "CronJob", f"cron-{n}", schedule="* * * * *") for n in range(CRON_JOBS)]
        jobs = Owner(scene, "Job", "")
        until(f"{jobs_to_come} jobs", lambda: len(scene.client.get(jobs.collection)["items"]) >= jobs_to_come, 300)
        for cron in crons:
            scene.client.patch(cron.path, {"spec": {"suspend": True}})
        until("each has been refused", lambda: vacancy.metric("vacancy_wake_waiting_owners") >= jobs_to_come)
        time.sleep(60)
        minutes = (time.monotonic() - began) / 60
        found = len(scene.client.get(jobs.collection)["items"])
        waiting, grown = vacancy.metric("vacancy_wake_waiting_owners"), resident_kb(vacancy) - before
        told = sum(line["msg"] == "refused" for line in vacancy.log)
        news = vacancy.metric("vacancy_refusals_total", attempt="new")
        repeats = vacancy.metric("vacancy_refusals_total", attempt="repeated")

        scene.free("holder-0")
        until("one of them has it", lambda: any(cron.bound() for cron in crons))
        for cron in crons:
            scene.client.delete(cron.path, propagationPolicy="Background")
        scene.client.delete(scene.pods, gracePeriodSeconds=0)
        until("all forgotten", lambda: vacancy.metric("vacancy_wake_waiting_owners") == 0, seconds=60)
        scene.close()
    with capsys.disabled():
        print(
            f"\n{found} Jobs in {minutes:.1f} min: {waiting:.0f} owners wait, {grown} kB more memory, "
            f"{told} log lines, {news:.0f} new and {repeats:.0f} repeated refusals"
        )
    assert waiting == found
    assert told == news
    assert news <= found * (minutes + 1)
    assert grown < GROWTH_KB
    assert requests_of_ours(plane) == []


def resident_kb(vacancy: Vacancy) -> int:
    status = Path(f"/proc/{vacancy.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
