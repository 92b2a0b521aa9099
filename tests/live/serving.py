"""`vacancy serve` as a real process in a real cluster, as a service account with exactly the rights it asks for."""

import base64
import contextlib
import http.client
import json
import os
import signal
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from app.cluster.rights import ROLES, Role, manifest
from app.times import epoch_seconds
from certs.serving import throwaway_pair
from tests.controlplane.client import Json
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Server
from tests.controlplane.waiting import until
from tests.web.reviews import review

SOURCES = ("pool-status", "witness", "both", "auto")

STATUSES = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"

OURS = "app.kubernetes.io/managed-by=vacancy"

WEBHOOK = "enforce.pods.gpu-vacancy.dev"

REFRESH_SECONDS = 2.0
"""A test waits for one round of pool statuses or two; the controller manager answers 20 requests a second."""

_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_TIMEOUT = 30.0  # seconds; only a hang reaches it


class Vacancy:
    """One process, running from its making until `stop`. All its files are in `folder`."""

    def __init__(  # noqa: PLR0913 - a process has that many settings
        self,
        plane: ControlPlane,
        folder: Path,
        source: str,
        *,
        roles: Sequence[Role] = ROLES,
        refresh_seconds: float = REFRESH_SECONDS,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`folder` is made, and its name is that of the service account. Returns when the process says it is ready."""
        folder.mkdir()
        throwaway_pair(["localhost"], ["127.0.0.1"], time.time()).write(folder)
        self.name, self.source, self.authority, self._log = folder.name, source, folder / "ca.crt", folder / "log"
        flags = {
            "--source": source,
            "--refresh-seconds": f"{refresh_seconds:g}",
            "--kubeconfig": str(account(plane, folder.name, roles)),
            "--tls-dir": str(folder),
            "--listen": "127.0.0.1:0",
            "--web-listen": "127.0.0.1:0",
            **settings,
        }
        command = [sys.executable, "-m", "app", "serve", *(word for flag in flags.items() for word in flag)]
        self._server = Server(command, self._log)
        self._server.wait(lambda: self._ready is not None)
        assert self._ready
        self.webhook: str = self._ready["webhook"]
        self._web: str = self._ready["web"]
        self._tls = ssl.create_default_context(cafile=self.authority)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._server.pid

    def stop(self) -> None:
        """An orderly stop; a second signal skips the time in which endpoints would move."""
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._server.pid, number)
        self._server.stop()

    # --- What it says ---------------------------------------------------------------------------------------------

    @property
    def log(self) -> list[dict[str, Any]]:
        """What it has logged so far."""
        whole, _, _ = self._log.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    @property
    def _ready(self) -> dict[str, Any] | None:
        return next((line for line in self.log if line["msg"] == "ready"), None)

    def get(self, path: str) -> tuple[int, str]:
        """Status code and text of a page of the web listener."""
        with contextlib.closing(http.client.HTTPConnection(self._web, timeout=_TIMEOUT)) as connection:
            connection.request("GET", path)
            answered = connection.getresponse()
            return answered.status, answered.read().decode()

    @property
    def url(self) -> str:
        """Of its web listener, without a slash at the end."""
        return f"http://{self._web}"

    def is_ready(self) -> bool:
        """Whether reviews may be sent to it."""
        return self.get("/readyz")[0] == http.HTTPStatus.OK

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples of that name with these labels; 0 without any."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        lines = [line for line in self.get("/metrics")[1].splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(float(line.rpartition(" ")[2]) for line in lines if all(each in line for each in wanted))

    def wait_for_count(self, driver: str) -> None:
        """Return when a pool status of the driver was asked for after this call: the next one may be under way."""
        name = "vacancy_pool_status_requests_total"
        before = self.metric(name, driver=driver)
        until(f"{driver} counted", lambda: self.metric(name, driver=driver) >= before + 2)

    def capacity(self, class_name: str) -> Json:
        """What the page says of a class; nothing if it does not know it."""
        classes = json.loads(self.get("/api/v1/capacity")[1])["classes"]
        found: Json = next((each for each in classes if each["name"] == class_name), {})
        return found

    # --- What it answers ------------------------------------------------------------------------------------------

    def review(self, pod: Json, namespace: str) -> Json:
        """The response to a review of this pod, asked directly and not through the API server."""
        body = review(pod, namespace=namespace)
        connection = http.client.HTTPSConnection(self.webhook, timeout=_TIMEOUT, context=self._tls)
        with contextlib.closing(connection):
            connection.request("POST", "/validate/enforce?timeout=1s", body, {"content-type": "application/json"})
            answered = connection.getresponse()
            assert answered.status == http.HTTPStatus.OK
            response: Json = json.loads(answered.read())["response"]
            return response

    def refusal(self, pod: Json, namespace: str) -> str:
        """The sentence with which it would refuse this pod now; empty: it would not."""
        response = self.review(pod, namespace)
        return "" if response["allowed"] else str(response["status"]["message"])

    def refuses(self, pod: Json, namespace: str) -> bool:
        """Whether it would refuse this pod now."""
        return bool(self.refusal(pod, namespace))

    def admits(self, pod: Json, namespace: str) -> bool:
        """Whether it would let this pod through now."""
        return not self.refuses(pod, namespace)

    def reason(self, pod: Json, namespace: str) -> str:
        """What it makes of this pod: a reason of the closed list."""
        return str(self.review(pod, namespace)["auditAnnotations"]["reason"])

    # --- In the way of pods ---------------------------------------------------------------------------------------

    def register(self, plane: ControlPlane) -> None:
        """Have the API server ask it about the pods of all namespaces that carry its label, from now on."""
        configuration = {
            "metadata": {"name": self.name},
            "webhooks": [
                {
                    "name": WEBHOOK,
                    "clientConfig": {
                        "url": f"https://{self.webhook}/validate/enforce",
                        "caBundle": base64.b64encode(self.authority.read_bytes()).decode(),
                    },
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ],
                    "namespaceSelector": {"matchLabels": self.label},
                    "failurePolicy": "Ignore",
                    "timeoutSeconds": 10,  # a busy machine must not fail open
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        }
        client = plane.client()
        client.post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", configuration)
        probe = f"probe-{self.name}"
        client.post("/api/v1/namespaces", {"metadata": {"name": probe, "labels": self.label}})
        until(f"default service account of {probe}", lambda: _has_default_account(plane, probe))
        pod = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "main", "image": "main"}]}}

        def asked() -> bool:
            plane.client().http.post(f"/api/v1/namespaces/{probe}/pods?dryRun=All", json=pod)
            return self.metric("vacancy_decisions_total") > 0

        until(f"webhook of {self.name} in the way", asked)

    def register_workloads(self, plane: ControlPlane) -> None:
        """Have the API server ask it about workloads of those namespaces too, with the rules of the chart."""
        groups = {
            "": ["replicationcontrollers"],
            "apps": ["deployments", "replicasets", "statefulsets"],
            "batch": ["jobs", "cronjobs"],
        }
        operations = ["CREATE", "UPDATE"]
        configuration = {
            "metadata": {"name": f"{self.name}-workloads"},
            "webhooks": [
                {
                    "name": "workloads.gpu-vacancy.dev",
                    "clientConfig": {
                        "url": f"https://{self.webhook}/validate-workload",
                        "caBundle": base64.b64encode(self.authority.read_bytes()).decode(),
                    },
                    "rules": [
                        {"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": resources}
                        for group, resources in groups.items()
                    ],
                    "namespaceSelector": {"matchLabels": self.label},
                    "failurePolicy": "Ignore",
                    "timeoutSeconds": 10,
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        }
        plane.client().post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", configuration)

    @property
    def label(self) -> dict[str, str]:
        """What a namespace wears whose pods it is asked about."""
        return {"vacancy": self.name}


def _has_default_account(plane: ControlPlane, namespace: str) -> bool:
    return plane.client().http.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default").is_success


def account(plane: ControlPlane, name: str, roles: Sequence[Role]) -> Path:
    """The kubeconfig of a new service account that may do what these roles say, and nothing else."""
    client = plane.client()
    applied = plane.kubectl("apply", "--server-side", "-f", "-", input=manifest(roles))
    assert applied.returncode == 0, applied.stderr
    client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    for role in roles:
        binding = {
            "metadata": {"name": f"{name}-{role.name}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.name},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
        }
        client.post(_BINDINGS, binding)
    kubeconfig = plane.kubeconfig_for_token(plane.service_account_token("default", name))
    # The authorizer learns of the bindings in the order they were made.
    last = roles[-1].rights[-1]
    resource, _, part = last.resources[-1].partition("/")
    what = f"{resource}.{last.group}".rstrip(".")
    command = ("auth", "can-i", last.verbs[-1], what, f"--subresource={part}", "--all-namespaces")
    until(f"rights of {name}", lambda: plane.kubectl(*command, kubeconfig=kubeconfig).returncode == 0)
    return kubeconfig


def requests_of_ours(plane: ControlPlane, since: float = 0.0) -> list[str]:
    """Names of the pool status requests with our label that are in the cluster now; `since`: made then or later."""
    found = [each["metadata"] for each in plane.client().get(STATUSES, labelSelector=OURS)["items"]]
    return [meta["name"] for meta in found if epoch_seconds(meta["creationTimestamp"]) >= since]
