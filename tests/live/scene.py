"""A corner of the cluster for one test: a namespace, a node, a driver, classes and pods under names of their own."""

import itertools
import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from tests.controlplane.client import Json, Refused
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

DRA = "/apis/resource.k8s.io/v1"
CLASSES = f"{DRA}/deviceclasses"
SLICES = f"{DRA}/resourceslices"
TAINT_RULES = f"{DRA}/devicetaintrules"

_numbers = itertools.count()


class Scene:
    """All is called after the scene: its driver is NAME.example.com, its resource NAME.example.com/gpu."""

    def __init__(self, plane: ControlPlane, labels: Mapping[str, str] | None = None, *, nodes: int = 1) -> None:
        """`labels` of the namespace; which webhook is asked about its pods depends on them."""
        self.name = f"scene-{next(_numbers)}"
        self.plane, self.client = plane, plane.client()
        self.driver = f"{self.name}.example.com"
        self.resource = f"{self.driver}/gpu"
        self.pods = f"/api/v1/namespaces/{self.name}/pods"
        self._claims = f"{DRA}/namespaces/{self.name}"
        self._made: list[str] = []
        plane.add_namespace(self.name)
        if labels:
            self.client.patch(f"/api/v1/namespaces/{self.name}", {"metadata": {"labels": dict(labels)}})
        self.nodes = [self.add_node(number) for number in range(nodes)]

    def close(self) -> None:
        """Delete what the cluster would still look at; names are never used again."""
        self.client.delete(self.pods, gracePeriodSeconds=0)
        for path in [*self._made, f"/api/v1/namespaces/{self.name}"]:
            with suppress(Refused):  # the test deleted it
                self.client.delete(path)

    # --- What a driver and an administrator publish -------------------------------------------------------------------

    def make(self, collection: str, body: Json) -> Json:
        """Create a cluster-wide object that goes when the scene is closed."""
        made = self.client.post(collection, body)
        self._made.append(f"{collection}/{made['metadata']['name']}")
        return made

    def add_node(self, number: int, extended: Mapping[str, str] | None = None) -> str:
        """A node, and its name; `extended`: what a device plugin reports."""
        name = f"{self.name}-n{number}"
        self.plane.add_node(name, extended=extended)
        self._made.append(f"/api/v1/nodes/{name}")
        return name

    def add_class(
        self, name: str = "", *, declares: str | None = None, selectors: Sequence[str] = (), driver: str = ""
    ) -> str:
        """A class of the driver's devices, and its name (default: the scene's); `declares`: default the resource."""
        expressions = [f"device.driver == '{driver or self.driver}'", *selectors]
        spec: Json = {"selectors": [{"cel": {"expression": expression}} for expression in expressions]}
        if declares != "":
            spec["extendedResourceName"] = declares or self.resource
        return str(self.make(CLASSES, {"metadata": {"name": name or self.name}, "spec": spec})["metadata"]["name"])

    def publish(  # noqa: PLR0913 - a pool has that many parts
        self,
        devices: int | Iterable[Json],
        *,
        pool: str = "",
        node: str = "",
        driver: str = "",
        slices: int = 1,
        number: int = 0,
        generation: int = 1,
        counters: Json | None = None,
    ) -> str:
        """One slice of a pool, and its name; `slices`: how many the pool has, `number`: which one this is."""
        pool, driver = pool or "pool", driver or self.driver
        spec: Json = {
            "driver": driver,
            "nodeName": node or self.nodes[0],
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": slices},
        }
        if counters:
            spec["sharedCounters"] = [{"name": name, "counters": amounts} for name, amounts in counters.items()]
        else:
            made = [{"name": f"gpu-{each}"} for each in range(devices)] if isinstance(devices, int) else list(devices)
            spec["devices"] = made
        name = f"{driver}-{pool}-{number}"
        self.make(SLICES, {"metadata": {"name": name}, "spec": spec})
        return name

    def add_template(self, name: str, *requests: Json) -> str:
        """A claim template, and its name."""
        spec = {"spec": {"devices": {"requests": list(requests)}}}
        self.client.post(f"{self._claims}/resourceclaimtemplates", {"metadata": {"name": name}, "spec": spec})
        return name

    # --- Pods ---------------------------------------------------------------------------------------------------------

    def pod(self, name: str, *, count: int = 1, resource: str = "", template: str = "") -> Json:
        """A pod that asks for devices by resource or, if there is one, by a claim template."""
        container: Json = {"name": "main", "image": "registry.example.com/main:1"}
        spec: Json = {"containers": [container]}
        if template:
            container["resources"] = {"claims": [{"name": "gpu"}]}
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
        else:
            container["resources"] = {"limits": {resource or self.resource: str(count)}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": self.name}, "spec": spec}

    def node_of(self, name: str) -> str:
        """Where the scheduler put a pod; empty: nowhere yet."""
        return str(self.client.get(f"{self.pods}/{name}")["spec"].get("nodeName", ""))

    def hold(self, *pods: Json) -> None:
        """Create these pods, and have the scheduler bind them: they hold their devices."""
        for pod in pods:
            self.client.post(self.pods, pod)
        for pod in pods:
            self.bound(pod["metadata"]["name"])

    def bound(self, name: str) -> str:
        """The node of a pod, once the scheduler has bound it."""
        return until(f"{name} bound", lambda: self.node_of(name))

    def fill(self, count: int, *, each: int = 1, **asks: str) -> list[str]:
        """Hold the devices of that many pods; their names."""
        pods = [self.pod(f"holder-{number}", count=each, **asks) for number in range(count)]
        self.hold(*pods)
        return [pod["metadata"]["name"] for pod in pods]

    def fill_up(self, devices: int = 1) -> None:
        """A class and one pool of that many devices, all of which are taken."""
        self.add_class()
        self.publish(devices)
        self.fill(devices)

    def free(self, name: str) -> None:
        """Delete a pod at once, as there is no kubelet to end it; its devices are free a few milliseconds later."""
        self.client.delete(f"{self.pods}/{name}", gracePeriodSeconds=0)

    def refusals(self) -> list[Json]:
        """Events of controllers whose pods were refused."""
        events = self.client.get(f"/api/v1/namespaces/{self.name}/events")["items"]
        return [event for event in events if event["reason"] == "FailedCreate"]

    def unschedulable(self, name: str) -> bool:
        """Whether the scheduler has tried the pod and found no place."""
        conditions = self.client.get(f"{self.pods}/{name}")["status"].get("conditions", ())
        return any(each["type"] == "PodScheduled" and each["reason"] == "Unschedulable" for each in conditions)

    def apply(self, pod: Json, *flags: str) -> subprocess.CompletedProcess[str]:
        """What a person does."""
        return self.plane.kubectl("apply", "-f", "-", *flags, input=json.dumps(pod))


AGE = r"(seen live|counted \d+s ago|as of \d\d:\d\d UTC)"


def sentence(name: str, facts: str, asked: int = 1) -> re.Pattern[str]:
    """The whole of a refusal, whatever its age."""
    start = f"[NoGPUCapacity] no free device for {name} ({asked} asked): {facts}"
    end = ". Try again later, wait in the queue with label gpu-vacancy.dev/queue=true, or run on CPU."
    # A count from before the last device was taken still lists it; the contract has the sentence say so.
    listed = r"(?: \(the pool status lists \d+ as available that do(?:es)? not count\))?"
    return re.compile(re.escape(start) + listed + ", " + AGE + re.escape(end))
