"""The objects of a large cluster, as the JSON an API server sends: about as long as real ones, and no two alike.

Written as text, since an object is encoded once and sent many times; `version` is its `metadata.resourceVersion`.
"""

import random
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

DEVICES_PER_SLICE = 8
MODELS = 25
"""Of each driver; a pool holds devices of one model."""

NAMESPACE = "t2"
"""That of the reviews in `tests/real`."""

_UIDS = random.Random(1)  # noqa: S311 - no secret

# What clients leave in the metadata of every object; nobody here reads it, and everybody has to skip it.
_FIELDS = ",".join(f'"f:field-{number}":{{".":{{}},"f:value":{{}}}}' for number in range(16))
_MANAGED = (
    '"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1",'
    f'"time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{{_FIELDS}}}}}}}]'
)
_IMAGES = ",".join(
    f'{{"names":["registry.example.com/team-{number}/image@sha256:{number:064x}"],"sizeBytes":{number}00000000}}'
    for number in range(1, 41)
)


def uid() -> str:
    """A UID like no other."""
    return str(uuid.UUID(int=_UIDS.getrandbits(128)))


def stamp() -> str:
    """Now, as Kubernetes writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Pool:
    """One node's devices of one driver: one slice."""

    driver: str
    name: str
    """Of the pool, its node and its slice alike."""
    model: int
    uuids: tuple[str, ...]

    @classmethod
    def of(cls, driver: int, number: int) -> "Pool":
        """A pool with devices that nobody has seen before."""
        uuids = tuple(f"GPU-{uid()}" for _ in range(DEVICES_PER_SLICE))
        return cls(driver_name(driver), f"node-{driver}-{number:05}", number % MODELS, uuids)


def driver_name(driver: int) -> str:
    """Drivers have numbers here."""
    return f"gpu{driver}.example.com"


def resource_slice(pool: Pool, version: int, firmware: str = "570.86.15") -> bytes:
    """The slice of a pool; other `firmware` is another version of it."""
    devices = ",".join(_device(pool, index, firmware) for index in range(DEVICES_PER_SLICE))
    return (
        f'{{"metadata":{{"name":"{pool.name}","uid":"{uid()}","resourceVersion":"{version}","generation":1,'
        f'"creationTimestamp":"2026-01-01T00:00:00Z",{_MANAGED}}},'
        f'"spec":{{"driver":"{pool.driver}","nodeName":"{pool.name}",'
        f'"pool":{{"name":"{pool.name}","generation":1,"resourceSliceCount":1}},"devices":[{devices}]}}}}'
    ).encode()


def _device(pool: Pool, index: int, firmware: str) -> str:
    """With what a GPU driver publishes."""
    return (
        f'{{"name":"gpu-{index}","attributes":{{'
        '"architecture":{"string":"Hopper"},"brand":{"string":"Nvidia"},"type":{"string":"gpu"},'
        '"cudaComputeCapability":{"version":"9.0.0"},"cudaDriverVersion":{"version":"12.8.0"},'
        f'"driverVersion":{{"version":"{firmware}"}},"productName":{{"string":"model-{pool.model:02}"}},'
        f'"resource.kubernetes.io/pcieRoot":{{"string":"pci0000:0{index}"}},"uuid":{{"string":"{pool.uuids[index]}"}}'
        '},"capacity":{"memory":{"value":"81559Mi"}}}'
    )


def device_class(name: str, selector: str, declares: str, version: int, generation: int = 1) -> bytes:
    """A class of what one CEL expression selects; `declares`: an extended resource name, or none."""
    names = f',"extendedResourceName":"{declares}"' if declares else ""
    expression = selector.replace('"', '\\"')
    return (
        f'{{"metadata":{{"name":"{name}","uid":"{uid()}","resourceVersion":"{version}","generation":{generation},'
        f'"creationTimestamp":"{stamp()}",{_MANAGED}}},'
        f'"spec":{{"selectors":[{{"cel":{{"expression":"{expression}"}}}}]{names}}}}}'
    ).encode()


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod and its claim for one device."""

    name: str
    pod_uid: str
    claim_uid: str
    pool: Pool
    index: int


def claim(holder: Holder, version: int, *, allocated: bool = True, reserved: bool = True) -> bytes:
    """The claim of a pod, as far as it has come."""
    given = (
        f'"allocation":{{"allocationTimestamp":"{stamp()}","devices":{{"results":[{{"request":"gpu",'
        f'"driver":"{holder.pool.driver}","pool":"{holder.pool.name}","device":"gpu-{holder.index}"}}]}},'
        '"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In",'
        f'"values":["{holder.pool.name}"]}}]}}]}}}}'
    )
    consumer = f'"reservedFor":[{{"resource":"pods","name":"{holder.name}","uid":"{holder.pod_uid}"}}]'
    status = ",".join(part for part, has in ((given, allocated), (consumer, reserved)) if has)
    return (
        f'{{"metadata":{{"name":"{holder.name}-gpu","generateName":"{holder.name}-","namespace":"{NAMESPACE}",'
        f'"uid":"{holder.claim_uid}","resourceVersion":"{version}","creationTimestamp":"{stamp()}",'
        '"annotations":{"resource.kubernetes.io/pod-claim-name":"gpu"},'
        '"finalizers":["resource.kubernetes.io/delete-protection"],'
        f'"ownerReferences":[{{"apiVersion":"v1","kind":"Pod","name":"{holder.name}","uid":"{holder.pod_uid}",'
        f'"controller":true,"blockOwnerDeletion":true}}],{_MANAGED}}},'
        '"spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu0",'
        f'"allocationMode":"ExactCount","count":1}}}}]}}}},"status":{{{status}}}}}'
    ).encode()


def pod(holder: Holder, version: int) -> bytes:
    """A pod, its metadata alone."""
    return (
        '{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'
        f'"metadata":{{"name":"{holder.name}","generateName":"train-","namespace":"{NAMESPACE}",'
        f'"uid":"{holder.pod_uid}","resourceVersion":"{version}","creationTimestamp":"2026-01-01T00:00:00Z",'
        '"labels":{"app":"train","pod-template-hash":"59f7d75886","team":"vision"},'
        '"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"train",'
        f'"uid":"7b476475-c6b7-418c-8a6f-0274ad1867f7","controller":true,"blockOwnerDeletion":true}}],{_MANAGED}}}}}'
    ).encode()


def node(name: str, version: int) -> bytes:
    """A node with the images it has pulled."""
    return (
        f'{{"metadata":{{"name":"{name}","uid":"{uid()}","resourceVersion":"{version}",'
        '"creationTimestamp":"2026-01-01T00:00:00Z",'
        f'"labels":{{"kubernetes.io/hostname":"{name}","kubernetes.io/os":"linux","kubernetes.io/arch":"amd64"}},'
        f'{_MANAGED}}},"spec":{{"podCIDR":"10.0.0.0/24"}},'
        '"status":{"capacity":{"cpu":"192","memory":"2097152Mi","pods":"110","ephemeral-storage":"8Ti"},'
        '"allocatable":{"cpu":"190","memory":"2000000Mi","pods":"110","ephemeral-storage":"7Ti"},'
        f'"images":[{_IMAGES}]}}}}'
    ).encode()
