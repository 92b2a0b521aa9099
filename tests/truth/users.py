"""What users and kubelets do in a corner: pods that end in all ways, and claims of their own."""

import threading
import time
from collections.abc import Callable, Iterable
from itertools import count

from tests.controlplane.client import Client, Json, Refused
from tests.truth.parts import Changes, Parts

DRA = "/apis/resource.k8s.io/v1"

GRACE_SECONDS = 20
"""Of pods that end slowly; the kubelet needs less."""


class Users:
    """All of one corner; `classes` gives the names of the classes there were."""

    def __init__(self, client: Client, parts: Parts, classes: Callable[[], list[str]]) -> None:
        """With one claim and two templates."""
        self._client, self._parts, self._classes, self._chance = client, parts, classes, parts.chance
        self._numbers = count()
        self._ending: list[threading.Timer] = []
        self.pods = f"/api/v1/namespaces/{parts.namespace}/pods"
        self.claims = f"{DRA}/namespaces/{parts.namespace}/resourceclaims"
        self.templates = f"{DRA}/namespaces/{parts.namespace}/resourceclaimtemplates"
        self.changed_at = 0.0
        """When a pod was deleted last."""
        for number in range(2):
            client.post(self.templates, parts.template(f"t{number}", classes()))
        self._claim("named")
        self.changes: Changes = (
            (2, self.end_at_once),
            (3, self.end_slowly),
            (1, self.succeed),
            (1, self.fail),
            (3, self.share_claim),
            (2, self.end_sharers),
            (1, self.delete_claim),
            (2, self.claim_again),
            (2, self.allocate_by_hand),
            (1, self.gate_and_open),
        )

    def close(self) -> None:
        """End nothing more."""
        for timer in self._ending:
            timer.cancel()

    def candidate(self, name: str) -> Json:
        """A pod to ask about, perhaps with all that decides where it goes and who gives way to it."""
        parts, maybe, pick = self._parts, self._parts.maybe, self._parts.pick
        if maybe(0.3):  # others are often kept from a device by more than one thing
            return parts.holder(name, pick(self._classes()))
        pod = parts.pod(name, self._classes(), [*self.names() * 6, "missing"], ["t0", "t1"])
        spec = pod["spec"]
        spec.setdefault("nodeSelector", {})["story"] = parts.name
        zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [pick(["east", "west"])]}]}
        node = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pick(parts.nodes)]}]}
        term = pick([zone, node])
        if maybe(0.06):
            needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            spec["affinity"] = {"nodeAffinity": needed}
        elif maybe(0.06):
            liked = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
            spec["affinity"] = {"nodeAffinity": liked}
        if maybe(0.1):
            spec["priorityClassName"] = pick(["system-cluster-critical", "system-node-critical"])
            spec["preemptionPolicy"] = pick(["PreemptLowerPriority", "Never"])
        if maybe(0.1):
            spec["resources"] = {"limits": {"cpu": pick(["1", "40"])}}
        return pod

    # --- Pods ---------------------------------------------------------------------------------------------------------

    def delete(self, pod: str) -> None:
        """Delete a pod at once."""
        try:
            self._client.delete(f"{self.pods}/{pod}", gracePeriodSeconds=0)
        except Refused:
            return
        self.changed_at = time.time()

    def bound(self) -> list[Json]:
        """Pods that have a node and are not being deleted."""
        pods = self._client.get(self.pods)["items"]
        return [each for each in pods if each["spec"].get("nodeName") and not each["metadata"].get("deletionTimestamp")]

    def _holder(self) -> str:
        """Raises `IndexError`."""
        return str(self._chance.choice(sorted(each["metadata"]["name"] for each in self.bound())))

    def end_at_once(self) -> None:
        """Deleted by force."""
        self.delete(self._holder())

    def end_slowly(self) -> None:
        """Deleted with a grace; the kubelet ends it."""
        holder = self._holder()
        self._client.delete(f"{self.pods}/{holder}", gracePeriodSeconds=GRACE_SECONDS)
        timer = threading.Timer(self._chance.uniform(1, 12), self.delete, [holder])
        timer.daemon = True
        timer.start()
        self._ending.append(timer)

    def succeed(self) -> None:
        """It ends by itself, and stays."""
        self._end(self._holder(), "Succeeded")

    def fail(self) -> None:
        """Evicted, or out of memory."""
        self._end(self._holder())

    def _end(self, pod: str, phase: str = "Failed") -> None:
        self._client.patch(f"{self.pods}/{pod}/status", {"status": {"phase": phase}})

    def _delete_if_it_waits(self, pod: str) -> None:
        time.sleep(1)
        if not self._client.get(f"{self.pods}/{pod}")["spec"].get("nodeName"):
            self.delete(pod)

    def gate_and_open(self) -> None:
        """A pod that waits at a gate for a while; its claim is made meanwhile."""
        name = f"gated-{next(self._numbers)}"
        pod = self._parts.pod_with(name, [{"resourceClaimTemplateName": self._chance.choice(["t0", "t1"])}])
        pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        self._client.post(self.pods, pod)
        time.sleep(0.5)
        self._client.patch(f"{self.pods}/{name}", {"spec": {"schedulingGates": None}})
        self._delete_if_it_waits(name)

    # --- Claims -------------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Of all claims that no pod owns."""
        return [each["metadata"]["name"] for each in self._own_claims()]

    def _own_claims(self) -> list[Json]:
        claims = self._client.get(self.claims)["items"]
        return [each for each in claims if "ownerReferences" not in each["metadata"]]

    def share_claim(self) -> None:
        """A pod, or one pod more, with a claim of the user's own; gone again where it has to wait."""
        name = f"sharer-{next(self._numbers)}"
        claim = self._chance.choice(self.names())
        self._client.post(self.pods, self._parts.pod_with(name, [{"resourceClaimName": claim}]))
        self._delete_if_it_waits(name)

    def end_sharers(self) -> None:
        """The claim of the user's own stays, without consumers."""
        ends = self._chance.choice([self.delete, self._end])
        for pod in self.bound():
            if any("resourceClaimName" in each for each in pod["spec"].get("resourceClaims", ())):
                ends(pod["metadata"]["name"])

    def delete_claim(self) -> None:
        """It goes when the last of its pods has gone."""
        self._client.delete(f"{self.claims}/{self._chance.choice(self.names())}")

    def claim_again(self) -> None:
        """A claim more, perhaps under the name of one that was deleted."""
        self._claim(self._chance.choice(["named", "other"]))

    def _claim(self, name: str) -> None:
        self._client.post(self.claims, self._parts.claim(name, self._classes()))

    def allocate_by_hand(self) -> None:
        """A tool allocates a claim, and reserves it for nobody."""
        open_claims = [
            each
            for each in self._own_claims()
            if "allocation" not in each.get("status", {}) and "exactly" in each["spec"]["devices"]["requests"][0]
        ]
        claim = self._chance.choice(open_claims)
        result = self._chance.choice(sorted(self._free(), key=str))
        driver, pool, device, node = result
        request = claim["spec"]["devices"]["requests"][0]["name"]
        allocation: Json = {
            "devices": {"results": [{"request": request, "driver": driver, "pool": pool, "device": device}]}
        }
        if node:
            field = {"key": "metadata.name", "operator": "In", "values": [node]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        path = f"{self.claims}/{claim['metadata']['name']}/status"
        self._client.patch(path, {"status": {"allocation": allocation}})

    def _free(self) -> set[tuple[str, str, str, str]]:
        """Devices that no claim holds: driver, pool, name and node."""
        held = {
            (each["driver"], each["pool"], each["device"])
            for claim in self._client.get(self.claims)["items"]
            for each in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        }
        return {
            (part["spec"]["driver"], part["spec"]["pool"]["name"], device["name"], part["spec"].get("nodeName", ""))
            for part in self._slices()
            for device in part["spec"].get("devices", ())
            if not device.get("allowMultipleAllocations")
            and (part["spec"]["driver"], part["spec"]["pool"]["name"], device["name"]) not in held
        }

    def _slices(self) -> Iterable[Json]:
        for driver in self._parts.drivers:
            found = self._client.get(f"{DRA}/resourceslices", fieldSelector=f"spec.driver={driver}")
            yield from found["items"]
