"""The years of a release, without pods: installed, upgraded after we wrote what is ours, changed, removed."""

import pytest

from tests.chart.rendering import CHART, HELMS, Refused, Values, helm
from tests.chart.test_live import what_is_ours, write_what_is_ours
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

# In the way of nobody: there is no such pod to ask about, and none of its own.
NOBODY = {"replicas": 0, "webhook": {"objectSelector": {"matchLabels": {"chart-release": "nothing"}}}}

PEM = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"
BROUGHT_ALONG = NOBODY | {"tls": {"mode": "existing-secret", "existingSecret": "pair", "caBundle": PEM}}

KINDS = (
    "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,"
    "validatingwebhookconfigurations,deployments,jobs,pods,poddisruptionbudgets,replicasets,roles,rolebindings,secrets,"
    "serviceaccounts,services"
)


class Release:
    """One release, by one Helm."""

    def __init__(self, plane: ControlPlane, program: str) -> None:
        self.name, self._namespace, self._program = f"{program}-vacancy", f"chart-{program}", program
        self._plane = plane
        plane.add_namespace(self._namespace)

    def run(self, command: str, *options: str, values: Values | None = None) -> None:
        """Raises `Refused`."""
        where = (f"--kubeconfig={self._plane.kubeconfig}", f"--namespace={self._namespace}")
        chart = () if command == "uninstall" else (str(CHART),)
        helm(self._program, command, self.name, *chart, *where, *options, values=values)

    def write(self) -> None:
        write_what_is_ours(self._plane, self._namespace, self.name)

    def written(self) -> set[str]:
        return what_is_ours(self._plane, self._namespace, self.name)

    def objects(self) -> list[str]:
        """Kind and name of everything that carries the release's label."""
        label = f"--selector=app.kubernetes.io/instance={self.name}"
        listed = self._plane.kubectl("get", KINDS, "--all-namespaces", label, "--output=name")
        assert listed.returncode == 0, listed.stderr
        return listed.stdout.split()


@pytest.mark.parametrize("program", HELMS)
def test_a_release_from_its_installation_to_its_end(plane: ControlPlane, program: str) -> None:
    release = Release(plane, program)
    release.run("install", values=NOBODY)
    assert release.objects()

    release.write()
    for age in ("91", "92"):
        release.run("upgrade", "--reset-then-reuse-values", f"--set=maxAge={age}")
    assert release.written() == {"YXV0aG9yaXR5"}

    options = []
    if program == "helm4":  # its writes are server-side applies, and this field was ours
        with pytest.raises(Refused, match='conflicts with "vacancy-certificates"'):
            release.run("upgrade", values=BROUGHT_ALONG)
        options = ["--force-conflicts"]
    release.run("upgrade", *options, values=BROUGHT_ALONG)
    release.run("upgrade", values=NOBODY)

    release.run("uninstall", "--no-hooks")  # the clean-up is a pod, and nothing runs pods here
    until("nothing left", lambda: not release.objects())  # ReplicaSets are collected later
