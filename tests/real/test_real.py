"""A real cluster, printed by kubectl on a 1.37.2 control plane, and three reviews as its API server sent them.

What kube-scheduler 1.37.2 did with one more pod in this cluster is beside each row. The API server, the four drivers
and the scheduler were real, kubelets there were none.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app import parts
from app.cluster.manifests import Manifests, feed, lookups, read_manifests
from app.dra.demand import claim_references
from app.dra.judgement import World, judge
from app.dra.witness import Witness
from app.presubmit.asked import asked
from app.presubmit.manifest import parse
from app.presubmit.overlay import overlay
from app.settings import read_settings
from app.times import epoch_seconds
from tests.webhook import answer

HERE = Path(__file__).parent
PRINTED_AT = epoch_seconds("2026-11-29T21:56:55Z")
TEN_MINUTES = 600.0
SETTINGS = read_settings({}, {})

A100 = "deviceclass.resource.kubernetes.io/gpu-a100"
ANY_GPU = "deviceclass.resource.kubernetes.io/gpu.example.com"
NIC = "deviceclass.resource.kubernetes.io/nic.example.com"

WHOLE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: whole}
spec:
  spec:
    devices:
      requests:
      - name: g
        exactly:
          deviceClassName: mig.example.com
          selectors: [{cel: {expression: "device.attributes['mig.example.com'].profile == 'whole'"}}]
"""


@dataclass(frozen=True)
class Row:
    """One more pod: what it asks for, and what Vacancy must say."""

    verdict: str
    reason: str
    resource: str = ""
    template: str = ""
    later: float = 0.0
    beside: str = ""
    """What is submitted with the pod."""

    def manifest(self) -> bytes:
        spec: dict[str, Any] = {"containers": [{"name": "c"}]}
        if self.resource:
            spec["containers"][0]["resources"] = {"limits": {self.resource: "1"}}
        if self.template:
            spec["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": self.template}]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one-more"}, "spec": spec}
        return f"{json.dumps(pod)}\n---\n{self.beside}".encode()


AS_PRINTED = {
    "an A100, not bound: both nodes are taken or tainted, and n5 may hold more": Row(
        "unknown", "PoolIncomplete", resource=A100
    ),
    "an A100 ten minutes later, when n5 is incomplete for good": Row(
        "full", "NoGPUCapacity", resource=A100, later=TEN_MINUTES
    ),
    "a half of a MIG device, bound to n3": Row("room", "HasRoom", template="half"),
    "the whole MIG device, not bound": Row("full", "NoGPUCapacity", template="whole", beside=WHOLE),
    "a nic, not bound, but shareable devices are never counted full": Row("unknown", "Shareable", resource=NIC),
}

WITH_N5_COMPLETE = {
    "an A100, not bound": Row("full", "NoGPUCapacity", resource=A100),
    "any gpu, bound to n5": Row("room", "HasRoom", resource=ANY_GPU),
    "example.com/gpu, not bound, but an older claimant has a device": Row(
        "room", "HasRoom", resource="example.com/gpu"
    ),
}


@pytest.mark.parametrize("row", AS_PRINTED.values(), ids=AS_PRINTED)
def test_one_more_pod_in_the_cluster_as_printed(row: Row) -> None:
    assert said_of(row, read_manifests(HERE / "cluster.yaml")) == (row.verdict, row.reason)


@pytest.mark.parametrize("row", WITH_N5_COMPLETE.values(), ids=WITH_N5_COMPLETE)
def test_one_more_pod_once_the_pool_of_n5_is_complete(row: Row, tmp_path: Path) -> None:
    assert said_of(row, with_n5_complete(tmp_path)) == (row.verdict, row.reason)


REVIEWS = {
    "bare.json": ("unknown", "PoolIncomplete", "room", "HasRoom"),
    "replicaset.json": ("unknown", "PoolIncomplete", "room", "HasRoom"),
}


@pytest.mark.parametrize("file", REVIEWS)
def test_a_real_review_is_answered(file: str, tmp_path: Path) -> None:
    verdict, reason, verdict_then, reason_then = REVIEWS[file]
    before = answered(file, read_manifests(HERE / "cluster.yaml"))
    after = answered(file, with_n5_complete(tmp_path))
    assert (before["allowed"], after["allowed"]) == (True, True)
    assert before["warnings"] == ["GPU capacity not checked: PoolIncomplete, a pool is not completely published (n5)"]
    assert "warnings" not in after
    assert told(before) == (verdict, reason)
    assert told(after) == (verdict_then, reason_then)
    assert json.loads(after["auditAnnotations"]["resolved"])["example.com/gpu"]["count"] == 1


def test_a_real_review_of_a_job_that_asks_for_no_device_gets_the_shortest_answer() -> None:
    assert answered("job.json", read_manifests(HERE / "cluster.yaml")) == {"uid": uid_of("job.json"), "allowed": True}


def said_of(row: Row, manifests: Manifests) -> tuple[str, str]:
    """What `vacancy check` concludes for the pod."""
    now = PRINTED_AT + row.later
    documents = parse(row.manifest(), "one-more.yaml")
    (pod,) = asked(documents, "default")
    found = lookups(manifests, pod.namespace, claim_references(pod.pod))
    found = overlay(documents, "default").over(pod.namespace, found)
    verdict = judge(pod.pod, pod.namespace, found, world_of(manifests, now), now)
    return verdict.outcome.value, verdict.reason.value


def answered(file: str, manifests: Manifests) -> dict[str, Any]:
    """The webhook's answer to a review, as the API server reads it."""
    content, _ = answer(
        (HERE / file).read_bytes(),
        world_of(manifests, PRINTED_AT),
        lambda namespace, references: lookups(manifests, namespace, references),
        parts.rules(SETTINGS),
        PRINTED_AT,
    )
    response: dict[str, Any] = json.loads(content)["response"]
    assert response["uid"] == uid_of(file)
    return response


def told(response: dict[str, Any]) -> tuple[str, str]:
    """What the audit log keeps."""
    return response["auditAnnotations"]["verdict"], response["auditAnnotations"]["reason"]


def uid_of(file: str) -> str:
    uid: str = json.loads((HERE / file).read_text())["request"]["uid"]
    return uid


def world_of(manifests: Manifests, now: float) -> World:
    witness = Witness(now)
    return World(witness, feed(manifests, witness, now), parts.judgement_policy(SETTINGS))


def with_n5_complete(folder: Path) -> Manifests:
    """The same cluster after `resourceSliceCount: 1` was set on slice gpu-n5."""
    printed = (HERE / "cluster.yaml").read_text()
    head, found, tail = printed.partition("    name: gpu-n5\n")
    assert found
    assert tail.index("resourceSliceCount: 2\n") < tail.index("kind: ResourceSlice")
    (folder / "cluster.yaml").write_text(
        head + found + tail.replace("resourceSliceCount: 2\n", "resourceSliceCount: 1\n", 1)
    )
    return read_manifests(folder)
