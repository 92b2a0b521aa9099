"""Pod templates are found by their shape, and nothing else is."""

import json
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.presubmit.templates import MAX_DEPTH, pod_templates

T = "{spec: {containers: [{name: main, resources: {limits: {example.com/gpu: 1}}}]}}"
"""T! in the tables below; C! is a container without a name."""


def found_in(api_version: str, kind: str, spec: str) -> dict[str, int | None]:
    """Path and replicas of every template."""
    return {each.path: each.replicas for each in pod_templates(api_version, kind, document(spec))}


def pods_of(api_version: str, kind: str, spec: str) -> list[dict[str, Any]]:
    return [json.loads(each.pod) for each in pod_templates(api_version, kind, document(spec))]


def document(spec: str) -> bytes:
    return json.dumps(
        {"metadata": {"name": "x"}, "spec": yaml.safe_load(spec.replace("T!", T).replace("C!", "{image: i}"))}
    ).encode()


KINDS: dict[str, tuple[str, str, str, dict[str, int | None]]] = {
    "a RayCluster: its head, and its workers group by group": (
        "ray.io/v1",
        "RayCluster",
        "{headGroupSpec: {template: T!}, workerGroupSpecs: [{replicas: 3, template: T!}, {template: T!}]}",
        {
            "spec.headGroupSpec.template": None,
            "spec.workerGroupSpecs[0].template": 3,
            "spec.workerGroupSpecs[1].template": None,
        },
    ),
    "a RayJob: the same, deeper, and who submits it": (
        "ray.io/v1",
        "RayJob",
        "{rayClusterSpec: {headGroupSpec: {template: T!}}, submitterPodTemplate: T!}",
        {"spec.rayClusterSpec.headGroupSpec.template": None, "spec.submitterPodTemplate": None},
    ),
    "a PyTorchJob: role by role": (
        "kubeflow.org/v1",
        "PyTorchJob",
        "{pytorchReplicaSpecs: {Master: {replicas: 1, template: T!}, Worker: {replicas: 4, template: T!}}}",
        {"spec.pytorchReplicaSpecs.Master.template": 1, "spec.pytorchReplicaSpecs.Worker.template": 4},
    ),
    "a JobSet: as many Jobs of as many pods": (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        "{replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 4, completions: 3, template: T!}}}]}",
        {"spec.replicatedJobs[0].template.spec.template": 6},
    ),
    "templates of templates, as many times as each says": (
        "a.b/v1",
        "X",
        "{replicas: 2, template: {spec: {replicas: 3, template: {spec: {replicas: 4, template: T!}}}}}",
        {"spec.template.spec.template.spec.template": 24},
    ),
    "a Rollout, as a Deployment": (
        "argoproj.io/v1alpha1",
        "Rollout",
        "{replicas: 5, template: T!}",
        {"spec.template": 5},
    ),
    "a Volcano Job: task by task": (
        "batch.volcano.sh/v1alpha1",
        "Job",
        "{tasks: [{replicas: 2, template: T!}]}",
        {"spec.tasks[0].template": 2},
    ),
    "a LeaderWorkerSet, whose number of groups is none of pods": (
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        "{replicas: 2, leaderWorkerTemplate: {size: 4, leaderTemplate: T!, workerTemplate: T!}}",
        {"spec.leaderWorkerTemplate.leaderTemplate": None, "spec.leaderWorkerTemplate.workerTemplate": None},
    ),
    "a podTemplate": ("flink.apache.org/v1beta1", "FlinkDeployment", "{podTemplate: T!}", {"spec.podTemplate": None}),
    "completions alone: one after the other": ("a.b/v1", "X", "{completions: 5, template: T!}", {"spec.template": 1}),
    "what is scaled to zero": ("a.b/v1", "X", "{replicas: 0, template: T!}", {"spec.template": 0}),
    "numbers that are none": (
        "a.b/v1",
        "X",
        "{replicas: true, completions: '3', template: T!}",
        {"spec.template": None},
    ),
    "a number below zero": ("a.b/v1", "X", "{replicas: -1, template: T!}", {"spec.template": None}),
    "an Argo Workflow: what runs a container": (
        "argoproj.io/v1alpha1",
        "Workflow",
        "{templates: [{dag: {}}, {container: C!}, {script: C!}, {containerSet: {containers: [C!, C!]}}, {http: {}}]}",
        {"spec.templates[1]": None, "spec.templates[2]": None, "spec.templates[3]": None},
    ),
    "a CronWorkflow: the same, deeper": (
        "argoproj.io/v1alpha1",
        "CronWorkflow",
        "{schedule: '@daily', workflowSpec: {templates: [{name: t, container: C!}]}}",
        {"spec.workflowSpec.templates[0]": None},
    ),
}


@pytest.mark.parametrize("sentence", KINDS)
def test_a_template_is_found_with_its_path_and_the_number_beside_it(sentence: str) -> None:
    api_version, kind, spec, paths = KINDS[sentence]
    assert found_in(api_version, kind, spec) == paths


NONE: dict[str, tuple[str, str, str]] = {
    "a kind of Kubernetes itself: they are known": ("apps/v1", "DaemonSet", "{template: T!}"),
    "a kind without a group": ("v1", "PodTemplate", "{template: T!}"),
    "another DaemonSet, each of whose pods is for one node": ("apps.kruise.io/v1alpha1", "DaemonSet", "{template: T!}"),
    "a template of something else": ("cluster.x-k8s.io/v1", "MachineSet", "{template: {spec: {bootstrap: {}}}}"),
    "a virtual machine": ("kubevirt.io/v1", "VirtualMachine", "{template: {spec: {domain: {devices: {}}}}}"),
    "no containers": ("a.b/v1", "X", "{template: {spec: {containers: []}}}"),
    "containers that are no list": ("a.b/v1", "X", "{template: {spec: {containers: {name: a}}}}"),
    "containers without a name": ("a.b/v1", "X", "{template: {spec: {containers: [{image: i}]}}}"),
    "a pattern of a policy": (
        "kyverno.io/v1",
        "ClusterPolicy",
        "{pattern: {template: {spec: {containers: [{name: '*'}]}}}}",
    ),
    "a condition of a policy": ("kyverno.io/v1", "P", "{template: {spec: {containers: [{(name): a}, {name: b}]}}}"),
    "a pod that is no template": ("a.b/v1", "X", "{pod: {spec: {containers: [{name: a}]}}}"),
    "settings for pods, as in Tekton": ("tekton.dev/v1", "TaskRun", "{podTemplate: {nodeSelector: {a: b}}}"),
    "steps in one pod, as in Tekton": ("tekton.dev/v1", "Task", "{steps: [{name: s, image: i}]}"),
    "templates of text": ("a.b/v1", "X", "{templates: [a, {b: c}, {container: {args: []}}, {script: 'echo'}]}"),
    "no spec": ("a.b/v1", "X", "null"),
}


@pytest.mark.parametrize("sentence", NONE)
def test_what_is_no_pod_template_is_left_alone(sentence: str) -> None:
    assert found_in(*NONE[sentence]) == {}


def test_only_below_spec_is_looked_at() -> None:
    other = json.dumps({"status": {"template": yaml.safe_load(T)}, "template": yaml.safe_load(T)}).encode()
    assert list(pod_templates("a.b/v1", "X", other)) == []


@pytest.mark.parametrize("open_", ["{a: ", "["])
def test_what_is_nested_deeper_than_anybody_does_is_not_looked_at(open_: str) -> None:
    def nested(levels: int) -> str:
        return open_ * levels + "{template: T!}" + ("}" if open_ == "{a: " else "]") * levels

    assert len(found_in("a.b/v1", "X", nested(MAX_DEPTH))) == 1
    assert found_in("a.b/v1", "X", nested(MAX_DEPTH + 1)) == {}


def test_a_path_is_printable_and_of_bounded_length() -> None:
    (path,) = found_in("a.b/v1", "X", json.dumps({"\x1b" + "a" * 500: {"template": yaml.safe_load(T)}}))
    assert path.startswith("spec.?aaa")
    assert len(path) == 200


# --- The pod ----------------------------------------------------------------------------------------------------------


def test_the_pod_is_as_it_is_written() -> None:
    template = "{metadata: {labels: {a: b}}, spec: {containers: [{name: m, image: i}], priority: 5}}"
    (pod,) = pods_of("a.b/v1", "X", f"{{template: {template}}}")
    assert pod == yaml.safe_load(template)


SCHEDULERS = {
    "the object's scheduler is the pods'": ("a.b/v1", "{schedulerName: yunikorn, tasks: [{template: T!}]}", "yunikorn"),
    "the pod's own scheduler wins": (
        "a.b/v1",
        "{schedulerName: x, template: {spec: {schedulerName: y, containers: [{name: m}]}}}",
        "y",
    ),
    "Volcano's is Volcano, although nobody says so": (
        "batch.volcano.sh/v1alpha1",
        "{tasks: [{template: T!}]}",
        "volcano",
    ),
    "else it is not said": ("a.b/v1", "{template: T!}", None),
}


@pytest.mark.parametrize(("api_version", "spec", "scheduler"), SCHEDULERS.values(), ids=SCHEDULERS)
def test_who_schedules_the_pods(api_version: str, spec: str, scheduler: str | None) -> None:
    (pod,) = pods_of(api_version, "X", spec)
    assert pod["spec"].get("schedulerName") == scheduler


def test_a_template_of_argo_is_a_pod_with_what_its_workflow_says_of_all() -> None:
    (pod,) = pods_of(
        "argoproj.io/v1alpha1",
        "Workflow",
        "{schedulerName: s, nodeSelector: {zone: a}, tolerations: [{key: k}], podMetadata: {labels: {a: 1, b: 1}}, "
        "templates: [{name: t, metadata: {labels: {b: 2}}, nodeSelector: {zone: b, size: '{{inputs.size}}'}, "
        "container: {image: main}, initContainers: [{name: i}], sidecars: [{name: s}]}]}",
    )
    assert pod == {
        "metadata": {"labels": {"a": 1, "b": 2}, "annotations": {}},
        "spec": {
            "containers": [{"image": "main"}, {"name": "s"}],
            "initContainers": [{"name": "i"}],
            "nodeSelector": {"zone": "b"},
            "tolerations": [{"key": "k"}],
            "schedulerName": "s",
        },
    }


WORDS = "spec template aTemplate templates containers container containerSet script name image sidecars"
MORE_WORDS = "replicas completions nodeSelector metadata podMetadata labels"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*WORDS.split(), *MORE_WORDS.split()]), inner, max_size=4)
    ),
    max_leaves=40,
)


@given(json_values)
def test_whatever_an_object_holds_it_is_looked_through(value: object) -> None:
    for template in pod_templates("a.b/v1", "X", json.dumps({"spec": value}).encode()):
        assert template.path.startswith("spec.")
        msgspec.json.decode(template.pod)
