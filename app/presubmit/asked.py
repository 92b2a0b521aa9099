"""The pods that the objects of a manifest ask for, and the objects that ask for none."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from app.dra.objects import ObjectMeta, Pod, View
from app.dra.words import number
from app.dra.workloads import as_admitted, pod_of_workload, queued
from app.presubmit.manifest import Document, decode, unreadable
from app.presubmit.templates import pod_templates

CLAIM_VERSIONS = frozenset({"resource.k8s.io/v1", "resource.k8s.io/v1beta2"})
"""Of one shape. In v1beta1 a device request is flat; such a claim counts as missing, which is never refused."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One pod of a submitted text, or the pod of a template."""

    name: str
    namespace: str
    kind: str
    pod: Pod
    note: str = ""
    """What of a workload the answer is for: `each of 3 replicas alone`; empty for a pod."""
    template: str = ""
    """Where in a custom resource the template is, as in `spec.workerGroupSpecs[0].template`; empty for other kinds."""
    template_bytes: int = 0
    """Of its pod as JSON, with what it inherits, which may be written once for all; 0 for other kinds."""


def asked(documents: Iterable[Document], namespace: str) -> tuple[Asked, ...]:
    """The pods of the documents, in their order; `namespace` for those that name none. Raises ManifestError."""
    return tuple(each_asked(documents, namespace))


def each_asked(documents: Iterable[Document], namespace: str) -> Iterator[Asked]:
    """The same, one by one: a short text may ask for very many."""
    for document in documents:
        yield from _asked(document, document.namespace or namespace)


def concerning(documents: Iterable[Document]) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The documents that matter to the answer, and the kinds of the others, one for each. Raises ManifestError.

    A Secret beside a pod is nobody's business, least of all that of a server that is asked.
    """
    matter, others = [], []
    for document in documents:
        if is_claim(document) or any(True for _ in _asked(document, "")):
            matter.append(document)
        else:
            others.append(document.kind)
    return tuple(matter), tuple(others)


def is_claim(document: Document) -> bool:
    """Whether it is a claim or a template of claims that pods may name."""
    return document.api_version in CLAIM_VERSIONS and document.kind in {"ResourceClaim", "ResourceClaimTemplate"}


class _Object(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


def _asked(document: Document, namespace: str) -> Iterator[Asked]:
    name, kind = document.name, document.kind
    if kind == "Pod" and document.api_version == "v1":
        yield Asked(name, namespace, kind, as_admitted(decode(document, Pod)))
        return
    try:
        workload = pod_of_workload(kind, document.json)
        if workload is not None:
            yield Asked(name, namespace, kind, workload.pod, _note(workload.replicas))
            return
        for template in pod_templates(document.api_version, kind, document.json):
            labels = decode(document, _Object).metadata.labels
            pod = queued(as_admitted(msgspec.json.decode(template.pod, type=Pod)), labels)
            yield Asked(name, namespace, kind, pod, _note(template.replicas), template.path, len(template.pod))
    except (msgspec.DecodeError, RecursionError) as error:
        raise unreadable(document, error) from error


def _note(replicas: int | None) -> str:
    if replicas is None or replicas == 1:
        return ""
    return f"each of {number(replicas)} replicas alone" if replicas else "a replica, although it is scaled to zero"
