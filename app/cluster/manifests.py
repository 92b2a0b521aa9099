"""Files that stand in for a cluster: the embedded default, and the way to replay a refusal from a dump.

What `kubectl get deviceclasses,resourceslices,… -A -o yaml` prints is told to the witness as if it had been listed.
Files have no history: what an object shows counts as lasting since it was created.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from app.cluster.folders import files_of
from app.dra.demand import ClaimReferences, Lookup, Lookups
from app.dra.holders import PodRecord
from app.dra.objects import (
    DeviceClass,
    DeviceTaintRule,
    Node,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    View,
)
from app.dra.snapshot import Snapshot, build_snapshot
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.witness import Heard, Kind, Witness
from app.presubmit.manifest import Document, ManifestError, decode, parse
from app.times import epoch_seconds

__all__ = ["ManifestError", "Manifests", "Stamp", "feed", "lookups", "read_manifests", "stamp"]

MAX_FILE_BYTES = 256 * 1024 * 1024
"""Of one file. 10,000 slices with 8 devices are 33 MB of JSON or 16 MB of YAML; what is no manifest ends here."""

ASSUMED_AGE_SECONDS = 3600.0
"""How long a state has lasted if its object does not say when it was created: longer than any grace."""

DEFAULT_NAMESPACE = "default"
"""Of claims and pods written by hand without one; a dump always names it."""

PROBLEMS_AT_MOST = 20
"""Told at once; a folder that is not one of manifests would fill the screen."""

Name = tuple[str, str]
"""Namespace, empty for kinds without, and name."""

Stamp = tuple[tuple[str, int, int], ...]
"""Path, time of change and size of every file: different if a file may have changed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One object for the witness."""

    obj: Heard
    created: float | None
    """Epoch seconds; None if the object does not say."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """What the files hold."""

    heard: Mapping[Kind, Mapping[Name, Entry]]
    """What the witness is told."""
    templates: Mapping[Name, ResourceClaimTemplate]
    pool_status_requests: tuple[ResourcePoolStatusRequest, ...]
    skipped: Counter[str]
    """How many objects of other kinds there are, by kind."""


def read_manifests(path: Path) -> Manifests:
    """The objects of a file, or of all YAML and JSON files below a directory.

    Raises ManifestError with a line for every problem, as far as reading got: a file ends at its first mistake in YAML.
    """
    reading = _Reading()
    for file in files_of(path):
        try:
            documents = parse(_bytes(file), str(file), MAX_FILE_BYTES)
        except ManifestError as error:
            reading.problems.append(str(error))
            continue
        for document in documents:
            reading.take(document)
    return reading.manifests()


def stamp(path: Path) -> Stamp:
    """What tells, without reading them, whether the files have changed. Raises ManifestError."""
    try:
        return tuple((str(file), (known := file.stat()).st_mtime_ns, known.st_size) for file in files_of(path))
    except OSError as error:
        raise ManifestError(f"{error.filename}: {error.strerror}") from error


def feed(manifests: Manifests, witness: Witness, now: float) -> Snapshot:
    """Tell a new witness all of it, and that there is nothing else.

    Returns what the pool statuses say. A dump without pods knows nothing of holders: what a claim holds is held. One
    without nodes says that there are no device plugins, and nothing about reach.
    """
    pods, nodes = bool(manifests.heard[Kind.PODS]), bool(manifests.heard[Kind.NODES])
    unsaid = (set() if pods else {Kind.PODS, Kind.ENDED_PODS}) | (set() if nodes else {Kind.NODES})
    witness.from_files(pods=pods, nodes=nodes)
    assumed = now - ASSUMED_AGE_SECONDS
    for kind, entries in manifests.heard.items():
        for entry in entries.values():
            witness.apply(kind, entry.obj, now, assumed if entry.created is None else entry.created)
        if kind not in unsaid:
            witness.synced(kind, now, assumed)
    return build_snapshot(manifests.pool_status_requests, received_at=now)


def lookups(manifests: Manifests, namespace: str, references: ClaimReferences) -> Lookups:
    """The claims and templates a pod of that namespace refers to."""
    claims: dict[str, ResourceClaim | Lookup] = {}
    for name in references.claims:
        entry = manifests.heard[Kind.RESOURCE_CLAIMS].get((namespace, name))
        claims[name] = entry.obj if entry and isinstance(entry.obj, ResourceClaim) else Lookup.MISSING
    return Lookups(
        claims=claims,
        templates={name: manifests.templates.get((namespace, name), Lookup.MISSING) for name in references.templates},
    )


# --- Objects ----------------------------------------------------------------------------------------------------------


class PodStatus(View, frozen=True):
    """`status` of a pod."""

    phase: str = ""


class PodOutline(View, frozen=True):
    """What holding devices depends on; the rest of a pod that runs is its own business."""

    metadata: ObjectMeta
    status: PodStatus = PodStatus()


Decoded = (
    DeviceClass
    | ResourceSlice
    | ResourceClaim
    | ResourceClaimTemplate
    | DeviceTaintRule
    | Node
    | PodOutline
    | ResourcePoolStatusRequest
)

_RESOURCE = "resource.k8s.io"
_STABLE = frozenset({f"{_RESOURCE}/v1", f"{_RESOURCE}/v1beta2"})  # of one shape; that of v1beta1 is another
_ALPHA = frozenset({f"{_RESOURCE}/v1alpha3"})
_CORE = frozenset({"v1"})

KINDS: dict[str, tuple[type[Decoded], frozenset[str]]] = {
    "DeviceClass": (DeviceClass, _STABLE),
    "ResourceSlice": (ResourceSlice, _STABLE),
    "ResourceClaim": (ResourceClaim, _STABLE),
    "ResourceClaimTemplate": (ResourceClaimTemplate, _STABLE),
    "DeviceTaintRule": (DeviceTaintRule, _STABLE | _ALPHA),
    "ResourcePoolStatusRequest": (ResourcePoolStatusRequest, _ALPHA),
    "Node": (Node, _CORE),
    "Pod": (PodOutline, _CORE),
}
"""The kinds that are read, and the versions of each that we understand."""

HEARD_AS_IS = {
    DeviceClass: Kind.DEVICE_CLASSES,
    ResourceSlice: Kind.RESOURCE_SLICES,
    DeviceTaintRule: Kind.DEVICE_TAINT_RULES,
    Node: Kind.NODES,
}


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


@dataclass(slots=True, eq=False)
class _Reading:
    """What has been read so far."""

    heard: dict[Kind, dict[Name, Entry]] = field(default_factory=lambda: {kind: {} for kind in Kind})
    templates: dict[Name, ResourceClaimTemplate] = field(default_factory=dict)
    requests: list[ResourcePoolStatusRequest] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    sources: dict[tuple[str, str, str], str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def take(self, document: Document) -> None:
        """Read one object, or note what is wrong with it."""
        view, versions = KINDS.get(document.kind, (None, frozenset()))
        if view is None or _group(document.api_version) not in map(_group, versions):
            self.skipped[document.kind] += 1
        elif document.api_version not in versions:
            # To skip slices or classes would make devices disappear, and others look like the last ones.
            known = " or ".join(sorted(versions))
            self.problems.append(f"{document.source}: {document.kind} of {document.api_version!a}, expected {known}")
        else:
            try:
                self._keep(document, decode(document, view))
            except ManifestError as error:
                self.problems.append(str(error))
            except ValueError as error:  # a timestamp
                self.problems.append(f"{document.source}: {document.kind}: {error}")

    def _keep(self, document: Document, obj: Decoded) -> None:
        meta = obj.metadata
        namespaced = isinstance(obj, ResourceClaim | ResourceClaimTemplate | PodOutline)
        name = ((meta.namespace or DEFAULT_NAMESPACE) if namespaced else "", meta.name)
        created = None if meta.creation_timestamp is None else epoch_seconds(meta.creation_timestamp)
        if not meta.name:
            raise ManifestError(f"{document.source}: {document.kind} without a name")
        before = self.sources.setdefault((document.kind, *name), document.source)
        if before is not document.source:
            raise ManifestError(f"{document.source}: {document.kind} {meta.name!a} is already in {before}")
        match obj:
            case ResourceClaimTemplate():
                self.templates[name] = obj
            case ResourcePoolStatusRequest():
                self.requests.append(obj)
            case PodOutline():
                self._keep_pod(document, obj, name, created)
            case ResourceClaim():
                if obj.status and obj.status.allocation and obj.status.allocation.allocation_timestamp:
                    epoch_seconds(obj.status.allocation.allocation_timestamp)
                placed = msgspec.structs.replace(obj, metadata=msgspec.structs.replace(meta, namespace=name[0]))
                self.heard[Kind.RESOURCE_CLAIMS][name] = Entry(placed, created)
            case _:
                self.heard[HEARD_AS_IS[type(obj)]][name] = Entry(obj, created)

    def _keep_pod(self, document: Document, pod: PodOutline, name: Name, created: float | None) -> None:
        meta = pod.metadata
        if not meta.uid:
            raise ManifestError(f"{document.source}: Pod without metadata.uid, by which claims name their holders")
        # The API server writes the deadline: the time of the deletion and the grace period.
        deadline = None if meta.deletion_timestamp is None else epoch_seconds(meta.deletion_timestamp)
        entry = Entry(PodRecord(meta.uid, *name, deadline), created)
        self.heard[Kind.PODS][name] = entry
        if pod.status.phase in ("Succeeded", "Failed"):
            self.heard[Kind.ENDED_PODS][name] = entry

    def manifests(self) -> Manifests:
        """All of it. Raises ManifestError if there were problems."""
        if self.problems:
            more = len(self.problems) - PROBLEMS_AT_MOST
            rest = [f"and {more} more problems"] if more > 0 else []
            raise ManifestError("\n".join([*self.problems[:PROBLEMS_AT_MOST], *rest]))
        return Manifests(self.heard, self.templates, tuple(self.requests), self.skipped)


# --- Files ------------------------------------------------------------------------------------------------------------


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ManifestError(f"{file}: {error.strerror}") from error
