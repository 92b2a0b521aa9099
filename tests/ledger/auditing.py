"""Audit events as the API server writes them, with what a test wants to be different."""

import itertools
import json
from typing import Any

Json = dict[str, Any]

ENFORCE = "enforce.pods.gpu-vacancy.dev"
GPU = "example.com/gpu"

_numbers = itertools.count()


def meant(count: int = 1, of: str = "gpu", memory: tuple[str, str] | None = ("40Gi", "40Gi"), **more: object) -> Json:
    """What `resolved` says of one name."""
    found: Json = {"count": count, "class": of, "drivers": ["gpu.example.com"], "pools": 2, "devices": 8, **more}
    return found if memory is None else found | {"memory": list(memory)}


def event(
    namespace: str = "team-a",
    *,
    found: str = "room HasRoom",
    webhook: str = ENFORCE,
    resolved: Json | str | None = None,
    denied: bool = False,
    **changes: object,
) -> Json:
    """The last event of a pod's creation; `found`: verdict and reason. `changes`: fields of the event."""
    number = next(_numbers)
    verdict, reason = found.split()
    text = resolved if isinstance(resolved, str) else json.dumps({GPU: meant()} if resolved is None else resolved)
    annotations = {"verdict": verdict, "reason": reason, "snapshot-age-seconds": "3", "resolved": text}
    message = f'admission webhook "{webhook}" denied the request: [{reason}] no free device'
    failure = {"metadata": {}, "status": "Failure", "message": message, "reason": "Forbidden", "code": 403}
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": f"id-{number}",
        "stage": "ResponseComplete",
        "requestURI": f"/api/v1/namespaces/{namespace}/pods?fieldManager=kubectl-create",
        "verb": "create",
        "user": {"username": "jane"},
        "objectRef": {"resource": "pods", "namespace": namespace, "name": f"p-{number}", "apiVersion": "v1"},
        "responseStatus": failure if denied else {"metadata": {}, "code": 201},
        "stageTimestamp": f"2026-01-01T12:00:00.{number:06}Z",
        "annotations": {"authorization.k8s.io/decision": "allow"}
        | {f"{webhook}/{key}": value for key, value in annotations.items()},
    } | changes


def refused(namespace: str = "team-a", **changes: Any) -> Json:  # noqa: ANN401 - whatever `event` takes
    """The event of a pod that found no device."""
    return event(namespace, found="full NoGPUCapacity", denied=True, **changes)


def line(of: Json) -> bytes:
    """An event as a line of the log."""
    return json.dumps(of, separators=(",", ":")).encode() + b"\n"
