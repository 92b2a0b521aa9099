"""Refused owners before a full cluster, and the clock of both."""

from collections.abc import Iterable

from app.dra.demand import Lookups, PodDemand
from app.dra.judgement import Policy, Source, World, demand_and_verdict
from app.dra.objects import OwnerReference, Pod
from app.dra.snapshot import build_snapshot
from app.dra.wake import WakeQueue
from app.dra.witness import Heard
from tests.builders import NOON, pod
from tests.dra.c0 import C0, TAKEN
from tests.dra.watched import Watched

NO_LOOKUPS = Lookups({}, {})


def owner(name: str, kind: str = "ReplicaSet", api_version: str = "apps/v1") -> OwnerReference:
    return OwnerReference(kind, name, f"uid-of-{name}", api_version, controller=True)


class Line:
    """A queue beside a cluster that is full to begin with, and the clock of both."""

    def __init__(
        self,
        *objects: Heard,
        taken: Iterable[Heard] = TAKEN,
        source: Source = Source.WITNESS,
    ) -> None:
        self.cluster = Watched(*C0, *objects, *taken, started_at=NOON)
        self.queue = WakeQueue()
        self.world = World(self.cluster.witness, build_snapshot([], received_at=NOON), Policy(source=source))

    @property
    def now(self) -> float:
        return self.cluster.now

    def later(self, seconds: float) -> "Line":
        self.cluster.later(seconds)
        return self

    def freed(self, *claims: Heard) -> "Line":
        self.cluster.gone(*claims)
        return self

    def demand(self, asking: Pod | None = None) -> PodDemand:
        asked, _ = demand_and_verdict(asking or pod(), "default", NO_LOOKUPS, self.world, self.now)
        return asked

    def refused(self, *names: str, asking: Pod | None = None) -> "Line":
        for name in names:
            assert not self.queue.refused(owner(name), "default", self.demand(asking), self.now)
        return self

    def admitted(self, name: str = "", asking: Pod | None = None) -> "Line":
        """A pod of that owner, or a bare pod."""
        asked, verdict = demand_and_verdict(asking or pod(), "default", NO_LOOKUPS, self.world, self.now)
        self.queue.admitted(owner(name).uid if name else "", asked, verdict, self.world, self.now)
        return self

    def due(self) -> list[str]:
        return [nudge.owner.name for nudge in self.queue.due(self.world, self.now)]
