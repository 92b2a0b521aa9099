"""The command lines of the programs: everything on loopback, plain flags, no configuration files."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.controlplane.credentials import Credentials
from tests.controlplane.process import free_port

# Without a kubelet nobody reports for the nodes: these would taint them, evict their pods, or want addresses for them.
_CONTROLLERS = "*,-node-lifecycle-controller,-node-ipam-controller,-taint-eviction-controller"


def etcd(data: Path, port: int) -> list[str]:
    """The store: on `port` without encryption, and without waiting for the disk, since nothing has to survive."""
    client = f"http://127.0.0.1:{port}"
    peer = f"http://127.0.0.1:{free_port()}"  # there is no peer, but it listens for one
    return [
        "etcd",
        f"--data-dir={data}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class Kubernetes:
    """What the Kubernetes programs have in common: who they are, and which features are on."""

    credentials: Credentials
    feature_gates: Mapping[str, bool]

    def apiserver(
        self, port: int, etcd_port: int, runtime_config: Sequence[str], audit: tuple[Path, Path]
    ) -> list[str]:
        """The API server, asking certificates and service-account tokens, with RBAC; `audit`: policy and log."""
        policy, log = audit
        public, private = self.credentials.service_accounts
        return [
            "kube-apiserver",
            *self._serving(port),
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            "--authorization-mode=RBAC",
            f"--client-ca-file={self.credentials.authority}",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={private}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",  # an endpoint can't be on loopback
            "--enable-aggregator-routing=true",  # sends to the endpoints of a Service: there is no kube-proxy
            f"--runtime-config={','.join(runtime_config)}",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={log}",
        ]

    def controller_manager(self, port: int, kubeconfig: Path) -> list[str]:
        """The controllers; those of claims and of pool statuses are why it is here."""
        _, private = self.credentials.service_accounts
        return [
            "kube-controller-manager",
            *self._serving(port),
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            f"--controllers={_CONTROLLERS}",
            f"--root-ca-file={self.credentials.authority}",
            f"--service-account-private-key-file={private}",
        ]

    def scheduler(self, port: int, kubeconfig: Path) -> list[str]:
        """The scheduler, with its defaults."""
        return ["kube-scheduler", *self._serving(port), f"--kubeconfig={kubeconfig}", "--leader-elect=false"]

    def _serving(self, port: int) -> list[str]:
        certificate, key = self.credentials.serving
        flags = [
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
        ]
        if self.feature_gates:
            gates = ",".join(f"{gate}={str(on).lower()}" for gate, on in self.feature_gates.items())
            flags.append(f"--feature-gates={gates}")
        return flags
