"""Stories on a real control plane: every server is asked about a pod, and the scheduler shows who was right.

Stories run side by side, each in a thread and a corner of its own, so that the waiting is shared.
"""

import itertools
import json
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx

from tests.controlplane.client import Json, Refused
from tests.controlplane.plane import ControlPlane
from tests.truth.comparison import Figures, Worth, worth
from tests.truth.corner import Corner
from tests.truth.oracle import Oracle
from tests.truth.servers import SOURCES, Servers, Told
from tests.truth.stories import Story

BOUND_WITHIN_SECONDS = 30.0
PODS_OF_A_STORY = 12
SAVED_OF_A_KIND = 5
BROKEN_AT_MOST = 20

_POLL_SECONDS = 0.5
_CLOCK_SECONDS = 1.0
"""Pool statuses are dated in whole seconds."""

IN_FLIGHT_SECONDS = 0.25
"""A change that is not older may not have arrived; nor has it at the scheduler. What arrives takes milliseconds."""


@dataclass(slots=True)
class LiveFigures:
    """What came out of a run."""

    of: dict[str, Figures] = field(default_factory=lambda: {source: Figures() for source in SOURCES})
    candidates: int = 0
    bound: int = 0
    broken: int = 0
    """Stories that ended early, for want of a connection."""
    in_one_count: int = 0
    """Wrong refusals of `pool-status` for a pod that got what was freed or added after the count."""
    stale_claims: int = 0
    """Wrong refusals of `pool-status` where a claim holds what is not published any more; it cannot know."""
    in_flight: dict[str, list[int]] = field(default_factory=dict)
    """Wrong refusals while the change that made room was on its way: milliseconds since the API server took it."""
    oracle: dict[str, int] = field(default_factory=lambda: {"agrees": 0, "says bound": 0, "says not bound": 0})
    """How often the offline oracle and the scheduler agree, or what the oracle says where they do not."""

    def lines(self) -> str:
        """All of it, for a person."""
        oracle = ", ".join(f"{what} {count}" for what, count in self.oracle.items())
        parts = [f"{self.candidates} candidates, {self.bound} bound; the oracle {oracle}"]
        parts += [f"{source}: {figures.lines()}" for source, figures in self.of.items()]
        parts += [f"{source}, wrong in flight, after ms: {sorted(ms)}" for source, ms in self.in_flight.items()]
        parts.append(f"pool-status, wrong within one count: {self.in_one_count}, by stale claims: {self.stale_claims}")
        return "\n".join(parts)


class Run:
    """One run: so many candidates of so many stories at a time."""

    def __init__(self, plane: ControlPlane, servers: Servers, folder: Path) -> None:
        self._plane, self._servers, self._folder = plane, servers, folder
        self._folder.mkdir(parents=True)
        self._figures = LiveFigures()
        self._lock = threading.Lock()
        self._wanted = 0

    def compare(self, seeds: Sequence[int], candidates: int, side_by_side: int) -> LiveFigures:
        """What came out of so many candidates; the places side by side take the seeds in turn."""
        self._wanted += candidates
        with Oracle("allocator") as oracle, ThreadPoolExecutor(side_by_side) as threads:
            self._oracle = oracle
            places = [threads.submit(self._stories, seeds[at % len(seeds)], at) for at in range(side_by_side)]
            for place in places:
                place.result()
        return self._figures

    def _stories(self, seed: int, number: int) -> None:
        """Story after story in one place."""
        chance = Random(f"{seed}/{number}")  # noqa: S311 - repeatable
        for turn in itertools.takewhile(lambda _: self._goes_on(), itertools.count()):
            try:
                self._story(Corner(self._plane, chance, f"t{seed}-{number}-{turn}"))
            except httpx.TransportError:  # an idle connection was closed as it was used: the story ends, not the run
                self._figures.broken += 1
                if self._figures.broken > BROKEN_AT_MOST:
                    raise

    def _story(self, corner: Corner) -> None:
        try:
            time.sleep(corner.chance.choice([0, 12]))  # asked before the first count, or after it
            for _ in itertools.takewhile(lambda _: self._goes_on(), range(PODS_OF_A_STORY)):
                self._candidate(corner)
        finally:
            corner.close()

    def _goes_on(self) -> bool:
        return self._figures.candidates < self._wanted

    def _candidate(self, corner: Corner) -> None:
        """Something happens, the servers are asked, and the pod is created."""
        changed = corner.change()
        time.sleep(corner.chance.choice([0, 0, 0.2, 3]))
        pod = corner.candidate()
        changed_at = corner.changed_at
        told = self._servers.say(pod, corner.name)
        story = corner.story(pod)
        try:
            corner.client.post(corner.pods, pod)
        except Refused:
            return
        name = pod["metadata"]["name"]
        node = _node(corner, name)
        story.notes = {"after": changed, "bound to": node, "waited for": BOUND_WITHIN_SECONDS}
        with self._lock:
            answer = json.loads(self._oracle.ask(story.question()))
            self._note(story, answer, node, told, changed_at, corner.changed_at)
        if not node or corner.chance.random() < 0.4:
            corner.delete(name)

    def _note(  # noqa: PLR0913, PLR0917 - all that is known of a candidate
        self, story: Story, answer: Json, node: str, told: Mapping[str, Told], changed_at: float, ended_at: float
    ) -> None:
        """`changed_at`: the last change before the question; `ended_at`: what it has led to meanwhile."""
        figures = self._figures
        figures.candidates += 1
        figures.bound += bool(node)
        if figures.candidates % 100 == 0:
            (self._folder / "figures").write_text(figures.lines())
        expected = bool(answer["nodes"]) and "error" not in answer
        if expected == bool(node):
            figures.oracle["agrees"] += 1
        else:
            kind = "says bound" if expected else "says not bound"
            figures.oracle[kind] += 1
            self._save(story, answer, {}, f"oracle {kind}", figures.oracle[kind])
        truth = answer | {"nodes": [node] if node else []}
        for source, each in told.items():
            value, reason = worth(story, each.said, truth)
            since = each.asked_at - changed_at
            counted = each.asked_at - each.age - _CLOCK_SECONDS
            if value is Worth.WRONG and source == "pool-status" and counted < ended_at:
                figures.in_one_count += 1
                kind, seen = f"{source} within one count", figures.in_one_count
            elif value is Worth.WRONG and source == "pool-status" and _stale(story):
                figures.stale_claims += 1
                kind, seen = f"{source} stale claims", figures.stale_claims
            elif value is Worth.WRONG and since < IN_FLIGHT_SECONDS:
                late = figures.in_flight.setdefault(source, [])
                late.append(round(1000 * since))
                kind, seen = f"{source} in flight", len(late)
            else:
                kind, seen = f"{source} {value} {reason}", figures.of[source].note(value, reason)
            if value in (Worth.WRONG, Worth.MISS):
                self._save(story, answer, {"source": source, "said": each, "changed": since}, kind, seen)

    def _save(self, story: Story, answer: Json, notes: Json, kind: str, seen: int) -> None:
        if seen <= SAVED_OF_A_KIND:
            before, story.notes = story.notes, story.notes | notes | {"oracle": answer}
            story.save(self._folder / kind.replace(" ", "-"))
            story.notes = before


def _stale(story: Story) -> bool:
    """Whether a claim holds a device that no slice publishes."""
    published = {
        (part["spec"]["driver"], part["spec"]["pool"]["name"], device["name"])
        for part in story.of("ResourceSlice")
        for device in part["spec"].get("devices", ())
    }
    return any(
        (result["driver"], result["pool"], result["device"]) not in published
        for claim in story.of("ResourceClaim")
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    )


def _node(corner: Corner, pod: str) -> str:
    """Where the scheduler binds the pod to; empty: nowhere in time."""
    deadline = time.monotonic() + BOUND_WITHIN_SECONDS
    while True:
        if node := corner.node_of(pod):
            return node
        if time.monotonic() > deadline:
            return ""
        time.sleep(_POLL_SECONDS)
