"""Workload objects and the pods they make.

A person sees the answer to `kubectl apply -f deployment.yaml`; the pods come later, and their warnings reach only a
controller. So the template is judged as if it were the pod.
"""

from dataclasses import dataclass

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from app.dra.objects import ObjectMeta, Pod, Toleration, View

_API_VERSION_AND_OWNER = {
    "Deployment": ("apps/v1", "ReplicaSet"),
    "ReplicaSet": ("apps/v1", "ReplicaSet"),
    "StatefulSet": ("apps/v1", "StatefulSet"),
    "ReplicationController": ("v1", "ReplicationController"),
    "Job": ("batch/v1", "Job"),
    "CronJob": ("batch/v1", "Job"),
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
    owner_kind: str
    """Kind of the controller that will own the pods: ReplicaSet for a Deployment, Job for a CronJob."""
    controlled: bool
    """Whether a controller made this object too: then nobody is looking at its warnings."""


class _TypeMeta(View, frozen=True):
    api_version: str = ""


class _Spec(View, frozen=True):
    """`spec` of all six kinds; the API server's default of both counts is 1."""

    template: Pod | None = None
    replicas: int | None = None
    parallelism: int | None = None
    job_template: "_JobTemplate | None" = None


class _JobTemplate(View, frozen=True):
    spec: _Spec


class _Object(View, frozen=True):
    spec: _Spec
    metadata: ObjectMeta = ObjectMeta()


_type_meta = msgspec.json.Decoder(_TypeMeta)
_object = msgspec.json.Decoder(_Object)


def pod_of_workload(kind: str, document: bytes | Raw) -> Workload | None:
    """The pod an object of this kind makes, and how many of them; None: not one of the six kinds in their API group.

    Raises msgspec.DecodeError when it is one of them but cannot be read, or has no template.
    """
    api_version, owner_kind = _API_VERSION_AND_OWNER.get(kind, ("", ""))
    # Looked at first: other groups have kinds of these names too (batch.volcano.sh Job), of another shape.
    if not api_version or _type_meta.decode(document).api_version != api_version:
        return None
    found = _object.decode(document)
    spec = found.spec.job_template.spec if found.spec.job_template else found.spec
    if spec.template is None:
        raise msgspec.ValidationError(f"{kind} without a pod template")
    replicas = spec.parallelism if owner_kind == "Job" else spec.replicas
    metadata = found.metadata
    return Workload(
        name=metadata.name or metadata.generate_name,
        namespace=metadata.namespace,
        pod=as_admitted(spec.template),
        replicas=1 if replicas is None else replicas,
        owner_kind=owner_kind,
        controlled=any(owner.controller for owner in metadata.owner_references or ()),
    )


def as_admitted(pod: Pod) -> Pod:
    """The pod with the tolerations it gets on its way through the API server, where that can only be guessed.

    Nodes with devices often carry a taint whose key is the name of their extended resource. The admission plugin
    ExtendedResourceToleration, where it is on, adds a toleration of it to every pod that asks for the resource: a pod
    judged without would be kept from its own nodes, and be called full beside free devices.
    """
    containers = (*pod.spec.containers, *(pod.spec.init_containers or ()))
    written = [c.resources for c in containers if c.resources]
    names = {name for each in written for amounts in (each.requests, each.limits) for name in amounts or ()}
    added = [Toleration(name, "Exists") for name in sorted(names) if "/" in name]  # a name too many can only admit
    if not added:
        return pod
    return replace(pod, spec=replace(pod.spec, tolerations=[*(pod.spec.tolerations or ()), *added]))
