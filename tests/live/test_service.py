"""The commands through the service proxy of a real API server, as a tenant with the chart's right and no other."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.chart.installed import installed, known
from tests.controlplane.build import binaries
from tests.controlplane.client import Json
from tests.controlplane.network import Network
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.scene import Scene
from tests.live.serving import Vacancy

PLACE = "service-vacancy"
"""Namespace of the release, which is called `vacancy`."""

TENANTS = "service-tenants"
"""Namespace of the accounts that may ask."""

NODE = "service-n1"
POD = f"/api/v1/namespaces/{PLACE}/pods/vacancy"
ASKED = ("--service", f"{PLACE}/vacancy")


@dataclass(frozen=True, slots=True)
class Reached:
    """A server behind the chart's Service, which a Pod object gives its address."""

    plane: ControlPlane
    vacancy: Vacancy
    address: str
    tenant: Path
    """Kubeconfig of an account with the right of tenants."""
    stranger: Path
    """Kubeconfig of an account with no right at all."""

    def say_ready(self, ready: str) -> None:
        """What a kubelet would say of the pod: `True` or `False`."""
        status = {
            "phase": "Running",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": [{"type": "Ready", "status": ready}],
        }
        self.plane.client().patch(f"{POD}/status", {"status": status})


@pytest.fixture(scope="module")
def reached(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    network = Network()
    address = network.address()
    folder = tmp_path_factory.mktemp("service") / "vacancy-service"
    plane.add_node(NODE)
    for namespace in (PLACE, TENANTS):
        plane.add_namespace(namespace)
    tenant, stranger = (
        plane.kubeconfig_for_token(plane.service_account_token(namespace, "default")) for namespace in (TENANTS, PLACE)
    )
    items = known({"tenantGroups": [f"system:serviceaccounts:{TENANTS}"]}, PLACE)
    (service,) = [item for item in items if item["kind"] == "Service"]
    deaf = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "deaf", "namespace": PLACE},
        "spec": service["spec"] | {"ports": [{"name": "http", "port": 80, "targetPort": "webhook"}]},
    }
    rights = [item for item in items if item["metadata"]["name"] == "vacancy-tenants"]
    # No image that a stand-in kubelet knows: it would run the pod.
    ports = [{"name": "web", "containerPort": 8080}, {"name": "webhook", "containerPort": 8443}]
    pod = {
        "metadata": {"name": "vacancy", "labels": service["spec"]["selector"]},
        "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "elsewhere", "ports": ports}]},
    }
    settings = {"--web-listen": f"{address}:8080"}
    with installed(plane, [service, deaf, *rights]), Vacancy(plane, folder, "witness", settings=settings) as vacancy:
        plane.client().post(f"/api/v1/namespaces/{PLACE}/pods", pod)
        found = Reached(plane, vacancy, address, tenant, stranger)
        found.say_ready("True")
        until("reached", lambda: run(tenant, "capacity", *ASKED).returncode == 0)
        yield found
        plane.client().delete(POD, gracePeriodSeconds=0)
        plane.client().delete(f"/api/v1/nodes/{NODE}")
    network.close()


@pytest.fixture
def scene(plane: ControlPlane) -> Iterator[Scene]:
    scene = Scene(plane)
    scene.add_class()
    scene.publish(2)
    yield scene
    scene.close()


def run(kubeconfig: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", *arguments, "--kubeconfig", str(kubeconfig)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)


def deployment(scene: Scene) -> str:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": scene.pod("late")["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    metadata = {"name": "late", "namespace": scene.name}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


def test_a_tenant_is_told_what_a_deployment_would_get_before_and_after_the_last_device_goes(
    reached: Reached, scene: Scene
) -> None:
    def check() -> tuple[int, Json]:
        found = run(reached.tenant, "check", "-f", "-", "-o", "json", *ASKED, text=deployment(scene))
        assert found.stderr == ""
        (answer,) = json.loads(found.stdout)["checks"]
        return found.returncode, answer

    until("published", lambda: reached.vacancy.capacity(scene.name).get("available") == 2)
    code, answer = check()
    assert (code, answer["verdict"], answer["asks"][0]["free"]) == (0, "room", 2)
    scene.fill(2)
    until("full", lambda: check()[0] == 1)
    code, answer = check()
    assert (answer["name"], answer["namespace"], answer["kind"]) == ("late", scene.name, "Deployment")
    assert (answer["verdict"], answer["reason"], answer["asks"][0]["total"]) == ("full", "NoGPUCapacity", 2)
    assert answer["message"].endswith(" This is for each of 3 replicas alone.")


def test_a_tenant_reads_the_table_and_what_a_name_means(reached: Reached, scene: Scene) -> None:
    until("published", lambda: reached.vacancy.capacity(scene.name).get("available") == 2)
    found = run(reached.tenant, "capacity", *ASKED)
    (line,) = [line.split() for line in found.stdout.splitlines() if line.startswith(f"{scene.name} ")]
    assert line == [scene.name, scene.resource, "free", "2", "0", "0", "2", "seen", "live"]
    meaning = run(reached.tenant, "explain", scene.resource, *ASKED)
    assert meaning.stdout.startswith(f"1 {scene.resource} is a device of class {scene.name} ")
    assert run(reached.tenant, "explain", "example.com/nobody-s", *ASKED).returncode == 1


def test_kubectl_finds_it_as_its_plugin(reached: Reached) -> None:
    path = os.pathsep.join([str(binaries()), str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["kubectl", "vacancy", "capacity", *ASKED]
    variables = os.environ | {"PATH": path, "KUBECONFIG": str(reached.tenant)}
    found = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("CLASS/POOL ")


@pytest.mark.parametrize("user", ["an exec plugin", "a client's certificate"])
def test_other_ways_to_log_in(reached: Reached, tmp_path: Path, user: str) -> None:
    kubeconfig = reached.plane.kubeconfig  # of the administrator, who has a certificate
    if user == "an exec plugin":
        content = yaml.safe_load(reached.tenant.read_text())
        version = "client.authentication.k8s.io/v1"
        token = content["users"][0]["user"]["token"]
        credential = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}})
        plugin = {"apiVersion": version, "command": "echo", "args": [credential], "interactiveMode": "Never"}
        content["users"][0]["user"] = {"exec": plugin}
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(content))
    assert run(kubeconfig, "capacity", *ASKED).returncode == 0


def no_answer(found: subprocess.CompletedProcess[str]) -> str:
    """What was said, in one line."""
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (3, "", 1)
    return found.stderr


def test_who_has_no_right_is_told_which_one_it_takes(reached: Reached, scene: Scene) -> None:
    for said in (
        no_answer(run(reached.stranger, "capacity", *ASKED)),
        no_answer(run(reached.stranger, "check", "-f", "-", *ASKED, text=deployment(scene))),
    ):
        right = f"you need get and create on services/proxy http:vacancy:http in namespace {PLACE}, "
        assert said.startswith(f"vacancy: no answer: Service {PLACE}/vacancy: {right}")
        assert ': 403, services "http:vacancy:http" is forbidden: ' in said


def test_a_token_that_is_none_is_told_from_a_right_that_is_missing(reached: Reached) -> None:
    said = no_answer(run(reached.plane.kubeconfig_for_token("none"), "capacity", *ASKED))
    assert said.endswith(": your credentials are not taken; log in again: 401, Unauthorized\n")


@pytest.mark.parametrize(
    ("service", "said"),
    [
        (f"{PLACE}/none", '503, no endpoints available for service "none"'),
        ("none/vacancy", '503, no endpoints available for service "vacancy"'),
        ("default/kubernetes", '503, no endpoints available for service "kubernetes"'),
        (f"{PLACE}/deaf", "503, error trying to reach service: dial tcp "),
    ],
    ids=["not there", "no such namespace", "another program's", "one nobody listens for"],
)
def test_a_wrong_service_says_how_to_name_the_right_one(reached: Reached, service: str, said: str) -> None:
    found = no_answer(run(reached.plane.kubeconfig, "capacity", "--service", service))
    advice = "name it by --service NAMESPACE/NAME, or judge without it by --direct"
    assert f"; if Vacancy is elsewhere, {advice}: {said}" in found


def test_watching_outlives_a_server_that_is_away(reached: Reached) -> None:
    command = [sys.executable, "-m", "app", "capacity", "--watch", *ASKED, "--kubeconfig", str(reached.tenant)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        lines = iter(watching.stdout.readline, "")
        assert any(line.startswith("CLASS/POOL ") for line in lines)
        reached.say_ready("False")
        away = next(line for line in lines if "no answer" in line)
        assert "expected a Service with ready pods behind its port http" in away
        assert "no endpoints available" in away
        reached.say_ready("True")
        assert any(line.startswith("CLASS/POOL ") for line in lines)
        watching.send_signal(signal.SIGINT)
        assert (watching.wait(), watching.stderr.read()) == (0, "")
