"""How long a free device waits for a pod: pods left pending, refused without wake, and refused with it, in one run.

`make wake-test` runs it; the table it prints is in docs/wake.md.
"""

# ruff: noqa: T201 - the table is to be written down

import itertools
import statistics
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.owners import Owner
from tests.live.scene import Scene
from tests.live.serving import Vacancy

KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
FREED_AFTER = (5, 60, 300)
"""Seconds from the first refusal to the release."""
ROUNDS = 2

PENDING, REFUSED, WOKEN = "pending (mode off)", "refused, without wake", "refused, with wake"
PROMISED_SECONDS = 2.0
"""More than a pending pod waits: on a busy machine the scheduler takes its time too."""

LONGEST_WAIT = 120.0
"""A ReplicaSet refused for 5 min tries again after 328 s, a Job every minute."""


@dataclass
class Trial:
    """One owner, and the one device that it waits for."""

    policy: str
    after: int
    owner: Owner
    release_at: float
    released: float | None = None
    bound: float | None = None

    def look(self, bound_in: set[str]) -> None:
        """Release the device when it is time, and note when the pod has it. `bound_in`: namespaces of such pods."""
        now = time.monotonic()
        if self.released is None and now >= self.release_at:
            self.owner.scene.free("holder-0")
            self.released = time.monotonic()
        elif self.released is not None and self.bound is None and self.owner.scene.name in bound_in:
            self.bound = now

    def is_over(self, now: float) -> bool:
        """Whether the pod has its device, or has had its time."""
        return self.bound is not None or now > self.release_at + LONGEST_WAIT

    @property
    def seconds(self) -> float:
        """From the release to the bound pod."""
        assert self.released is not None
        assert self.bound is not None, f"{self.policy}: {self.owner.kind} never got its device"
        return self.bound - self.released


def test_who_is_refused_and_woken_gets_a_free_device_as_soon_as_who_is_left_pending(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        servers: dict[str, Vacancy | None] = {PENDING: None}
        for policy, name, wakes in ((REFUSED, "delays-asleep", "false"), (WOKEN, "delays-awake", "true")):
            server = stack.enter_context(Vacancy(plane, tmp_path / name, "auto", settings={"--wake": wakes}))
            server.register(plane)
            servers[policy] = server
        trials: list[Trial] = []
        all_made = threading.Event()
        watching = threading.Thread(target=watch, args=(plane, trials, all_made))
        watching.start()
        for after, _, kind in itertools.product(sorted(FREED_AFTER, reverse=True), range(ROUNDS), KINDS):
            for policy, server in servers.items():
                owner = waiting(plane, server, kind)
                trials.append(Trial(policy, after, owner, time.monotonic() + after))
        all_made.set()
        watching.join()
        for trial in trials:
            trial.owner.scene.client.delete(trial.owner.path, propagationPolicy="Background")
            trial.owner.scene.close()
    with capsys.disabled():
        print(f"\n{table(trials)}")
    for after in FREED_AFTER:
        assert max(seconds(trials, WOKEN, after)) < max(seconds(trials, PENDING, after)) + PROMISED_SECONDS


def watch(plane: ControlPlane, trials: list[Trial], all_made: threading.Event) -> None:
    """Release devices when it is time, and note when they are taken again, while further trials are made."""
    while not all_made.is_set() or any(not trial.is_over(time.monotonic()) for trial in trials):
        found = plane.client().get("/api/v1/pods")["items"]
        owned = [pod for pod in found if pod["metadata"].get("ownerReferences") and pod["spec"].get("nodeName")]
        for trial in list(trials):
            trial.look({pod["metadata"]["namespace"] for pod in owned})
        time.sleep(0.05)


def waiting(plane: ControlPlane, server: Vacancy | None, kind: str) -> Owner:
    """An owner that has just been refused, or whose pod has just been found without a place."""
    scene = Scene(plane, server.label if server else None)
    scene.fill_up()
    if server is not None:
        until("full", lambda: server.refuses(scene.pod("late"), scene.name))
    owner = Owner.make(scene, kind)
    if server is None:
        until("a pod without a place", owner.pods)
    else:
        owner.until_refused()
    return owner


def seconds(trials: list[Trial], policy: str, after: int) -> list[float]:
    """How long the devices of these trials waited."""
    return [trial.seconds for trial in trials if (trial.policy, trial.after) == (policy, after)]


def table(trials: list[Trial]) -> str:
    """Median and worst time by policy, in Markdown."""
    head = "".join(f" freed after {after} s: median | worst |" for after in FREED_AFTER)
    lines = [f"| pods are |{head}", "|---|" + "---|---|" * len(FREED_AFTER)]
    for policy in (PENDING, REFUSED, WOKEN):
        cells = []
        for after in FREED_AFTER:
            took = seconds(trials, policy, after)
            cells += [f"{statistics.median(took):.2f} s", f"{max(took):.2f} s"]
        lines.append(f"| {policy} | {' | '.join(cells)} |")
    return "\n".join(lines)
