"""The live view: which devices exist, which are taken, how many are free for every ask. A state machine without I/O.

It is told of one object at a time and keeps its numbers current; what an event costs depends on the devices it touches,
not on the cluster. Nothing here decides whether a pod is refused (`judgement` does), and nothing here knows where the
objects come from: a watch, or a folder of manifests.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from sys import intern

from app.dra.classes import ClassIndex
from app.dra.demand import Ask
from app.dra.holders import Holders, PodRecord
from app.dra.nodes import Nodes
from app.dra.objects import DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice, Toleration
from app.dra.pools import INCOMPLETE_SETTLES_SECONDS, Condition, DeviceId, DeviceState, PoolState, settles, slice_state
from app.dra.reasons import Reason
from app.dra.selector import Selector, selector
from app.dra.taint_rules import Rule, TaintRules
from app.dra.tallies import Tallies
from app.dra.tally import Standing, Tally

SETTLED_MINOR = 37
"""Since Kubernetes 1.37 extended resources by DRA (KEP-5004) and taint rules (KEP-5055) cannot be switched off."""


class Kind(enum.Enum):
    """What the witness is told of."""

    DEVICE_CLASSES = "deviceclasses"
    RESOURCE_SLICES = "resourceslices"
    RESOURCE_CLAIMS = "resourceclaims"
    DEVICE_TAINT_RULES = "devicetaintrules"
    NODES = "nodes"
    PODS = "pods"
    ENDED_PODS = "ended pods"


DEVICES = frozenset({Kind.DEVICE_CLASSES, Kind.RESOURCE_SLICES})
"""Without these nothing is known at all."""

HOLDS = frozenset({Kind.RESOURCE_CLAIMS, Kind.PODS, Kind.ENDED_PODS})
"""Without these it is not known what is taken."""

Heard = DeviceClass | ResourceSlice | ResourceClaim | DeviceTaintRule | Node | PodRecord


class Witness:
    """Classes, pools, holders, taints and nodes, and a tally for every ask that was made."""

    def __init__(self, started_at: float) -> None:
        """Nothing is known yet. `started_at` (epoch seconds): what happened before it was not seen."""
        self.server_minor = SETTLED_MINOR
        """Minor version of the API server; files count as 1.37."""
        self.classes = ClassIndex(started_at)
        self.nodes = Nodes()
        self._holders = Holders(self._held)
        self._holds: dict[DeviceId, tuple[int, float]] = {}
        self._shares: Counter[DeviceId] = Counter()  # how many of the holds are of shares
        self._rules = TaintRules()
        self._pools: dict[str, dict[str, PoolState]] = {}
        self._pools_versions: dict[str, int] = {}
        self._slice_pools: dict[str, PoolState] = {}
        self.tallies = Tallies(self.pools)
        """All counts that were asked for; `tally` is how they are."""
        self._settling: set[PoolState] = set()
        self._settles_at = float("inf")
        """No pool of these settles before: time passes with every review, and there may be thousands."""
        self._current: dict[Kind, bool] = {}
        self._denied: set[Kind] = set()
        self.devices_unknown: Reason | None = Reason.NoSource
        """Why nothing is known of classes and devices; None: they are known and current."""
        self.holds_unknown: Reason | None = Reason.NoSource
        """Why it is not known what is taken."""
        self._files = False

    # --- What is heard ----------------------------------------------------------------------------------------

    def apply(self, kind: Kind, obj: Heard, now: float, since: float | None = None) -> None:
        """An object is new or changed. `since`: how long it has been as it is, when that is known; else since `now`."""
        since = now if since is None else since
        match obj:
            case ResourceClaim():
                self._holders.apply_claim(obj, now, unreserved_lasts=self._files)
            case PodRecord() if kind is Kind.ENDED_PODS:
                self._holders.end_pod(obj, now)
            case PodRecord():
                self._holders.apply_pod(obj, now)
            case ResourceSlice():
                self._apply_slice(obj, now, since)
            case Node():
                self.nodes.apply(obj, now, since)
            case DeviceClass():
                self._apply_class(obj)
            case DeviceTaintRule():
                self._retaint(self._rules.apply(obj))

    def remove(self, kind: Kind, namespace: str, name: str, now: float) -> None:
        """An object is gone."""
        match kind:
            case Kind.RESOURCE_CLAIMS:
                self._holders.remove_claim((namespace, name), now)
            case Kind.PODS:
                self._holders.remove_pod((namespace, name), now)
            case Kind.ENDED_PODS:
                self._holders.forget_end((namespace, name), now)
            case Kind.RESOURCE_SLICES:
                self._remove_slice(name, now)
            case Kind.NODES:
                self.nodes.remove(name, now)
            case Kind.DEVICE_CLASSES:
                self.classes.remove(name)
                self.tallies.drop_class(name)
            case Kind.DEVICE_TAINT_RULES:
                self._retaint(self._rules.remove(name))

    def prune(self, kind: Kind, listed: set[tuple[str, str]], now: float) -> Iterator[None]:
        """A list of the kind is complete: what is not in it (namespace, name) is gone.

        In steps, one for each known object; the list is used up on the way. 20,000 claims at once take 8 ms (measured).
        """
        for known in list(self._names(kind)):
            if known in listed:
                listed.remove(known)
            else:
                self.remove(kind, *known, now)
            yield

    def synced(self, kind: Kind, now: float, since: float | None = None) -> None:
        """The kind is completely known and current from now on."""
        self._note(kind, current=True)
        self._denied.discard(kind)
        if kind is Kind.NODES:
            self.nodes.known_since = now if since is None else since
        elif kind is Kind.PODS:
            self._holders.pods_synced(now)
        elif kind is Kind.DEVICE_TAINT_RULES:
            self._retaint(self._rules.trust(current=self.server_minor >= SETTLED_MINOR))

    def lost(self, kind: Kind) -> None:
        """The kind is not current any more: what it feeds is unknown until it is synced again."""
        self._note(kind, current=False)
        if kind is Kind.NODES:
            self.nodes.known_since = None
        elif kind is Kind.PODS:
            self._holders.pods_known = False
        elif kind is Kind.DEVICE_TAINT_RULES:
            self._retaint(self._rules.trust(current=False))

    def deny(self, kind: Kind) -> None:
        """The kind may not be read."""
        self._denied.add(kind)
        self.lost(kind)

    def from_files(self, *, pods: bool, nodes: bool) -> None:
        """What is applied is a dump: it has no history, and says nothing of kinds that are not in it."""
        self._files = True
        self.tallies.count_at_once()
        if not pods:
            self._note(Kind.PODS, current=True)
            self._note(Kind.ENDED_PODS, current=True)
        if not nodes:
            self._note(Kind.NODES, current=True)

    @property
    def holds_denied(self) -> bool:
        """Whether claims or pods may not be read at all."""
        return not self._denied.isdisjoint(HOLDS)

    def _note(self, kind: Kind, *, current: bool) -> None:
        self._current[kind] = current
        self.devices_unknown, self.holds_unknown = self._why_unknown(DEVICES), self._why_unknown(HOLDS)

    def _why_unknown(self, kinds: Iterable[Kind]) -> Reason | None:
        states = [self._current.get(kind) for kind in kinds]
        if all(states):
            return None
        never = None in states or not self._denied.isdisjoint(kinds)
        return Reason.NoSource if never else Reason.StaleSnapshot

    def advance(self, now: float) -> None:
        """Time has passed."""
        self._holders.advance(now)
        if now >= self._settles_at:
            for pool in [p for p in self._settling if now - p.since >= INCOMPLETE_SETTLES_SECONDS]:
                self._judge_pool(pool, now)
            self._settles_at = INCOMPLETE_SETTLES_SECONDS + min((p.since for p in self._settling), default=float("inf"))

    # --- What is asked ----------------------------------------------------------------------------------------

    def tally(self, ask: Ask) -> Tally:
        """The live count of an ask; made once, over all devices, when it is asked for the first time."""
        return self.tallies.get(ask, self._selectors)

    def standing(
        self,
        tally: Tally,
        tolerations: tuple[Toleration, ...] | None,
        node_selector: tuple[tuple[str, str], ...],
        now: float,
    ) -> Standing:
        """What the live view says of an ask, for a pod that tolerates and selects nodes like this (`out_of_reach`)."""
        if self.nodes.known_since is None or not tally.few:
            return tally.standing()
        reach = self.nodes.out_of_reach
        return tally.standing(lambda device: reach(device.node, device.since, tolerations, node_selector, now))

    def pools(self, driver: str | None = None) -> Iterator[PoolState]:
        """All pools, or those of one driver."""
        for pools in self._pools.values() if driver is None else (self._pools.get(driver, {}),):
            yield from pools.values()

    def pools_version(self, driver: str) -> int:
        """Changes with the slices of a driver."""
        return self._pools_versions.get(driver, 0)

    def drivers(self) -> tuple[str, ...]:
        """Drivers that publish slices."""
        return tuple(sorted(self._pools))

    def claimants(self, extended_resource: str) -> tuple[str, ...]:
        """See `demand.Catalog`."""
        return self.classes.claimants(extended_resource)

    def has_class(self, name: str) -> bool:
        """See `demand.Catalog`."""
        return self.classes.get(name) is not None

    def judges_extended_resources(self) -> bool:
        """See `demand.Catalog`."""
        return self.server_minor >= SETTLED_MINOR and self._current.get(Kind.NODES, False)

    def plugin_node(self, extended_resource: str, now: float) -> str | None:
        """See `demand.Catalog`."""
        return self.nodes.plugin_node(extended_resource, now)

    def claim_allocated(self, namespace: str, name: str) -> bool:
        """See `demand.Catalog`."""
        return self._holders.allocated((namespace, name))

    # --- Classes and tallies ----------------------------------------------------------------------------------

    def _apply_class(self, obj: DeviceClass) -> None:
        old = self.classes.get(obj.metadata.name)
        new = self.classes.apply(obj)
        if old is None or old.selectors != new.selectors:
            self.tallies.drop_class(new.name)

    def _selectors(self, ask: Ask) -> tuple[Selector, ...]:
        known = self.classes.get(ask.class_name)
        return (*(known.selectors if known else ()), *(selector(text) for text in ask.selectors))

    # --- Slices, pools and devices ----------------------------------------------------------------------------

    def _apply_slice(self, obj: ResourceSlice, now: float, since: float) -> None:
        driver, pool_name, name = obj.spec.driver, obj.spec.pool.name, obj.metadata.name
        before = self._slice_pools.get(name)
        if before is not None and (before.driver, before.name) != (driver, pool_name):
            self._remove_slice(name, now)
        pools = self._pools.setdefault(driver, {})
        pool = pools.get(pool_name)
        if pool is None:
            pool = pools[pool_name] = PoolState(intern(driver), intern(pool_name))
        known = pool.slices.get(name)
        if not self._files and known is not None and known.version and known.version == obj.metadata.resource_version:
            return  # listed once more, unchanged
        part = slice_state(obj, pool, since)
        pool.publish(part)
        self._slice_pools[part.name] = pool
        pool.since = max(pool.since, since)
        self._judge_pool(pool, now)

    def _remove_slice(self, name: str, now: float) -> None:
        pool = self._slice_pools.pop(name, None)
        if pool is None:
            return
        pool.withdraw(name)
        pool.since = now
        self._judge_pool(pool, now)
        if not pool.slices:
            del self._pools[pool.driver][pool.name]
            if not self._pools[pool.driver]:
                del self._pools[pool.driver]

    def _judge_pool(self, pool: PoolState, now: float) -> None:
        """Find out whether the pool counts, and exchange the devices that count; unchanged slices cost nothing."""
        self._pools_versions[pool.driver] = self._pools_versions.get(pool.driver, 0) + 1
        before, active = pool.condition, pool.active
        gone, new = pool.judge(now)
        for device in gone:
            self._deactivate(device)
        for device in new:
            self._activate(device)
        if pool.active != active:  # also where none of the slices exchanged has a device: it may have counters
            pool.recount()
            self._refit(pool)
        if pool.condition is Condition.INCOMPLETE and settles(pool):
            self._settling.add(pool)
            self._settles_at = min(self._settles_at, pool.since + INCOMPLETE_SETTLES_SECONDS)
        else:
            self._settling.discard(pool)
        if {before, pool.condition} != {Condition.USABLE}:
            self.tallies.block(pool)

    def _activate(self, device: DeviceState) -> None:
        holders, taken_at = self._holds.get(device.id, (0, 0.0))
        device.holders = self._of_whole(device, holders)
        device.pool.last_taken = max(device.pool.last_taken, taken_at)
        device.exhausted = False
        device.taints = (*device.slice_taints, *self._rules.taints(device.id))
        self.tallies.add(device)

    def _deactivate(self, device: DeviceState) -> None:
        for tally in device.tallies:
            tally.drop(device)
        device.tallies = ()

    def _refit(self, pool: PoolState) -> None:
        for device in pool.counting:
            exhausted = not device.holders and not pool.counters.fit(device.consumes)
            if exhausted != device.exhausted:
                device.exhausted = exhausted
                self._update(device)

    def _of_whole(self, device: DeviceState, holders: int) -> int:
        """Those that count: an exclusive device is given away though somebody has a share of it (seen on 1.37.2)."""
        return holders if device.shareable else holders - self._shares[device.id]

    def _held(self, device_id: DeviceId, delta: int, when: float, is_share: bool) -> None:  # noqa: FBT001 - as Holders calls it
        """A claim took a device, or a share of it, or let it go."""
        if is_share:
            self._shares[device_id] += delta
            if not self._shares[device_id]:
                del self._shares[device_id]
        before, taken_at = self._holds.get(device_id, (0, 0.0))
        holders, taken_at = before + delta, max(taken_at, when if delta > 0 else 0.0)
        if holders:
            self._holds[device_id] = (holders, taken_at)
        else:
            self._holds.pop(device_id, None)
        driver, pool_name, name = device_id
        pool = self._pools.get(driver, {}).get(pool_name)
        device = pool.by_name.get(name) if pool else None
        if device is None:
            return
        was_held, device.holders = device.holders > 0, self._of_whole(device, holders)
        device.pool.last_taken = max(device.pool.last_taken, taken_at)
        if was_held != (device.holders > 0):
            if device.consumes:
                change = device.pool.counters.give_back if was_held else device.pool.counters.take
                change(device.consumes)
                self._refit(device.pool)
            self._update(device)

    def _retaint(self, rules: Iterable[Rule]) -> None:
        """Taint rules changed: the devices they concern carry other taints."""
        for rule in rules:
            for device in self._devices_under(rule):
                device.taints = (*device.slice_taints, *self._rules.taints(device.id))
                self._update(device)

    def _devices_under(self, rule: Rule) -> Iterator[DeviceState]:
        for pool in self.pools(rule.selector.driver):
            if rule.selector.pool in (None, pool.name):
                yield from (device for device in pool.devices() if rule.matches(device.id))

    @staticmethod
    def _update(device: DeviceState) -> None:
        for tally in device.tallies:
            tally.update(device)

    def _names(self, kind: Kind) -> Iterable[tuple[str, str]]:
        """Namespace and name of all that is known of a kind."""
        if kind is Kind.RESOURCE_CLAIMS:
            return self._holders.claim_names()
        if kind is Kind.PODS:
            return self._holders.pod_names()
        if kind is Kind.ENDED_PODS:
            return self._holders.ended_names()
        unscoped: dict[Kind, Iterable[str]] = {
            Kind.RESOURCE_SLICES: self._slice_pools,
            Kind.NODES: self.nodes.names(),
            Kind.DEVICE_CLASSES: (known.name for known in self.classes),
            Kind.DEVICE_TAINT_RULES: self._rules.names(),
        }
        return (("", name) for name in unscoped.get(kind, ()))
