"""Who is judged: one row per exit, and one row just beside it that is in scope."""

import json
from typing import Any

import msgspec
import pytest

from app.dra.objects import Pod
from app.dra.reasons import Reason
from app.dra.scope import Scope, out_of_scope

SCOPE = Scope()
NO_OPTING_OUT = Scope(allow_queue_label=False)
TWO_SCHEDULERS = Scope(schedulers=frozenset({"default-scheduler", "second"}))
RENAMED_SCHEDULER = Scope(schedulers=frozenset({"second"}))


def pod(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **rest: object) -> Pod:
    owners = rest.pop("ownerReferences", None)
    metadata = {"labels": labels, "annotations": annotations, "ownerReferences": owners}
    return msgspec.json.decode(json.dumps({"metadata": metadata, "spec": {"containers": [{}], **rest}}), type=Pod)


def owned(kind: str, **rest: object) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "u", **rest}]}


ROWS: dict[str, tuple[Pod, Scope, Reason | None]] = {
    "a plain pod is in scope": (pod(), SCOPE, None),
    "a mirror pod": (pod(annotations={"kubernetes.io/config.mirror": "abc"}), SCOPE, Reason.MirrorPod),
    "the source annotation alone makes no mirror pod": (
        pod(annotations={"kubernetes.io/config.source": "api"}),
        SCOPE,
        None,
    ),
    "the mirror key as a label makes no mirror pod": (pod(labels={"kubernetes.io/config.mirror": "abc"}), SCOPE, None),
    "nodeName set": (pod(nodeName="n1"), SCOPE, Reason.NodeNameSet),
    "nodeName empty": (pod(nodeName=""), SCOPE, None),
    "a scheduling gate": (pod(schedulingGates=[{"name": "example.com/wait"}]), SCOPE, Reason.SchedulingGated),
    "no gate in the list": (pod(schedulingGates=[]), SCOPE, None),
    "a scheduling group": (pod(schedulingGroup={"podGroupName": "g"}), SCOPE, Reason.SchedulingGroup),
    "a scheduling group of a shape we do not know": (pod(schedulingGroup={}), SCOPE, Reason.SchedulingGroup),
    "scheduling group null": (pod(schedulingGroup=None), SCOPE, None),
    "another scheduler": (pod(schedulerName="volcano"), SCOPE, Reason.OtherScheduler),
    "the default scheduler by name": (pod(schedulerName="default-scheduler"), SCOPE, None),
    "no scheduler named": (pod(schedulerName=""), SCOPE, None),
    "a second scheduler the platform team listed": (pod(schedulerName="second"), TWO_SCHEDULERS, None),
    "the default scheduler where only another is listed": (pod(), RENAMED_SCHEDULER, Reason.OtherScheduler),
    "a DaemonSet's pod": (pod(**owned("DaemonSet", controller=True)), SCOPE, Reason.DaemonSetPod),
    "owned by a DaemonSet that does not control it": (pod(**owned("DaemonSet", controller=False)), SCOPE, None),
    "owned by a DaemonSet, controller not said": (pod(**owned("DaemonSet")), SCOPE, None),
    "a StatefulSet's pod": (pod(**owned("StatefulSet", controller=True)), SCOPE, None),
    "Kueue's queue label": (pod(labels={"kueue.x-k8s.io/queue-name": "q"}), SCOPE, Reason.QueueManaged),
    "Kueue's managed label": (pod(labels={"kueue.x-k8s.io/managed": "true"}), SCOPE, Reason.QueueManaged),
    "Kueue's podset label": (pod(labels={"kueue.x-k8s.io/podset": "main"}), SCOPE, Reason.QueueManaged),
    "Kueue's workload annotation": (pod(annotations={"kueue.x-k8s.io/workload": "w"}), SCOPE, Reason.QueueManaged),
    "a label whose value speaks of Kueue": (pod(labels={"team": "kueue.x-k8s.io/queue-name"}), SCOPE, None),
    "a label of a name like Kueue's": (pod(labels={"my-kueue.x-k8s.io/queue-name": "q"}), SCOPE, None),
    "Volcano's group": (pod(annotations={"scheduling.k8s.io/group-name": "g"}), SCOPE, Reason.QueueManaged),
    "Volcano's group under its own key": (
        pod(annotations={"scheduling.volcano.sh/group-name": "g"}),
        SCOPE,
        Reason.QueueManaged,
    ),
    "Volcano's key as a label": (pod(labels={"scheduling.k8s.io/group-name": "g"}), SCOPE, None),
    "coscheduling's group": (pod(labels={"scheduling.x-k8s.io/pod-group": "g"}), SCOPE, Reason.QueueManaged),
    "coscheduling's key as an annotation": (pod(annotations={"scheduling.x-k8s.io/pod-group": "g"}), SCOPE, None),
    "the queue label": (pod(labels={"gpu-vacancy.dev/queue": "true"}), SCOPE, Reason.OptedOut),
    "the queue label says false": (pod(labels={"gpu-vacancy.dev/queue": "false"}), SCOPE, None),
    "the queue label in capitals": (pod(labels={"gpu-vacancy.dev/queue": "True"}), SCOPE, None),
    "the queue label where it is not allowed": (pod(labels={"gpu-vacancy.dev/queue": "true"}), NO_OPTING_OUT, None),
    "Kueue's gate and label: the gate is named first": (
        pod(labels={"kueue.x-k8s.io/managed": "true"}, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
        SCOPE,
        Reason.SchedulingGated,
    ),
}


@pytest.mark.parametrize("sentence", ROWS)
def test_out_of_scope(sentence: str) -> None:
    given, scope, want = ROWS[sentence]
    assert out_of_scope(given, scope, 37) is want


MAY_PREEMPT: dict[str, tuple[Pod, int, Reason | None]] = {
    "priority on 1.38": (pod(priority=1000), 38, Reason.MayPreempt),
    "priority on 1.39": (pod(priority=1000), 39, Reason.MayPreempt),
    "priority on 1.38, preempting lower ones as by default": (
        pod(priority=1, preemptionPolicy="PreemptLowerPriority"),
        38,
        Reason.MayPreempt,
    ),
    "priority on 1.38, never preempting": (pod(priority=1000, preemptionPolicy="Never"), 38, None),
    "priority 0 on 1.38": (pod(priority=0), 38, None),
    "negative priority on 1.38": (pod(priority=-5), 38, None),
    "no priority on 1.38": (pod(), 38, None),
    "priority on 1.37": (pod(priority=1000), 37, None),
}


@pytest.mark.parametrize("sentence", MAY_PREEMPT)
def test_who_may_preempt_is_out_of_scope(sentence: str) -> None:
    given, server_minor, want = MAY_PREEMPT[sentence]
    assert out_of_scope(given, SCOPE, server_minor) is want


def test_every_exit_has_a_row() -> None:
    exits = {
        Reason.MirrorPod,
        Reason.NodeNameSet,
        Reason.SchedulingGated,
        Reason.SchedulingGroup,
        Reason.OtherScheduler,
        Reason.DaemonSetPod,
        Reason.QueueManaged,
        Reason.OptedOut,
        Reason.MayPreempt,
    }
    assert {want for _, _, want in (*ROWS.values(), *MAY_PREEMPT.values())} == exits | {None}
