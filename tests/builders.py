"""Kubernetes objects in domain words, with the defaults of a small cluster.

A whole object is given as the struct the code works with, and is made by decoding its JSON, so that every test goes
through the wire types. Parts of an object (a device, a taint, a device request, a pool's counts) are plain JSON.
The default cluster: driver gpu.example.com, pool n1 on node n1, class gpu which declares example.com/gpu.
"""

# ruff: noqa: PLR0913  # a builder has a keyword for everything a test may want to be different

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from app.dra.holders import PodRecord
from app.dra.objects import (
    DeviceClass,
    DeviceTaintRule,
    Node,
    Pod,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from app.dra.vacancy import ResourcePoolStatusRequest

Json = dict[str, Any]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
"""Epoch seconds; what tests call now when it does not matter."""

DRIVER = "gpu.example.com"
GPU = "example.com/gpu"
IMPLICIT_GPU = "deviceclass.resource.kubernetes.io/gpu"
QUEUE_LABEL = {"gpu-vacancy.dev/queue": "true"}

T = TypeVar("T")


def decoded(value: Json, wire: type[T]) -> T:
    """JSON as the struct that the code would make of it."""
    return msgspec.json.decode(msgspec.json.encode(value), type=wire)


def timestamp(seconds: float) -> str:
    """Epoch seconds as Kubernetes writes them."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def named(**metadata: object) -> Json:
    """Metadata of what is given; None leaves a field out."""
    return {key: value for key, value in metadata.items() if value is not None}


# --- Devices ----------------------------------------------------------------------------------------------------------


def taint(effect: str = "NoSchedule", key: str = "example.com/broken", value: str = "") -> Json:
    """A taint of a device or of a node."""
    return {"key": key, "value": value, "effect": effect}


def device(
    name: str = "gpu-0",
    *,
    memory: str = "",
    attributes: Mapping[str, str | bool | int] | None = None,
    taints: Iterable[Json] = (),
    consumes: Mapping[str, Mapping[str, str]] | None = None,
    shareable: bool = False,
    node: str = "",
) -> Json:
    """One device of a slice. `consumes`: amounts by counter, by counter set."""
    kinds = {str: "string", bool: "bool", int: "int"}
    part: Json = {"name": name}
    if attributes:
        part["attributes"] = {key: {kinds[type(value)]: value} for key, value in attributes.items()}
    if memory:
        part["capacity"] = {"memory": {"value": memory}}
    if taints := list(taints):
        part["taints"] = taints
    if consumes:
        part["consumesCounters"] = [{"counterSet": name, "counters": _counters(of)} for name, of in consumes.items()]
    if shareable:
        part["allowMultipleAllocations"] = True
    if node:
        part["nodeName"] = node
    return part


def devices(count: int) -> list[Json]:
    """Plain devices gpu-0, gpu-1, …"""
    return [device(f"gpu-{index}") for index in range(count)]


def resource_slice(
    published: Sequence[Json] | int = 4,
    *,
    pool: str = "n1",
    driver: str = DRIVER,
    node: str | None = None,
    name: str | None = None,
    generation: int = 1,
    slices: int = 1,
    counters: Mapping[str, Mapping[str, str]] | None = None,
    version: str | None = None,
    created: float | None = None,
) -> ResourceSlice:
    """A slice with these devices, or so many plain ones.

    `node`: default the pool's name, "" for all nodes. `slices`: how many the pool declares. `counters`: shared ones,
    amounts by counter, by counter set.
    """
    node = pool if node is None else node
    spec: Json = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": slices},
        "devices": devices(published) if isinstance(published, int) else list(published),
    }
    spec |= {"nodeName": node} if node else {"allNodes": True}
    if counters:
        spec["sharedCounters"] = [{"name": name, "counters": _counters(of)} for name, of in counters.items()]
    metadata = named(name=name or f"{driver}-{pool}", resourceVersion=version, creationTimestamp=_time(created))
    return decoded({"metadata": metadata, "spec": spec}, ResourceSlice)


def taint_rule(
    selector: Json | None = None, *, name: str = "broken", effect: str = "NoSchedule", key: str = "example.com/broken"
) -> DeviceTaintRule:
    """A taint for the devices the selector matches: {} all of them, None (no selector) none."""
    spec: Json = {"taint": taint(effect, key)} | ({} if selector is None else {"deviceSelector": selector})
    return decoded({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule)


# --- Classes and claims -----------------------------------------------------------------------------------------------


def device_class(
    name: str = "gpu",
    *,
    driver: str = DRIVER,
    declares: str | None = None,
    selectors: Sequence[str] | None = None,
    created: float | None = None,
    generation: int | None = 1,
) -> DeviceClass:
    """A class of all devices of a driver, or of what the CEL selectors select; `declares`: extended resource name."""
    expressions = [f'device.driver == "{driver}"'] if selectors is None else selectors
    spec: Json = {"selectors": [{"cel": {"expression": text}} for text in expressions]}
    if declares:
        spec["extendedResourceName"] = declares
    metadata = named(name=name, generation=generation, creationTimestamp=_time(created))
    return decoded({"metadata": metadata, "spec": spec}, DeviceClass)


def device_request(device_class: str = "gpu", *, name: str = "gpu", **exactly: object) -> Json:
    """One request of a claim for devices of a class; more fields of `exactly` under their API names."""
    return {"name": name, "exactly": {"deviceClassName": device_class, **exactly}}


def first_available(*classes: str, name: str = "gpu") -> Json:
    """One request of a claim for a device of any of these classes."""
    alternatives = [{"name": f"{name}-{index}", "deviceClassName": each} for index, each in enumerate(classes)]
    return {"name": name, "firstAvailable": alternatives}


def claim_spec(*requests: Json) -> Json:
    """`spec` of a claim; without arguments one that asks for one device of class gpu."""
    return {"devices": {"requests": list(requests or (device_request(),))}}


def resource_claim(
    *held: str,
    name: str = "c1",
    namespace: str = "default",
    pool: str = "n1",
    driver: str = DRIVER,
    consumers: Iterable[str] = (),
    requests: Sequence[Json] = (),
    allocated: bool | None = None,
    admin_access: bool = False,
    at: float | None = None,
    deleted: float | None = None,
    uid: str | None = None,
) -> ResourceClaim:
    """A claim that holds these devices of a pool, reserved for the pods with the UIDs `consumers`.

    `allocated`: True for an allocation without devices. `at`: when it was allocated.
    """
    admin = {"adminAccess": True} if admin_access else {}
    results = [{"request": "gpu", "driver": driver, "pool": pool, "device": device} | admin for device in held]
    status: Json = {"reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in consumers]}
    if bool(held) if allocated is None else allocated:
        given = {"results": results} if results else {}
        status["allocation"] = named(devices=given, allocationTimestamp=_time(at))
    metadata = named(name=name, namespace=namespace, uid=uid or f"uid-of-{name}", deletionTimestamp=_time(deleted))
    return decoded({"metadata": metadata, "spec": claim_spec(*requests), "status": status}, ResourceClaim)


def claim_template(*requests: Json, name: str = "t1", namespace: str = "default") -> ResourceClaimTemplate:
    """A template; without requests it asks for one device of class gpu."""
    document = {"metadata": {"name": name, "namespace": namespace}, "spec": {"spec": claim_spec(*requests)}}
    return decoded(document, ResourceClaimTemplate)


# --- Pool statuses ----------------------------------------------------------------------------------------------------


def pool_counts(
    pool: str = "n1",
    *,
    total: int = 4,
    allocated: int = 4,
    unavailable: int = 0,
    available: int | None = None,
    generation: int = 1,
    driver: str = DRIVER,
    **fields: object,
) -> Json:
    """What a pool status says of one pool; available devices as 1.37 counts them, if not given."""
    available = max(0, total - allocated - unavailable) if available is None else available
    return {
        "driver": driver,
        "poolName": pool,
        "generation": generation,
        "totalDevices": total,
        "allocatedDevices": allocated,
        "availableDevices": available,
        "unavailableDevices": unavailable,
        **fields,
    }


def pool_status(
    *pools: Json, driver: str = DRIVER, at: float = NOON, pool_count: int | None = None, pool: str | None = None
) -> ResourcePoolStatusRequest:
    """A complete answer for a driver, counted `at`. `pool`: one that was asked for that pool alone."""
    condition = {"type": "Complete", "status": "True", "lastTransitionTime": timestamp(at)}
    count = len(pools) if pool_count is None else pool_count
    document = {
        "metadata": {"name": f"vacancy-{driver}"},
        "spec": named(driver=driver, poolName=pool),
        "status": {"poolCount": count, "pools": list(pools), "conditions": [condition]},
    }
    return decoded(document, ResourcePoolStatusRequest)


# --- Pods and nodes ---------------------------------------------------------------------------------------------------


def pod_manifest(
    resources: Mapping[str, str] | None = None,
    *,
    claims: Sequence[Json] = (),
    owner: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: object,
) -> Json:
    """A pod as it is posted: requests and limits of its one container, claims, the kind of its controller.

    Without arguments it asks for one example.com/gpu. More fields of `spec` under their API names.
    """
    amounts = dict(resources) if resources is not None else {} if claims else {GPU: "1"}
    container = {"name": "main", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
    owners = [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u", "controller": True}] if owner else None
    metadata = named(name="p0", namespace="default", labels=labels, annotations=annotations, ownerReferences=owners)
    whole: Json = {"containers": [container], "schedulerName": "default-scheduler"}
    if claims:
        whole["resourceClaims"] = list(claims)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole | spec}


def pod(resources: Mapping[str, str] | None = None, **rest: Any) -> Pod:  # noqa: ANN401  # as pod_manifest takes them
    """A pod as the judgement sees it; arguments of `pod_manifest`."""
    return decoded(pod_manifest(resources, **rest), Pod)


def by_claim(claim: str = "c1", *, name: str = "gpu") -> Json:
    """An entry of a pod's `resourceClaims` that names a claim."""
    return {"name": name, "resourceClaimName": claim}


def by_template(template: str = "t1", *, name: str = "gpu") -> Json:
    """An entry of a pod's `resourceClaims` that names a template."""
    return {"name": name, "resourceClaimTemplateName": template}


def pod_record(uid: str = "p1", *, name: str | None = None, deadline: float | None = None) -> PodRecord:
    """A pod that exists, as its metadata show it; `deadline`: until when it should be gone if it is being deleted."""
    return PodRecord(uid=uid, namespace="default", name=name or uid, deletion_deadline=deadline)


def node(
    name: str = "n1",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Json] = (),
    cordoned: bool = False,
    plugin: Mapping[str, str] | None = None,
    created: float | None = None,
) -> Node:
    """A node; `plugin`: extended resources its kubelet reports for device plugins."""
    document = {
        "metadata": named(name=name, labels=labels or {}, creationTimestamp=_time(created)),
        "spec": {"taints": list(taints), "unschedulable": cordoned},
        "status": {"capacity": plugin or {}, "allocatable": plugin or {}},
    }
    return decoded(document, Node)


def review_body(manifest: Json | None = None, *, uid: str = "review-1", **request: object) -> bytes:
    """An AdmissionReview of the creation of a pod, as kube-apiserver posts it; more fields of `request` as given."""
    manifest = pod_manifest() if manifest is None else manifest
    metadata = manifest.get("metadata", {})
    whole: Json = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", "default"),
        "operation": "CREATE",
        "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
        "object": manifest,
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": whole | request}
    return msgspec.json.encode(review)


def _counters(amounts: Mapping[str, str]) -> Json:
    return {name: {"value": amount} for name, amount in amounts.items()}


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)
