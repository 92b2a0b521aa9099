"""A cluster in a file: 1,000 nodes with a slice of eight devices each, half of which are taken, to the last one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FREE, FULL = "example.com/free", "example.com/full"
"""Extended resources: one of whose class every device is free, one of whose class every device is taken."""

TEMPLATE = "gpu"
"""Of a claim for a free device, in the namespaces of `tests/real`."""

NOW = "2026-11-29T21:50:00Z"
"""When the cluster was so; the pool statuses are 20 s old."""

SLICES = 1_000
DEVICES_PER_SLICE = 8

_COUNTED = "2026-11-29T21:49:40Z"
_CREATED = "2026-11-01T06:00:00Z"


def write_cluster(folder: Path) -> Path:
    """The folder, made, with what `vacancy serve --manifests` and its `--now` of `NOW` want."""
    folder.mkdir()
    items = list(_objects())
    (folder / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return folder


def _objects() -> Iterator[Json]:
    for name in ("free", "full"):
        selector = {"cel": {"expression": f"device.driver == '{name}.example.com'"}}
        spec = {"extendedResourceName": f"example.com/{name}", "selectors": [selector]}
        yield _object("resource.k8s.io/v1", "DeviceClass", f"gpu-{name}", spec=spec)
        numbers = range(SLICES // 2) if name == "free" else range(SLICES // 2, SLICES)
        yield from (_node(number) for number in numbers)
        yield from (_slice(name, number) for number in numbers)
        yield _status(name, numbers, allocated=0 if name == "free" else DEVICES_PER_SLICE)
        if name == "full":
            yield from (_claim(number) for number in numbers)
    exactly = {"deviceClassName": "gpu-free", "allocationMode": "ExactCount", "count": 1}
    template = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    for namespace in ("t1", "t2"):
        yield _object("resource.k8s.io/v1", "ResourceClaimTemplate", TEMPLATE, namespace, spec=template)


def _object(version: str, kind: str, name: str, namespace: str = "", **rest: Json) -> Json:
    metadata = {"name": name, "uid": f"{kind}-{name}".lower(), "creationTimestamp": _CREATED}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _node(number: int) -> Json:
    return _object("v1", "Node", f"node-{number:04}", status={"capacity": {"cpu": "64"}, "allocatable": {"cpu": "64"}})


def _slice(name: str, number: int) -> Json:
    pool = {"name": f"node-{number:04}", "generation": 1, "resourceSliceCount": 1}
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {"model": {"string": "H100"}, "uuid": {"string": f"GPU-{number:04}-{index}"}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for index in range(DEVICES_PER_SLICE)
    ]
    spec = {"driver": f"{name}.example.com", "nodeName": pool["name"], "pool": pool, "devices": devices}
    return _object("resource.k8s.io/v1", "ResourceSlice", f"{pool['name']}-gpu", spec=spec)


def _claim(number: int) -> Json:
    """One for all devices of a node; there is no list of pods, so that its holder lives."""
    results = [
        {"request": "gpus", "driver": "full.example.com", "pool": f"node-{number:04}", "device": f"gpu-{index}"}
        for index in range(DEVICES_PER_SLICE)
    ]
    request = {"name": "gpus", "exactly": {"deviceClassName": "gpu-full", "count": DEVICES_PER_SLICE}}
    holder = {"resource": "pods", "name": f"holder-{number}", "uid": f"holder-{number}"}
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [holder]}
    spec = {"devices": {"requests": [request]}}
    return _object("resource.k8s.io/v1", "ResourceClaim", f"claim-{number:04}", "t1", spec=spec, status=status)


def _status(name: str, numbers: range, allocated: int) -> Json:
    pools = [
        {
            "driver": f"{name}.example.com",
            "poolName": f"node-{number:04}",
            "nodeName": f"node-{number:04}",
            "generation": 1,
            "resourceSliceCount": 1,
            "totalDevices": DEVICES_PER_SLICE,
            "allocatedDevices": allocated,
            "availableDevices": DEVICES_PER_SLICE - allocated,
            "unavailableDevices": 0,
        }
        for number in numbers
    ]
    complete = {"type": "Complete", "status": "True", "reason": "CalculationComplete", "message": "Calculated status"}
    status = {"conditions": [complete | {"lastTransitionTime": _COUNTED}], "poolCount": len(pools), "pools": pools}
    spec = {"driver": f"{name}.example.com", "limit": SLICES}
    made = _object("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", f"vacancy-{name}", spec=spec, status=status)
    made["metadata"] |= {"creationTimestamp": _COUNTED, "labels": {"app.kubernetes.io/managed-by": "vacancy"}}
    return made
