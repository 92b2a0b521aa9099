"""What a large cluster consists of, and what happens in it: pods come and go, classes and slices change.

It knows who holds what, so that pool statuses can be answered with right counts at once.
"""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loadtest import standin_objects as objects
from loadtest.standin_objects import DEVICES_PER_SLICE, MODELS, Holder, Pool, driver_name

RESOURCE = "/apis/resource.k8s.io/v1"
CLASSES, SLICES = f"{RESOURCE}/deviceclasses", f"{RESOURCE}/resourceslices"
CLAIMS, RULES = f"{RESOURCE}/resourceclaims", f"{RESOURCE}/devicetaintrules"
NODES, PODS, ENDED = "/api/v1/nodes", "/api/v1/pods", "/api/v1/pods?ended"
COLLECTIONS = (CLASSES, SLICES, CLAIMS, RULES, NODES, PODS, ENDED)

FULL, TIDE, EVERY = "gpu0-model-00", "gpu0-model-01", "every"
"""Classes: never a free device; one free device or none, as told; all devices of the cluster."""

HELD_CLAIM = "train-0000001-gpu"
"""One of those that hold the devices of FULL."""

_EVERY = ('"{}" in device.attributes["resource.kubernetes.io"]').format("pcieRoot")
_RANDOM = random.Random(2)  # noqa: S311 - no secret

Write = Callable[[int], bytes]
"""An object's JSON, given its version."""
Put = Callable[[str, str, Write], None]
"""Collection, name, object: it is new or changed."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a cluster is. `pools`: of each driver, a node and a slice each."""

    drivers: int
    pools: int
    claims: int
    classes: int


LARGE = Size(drivers=10, pools=1000, claims=50_000, classes=500)
SMALL = Size(drivers=1, pools=20, claims=40, classes=5)


class Cluster:
    """The cluster; `put` and `remove` tell the API server."""

    def __init__(self, size: Size, put: Put, remove: Put) -> None:
        """All of it is put at once. Of SMALL and larger."""
        self._put, self._remove = put, remove
        self._allocated: Counter[str] = Counter()  # by pool
        self.pools = {
            driver_name(driver): [Pool.of(driver, number) for number in range(size.pools)]
            for driver in range(size.drivers)
        }
        self._classes = list(_classes(size))
        self._generation = 1
        self._number = 0
        self._events = self._lives()
        pools = [pool for of_driver in self.pools.values() for pool in of_driver]
        for pool in pools:
            self._write_slice(pool)
            put(NODES, pool.name, lambda version, name=pool.name: objects.node(name, version))
        for name, selector, declares in self._classes:
            self._write_class(name, selector, declares)
        places = [(pool, index) for index in range(DEVICES_PER_SLICE) for pool in pools]
        held = [place for place in places if _is_held(place[0])]
        for place in held:
            self._tide = self._begin(*place)
        self.high = True
        others = [place for place in places if not _is_held(place[0])]
        changing = size.claims - len(held)
        self._free = deque(others[changing:])
        _RANDOM.shuffle(self._free)
        self._changing = deque(self._begin(*place) for place in others[:changing])
        _RANDOM.shuffle(self._changing)

    # --- What happens -------------------------------------------------------------------------------------------------

    def turn_tide(self) -> None:
        """Take the last free device of TIDE, or give it back."""
        if self.high:
            self._end(self._tide)
        else:
            self._tide = self._begin(self._tide.pool, self._tide.index)
        self.high = not self.high

    def next_claim_event(self) -> None:
        """One change of a claim, and of its pod along with it."""
        next(self._events)

    def change_class(self) -> None:
        """Another selector of EVERY, for the same devices."""
        self._generation += 1
        self._write_class(EVERY, _EVERY + f" && {self._generation} > 0", "", self._generation)

    def change_slice(self) -> None:
        """Another version of the driver on one node."""
        of_driver = self.pools[_RANDOM.choice(list(self.pools))]
        self._write_slice(_RANDOM.choice(of_driver), f"570.86.{_RANDOM.randrange(1000)}")

    def counts(self, driver: str) -> Iterator[str]:
        """What a pool status says of each pool of a driver."""
        for pool in self.pools.get(driver, ()):
            allocated = self._allocated[pool.name]
            yield (
                f'{{"driver":"{driver}","poolName":"{pool.name}","nodeName":"{pool.name}","generation":1,'
                f'"resourceSliceCount":1,"totalDevices":{DEVICES_PER_SLICE},"allocatedDevices":{allocated},'
                f'"availableDevices":{DEVICES_PER_SLICE - allocated},"unavailableDevices":0}}'
            )

    # --- How ----------------------------------------------------------------------------------------------------------

    def _lives(self) -> Iterator[None]:
        """For ever the pod that lives longest ends, and another one begins; a step is an event of a claim."""
        while True:
            old = self._changing.popleft()
            self._put(ENDED, old.name, lambda version, old=old: objects.pod(old, version))
            self._put(CLAIMS, _claim(old), lambda version, old=old: objects.claim(old, version, reserved=False))
            yield
            self._end(old)
            self._free.append((old.pool, old.index))
            yield
            new = self._holder(*self._free.popleft())
            self._put(PODS, new.name, lambda version, new=new: objects.pod(new, version))
            self._put(
                CLAIMS,
                _claim(new),
                lambda version, new=new: objects.claim(new, version, allocated=False, reserved=False),
            )
            yield
            self._allocated[new.pool.name] += 1
            self._put(CLAIMS, _claim(new), lambda version, new=new: objects.claim(new, version))
            self._changing.append(new)
            yield

    def _holder(self, pool: Pool, index: int) -> Holder:
        self._number += 1
        return Holder(f"train-{self._number:07}", objects.uid(), objects.uid(), pool, index)

    def _begin(self, pool: Pool, index: int) -> Holder:
        new = self._holder(pool, index)
        self._allocated[pool.name] += 1
        self._put(PODS, new.name, lambda version: objects.pod(new, version))
        self._put(CLAIMS, _claim(new), lambda version: objects.claim(new, version))
        return new

    def _end(self, old: Holder) -> None:
        self._allocated[old.pool.name] -= 1
        self._remove(CLAIMS, _claim(old), lambda version: objects.claim(old, version, reserved=False))
        self._remove(PODS, old.name, lambda version: objects.pod(old, version))
        self._remove(ENDED, old.name, lambda version: objects.pod(old, version))

    def _write_slice(self, pool: Pool, firmware: str = "570.86.15") -> None:
        self._put(SLICES, pool.name, lambda version: objects.resource_slice(pool, version, firmware))

    def _write_class(self, name: str, selector: str, declares: str, generation: int = 1) -> None:
        self._put(CLASSES, name, lambda version: objects.device_class(name, selector, declares, version, generation))


def _is_held(pool: Pool) -> bool:
    """Whether all its devices are of FULL or TIDE, whose claims last."""
    return pool.driver == driver_name(0) and pool.model <= 1


def _claim(holder: Holder) -> str:
    return f"{objects.NAMESPACE}/{holder.name}-gpu"


def _classes(size: Size) -> Iterator[tuple[str, str, str]]:
    """Name, selector and extended resource: of all devices, of a driver, of a model, of one device of each node."""
    yield EVERY, _EVERY, ""
    each = -(-(size.classes - 1) // size.drivers)
    for driver in range(size.drivers):
        name = driver_name(driver)
        ours = f'device.driver == "{name}"'
        for number in range(min(each, size.classes - 1 - driver * each)):
            if number == 0:
                yield f"gpu{driver}", ours, f"{name}/gpu"
                continue
            model = (number - 1) % MODELS
            selector = f'{ours} && device.attributes["{name}"].productName == "model-{model:02}"'
            if number <= MODELS:
                yield f"gpu{driver}-model-{model:02}", selector, f"{name}/model-{model:02}"
            else:
                selector += f' && device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:0{number % 8}"'
                yield f"gpu{driver}-first-{model:02}", selector, ""
