"""Who holds which device: claims, the pods they are reserved for, and holders about to let go.

The controller-manager frees a claim when its last consumer has ended; it frees about 20 claims a second, and none while
it is down. A device in that gap is as good as free for the next pod, so its holder does not count as one.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from sys import intern

from msgspec import Struct

from app.dra.objects import DeviceRequestAllocationResult, ResourceClaim
from app.dra.pools import DeviceId
from app.times import epoch_seconds

DEADLINE_GRACE_SECONDS = 60.0
"""A pod whose deletion deadline is further past than this is stuck (a dead kubelet): it holds."""

UNRESERVED_GRACE_SECONDS = 60.0
"""A claim without consumers for longer is freed by nobody (seen on 1.37.2 for claims that never had one)."""

Name = tuple[str, str]
"""Namespace and name."""

FOREVER = float("inf")


def _taken_at(stamp: str | None, now: float) -> float:
    """When an allocation was made: not after we saw it, and when we saw it if it does not say."""
    try:
        return min(epoch_seconds(stamp), now) if stamp else now
    except ValueError:
        return now


@dataclass(frozen=True, slots=True)
class PodRecord:
    """What is kept of a pod: that this UID exists, and until when it should be gone if it is being deleted."""

    uid: str
    namespace: str
    name: str
    deletion_deadline: float | None = None


class ClaimState(Struct, gc=False, eq=False):
    """One claim with an allocation. Unseen by the garbage collector: there are 50,000, and new ones all the time."""

    uid: str
    devices: tuple[DeviceId, ...]
    """Devices of its allocation, admin access left out: that takes nothing from anybody."""
    shares: tuple[DeviceId, ...]
    """Devices of which it has a share."""
    consumers: tuple[str, ...]
    """UIDs of the pods it is reserved for."""
    foreign: bool
    """Reserved for something that is not a pod: held until that lets go."""
    taken_at: float
    unreserved_since: float
    holding: bool = False
    due: float = FOREVER
    """When it is put down to hold again."""


class Holders:
    """The ledger of holds.

    `on_change(device, delta, when, is_share)` hears of every device that is taken (+1) or let go (-1).
    """

    def __init__(self, on_change: Callable[[DeviceId, int, float, bool], None]) -> None:
        """Start with nothing held."""
        self._on_change = on_change
        self._claims: dict[Name, ClaimState] = {}
        self._by_consumer: dict[str, tuple[Name, ...]] = {}
        """Claims by the UID they are reserved for; mostly one, for which a set would be four times as large."""
        self._pods: dict[str, float | None] = {}
        self._pod_uids: dict[Name, str] = {}
        self._ended: set[str] = set()
        self._ended_uids: dict[Name, str] = {}
        self._due: list[tuple[float, Name]] = []
        self.pods_known = False
        """Whether a UID that is not among the pods proves that the pod is gone."""

    def allocated(self, name: Name) -> bool:
        """Whether the claim has an allocation."""
        return name in self._claims

    def claim_names(self) -> Iterable[Name]:
        """All claims with an allocation."""
        return self._claims.keys()

    def apply_claim(self, obj: ResourceClaim, now: float, *, unreserved_lasts: bool) -> None:
        """A claim was seen. `unreserved_lasts`: without consumers it is about to be freed, however long (files)."""
        meta, status = obj.metadata, obj.status
        name = (intern(meta.namespace), meta.name)
        old = self._claims.get(name)
        if status is None or status.allocation is None:
            self.remove_claim(name, now)
            return
        results = status.allocation.devices.results or ()
        reserved = status.reserved_for or ()
        claim = ClaimState(
            uid=meta.uid,
            devices=tuple(_device(each) for each in results if not each.admin_access and each.share_id is None),
            shares=tuple(_device(each) for each in results if not each.admin_access and each.share_id is not None),
            consumers=tuple(c.uid for c in reserved if c.resource == "pods" and not c.api_group),
            foreign=any(c.resource != "pods" or c.api_group for c in reserved),
            taken_at=_taken_at(status.allocation.allocation_timestamp, now),
            unreserved_since=FOREVER if unreserved_lasts else now,
        )
        if old is not None and (old.uid, old.devices, old.shares) == (claim.uid, claim.devices, claim.shares):
            claim.taken_at = old.taken_at
            if not old.consumers and not old.foreign:
                claim.unreserved_since = old.unreserved_since
            claim.holding, claim.due = old.holding, old.due
            self._forget_consumers(name, old)
        elif old is not None:
            self.remove_claim(name, now)
        self._claims[name] = claim
        for uid in claim.consumers:
            self._by_consumer[uid] = (*self._by_consumer.get(uid, ()), name)
        self._settle(name, claim, now)

    def remove_claim(self, name: Name, now: float) -> None:
        """A claim is gone, or has no allocation any more."""
        claim = self._claims.pop(name, None)
        if claim is None:
            return
        self._forget_consumers(name, claim)
        self._hold(claim, now, holding=False)

    def apply_pod(self, pod: PodRecord, now: float) -> None:
        """A pod exists."""
        name = (intern(pod.namespace), pod.name)
        before = self._pod_uids.get(name)
        if before not in (None, pod.uid):
            self.remove_pod(name, now)
        known = self._pods.get(pod.uid, FOREVER)
        self._pod_uids[name] = pod.uid
        self._pods[pod.uid] = pod.deletion_deadline
        if known != pod.deletion_deadline:
            self._settle_consumer(pod.uid, now)

    def remove_pod(self, name: Name, now: float) -> None:
        """A pod object is gone."""
        uid = self._pod_uids.pop(name, None)
        if uid is not None:
            self._pods.pop(uid, None)
            if self._ended_uids.get(name) != uid:
                self._ended.discard(uid)
            self._settle_consumer(uid, now)

    def end_pod(self, pod: PodRecord, now: float) -> None:
        """A pod has reached a terminal phase. That never changes back; it is forgotten with the pod."""
        name = (intern(pod.namespace), pod.name)
        if self._ended_uids.get(name) != pod.uid:
            self.forget_end(name, now)
        self._ended_uids[name] = pod.uid
        self._ended.add(pod.uid)
        self._settle_consumer(pod.uid, now)

    def forget_end(self, name: Name, now: float) -> None:
        """A pod is no more among the ended ones: it is gone, but the list of all pods may hear of that later."""
        uid = self._ended_uids.pop(name, None)
        if uid is not None and uid not in self._pods:
            self._ended.discard(uid)
            self._settle_consumer(uid, now)

    def ended_names(self) -> Iterable[Name]:
        """All pods in the list of ended ones."""
        return self._ended_uids.keys()

    def pod_names(self) -> Iterable[Name]:
        """All pods that exist."""
        return self._pod_uids.keys()

    def pods_synced(self, now: float) -> None:
        """The list of pods is complete and current from now on."""
        if not self.pods_known:
            self.pods_known = True
            for name, claim in self._claims.items():
                self._settle(name, claim, now)

    def advance(self, now: float) -> None:
        """Time has passed: holders whose grace is over hold again."""
        while self._due and self._due[0][0] < now:
            _, name = heapq.heappop(self._due)
            claim = self._claims.get(name)
            if claim is not None:
                claim.due = FOREVER
                self._settle(name, claim, now)

    def _settle_consumer(self, uid: str, now: float) -> None:
        for name in self._by_consumer.get(uid, ()):
            self._settle(name, self._claims[name], now)

    def _settle(self, name: Name, claim: ClaimState, now: float) -> None:
        until = self._lets_go_until(claim)
        letting_go = until >= now
        if letting_go and until not in (FOREVER, claim.due):
            claim.due = until
            heapq.heappush(self._due, (until, name))
        self._hold(claim, now, holding=not letting_go)

    def _lets_go_until(self, claim: ClaimState) -> float:
        """Until when all its consumers count as about to let go; in the past or -inf: it holds."""
        if claim.foreign:
            return -FOREVER
        if not claim.consumers:
            return claim.unreserved_since + UNRESERVED_GRACE_SECONDS
        return min(self._consumer_until(uid) for uid in claim.consumers)

    def _consumer_until(self, uid: str) -> float:
        if uid in self._ended:
            return FOREVER
        if uid not in self._pods:
            return FOREVER if self.pods_known else -FOREVER
        deadline = self._pods[uid]
        return -FOREVER if deadline is None else deadline + DEADLINE_GRACE_SECONDS

    def _hold(self, claim: ClaimState, now: float, *, holding: bool) -> None:
        if claim.holding == holding:
            return
        claim.holding = holding
        when = claim.taken_at if holding else now
        for devices, is_share in ((claim.devices, False), (claim.shares, True)):
            for device in devices:
                self._on_change(device, 1 if holding else -1, when, is_share)

    def _forget_consumers(self, name: Name, claim: ClaimState) -> None:
        for uid in claim.consumers:
            names = tuple([each for each in self._by_consumer.get(uid, ()) if each != name])
            if names:
                self._by_consumer[uid] = names
            else:
                self._by_consumer.pop(uid, None)


def _device(result: DeviceRequestAllocationResult) -> DeviceId:
    return intern(result.driver), intern(result.pool), intern(result.device)
