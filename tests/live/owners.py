"""Controllers' objects in a scene, and what has become of their pods."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.controlplane.client import Json
from tests.controlplane.waiting import until
from tests.live.scene import Scene

KINDS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}

RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
"""What a kubelet would report."""


@dataclass(frozen=True)
class Owner:
    """An object whose controller makes pods, each for one device of the scene, and labelled with its name."""

    scene: Scene
    kind: str
    name: str

    @classmethod
    def make(cls, scene: Scene, kind: str, name: str = "", **spec: object) -> "Owner":
        """Create it; `spec`: what differs from an object with one pod."""
        owner = cls(scene, kind, name or kind.lower())
        scene.client.post(owner.collection, owner.body(**spec))
        return owner

    @property
    def collection(self) -> str:
        """Where its kind is."""
        version = KINDS[self.kind]
        group = "apis" if "/" in version else "api"
        return f"/{group}/{version}/namespaces/{self.scene.name}/{self.kind.lower()}s"

    @property
    def path(self) -> str:
        """Where it is."""
        return f"{self.collection}/{self.name}"

    def body(self, **spec: object) -> Json:
        """It, as a manifest."""
        whole: Json = {"template": self.template()}
        if self.kind == "ReplicationController":
            whole |= {"replicas": 1, "selector": {"app": self.name}}
        elif self.kind not in ("Job", "CronJob"):
            whole |= {"replicas": 1, "selector": {"matchLabels": {"app": self.name}}}
        if self.kind == "StatefulSet":
            whole["serviceName"] = self.name
        if self.kind == "CronJob":
            whole = {"jobTemplate": {"spec": whole}}
        return {
            "apiVersion": KINDS[self.kind],
            "kind": self.kind,
            "metadata": {"name": self.name, "namespace": self.scene.name},
            "spec": whole | spec,
        }

    def template(self, version: str = "1") -> Json:
        """Its pods' template; another `version` is another template."""
        spec = self.scene.pod("")["spec"]
        spec["terminationGracePeriodSeconds"] = 30
        if self.kind in ("Job", "CronJob"):
            spec["restartPolicy"] = "Never"
        return {"metadata": {"labels": {"app": self.name, "version": version}}, "spec": spec}

    def pods(self, version: str = "") -> list[Json]:
        """Its pods, those being deleted left out."""
        labels = f"app={self.name}" + (f",version={version}" if version else "")
        found = self.scene.client.get(self.scene.pods, labelSelector=labels)["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def bound(self, version: str = "") -> list[str]:
        """Names of those that the scheduler has bound."""
        return [pod["metadata"]["name"] for pod in self.pods(version) if pod["spec"].get("nodeName")]

    def until_bound(self, count: int = 1, version: str = "") -> list[str]:
        """Return when so many are bound."""
        what = f"{count} of {self.kind} {self.name} bound"
        return until(what, lambda: found if len(found := self.bound(version)) >= count else None)

    def say_running(self, *names: str) -> None:
        """Report these pods, or all, as a kubelet would."""
        for name in names or self.bound():
            self.scene.client.patch(f"{self.scene.pods}/{name}/status", {"status": RUNNING})

    def refusals(self) -> int:
        """How often its pods were refused, as its events say."""
        return sum(int(event.get("count", 1)) for event in self.scene.refusals() if self.is_of(event["involvedObject"]))

    def is_of(self, reference: Mapping[str, str]) -> bool:
        """Whether an event is about it, or a ReplicaSet of it."""
        is_own = reference["kind"] == self.kind and reference["name"] == self.name
        is_made = self.kind == "Deployment" and reference["name"].startswith(f"{self.name}-")
        return is_own or is_made

    def until_refused(self) -> float:
        """Return when the first of its pods was refused; the time then (`time.monotonic`)."""
        until(f"{self.kind} {self.name} refused", self.refusals)
        return time.monotonic()
