"""`vacancy selftest`: an API server that stands in, and a webhook over real TLS that answers as each test says."""

import asyncio
import base64
import json
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from app import selftest as module
from app.cluster import webhooks
from app.cluster.client import ApiClient
from app.hooks import Finding
from app.selftest import UNKNOWN_NAME, selftest
from certs.serving import ServingPair, throwaway_pair
from tests.answering import Answering, Json, Respond, response
from tests.apiserver import ApiServer
from tests.apiserver_parts import Fault


@pytest.fixture(scope="module")
def pair() -> ServingPair:
    return throwaway_pair(["localhost"], [], time.time())


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_ATTEMPT_SECONDS", 0.0)
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.01)


def good(review: Json) -> tuple[int, Json]:
    return 200, response(review)


class Scene:
    """An API server, and the webhook at `port` that it is told of; nothing vouches for it but `authority`."""

    def __init__(self, server: ApiServer, authority: bytes, port: int) -> None:
        self.server, self.authority, self._port = server, authority, port

    def webhook(self, path: str = "/validate/warn", *, host: str = "localhost", **changes: object) -> Json:
        """As it stands in a configuration."""
        bundle = base64.b64encode(self.authority).decode()
        return {
            "name": f"{path.rpartition('/')[2]}.pods.gpu-vacancy.dev",
            "clientConfig": {"url": f"https://{host}:{self._port}{path}", "caBundle": bundle},
            "rules": [{"resources": ["pods"]}],
            "timeoutSeconds": 1,
        } | changes

    def register(self, *hooks: Json, name: str = "vacancy") -> None:
        self.server.put(webhooks.PATH, {"metadata": {"name": name}, "webhooks": list(hooks)})


Prepare = Callable[[Scene], object]


def findings(folder: Path, authority: bytes, port: int, prepare: Prepare, names: Sequence[str]) -> list[Finding]:
    async def main() -> list[Finding]:
        async with asyncio.timeout(20), ApiServer() as server:  # only a hang reaches it
            prepare(Scene(server, authority, port))
            async with await ApiClient.connect(server.kubeconfig(folder), None) as client:
                return await selftest(client, names)

    return asyncio.run(main())


def played(
    folder: Path, pair: ServingPair, prepare: Prepare, respond: Respond = good, names: Sequence[str] = ("vacancy",)
) -> tuple[list[Finding], list[tuple[str, Json]]]:
    """What the self-test finds after `prepare`, and the reviews that came."""
    with Answering(folder, pair, respond) as answering:
        return findings(folder, pair.authority_pem, answering.port, prepare, names), answering.reviews


def registered(**changes: object) -> Prepare:
    return lambda scene: scene.register(scene.webhook(**changes))


# --- All is well ------------------------------------------------------------------------------------------------------


def test_every_webhook_of_every_configuration_is_called_as_the_api_server_calls_it(
    tmp_path: Path, pair: ServingPair
) -> None:
    def prepare(scene: Scene) -> None:
        scene.register(scene.webhook("/validate/enforce"), scene.webhook("/validate/warn", timeoutSeconds=3))
        workloads = {"name": "workloads.gpu-vacancy.dev", "rules": [{"resources": ["deployments", "cronjobs"]}]}
        scene.register(scene.webhook("/validate-workload", **workloads), name="vacancy-workloads")

    found, reviews = played(tmp_path, pair, prepare, names=["vacancy", "vacancy-workloads"])
    assert [str(finding).partition(": ")[0] for finding in found] == [
        "ok vacancy/enforce.pods.gpu-vacancy.dev",
        "ok vacancy/warn.pods.gpu-vacancy.dev",
        "ok vacancy-workloads/workloads.gpu-vacancy.dev",
    ]
    asked = sorted((path, review["request"]["object"]["kind"]) for path, review in reviews)
    assert asked == [
        ("/validate-workload?timeout=1s", "Deployment"),
        ("/validate-workload?timeout=1s", "Deployment"),
        ("/validate/enforce?timeout=1s", "Pod"),
        ("/validate/enforce?timeout=1s", "Pod"),
        ("/validate/warn?timeout=3s", "Pod"),
        ("/validate/warn?timeout=3s", "Pod"),
    ]
    assert sum(UNKNOWN_NAME in json.dumps(review) for _, review in reviews) == 3
    assert all(review["request"]["dryRun"] for _, review in reviews)


def test_a_service_is_called_by_the_name_the_api_server_uses(tmp_path: Path, pair: ServingPair) -> None:
    service = {"namespace": "gpu", "name": "vacancy", "port": 8443, "path": "/validate/warn"}
    (finding,), _ = played(tmp_path, pair, registered(clientConfig={"service": service, "caBundle": "YQ=="}))
    assert "https://vacancy.gpu.svc:8443/validate/warn?timeout=1s: " in str(finding)


@pytest.mark.parametrize(
    "authorities",
    [
        pytest.param(lambda pair: OTHERS.authority_pem + b"# \xc3\xa9\n" + pair.authority_pem, id="two, and a remark"),
        pytest.param(lambda pair: pair.certificate_pem, id="the certificate itself"),
    ],
)
def test_what_the_api_server_trusts_is_trusted(
    tmp_path: Path, pair: ServingPair, authorities: Callable[[ServingPair], bytes]
) -> None:
    (finding,), _ = played(tmp_path, pair, bundle(authorities(pair)))
    assert not finding.is_amiss


def test_a_public_authority_is_trusted_where_there_is_no_bundle(
    tmp_path: Path, pair: ServingPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = tmp_path / "public.crt"
    public.write_bytes(pair.authority_pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(public))  # the authorities of the system
    (finding,), reviews = played(tmp_path, pair, bundle(b""))
    assert not finding.is_amiss
    assert len(reviews) == 2


def test_what_is_in_the_making_is_waited_for(
    tmp_path: Path, pair: ServingPair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "LAST_ATTEMPT_SECONDS", 30.0)
    refused: list[str] = []

    def not_at_once(review: Json) -> tuple[int, Json]:
        refused.append("" if len(refused) >= 4 else "not ready")
        return (503, {}) if refused[-1] else (200, response(review))

    (finding,), reviews = played(tmp_path, pair, registered(), not_at_once)
    assert not finding.is_amiss
    assert len(reviews) >= 6
    assert capsys.readouterr().err.count("not yet") == 1


# --- Something is amiss -----------------------------------------------------------------------------------------------

OTHERS = throwaway_pair(["localhost"], [], time.time())


def bundle(content: bytes) -> Prepare:
    def prepare(scene: Scene) -> None:
        scene.authority = content
        scene.register(scene.webhook())

    return prepare


def fault(code: int) -> Prepare:
    return lambda scene: scene.server.fault(Fault(code), path=f"{webhooks.PATH}/vacancy", times=None)


def nobody_listening(scene: Scene) -> None:
    scene.register(scene.webhook(clientConfig=scene.webhook()["clientConfig"] | {"url": "https://localhost:1/x"}))


WRONG_ANSWERS: dict[str, tuple[Respond, str]] = {
    "an answer without allowed": (
        lambda review: (200, response(review, allowed=None)),
        "the answer lacks allowed, which the API server takes for a refusal",
    ),
    "a refusal": (
        lambda review: (200, response(review, allowed=False, status={"message": "no\x1b"})),
        "it refuses what it cannot know to be full (no?)",
    ),
    "a refusal without a word": (
        lambda review: (200, response(review, allowed=False)),
        "it refuses what it cannot know to be full ()",
    ),
    "the uid of another review": (
        lambda review: (200, response(review, uid="other")),
        "the answer has the uid 'other', expected that of the review",
    ),
    "an answer of an older version": (
        lambda review: (200, response(review) | {"apiVersion": "admission.k8s.io/v1beta1"}),
        "the answer is of admission.k8s.io/v1beta1 AdmissionReview, expected admission.k8s.io/v1 AdmissionReview",
    ),
    "an answer without a response": (
        lambda _review: (200, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
        "the answer is no AdmissionReview (Object missing required field `response`)",
    ),
    "no JSON": (lambda _review: (200, b"<html>"), "the answer is no AdmissionReview"),
    "room for what nobody has": (
        lambda review: (200, response(review, auditAnnotations={"verdict": "room"})),
        "of a device class that nobody has it says 'room'",
    ),
    "a path nobody serves": (lambda _review: (404, {}), "expected HTTP 200, found 404. Does another program"),
    "a redirection": (lambda _review: (302, {}), "expected HTTP 200, found 302"),
}

CONFIGURATIONS: dict[str, tuple[Prepare, str]] = {
    "no such configuration": (lambda _scene: None, "vacancy: no such ValidatingWebhookConfiguration"),
    "one that may not be read": (fault(403), "vacancy: may not be read: grant this account 'get' on this"),
    "an API server that fails": (fault(503), "vacancy: cannot be read: GET /apis/admissionregistration.k8s.io/v1/"),
    "a configuration without webhooks": (lambda scene: scene.register(), "vacancy: has no webhook"),
    "no caBundle": (
        registered(clientConfig={"service": {"namespace": "gpu", "name": "vacancy"}}),
        "no caBundle. It is written by vacancy serve --tls-secret",
    ),
    "no caBundle, and no public authority": (
        bundle(b""),
        "there is no caBundle, and the system's authorities do not vouch for the certificate of the server (",
    ),
    "a caBundle that is none": (
        bundle(b"garbage"),
        "does not vouch for the certificate of the server (the caBundle is not PEM)",
    ),
    "the caBundle of another server": (
        bundle(OTHERS.authority_pem),
        "does not vouch for the certificate of the server (unable to get local issuer certificate)",
    ),
    "a server of another name": (
        registered(host="127.0.0.1"),
        "(IP address mismatch, certificate is not valid for '127.0.0.1'",
    ),
    "nobody listening": (nobody_listening, "https://localhost:1/x?timeout=1s: Connect call failed"),
    "a name that is not known": (registered(host="vacancy.invalid"), "Are its pods ready"),
}


@pytest.mark.parametrize("what", WRONG_ANSWERS)
def test_an_answer_that_the_api_server_would_not_take_is_told(tmp_path: Path, pair: ServingPair, what: str) -> None:
    respond, said = WRONG_ANSWERS[what]
    (finding,), _ = played(tmp_path, pair, registered(), respond)
    assert str(finding).startswith("FAILED vacancy/warn.pods.gpu-vacancy.dev: https://localhost:")
    assert f"/validate/warn?timeout=1s: {said}" in str(finding)


@pytest.mark.parametrize("what", CONFIGURATIONS)
def test_a_webhook_that_the_api_server_would_not_reach_is_told(tmp_path: Path, pair: ServingPair, what: str) -> None:
    prepare, said = CONFIGURATIONS[what]
    (finding,), reviews = played(tmp_path, pair, prepare)
    assert str(finding).startswith("FAILED vacancy")
    assert said in str(finding)
    assert reviews == [], "nobody was told anything"


def test_one_review_wrongly_answered_is_enough(tmp_path: Path, pair: ServingPair) -> None:
    def only_plain_pods(review: Json) -> tuple[int, Json]:
        return 200, response(review, allowed=UNKNOWN_NAME not in json.dumps(review))

    (finding,), reviews = played(tmp_path, pair, registered(), only_plain_pods)
    assert finding.is_amiss
    assert len(reviews) == 2


def test_a_server_that_is_silent_is_given_up(
    tmp_path: Path, pair: ServingPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "CALL_SECONDS", 0.3)

    with socket.create_server(("127.0.0.1", 0)) as mute:
        (finding,) = findings(tmp_path, pair.authority_pem, mute.getsockname()[1], registered(), ["vacancy"])
    assert "no answer within 0.3 s. Are its pods ready" in str(finding)


def test_every_problem_is_told(tmp_path: Path, pair: ServingPair) -> None:
    def prepare(scene: Scene) -> None:
        scene.register(scene.webhook(), scene.webhook("/validate/audit", clientConfig={"url": "https://localhost:1"}))

    found, _ = played(tmp_path, pair, prepare, names=["vacancy", "other"])
    assert [finding.is_amiss for finding in found] == [False, True, True]
