"""What administrators do in a corner: nodes, taint rules and device classes."""

import time
from contextlib import suppress
from itertools import count

from tests.controlplane.client import Client, Json, Refused
from tests.controlplane.plane import ControlPlane
from tests.truth.parts import TAINTS, Changes, Parts, Pool

_DRA = "/apis/resource.k8s.io/v1"
CLASSES, RULES, NODES = f"{_DRA}/deviceclasses", f"{_DRA}/devicetaintrules", "/api/v1/nodes"


class Admins:
    """All of one corner."""

    def __init__(self, plane: ControlPlane, client: Client, parts: Parts, pools: list[Pool]) -> None:
        """With all nodes, and with classes."""
        self._plane, self._client, self._parts, self._pools, self._chance = plane, client, parts, pools, parts.chance
        self._numbers = count()
        self._away: list[str] = []
        self._rules: list[str] = []
        self.class_events: list[Json] = []
        self.served: set[str] = set()
        """Names that a device plugin has served."""
        for node in parts.nodes:
            self._register(node)
        for _ in range(self._chance.choice([1, 2, 2, 3])):
            with suppress(Refused):
                self.new_class()
        self.changes: Changes = (
            (1, self.taint),
            (1, self.untaint),
            (1, self.edit_rule),
            (1, self.edit_class_name),
            (2, self.edit_class_selectors),
            (1, self.delete_class),
            (1, self.delete_class_and_make_it_again),
            (1, self.new_class),
            (1, self.cordon),
            (1, self.plug_in),
            (1, self.taint_node),
            (1, self.relabel_node),
            (2, self.delete_node_or_register_it_again),
        )

    def close(self) -> None:
        """Delete what the cluster would still look at."""
        classes = [f"{CLASSES}/{name}" for name in self.classes()]
        for path in [*classes, *self._rules, *(f"{NODES}/{node}" for node in self._parts.nodes)]:
            with suppress(Refused):
                self._client.delete(path)

    # --- Nodes --------------------------------------------------------------------------------------------------------

    def _register(self, node: str) -> None:
        body = self._parts.node(node)
        body["metadata"]["labels"]["story"] = self._parts.name
        self._plane.register_node(body)

    def _node(self) -> str:
        return f"{NODES}/{self._chance.choice(self._parts.nodes)}"

    def cordon(self) -> None:
        """A node is closed, or opened."""
        self._client.patch(self._node(), {"spec": {"unschedulable": self._parts.maybe(0.5) or None}})

    def plug_in(self) -> None:
        """A device plugin starts, or stops, to serve the name."""
        amount = {self._parts.resources[0]: self._chance.choice(["0", "1", None])}
        self.served.add(self._parts.resources[0])
        self._client.patch(f"{self._node()}/status", {"status": {"capacity": amount, "allocatable": amount}})

    def taint_node(self) -> None:
        """For one team, or for all again."""
        taint = {"key": "example.com/team", "value": "x", "effect": self._chance.choice(TAINTS[:2])}
        self._client.patch(self._node(), {"spec": {"taints": [taint] if self._parts.maybe(0.5) else None}})

    def relabel_node(self) -> None:
        """Slices that select nodes may be for others then."""
        self._client.patch(self._node(), {"metadata": {"labels": {"zone": self._chance.choice(["east", "west"])}}})

    def delete_node_or_register_it_again(self) -> None:
        """Drained before, as else its pods would go when the garbage collector finds them. Never the last one."""
        if self._away:
            self._register(self._away.pop())
            return
        if len(self._parts.nodes) == 1:
            return
        node = self._chance.choice(self._parts.nodes)
        pods = f"/api/v1/namespaces/{self._parts.namespace}/pods"
        for pod in self._client.get(pods, fieldSelector=f"spec.nodeName={node}")["items"]:
            self._client.delete(f"{pods}/{pod['metadata']['name']}", gracePeriodSeconds=0)
        self._client.delete(f"{NODES}/{node}")
        self._away.append(node)

    # --- Taint rules --------------------------------------------------------------------------------------------------

    def taint(self) -> None:
        """A new rule."""
        made = self._client.post(RULES, self._parts.taint_rule(self._pools, next(self._numbers)))
        self._rules.append(f"{RULES}/{made['metadata']['name']}")

    def untaint(self) -> None:
        """The oldest rule goes."""
        self._client.delete(self._rules.pop(0))

    def edit_rule(self) -> None:
        """It taints other devices, or otherwise."""
        rule = self._chance.choice(self._rules)
        other = self._parts.taint_rule(self._pools, 0)["spec"]
        selector = {"driver": None, "pool": None, "device": None} | other["deviceSelector"]
        self._client.patch(
            rule, {"spec": self._chance.choice([{"deviceSelector": selector}, {"taint": other["taint"]}])}
        )

    # --- Classes ------------------------------------------------------------------------------------------------------

    def classes(self) -> list[str]:
        """Names of all classes there were."""
        return list(dict.fromkeys(event["object"]["metadata"]["name"] for event in self.class_events))

    def new_class(self) -> None:
        """Some in the same second as the last, some later: of equal claims the newest counts."""
        time.sleep(self._chance.choice([0, 0, 1.1]))
        self._make_class(f"{self._parts.name}-{self._chance.choice('abc')}{next(self._numbers)}")

    def _make_class(self, name: str) -> None:
        declares = self._chance.choices([*self._parts.resources, None], [80, 10, 10])[0]
        self._heard("ADDED", self._client.post(CLASSES, self._parts.device_class(name, declares)))

    def _heard(self, event: str, seen: Json) -> None:
        seen["metadata"].pop("managedFields", None)
        typed = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
        self.class_events.append({"type": event, "object": typed | seen})

    def _existing_class(self) -> Json:
        """Never the last one. Raises `IndexError`."""
        last = {event["object"]["metadata"]["name"]: event for event in self.class_events}
        there = [event["object"] for event in last.values() if event["type"] != "DELETED"]
        return self._chance.choice(there if len(there) > 1 else [])

    def edit_class_name(self) -> None:
        """Another extended resource name, or none."""
        self._edit_class({"extendedResourceName": self._chance.choice([*self._parts.resources, None])})

    def edit_class_selectors(self) -> None:
        """Other devices."""
        self._edit_class({"selectors": self._parts.device_class("", None)["spec"]["selectors"]})

    def _edit_class(self, spec: Json) -> None:
        known = self._existing_class()
        edited = self._client.patch(f"{CLASSES}/{known['metadata']['name']}", {"spec": spec})
        if edited["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:  # else there is no event
            self._heard("MODIFIED", edited)

    def delete_class(self) -> None:
        """It goes."""
        self._delete_class()

    def delete_class_and_make_it_again(self) -> None:
        """Under the same name, mostly within the second."""
        self._make_class(self._delete_class())

    def _delete_class(self) -> str:
        known = self._existing_class()
        name = str(known["metadata"]["name"])
        self._client.delete(f"{CLASSES}/{name}")
        self._heard("DELETED", known)
        return name
