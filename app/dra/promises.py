"""Free devices that are spoken for: of a nudge whose effect is not seen yet, and of a pod that is about to be bound.

Between the moment a pod is admitted and the one its device counts as taken nobody else should be woken for it. Which
device the scheduler will take is not known, so numbers decide; devices are told apart because demands overlap.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from app.dra.demand import PodDemand
from app.dra.judgement import Source, World
from app.dra.pools import DeviceState
from app.dra.reasons import Reason
from app.dra.verdict import Verdict

EFFECT_SECONDS: Final = 2.0
"""A nudged controller has tried again by then: a Job takes 1.01 s, the others some 10 ms (measured on 1.37.2)."""

BINDING_SECONDS: Final = 1.0
"""An admitted pod has its device by then: it takes 0.06 s on an idle control plane (measured on 1.37.2)."""

PROMISES_AT_MOST: Final = 200
"""Beyond this, pods that pass by are not kept account of: each review would look through all of them."""


@dataclass(slots=True, eq=False)
class _Promise:
    """Devices for one pod. Once they are taken it is of no account."""

    devices: tuple[DeviceState, ...]
    at: float
    until: float
    counted: bool
    """They are free as of a pool status, and are so until the next one."""
    kept: bool = False
    """The pod has been admitted."""


@dataclass(slots=True, eq=False)
class Promises:
    """Promises to owners by their uid, and to pods that pass by. Times are epoch seconds."""

    _open: dict[str, _Promise] = field(default_factory=dict)
    _passers_by: int = 0

    def __contains__(self, uid: str) -> bool:
        """Whether something is promised to this owner, or was so a moment ago."""
        return uid in self._open

    def __len__(self) -> int:
        """How many there are."""
        return len(self._open)

    def awaits(self, uid: str) -> bool:
        """Whether the owner was nudged and has not tried again."""
        promise = self._open.get(uid)
        return promise is not None and not promise.kept

    def offer(self, uid: str, demand: PodDemand, verdict: Verdict, world: World, now: float) -> bool:
        """Promise an owner devices for one pod of this demand; False: so many are not left."""
        devices = self._left(demand, verdict, world)
        if devices is not None:
            self._open[uid] = self._promise(devices, verdict, world, now, EFFECT_SECONDS)
        return devices is not None

    def pass_by(self, demand: PodDemand, verdict: Verdict, world: World, now: float) -> None:
        """A pod for which there is room was admitted without a nudge."""
        devices = self._left(demand, verdict, world) if len(self._open) < PROMISES_AT_MOST else None
        if devices is not None:
            self._passers_by += 1
            promise = self._promise(devices, verdict, world, now, BINDING_SECONDS)
            promise.kept = True
            self._open[f"pod {self._passers_by}"] = promise

    def keep(self, uid: str, now: float) -> None:
        """The nudged owner's pod was admitted."""
        promise = self._open[uid]
        promise.kept = True
        promise.until = max(promise.until, now + BINDING_SECONDS)

    def withdraw(self, uid: str) -> None:
        """The devices are free for others."""
        self._open.pop(uid, None)

    def expire(self, world: World, now: float) -> int:
        """Give up what has lasted for long enough; how many nudges were without effect."""
        counted_at = world.snapshot.taken_at or 0.0
        over = {
            uid: promise
            for uid, promise in self._open.items()
            if now >= promise.until or (promise.counted and counted_at > promise.at + EFFECT_SECONDS)
        }
        for uid in over:
            del self._open[uid]
        return sum(not promise.kept for promise in over.values())

    @staticmethod
    def _promise(
        devices: tuple[DeviceState, ...], verdict: Verdict, world: World, now: float, seconds: float
    ) -> _Promise:
        """One for some seconds; of devices that were counted until the next count, or as long as this is believed."""
        counted = verdict.source == Source.POOL_STATUS
        return _Promise(devices, now, now + (world.policy.max_age_seconds if counted else seconds), counted)

    def _left(self, demand: PodDemand, verdict: Verdict, world: World) -> tuple[DeviceState, ...] | None:
        """Free devices for one pod that are promised to nobody; None: not so many are left.

        Without a number, as from counts of a mixed pool, there is room for one pod.
        """
        promised = {device for promise in self._open.values() for device in promise.devices}
        chosen: list[DeviceState] = []
        for need, found in zip(demand.needs, verdict.needs, strict=True):
            if need.unjudged is not None:
                continue
            shown = found.claimant or found
            ask = next(each for each in need.asks if each.class_name == shown.class_name)
            free: Collection[DeviceState] = world.witness.tally(ask).free
            left = (need.count if shown.free is None else shown.free) - sum(device in free for device in promised)
            if left < need.count:
                return None
            mine = list(islice((device for device in free if device not in promised), need.count))
            promised.update(mine)
            chosen += mine
        return tuple(chosen)


def has_room(demand: PodDemand, verdict: Verdict) -> bool:
    """Whether a pod would get all that can be judged of what it asks for. What cannot be judged refuses nobody."""
    judged = [found for need, found in zip(demand.needs, verdict.needs, strict=True) if need.unjudged is None]
    return bool(judged) and all(found.reason is Reason.HasRoom for found in judged)
