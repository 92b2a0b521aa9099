"""Bodies as the API server posts them, and a client that speaks ASGI without a server."""
# ruff: noqa: ANN401 - JSON is any

import asyncio
import json
from dataclasses import dataclass
from typing import Any

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def pod(resource: str = "example.com/full", count: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {resource: count}, "limits": {resource: count}}}
    return {"metadata": {"name": "p", "namespace": "team"}, "spec": {"containers": [container], **spec}}


def review(obj: object, *, kind: str = "Pod", group: str = "", resource: str = "pods", **request: Any) -> bytes:
    head = {
        "uid": UID,
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": resource},
        "namespace": "team",
        "operation": "CREATE",
        "userInfo": {"username": "alice"},
        "object": obj,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": head | request}
    return json.dumps(body).encode()


def deployment(resource: str = "example.com/full", **metadata: Any) -> dict[str, Any]:
    template = pod(resource)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"} | metadata,
        "spec": {"template": template},
    }


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back over ASGI."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def response(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["response"]
        return found


def post(  # noqa: PLR0913 - a request has that many parts
    door: Any,
    body: bytes | list[bytes],
    path: str = "/validate",
    *,
    method: str = "POST",
    content_type: str | None = "application/json",
    hang_up: bool = False,
) -> Answered | None:
    """Post to an ASGI callable; a list of bodies comes in pieces. None if it said nothing."""
    pieces = [body] if isinstance(body, bytes) else body
    messages = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
        for number, piece in enumerate(pieces, 1)
    ]
    if hang_up:
        messages[-1:] = [{"type": "http.disconnect"}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [] if content_type is None else [(b"content-type", content_type.encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    asyncio.run(door(scope, receive, send))
    if not sent:
        return None
    start, end = sent
    return Answered(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, end["body"])
