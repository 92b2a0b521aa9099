"""The pods that workload objects make."""

import json
from typing import Any

import msgspec
import pytest

from app.dra.objects import Pod, Toleration
from app.dra.workloads import Workload, as_admitted, pod_of_workload

TEMPLATE = {
    "metadata": {"creationTimestamp": None, "labels": {"app": "train"}, "annotations": {"note": "x"}},
    "spec": {"containers": [{"resources": {"limits": {"example.com/gpu": "1"}}}], "nodeSelector": {"zone": "a"}},
}


def workload(kind: str, api_version: str, spec: dict[str, Any], **metadata: object) -> Workload | None:
    document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "train", **metadata}, "spec": spec}
    return pod_of_workload(kind, json.dumps(document).encode())


KINDS: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "three replicas of a Deployment": (
        "Deployment",
        "apps/v1",
        {"replicas": 3, "template": TEMPLATE},
        3,
    ),
    "a Deployment that does not say how many": ("Deployment", "apps/v1", {"template": TEMPLATE}, 1),
    "a Deployment scaled to zero": ("Deployment", "apps/v1", {"replicas": 0, "template": TEMPLATE}, 0),
    "a ReplicaSet": ("ReplicaSet", "apps/v1", {"replicas": 2, "template": TEMPLATE}, 2),
    "a StatefulSet with volumes": (
        "StatefulSet",
        "apps/v1",
        {"replicas": 2, "template": TEMPLATE, "volumeClaimTemplates": [{"spec": {"resources": {}}}]},
        2,
    ),
    "a ReplicationController": (
        "ReplicationController",
        "v1",
        {"replicas": 4, "selector": {"app": "train"}, "template": TEMPLATE},
        4,
    ),
    "a Job": ("Job", "batch/v1", {"template": TEMPLATE}, 1),
    "a Job of five at a time": (
        "Job",
        "batch/v1",
        {"parallelism": 5, "completions": 9, "template": TEMPLATE},
        5,
    ),
    "a CronJob, through the Jobs it makes": (
        "CronJob",
        "batch/v1",
        {"schedule": "@daily", "jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}},
        2,
    ),
}


@pytest.mark.parametrize("sentence", KINDS)
def test_the_template_is_judged_as_a_pod(sentence: str) -> None:
    kind, api_version, spec, replicas = KINDS[sentence]
    found = workload(kind, api_version, spec, namespace="lab")
    assert found is not None
    assert (found.name, found.namespace, found.replicas) == ("train", "lab", replicas)
    assert found.pod.metadata.labels == {"app": "train"}
    assert found.pod.metadata.annotations == {"note": "x"}
    assert found.pod.metadata.owner_references is None
    assert found.pod.spec.node_selector == {"zone": "a"}
    resources = found.pod.spec.containers[0].resources
    assert resources is not None
    assert resources.limits == {"example.com/gpu": "1"}


KUEUE = {"kueue.x-k8s.io/queue-name": "team"}


@pytest.mark.parametrize(
    ("kind", "labels", "of_jobs", "marked"),
    [
        ("Job", KUEUE, {}, True),
        ("CronJob", {}, KUEUE, True),
        ("CronJob", KUEUE, {}, False),
    ],
    ids=["a Job", "the Jobs of a CronJob", "a CronJob, whose own label no Job has"],
)
def test_who_is_in_a_queue_of_kueue_has_pods_that_are(
    kind: str, labels: dict[str, str], of_jobs: dict[str, str], *, marked: bool
) -> None:
    spec: dict[str, Any] = {"template": TEMPLATE}
    if kind == "CronJob":
        spec = {"jobTemplate": {"metadata": {"labels": of_jobs}, "spec": spec}}
    found = workload(kind, "batch/v1", spec, labels=labels)
    assert found is not None
    assert (KUEUE.items() <= (found.pod.metadata.labels or {}).items()) is marked


OTHER = {**TEMPLATE, "metadata": {"labels": {"app": "other"}}}
CHANGES: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None, int]] = {
    # kind, spec, spec until now -> pods that this makes
    "a new object makes all its pods": ("Deployment", {"replicas": 3, "template": TEMPLATE}, None, 3),
    "an unchanged one makes none": (
        "Deployment",
        {"replicas": 3, "template": TEMPLATE},
        {"replicas": 3, "template": TEMPLATE},
        0,
    ),
    "what does not concern its pods": (
        "Deployment",
        {"replicas": 3, "template": TEMPLATE, "minReadySeconds": 5},
        {"replicas": 3, "template": TEMPLATE},
        0,
    ),
    "more replicas": ("StatefulSet", {"replicas": 5, "template": TEMPLATE}, {"replicas": 3, "template": TEMPLATE}, 2),
    "fewer replicas": ("StatefulSet", {"replicas": 1, "template": TEMPLATE}, {"replicas": 3, "template": TEMPLATE}, 0),
    "another template makes all of them anew": (
        "Deployment",
        {"replicas": 3, "template": OTHER},
        {"replicas": 3, "template": TEMPLATE},
        3,
    ),
    "a suspended Job": ("Job", {"suspend": True, "template": TEMPLATE}, None, 0),
    "a Job that is not suspended any more": (
        "Job",
        {"suspend": False, "parallelism": 2, "template": TEMPLATE},
        {"suspend": True, "parallelism": 2, "template": TEMPLATE},
        2,
    ),
    "a Job never starts more than it wants to complete": (
        "Job",
        {"parallelism": 5, "completions": 2, "template": TEMPLATE},
        None,
        2,
    ),
    "a suspended CronJob": (
        "CronJob",
        {"suspend": True, "jobTemplate": {"spec": {"template": TEMPLATE}}},
        None,
        0,
    ),
    "a CronJob at another time": (
        "CronJob",
        {"schedule": "@hourly", "jobTemplate": {"spec": {"template": TEMPLATE}}},
        {"schedule": "@daily", "jobTemplate": {"spec": {"template": TEMPLATE}}},
        0,
    ),
    "a CronJob with another template": (
        "CronJob",
        {"jobTemplate": {"spec": {"parallelism": 2, "template": OTHER}}},
        {"jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}},
        2,
    ),
}


@pytest.mark.parametrize("sentence", CHANGES)
def test_only_pods_that_are_yet_to_come_count(sentence: str) -> None:
    kind, spec, before, pods = CHANGES[sentence]
    api_version = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    head = {"apiVersion": api_version, "kind": kind}
    old = None if before is None else json.dumps(head | {"spec": before}).encode()
    found = pod_of_workload(kind, json.dumps(head | {"spec": spec}).encode(), old)
    assert found is not None
    assert found.new_pods == pods


OTHERS: dict[str, tuple[str, str]] = {
    "a Pod makes no pods": ("Pod", "v1"),
    "a DaemonSet is out of scope anyway": ("DaemonSet", "apps/v1"),
    "Volcano's Job has another shape": ("Job", "batch.volcano.sh/v1alpha1"),
    "OpenKruise's StatefulSet": ("StatefulSet", "apps.kruise.io/v1beta1"),
    "a version no server serves any more": ("Deployment", "extensions/v1beta1"),
    "no apiVersion": ("Deployment", ""),
    "kinds are case sensitive": ("deployment", "apps/v1"),
}


@pytest.mark.parametrize("sentence", OTHERS)
def test_other_objects_are_no_workload(sentence: str) -> None:
    kind, api_version = OTHERS[sentence]
    assert workload(kind, api_version, {"template": "of a shape that cannot be read"}) is None


def test_a_generated_name_stands_for_a_missing_one() -> None:
    found = workload("Job", "batch/v1", {"template": TEMPLATE}, name="", generateName="train-")
    assert found is not None
    assert found.name == "train-"
    assert found.namespace == ""


@pytest.mark.parametrize(("controller", "want"), [(True, True), (False, False), (None, False)])
def test_whether_another_controller_made_it(controller: bool | None, want: bool) -> None:  # noqa: FBT001
    owner = {"kind": "Deployment", "name": "d", "uid": "u", "controller": controller}
    found = workload("ReplicaSet", "apps/v1", {"template": TEMPLATE}, ownerReferences=[owner])
    assert found is not None
    assert found.controlled is want


def test_without_metadata() -> None:
    document = json.dumps({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {"containers": []}}}})
    found = pod_of_workload("Job", document.encode())
    assert found is not None
    assert found.name == ""


UNREADABLE: dict[str, bytes] = {
    "no spec": b'{"apiVersion":"apps/v1"}',
    "no template": b'{"apiVersion":"apps/v1","spec":{"replicas":3}}',
    "a template without a spec": b'{"apiVersion":"apps/v1","spec":{"template":{}}}',
    "containers that are no list": b'{"apiVersion":"apps/v1","spec":{"template":{"spec":{"containers":{}}}}}',
    "replicas in words": b'{"apiVersion":"apps/v1","spec":{"replicas":"3","template":{"spec":{"containers":[]}}}}',
    "cut off": b'{"apiVersion":"apps/v1","spec":{"template":',
}


@pytest.mark.parametrize("sentence", UNREADABLE)
def test_an_unreadable_workload_is_an_error_not_an_absence(sentence: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        pod_of_workload("Deployment", UNREADABLE[sentence])


def amounts(*names: str) -> dict[str, Any]:
    return {"resources": {"requests": dict.fromkeys(names, "1")}}


BY_DEFAULT = [
    Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
    Toleration("node.kubernetes.io/unreachable", "Exists", "", "NoExecute"),
]
"""What DefaultTolerationSeconds adds to nearly every pod."""

TOLERATED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "every extended resource, by name": (
        {"containers": [amounts("example.com/gpu", "cpu"), amounts("a.com/b")]},
        ["a.com/b", "example.com/gpu"],
    ),
    "those of init containers, and those in limits alone": (
        {"containers": [{"resources": {"limits": {"a.com/b": "1"}}}], "initContainers": [amounts("example.com/gpu")]},
        ["a.com/b", "example.com/gpu"],
    ),
    "a zero too: the plugin looks at names": (
        {"containers": [{"resources": {"requests": {"a.com/b": "0"}}}]},
        ["a.com/b"],
    ),
    "nothing for what every node has": ({"containers": [amounts("cpu", "hugepages-2Mi")]}, []),
    "nothing for a pod that asks for nothing": ({"containers": [{}]}, []),
    "everything that its RuntimeClass may tolerate": ({"containers": [{}], "runtimeClassName": "gpu"}, [""]),
}


@pytest.mark.parametrize("sentence", TOLERATED)
def test_a_pod_is_judged_with_the_tolerations_admission_may_add(sentence: str) -> None:
    spec, names = TOLERATED[sentence]
    pod = msgspec.json.decode(json.dumps({"spec": spec}), type=Pod)
    assert as_admitted(pod).spec.tolerations == [*BY_DEFAULT, *(Toleration(name, "Exists") for name in names)]


@pytest.mark.parametrize(
    ("spec", "priority"),
    [({}, None), ({"priorityClassName": "high"}, 1), ({"priorityClassName": "low", "priority": -5}, -5)],
)
def test_a_priority_that_is_only_named_may_be_high(spec: dict[str, Any], priority: int | None) -> None:
    pod = msgspec.json.decode(json.dumps({"spec": {"containers": [{}], **spec}}), type=Pod)
    assert as_admitted(pod).spec.priority == priority


def test_its_own_tolerations_stay() -> None:
    own = [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}]
    template = {"spec": {"containers": [amounts("example.com/gpu")], "tolerations": own}}
    found = workload("Deployment", "apps/v1", {"template": template})
    assert found is not None
    assert found.pod.spec.tolerations == [
        Toleration("team", "Exists", "", "NoSchedule"),
        *BY_DEFAULT,
        Toleration("example.com/gpu", "Exists"),
    ]
