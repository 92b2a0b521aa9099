"""Nodes: who may serve a name by a device plugin, and which nodes a pod cannot get to.

Both are held to what lasts. A kubelet restart zeroes a plugin's counts until it has registered again; a cordon or a
taint may be gone in seconds. What is too fresh counts in the pod's favour.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.dra.objects import Amount, Node, Taint, Toleration
from app.dra.quantity import parse_quantity

PLUGIN_MEMORY_SECONDS = 600.0
"""How long a node that served a name by device plugin may come back with it."""

REACH_SETTLES_SECONDS = 120.0
"""How long a node must have been out of reach for its devices not to count."""

BLOCKING_NODE_EFFECTS = frozenset({"NoSchedule", "NoExecute"})

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""Who tolerates this may run on a cordoned node (scheduler plugin NodeUnschedulable)."""


@dataclass(slots=True, eq=False)
class NodeState:
    """What is kept of one node; every fact with the time since when it has been so."""

    labels: Mapping[str, str]
    labels_since: float
    unschedulable_since: float | None
    taints: dict[Taint, float] = field(default_factory=dict)
    extended: frozenset[str] = frozenset()
    """Names with a slash in capacity or allocatable."""


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether a taint is tolerated. An operator we do not know tolerates: that can only admit."""
    return any(
        (not t.effect or t.effect == taint.effect)
        and (not t.key or t.key == taint.key)
        and (t.operator not in ("", "Equal") or t.value == taint.value)
        for t in tolerations
    )


class Nodes:
    """All nodes."""

    def __init__(self) -> None:
        """No nodes, and nothing known of them."""
        self._nodes: dict[str, NodeState] = {}
        self._absent_since: dict[str, float] = {}
        self._serving: dict[str, dict[str, None]] = {}
        self._served: dict[str, dict[str, float]] = {}
        self.known_since: float | None = None
        """Since when the list of nodes is complete and current; None: nothing is said of nodes."""

    def names(self) -> Iterable[str]:
        """All nodes that exist."""
        return self._nodes.keys()

    def apply(self, obj: Node, now: float, since: float) -> None:
        """A node was seen; `since`: how long the state it shows has lasted if it is the first one seen."""
        name, old = obj.metadata.name, self._nodes.get(obj.metadata.name)
        taints = [t for t in obj.spec.taints or () if t.effect in BLOCKING_NODE_EFFECTS]
        labels = obj.metadata.labels or {}
        if old is None:
            state = NodeState(labels, since, since if obj.spec.unschedulable else None, dict.fromkeys(taints, since))
        else:
            state = NodeState(
                labels,
                old.labels_since if old.labels == labels else now,
                (now if old.unschedulable_since is None else old.unschedulable_since)
                if obj.spec.unschedulable
                else None,
                {taint: old.taints.get(taint, now) for taint in taints},
            )
        self._nodes[name] = state
        self._absent_since.pop(name, None)
        present = _extended(obj)
        state.extended = frozenset(present)
        for resource in state.extended | (old.extended if old else frozenset()):
            positive = present.get(resource, False)
            self._note_plugin(name, resource, positive=positive, first=old is None, at=now if old else since)

    def remove(self, name: str, now: float) -> None:
        """A node is gone; what it served it may come back with: a name is judged no sooner for being deleted."""
        if self._nodes.pop(name, None) is not None:
            self._absent_since = {**_lately(self._absent_since, now), name: now}
            for resource, serving in self._serving.items():
                self._served[resource] = _lately(self._served[resource], now)
                if name in serving:
                    del serving[name]
                    self._served[resource][name] = now

    def plugin_node(self, extended_resource: str, now: float) -> str | None:
        """A node that serves the name by device plugin, did so lately, or may do so in a moment."""
        serving, served = self._serving.get(extended_resource), self._served.get(extended_resource)
        if serving:
            return next(iter(serving))
        if not served:
            return None
        node = max(served, key=served.__getitem__)
        if now - served[node] < PLUGIN_MEMORY_SECONDS:
            return node
        served.clear()  # a kubelet keeps the key of a plugin that was removed: not to be gone through for every review
        return None

    def out_of_reach(
        self,
        node: str,
        device_since: float,
        tolerations: tuple[Toleration, ...] | None,
        selector: tuple[tuple[str, str], ...],
        now: float,
    ) -> str:
        """Why a pod cannot get to the node, as a sentence goes on after "which"; empty: it can, or nobody knows.

        `tolerations` None: no pod in particular, of which a taint or a label keeps only some away.
        """
        if self.known_since is None:
            return ""
        settled = now - REACH_SETTLES_SECONDS
        state = self._nodes.get(node)
        if state is None:
            absent = max(self._absent_since.get(node, self.known_since), device_since)
            return "does not exist" if absent <= settled else ""
        cordoned = state.unschedulable_since is not None and state.unschedulable_since <= settled
        if cordoned and not tolerates(tolerations or (), UNSCHEDULABLE):
            return "is cordoned"
        if tolerations is None:
            return ""
        for taint, since in state.taints.items():
            if since <= settled and not tolerates(tolerations, taint):
                return f"has taint {taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"
        wanted = selector if state.labels_since <= settled else ()
        return next((f"lacks label {key}={value}" for key, value in wanted if state.labels.get(key) != value), "")

    def _note_plugin(self, name: str, resource: str, *, positive: bool, first: bool, at: float) -> None:
        serving, served = self._serving.setdefault(resource, {}), self._served.setdefault(resource, {})
        if positive:
            serving[name] = None
        elif name in serving or first:  # zero at first sight: perhaps a kubelet was restarted just before
            serving.pop(name, None)
            served[name] = at


def _lately(moments: Mapping[str, float], now: float) -> dict[str, float]:
    """What is not yet to be forgotten, of nodes that may never come back."""
    return {name: moment for name, moment in moments.items() if now - moment < PLUGIN_MEMORY_SECONDS}


def _extended(obj: Node) -> dict[str, bool]:
    """Names with a slash, and whether the node has any of it."""
    present: dict[str, bool] = {}
    for amounts in (obj.status.capacity, obj.status.allocatable):
        for name, amount in (amounts or {}).items():
            if "/" in name:
                present[name] = present.get(name, False) or _positive(amount)
    return present


def _positive(amount: Amount) -> bool:
    try:
        return parse_quantity(amount).nano > 0
    except ValueError:
        return True  # whatever it is, it is not a plain zero
