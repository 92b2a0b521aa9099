"""Random parts of a cluster: nodes, pools of devices, classes, taint rules, requests and pods, as JSON.

Few names and small numbers on purpose, so that parts get in each other's way; everything is valid for the API server.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from tests.controlplane.client import Json

T = TypeVar("T")

Changes = tuple[tuple[int, Callable[[], None]], ...]
"""What somebody does in a corner, each with how often."""

NAMESPACE = "team"
"""Of claims and pods, where a story does not need one of its own."""

MODELS = ("a", "b")
VERSIONS = ("1.0.0", "2.0.0")
MEMORIES = ("40Gi", "80Gi")
CARDS = ("card-0", "card-1")
TAINTS = ("NoSchedule", "NoSchedule", "NoExecute", "None")


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool, and the slices it is published in."""

    driver: str
    name: str
    slices: list[Json]

    def devices(self) -> list[tuple[str, Json]]:
        """Its devices, each with the name of its slice."""
        return [
            (part["metadata"]["name"], device) for part in self.slices for device in part["spec"].get("devices", ())
        ]


class Parts:
    """Makes them, from one source of chance; `name` is in every cluster-wide name.

    `namespace`: where the cluster is shared with other stories, one's own; classes are then of one's own drivers.
    """

    def __init__(self, chance: Random, name: str, namespace: str = NAMESPACE) -> None:
        self.chance, self.name, self.namespace = chance, name, namespace
        self.alone = namespace == NAMESPACE
        self.drivers = [f"gpu.{name}.example.com", f"nic.{name}.example.com"][: 1 + self.maybe(0.3)]
        self.resources = [f"{name}.example.com/gpu", f"{name}.example.com/other"]
        self.nodes = [f"{name}-n{number}" for number in range(self.pick([1, 2, 2, 3]))]
        self.pool_numbers = iter(range(1000))

    def maybe(self, probability: float) -> bool:
        """Yes with this probability."""
        return self.chance.random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        """One of them."""
        return self.chance.choice(choices)

    # --- Nodes ----------------------------------------------------------------------------------------------------

    def node(self, name: str) -> Json:
        """A node; of some the pod must tolerate or select something, some serve a name by device plugin."""
        size = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        spec: Json = {}
        if self.maybe(0.06):
            spec["unschedulable"] = True
        if self.maybe(0.06):
            spec["taints"] = [{"key": "example.com/team", "value": "x", "effect": self.pick(TAINTS[:3])}]
        if self.maybe(0.03):
            size[self.pick(self.resources)] = self.pick(["0", "1", "2"])
        labels = {"kubernetes.io/hostname": name, "zone": self.pick(["east", "west"])}
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "there is no kubelet"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"capacity": size, "allocatable": size, "conditions": [ready]},
        }

    # --- Devices --------------------------------------------------------------------------------------------------

    def pool(self, driver: str, node: str) -> Pool:
        """A pool of a node, or of several; most are whole."""
        number = next(self.pool_numbers)
        name = f"{node}-{number}" if self.maybe(0.2) else f"{self.name}-pool-{number}"
        partitioned = 14 if self.alone else 34  # a corner has few pools, and its counters change
        kind = self.chance.choices(["plain", "partitioned", "shareable", "mixed"], [70, partitioned, 5, 5])[0]
        counters, contents = self._contents(kind)
        cut = self.chance.randrange(len(contents) + 1) if self.maybe(0.2) else None
        lists = [contents] if cut is None else [contents[:cut], contents[cut:]]
        bodies: list[Json] = [{"devices": devices} for devices in lists]
        if counters:
            bodies.append({"sharedCounters": counters})
        where = self._placement(node)
        generation = self.pick([1, 1, 1, 2, 7])
        slices = [
            self._slice(
                driver, {"name": name, "generation": generation, "resourceSliceCount": len(bodies)}, at, where | body
            )
            for at, body in enumerate(bodies)
        ]
        self._place_devices(slices, node)
        return Pool(driver, name, self._spoilt(slices))

    def _contents(self, kind: str) -> tuple[list[Json], list[Json]]:
        """Counter sets and devices."""
        if kind == "partitioned":
            return self._partitions()
        devices = [self.device(f"gpu-{number}") for number in range(self.pick([0, 1, 1, 1, 2, 2, 2, 3, 4]))]
        for device in devices:
            if kind == "shareable" or (kind == "mixed" and self.maybe(0.4)):
                device["allowMultipleAllocations"] = True
        return [], devices

    def _partitions(self) -> tuple[list[Json], list[Json]]:
        """Cards that are given whole or in parts."""
        sets, devices = [], []
        for card in CARDS[: self.pick([1, 1, 2])]:
            sets.append({"name": card, "counters": {"memory": {"value": "80Gi"}, "slots": {"value": "3"}}})
            for part, memory, slots in (("whole", "80Gi", "3"), ("half-0", "40Gi", "1"), ("half-1", "40Gi", "2")):
                if self.maybe(0.9):
                    device = self.device(f"{card}-{part}")
                    taken = {"memory": {"value": memory}, "slots": {"value": slots}}
                    device["consumesCounters"] = [{"counterSet": card, "counters": taken}]
                    devices.append(device)
        return sets, devices

    def device(self, name: str) -> Json:
        """One device; some lack what a selector asks for, some are tainted."""
        attributes: Json = {"model": {"string": self.pick(MODELS)}, "version": {"version": self.pick(VERSIONS)}}
        if self.maybe(0.7):
            attributes["ecc"] = {"bool": self.maybe(0.5)}
        if self.maybe(0.06):
            del attributes[self.pick(["model", "version"])]
        device: Json = {"name": name, "attributes": attributes}
        if self.maybe(0.9):
            device["capacity"] = {"memory": {"value": self.pick(MEMORIES)}}
        if self.maybe(0.06):
            device["taints"] = [self.taint()]
        return device

    def taint(self) -> Json:
        """A taint of a device."""
        return {"key": "example.com/broken", "value": self.pick(["x", "y"]), "effect": self.pick(TAINTS)}

    def _placement(self, node: str) -> Json:
        kind = self.chance.choices(["node", "all", "selector", "device"], [76, 8, 8, 8])[0]
        labels = {"zone": self.pick(["east", "west"])} | ({} if self.alone else {"story": self.name})
        terms = [{"matchExpressions": [{"key": k, "operator": "In", "values": [v]} for k, v in labels.items()]}]
        placements: dict[str, Json] = {
            "node": {"nodeName": node},
            "all": {"allNodes": True},
            "selector": {"nodeSelector": {"nodeSelectorTerms": terms}},
            "device": {"perDeviceNodeSelection": True},
        }
        return placements[kind]

    def _place_devices(self, slices: list[Json], node: str) -> None:
        for part in slices:
            if part["spec"].get("perDeviceNodeSelection"):
                for device in part["spec"].get("devices", ()):
                    device.update(
                        {"allNodes": True} if self.maybe(0.2) else {"nodeName": self.pick([node, *self.nodes])}
                    )

    @staticmethod
    def _slice(driver: str, pool: Json, number: int, spec: Json) -> Json:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{driver}-{pool['name']}-g{pool['generation']}-{number}"},
            "spec": {"driver": driver, "pool": pool} | spec,
        }

    def _spoilt(self, slices: list[Json]) -> list[Json]:
        """Nearly always as it is; else incomplete, contradictory, or in the middle of a roll-out."""
        spec = slices[0]["spec"]
        # An incomplete pool keeps every request for all devices from every node it is for: those of other stories, too.
        if self.maybe(0.9) or (spec.get("allNodes") and not self.alone):
            return slices
        kind = self.pick(["incomplete", "too many", "twice", "rolling", "rolled", "left over"])
        if kind == "incomplete":
            for part in slices:
                part["spec"]["pool"] |= {"resourceSliceCount": len(slices) + 1}
        elif kind == "too many" and len(slices) > 1:
            for part in slices:
                part["spec"]["pool"] |= {"resourceSliceCount": len(slices) - 1}
        elif kind == "twice" and len(slices) > 1 and slices[1]["spec"].get("devices") and spec.get("devices"):
            slices[1]["spec"]["devices"].append(self.device(spec["devices"][0]["name"]) | _placed(spec))
        elif kind in ("rolling", "rolled", "left over"):
            return [*slices, *self._other_generation(slices, kind)]
        return slices

    def _other_generation(self, slices: list[Json], kind: str) -> list[Json]:
        """Slices of a generation before or after these."""
        spec = slices[0]["spec"]
        pool = spec["pool"]
        by = -1 if kind == "left over" and pool["generation"] > 1 else 1
        count = 2 if kind == "rolling" else 1
        where = {
            key: spec[key] for key in ("nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection") if key in spec
        }
        devices = [self.device(f"gpu-{number}") | _placed(spec) for number in range(self.pick([0, 1, 2]))]
        other = pool | {"generation": pool["generation"] + by, "resourceSliceCount": count}
        return [self._slice(spec["driver"], other, 0, where | {"devices": devices})]

    def taint_rule(self, pools: Sequence[Pool], number: int) -> Json:
        """A rule about some of the devices."""
        pool = self.pick(pools)
        device = self.pick([device["name"] for _, device in pool.devices()] or ["gpu-0"])
        selectors: list[Json] = [
            {"driver": pool.driver, "pool": pool.name, "device": device},
            {"driver": pool.driver, "pool": pool.name, "device": device},
            {"driver": pool.driver, "pool": pool.name},
            {"driver": pool.driver},
            {"pool": pool.name, "device": device},
        ]
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": f"{self.name}-rule-{number}"},
            "spec": {"deviceSelector": self.pick(selectors), "taint": self.taint()},
        }

    # --- Asking ---------------------------------------------------------------------------------------------------

    def device_class(self, name: str, declares: str | None) -> Json:
        """A class of one driver's devices, or, by mistake, of all."""
        driver = self.pick(self.drivers)
        texts = [f'device.driver == "{driver}"', *([self._condition(driver)] if self.maybe(0.3) else [])]
        if len(texts) > 1 and self.maybe(0.5):
            texts = [" && ".join(texts)]
        if self.alone and self.maybe(0.06):
            texts = texts[1:]
        spec: Json = {"selectors": [{"cel": {"expression": text}} for text in texts]}
        if declares:
            spec["extendedResourceName"] = declares
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": spec,
        }

    def _condition(self, driver: str) -> str:
        a, c = f'device.attributes["{driver}"]', f'device.capacity["{driver}"]'
        return self.pick(
            [
                f'{a}.model == "{self.pick(MODELS)}"',
                f'{a}.?model.orValue("a") == "{self.pick(MODELS)}"',
                f'{a}.version.isGreaterThan(semver("1.5.0"))',
                f'"version" in {a} && {a}.version == semver("{self.pick(VERSIONS)}")',
                f"has({a}.ecc) && {a}.ecc",
                f"{a}.ecc",
                f'has({c}.memory) && {c}.memory.compareTo(quantity("80Gi")) >= 0',
                f'{c}.memory.isLessThan(quantity("64Gi"))',
                f'{a}.model in ["a", "c"]',
                f'{a}.exists(name, name == "ecc")',
                f'cel.bind(a, {a}, has(a.model) && a.model.matches("^b"))',
            ]
        )

    def claim_spec(self, classes: Sequence[str]) -> Json:
        """`spec` of a claim: one request, or two."""
        requests = [self._request(f"r{number}", classes) for number in range(self.pick([1, 1, 1, 1, 2]))]
        devices: Json = {"requests": requests}
        if self.maybe(0.05):
            kind = self.pick(["matchAttribute", "distinctAttribute"])
            devices["constraints"] = [{kind: f"{self.drivers[0]}/model"}]
        return {"devices": devices}

    def _request(self, name: str, classes: Sequence[str]) -> Json:
        if self.maybe(0.2):
            options = [{"name": f"o{number}"} | self._exactly(classes) for number in range(self.pick([1, 2, 2, 3]))]
            return {"name": name, "firstAvailable": options}
        return {"name": name, "exactly": self._exactly(classes)}

    def _exactly(self, classes: Sequence[str]) -> Json:
        asked: Json = {"deviceClassName": self.pick(classes) if self.maybe(0.98) else f"{self.name}-missing"}
        mode = self.chance.choices(["one", "some", "All"], [80, 12, 8])[0]
        asked |= {"allocationMode": "All"} if mode == "All" else {"allocationMode": "ExactCount", "count": 1}
        if mode == "some":
            asked["count"] = self.pick([2, 3, 9])
        if self.maybe(0.25):
            driver = self.pick(self.drivers)
            text = f'device.driver == "{driver}" && {self._condition(driver)}'
            asked["selectors"] = [{"cel": {"expression": text}}]
        if self.maybe(0.12):
            asked["tolerations"] = [self.toleration()]
        if self.maybe(0.05):
            asked["capacity"] = {"requests": {"memory": self.pick(["1Gi", "40Gi", "60Gi"])}}
        return asked

    def toleration(self) -> Json:
        """A toleration of a device's taint."""
        effect = {"effect": self.pick(["NoSchedule", "NoExecute"])} if self.maybe(0.6) else {}
        if self.maybe(0.15):
            return {"operator": "Exists"} | effect
        if self.maybe(0.5):
            return {"key": "example.com/broken", "operator": "Exists"} | effect
        return {"key": "example.com/broken", "operator": "Equal", "value": self.pick(["x", "y"])} | effect

    def template(self, name: str, classes: Sequence[str]) -> Json:
        """A claim template."""
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"spec": self.claim_spec(classes)},
        }

    def claim(self, name: str, classes: Sequence[str]) -> Json:
        """A claim that a user has made; not allocated."""
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": self.namespace, "uid": f"uid-{name}"},
            "spec": self.claim_spec(classes),
        }

    def pod(self, name: str, classes: Sequence[str], claims: Sequence[str], templates: Sequence[str]) -> Json:
        """A pod that asks for devices in one way or in two."""
        spec: Json = {"containers": [self._container("main")]}
        by_claim = self.maybe(0.45)
        if by_claim:
            entries = [self._entry(claims, templates) for _ in range(self.pick([1, 1, 1, 2]))]
            if entries[0].keys() == entries[-1].keys() == {"resourceClaimName"}:
                del entries[1:]  # kube-scheduler 1.37.2 never binds a pod that names a claim twice
            spec["resourceClaims"] = [{"name": f"c{number}"} | entry for number, entry in enumerate(entries)]
            spec["containers"][0]["resources"]["claims"] = [{"name": each["name"]} for each in spec["resourceClaims"]]
        if not by_claim or self.maybe(0.1):
            self._ask_by_name(spec, classes)
        if self.maybe(0.08):
            spec["nodeSelector"] = {"zone": self.pick(["east", "west"])}
        if self.maybe(0.1):
            tolerated = [{"key": "example.com/team", "operator": "Exists"}]
            spec["tolerations"] = [*tolerated, {"operator": "Exists"}][self.maybe(0.3) :]
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def pod_with(self, name: str, claims: Sequence[Json]) -> Json:
        """A pod of this story that tolerates all, with these entries of `resourceClaims`."""
        entries = [{"name": f"c{number}"} | entry for number, entry in enumerate(claims)]
        container = self._container("main") | {"resources": {"claims": [{"name": each["name"]} for each in entries]}}
        spec: Json = {
            "nodeSelector": {"story": self.name},
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "resourceClaims": entries,
        }
        return {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec}

    def holder(self, name: str, device_class: str) -> Json:
        """The same, with one device of a class."""
        pod = self.pod_with(name, [])
        amount = {f"deviceclass.resource.kubernetes.io/{device_class}": "1"}
        pod["spec"]["containers"][0]["resources"] = {"requests": amount, "limits": amount}
        return pod

    @staticmethod
    def _container(name: str) -> Json:
        return {"name": name, "image": "registry.example.com/main:1", "resources": {}}

    def _entry(self, claims: Sequence[str], templates: Sequence[str]) -> Json:
        if claims and self.maybe(0.3):
            return {"resourceClaimName": self.pick(claims)}
        return {"resourceClaimTemplateName": self.pick(templates)}

    def _ask_by_name(self, spec: Json, classes: Sequence[str]) -> None:
        """In one container, or in several of all kinds."""
        spec["containers"][0]["resources"] |= self._amounts(classes)
        if self.maybe(0.08):
            second = self._container("second")
            second["resources"] = self._amounts(classes)
            spec["containers"].append(second)
        if self.maybe(0.12):
            first = self._container("first")
            first["resources"] = self._amounts(classes)
            if self.maybe(0.4):
                first["restartPolicy"] = "Always"
            spec["initContainers"] = [first]

    def _amounts(self, classes: Sequence[str]) -> Json:
        if self.maybe(0.25):
            name = f"deviceclass.resource.kubernetes.io/{self.pick(classes)}"
        else:
            name = self.resources[self.maybe(0.06)]
        amount = {name: str(self.pick([1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 0]))}
        return {"requests": amount, "limits": dict(amount)}


def _placed(spec: Json) -> Json:
    return {"allNodes": True} if spec.get("perDeviceNodeSelection") else {}
