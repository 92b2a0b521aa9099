"""Partial views of Kubernetes objects, under the API's own names.

Only fields that code reads are declared; the rest is skipped while decoding. Absent is `None`, never zero. Two kinds of
field stay raw JSON: what a selector looks at (kept as bytes, decoded once per distinct shape), and what must be refused
when it holds a key we do not know (decoded strictly where it is read, so that one odd request spoils only itself).
"""

from msgspec import UNSET, Raw, Struct, UnsetType, field

Amount = str | int | float
"""A quantity as written: the API server sends strings, people also write bare numbers in YAML."""


class Value(Struct, gc=False, frozen=True):
    """A computed value that every review makes anew: with seven fields five times as fast as a frozen dataclass."""


class View(Struct, gc=False, frozen=True, rename="camel"):
    """Part of an API object; undeclared fields are skipped."""


class Strict(View, frozen=True, forbid_unknown_fields=True):
    """An API object we must understand whole: an undeclared field is an error."""


class OwnerReference(View, frozen=True):
    """`metadata.ownerReferences[]`."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(View, frozen=True):
    """`metadata`."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


# --- Pods ---------------------------------------------------------------------------------------------------------


class ResourceRequirements(View, frozen=True):
    """`resources` of a container."""

    requests: dict[str, Amount] | None = None
    limits: dict[str, Amount] | None = None


class Container(View, frozen=True):
    """A container or init container; `restart_policy` "Always" makes an init container a sidecar."""

    resources: ResourceRequirements | None = None
    restart_policy: str | None = None


class Toleration(View, frozen=True):
    """A toleration of a pod (node taints) or of a device request (device taints); same fields, same meaning."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodSpec(View, frozen=True):
    """`spec` of a pod or of a pod template."""

    containers: list[Container]
    init_containers: list[Container] | None = None
    resource_claims: list[Raw] | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[Raw] | None = None
    scheduling_group: Raw | UnsetType = UNSET
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    tolerations: list[Toleration] | None = None
    node_selector: dict[str, str] | None = None
    runtime_class_name: str | None = None


class Pod(View, frozen=True):
    """A pod, or the template of one."""

    spec: PodSpec
    metadata: ObjectMeta = ObjectMeta()


class PodResourceClaim(Strict, frozen=True):
    """`spec.resourceClaims[]`; a key beside these (cluster templates, KEP-5978) makes the entry unreadable for us."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


# --- Device classes, claims ---------------------------------------------------------------------------------------


class CELDeviceSelector(View, frozen=True):
    """`selectors[].cel`."""

    expression: str = ""


class DeviceSelector(View, frozen=True):
    """One entry of `selectors`; without `cel` it is of a kind we do not know."""

    cel: CELDeviceSelector | None = None


class DeviceClassSpec(View, frozen=True):
    """`spec` of a DeviceClass."""

    selectors: list[DeviceSelector] | None = None
    extended_resource_name: str | None = None


class DeviceClass(View, frozen=True):
    """resource.k8s.io/v1 DeviceClass."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class ExactDeviceRequest(Strict, frozen=True):
    """`exactly` of a device request. Capacity and derived attributes only narrow what fits; they are not looked at."""

    device_class_name: str
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[Raw] | None = None
    capacity: Raw | UnsetType = UNSET
    derived_attributes: Raw | UnsetType = UNSET


class DeviceSubRequest(Strict, frozen=True):
    """One alternative of `firstAvailable`."""

    name: str
    device_class_name: str
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: int | None = None
    tolerations: list[Raw] | None = None
    capacity: Raw | UnsetType = UNSET
    derived_attributes: Raw | UnsetType = UNSET


class DeviceRequest(Strict, frozen=True):
    """One entry of `spec.devices.requests`: exactly one of the two."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None


class DeviceClaim(Strict, frozen=True):
    """`spec.devices`. Constraints only narrow what fits, config does not concern the choice; both are not looked at."""

    requests: list[Raw] | None = None
    constraints: Raw | UnsetType = UNSET
    config: Raw | UnsetType = UNSET


class ResourceClaimSpec(Strict, frozen=True):
    """`spec` of a ResourceClaim, `spec.spec` of a template."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(View, frozen=True):
    """One device given to a claim."""

    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    share_id: str | None = field(default=None, name="shareID")
    """Of a share of the device; None: the device as a whole."""


class DeviceAllocationResult(View, frozen=True):
    """`status.allocation.devices`; a claim without requests has no `results` key (seen on 1.37.2)."""

    results: list[DeviceRequestAllocationResult] | None = None


class AllocationResult(View, frozen=True):
    """`status.allocation`."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(View, frozen=True):
    """`status.reservedFor[]`."""

    resource: str
    uid: str = ""
    api_group: str = ""


class ResourceClaimStatus(View, frozen=True):
    """`status` of a ResourceClaim."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] | None = None


class ResourceClaim(View, frozen=True):
    """resource.k8s.io/v1 ResourceClaim."""

    metadata: ObjectMeta
    spec: Raw = Raw(b"{}")
    status: ResourceClaimStatus | None = None


class ResourceClaimTemplateSpec(View, frozen=True):
    """`spec` of a template: the claim's spec, once more under `spec`."""

    spec: Raw = Raw(b"{}")


class ResourceClaimTemplate(View, frozen=True):
    """resource.k8s.io/v1 ResourceClaimTemplate."""

    metadata: ObjectMeta
    spec: ResourceClaimTemplateSpec


# --- Devices ------------------------------------------------------------------------------------------------------


class Taint(View, frozen=True):
    """A taint of a device or of a node."""

    key: str
    value: str = ""
    effect: str = ""


class Counter(View, frozen=True):
    """One counter: what a set holds, or what a device takes of it."""

    value: Amount


class CounterSet(View, frozen=True):
    """`spec.sharedCounters[]` of a slice."""

    name: str
    counters: dict[str, Counter]


class DeviceCounterConsumption(View, frozen=True):
    """`consumesCounters[]` of a device."""

    counter_set: str
    counters: dict[str, Counter]


class Device(View, frozen=True):
    """One device of a slice."""

    name: str
    attributes: Raw = Raw(b"")
    capacity: Raw = Raw(b"")
    taints: list[Taint] | None = None
    consumes_counters: list[DeviceCounterConsumption] | None = None
    allow_multiple_allocations: bool | None = None
    node_name: str | None = None


class ResourcePool(View, frozen=True):
    """`spec.pool` of a slice."""

    name: str
    resource_slice_count: int
    generation: int = 0


class ResourceSliceSpec(View, frozen=True):
    """`spec` of a slice."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: Raw | UnsetType = UNSET
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(View, frozen=True):
    """resource.k8s.io/v1 ResourceSlice."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec


class DeviceTaintSelector(Strict, frozen=True):
    """`spec.deviceSelector` of a taint rule; all given fields must be equal. An unknown one taints nothing."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(View, frozen=True):
    """`spec` of a taint rule; without a selector it matches nothing (seen on 1.37.2)."""

    taint: Taint
    device_selector: Raw | UnsetType = UNSET


class DeviceTaintRule(View, frozen=True):
    """resource.k8s.io DeviceTaintRule."""

    metadata: ObjectMeta
    spec: DeviceTaintRuleSpec


# --- Nodes --------------------------------------------------------------------------------------------------------


class NodeSpec(View, frozen=True):
    """`spec` of a node."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeStatus(View, frozen=True):
    """`status` of a node: the device plugins' counts among others."""

    capacity: dict[str, Amount] | None = None
    allocatable: dict[str, Amount] | None = None


class Node(View, frozen=True):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
