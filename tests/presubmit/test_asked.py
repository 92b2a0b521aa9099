"""Objects of a manifest to the pods that are asked for, and to the claims that come with them."""

from pathlib import Path

import pytest

from app.dra.demand import Lookup, Lookups
from app.dra.objects import ResourceClaim, ResourceClaimTemplate
from app.presubmit.asked import asked, concerning
from app.presubmit.manifest import Document, ManifestError, decode, parse
from app.presubmit.overlay import overlay

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"


def documents(*texts: str) -> tuple[Document, ...]:
    return parse("---\n".join(texts).encode(), "f.yaml")


def workload(kind: str, version: str, spec: str, name: str = "w") -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"


TEMPLATE = "{metadata: {labels: {a: b}}, spec: {containers: [{name: c, resources: {limits: {example.com/gpu: 1}}}]}}"

NOTES = {
    "three replicas are told apart": (
        "Deployment",
        "apps/v1",
        "{replicas: 3, template: %s}",
        "each of 3 replicas alone",
    ),
    "one replica is like a pod": ("StatefulSet", "apps/v1", "{template: %s}", ""),
    "a Job's pods that run in parallel": (
        "Job",
        "batch/v1",
        "{parallelism: 2, template: %s}",
        "each of 2 replicas alone",
    ),
    "a CronJob's template is two deeper": ("CronJob", "batch/v1", "{jobTemplate: {spec: {template: %s}}}", ""),
    "scaled to zero": (
        "ReplicaSet",
        "apps/v1",
        "{replicas: 0, template: %s}",
        "a replica, although it is scaled to zero",
    ),
}


@pytest.mark.parametrize(("kind", "version", "spec", "note"), NOTES.values(), ids=NOTES)
def test_a_workload_asks_for_its_template(kind: str, version: str, spec: str, note: str) -> None:
    (found,) = asked(documents(workload(kind, version, spec % TEMPLATE)), "team")
    assert (found.kind, found.name, found.namespace, found.note) == (kind, "w", "team", note)
    assert found.pod.spec.containers[0].resources.limits == {"example.com/gpu": 1}


def test_pods_are_asked_for_in_their_order_and_namespace_and_other_kinds_not_at_all() -> None:
    found = asked(
        documents(
            POD,
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
            workload("Job", "batch.volcano.sh/v1alpha1", "{tasks: []}"),
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: g-, namespace: other}\nspec: {containers: []}\n",
        ),
        "team",
    )
    assert [(a.name, a.namespace, a.kind, a.note) for a in found] == [
        ("p", "team", "Pod", ""),
        ("g-", "other", "Pod", ""),
    ]


UNDECODABLE = {
    "a pod without containers": (
        "apiVersion: v1\nkind: Pod\nspec: {}\n",
        "f.yaml:2: Pod: Object missing required field `containers` - at `$.spec`",
    ),
    "a quantity that is null": (
        "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {a/b: }}}]}\n",
        "f.yaml:2: Pod: Expected `int | float | str`, got `null` - at `$.spec.containers[0].resources.limits[...]`",
    ),
    "a workload without a template": (workload("Job", "batch/v1", "{}"), "f.yaml:2: Job: Job without a pod template"),
    "a workload with text for replicas": (
        workload("Deployment", "apps/v1", "{replicas: three}"),
        "f.yaml:2: Deployment: Expected `int | null`, got `str` - at `$.spec.replicas`",
    ),
}


@pytest.mark.parametrize(("text", "message"), UNDECODABLE.values(), ids=UNDECODABLE)
def test_an_object_that_is_none_is_named_with_file_and_line(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        asked(parse(f"\n{text}".encode(), "f.yaml"), "team")
    assert str(caught.value) == message


RAY = workload("RayCluster", "ray.io/v1", f"{{workerGroupSpecs: [{{replicas: 2, template: {TEMPLATE}}}]}}", "ray")


def test_a_custom_resource_asks_for_its_templates_and_says_where_they_are() -> None:
    (found,) = asked(documents(RAY), "team")
    assert (found.kind, found.name, found.namespace) == ("RayCluster", "ray", "team")
    assert (found.template, found.note) == ("spec.workerGroupSpecs[0].template", "each of 2 replicas alone")
    assert found.pod.metadata.labels == {"a": "b"}
    assert "example.com/gpu" in [each.key for each in found.pod.spec.tolerations or ()], "as admission may add"


def test_a_number_of_replicas_of_any_length_is_said_in_a_few_characters() -> None:
    (found,) = asked(documents(RAY.replace("replicas: 2", f"replicas: {10**30}")), "team")
    assert found.note == "each of 999999+ replicas alone"


@pytest.mark.parametrize(
    "text",
    [workload("Job", "batch/v1", f"{{template: {TEMPLATE}}}"), RAY],
    ids=["a Job", "a custom resource"],
)
def test_what_an_object_is_queued_by_counts_for_its_pods(text: str) -> None:
    name = "{name: w}" if "kind: Job" in text else "{name: ray}"
    queued = text.replace(name, name.replace("}", ", labels: {kueue.x-k8s.io/queue-name: q, other: c}}"))
    (found,) = asked(documents(queued), "team")
    assert found.pod.metadata.labels == {"a": "b", "kueue.x-k8s.io/queue-name": "q"}


def test_a_template_that_is_no_pod_after_all_is_named_with_file_and_line() -> None:
    with pytest.raises(ManifestError) as caught:
        asked(documents(RAY.replace("limits: {example.com/gpu: 1}", "limits: 5")), "team")
    assert str(caught.value).startswith("f.yaml:1: RayCluster: Expected `object | null`, got `int`")


CLAIM = (
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\n"
    "spec: {devices: {requests: [{name: mine}]}}\n"
)
TEMPLATES = (
    "apiVersion: resource.k8s.io/v1beta2\nkind: ResourceClaimTemplate\nmetadata: {name: t, namespace: other}\n"
    "spec: {spec: {devices: {}}}\n"
)


def test_claims_and_templates_of_the_text_count_as_existing_where_the_cluster_has_none() -> None:
    claim = decode(documents(CLAIM)[0], ResourceClaim)
    template = decode(documents(TEMPLATES)[0], ResourceClaimTemplate)
    other = decode(documents(CLAIM.replace("mine", "theirs"))[0], ResourceClaim)
    laid = overlay(documents(POD, CLAIM, TEMPLATES), "team")
    missing = Lookups({"c": Lookup.MISSING, "d": Lookup.MISSING}, {"t": Lookup.MISSING})
    unread = Lookups({"c": Lookup.FAILED}, {"t": Lookup.FAILED})

    assert laid.over("team", missing) == Lookups({"c": claim, "d": Lookup.MISSING}, {"t": Lookup.MISSING})
    assert laid.over("other", missing).templates == {"t": template}
    assert laid.over("team", Lookups({"c": other}, {})).claims == {"c": other}, "what exists may be allocated"
    assert laid.over("team", unread).claims == {"c": Lookup.FAILED}, "it may exist and be allocated"
    assert laid.over("other", unread).templates == {"t": template}


def test_a_claim_of_an_old_version_stays_missing() -> None:
    laid = overlay(documents(CLAIM.replace("resource.k8s.io/v1", "resource.k8s.io/v1beta1")), "team")
    assert laid.over("team", Lookups({"c": Lookup.MISSING}, {})).claims == {"c": Lookup.MISSING}


def test_only_what_matters_to_the_answer_is_told_to_anybody() -> None:
    private = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: c2VjcmV0}\n"
    daemons = workload("DaemonSet", "apps/v1", f"{{template: {TEMPLATE}}}")
    texts = documents(
        private, POD, CLAIM, daemons, RAY, TEMPLATES, workload("Job", "batch/v1", f"{{template: {TEMPLATE}}}")
    )
    matter, others = concerning(texts)
    assert [each.kind for each in matter] == ["Pod", "ResourceClaim", "RayCluster", "ResourceClaimTemplate", "Job"]
    assert others == ("Secret", "DaemonSet")


def test_the_examples_are_readable() -> None:
    for file in sorted(Path(__file__).parents[2].joinpath("examples", "pods").glob("*.yaml")):
        assert asked(parse(file.read_bytes(), file.name), "default"), file.name
