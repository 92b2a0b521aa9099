"""Reviews to post: those a real API server sent, grown to the sizes that pods have in practice.

What makes a pod large is what its template says more often than once, so that is what is added: the token's mount that
every pod has, and environment variables, each with its entry in the managed fields.
"""

import functools
import itertools
import json
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtest.cluster import FREE, FULL, TEMPLATE

Json = dict[str, Any]

SIZES = (4_800, 8_600, 12_900)
"""Bytes. The real ones are of 2 kB: no mount, no environment, nothing injected."""

SIZE = 8_600
"""The size of the targets."""

_REAL = Path(__file__).parents[1] / "tests" / "real"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a pod asks for."""

    name: str
    share: int
    """Percent of all reviews."""
    real: str
    """The review it is made from."""
    ask: Callable[[Json], None]
    path: str = "/validate"
    allowed: bool = True
    """What Vacancy says."""


@dataclass(frozen=True, slots=True)
class Review:
    """One body, and where it is posted."""

    kind: Kind
    body: bytes


def _extended(name: str) -> Callable[[Json], None]:
    def ask(spec: Json) -> None:
        spec["containers"][0]["resources"] = {"limits": {name: "1"}, "requests": {name: "1"}}

    return ask


def _nothing(spec: Json) -> None:
    spec["containers"][0]["resources"] = {"limits": {"memory": "4Gi"}, "requests": {"cpu": "500m", "memory": "4Gi"}}


def _claim(spec: Json) -> None:
    spec["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": TEMPLATE}]


KINDS = (
    Kind("no demand", 20, "job.json", _nothing),
    Kind("free", 40, "bare.json", _extended(FREE)),
    Kind("full", 20, "replicaset.json", _extended(FULL), allowed=False),
    Kind("claim", 10, "job.json", _claim),
    Kind("warn", 10, "replicaset.json", _extended(FULL), path="/validate/warn"),
)


@functools.cache
def mix(size: int = SIZE) -> tuple[Review, ...]:
    """A hundred reviews of `size` bytes, all kinds by their shares, in an order without a pattern, always the same.

    No two are of the same pod, so that little is gained by having seen one before.
    """
    order = [kind for kind in KINDS for _ in range(kind.share)]
    random.Random(size).shuffle(order)  # noqa: S311 - no secret
    return tuple(Review(kind, body(kind, size, number)) for number, kind in enumerate(order))


def body(kind: Kind, size: int = SIZE, number: int = 0) -> bytes:
    """A review of exactly that many bytes; `number` tells alike ones apart."""
    review = json.loads((_REAL / kind.real).read_text(encoding="ascii"))
    pod = review["request"]["object"]
    name = f"{pod['metadata']['name']}-{number:03}"
    review["request"]["uid"] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind.name}/{size}/{number}"))
    review["request"]["name"] = pod["metadata"]["name"] = name
    kind.ask(pod["spec"])
    _mount_the_token(pod["spec"])
    variables = pod["spec"]["containers"][0]["env"] = []
    (managed,) = pod["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:containers"].values()
    fields: Json = {".": {}}
    managed["f:env"] = fields
    for each in itertools.count():
        before = len(_encoded(review))
        variables.append({"name": f"SETTING_{each:02}", "value": f"https://service-{each:02}.team.svc:8443"})
        fields[f'k:{{"name":"SETTING_{each:02}"}}'] = {".": {}, "f:name": {}, "f:value": {}}
        if 2 * len(_encoded(review)) - before > size:  # another one would be too much
            break
    variables[-1]["value"] += "/" * (size - len(_encoded(review)))
    return _encoded(review)


def _mount_the_token(spec: Json) -> None:
    """What the service account's admission adds to every pod before a webhook sees it."""
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    authority = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    reference = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    namespace = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": reference}]}}
    sources = {"sources": [token, authority, namespace], "defaultMode": 420}
    spec["volumes"] = [{"name": "kube-api-access-x7k2p", "projected": sources}]
    mount = {"name": "kube-api-access-x7k2p", "readOnly": True}
    spec["containers"][0]["volumeMounts"] = [mount | {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    spec["serviceAccountName"] = spec["serviceAccount"] = "default"


def _encoded(review: Json) -> bytes:
    """As the API server does it: no spaces."""
    return json.dumps(review, separators=(",", ":")).encode()
