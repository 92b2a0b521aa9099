"""Devices a pod asks for by extended resource names, summed over its containers as the scheduler does.

Only arithmetic: whether a name stands for a DRA device is decided by those who know the device classes.
"""

import re
from functools import lru_cache

from msgspec import Struct

from app.dra.classes import IMPLICIT_PREFIX
from app.dra.objects import Amount, Container, PodSpec, Value
from app.dra.quantity import whole_devices
from app.dra.reasons import Reason

_NANO = 10**9

_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_PREFIX = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LAST_PART = re.compile("(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LONGEST_PREFIX = 253 - len("requests.")
_LONGEST_LAST_PART = 63
_LONGEST_NAME = len(IMPLICIT_PREFIX) + 253
"""An implicit name of the longest class name, which is longer than any explicit name may be."""


class ResourceTotal(Value, frozen=True):
    """What a pod asks for under one name."""

    name: str
    field: str
    """Where the pod asks for it first, or where it writes an amount that cannot be counted."""
    devices: int = 0
    """Devices needed at the same time, on one node."""
    unjudged: Reason | None = None
    """Why there is no number: FractionalQuantity, or UnknownField for what is no amount at all."""

    @property
    def implicit_class(self) -> str | None:
        """The device class an implicit name stands for; None: the name is one that classes declare."""
        return self.name.removeprefix(IMPLICIT_PREFIX) if self.name.startswith(IMPLICIT_PREFIX) else None


class _Sum(Struct, gc=False):
    """What was found of one name so far."""

    field: str
    containers: int = 0
    sidecars: int = 0
    peak: int = 0
    """The most that is needed while an init container runs, the sidecars before it included."""
    unjudged: Reason | None = None

    def total(self, name: str) -> ResourceTotal:
        if self.unjudged:
            return ResourceTotal(name, self.field, unjudged=self.unjudged)
        return ResourceTotal(name, self.field, max(self.peak, self.containers + self.sidecars))


def is_extended_resource(name: str) -> bool:
    """Whether kube-scheduler looks for a device class behind this name (`IsDRAExtendedResourceName`, 1.37)."""
    # The length bounds what the memory below can be made to hold.
    return "/" in name and len(name) <= _LONGEST_NAME and _is_extended_resource(name)


@lru_cache(maxsize=1024)
def _is_extended_resource(name: str) -> bool:
    if name.startswith(IMPLICIT_PREFIX):
        return True
    prefix, _, last_part = name.partition("/")
    return (
        "kubernetes.io/" not in name  # a substring test there too: mykubernetes.io/gpu counts as native
        and not name.startswith("requests.")
        and len(prefix) <= _LONGEST_PREFIX
        and len(last_part) <= _LONGEST_LAST_PART
        and _PREFIX.fullmatch(prefix) is not None
        and _LAST_PART.fullmatch(last_part) is not None
    )


def resource_totals(spec: PodSpec) -> tuple[ResourceTotal, ...]:
    """Totals of every name the scheduler may look up, without the zeros, in the order the pod names them.

    Containers and sidecars hold their devices side by side until the pod ends. An init container that ends uses devices
    of what starts after it, so each of them is a moment of its own, and the largest moment counts. This is the
    scheduler's `PodRequests` without overhead, which makes no device request (KEP-5004). 1.34 shared nothing and asked
    for more; the smaller number is the certain one.
    """
    sums: dict[str, _Sum] = {}
    for index, container in enumerate(spec.containers):
        for found, devices in _asked(container, "containers", index, sums):
            found.containers += devices
    for index, container in enumerate(spec.init_containers or ()):
        for found, devices in _asked(container, "initContainers", index, sums):
            if container.restart_policy == "Always":
                found.sidecars += devices
            else:
                found.peak = max(found.peak, found.sidecars + devices)
    return tuple([found.total(name) for name, found in sums.items()])


def _asked(container: Container, group: str, index: int, sums: dict[str, _Sum]) -> list[tuple[_Sum, int]]:
    """Each name one container asks for, with its devices."""
    asked = []
    for name, source, amount in _amounts(container):
        devices = _devices(amount)
        if devices == 0:
            continue
        field = f"spec.{group}[{index}].resources.{source}[{name}]"
        found = sums.get(name)
        if found is None:
            found = sums[name] = _Sum(field)
        if not isinstance(devices, Reason):
            asked.append((found, devices))
        elif not found.unjudged:
            found.field, found.unjudged = field, devices
    return asked


def _amounts(container: Container) -> list[tuple[str, str, Amount]]:
    """The scheduler reads `requests`; the API server has copied there what stands in `limits` alone, a file may not."""
    asked: list[tuple[str, str, Amount]] = []
    if container.resources is None:
        return asked
    requests, limits = container.resources.requests or {}, container.resources.limits or {}
    for name in requests:
        if "/" in name and is_extended_resource(name):  # most names are cpu and memory
            asked.append((name, "requests", requests[name]))  # noqa: PERF401 - a comprehension is a call more
    for name in limits:
        if "/" in name and name not in requests and is_extended_resource(name):
            asked.append((name, "limits", limits[name]))  # noqa: PERF401 - as above
    return asked


def _devices(amount: Amount) -> int | Reason:
    """Whole devices, or why they cannot be counted. The scheduler makes no request of a fraction (seen on 1.37.2)."""
    try:
        devices = whole_devices(amount)
    except ValueError:
        return Reason.UnknownField
    return Reason.FractionalQuantity if devices is None else devices
