"""What the API server that stands in is made of: what it was asked, how it misbehaves, and the forms it answers in."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Name = tuple[str, str]
"""Namespace (empty for kinds without) and name."""

RESOURCE = "/apis/resource.k8s.io/v1"
CLASSES = f"{RESOURCE}/deviceclasses"
SLICES = f"{RESOURCE}/resourceslices"
CLAIMS = f"{RESOURCE}/resourceclaims"
TEMPLATES = f"{RESOURCE}/resourceclaimtemplates"
TAINT_RULES = f"{RESOURCE}/devicetaintrules"
POOL_STATUS_REQUESTS = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"

PATH = re.compile(
    r"(?P<group>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    """Quoted as it was sent."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    at: float
    """When, by the clock of `time.monotonic`."""

    @property
    def watch(self) -> bool:
        return self.query.get("watch") in ("1", "true")

    @property
    def accept(self) -> str:
        return self.headers.get("Accept", "")


@dataclass(frozen=True)
class Fault:
    """What happens to a request instead of an answer."""

    status: int = 0
    """Answer with this status code; 0 goes on to the real answer, after the delay."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """None: a Status object of that code."""
    delay_seconds: float = 0.0
    silent: bool = False
    """Never answer, and keep the connection."""
    cut: bool = False
    """Drop the connection before the answer."""


@dataclass
class Order:
    """A fault that waits for its request."""

    fault: Fault
    method: str | None
    path: str | None
    watch: bool | None
    times: int | None

    def concerns(self, asked: Asked) -> bool:
        wanted = ((self.method, asked.method), (self.watch, asked.watch), (self.path, asked.path))
        return self.times != 0 and all(want is None or want == have for want, have in wanted)


@dataclass(frozen=True)
class Answer:
    """What a pool status request gets."""

    status: Json
    after_seconds: float = 0.0


@dataclass(frozen=True)
class Event:
    version: int
    collection: str
    new: Json | None
    old: Json | None


@dataclass(eq=False)
class Watcher:
    """One open watch; a test that wants a word with it finds it by `ApiServer.watchers`."""

    asked: Asked
    response: web.StreamResponse
    transport: asyncio.Transport | None
    lines: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    """None ends the watch in an orderly way."""
    hushed: bool = False
    """From now on nothing is sent, and nothing closed."""
    sent: int = 0


# --- Forms ---

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status_of(code: int) -> Json:
    reason = REASONS.get(code, "")
    return {"kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": f"told to say {code}"}


def refusal(code: int, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response(status_of(code), status=code, headers=headers)


async def suffer(fault: Fault, request: web.Request) -> web.StreamResponse | None:
    await asyncio.sleep(fault.delay_seconds)
    if fault.silent:
        await asyncio.Event().wait()
    if fault.cut and request.transport is not None:
        request.transport.abort()
        await asyncio.Event().wait()  # until the connection's end cancels this
    if not fault.status:
        return None
    if fault.body is None:
        return refusal(fault.status, fault.headers)
    return web.Response(status=fault.status, body=fault.body, headers=fault.headers)


def line_of(kind: str, obj: Json) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def form_of(obj: Json, asked: Asked) -> Json:
    """The object in the form that was asked for."""
    if "as=PartialObjectMetadata" not in asked.accept:
        return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def selected(obj: Json, query: Mapping[str, str], namespace: str) -> bool:
    labels = obj["metadata"].get("labels") or {}
    wanted = [term.split("=", 1) for term in query.get("labelSelector", "").split(",") if term]
    return (
        (not namespace or obj["metadata"].get("namespace") == namespace)
        and all(labels.get(key) == value for key, value in wanted)
        and all(field_holds(obj, term) for term in query.get("fieldSelector", "").split(",") if term)
    )


def field_holds(obj: Json, term: str) -> bool:
    path, value = term.replace("!=", "=").split("=", 1)
    found: Any = obj
    for part in path.split("."):
        found = (found or {}).get(part)
    return (str(found or "") != value) if "!=" in term else (str(found or "") == value)


def stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
