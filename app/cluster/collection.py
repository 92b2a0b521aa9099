"""What is read of a cluster, where, and in what form."""

from dataclasses import dataclass

import msgspec
from msgspec import Raw

from app.dra.holders import PodRecord
from app.dra.objects import (
    DeviceClass,
    DeviceTaintRule,
    Node,
    ResourceClaim,
    ResourceSlice,
    View,
)
from app.dra.witness import Heard, Kind
from app.times import epoch_seconds


class PodMeta(View, frozen=True):
    """What is kept of a pod's metadata."""

    name: str
    uid: str
    namespace: str
    deletion_timestamp: str | None = None


class PodOutline(View, frozen=True):
    """A pod as `PartialObjectMetadata`."""

    metadata: PodMeta


Known = DeviceClass | ResourceSlice | ResourceClaim | DeviceTaintRule | Node | PodOutline

_RESOURCE = "/apis/resource.k8s.io/v1"
_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class Collection:
    """Where a kind is read, and in what form."""

    kind: Kind
    path: str
    view: type[Known]
    field_selector: str = ""

    def accept(self, *, listing: bool) -> str:
        """The form to ask for: of pods, metadata alone, a tenth of the bytes."""
        return _METADATA.format("List" if listing else "") if self.view is PodOutline else "application/json"


COLLECTIONS = (
    Collection(Kind.DEVICE_CLASSES, f"{_RESOURCE}/deviceclasses", DeviceClass),
    Collection(Kind.RESOURCE_SLICES, f"{_RESOURCE}/resourceslices", ResourceSlice),
    Collection(Kind.RESOURCE_CLAIMS, f"{_RESOURCE}/resourceclaims", ResourceClaim),
    Collection(Kind.DEVICE_TAINT_RULES, f"{_RESOURCE}/devicetaintrules", DeviceTaintRule),
    Collection(Kind.NODES, "/api/v1/nodes", Node),
    Collection(Kind.PODS, "/api/v1/pods", PodOutline),
    Collection(
        Kind.ENDED_PODS,
        "/api/v1/pods",
        PodOutline,
        # There is no phase but these and the two terminal ones; metadata do not show it, so the server has to select.
        "status.phase!=Running,status.phase!=Pending,status.phase!=Unknown",
    ),
)

FEWER_LOOK_FULLER = frozenset({Kind.DEVICE_CLASSES, Kind.RESOURCE_SLICES, Kind.NODES})
"""Kinds of which an object that cannot be read may hide a free device, another claimant of a name, or a device plugin.

Of the other kinds a missing object can only make a device look free, and that admits."""


class _Meta(View, frozen=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class Outline(View, frozen=True):
    """The name of any object, and of one we cannot read."""

    metadata: _Meta = _Meta()


outlines = msgspec.json.Decoder(Outline)


def heard(obj: Known) -> Heard:
    """An object as the witness wants to hear of it."""
    if not isinstance(obj, PodOutline):
        return obj
    meta = obj.metadata
    # The API server writes the deadline: the time of the deletion and the grace period.
    deadline = None if meta.deletion_timestamp is None else epoch_seconds(meta.deletion_timestamp)
    return PodRecord(meta.uid, meta.namespace, meta.name, deadline)


def name_of(raw: Raw) -> tuple[str, str]:
    """Namespace and name of an object that cannot be read, as far as they can be."""
    try:
        meta = outlines.decode(raw).metadata
    except msgspec.MsgspecError:
        return ("", "")
    return (meta.namespace, meta.name)
