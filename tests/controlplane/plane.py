"""A real Kubernetes control plane on loopback, without containers: etcd and three Kubernetes programs.

There is no kubelet, unless `kubelet.py` stands in for it: a bound pod stays Pending with `spec.nodeName` set, and goes
only when it is deleted with grace period 0.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import yaml

from tests.controlplane.build import binaries
from tests.controlplane.client import Client, Json, Refused
from tests.controlplane.credentials import new_credentials
from tests.controlplane.process import Server, free_port
from tests.controlplane.programs import Kubernetes, etcd
from tests.controlplane.waiting import until

_AUDIT_POLICY = Path(__file__).parents[2] / "examples" / "audit-policy.yaml"

# All that service accounts do is kept too, watches from their start: what a program did shows which rights it uses.
_OF_SERVICE_ACCOUNTS = {
    "level": "Metadata",
    "userGroups": ["system:serviceaccounts"],
    "omitStages": ["RequestReceived"],
}

_NODE_SIZE = {"cpu": "64", "memory": "256Gi", "pods": "110"}


class ControlPlane:
    """One control plane, running from its making until `stop`, or until this interpreter exits.

    All its files are in `directory`. `feature_gates` reach the three Kubernetes programs, `runtime_config` the API
    server. Without a `scheduler` nothing is bound but by the caller. Raises `CannotBuild` and `NotReady`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        runtime_config: Sequence[str] = ("resource.k8s.io/v1alpha3=true",),
        scheduler: bool = True,
    ) -> None:
        self._bin = binaries()
        self._directory = directory
        self._credentials = new_credentials(directory / "credentials")
        self._kubernetes = Kubernetes(
            self._credentials, {"DRAResourcePoolStatus": True} if feature_gates is None else feature_gates
        )
        self._runtime_config = runtime_config
        self._audit = directory / "audit-policy.yaml", directory / "audit.log"
        policy = yaml.safe_load(_AUDIT_POLICY.read_text())
        of_example = [rule | {"omitStages": policy["omitStages"]} for rule in policy["rules"]]
        policy |= {"rules": [_OF_SERVICE_ACCOUNTS, *of_example], "omitStages": []}
        self._audit[0].write_text(yaml.safe_dump(policy))
        self._etcd_port = free_port()
        self._port = free_port()
        self._servers: dict[str, Server] = {}
        self._kubeconfig_numbers = itertools.count()
        certificate, key = self._credentials.admin
        self.kubeconfig = self._new_kubeconfig({"client-certificate": str(certificate), "client-key": str(key)})
        """The administrator's kubeconfig."""
        self._client = Client(self.server, self._credentials.client_context())
        try:
            self._start(
                etcd(directory / "etcd", self._etcd_port), lambda: self._healthy(self._etcd_port, "http", "/health")
            )
            self.start_apiserver()
            self._start_beside(self._kubernetes.controller_manager)
            self._servers["kube-controller-manager"].wait(self._has_default_service_account)
            if scheduler:
                self._start_beside(self._kubernetes.scheduler)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def server(self) -> str:
        """The API server's URL, the same after a restart."""
        return f"https://127.0.0.1:{self._port}"

    @contextlib.contextmanager
    def without_controllers(self) -> Iterator[None]:
        """The controller manager is slow: it does nothing meanwhile, and everything afterwards."""
        pid = self.pids["kube-controller-manager"]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each running program."""
        return {program: server.pid for program, server in self._servers.items()}

    def client(self) -> Client:
        """The API as the administrator: one client for all callers, closed with the plane."""
        return self._client

    def stop(self) -> None:
        """Stop everything, each program before what it works with: the API server waits for who still watches it."""
        for program in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            if server := self._servers.pop(program, None):
                server.stop()
        self._client.close()

    def stop_apiserver(self) -> None:
        """Kill the API server alone: an outage that cuts every connection. What it knew stays in etcd."""
        self._servers.pop("kube-apiserver").kill()

    def start_apiserver(self) -> None:
        """Start the API server, at its old address if it ran before, and return when it is ready."""
        self._start(
            self._kubernetes.apiserver(self._port, self._etcd_port, self._runtime_config, self._audit),
            lambda: self._healthy(self._port, path="/readyz"),
        )

    def kubectl(
        self,
        *arguments: str,
        kubeconfig: Path | None = None,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
    ) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl, as the administrator or with another kubeconfig. Its exit code is for the caller."""
        return subprocess.run(
            [self._bin / "kubectl", f"--kubeconfig={kubeconfig or self.kubeconfig}", *arguments],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"KUBECACHEDIR": str(self._directory / "kubectl-cache")},
        )

    @property
    def audit_log(self) -> Path:
        """What the API server writes with the policy of the example, and of service accounts everything."""
        return self._audit[1]

    def audit(self, namespace: str) -> list[Json]:
        """What the service accounts of a namespace have asked of the API server, as audit events, the oldest first."""
        accounts = f"system:serviceaccount:{namespace}:"
        events = map(json.loads, self._audit[1].read_text().splitlines())
        return [event for event in events if event["user"]["username"].startswith(accounts)]

    def service_account_token(self, namespace: str, name: str) -> str:
        """A token of that service account, good for an hour (TokenRequest)."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token: str = self._client.post(path, {"spec": {}})["status"]["token"]
        return token

    def kubeconfig_for_token(self, token: str) -> Path:
        """A new kubeconfig with this token and nothing else."""
        return self._new_kubeconfig({"token": token})

    def add_namespace(self, name: str) -> None:
        """A namespace that takes pods: with its default service account, which a controller makes."""
        self._client.post("/api/v1/namespaces", {"metadata": {"name": name}})
        until(f"default service account of {name}", lambda: self._has_default_service_account(name))

    def add_node(
        self, name: str, *, extended: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None
    ) -> Json:
        """A node that is Ready; `extended` is what a device plugin would report, by resource name."""
        size = _NODE_SIZE | dict(extended or {})
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "there is no kubelet"}
        return self.register_node(
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | dict(labels or {})},
                "status": {"capacity": size, "allocatable": size, "conditions": [ready]},
            }
        )

    def register_node(self, node: Json) -> Json:
        """This node as it is, free for pods: new ones are tainted as not ready, and the controller for that is off."""
        name = self._client.post("/api/v1/nodes", node)["metadata"]["name"]
        taints = node.get("spec", {}).get("taints")
        return self._client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})

    def _start(self, command: list[str], ready: Callable[[], bool]) -> None:
        program, *flags = command
        server = Server([str(self._bin / program), *flags], self._directory / f"{program}.log")
        self._servers[program] = server
        server.wait(ready)

    def _start_beside(self, command: Callable[[int, Path], list[str]]) -> None:
        port = free_port()
        self._start(command(port, self.kubeconfig), lambda: self._healthy(port))

    def _healthy(self, port: int, scheme: str = "https", path: str = "/healthz") -> bool:
        try:
            return self._client.http.get(f"{scheme}://127.0.0.1:{port}{path}").is_success
        except httpx.TransportError:
            return False

    def _has_default_service_account(self, namespace: str = "default") -> bool:
        try:
            self._client.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        except Refused:
            return False
        return True

    def _new_kubeconfig(self, user: dict[str, str]) -> Path:
        path = self._directory / f"kubeconfig-{next(self._kubeconfig_numbers)}"
        return self._credentials.kubeconfig(path, self.server, user)
