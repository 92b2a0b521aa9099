"""Which pods are judged at all.

Everything that leaves here is admitted: the scheduler does not place it now, places it by other rules, or somebody else
has already counted for it. In doubt a pod is out of scope. Webhook and pre-submit check share this file.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import UNSET

from app.dra.objects import ObjectMeta, Pod, PodSpec
from app.dra.reasons import Reason

DEFAULT_SCHEDULER = "default-scheduler"
"""What an empty `schedulerName` means."""

QUEUE_LABEL = "gpu-vacancy.dev/queue"
"""With the value "true": the tenant prefers to wait in the scheduler's queue."""

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""The kubelet's copy of a static pod, which runs already: refusing it would only hide it."""

KUEUE_PREFIX = "kueue.x-k8s.io/"
"""Kueue marks its pods by labels and annotations; their quota is reserved, a refusal would only burn it."""

COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
"""The coscheduling plugin's gangs: refusing one member strands the others."""

VOLCANO_ANNOTATIONS = frozenset({"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"})
"""Volcano's pod groups; it reads either key."""

PREEMPTING_MINOR = 38
"""Kubernetes 1.38 has gate DRAPreemption (KEP-5690, alpha); before, no pod takes a DRA device from another."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The platform team's part in the question."""

    schedulers: frozenset[str] = frozenset({DEFAULT_SCHEDULER})
    """Names under which kube-scheduler runs, or something that follows its rules."""
    allow_queue_label: bool = True
    """Whether tenants may opt out by label."""


def out_of_scope(pod: Pod, scope: Scope, server_minor: int) -> Reason | None:  # noqa: PLR0911 - a way out each
    """Why this pod is not judged; None: it is. The first reason that holds. `server_minor`: 37 for Kubernetes 1.37."""
    spec, metadata = pod.spec, pod.metadata
    labels, annotations = metadata.labels or _NONE, metadata.annotations or _NONE
    if MIRROR_ANNOTATION in annotations:
        return Reason.MirrorPod
    if spec.node_name:
        return Reason.NodeNameSet
    if spec.scheduling_gates:
        return Reason.SchedulingGated
    if spec.scheduling_group is not UNSET and bytes(spec.scheduling_group) != b"null":
        return Reason.SchedulingGroup
    if (spec.scheduler_name or DEFAULT_SCHEDULER) not in scope.schedulers:
        return Reason.OtherScheduler
    if metadata.owner_references and _belongs_to_daemon_set(metadata):
        return Reason.DaemonSetPod
    if (labels or annotations) and _is_queue_managed(labels, annotations):
        return Reason.QueueManaged
    if scope.allow_queue_label and labels.get(QUEUE_LABEL) == "true":
        return Reason.OptedOut
    return Reason.MayPreempt if server_minor >= PREEMPTING_MINOR and _may_preempt(spec) else None


_NONE: Mapping[str, str] = {}


def _belongs_to_daemon_set(metadata: ObjectMeta) -> bool:
    """A DaemonSet's pod is pinned to one node, so room elsewhere says nothing. Look-alikes (OpenKruise) count too."""
    return any(owner.controller and owner.kind == "DaemonSet" for owner in metadata.owner_references or ())


def _is_queue_managed(labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    for key in (*labels, *annotations):
        if key.startswith(KUEUE_PREFIX):
            return True
    return COSCHEDULING_LABEL in labels or not VOLCANO_ANNOTATIONS.isdisjoint(annotations)


def _may_preempt(spec: PodSpec) -> bool:
    """Holders have priority 0 unless somebody gave them another, and what they have is not looked at."""
    return (spec.priority or 0) > 0 and spec.preemption_policy != "Never"
