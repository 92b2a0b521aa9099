"""Workload objects and the pods they make.

A person sees the answer to `kubectl apply -f deployment.yaml`; the pods come later, and their warnings reach only a
controller. So the template is judged as if it were the pod.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from app.dra.objects import ObjectMeta, Pod, Toleration, View
from app.dra.scope import KUEUE_PREFIX

_API_VERSIONS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}


@dataclass(frozen=True, slots=True)
class Workload:
    """An object from whose one template a controller makes pods."""

    name: str
    """`metadata.name`, else `metadata.generateName`."""
    namespace: str
    """As written; empty when the object leaves it to the request."""
    pod: Pod
    """The template as a pod: its metadata and spec, without an owner, with what admission adds."""
    replicas: int
    """Pods that are to run at the same time; 0 when scaled to zero."""
    new_pods: int
    """Of these, the ones that this version of the object makes: all of a new template, else what is added."""
    controlled: bool
    """Whether a controller made this object too: then nobody is looking at its warnings."""


_NONE = Raw(b"null")
_ALWAYS_TOLERATED = tuple(
    Toleration(f"node.kubernetes.io/{what}", "Exists", effect="NoExecute") for what in ("not-ready", "unreachable")
)


class _TypeMeta(View, frozen=True):
    api_version: str = ""


class _Spec(View, frozen=True):
    """`spec` of all six kinds; the API server's default of `replicas` and `parallelism` is 1."""

    template: Raw = _NONE
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    job_template: "_JobTemplate | None" = None


class _JobTemplate(View, frozen=True):
    spec: _Spec
    metadata: ObjectMeta = ObjectMeta()


class _Object(View, frozen=True):
    spec: _Spec
    metadata: ObjectMeta = ObjectMeta()


_type_meta = msgspec.json.Decoder(_TypeMeta)
_object = msgspec.json.Decoder(_Object)
_pod = msgspec.json.Decoder(Pod)


def pod_of_workload(kind: str, document: bytes | Raw, before: bytes | Raw | None = None) -> Workload | None:
    """The pod an object of this kind makes, and how many of them; None: not one of the six kinds in their API group.

    `before`: the object as it was until now; None: there was none. Raises msgspec.DecodeError when it is one of them
    but cannot be read, or has no template.
    """
    api_version = _API_VERSIONS.get(kind)
    # Looked at first: other groups have kinds of these names too (batch.volcano.sh Job), of another shape.
    if not api_version or _type_meta.decode(document).api_version != api_version:
        return None
    found = _object.decode(document)
    spec = _pod_spec(found)
    if bytes(spec.template) == bytes(_NONE):
        raise msgspec.ValidationError(f"{kind} without a pod template")
    metadata, job_template = found.metadata, found.spec.job_template
    inherited = metadata if job_template is None else job_template.metadata  # a Job has the labels of its template
    return Workload(
        name=metadata.name or metadata.generate_name,
        namespace=metadata.namespace,
        pod=queued(as_admitted(_pod.decode(spec.template)), inherited.labels),
        replicas=_replicas(spec),
        new_pods=_started(found) if before is None else _added(found, _object.decode(before)),
        controlled=any(owner.controller for owner in metadata.owner_references or ()),
    )


def _pod_spec(workload: _Object) -> _Spec:
    """Where the template is."""
    job_template = workload.spec.job_template
    return workload.spec if job_template is None else job_template.spec


def _replicas(spec: _Spec) -> int:
    """Pods at the same time; a Job starts no more than it wants to complete."""
    wanted = spec.replicas if spec.parallelism is None else spec.parallelism
    wanted = 1 if wanted is None else wanted
    return wanted if spec.completions is None else min(wanted, spec.completions)


def _started(workload: _Object) -> int:
    """Pods of a new object; a suspended one makes none."""
    spec = _pod_spec(workload)
    return 0 if workload.spec.suspend or spec.suspend else _replicas(spec)


def _added(workload: _Object, before: _Object) -> int:
    """Pods that a change makes. The API server writes an unchanged template in the same bytes."""
    started = _started(workload)
    is_same = bytes(_pod_spec(workload).template) == bytes(_pod_spec(before).template)
    return max(0, started - _started(before)) if is_same else started


def as_admitted(pod: Pod) -> Pod:
    """The pod with what it gets on its way through the API server, where that can only be guessed: too much admits.

    Nodes with devices often carry a taint whose key is the name of their extended resource. The admission plugin
    ExtendedResourceToleration, where it is on, adds a toleration of it to every pod that asks for the resource: a pod
    judged without would be kept from its own nodes, and be called full beside free devices. So it would without the
    tolerations of DefaultTolerationSeconds, or those of its RuntimeClass, which may be any; and a priority that is
    only named may be above that of others.
    """
    spec = pod.spec
    written = [c.resources for c in (*spec.containers, *(spec.init_containers or ())) if c.resources]
    names = {name for each in written for amounts in (each.requests, each.limits) for name in amounts or ()}
    added = [*_ALWAYS_TOLERATED, *(Toleration(name, "Exists") for name in sorted(names) if "/" in name)]
    if spec.runtime_class_name:
        added.append(Toleration(operator="Exists"))
    priority = 1 if spec.priority is None and spec.priority_class_name else spec.priority
    return replace(pod, spec=replace(spec, tolerations=[*(spec.tolerations or ()), *added], priority=priority))


def queued(pod: Pod, labels: Mapping[str, str] | None) -> Pod:
    """The pod of an object with these labels: Kueue takes the object's word and marks the pods itself."""
    marks = {key: value for key, value in (labels or {}).items() if key.startswith(KUEUE_PREFIX)}
    if not marks:
        return pod
    return replace(pod, metadata=replace(pod.metadata, labels={**marks, **(pod.metadata.labels or {})}))
