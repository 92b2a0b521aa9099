"""The plane is what it says: Kubernetes 1.37.2 with DRA and pool statuses, and nothing of it outlives it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.controlplane.build import binaries, kubernetes_version
from tests.controlplane.client import Client, Json, Refused
from tests.controlplane.fill import fill
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

CHECKOUT = Path(__file__).parents[2]
EXAMPLE = CHECKOUT / "examples" / "cluster"
DRA = "/apis/resource.k8s.io/v1"
STATUSES = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"


def publish(client: Client, name: str, node: str, devices: int) -> None:
    """A driver, a device class and an extended resource of that name, and a pool of devices on that node."""
    selectors = [{"cel": {"expression": f"device.driver == '{name}'"}}]
    spec: Json = {"selectors": selectors, "extendedResourceName": f"{name}/gpu"}
    client.post(f"{DRA}/deviceclasses", {"metadata": {"name": name}, "spec": spec})
    spec = {
        "driver": name,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
    }
    client.post(f"{DRA}/resourceslices", {"metadata": {"name": f"{node}-{name}"}, "spec": spec})


def pod(name: str, *, limits: Json | None = None, template: str | None = None) -> Json:
    container: Json = {"name": "main", "image": "registry.example.com/main:1", "resources": {"limits": limits or {}}}
    spec: Json = {"containers": [container]}
    if template:
        container["resources"]["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return {"metadata": {"name": name}, "spec": spec}


def pool_status(client: Client, driver: str) -> Json:
    request = {"metadata": {"generateName": "plane-"}, "spec": {"driver": driver, "limit": 1000}}
    path = f"{STATUSES}/{client.post(STATUSES, request)['metadata']['name']}"
    status: Json = until(f"pool status of {driver}", lambda: client.get(path).get("status"))
    client.delete(path)
    return status


def test_every_program_is_the_pinned_kubernetes(plane: ControlPlane) -> None:
    assert kubernetes_version() == "v1.37.2"
    assert plane.client().get("/version")["gitVersion"] == "v1.37.2"
    answer = plane.kubectl("version")
    assert "Client Version: v1.37.2" in answer.stdout
    assert "Server Version: v1.37.2" in answer.stdout
    assert set(plane.pids) == {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}


def test_the_scheduler_gives_devices_to_pods_and_the_controller_counts_them(plane: ControlPlane) -> None:
    client = plane.client()
    plane.add_namespace("plane-dra")
    plane.add_node("plane-dra")
    publish(client, "plane-dra.example.com", "plane-dra", devices=3)
    request = {"name": "gpu", "exactly": {"deviceClassName": "plane-dra.example.com"}}
    claims = "/apis/resource.k8s.io/v1/namespaces/plane-dra"
    template = {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    client.post(f"{claims}/resourceclaimtemplates", template)

    pods = "/api/v1/namespaces/plane-dra/pods"
    client.post(pods, pod("by-resource", limits={"plane-dra.example.com/gpu": "1"}))
    client.post(pods, pod("by-claim", template="one"))
    until("both bound", lambda: {each["spec"].get("nodeName") for each in client.get(pods)["items"]} == {"plane-dra"})

    [pool] = pool_status(client, "plane-dra.example.com")["pools"]
    assert (pool["totalDevices"], pool["allocatedDevices"], pool["availableDevices"]) == (3, 2, 1)


def test_a_device_plugins_resource_is_scheduled_by_the_nodes_own_number(plane: ControlPlane) -> None:
    plane.add_namespace("plane-plugin")
    plane.add_node("plane-plugin", extended={"plane-plugin.example.com/gpu": "1"})
    client, pods = plane.client(), "/api/v1/namespaces/plane-plugin/pods"
    client.post(pods, pod("first", limits={"plane-plugin.example.com/gpu": "1"}))
    until("first bound", lambda: client.get(f"{pods}/first")["spec"].get("nodeName") == "plane-plugin")
    client.post(pods, pod("second", limits={"plane-plugin.example.com/gpu": "1"}))
    until("second refused", lambda: client.get(f"{pods}/second")["status"].get("conditions"))
    assert "nodeName" not in client.get(f"{pods}/second")["spec"]


def test_a_service_account_may_do_what_its_role_says_and_no_more(plane: ControlPlane) -> None:
    plane.add_namespace("plane-rights")
    kubeconfig = plane.kubeconfig_for_token(plane.service_account_token("plane-rights", "default"))
    account = "--serviceaccount=plane-rights:default"
    before = plane.kubectl("get", "resourceslices", kubeconfig=kubeconfig)
    assert "system:serviceaccount:plane-rights:default" in before.stderr
    assert before.returncode
    plane.kubectl("create", "clusterrole", "plane-rights", "--verb=list", "--resource=resourceslices.resource.k8s.io")
    plane.kubectl("create", "clusterrolebinding", "plane-rights", "--clusterrole=plane-rights", account)
    until("the right", lambda: plane.kubectl("get", "resourceslices", kubeconfig=kubeconfig).returncode == 0)
    assert plane.kubectl("get", "nodes", kubeconfig=kubeconfig).returncode


def pool_counts(status: Json) -> list[Json]:
    return [{name: pool[name] for name in pool if name.endswith(("Name", "Devices"))} for pool in status["pools"]]


def test_a_plane_filled_with_the_example_counts_what_the_example_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = [
        each for each in yaml.safe_load_all((EXAMPLE / "pool-status.yaml").read_text()) if each and "status" in each
    ]
    started = time.monotonic()
    with ControlPlane(tmp_path) as own:
        ready = time.monotonic()
        fill(own, EXAMPLE)
        filled = time.monotonic()
        for each in counted:
            assert pool_counts(pool_status(own.client(), each["spec"]["driver"])) == pool_counts(each["status"])
        stopping = time.monotonic()
    stopped = time.monotonic()
    with capsys.disabled():
        print(  # noqa: T201 - how long it took is worth a line in every run
            f"\ncontrol plane: ready in {ready - started:.1f} s, filled in {filled - ready:.1f} s,"
            f" stopped in {stopped - stopping:.1f} s"
        )


def test_an_outage_of_the_api_server_forgets_nothing(tmp_path: Path) -> None:
    with ControlPlane(tmp_path, scheduler=False) as own:
        own.add_node("kept")
        before = own.pids, own.server
        own.stop_apiserver()
        assert own.kubectl("get", "nodes").returncode
        own.start_apiserver()
        assert own.client().get("/api/v1/nodes/kept")["metadata"]["name"] == "kept"
        assert own.server == before[1]
        assert {program for program in own.pids if own.pids[program] != before[0][program]} == {"kube-apiserver"}


def test_nothing_is_left_running(tmp_path: Path) -> None:
    own = ControlPlane(tmp_path, feature_gates={}, runtime_config=[], scheduler=False)
    pids = own.pids
    assert set(pids) == {"etcd", "kube-apiserver", "kube-controller-manager"}
    with pytest.raises(Refused) as refusal:
        own.client().get(STATUSES)
    assert refusal.value.status == 404
    own.stop()
    for pid in pids.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    own.stop()  # once more does no harm


def test_the_playground_gives_a_kubeconfig_and_ends_with_everything(tmp_path: Path) -> None:
    (tmp_path / "class.yaml").write_text("{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}}")
    command = [sys.executable, "-m", "tests.controlplane", str(tmp_path)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as playground:
        try:
            assert playground.stdout
            export = next(line for line in playground.stdout if line.startswith("export "))
            kubeconfig = export.strip().removeprefix("export KUBECONFIG=")
            answer = subprocess.run(
                [binaries() / "kubectl", "get", "deviceclasses", "--output=name", f"--kubeconfig={kubeconfig}"],
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            playground.terminate()
    assert (answer.stdout, answer.stderr) == ("deviceclass.resource.k8s.io/gpu\n", "")
    assert playground.returncode == 0
    directory = Path(kubeconfig).parent
    assert not directory.exists()
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(directory) not in commands
