"""What the documents have an administrator type works in a real cluster, each block after the one before it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.controlplane.build import binaries
from tests.controlplane.helm import helms
from tests.controlplane.kubelet import Kubelet
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.docs.blocks import BLOCKS
from tests.docs.shell import Shell
from tests.docs.table import IN_CLUSTER, NOT_RUN
from tests.install.release import VACANCY
from tests.live.scene import TAINT_RULES, Scene

GPU = "example.com/gpu"

LOGS = "kubectl logs --namespace vacancy -l app.kubernetes.io/component=server --tail=-1 --since=1h"
"""Asks the kubelet, which the tests stand in for; what it would print is in a file."""

BELOW = {"charts/vacancy/README.md: Vacancy": "charts/vacancy"}
"""Where one is when one types a block, if not in the checkout."""


class Cluster:
    """The class `gpu.example.com` is one free device, and declares the name that the documents ask for."""

    def __init__(self, plane: ControlPlane, kubelet: Kubelet, folder: Path) -> None:
        self._plane, self._kubelet = plane, kubelet
        plane.add_namespace("team-a")
        plane.add_node("docs")
        self.scene = Scene(plane)
        self.scene.add_class("gpu.example.com", declares=GPU)
        self.scene.publish(1)
        self._shell = Shell(
            folder,
            # A server of ours shares this machine with others.
            {"KUBECONFIG": str(plane.kubeconfig), "VACANCY_LISTEN": "127.0.0.1:0", "VACANCY_WEB_LISTEN": "127.0.0.1:0"},
            {"kubectl": binaries() / "kubectl", "helm": helms() / "helm4"},
        )
        (self._shell.folder / "deployment.yaml").symlink_to("examples/pods/deployment.yaml")

    def type(self, name: str) -> str:
        """What a block prints. Raises an AssertionError if a command does not end as it should."""
        block = BLOCKS[name]
        if block.language == "yaml":
            (self._shell.folder / "shown.yaml").write_text(block.text)
            ran = self._shell.run("kubectl apply --dry-run=server --validate=strict -f shown.yaml")
            assert (ran.returncode, ran.stderr) == (0, ""), f"{name}: {ran.stderr}"
            return ran.stdout
        commands = (command for command in block.commands() if command.text not in NOT_RUN)
        instead = {LOGS: "cat vacancy.log"}
        try:
            return "".join(self._shell.type(each, instead=instead, below=BELOW.get(name, ".")) for each in commands)
        except AssertionError as failure:
            failure.add_note(f"{name}; pods logged\n{self._kubelet.log('vacancy')}")
            raise

    def left(self) -> str:
        """What of the release is in the cluster, pods aside."""
        kinds = "validatingwebhookconfigurations,clusterroles,clusterrolebindings,deployments,services,jobs,secrets"
        return self._plane.kubectl("get", kinds, "-A", "-l", "app.kubernetes.io/instance=vacancy", "-o", "name").stdout

    # --- What blocks are for ------------------------------------------------------------------------------------------

    def until_old_authority_is_kept(self) -> None:
        """The Secret was emptied, and the new authority is announced."""
        client, path = self._plane.client(), "/api/v1/namespaces/vacancy/secrets/vacancy-tls"
        until("old authority kept", lambda: "ca-old.crt" in (client.get(path).get("data") or {}))

    def make_a_lasting_token(self) -> None:
        """Of the Secret that the page shows; Kubernetes writes it."""
        self._plane.kubectl("apply", "-f", "-", input=BLOCKS["docs/install.md: A server outside the cluster"].text)
        client, path = self._plane.client(), "/api/v1/namespaces/vacancy/secrets/vacancy-outside"
        until("token written", lambda: "token" in (client.get(path).get("data") or {}))

    def taint_devices(self) -> None:
        """One that its driver taints, and a rule for those of another driver."""
        taint = {"key": "example.com/broken", "effect": "NoSchedule"}
        self.scene.publish([{"name": "gpu-7", "taints": [taint]}], pool="ill")
        spec = {"deviceSelector": {"driver": "other.example.com"}, "taint": taint}
        self.scene.make(TAINT_RULES, {"metadata": {"name": "ruled"}, "spec": spec})

    def refuse_a_pod(self) -> None:
        """The pod `late`, and the log says so."""
        late = self.scene.pod("late", resource=GPU)
        # Of two replicas one may hear a moment later than the other that the device was taken.
        until("full", lambda: all(self.scene.apply(late, "--dry-run=server").returncode for _ in range(8)))
        assert self.scene.apply(late).returncode == 1
        (self._shell.folder / "vacancy.log").write_text(self._kubelet.log("vacancy"))

    def remove_without_hooks(self) -> None:
        """Helm's part of a removal alone; the pods don't end in order, which takes 10 s."""
        ran = self._shell.run("helm uninstall vacancy --namespace vacancy --no-hooks")
        assert ran.returncode == 0, ran.stderr
        self._plane.client().delete("/api/v1/namespaces/vacancy/pods", gracePeriodSeconds=0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """In a control plane of its own: the release and its cluster roles have the names that everybody's have."""
    with (
        ControlPlane(tmp_path / "plane") as plane,
        Kubelet(plane, tmp_path / "pods", {"registry.example.com/vacancy": VACANCY}) as kubelet,
    ):
        yield Cluster(plane, kubelet, tmp_path)


def test_an_administrator_can_type_the_documents_from_the_first_look_to_the_removal(cluster: Cluster) -> None:
    scene = cluster.scene
    before: dict[str, Callable[[], object]] = {
        "docs/certificates.md: What goes wrong (2)": cluster.until_old_authority_is_kept,
        "docs/install.md: A server outside the cluster (2)": cluster.make_a_lasting_token,
        "docs/operate.md: VacancyClassLow": cluster.taint_devices,
        "docs/operate.md: VacancyClassFull": partial(scene.fill, 1, resource=GPU),
        "docs/operate.md: VacancyRefusalsJump": cluster.refuse_a_pod,
        "docs/operate.md: VacancyDriverSilent": partial(scene.publish, 1, pool="half", slices=2),
        "docs/install.md: Remove (2)": cluster.remove_without_hooks,
    }
    shown = {
        "README.md: Ask about your own cluster (2)": GPU,
        "README.md: Ask about your own cluster (3)": GPU,
        "docs/install.md: Rights": GPU,
        "README.md: Ask about your own cluster": GPU,
        "docs/operate.md: VacancyClassLow": f"{scene.driver} ill gpu-7 [{{",
        "docs/operate.md: VacancyClassFull": f" holder-0   gpu.example.com   {scene.driver}   pool ",
        "docs/operate.md: VacancyRefusalsJump": f" {scene.name} late\n",
        "docs/operate.md: VacancyFailOpen": "Phase:          Succeeded",
        "docs/operate.md: VacancyDriverSilent": f" {scene.driver}   half ",
    }
    for name in IN_CLUSTER:
        before.get(name, lambda: None)()
        printed = cluster.type(name)
        assert shown.get(name, "") in printed, f"{name}\n{printed}"
        if name.startswith("docs/install.md: Remove"):
            until("nothing left", lambda: not cluster.left())
