"""Who was refused and waits: the line of owners, and whose turn it is when devices are free.

A refused controller repeats its request after a pause of its own, up to 1000 s long, while a pending pod would be bound
at once. So owners are remembered with what their pods ask for, and nudged when that is free: the one that has waited
longest first, and no more of them than devices. A queue without a clock and without I/O; `cluster.wake` patches.

A nudge that ends in another refusal costs the owner a step of its backoff. So the devices it is for are promised to
nobody else until its effect is seen (`promises`); an owner that came too late rests twice as long each time; and one
that always comes too late, because others pass by and take the device, is let through to wait in the scheduler's queue.
"""

import enum
import sys
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from types import MappingProxyType
from typing import Final

import msgspec

from app.dra.demand import PodDemand
from app.dra.judgement import World, decide
from app.dra.objects import OwnerReference, Value
from app.dra.promises import Promises, has_room
from app.dra.verdict import Verdict

WAKEABLE: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("apps/v1", "ReplicaSet"): "replicasets",
        ("apps/v1", "StatefulSet"): "statefulsets",
        ("v1", "ReplicationController"): "replicationcontrollers",
        ("batch/v1", "Job"): "jobs",
    }
)
"""Owners that try again at once when their object changes, by API version and kind, and what the API calls them."""

OWNERS_AT_MOST: Final = 10_000
"""Remembered at once. The one not heard of longest goes; its own next attempt brings it back."""

DEMAND_BYTES_AT_MOST: Final = 4096
"""In memory, of what an owner's pods ask for; who asks for more is not remembered.

A usual demand has 1 to 3 kB. A tenant may write 1,000 entries into a node selector, which are 0.5 MB (measured), and as
many owners as it likes; so all that is remembered is bounded by `OWNERS_AT_MOST` of these, 40 MB.
"""

UID_AT_MOST, NAME_AT_MOST = 36, 253
"""Characters of what is remembered of an owner: who creates a pod can write any text into its owner."""

SILENT_SECONDS: Final = 24 * 3600.0
"""A controller that is refused repeats itself at the latest after 1000 s; one silent for so long is no more."""

REST_SECONDS: Final = 10.0
"""Between two nudges of an owner; twice as long after each that ended in a refusal."""

VAIN_NUDGES: Final = 3
"""The refusal after so many nudges is none: with the rests between them an owner has lost for half a minute."""

NUDGES_AT_ONCE: Final = 5
"""In one look: with four of them a second 20 nudges, as many as the controller-manager creates pods."""

FORBIDDEN_SECONDS: Final = 300.0
"""After a 403 the owners of its namespace and kind rest so long: what is wrong does not get better by trying on.

No others do. One namespace that somebody's policy protects says nothing of the next; and where the right is missing
altogether, one attempt for each namespace and kind is little.
"""

DEMANDS_AT_ONCE: Final = 100
"""Looked at in one look, about 1 ms; where there are more, the next look takes the next ones."""


class End(enum.StrEnum):
    """How a nudge ended: label of a metric."""

    ADMITTED = "admitted"
    REFUSED = "refused"
    LET_THROUGH = "let-through"
    """It would have been refused once too often."""
    SILENT = "silent"
    """The owner did not try again in time."""
    GONE = "gone"
    """There is no such owner any more."""
    FORBIDDEN = "forbidden"
    FAILED = "failed"


class Nudge(Value, frozen=True):
    """Whom to wake."""

    owner: OwnerReference
    namespace: str

    @property
    def place(self) -> tuple[str, str]:
        """What a right or a policy may be about: namespace and kind."""
        return self.namespace, self.owner.kind


@dataclass(slots=True, eq=False)
class _Waiting:
    """An owner in the line."""

    nudge: Nudge
    demand: PodDemand
    since: float
    heard_at: float
    """When it was refused last."""
    is_asking: bool = True
    """Whether it was refused since it was nudged."""
    nudged_at: float = float("-inf")
    rest_seconds: float = REST_SECONDS
    vain: int = 0
    """Nudges that ended in a refusal."""


@dataclass(slots=True, eq=False)
class WakeQueue:
    """Owners of refused pods by demand. Times are epoch seconds."""

    ends: Counter[End] = field(default_factory=Counter)
    """How many nudges ended how."""
    dropped: int = 0
    """Owners forgotten because there were too many, and refusals of those whose demand is too large."""
    _waiting: OrderedDict[str, _Waiting] = field(default_factory=OrderedDict)
    """By uid, the one heard of last at the end."""
    _lines: OrderedDict[PodDemand, dict[str, _Waiting]] = field(default_factory=OrderedDict)
    """The same by demand: within one the longest wait first, of the demands the one looked at last at the end."""
    _promises: Promises = field(default_factory=Promises)
    _forbidden: dict[tuple[str, str], float] = field(default_factory=dict)
    """Places where nobody may be nudged, and until when."""

    def __len__(self) -> int:
        """Owners that wait."""
        return len(self._waiting)

    # --- What reviews tell --------------------------------------------------------------------------------------------

    def refused(self, owner: OwnerReference, namespace: str, demand: PodDemand, now: float) -> bool:
        """A pod of this owner is about to be refused; whether it should be let through instead."""
        if (owner.api_version, owner.kind) not in WAKEABLE or not _is_plausible(owner):
            return False
        waiting = self._waiting.get(owner.uid)
        if (waiting is None or waiting.demand != demand) and _bytes(demand) > DEMAND_BYTES_AT_MOST:
            self._forget(owner.uid)
            self.dropped += 1
            return False
        if waiting is None:
            waiting = self._remember(_Waiting(Nudge(owner, namespace), demand, now, now))
        elif waiting.demand != demand:  # a StatefulSet has got another template
            self._leave_line(waiting)
            waiting.demand = demand
            self._lines.setdefault(demand, {})[owner.uid] = waiting
        self._heard(waiting, now)
        return self._promises.awaits(owner.uid) and self._came_too_late(waiting)

    def admitted(self, uid: str, demand: PodDemand, verdict: Verdict, world: World, now: float) -> None:
        """A pod was admitted; `uid` is its owner's, empty for a bare pod. If the owner needs more, it asks for more.

        Whoever it is, a device that is free now soon is not, and nobody should be woken for it.
        """
        if not self._waiting and not self._promises:
            return
        self._forget(uid)
        if self._promises.awaits(uid):
            self._promises.keep(uid, now)
            self.ends[End.ADMITTED] += 1
        elif has_room(demand, verdict):
            self._promises.pass_by(demand, verdict, world, now)

    # --- Who is next --------------------------------------------------------------------------------------------------

    def due(self, world: World, now: float) -> list[Nudge]:
        """Whose turn it is. They count as nudged from now on; `ended` takes that back."""
        self._expire(world, now)
        demands = [demand for demand in self._next_demands() if _has_classes(demand, world)]
        verdicts = {demand: decide(demand, world, now) for demand in demands}
        roomy = {demand: verdict for demand, verdict in verdicts.items() if has_room(demand, verdict)}
        due: list[Nudge] = []
        for waiting in merge(*(list(self._lines[demand].values()) for demand in roomy), key=_since):
            if len(due) == NUDGES_AT_ONCE or not roomy:
                break
            uid, verdict = waiting.nudge.owner.uid, roomy.get(waiting.demand)
            if verdict is None or uid in self._promises or now < waiting.nudged_at + waiting.rest_seconds:
                continue
            if waiting.nudge.place in self._forbidden:
                continue
            if not waiting.is_asking:  # nothing followed for a whole rest: it needs no pod any more
                self._forget(uid)
                continue
            if not self._promises.offer(uid, waiting.demand, verdict, world, now):
                del roomy[waiting.demand]
                continue
            waiting.nudged_at, waiting.is_asking = now, False
            due.append(waiting.nudge)
        return due

    def ended(self, nudge: Nudge, end: End, now: float) -> None:
        """A nudge did not get through. Who is gone is forgotten, the others wait on."""
        uid = nudge.owner.uid
        self.ends[end] += 1
        self._promises.withdraw(uid)
        if end is End.FORBIDDEN:
            self._forbidden[nudge.place] = now + FORBIDDEN_SECONDS
        if end is End.GONE:
            self._forget(uid)
        elif waiting := self._waiting.get(uid):
            self._heard(waiting, now)

    # --- The books ----------------------------------------------------------------------------------------------------

    def _heard(self, waiting: _Waiting, now: float) -> None:
        waiting.heard_at, waiting.is_asking = now, True
        self._waiting.move_to_end(waiting.nudge.owner.uid)

    def _remember(self, waiting: _Waiting) -> _Waiting:
        uid = waiting.nudge.owner.uid
        self._waiting[uid] = waiting
        self._lines.setdefault(waiting.demand, {})[uid] = waiting
        if len(self._waiting) > OWNERS_AT_MOST:
            self._forget(next(iter(self._waiting)))
            self.dropped += 1
        return waiting

    def _forget(self, uid: str) -> None:
        waiting = self._waiting.pop(uid, None)
        if waiting is not None:
            self._leave_line(waiting)

    def _leave_line(self, waiting: _Waiting) -> None:
        line = self._lines[waiting.demand]
        del line[waiting.nudge.owner.uid]
        if not line:
            del self._lines[waiting.demand]

    def _came_too_late(self, waiting: _Waiting) -> bool:
        """Count a nudge that was in vain; whether it was once too often."""
        uid = waiting.nudge.owner.uid
        self._promises.withdraw(uid)
        waiting.vain += 1
        waiting.rest_seconds *= 2
        is_enough = waiting.vain == VAIN_NUDGES
        self.ends[End.LET_THROUGH if is_enough else End.REFUSED] += 1
        if is_enough:
            self._forget(uid)
        return is_enough

    def _expire(self, world: World, now: float) -> None:
        if silent := self._promises.expire(world, now):
            self.ends[End.SILENT] += silent
        for place in [place for place, until in self._forbidden.items() if now >= until]:
            del self._forbidden[place]
        while self._waiting:
            uid, waiting = next(iter(self._waiting.items()))
            if now - waiting.heard_at < SILENT_SECONDS:
                break
            self._forget(uid)

    def _next_demands(self) -> list[PodDemand]:
        demands = list(islice(self._lines, DEMANDS_AT_ONCE))
        for demand in demands:
            self._lines.move_to_end(demand)
        return demands


def _since(waiting: _Waiting) -> float:
    return waiting.since


def _is_plausible(owner: OwnerReference) -> bool:
    return 0 < len(owner.uid) <= UID_AT_MOST and 0 < len(owner.name) <= NAME_AT_MOST


def _bytes(value: object) -> int:
    """Memory of a demand or a part of it: many short texts take far more of it than their characters."""
    parts = msgspec.structs.astuple(value) if isinstance(value, msgspec.Struct) else value
    return sys.getsizeof(value) + (sum(map(_bytes, parts)) if isinstance(parts, tuple) else 0)


def _has_classes(demand: PodDemand, world: World) -> bool:
    """Whether all it asks for still has a meaning: a class that is gone selects nothing out."""
    return all(world.witness.has_class(ask.class_name) for need in demand.needs for ask in need.asks)
