"""A corner of a real cluster that tells one story: nodes, devices, classes and pods under names of its own.

All that happens in it happens through the API server, and every change is one that people, drivers and kubelets make.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from random import Random

from tests.controlplane.client import Json, Refused
from tests.controlplane.plane import ControlPlane
from tests.truth.parts import Parts, Pool
from tests.truth.stories import Story

_DRA = "/apis/resource.k8s.io/v1"
_CLASSES, _SLICES, _RULES = (f"{_DRA}/{plural}" for plural in ("deviceclasses", "resourceslices", "devicetaintrules"))
_NODES = "/api/v1/nodes"

GRACE_SECONDS = 20
"""Of pods that end slowly; the kubelet needs less."""

_SETTLE_SECONDS = 2.0


class Corner:
    """Everything is deleted by `close`; names are never used again."""

    def __init__(self, plane: ControlPlane, chance: Random, name: str) -> None:
        """Make all of it, and have the scheduler give most devices to pods."""
        self.name, self.chance, self.client = name, chance, plane.client()
        self._parts = Parts(chance, name, namespace=name)
        self.pods = f"/api/v1/namespaces/{name}/pods"
        self._claims = f"{_DRA}/namespaces/{name}/resourceclaims"
        self._templates = f"{_DRA}/namespaces/{name}/resourceclaimtemplates"
        self._made: list[str] = []
        self._numbers = iter(range(100_000))
        self.class_events: list[Json] = []
        self.changed_at = 0.0
        """When something was changed last that may free a device, or add one; epoch seconds."""
        self._served: set[str] = set()
        self._ending: list[threading.Timer] = []
        plane.add_namespace(name)
        for node in self._parts.nodes:
            body = self._parts.node(node)
            body["metadata"]["labels"]["story"] = name
            plane.register_node(body)
            self._made.append(f"{_NODES}/{node}")
        self._pools = [self._parts.pool(driver, node) for driver in self._parts.drivers for node in self._parts.nodes]
        for pool in self._pools:
            for part in pool.slices:
                self._make(_SLICES, part)
        for number in range(chance.choice([1, 2, 2, 3])):
            self._add_class(number)
        for number in range(2):
            self._make(self._templates, self._parts.template(f"t{number}", self.classes))
        self._make(self._claims, self._parts.claim("named", self.classes))
        self.fill()

    def close(self) -> None:
        """Delete what the cluster would still look at."""
        for timer in self._ending:
            timer.cancel()
        for path in [self.pods, *reversed(self._made), f"/api/v1/namespaces/{self.name}"]:
            with suppress(Refused):
                self.client.delete(path, gracePeriodSeconds=0)

    @property
    def classes(self) -> list[str]:
        """Names of all classes there were."""
        return list(dict.fromkeys(event["object"]["metadata"]["name"] for event in self.class_events))

    def candidate(self) -> Json:
        """A pod to ask about."""
        pod = self._parts.pod(f"pod-{next(self._numbers)}", self.classes, ["named"] * 6 + ["missing"], ["t0", "t1"])
        pod["spec"].setdefault("nodeSelector", {})["story"] = self.name
        return pod

    def node_of(self, pod: str) -> str:
        """Where a pod is bound; empty: nowhere."""
        return str(self.client.get(f"{self.pods}/{pod}")["spec"].get("nodeName", ""))

    def delete(self, pod: str) -> None:
        """Delete a pod at once."""
        with suppress(Refused):
            self.client.delete(f"{self.pods}/{pod}", gracePeriodSeconds=0)
            self.changed_at = time.time()

    def fill(self) -> None:
        """Create pods until the scheduler binds no more of them; these go again."""
        count = sum(len(pool.devices()) for pool in self._pools)
        names = [name for _ in range(min(count + 1, 12)) if (name := self._hold())]
        waiting, quiet_since = set(names), time.monotonic()
        while waiting and time.monotonic() - quiet_since < _SETTLE_SECONDS:
            time.sleep(0.4)
            bound = {
                each["metadata"]["name"] for each in self._listed(self.pods, "Pod") if each["spec"].get("nodeName")
            }
            if waiting & bound:
                waiting, quiet_since = waiting - bound, time.monotonic()
        for name in waiting:
            self.delete(name)

    def story(self, pod: Json) -> Story:
        """The corner as it is now."""
        known = {event["object"]["metadata"]["name"] for event in self.class_events}
        objects = [
            *self._listed(_NODES, "Node", labelSelector=f"story={self.name}"),
            *(each for driver in self._parts.drivers for each in self._slices_of(driver)),
            *(each for each in self._listed(_CLASSES, "DeviceClass") if each["metadata"]["name"] in known),
            *(
                each
                for each in self._listed(_RULES, "DeviceTaintRule")
                if each["metadata"]["name"].startswith(self.name)
            ),
            *self._listed(self._templates, "ResourceClaimTemplate"),
            *self._listed(self._claims, "ResourceClaim"),
            *self._listed(self.pods, "Pod"),
        ]
        name, served = f"{self.name}-{pod['metadata']['name']}", frozenset(self._served)
        return Story(name, objects, list(self.class_events), pod, now=time.time(), fresh=True, served=served)

    def _listed(self, path: str, kind: str, **query: str) -> list[Json]:
        version = "v1" if path.startswith("/api/v1") else "resource.k8s.io/v1"
        found: list[Json] = self.client.get(path, **query)["items"]
        for each in found:
            each["metadata"].pop("managedFields", None)
        return [{"apiVersion": version, "kind": kind} | each for each in found]

    def _slices_of(self, driver: str) -> list[Json]:
        return self._listed(_SLICES, "ResourceSlice", fieldSelector=f"spec.driver={driver}")

    def _make(self, collection: str, body: Json) -> Json | None:
        """Create an object; None: the API server does not want it."""
        try:
            made = self.client.post(collection, body)
        except Refused:
            return None
        self._made.append(f"{collection}/{made['metadata']['name']}")
        return made

    def _hold(self) -> str:
        """A pod that is to hold one device; its name."""
        name = f"holder-{next(self._numbers)}"
        resource = f"deviceclass.resource.kubernetes.io/{self.chance.choice(self.classes)}"
        pod: Json = {
            "metadata": {"name": name},
            "spec": {
                "nodeSelector": {"story": self.name},
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {"name": "main", "image": "registry.example.com/main:1", "resources": {"limits": {resource: "1"}}}
                ],
            },
        }
        return name if self._make(self.pods, pod) else ""

    # --- Changes ------------------------------------------------------------------------------------------------------

    def change(self) -> str:
        """Something happens, or nothing; what it was."""
        changes: list[tuple[int, Callable[[], None]]] = [
            (4, self._nothing),
            (2, self._end_at_once),
            (3, self._end_slowly),
            (1, self._succeed),
            (7, self.fill),
            (2, self._publish_more),
            (1, self._publish_less),
            (1, self._roll_out),
            (1, self._taint),
            (1, self._untaint),
            (1, self._edit_class),
            (1, self._delete_class),
            (1, self._new_class),
            (1, self._cordon),
            (1, self._plug_in),
        ]
        (chosen,) = self.chance.choices([change for _, change in changes], [weight for weight, _ in changes])
        with suppress(Refused):
            chosen()
        if chosen not in (self._nothing, self.fill):
            self.changed_at = time.time()
        return chosen.__name__.strip("_")

    def _nothing(self) -> None:
        pass

    def _holder(self) -> str | None:
        bound = [
            each["metadata"]["name"]
            for each in self._listed(self.pods, "Pod")
            if each["spec"].get("nodeName") and not each["metadata"].get("deletionTimestamp")
        ]
        return self.chance.choice(sorted(bound)) if bound else None

    def _end_at_once(self) -> None:
        if holder := self._holder():
            self.delete(holder)

    def _end_slowly(self) -> None:
        if holder := self._holder():
            self.client.delete(f"{self.pods}/{holder}", gracePeriodSeconds=GRACE_SECONDS)
            timer = threading.Timer(self.chance.uniform(1, 12), self.delete, [holder])  # the kubelet's part
            timer.daemon = True
            timer.start()
            self._ending.append(timer)

    def _succeed(self) -> None:
        if holder := self._holder():
            self.client.patch(f"{self.pods}/{holder}/status", {"status": {"phase": "Succeeded"}})

    def _pool(self) -> Pool:
        return self.chance.choice(self._pools)

    def _publish(self, pool: Pool, change: Callable[[list[Json]], list[Json]]) -> None:
        """Other devices in the first slice with devices, as a new generation of all slices."""
        generation = pool.slices[0]["spec"]["pool"]["generation"] + 1
        target = next(part for part in pool.slices if "devices" in part["spec"])
        target["spec"]["devices"] = change(target["spec"]["devices"])
        for part in pool.slices:
            part["spec"]["pool"]["generation"] = generation
            spec = {"pool": part["spec"]["pool"]}
            if "devices" in part["spec"]:
                spec["devices"] = part["spec"]["devices"]
            self.client.patch(f"{_SLICES}/{part['metadata']['name']}", {"spec": spec})

    def _publish_more(self) -> None:
        pool = self._pool()
        where = {"allNodes": True} if pool.slices[0]["spec"].get("perDeviceNodeSelection") else {}
        added = self._parts.device(f"new-{next(self._numbers)}") | where
        self._publish(pool, lambda devices: [*devices, added])

    def _publish_less(self) -> None:
        self._publish(self._pool(), lambda devices: devices[1:])

    def _roll_out(self) -> None:
        """The driver has begun to publish a generation of two slices; the second comes with the next roll-out."""
        pool = self._pool()
        if pool.slices[0]["spec"].get("allNodes"):
            return  # it would concern other stories
        for part in pool.slices:
            part["spec"]["pool"]["resourceSliceCount"] = len(pool.slices) + (
                part["spec"]["pool"]["resourceSliceCount"] == len(pool.slices)
            )
        self._publish(pool, list)

    def _taint(self) -> None:
        if rule := self._make(_RULES, self._parts.taint_rule(self._pools, next(self._numbers))):
            rule.clear()

    def _untaint(self) -> None:
        rules = [path for path in self._made if path.startswith(_RULES)]
        if rules:
            self._made.remove(rules[0])
            self.client.delete(rules[0])

    def _add_class(self, number: int) -> None:
        """Some in the same second as the last, some later: of equal claims the newest counts."""
        time.sleep(self.chance.choice([0, 0, 1.1]))
        declares = self.chance.choices([*self._parts.resources, None], [80, 10, 10])[0]
        name = f"{self.name}-{self.chance.choice('abc')}{number}"
        if made := self._make(_CLASSES, self._parts.device_class(name, declares)):
            self._heard("ADDED", made)

    def _heard(self, event: str, seen: Json) -> None:
        seen["metadata"].pop("managedFields", None)
        typed = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
        self.class_events.append({"type": event, "object": typed | seen})

    def _existing_class(self) -> Json | None:
        last = {event["object"]["metadata"]["name"]: event for event in self.class_events}
        there = [event["object"] for event in last.values() if event["type"] != "DELETED"]
        return self.chance.choice(there) if len(there) > 1 else None

    def _edit_class(self) -> None:
        if known := self._existing_class():
            declares = self.chance.choice([*self._parts.resources, None])
            path = f"{_CLASSES}/{known['metadata']['name']}"
            edited = self.client.patch(path, {"spec": {"extendedResourceName": declares}})
            if edited["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:  # else there is no event
                self._heard("MODIFIED", edited)

    def _delete_class(self) -> None:
        if known := self._existing_class():
            self.client.delete(f"{_CLASSES}/{known['metadata']['name']}")
            self._heard("DELETED", known)

    def _new_class(self) -> None:
        self._add_class(next(self._numbers))

    def _cordon(self) -> None:
        path = f"{_NODES}/{self.chance.choice(self._parts.nodes)}"
        self.client.patch(path, {"spec": {"unschedulable": self.chance.random() < 0.5 or None}})

    def _plug_in(self) -> None:
        """A device plugin starts, or stops, to serve the name."""
        amount = {self._parts.resources[0]: self.chance.choice(["0", "1", None])}
        self._served.add(self._parts.resources[0])
        path = f"{_NODES}/{self.chance.choice(self._parts.nodes)}/status"
        self.client.patch(path, {"status": {"capacity": amount, "allocatable": amount}})
