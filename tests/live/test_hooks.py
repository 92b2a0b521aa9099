"""`vacancy selftest` and `vacancy cleanup` in a real cluster, as an account with the rights they need and no others."""

import base64
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app import cli, selftest
from certs.serving import throwaway_pair
from tests.answering import Answering, response
from tests.controlplane.client import Json
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.conftest import Vacancies
from tests.live.serving import OURS, STATUSES, Vacancy

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
WORKLOADS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}

NAMES = ("hooks", "hooks-workloads")
OTHER = "hooks-other"


def webhook(name: str, url: str, authority: bytes, rule: Json = PODS) -> Json:
    return {
        "name": name,
        "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"hooks": "nobody"}},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


@pytest.fixture
def server(vacancies: Vacancies) -> Vacancy:
    return vacancies.of("witness")


@pytest.fixture
def registered(plane: ControlPlane, server: Vacancy) -> Iterator[None]:
    """Our server under two configurations, and a third that is somebody else's."""
    base, authority = f"https://{server.webhook}", server.authority.read_bytes()
    modes = [
        webhook(f"{mode}.pods.gpu-vacancy.dev", f"{base}/validate/{mode}", authority)
        for mode in ("enforce", "warn", "audit")
    ]
    workloads = webhook("workloads.gpu-vacancy.dev", f"{base}/validate-workload", authority, WORKLOADS)
    for name, hooks in {NAMES[0]: modes, NAMES[1]: [workloads], OTHER: []}.items():
        plane.client().post(CONFIGURATIONS, {"metadata": {"name": name}, "webhooks": hooks})
    yield
    plane.kubectl("delete", "validatingwebhookconfigurations", "--ignore-not-found", *NAMES, OTHER)


@pytest.fixture(scope="module")
def account(plane: ControlPlane) -> Path:
    """The kubeconfig of an account that may do what the two hooks have to, and nothing else."""
    client, name = plane.client(), "hooks"
    rules = [
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["validatingwebhookconfigurations"],
            "resourceNames": [*NAMES, "hooks-broken", "hooks-absent"],
            "verbs": ["get", "delete"],
        },
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourcepoolstatusrequests"],
            "verbs": ["list", "delete"],
        },
    ]
    client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    client.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": name}
    client.post(f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
    kubeconfig = plane.kubeconfig_for_token(plane.service_account_token("default", name))
    can = ("auth", "can-i", "list", "resourcepoolstatusrequests.resource.k8s.io")
    until("rights of hooks", lambda: plane.kubectl(*can, kubeconfig=kubeconfig).returncode == 0)
    return kubeconfig


def vacancy(verb: str, account: Path, *names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", verb, "--kubeconfig", str(account), "--webhooks", ",".join(names)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)


@pytest.mark.usefixtures("registered")
def test_selftest_finds_every_webhook_answering(server: Vacancy, account: Path) -> None:
    before = server.metric("vacancy_verdicts_total", reason="ClassMissing")
    found = vacancy("selftest", account, *NAMES)
    assert (found.returncode, found.stderr) == (0, "")
    base = f"https://{server.webhook}"
    assert found.stdout.splitlines() == [
        f"ok hooks/enforce.pods.gpu-vacancy.dev: {base}/validate/enforce?timeout=10s answers",
        f"ok hooks/warn.pods.gpu-vacancy.dev: {base}/validate/warn?timeout=10s answers",
        f"ok hooks/audit.pods.gpu-vacancy.dev: {base}/validate/audit?timeout=10s answers",
        f"ok hooks-workloads/workloads.gpu-vacancy.dev: {base}/validate-workload?timeout=10s answers",
    ]
    assert server.metric("vacancy_verdicts_total", reason="ClassMissing") == before + 4


def test_selftest_tells_everything_that_is_amiss(
    plane: ControlPlane, server: Vacancy, account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "LAST_ATTEMPT_SECONDS", 0.0)
    pair = throwaway_pair(["localhost"], ["127.0.0.1"], time.time())
    with Answering(tmp_path, pair, lambda review: (200, response(review, allowed=None))) as silly:
        hooks = [
            webhook("stranger.gpu-vacancy.dev", f"https://{server.webhook}/validate", pair.authority_pem),
            webhook("nobody.gpu-vacancy.dev", "https://127.0.0.1:1/validate", pair.authority_pem),
            webhook("silly.gpu-vacancy.dev", f"https://127.0.0.1:{silly.port}/validate", pair.authority_pem),
            webhook("early.gpu-vacancy.dev", f"https://{server.webhook}/validate", b""),
        ]
        plane.client().post(CONFIGURATIONS, {"metadata": {"name": "hooks-broken"}, "webhooks": hooks})
        names = "hooks-broken,hooks-absent,hooks-forbidden"
        command = ["selftest", "--kubeconfig", str(account), "--webhooks", names]
        found = CliRunner().invoke(cli.app, command)
        plane.client().delete(f"{CONFIGURATIONS}/hooks-broken")
    assert found.exit_code == 1
    said = {
        "FAILED hooks-broken/stranger.gpu-vacancy.dev": "does not vouch for the certificate of the server",
        "FAILED hooks-broken/nobody.gpu-vacancy.dev": "Connect call failed",
        "FAILED hooks-broken/silly.gpu-vacancy.dev": "lacks allowed",
        "FAILED hooks-broken/early.gpu-vacancy.dev": "no caBundle",
        "FAILED hooks-absent": "no such ValidatingWebhookConfiguration",
        "FAILED hooks-forbidden": "may not be read",
    }
    lines = found.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines] == list(said)
    for line, text in zip(lines, said.values(), strict=True):
        assert text in line


@pytest.mark.usefixtures("registered")
def test_cleanup_leaves_nothing_of_ours_and_everything_else(plane: ControlPlane, account: Path) -> None:
    client = plane.client()
    label, _, value = OURS.partition("=")
    for name, labels in {"vacancy-hooks": {label: value}, "hooks-foreign": {}}.items():
        metadata = {"name": name, "labels": labels}
        client.post(STATUSES, {"metadata": metadata, "spec": {"driver": "hooks.example.com"}})
    for deleted in ("deleted", "not there"):
        found = vacancy("cleanup", account, *NAMES)
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout.splitlines() == [
            *(f"ok ValidatingWebhookConfiguration {name}: {deleted}" for name in NAMES),
            "ok ResourcePoolStatusRequests: none of ours is left",
        ]
    assert OTHER in names_of(client.get(CONFIGURATIONS))
    assert not names_of(client.get(CONFIGURATIONS)) & {*NAMES}
    assert "vacancy-hooks" not in names_of(client.get(STATUSES))
    client.delete(f"{STATUSES}/hooks-foreign")


@pytest.mark.usefixtures("registered")
def test_cleanup_that_may_not_delete_says_so(plane: ControlPlane) -> None:
    plane.add_namespace("hooks-tenant")
    tenant = plane.kubeconfig_for_token(plane.service_account_token("hooks-tenant", "default"))
    found = vacancy("cleanup", tenant, *NAMES)
    assert found.returncode == 1
    assert found.stdout.splitlines() == [
        *(
            f"FAILED ValidatingWebhookConfiguration {name}: may not be deleted: grant this account 'delete' on it"
            for name in NAMES
        ),
        "FAILED ResourcePoolStatusRequests: may not be listed: grant this account 'list' and 'delete'",
    ]


def names_of(found: Json) -> set[str]:
    return {each["metadata"]["name"] for each in found["items"]}
