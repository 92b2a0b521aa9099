"""Owners beside a stream of bare pods that would take every device: nobody starves."""

# ruff: noqa: T201 - the figures are to be written down

import statistics
import time
from contextlib import suppress
from pathlib import Path

import pytest

from app.dra.wake import End
from tests.controlplane.client import Refused
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.owners import Owner
from tests.live.scene import Scene
from tests.live.serving import Vacancy

MINUTES = 10.0
DEVICES = 4
KINDS = ("ReplicaSet", "StatefulSet", "Job")

EVERY_SECONDS = 0.4
"""Between two bare pods."""

HELD_SECONDS = 4.0
"""By each pod: ten bare ones come in that time, and four devices serve four."""

AWAY_SECONDS = 3.0
"""From an owner's end to the next one, which finds that a bare pod has taken its predecessor's device."""

STARVED_SECONDS = 180.0


class Stream:
    """Bare pods, one after the other; each that gets a device has it for a while."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._born: dict[str, float] = {}
        self._next_at = 0.0
        self.made = self.refused = 0

    def go_on(self) -> None:
        """Create a pod if it is time, and end those that have run for long enough."""
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + EVERY_SECONDS
            name = f"passer-by-{self.made}"
            self.made += 1
            try:
                self._scene.client.post(self._scene.pods, self._scene.pod(name))
            except Refused:
                self.refused += 1
            else:
                self._born[name] = now
        for name, born in list(self._born.items()):
            if now - born > HELD_SECONDS and self._scene.node_of(name):
                del self._born[name]
                self._scene.free(name)


class Customer:
    """One owner after the other, each of which wants one pod."""

    def __init__(self, scene: Scene, kind: str) -> None:
        self.kind, self._scene = kind, scene
        self._waits: list[float] = []
        self._come()

    def _come(self) -> None:
        self._owner = Owner.make(self._scene, self.kind, f"{self.kind.lower()}-{len(self._waits)}")
        self._since, self._bound_at, self._left_at = time.monotonic(), 0.0, 0.0

    def go_on(self) -> None:
        """See whether the pod has its device; when it has had it for long enough, the next owner comes."""
        now = time.monotonic()
        if not self._bound_at:
            if self._owner.bound():
                self._bound_at = now
                self._waits.append(now - self._since)
        elif not self._left_at and now - self._bound_at > HELD_SECONDS:
            self.leave()
            self._left_at = now
        elif self._left_at and now - self._left_at > AWAY_SECONDS:
            self._come()

    def leave(self) -> None:
        """No kubelet ends its pods, and none must come after them."""
        with suppress(Refused):  # it has left before
            self._scene.client.delete(self._owner.path, propagationPolicy="Orphan")
        self._scene.client.delete(self._scene.pods, labelSelector=f"app={self._owner.name}", gracePeriodSeconds=0)

    def waits_so_far(self) -> list[float]:
        """Seconds that each owner waited, or has been waiting for."""
        return self._waits if self._bound_at else [*self._waits, time.monotonic() - self._since]


def test_no_owner_is_starved_by_bare_pods(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Vacancy(plane, tmp_path / "stream", "auto") as vacancy:
        vacancy.register(plane)
        scene = Scene(plane, vacancy.label)
        scene.fill_up(DEVICES)
        until("full", lambda: vacancy.refuses(scene.pod("late"), scene.name))
        customers = [Customer(scene, kind) for kind in KINDS]
        stream = Stream(scene)
        for number in range(DEVICES):
            scene.free(f"holder-{number}")
        ends_at = time.monotonic() + MINUTES * 60
        while time.monotonic() < ends_at:
            stream.go_on()
            for customer in customers:
                customer.go_on()
            time.sleep(0.05)
        waits = {customer.kind: customer.waits_so_far() for customer in customers}
        ends = {end.value: vacancy.metric("vacancy_wake_nudges_total", outcome=end) for end in End}
        for customer in customers:
            customer.leave()  # for good
        scene.close()
    with capsys.disabled():
        print(f"\n{stream.made} bare pods in {MINUTES:g} min, {stream.refused} refused; nudges: {ends}")
        for kind, seconds in waits.items():
            median, worst = statistics.median(seconds), max(seconds)
            print(f"{kind}: {len(seconds)} owners, median wait {median:.1f} s, worst {worst:.1f} s")
    assert stream.refused > stream.made / 4, "the stream left devices free"
    for kind, seconds in waits.items():
        assert max(seconds) < STARVED_SECONDS, kind
