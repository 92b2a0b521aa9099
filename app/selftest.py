"""`vacancy selftest`: whether reviews arrive where the API server sends them, and are answered as it wants them.

The chart runs it for `helm test`. Every webhook is called as the API server calls it, with reviews of objects that do
not exist; nothing is created.
"""

import asyncio
import sys
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from app.cluster.client import ApiClient, ApiError, Forbidden, NotFound, Unreachable
from app.cluster.webhooks import Untrusted, Webhook, call, read
from app.dra.objects import View
from app.hooks import Finding

UNKNOWN_NAME = "deviceclass.resource.kubernetes.io/selftest.gpu-vacancy.dev"
"""Of a device class that nobody has: whatever is free in the cluster, the answer is that it is not known."""

LAST_ATTEMPT_SECONDS = 40.0
"""After this none begins. One takes 20 s at most, so all ends within a minute; by then a certificate is made and every
pod serves it."""

PAUSE_SECONDS = 2.0

_API_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"

Json = dict[str, Any]


async def selftest(client: ApiClient, configurations: Sequence[str]) -> list[Finding]:
    """A finding for each webhook of these configurations; again and again until all are good or time is up."""
    loop = asyncio.get_running_loop()
    last = loop.time() + LAST_ATTEMPT_SECONDS
    is_told = False
    while True:
        found = await asyncio.gather(*(_configuration(client, name) for name in configurations))
        findings = [finding for each in found for finding in each]
        amiss = [finding for finding in findings if finding.is_amiss]
        if not amiss or loop.time() + PAUSE_SECONDS > last:
            return findings
        if not is_told:
            sys.stderr.write(f"vacancy: not yet, trying again for a minute at most: {amiss[0]}\n")
            is_told = True
        await asyncio.sleep(PAUSE_SECONDS)


async def _configuration(client: ApiClient, name: str) -> Iterable[Finding]:
    try:
        webhooks = await read(client, name)
    except NotFound:
        text = "no such ValidatingWebhookConfiguration: is it installed, and is this its name?"
    except Forbidden:
        text = "may not be read: grant this account 'get' on this ValidatingWebhookConfiguration"
    except ApiError as error:
        text = f"cannot be read: {error}"
    else:
        if webhooks:
            return await asyncio.gather(*(_webhook(f"{name}/{each.name}", each) for each in webhooks))
        text = "has no webhook, so nothing is sent to us: install it again"
    return [Finding(name, text, is_amiss=True)]


async def _webhook(subject: str, webhook: Webhook) -> Finding:
    if webhook.is_service and not webhook.authorities:
        return Finding(subject, f"no caBundle. {_WHO_WRITES_IT}", is_amiss=True)
    make = _deployment if "deployments" in webhook.resources else _pod
    problems = await asyncio.gather(_problem(webhook, make()), _problem(webhook, make(UNKNOWN_NAME)))
    if problem := next(filter(None, problems), ""):
        return Finding(subject, f"{webhook.url}: {problem}", is_amiss=True)
    return Finding(subject, f"{webhook.url} answers")


_WHO_WRITES_IT = (
    "It is written by vacancy serve --tls-secret, by cert-manager's cainjector, or from the chart's value "
    "tls.caBundle: see the log of the first two, or set the third"
)


async def _problem(webhook: Webhook, of: Json) -> str:
    """What is wrong with the answer to a review of this object, and what to do; empty: nothing."""
    uid = str(uuid.uuid4())
    try:
        answer = _answers.decode(await call(webhook, _review(uid, of)))
    except Untrusted as error:
        who = "the caBundle does" if webhook.authorities else "there is no caBundle, and the system's authorities do"
        return f"{who} not vouch for the certificate of the server ({error}). {_WHO_WRITES_IT}"
    except Unreachable as error:
        return f"{error}. Are its pods ready, and does every network policy let the API server and this pod through?"
    except ApiError as error:
        return f"{error}. {_WHO_ANSWERS}"
    except msgspec.MsgspecError as error:
        return f"the answer is no {_KIND} ({error}). {_WHO_ANSWERS}"
    if problem := _difference(answer, uid):
        return f"{problem}. {_WHO_ANSWERS}"
    return ""


_WHO_ANSWERS = "Does another program answer there, or another version of this one?"


class _Status(View, frozen=True):
    message: str = ""


class _Response(View, frozen=True):
    uid: str = ""
    allowed: bool | None = None
    status: _Status | None = None
    audit_annotations: dict[str, str] | None = None


class _Answer(View, frozen=True):
    response: _Response
    api_version: str = ""
    kind: str = ""


_answers = msgspec.json.Decoder(_Answer)


def _difference(answer: _Answer, uid: str) -> str:
    """Between this answer and a good one; empty: none."""
    response = answer.response
    if (answer.api_version, answer.kind) != (_API_VERSION, _KIND):
        return f"the answer is of {answer.api_version} {answer.kind}, expected {_API_VERSION} {_KIND}"
    if response.uid != uid:
        return f"the answer has the uid {response.uid!r}, expected that of the review"
    if response.allowed is None:
        return "the answer lacks allowed, which the API server takes for a refusal"
    if not response.allowed:
        return f"it refuses what it cannot know to be full ({response.status.message if response.status else ''})"
    # Left out for a pod that asks for nothing, for a workload, and where the owner policy takes bare pods out.
    verdict = (response.audit_annotations or {}).get("verdict", "unknown")
    return "" if verdict == "unknown" else f"of a device class that nobody has it says {verdict!r}"


def _review(uid: str, of: Json) -> bytes:
    group, _, version = of["apiVersion"].rpartition("/")
    request = {
        "uid": uid,
        "kind": {"group": group, "version": version, "kind": of["kind"]},
        "resource": {"group": group, "version": version, "resource": f"{of['kind'].lower()}s"},
        "name": of["metadata"]["name"],
        "namespace": of["metadata"]["namespace"],
        "operation": "CREATE",
        "userInfo": {"username": "vacancy-selftest"},
        "object": of,
        "dryRun": True,
    }
    return msgspec.json.encode({"apiVersion": _API_VERSION, "kind": _KIND, "request": request})


_METADATA = {"name": "vacancy-selftest", "namespace": "vacancy-selftest"}


def _pod(asks_for: str = "") -> Json:
    resources = {"limits": {asks_for: "1"}} if asks_for else {}
    container = {"name": "main", "image": "main", "resources": resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _METADATA, "spec": {"containers": [container]}}


def _deployment(asks_for: str = "") -> Json:
    spec = {"replicas": 1, "template": _pod(asks_for)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _METADATA, "spec": spec}
