"""A corner of a real cluster that tells one story: nodes, devices, classes and pods under names of its own.

All that happens in it happens through the API server, and every change is one that people, drivers and kubelets make.
"""

import time
from contextlib import suppress
from itertools import count
from random import Random

from tests.controlplane.client import Json, Refused
from tests.controlplane.plane import ControlPlane
from tests.truth.admins import CLASSES, NODES, RULES, Admins
from tests.truth.drivers import SLICES, Drivers
from tests.truth.parts import Changes, Parts
from tests.truth.stories import Story
from tests.truth.users import Users

_SETTLE_SECONDS = 2.0

_NOTHING, _FILL, _ADMINS, _USERS, _DRIVERS = 3, 7, 8, 9, 10
"""How often who acts; among themselves they say how often they do what."""


class Corner:
    """Everything is deleted by `close`; names are never used again."""

    def __init__(self, plane: ControlPlane, chance: Random, name: str) -> None:
        """Make all of it, and have the scheduler give most devices to pods."""
        self.name, self.chance, self.client = name, chance, plane.client()
        self._parts = Parts(chance, name, namespace=name)
        self._numbers = count()
        self._changed_at = 0.0
        plane.add_namespace(name)
        self._pools = [self._parts.pool(driver, node) for driver in self._parts.drivers for node in self._parts.nodes]
        self._admins = Admins(plane, self.client, self._parts, self._pools)
        for pool in self._pools:
            for part in pool.slices:
                with suppress(Refused):
                    self.client.post(SLICES, part)
        self._drivers = Drivers(self.client, self._parts, self._pools)
        self._users = Users(self.client, self._parts, self._admins.classes)
        self.pods = self._users.pods
        self.fill()

    def close(self) -> None:
        """Delete what the cluster would still look at."""
        self._users.close()
        with suppress(Refused):
            self.client.delete(self.pods, gracePeriodSeconds=0)
        for driver in self._parts.drivers:
            self.client.delete(SLICES, fieldSelector=f"spec.driver={driver}")
        self._admins.close()
        with suppress(Refused):
            self.client.delete(f"/api/v1/namespaces/{self.name}")

    @property
    def changed_at(self) -> float:
        """When something was changed last that may free a device, or add one; epoch seconds."""
        return max(self._changed_at, self._users.changed_at)

    def change(self) -> str:
        """Something happens, or nothing; what it was."""
        mostly: Changes = ((_NOTHING, self.nothing), (_FILL, self.fill))
        by_whom = [mostly, self._admins.changes, self._users.changes, self._drivers.changes]
        while True:
            (changes,) = self.chance.choices(by_whom, [_NOTHING + _FILL, _ADMINS, _USERS, _DRIVERS])
            (chosen,) = self.chance.choices([change for _, change in changes], [weight for weight, _ in changes])
            try:
                chosen()
            except (IndexError, StopIteration):  # there is nothing to change in this way
                continue
            except Refused:
                pass
            if changes is not mostly:
                self._changed_at = time.time()
            return str(chosen.__name__)

    def candidate(self) -> Json:
        """A pod to ask about."""
        return self._users.candidate(f"pod-{next(self._numbers)}")

    def node_of(self, pod: str) -> str:
        """Where a pod is bound; empty: nowhere."""
        return str(self.client.get(f"{self.pods}/{pod}")["spec"].get("nodeName", ""))

    def delete(self, pod: str) -> None:
        """Delete a pod at once."""
        self._users.delete(pod)

    def nothing(self) -> None:
        """All stays as it is."""

    def fill(self) -> None:
        """Create pods until the scheduler binds no more of them; these go again."""
        devices = sum(len(pool.devices()) for pool in self._pools)
        names = [self._hold() for _ in range(min(devices + 1, 12))]
        waiting, quiet_since = set(names), time.monotonic()
        while waiting and time.monotonic() - quiet_since < _SETTLE_SECONDS:
            time.sleep(0.4)
            bound = {each["metadata"]["name"] for each in self._users.bound()}
            if waiting & bound:
                waiting, quiet_since = waiting - bound, time.monotonic()
        for name in waiting:
            self.delete(name)

    def _hold(self) -> str:
        """A pod that is to hold one device; its name."""
        name = f"holder-{next(self._numbers)}"
        self.client.post(self.pods, self._parts.holder(name, self.chance.choice(self._admins.classes())))
        return name

    # --- As it is now -------------------------------------------------------------------------------------------------

    def story(self, pod: Json) -> Story:
        """The corner as it is now."""
        known = set(self._admins.classes())
        rules = self._listed(RULES, "DeviceTaintRule")
        objects = [
            *self._listed(NODES, "Node", labelSelector=f"story={self.name}"),
            *(
                each
                for driver in self._parts.drivers
                for each in self._listed(SLICES, "ResourceSlice", fieldSelector=f"spec.driver={driver}")
            ),
            *(each for each in self._listed(CLASSES, "DeviceClass") if each["metadata"]["name"] in known),
            *(each for each in rules if each["metadata"]["name"].startswith(f"{self.name}-")),
            *self._listed(self._users.templates, "ResourceClaimTemplate"),
            *self._listed(self._users.claims, "ResourceClaim"),
            *self._listed(self.pods, "Pod"),
        ]
        name, served = f"{self.name}-{pod['metadata']['name']}", frozenset(self._admins.served)
        return Story(name, objects, list(self._admins.class_events), pod, now=time.time(), fresh=True, served=served)

    def _listed(self, path: str, kind: str, **query: str) -> list[Json]:
        version = "v1" if path.startswith("/api/v1") else "resource.k8s.io/v1"
        found: list[Json] = self.client.get(path, **query)["items"]
        for each in found:
            each["metadata"].pop("managedFields", None)
        return [{"apiVersion": version, "kind": kind} | each for each in found]
