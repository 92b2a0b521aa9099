"""The chart's objects on a real API server: it takes them all, calls what it should, and has nothing to change back."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chart.calls import GPU, PODS, WORKLOADS, asking, pod
from tests.chart.installed import as_list, installed, known
from tests.chart.recording import Recorder
from tests.chart.rendering import CHART, HELMS, VALUE_SETS, Json, helm
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}


def label(plane: ControlPlane, namespace: str, labels: dict[str, str | None]) -> None:
    plane.client().patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})


# --- Taken ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def restricted(plane: ControlPlane) -> str:
    """A namespace that takes only pods of the level restricted, with the accounts of the hooks."""
    namespace = "chart-restricted"
    plane.add_namespace(namespace)
    label(plane, namespace, dict(RESTRICTED))
    for name in ("vacancy-selftest", "capacity-selftest"):
        plane.client().post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    return namespace


@pytest.mark.parametrize("values", VALUE_SETS, ids=lambda path: path.stem)
def test_the_api_server_takes_every_object_without_a_warning(
    plane: ControlPlane, restricted: str, values: Path
) -> None:
    items = known(None, restricted, f"--values={values}")
    run = plane.kubectl(
        "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", input=as_list(items)
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert len(run.stdout.splitlines()) == len(items)


@pytest.mark.parametrize("program", HELMS)
def test_the_notes_have_nothing_to_warn_of_on_this_cluster(plane: ControlPlane, program: str) -> None:
    cluster = f"--kubeconfig={plane.kubeconfig}"
    printed = helm(program, "install", "vacancy-notes", str(CHART), cluster, "--namespace=default", "--dry-run=server")
    _, _, notes = printed.partition("NOTES:")
    assert notes.strip().startswith("READ THIS FIRST.")
    assert "WARNING" not in notes


# --- Called -----------------------------------------------------------------------------------------------------------

COLLECTIONS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "ReplicationController": "/api/v1/namespaces/{}/replicationcontrollers",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
}

ASKING, _ = PODS["an extended resource"]


def try_to_create(plane: ControlPlane, item: Json, namespace: str) -> None:
    """A dry run, which asks the webhooks as a real one does."""
    plane.client().post(f"{COLLECTIONS[item['kind']].format(namespace)}?dryRun=All", item)


@pytest.fixture(scope="module")
def recorder(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    """The chart's webhooks, default mode warn, send to this."""
    plane.add_namespace("chart-called")
    with Recorder(tmp_path_factory.mktemp("recorder")) as recorder:
        values = {
            "mode": "warn",
            "tls": {"mode": "existing-secret", "caBundle": recorder.authority},
            "webhook": {"url": recorder.url, "failurePolicy": "Fail", "timeoutSeconds": 30},
        }
        items = known(values, "chart-vacancy", release="called-vacancy")
        with installed(plane, [item for item in items if item["kind"] == "ValidatingWebhookConfiguration"]):

            def is_called() -> bool:
                try_to_create(plane, ASKING, "chart-called")
                return bool(recorder.paths("chart-called"))

            until("webhooks in the way", is_called)
            yield recorder


@pytest.mark.parametrize(("item", "called"), PODS.values(), ids=PODS)
def test_pods_that_leave_the_api_server(plane: ControlPlane, recorder: Recorder, item: Json, called: bool) -> None:  # noqa: FBT001 - a row
    try_to_create(plane, item, "chart-called")
    assert recorder.paths("chart-called") == (["/validate/warn"] if called else [])


@pytest.mark.parametrize(("item", "called"), WORKLOADS.values(), ids=WORKLOADS)
def test_workloads_that_leave_the_api_server(plane: ControlPlane, recorder: Recorder, item: Json, called: bool) -> None:  # noqa: FBT001 - a row
    try_to_create(plane, item, "chart-called")
    assert recorder.paths("chart-called") == (["/validate-workload"] if called else [])


def test_a_change_of_a_workload_s_spec_is_asked_about_and_no_other_update(
    plane: ControlPlane, recorder: Recorder
) -> None:
    client = plane.client()
    deployment, _ = WORKLOADS["a Deployment"]
    paths = {}
    for item in (deployment | {"spec": deployment["spec"] | {"replicas": 0}}, ASKING):
        collection = COLLECTIONS[item["kind"]].format("chart-called")
        client.post(collection, item | {"metadata": {"name": "updated", "labels": {"app": "a"}}})
        paths[item["kind"]] = f"{collection}/updated"
    until("generation seen", lambda: client.get(paths["Deployment"])["status"].get("observedGeneration"))
    assert set(recorder.paths("chart-called")) == {"/validate/warn", "/validate-workload"}
    for path in paths.values():
        client.patch(path, {"metadata": {"annotations": {"a": "b"}}})
    assert recorder.paths("chart-called") == []
    client.patch(paths["Deployment"], {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}})
    # Perhaps twice: a patch that meets a write of the controller is tried again, and asked about again.
    assert set(recorder.paths("chart-called")) == {"/validate-workload"}
    for path in paths.values():
        client.delete(path, gracePeriodSeconds=0)


@pytest.mark.parametrize(
    ("mode", "paths"),
    [
        (None, ["/validate/warn"]),
        ("nonsense", ["/validate/warn"]),
        ("enforce", ["/validate/enforce"]),
        ("warn", ["/validate/warn"]),
        ("audit", ["/validate/audit"]),
        ("off", []),
    ],
)
def test_the_namespace_s_label_chooses_the_mode(
    plane: ControlPlane, recorder: Recorder, mode: str | None, paths: list[str]
) -> None:
    namespace = f"chart-mode-{str(mode).lower()}"
    plane.add_namespace(namespace)
    label(plane, namespace, {"gpu-vacancy.dev/mode": mode})

    def asked() -> list[str]:
        try_to_create(plane, ASKING, namespace)
        return recorder.paths(namespace)

    until("label seen", lambda: asked() == paths)
    assert asked() == paths


def test_namespaces_of_kubernetes_are_left_alone(plane: ControlPlane, recorder: Recorder) -> None:
    for namespace in ("kube-system", "kube-public", "kube-node-lease"):
        item = pod(asking(GPU), automountServiceAccountToken=False)
        plane.client().http.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", json=item)
        assert recorder.paths(namespace) == []


# --- Left alone -------------------------------------------------------------------------------------------------------

SELF_WRITTEN = ("ValidatingWebhookConfiguration", "Secret")


def test_a_gitops_tool_finds_no_difference_after_we_wrote_what_is_ours(plane: ControlPlane) -> None:
    namespace, release = "chart-gitops", "gitops-vacancy"
    plane.add_namespace(namespace)
    # Called by nobody: no namespace has this label.
    values = {"webhook": {"objectSelector": {"matchLabels": {"chart-gitops": "nothing"}}}}
    items = [item for item in known(values, namespace, release=release) if item["kind"] in SELF_WRITTEN]
    with installed(plane, items):
        write_what_is_ours(plane, namespace, release)
        text = as_list(items)
        for manager in ("argocd-controller", "helm"):
            options = ("--server-side", f"--field-manager={manager}", "-f", "-")
            difference = plane.kubectl("diff", *options, input=text)
            assert (difference.returncode, difference.stdout, difference.stderr) == (0, "", "")
            for _ in range(2):
                assert plane.kubectl("apply", *options, input=text).returncode == 0
        assert what_is_ours(plane, namespace, release) == {"YXV0aG9yaXR5"}


def test_a_chart_that_rendered_the_ca_bundle_would_be_a_conflict(plane: ControlPlane) -> None:
    """So the test above can fail: an empty field is a field."""
    namespace, release = "chart-conflict", "conflict-vacancy"
    plane.add_namespace(namespace)
    values = {"webhook": {"objectSelector": {"matchLabels": {"chart-gitops": "nothing"}}}}
    items = [item for item in known(values, namespace, release=release) if item["kind"] in SELF_WRITTEN]
    for item in items:
        for webhook in item.get("webhooks", ()):
            webhook["clientConfig"]["caBundle"] = ""
    with installed(plane, items):
        write_what_is_ours(plane, namespace, release)
        run = plane.kubectl("apply", "--server-side", "--field-manager=helm", "-f", "-", input=as_list(items))
        assert run.returncode == 1
        assert 'conflicts with "vacancy-certificates"' in run.stderr


def write_what_is_ours(plane: ControlPlane, namespace: str, release: str) -> None:
    """As app/cluster/certificate_secret.py does."""
    client, query = plane.client(), "?fieldManager=vacancy-certificates"
    text = base64.b64encode(b"authority").decode()
    client.patch(f"/api/v1/namespaces/{namespace}/secrets/{release}-tls{query}", {"data": {"ca.crt": text}})
    for path in configurations(release):
        webhooks = [
            {"name": webhook["name"], "clientConfig": {"caBundle": text}} for webhook in client.get(path)["webhooks"]
        ]
        headers = {"Content-Type": "application/strategic-merge-patch+json"}
        answer = client.http.patch(f"{path}{query}", content=json.dumps({"webhooks": webhooks}), headers=headers)
        assert answer.is_success, answer.text


def what_is_ours(plane: ControlPlane, namespace: str, release: str) -> set[str]:
    client = plane.client()
    bundles = [
        webhook["clientConfig"]["caBundle"]
        for path in configurations(release)
        for webhook in client.get(path)["webhooks"]
    ]
    assert len(bundles) == 4
    return {*bundles, client.get(f"/api/v1/namespaces/{namespace}/secrets/{release}-tls")["data"]["ca.crt"]}


def configurations(release: str) -> list[str]:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    return [f"{path}/{release}", f"{path}/{release}-workloads"]
