"""What drivers do to the slices of a corner: new generations, and edits in place, which no generation tells of."""

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from random import Random

from tests.controlplane.client import Client, Json
from tests.truth.parts import Changes, Parts, Pool

SLICES = "/apis/resource.k8s.io/v1/resourceslices"

_ONLY_OF_DEVICES = ("consumesCounters", "allowMultipleAllocations", "nodeName", "allNodes", "nodeSelector")
_TOTALS = {"memory": ["40Gi", "80Gi", "160Gi", "160Gi"], "slots": ["2", "3", "6", "6"]}
_SHARES = {"memory": ["20Gi", "40Gi", "80Gi"], "slots": ["1", "2", "3"]}


class Drivers:
    """All drivers of one corner. What the API server refuses has not happened: `slices` stay as they were."""

    def __init__(self, client: Client, parts: Parts, pools: list[Pool]) -> None:
        """`pools` are published already."""
        self._client, self._parts, self._pools = client, parts, pools
        self._chance: Random = parts.chance
        self._numbers = count()
        self._withdrawn: list[Json] = []
        self.changes: Changes = (
            (2, self.publish_more),
            (1, self.publish_less),
            (1, self.roll_out),
            (2, self.add_device),
            (1, self.remove_device),
            (1, self.rename_device),
            (2, self.change_device),
            (1, self.taint_device),
            (1, self.untaint_devices),
            (1, self.share_device),
            (1, self.prepare_device),
            (1, self.move_device),
            (1, self.hand_over_device),
            (1, self.move_slice),
            (5, self.change_counters),
            (3, self.change_consumption),
            (2, self.withdraw_or_return),
            (1, self.publish_again),
            (1, self.rename_pool),
        )

    # --- A new generation ---------------------------------------------------------------------------------------------

    def publish_more(self) -> None:
        """With a device more."""
        pool = self._pool()
        added = self._new_device(pool.slices[0])
        self._publish(pool, lambda devices: [*devices, added])

    def publish_less(self) -> None:
        """Without one."""
        self._publish(self._pool(), lambda devices: devices[1:])

    def roll_out(self) -> None:
        """The driver has begun to publish a generation of two slices; the second comes with the next roll-out."""
        pool = self._pool()
        if pool.slices[0]["spec"].get("allNodes"):
            return  # it would concern other stories
        for part in pool.slices:
            part["spec"]["pool"]["resourceSliceCount"] = len(pool.slices) + (
                part["spec"]["pool"]["resourceSliceCount"] == len(pool.slices)
            )
        self._publish(pool, list)

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
            self._client.patch(f"{SLICES}/{part['metadata']['name']}", {"spec": spec})

    # --- Devices in place ---------------------------------------------------------------------------------------------

    def add_device(self) -> None:
        """One more."""
        part = self._part()
        self._edit(part, devices=[*_devices(part), self._new_device(part)])

    def remove_device(self) -> None:
        """One less, perhaps one that is held."""
        part, device = self._device()
        self._edit(part, devices=[each for each in _devices(part) if each is not device])

    def rename_device(self) -> None:
        """Who holds it holds what is not there any more."""
        part, device = self._device()
        self._exchange(part, device, device | {"name": f"renamed-{next(self._numbers)}"})

    def change_device(self) -> None:
        """Other attributes, capacity and taints."""
        part, device = self._device()
        kept = {key: device[key] for key in _ONLY_OF_DEVICES if key in device}
        self._exchange(part, device, self._parts.device(device["name"]) | kept)

    def taint_device(self) -> None:
        """A driver's own taint."""
        part, device = self._device()
        self._exchange(part, device, device | {"taints": [self._parts.taint()]})

    def untaint_devices(self) -> None:
        """Of a whole slice."""
        part = self._part()
        self._edit(part, devices=[{key: each[key] for key in each if key != "taints"} for each in _devices(part)])

    def share_device(self) -> None:
        """Given away in parts from now on, or whole."""
        part, device = self._device()
        self._exchange(
            part, device, device | {"allowMultipleAllocations": not device.get("allowMultipleAllocations", False)}
        )

    def prepare_device(self) -> None:
        """Whoever gets it is not bound before it is ready; it never is, and they are deleted while they wait."""
        part, device = self._device()
        waits = {"bindingConditions": ["example.com/ready"], "bindingFailureConditions": ["example.com/failed"]}
        self._exchange(part, device, device | waits)

    def move_device(self) -> None:
        """One that selects nodes by itself."""
        part = self._part(lambda spec: spec.get("perDeviceNodeSelection") and spec.get("devices"))
        device = self._chance.choice(_devices(part))
        bare = {key: device[key] for key in device if key not in ("nodeName", "allNodes", "nodeSelector")}
        where = {"allNodes": True} if self._parts.maybe(0.3) else {"nodeName": self._node()}
        self._exchange(part, device, bare | where)

    def hand_over_device(self) -> None:
        """From one slice of a pool to another, which has it twice for a moment, or not at all."""
        for pool in self._chance.sample(self._pools, len(self._pools)):
            parts = [part for part in pool.slices if "devices" in part["spec"] and part not in self._withdrawn]
            if len(parts) > 1 and _devices(parts[0]):
                device, *left = _devices(parts[0])
                edits = [(parts[0], left), (parts[1], [*_devices(parts[1]), device])]
                self._chance.shuffle(edits)
                for part, devices in edits:
                    self._edit(part, devices=devices)
                return
        raise StopIteration

    def move_slice(self) -> None:
        """What is not tied to a node by name may be for other nodes from now on."""
        part = self._part(lambda spec: spec.get("allNodes") or spec.get("nodeSelector"))
        zone = {"key": "zone", "operator": "In", "values": [self._chance.choice(["east", "west"])]}
        story = {"key": "story", "operator": "In", "values": [self._parts.name]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [story, zone]}]}
        to_all = {"allNodes": True, "nodeSelector": None}
        to_zone = {"allNodes": None, "nodeSelector": selector}
        self._edit(part, **(to_all if part["spec"].get("nodeSelector") and self._parts.maybe(0.5) else to_zone))

    # --- Counters in place --------------------------------------------------------------------------------------------

    def change_counters(self) -> None:
        """A card has more to give, or less."""
        part = self._part(lambda spec: spec.get("sharedCounters"))
        sets = part["spec"]["sharedCounters"]
        changed = self._chance.choice(sets)
        counters = {
            name: {"value": self._chance.choice(_TOTALS[name])} if self._parts.maybe(0.7) else counter
            for name, counter in changed["counters"].items()
        }
        other = changed | {"counters": counters}
        self._edit(part, sharedCounters=[other if each is changed else each for each in sets])

    def change_consumption(self) -> None:
        """A device takes more of its card, or less, or nothing."""
        part = self._part(lambda spec: any(each.get("consumesCounters") for each in spec.get("devices", ())))
        device = self._chance.choice([each for each in _devices(part) if each.get("consumesCounters")])
        less = {key: device[key] for key in device if key != "consumesCounters"}
        taken = [
            each | {"counters": {name: {"value": self._chance.choice(_SHARES[name])} for name in each["counters"]}}
            for each in device["consumesCounters"]
        ]
        self._exchange(part, device, less if self._parts.maybe(0.3) else less | {"consumesCounters": taken})

    # --- Slices that go and come --------------------------------------------------------------------------------------

    def withdraw_or_return(self) -> None:
        """A slice is deleted; the next time it is made again as it was."""
        if self._withdrawn:
            self._make(self._withdrawn.pop())
            return
        part = self._part()
        if not part["spec"].get("allNodes"):  # it would concern other stories
            self._delete(part)
            self._withdrawn.append(part)

    def publish_again(self) -> None:
        """A driver starts anew: all slices of a pool are deleted, then made under other names."""
        pool = self._pool()
        if self._is_whole(pool):
            for part in pool.slices:
                self._delete(part)
            self._republish(pool.slices)

    def rename_pool(self) -> None:
        """The same, under another name of the pool: whoever held a device of it holds none that is there."""
        pool = self._pool()
        if self._is_whole(pool):
            name = f"{self._parts.name}-renamed-{next(self._numbers)}"
            for part in pool.slices:
                self._delete(part)
                part["spec"]["pool"]["name"] = name
            self._pools[self._pools.index(pool)] = Pool(pool.driver, name, pool.slices)
            self._republish(pool.slices)

    def _republish(self, slices: list[Json]) -> None:
        time.sleep(self._chance.choice([0, 0, 0.5]))
        for part in slices:
            part["metadata"]["name"] = f"{part['spec']['driver']}-again-{next(self._numbers)}"
            self._make(part)

    # --- How it is done -----------------------------------------------------------------------------------------------

    def _pool(self) -> Pool:
        return self._chance.choice(self._pools)

    def _is_whole(self, pool: Pool) -> bool:
        """Whether none of its slices is withdrawn."""
        return not any(part in self._withdrawn for part in pool.slices)

    def _own_parts(self) -> Iterator[Json]:
        """All slices there are, in any order."""
        parts = [part for pool in self._pools for part in pool.slices if part not in self._withdrawn]
        return iter(self._chance.sample(parts, len(parts)))

    def _part(self, wanted: Callable[[Json], object] = lambda spec: "devices" in spec) -> Json:
        """One whose spec is so: by default one that may hold devices. Raises `StopIteration`."""
        return next(part for part in self._own_parts() if wanted(part["spec"]))

    def _device(self) -> tuple[Json, Json]:
        """A device, with its slice. Raises `StopIteration`."""
        part = self._part(lambda spec: spec.get("devices"))
        return part, self._chance.choice(_devices(part))

    def _node(self) -> str:
        return self._chance.choice(self._parts.nodes)

    def _new_device(self, part: Json) -> Json:
        where = {"allNodes": True} if part["spec"].get("perDeviceNodeSelection") else {}
        return self._parts.device(f"new-{next(self._numbers)}") | where

    def _edit(self, part: Json, **spec: object) -> None:
        self._client.patch(f"{SLICES}/{part['metadata']['name']}", {"spec": spec})
        for key, value in spec.items():
            if value is None:
                part["spec"].pop(key, None)
            else:
                part["spec"][key] = value

    def _exchange(self, part: Json, old: Json, new: Mapping[str, object]) -> None:
        self._edit(part, devices=[new if each is old else each for each in _devices(part)])

    def _make(self, part: Json) -> None:
        self._client.post(SLICES, part)

    def _delete(self, part: Json) -> None:
        self._client.delete(f"{SLICES}/{part['metadata']['name']}")


def _devices(part: Json) -> list[Json]:
    return list(part["spec"].get("devices", ()))
