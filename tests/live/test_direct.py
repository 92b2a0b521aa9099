"""The commands with `--direct`: a person's kubeconfig, the cluster as it is, nothing created."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.cluster.rights import CORE, WITNESS
from tests.controlplane.plane import ControlPlane
from tests.live.scene import Scene
from tests.live.serving import account


def vacancy(kubeconfig: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", *arguments, "--direct", "--kubeconfig", str(kubeconfig)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)


POD = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"direct.example.com/gpu": "1"}}}]},
    }
)


def test_the_commands_read_the_cluster_itself(plane: ControlPlane) -> None:
    plane.add_node("direct-n1")
    resources = "/apis/resource.k8s.io/v1"
    plane.client().post(
        f"{resources}/deviceclasses",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "direct"},
            "spec": {
                "extendedResourceName": "direct.example.com/gpu",
                "selectors": [{"cel": {"expression": "device.driver == 'direct.example.com'"}}],
            },
        },
    )
    plane.client().post(
        f"{resources}/resourceslices",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "direct-n1"},
            "spec": {
                "driver": "direct.example.com",
                "nodeName": "direct-n1",
                "pool": {"name": "direct-n1", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            },
        },
    )
    # Who could create what the commands must not: CORE holds the rights of a server.
    kubeconfig = account(plane, "direct", (CORE, WITNESS))
    found = vacancy(kubeconfig, "check", "-f", "-", "-o", "json", text=POD)
    assert found.returncode == 0, found.stderr
    (check,) = json.loads(found.stdout)["checks"]
    assert (check["verdict"], check["reason"], check["source"]) == ("room", "HasRoom", "witness")
    assert (check["asks"][0]["free"], check["asks"][0]["total"]) == (1, 1)

    capacity = json.loads(vacancy(kubeconfig, "capacity", "-o", "json").stdout)
    assert [row["available"] for row in capacity["classes"] if row["name"] == "direct"] == [1]
    assert "direct.example.com" in vacancy(kubeconfig, "explain", "direct.example.com/gpu").stdout
    asked = [event for event in plane.audit("default") if event["user"]["username"].endswith(":direct")]
    done = {event["verb"] for event in asked if event.get("objectRef", {}).get("apiGroup") == "resource.k8s.io"}
    assert done == {"list", "watch"}


def test_all_devices_are_counted_however_many_there_are(plane: ControlPlane) -> None:
    scene = Scene(plane)
    scene.add_class()
    for pool in "abc":
        scene.publish(128, pool=pool)
    kubeconfig, text = account(plane, "direct-many", (CORE, WITNESS)), json.dumps(scene.pod("asks"))
    found = vacancy(kubeconfig, "check", "-f", "-", "-o", "json", text=text)
    scene.close()
    asks = json.loads(found.stdout)["checks"][0]["asks"]
    assert [(ask["free"], ask["total"]) for ask in asks] == [(384, 384)]


def test_who_may_read_devices_alone_gets_unknown_and_is_told_why(plane: ControlPlane) -> None:
    scene = Scene(plane)
    scene.add_class()
    scene.publish(1)
    kubeconfig, text = account(plane, "direct-devices", (CORE,)), json.dumps(scene.pod("asks"))
    found = vacancy(kubeconfig, "check", "-f", "-", "-o", "json", "--strict", text=text)
    scene.close()
    assert found.returncode == 5, found.stderr
    assert json.loads(found.stdout)["checks"][0]["reason"] == "NoSource"
    assert "not everything may be read" in found.stderr
    assert "403" in found.stderr


@pytest.mark.parametrize(
    "arguments",
    [("capacity",), ("explain", "direct.example.com/gpu"), ("check", "-f", "-")],
    ids=lambda words: words[0],
)
def test_who_may_read_no_devices_gets_no_answer_and_one_line(plane: ControlPlane, arguments: tuple[str, ...]) -> None:
    plane.add_namespace(f"direct-{arguments[0]}")
    token = plane.service_account_token(f"direct-{arguments[0]}", "default")
    found = vacancy(plane.kubeconfig_for_token(token), *arguments, text=POD)
    assert (found.returncode, found.stdout) == (3, "")
    assert found.stderr == (
        "vacancy: no answer: deviceclasses and resourceslices: you may not list them, or the cluster does not serve "
        "them; without --direct a Vacancy server is asked\n"
    )


def test_a_cluster_that_does_not_answer_is_no_answer(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n",
        "utf-8",
    )
    found = vacancy(config, "capacity")
    assert found.returncode == 3
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1, found.stderr
