"""What the live view would answer to `demand`, and short words for pods, claims and templates."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from app.dra.demand import Lookups, PodDemand, pod_demand
from app.dra.objects import Pod, ResourceClaim, ResourceClaimTemplate

GPU = "example.com/gpu"
GPU_FIELD = f"spec.containers[0].resources.requests[{GPU}]"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
IMPLICIT_FIELD = f"spec.containers[0].resources.requests[{IMPLICIT}]"
CLAIM_FIELD = "spec.resourceClaims[0]"
NOW = 1_790_000_000.0


@dataclass(frozen=True)
class KnownCluster:
    """What the live view would answer: classes `gpu` and `nic`, where `gpu` has taken the name over from `old`."""

    claimed: tuple[str, ...] = ("gpu", "old")
    classes: tuple[str, ...] = ("gpu", "nic", "old")
    judges: bool = True
    plugin: str | None = None
    allocated: tuple[tuple[str, str], ...] = ()

    def claimants(self, extended_resource: str) -> tuple[str, ...]:
        return self.claimed if extended_resource == GPU else ()

    def has_class(self, name: str) -> bool:
        return name in self.classes

    def judges_extended_resources(self) -> bool:
        return self.judges

    def plugin_node(self, extended_resource: str, now: float) -> str | None:
        return self.plugin if extended_resource in (GPU, IMPLICIT) and now == NOW else None

    def claim_allocated(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self.allocated


CLUSTER = KnownCluster()


def pod(amounts: dict[str, str] | None = None, claims: list[Any] | None = None, **spec: object) -> Pod:
    containers = [{"resources": {"requests": amounts, "limits": amounts}}]
    return msgspec.json.decode(
        json.dumps({"spec": {"containers": containers, "resourceClaims": claims, **spec}}), type=Pod
    )


def claim(spec: object, status: object = None, **metadata: object) -> ResourceClaim:
    document = {"metadata": {"name": "c1", **metadata}, "spec": spec, "status": status}
    return msgspec.json.decode(json.dumps(document), type=ResourceClaim)


def template(spec: object) -> ResourceClaimTemplate:
    return msgspec.json.decode(
        json.dumps({"metadata": {"name": "t1"}, "spec": {"spec": spec}}), type=ResourceClaimTemplate
    )


def exactly(class_name: str = "gpu", name: str = "r", **rest: object) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": class_name, **rest}}


def requests(*several: object) -> dict[str, Any]:
    return {"devices": {"requests": several}}


NOTHING_READ = Lookups({}, {})
BY_TEMPLATE = pod(claims=[{"name": "g", "resourceClaimTemplateName": "t1"}])
BY_NAME = pod(claims=[{"name": "g", "resourceClaimName": "c1"}])


def demand(given: Pod, lookups: Lookups = NOTHING_READ, cluster: KnownCluster = CLUSTER) -> PodDemand:
    return pod_demand(given, "lab", cluster, lookups, NOW)
