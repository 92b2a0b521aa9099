"""What one pod asks for, in device classes.

The values first; how a pod's fields become needs is below them. A need is never dropped because another one cannot be
judged: each carries its own reason when it is not judged. The core says which objects it has to see
(`claim_references`), the door reads them, the core goes on (`pod_demand`).
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec
from msgspec import Raw

from app.dra.containers import ResourceTotal, resource_totals
from app.dra.objects import (
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    Pod,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    Strict,
    Toleration,
    Value,
    View,
)
from app.dra.reasons import Reason


class Ask(Value, frozen=True):
    """Devices of one class, narrowed by the request's own selectors. Equal asks share one live count."""

    class_name: str
    selectors: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class Need(Value, frozen=True):
    """One thing the pod must get: an extended resource (summed over its containers) or a device request of a claim."""

    name: str
    """The extended resource name, or `claim/request` as the pod and the claim call them."""
    field: str
    """Path in the pod, as Kubernetes writes it."""
    count: int = 0
    """Devices needed on one node."""
    asks: tuple[Ask, ...] = ()
    """Any one of them would do; the first is the one sentences speak of. Empty when not judged."""
    claimed_name: bool = False
    """The asks are classes that may claim one name (winner first): one that matches no device is then neutral."""
    unjudged: Reason | None = None
    """Why it is not judged; its asks are then of no account."""
    detail: str = ""
    """What the reason is about: the node with the device plugin, the missing class, claim or template."""


class PodDemand(Value, frozen=True):
    """All needs of one pod, and what of the pod decides which nodes it can reach."""

    needs: tuple[Need, ...] = ()
    tolerations: tuple[Toleration, ...] | None = ()
    """None: those of no pod in particular, so only what keeps every pod from a node counts."""
    node_selector: tuple[tuple[str, str], ...] = ()


REQUESTS_AT_MOST = 32
"""Of a claim, as the API server has it (`DeviceRequestsMaxSize`); one in a submitted text may hold more."""


class Lookup(enum.Enum):
    """The outcome of reading a named object, where there is no object to show for it."""

    MISSING = enum.auto()
    FAILED = enum.auto()


@dataclass(frozen=True, slots=True)
class ClaimReferences:
    """Names of claims and templates a pod refers to, in its own namespace: what the door has to read."""

    claims: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lookups:
    """What was read of them."""

    claims: Mapping[str, ResourceClaim | Lookup]
    templates: Mapping[str, ResourceClaimTemplate | Lookup]


class Catalog(Protocol):
    """What the live view has to know for a pod's fields to become needs."""

    def claimants(self, extended_resource: str) -> tuple[str, ...]:
        """Names of all classes the scheduler may resolve the name to, the winner by the rule first.

        Empty when no class declares the name now.
        """

    def has_class(self, name: str) -> bool:
        """Whether a device class of that name exists."""

    def judges_extended_resources(self) -> bool:
        """Whether nodes are known (device plugins!) and the server is new enough for extended-resource names."""

    def plugin_node(self, extended_resource: str, now: float) -> str | None:
        """A node that may serve the name by a device plugin."""

    def claim_allocated(self, namespace: str, name: str) -> bool:
        """Whether the live view shows the claim allocated at this moment."""


# --- From the fields of a pod to its needs ------------------------------------------------------------------------


class _Unjudged(Exception):
    """A claim or a request is beyond us; where its need is made this becomes the need's reason."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class _Named(View, frozen=True):
    """All that is read of an entry we may not understand."""

    name: str = ""


class _DeviceToleration(Strict, frozen=True):
    """A toleration of a device request. The allocator ignores `tolerationSeconds` (seen on 1.37.2)."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


_OPERATORS = frozenset({"", "Equal", "Exists"})
_EFFECTS = frozenset({"", "NoSchedule", "NoExecute", "None"})
_COUNTING_MODES = frozenset({"", "ExactCount"})


def claim_references(pod: Pod) -> ClaimReferences:
    """Names of the claims and templates to read before `pod_demand`, each once."""
    entries = [entry for raw in pod.spec.resource_claims or () if (entry := _claim_entry(raw))]
    return ClaimReferences(
        claims=tuple(dict.fromkeys(entry.resource_claim_name for entry in entries if entry.resource_claim_name)),
        templates=tuple(
            dict.fromkeys(entry.resource_claim_template_name for entry in entries if entry.resource_claim_template_name)
        ),
    )


def pod_demand(pod: Pod, namespace: str, catalog: Catalog, lookups: Lookups, now: float) -> PodDemand:
    """All needs of a pod of this namespace; `now` in epoch seconds, because a device plugin is remembered for a while.

    A claim that two entries name gives its needs twice: the answer is the same.
    """
    spec = pod.spec
    needs = [need for total in resource_totals(spec) if (need := _resource_need(total, catalog, now))]
    for index, raw in enumerate(spec.resource_claims or ()):
        needs.extend(_claim_needs(raw, f"spec.resourceClaims[{index}]", namespace, catalog, lookups))
    return PodDemand(
        needs=tuple(needs),
        tolerations=tuple(spec.tolerations or ()),
        node_selector=tuple(sorted(spec.node_selector.items())) if spec.node_selector else (),
    )


def undeclared(pod: Pod, catalog: Catalog, now: float) -> tuple[str, ...]:
    """Names a pod asks for that no class declares and no node is known to serve: perhaps a typing mistake."""
    names = (total.name for total in resource_totals(pod.spec) if total.implicit_class is None)
    return tuple(name for name in names if not catalog.claimants(name) and catalog.plugin_node(name, now) is None)


def _resource_need(total: ResourceTotal, catalog: Catalog, now: float) -> Need | None:
    """The need behind an extended resource name; None: no class declares it, so DRA has nothing to do with it."""
    implicit = total.implicit_class
    class_names = catalog.claimants(total.name) if implicit is None else (implicit,)
    if not class_names:
        return None
    unjudged, detail = _obstacle(total, catalog, now)
    return Need(
        name=total.name,
        field=total.field,
        count=total.devices,
        asks=() if unjudged else tuple([Ask(class_name) for class_name in class_names]),
        claimed_name=implicit is None,
        unjudged=unjudged,
        detail=detail,
    )


def _obstacle(total: ResourceTotal, catalog: Catalog, now: float) -> tuple[Reason | None, str]:
    """Why an extended resource is not judged, and what the reason is about."""
    if total.unjudged:
        return total.unjudged, ""
    if not catalog.judges_extended_resources():
        return Reason.NoSource, ""
    if total.implicit_class is not None and not catalog.has_class(total.implicit_class):
        return Reason.ClassMissing, total.implicit_class
    node = catalog.plugin_node(total.name, now)
    return (None, "") if node is None else (Reason.DevicePlugin, node)


def _claim_needs(raw: Raw, field: str, namespace: str, catalog: Catalog, lookups: Lookups) -> Iterator[Need]:
    """One need a device request of the claim behind one entry, or one that says why the claim is not judged."""
    entry_name = _name(raw)
    try:
        spec = _claim_spec(raw, namespace, catalog, lookups)
    except _Unjudged as why:
        yield Need(entry_name, field, unjudged=why.reason, detail=why.detail)
        return
    requests = spec.devices.requests or ()
    if len(requests) > REQUESTS_AT_MOST:
        yield Need(entry_name, field, unjudged=Reason.UnknownField)
        return
    for request in requests:
        name = f"{entry_name}/{_name(request)}"
        try:
            yield _request_need(request, name, field, catalog)
        except _Unjudged as why:
            yield Need(name, field, unjudged=why.reason, detail=why.detail)


def _claim_entry(raw: Raw) -> PodResourceClaim | None:
    """An entry of `spec.resourceClaims` that names exactly one object, and nothing we do not know."""
    try:
        entry = _decoded(raw, PodResourceClaim)
    except _Unjudged:
        return None
    return entry if bool(entry.resource_claim_name) != bool(entry.resource_claim_template_name) else None


def _claim_spec(raw: Raw, namespace: str, catalog: Catalog, lookups: Lookups) -> ResourceClaimSpec:
    """The claim the pod will need devices for."""
    entry = _claim_entry(raw)
    if entry is None:
        raise _Unjudged(Reason.UnknownField)
    if entry.resource_claim_name:
        return _decoded(_unallocated(entry.resource_claim_name, namespace, catalog, lookups).spec, ResourceClaimSpec)
    template_name = entry.resource_claim_template_name or ""
    template = lookups.templates.get(template_name, Lookup.FAILED)
    if isinstance(template, Lookup):
        raise _Unjudged(_absence(template, Reason.TemplateMissing), template_name)
    return _decoded(template.spec.spec, ResourceClaimSpec)


def _unallocated(name: str, namespace: str, catalog: Catalog, lookups: Lookups) -> ResourceClaim:
    """The claim of this name, if it still has to be given devices: an allocated one is shared, it needs nothing new."""
    claim = lookups.claims.get(name, Lookup.FAILED)
    if isinstance(claim, Lookup):
        raise _Unjudged(_absence(claim, Reason.ClaimMissing), name)
    if claim.metadata.deletion_timestamp:
        raise _Unjudged(Reason.ClaimMissing, f"{name}, being deleted")
    # The read may be older than the live view: another pod of the same Job can have been faster.
    if (claim.status and claim.status.allocation) or catalog.claim_allocated(namespace, name):
        raise _Unjudged(Reason.ClaimAllocated, name)
    return claim


def _absence(lookup: Lookup, missing: Reason) -> Reason:
    return missing if lookup is Lookup.MISSING else Reason.LookupFailed


def _request_need(raw: Raw, name: str, field: str, catalog: Catalog) -> Need:
    """The need of one device request. Of alternatives the smallest count is kept: more is not certain to be needed."""
    request = _decoded(raw, DeviceRequest)
    exactly, alternatives = request.exactly, request.first_available
    if (exactly is None) == (not alternatives):
        raise _Unjudged(Reason.UnknownField)
    if exactly is not None and exactly.admin_access:
        raise _Unjudged(Reason.AdminAccess)
    options = (exactly,) if exactly is not None else tuple(alternatives or ())
    # All of them are read: the scheduler gives up the whole request when one class is missing (seen on 1.37.2).
    asks = tuple(_ask(option, catalog) for option in options)
    return Need(name, field, count=min(_count(option) for option in options), asks=asks)


def _ask(option: ExactDeviceRequest | DeviceSubRequest, catalog: Catalog) -> Ask:
    ask = Ask(
        class_name=option.device_class_name,
        selectors=tuple(_expression(selector) for selector in option.selectors or ()),
        tolerations=tuple(_toleration(toleration) for toleration in option.tolerations or ()),
    )
    if not catalog.has_class(ask.class_name):
        raise _Unjudged(Reason.ClassMissing, ask.class_name)
    return ask


def _count(option: ExactDeviceRequest | DeviceSubRequest) -> int:
    """Devices the request certainly needs; `All` takes every device of a node, and at least one."""
    if option.allocation_mode == "All":
        return 1
    count = 1 if option.count is None else option.count
    if option.allocation_mode not in _COUNTING_MODES or count < 1:
        raise _Unjudged(Reason.UnknownField)
    return count


def _expression(selector: DeviceSelector) -> str:
    if selector.cel is None:
        raise _Unjudged(Reason.UnknownField)
    return selector.cel.expression


def _toleration(raw: Raw) -> Toleration:
    found = _decoded(raw, _DeviceToleration)
    if found.operator not in _OPERATORS or found.effect not in _EFFECTS:
        raise _Unjudged(Reason.UnknownField)
    return Toleration(found.key, found.operator, found.value, found.effect)


_Wire = TypeVar("_Wire", bound=View)


def _decoded(raw: Raw, wire: type[_Wire]) -> _Wire:
    try:
        return msgspec.json.decode(raw, type=wire)
    except (ValueError, RecursionError) as error:
        raise _Unjudged(Reason.UnknownField) from error


def _name(raw: Raw) -> str:
    """The name of an entry, also of one we do not understand otherwise."""
    try:
        return _decoded(raw, _Named).name
    except _Unjudged:
        return ""
