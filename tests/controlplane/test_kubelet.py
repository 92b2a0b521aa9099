"""Pods really run: they are probed, restarted, reached by Service, and gone when they are deleted."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.client import Json
from tests.controlplane.kubelet import Kubelet
from tests.controlplane.plane import ControlPlane
from tests.controlplane.pod import Program
from tests.controlplane.waiting import until

PYTHON = "registry.example.com/python"
WEB = "registry.example.com:5000/web"
NAMESPACE = "kubelet"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"

PROGRAMS = {
    PYTHON: Program([sys.executable, "-c"]),
    WEB: Program([sys.executable, "-m", "http.server", "--bind={ip}", "8000"], {"GREETING": "hello from {ip}"}),
}


@pytest.fixture(scope="module")
def kubelet(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    plane.add_namespace(NAMESPACE)
    plane.add_node("kubelet")
    with Kubelet(plane, tmp_path_factory.mktemp("kubelet") / "pods", PROGRAMS) as kubelet:
        yield kubelet
    plane.client().delete("/api/v1/nodes/kubelet")


def python(name: str, script: str, **more: object) -> Json:
    """A pod that runs a script."""
    container: Json = {"name": "main", "image": f"{PYTHON}:1@sha256:{'0' * 64}", "args": [script]}
    container |= {key: more.pop(key) for key in ("env", "volumeMounts", "readinessProbe") if key in more}
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [container], **more}}


def ended(plane: ControlPlane, name: str) -> str:
    """The phase in which a pod has ended."""

    def phase() -> str | None:
        found: str = plane.client().get(f"{PODS}/{name}")["status"]["phase"]
        return found if found in {"Succeeded", "Failed"} else None

    return until(f"{name} ended", phase)


def is_ready(pod: Json) -> bool:
    return any(
        (each["type"], each["status"]) == ("Ready", "True") for each in pod.get("status", {}).get("conditions", ())
    )


def test_a_pod_that_ends_has_printed_what_its_volumes_and_fields_hold(plane: ControlPlane, kubelet: Kubelet) -> None:
    client = plane.client()
    client.post(f"/api/v1/namespaces/{NAMESPACE}/secrets", {"metadata": {"name": "key"}, "stringData": {"k": "secret"}})
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    script = f"""
import os, pathlib
print(pathlib.Path("/kubelet-key/k").read_text(), pathlib.Path("{account}/namespace").read_text())
print(pathlib.Path("{account}/token").read_text().count("."), "BEGIN" in pathlib.Path("{account}/ca.crt").read_text())
print(os.environ["NAME"], os.environ["KUBERNETES_SERVICE_PORT"], os.environ.get("XDG_CACHE_HOME"))
"""
    env = [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    volumes = [{"name": "key", "secret": {"secretName": "key"}}]
    mounts = [{"name": "key", "mountPath": "/kubelet-key"}]
    client.post(PODS, python("reads", script, env=env, volumes=volumes, volumeMounts=mounts))
    assert ended(plane, "reads") == "Succeeded", kubelet.log(NAMESPACE, "reads")
    port = plane.server.rpartition(":")[2]
    assert kubelet.log(NAMESPACE, "reads") == f"secret {NAMESPACE}\n2 True\nreads {port} None\n"
    assert not Path("/kubelet-key").exists()


def test_a_job_whose_pod_fails_has_failed(plane: ControlPlane, kubelet: Kubelet) -> None:
    template = python("fails", "raise SystemExit(3)")
    jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    job = {"metadata": {"name": "fails"}, "spec": {"backoffLimit": 0, "template": {"spec": template["spec"]}}}
    plane.client().post(jobs, job)
    until("failed", lambda: plane.client().get(f"{jobs}/fails")["status"].get("failed") == 1)
    [pod] = [each for each in plane.client().get(PODS)["items"] if each["metadata"]["name"].startswith("fails-")]
    [container] = pod["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 3
    assert kubelet.log(NAMESPACE, pod["metadata"]["name"]) == ""
    plane.client().delete(f"{jobs}/fails", propagationPolicy="Background")


def test_a_container_that_ends_is_started_again(plane: ControlPlane, kubelet: Kubelet) -> None:
    plane.client().post(PODS, python("again", "print('once', flush=True)", restartPolicy="Always"))
    until("started twice", lambda: kubelet.log(NAMESPACE, "again") == "once\nonce\n")
    plane.client().delete(f"{PODS}/again")


def test_pods_are_reached_by_service_while_they_are_ready_and_end_in_order(
    plane: ControlPlane, kubelet: Kubelet
) -> None:
    client = plane.client()
    labels = {"app": "web"}
    probe = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1}
    port = {"name": "http", "containerPort": 8000}
    container = {"name": "main", "image": f"{WEB}:1", "ports": [port], "startupProbe": probe, "readinessProbe": probe}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployments = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    client.post(deployments, {"metadata": {"name": "web"}, "spec": spec})
    service = {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    client.post(f"/api/v1/namespaces/{NAMESPACE}/services", {"metadata": {"name": "web"}, "spec": service})

    until("both ready", lambda: client.get(f"{deployments}/web")["status"].get("readyReplicas") == 2)
    by_name = f"/api/v1/namespaces/{NAMESPACE}/services/http:web:http/proxy/"
    until("reached through the API server", lambda: client.http.get(by_name).is_success)
    script = f"import urllib.request as r; print(r.urlopen('http://web.{NAMESPACE}.svc/').status)"
    client.post(PODS, python("asks", script))
    assert ended(plane, "asks") == "Succeeded", kubelet.log(NAMESPACE, "asks")
    assert kubelet.log(NAMESPACE, "asks") == "200\n"

    client.delete(f"{deployments}/web", propagationPolicy="Background")
    until("no pod left", lambda: not client.get(PODS, labelSelector="app=web")["items"])
    client.delete(f"/api/v1/namespaces/{NAMESPACE}/services/web")


def test_a_pod_is_given_its_grace_period_and_no_more(plane: ControlPlane, kubelet: Kubelet) -> None:
    deaf = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: print("no", flush=True))
print(os.getpid(), flush=True)
while True: time.sleep(9)
"""
    plane.client().post(PODS, python("deaf", deaf, terminationGracePeriodSeconds=1))
    pid = until("running", lambda: kubelet.log(NAMESPACE, "deaf"))
    plane.client().delete(f"{PODS}/deaf")
    until("gone", lambda: plane.client().http.get(f"{PODS}/deaf").status_code == 404)
    assert kubelet.log(NAMESPACE, "deaf") == f"{pid}no\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_pod_that_is_deleted_at_once_takes_its_process_along(plane: ControlPlane, kubelet: Kubelet) -> None:
    plane.client().post(PODS, python("sudden", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"))
    pid = int(until("running", lambda: kubelet.log(NAMESPACE, "sudden")))
    plane.client().delete(f"{PODS}/sudden", gracePeriodSeconds=0)
    until("ended", lambda: not Path(f"/proc/{pid}").exists())


def test_a_pod_of_another_image_stays_pending(plane: ControlPlane, kubelet: Kubelet) -> None:
    pod = python("other", "")
    pod["spec"]["containers"][0]["image"] = "registry.example.com/other:1"
    plane.client().post(PODS, pod)
    until("bound", lambda: plane.client().get(f"{PODS}/other")["spec"].get("nodeName"))
    plane.client().post(PODS, python("another", "pass"))
    ended(plane, "another")  # whatever was before it has been seen
    assert plane.client().get(f"{PODS}/other")["status"]["phase"] == "Pending"
    assert kubelet.log(NAMESPACE, "other") == ""
    plane.client().delete(f"{PODS}/other", gracePeriodSeconds=0)
