"""Stories: a cluster at one moment, how its classes came about, and a pod; made by chance, from a seed.

What a story says of itself here (claims about to be freed, classes that may claim a name) follows the contract's words
and shares no code with the product.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random

from tests.builders import timestamp
from tests.controlplane.client import Json
from tests.truth.parts import NAMESPACE, Parts, Pool

NOW = 1_767_268_800.0
"""2026-01-01T12:00:00Z, when every story is asked about."""

STUCK_SECONDS = 60.0


@dataclass(slots=True)
class Story:
    """A question whose answer the oracle knows."""

    name: str
    objects: list[Json]
    """All objects as they are now."""
    class_events: list[Json]
    """What the scheduler has heard of device classes, oldest first."""
    pod: Json
    now: float = NOW
    fresh: bool = False
    """Things have changed within minutes: nothing is said to last."""
    served: frozenset[str] = frozenset()
    """Names that a node has served by device plugin lately, besides those that nodes show now."""
    notes: Json = field(default_factory=dict)
    """What is worth knowing when it is replayed."""

    def of(self, kind: str) -> Iterator[Json]:
        """The objects of a kind."""
        return (each for each in self.objects if each["kind"] == kind)

    def question(self) -> Json:
        """What the oracle is asked."""
        return {
            "objects": self.objects,
            "classEvents": self.class_events,
            "freed": sorted(freed(self)),
            "claimants": {
                name: sorted({*classes, *claimants(self, watched=False)[name]})
                for name, classes in claimants(self, watched=True).items()
            },
            "pod": self.pod,
        }

    def save(self, folder: Path) -> Path:
        """Write it so that `vacancy check --manifests` replays it; the folder it is in."""
        home = folder / self.name
        home.mkdir(parents=True, exist_ok=True)
        (home / "pod.json").write_text(json.dumps(self.pod, indent=1) + "\n")
        cluster = home / "cluster.json"
        cluster.write_text(json.dumps(listed(self.objects), indent=1) + "\n")
        command = f"vacancy check -f pod.json -n {NAMESPACE} --manifests cluster.json --now {timestamp(self.now)}"
        story = {"replay": command, "classEvents": self.class_events} | self.notes
        (home / "story.json").write_text(json.dumps(story, indent=1, default=str) + "\n")
        return home


def listed(objects: Iterable[Json]) -> Json:
    """One object that holds all."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


# --- What the contract says of a story --------------------------------------------------------------------------------


def freed(story: Story) -> set[str]:
    """Claims whose holders are about to let go (contract, section 4), as namespace/name."""
    pods = {pod["metadata"]["uid"]: pod for pod in story.of("Pod")}

    def leaves(consumer: Json) -> bool:
        if consumer["resource"] != "pods":
            return False
        pod = pods.get(consumer["uid"])
        if pod is None or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            return True
        deadline = pod["metadata"].get("deletionTimestamp")
        return deadline is not None and story.now - seconds(deadline) <= STUCK_SECONDS

    found = set()
    for claim in story.of("ResourceClaim"):
        reserved = claim.get("status", {}).get("reservedFor", [])
        if claim.get("status", {}).get("allocation") and all(map(leaves, reserved)):
            found.add(f"{claim['metadata']['namespace']}/{claim['metadata']['name']}")
    return found


def claimants(story: Story, *, watched: bool) -> dict[str, list[str]]:
    """Classes that may claim a name (contract, section 3), by name: all of them must be full.

    `watched`: the classes' history was seen; otherwise it is guessed from how often they were edited.
    """
    classes = list(story.of("DeviceClass"))
    seen = [*(event["object"] for event in story.class_events if watched), *classes]
    found = {}
    for name in {each["spec"].get("extendedResourceName") for each in classes} - {None}:
        declaring = {each["metadata"]["name"] for each in seen if each["spec"].get("extendedResourceName") == name}
        possible = [
            each["metadata"]["name"]
            for each in classes
            if each["metadata"]["name"] in declaring or (not watched and _edited(each))
        ]
        found[name] = sorted(possible)
    return found


def _edited(device_class: Json) -> bool:
    """Whether it may have declared another name than it does."""
    generation = device_class["metadata"]["generation"]
    return generation >= 3 or (generation == 2 and "extendedResourceName" in device_class["spec"])


def seconds(stamp: str) -> float:
    """Epoch seconds of a timestamp."""
    return datetime.fromisoformat(stamp).timestamp()


# --- Made by chance ---------------------------------------------------------------------------------------------------


def stories(seed: int, count: int) -> Iterator[Story]:
    """So many stories; the same for the same seed."""
    for number in range(count):
        chance = Random(f"{seed}/{number}")  # noqa: S311 - repeatable
        yield Maker(chance, f"s{seed}-{number}").story()


class Maker:
    """Makes one story."""

    def __init__(self, chance: Random, name: str) -> None:
        self.chance, self.name = chance, name
        self.parts = Parts(chance, "x")
        self.maybe, self.pick = self.parts.maybe, self.parts.pick
        self.objects: list[Json] = []
        self.pods: list[Json] = []
        self.numbers = iter(range(1000))
        self.fill = self.pick([1.0, 1.0, 1.0, 1.0, 0.9, 0.6, 0.3])
        self.leaving = self.pick([0.0, 0.0, 0.0, 0.05, 0.3])
        """How likely a holder is about to let go."""
        # Each cluster has a pod and a node besides: a dump without any would say nothing of holders, of reach.

    def story(self) -> Story:
        parts = self.parts
        nodes = [parts.node(name) for name in parts.nodes if self.maybe(0.96)] + [parts.node("bystander")]
        pools = [parts.pool(driver, node) for driver in parts.drivers for node in parts.nodes if self.maybe(0.9)]
        events = self._classes()
        names = sorted({event["object"]["metadata"]["name"] for event in events})
        rules = [parts.taint_rule(pools, number) for number in range(self.pick([0, 0, 0, 1, 2]))] if pools else []
        templates = [parts.template(f"t{number}", names) for number in range(2)]
        named = [parts.claim("named", names)]
        self.objects = [*nodes, *(part for pool in pools for part in pool.slices), *rules, *templates]
        for pool in pools:
            self._hold(pool)
        if self.maybe(0.3):
            self._allocate(named[0], pools)
        elif self.maybe(0.05):
            named[0]["metadata"]["deletionTimestamp"] = timestamp(NOW - 5)
        for each in self.objects:
            self._age(each)
        bystander = self._pod("bystander", "running")
        self.objects += [*named, *current(events), *self.pods, bystander]
        pod = parts.pod("candidate", names, ["named"] * self.maybe(0.97) or ["missing"], ["t0", "t1"])
        return Story(self.name, self.objects, self._heard(events), pod)

    def _age(self, each: Json) -> None:
        """Most objects are old; some have only just been made."""
        age = self.pick([5.0, 60.0, 200.0]) if self.maybe(0.05) else 86_400.0
        each["metadata"] |= {"creationTimestamp": timestamp(NOW - age), "uid": f"uid-{each['metadata']['name']}"}

    # --- Classes ---------------------------------------------------------------------------------------------------

    def _classes(self) -> list[Json]:
        """Watch events of device classes."""
        events: list[Json] = []
        second = NOW - 7200
        for number in range(self.pick([1, 1, 2, 2, 3])):
            second += self.pick([0, 0, 1, 100])
            declares = self.chance.choices([*self.parts.resources, None], [80, 10, 10])[0]
            made = self.parts.device_class(f"class-{self.pick('abc')}{number}", declares)
            made["metadata"] |= {
                "creationTimestamp": timestamp(second),
                "generation": 1,
                "uid": f"uid-{next(self.numbers)}",
            }
            events.append({"type": "ADDED", "object": made})
        while self.maybe(0.15):
            events += self._change(self.pick(events)["object"]["metadata"]["name"], events, second)
        return events

    def _change(self, name: str, events: list[Json], second: float) -> list[Json]:
        """A class declares something else, goes, or comes again."""
        last = next(event for event in reversed(events) if event["object"]["metadata"]["name"] == name)
        known = last["object"]
        if last["type"] == "DELETED":
            again = known["metadata"] | {
                "creationTimestamp": timestamp(second + 60),
                "generation": 1,
                "uid": f"uid-{next(self.numbers)}",
            }
            return [{"type": "ADDED", "object": known | {"metadata": again}}]
        if self.maybe(0.3):
            return [{"type": "DELETED", "object": known}]
        spec = {key: value for key, value in known["spec"].items() if key != "extendedResourceName"}
        declares = self.pick([*self.parts.resources, None])
        if declares == known["spec"].get("extendedResourceName"):
            return []
        if declares:
            spec["extendedResourceName"] = declares
        metadata = known["metadata"] | {"generation": known["metadata"]["generation"] + 1}
        return [{"type": "MODIFIED", "object": known | {"metadata": metadata, "spec": spec}}]

    def _heard(self, events: list[Json]) -> list[Json]:
        """What the scheduler has heard: all of it, or, if it was restarted, only what there is now."""
        if self.maybe(0.7):
            return events
        left = [{"type": "ADDED", "object": each} for each in current(events)]
        self.chance.shuffle(left)
        return left

    # --- Holders ---------------------------------------------------------------------------------------------------

    def _hold(self, pool: Pool) -> None:
        """Claims for devices of the pool, by one or two."""
        left = {}
        for part in pool.slices:
            for counter_set in part["spec"].get("sharedCounters", ()):
                left[counter_set["name"]] = {
                    key: int(c["value"].removesuffix("Gi")) for key, c in counter_set["counters"].items()
                }
        devices = [device for _, device in pool.devices()]
        self.chance.shuffle(devices)
        taken = [
            self._result(pool, device)
            for device in devices
            if self.maybe(self.fill) and (_take(device, left) or self.maybe(0.02))
        ]
        if self.maybe(0.02):
            self._claim([])
        if self.maybe(0.04):
            taken.append({"request": "r", "driver": pool.driver, "pool": pool.name, "device": "gone"})
        while taken:
            count = self.pick([1, 1, 1, 2])
            self._claim(taken[:count])
            del taken[:count]

    def _result(self, pool: Pool, device: Json) -> Json:
        result = {"request": "r", "driver": pool.driver, "pool": pool.name, "device": device["name"]}
        if device.get("allowMultipleAllocations"):
            result["shareID"] = f"00000000-0000-0000-0000-{next(self.numbers):012}"
            if memory := device.get("capacity", {}).get("memory"):
                result["consumedCapacity"] = {"memory": self.pick([memory["value"], "10Gi"])}
        elif self.maybe(0.02):
            result["adminAccess"] = True
        return result

    def _claim(self, results: list[Json]) -> None:
        number = next(self.numbers)
        claim: Json = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": f"held-{number}", "namespace": NAMESPACE},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}},
            "status": {"allocation": {"devices": {"results": results}}, "reservedFor": self._consumers(number)},
        }
        self.objects.append(claim)

    def _allocate(self, claim: Json, pools: list[Pool]) -> None:
        """The named claim has its devices already."""
        held = {
            (result["pool"], result["device"])
            for each in self.objects
            for result in each.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        }
        free = [
            (pool, device) for pool in pools for _, device in pool.devices() if (pool.name, device["name"]) not in held
        ]
        results = [self._result(pool, device) for pool, device in free][:1]
        claim["status"] = {"allocation": {"devices": {"results": results}}, "reservedFor": self._consumers(999)}

    def _consumers(self, number: int) -> list[Json]:
        """Pods that hold the claim, and that are about to let go if it is so."""
        names = [f"holder-{number}-{each}" for each in range(self.pick([1, 1, 1, 2]))]
        if self.maybe(self.leaving):
            how = self.pick(["ended", "gone", "gone soon", "going", "going slowly", "unreserved", "one of them"])
        else:
            how = self.pick(["stuck", "long stuck", "not a pod"]) if self.maybe(0.06) else "running"
        if how == "unreserved":
            return []
        if how == "not a pod":
            return [{"apiGroup": "example.com", "resource": "jobs", "name": "job", "uid": "uid-job"}]
        if how == "one of them":
            self.pods.append(self._pod(names[0], "running"))
            return [{"resource": "pods", "name": each, "uid": f"uid-{each}"} for each in names]
        if how != "gone":
            self.pods += [self._pod(each, how) for each in names]
        return [{"resource": "pods", "name": each, "uid": f"uid-{each}"} for each in names]

    def _pod(self, name: str, how: str) -> Json:
        metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}
        deadlines = {"going": NOW + 2, "going slowly": NOW + 25, "stuck": NOW - 61, "long stuck": NOW - 600}
        deadlines["gone soon"] = NOW - 59
        if how in deadlines:
            metadata["deletionTimestamp"] = timestamp(deadlines[how])
        phase = self.pick(["Succeeded", "Failed"]) if how == "ended" else "Running"
        spec = {"nodeName": self.pick(self.parts.nodes), "containers": []}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def current(events: Iterable[Json]) -> list[Json]:
    """The classes there are after these events."""
    found: dict[str, Json] = {}
    for event in events:
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            found.pop(name, None)
        else:
            found[name] = event["object"]
    return list(found.values())


def _take(device: Json, left: dict[str, dict[str, int]]) -> bool:
    """Whether the counters are enough for one device more; if so they are less now."""
    amounts = [
        (left.get(taken["counterSet"], {}), key, int(amount["value"].removesuffix("Gi")))
        for taken in device.get("consumesCounters", ())
        for key, amount in taken["counters"].items()
    ]
    if any(counters.get(key, 0) < amount for counters, key, amount in amounts):
        return False
    for counters, key, amount in amounts:
        counters[key] -= amount
    return True
