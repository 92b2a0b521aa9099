"""What Vacancy may do in a cluster: the one list of rights, and what each of them buys.

`python -m app.cluster.rights` prints the ClusterRoles; the chart ships what it prints, and the tests run with a service
account that has these rights and no others. What must not come in: a Secret, a wildcard, and the `status` of a
ResourcePoolStatusRequest: whoever may write that one can forge a count. A `status` that may be written says how that is
bounded.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

DRA = "resource.k8s.io"
CORE_GROUP = ""

FOLLOW = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    """One rule of a ClusterRole."""

    group: str
    """API group; empty for the core one."""
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    buys: str
    """What is lost without it, in words for the person who decides."""


@dataclass(frozen=True, slots=True)
class Role:
    """Rights that are given or withheld together."""

    name: str
    buys: str
    rights: tuple[Right, ...]


CORE = Role(
    "vacancy-core",
    "The judgement itself; every rule says what is lost without it.",
    (
        Right(DRA, ("deviceclasses",), FOLLOW, "What a name stands for. Without it nothing is judged."),
        Right(DRA, ("resourceslices",), FOLLOW, "Which devices exist. Without it nothing is judged."),
        Right(
            DRA,
            ("resourcepoolstatusrequests",),
            ("create", "get", "list", "delete"),
            "Counts of devices; list finds what a crash left behind. Without it only the live view is left.",
        ),
        Right(
            DRA,
            ("resourceclaims", "resourceclaimtemplates"),
            ("get",),
            "What a pod asks for by the claim or template it names. Without it such a pod is admitted unjudged.",
        ),
        Right(
            DRA,
            ("devicetaintrules",),
            FOLLOW,
            "Which devices an administrator has tainted. Without it a device tainted by a rule alone counts as free.",
        ),
        Right(
            CORE_GROUP,
            ("nodes",),
            FOLLOW,
            "Which names a device plugin offers, and which devices no pod can reach. "
            "Without it no extended resource name is judged.",
        ),
    ),
)

WITNESS = Role(
    "vacancy-witness",
    "The live view of what is taken. Without it only counts up to a minute old are judged by.",
    (
        Right(DRA, ("resourceclaims",), FOLLOW, "Which claim holds which device at this moment."),
        Right(CORE_GROUP, ("pods",), FOLLOW, "Whether who holds a device still runs; nothing but metadata is read."),
    ),
)

_WAKES = "Annotations that wake a refused"
_BOUND = "The chart's policy lets nothing else of it change."

WAKE = Role(
    "vacancy-wake",
    "Waking the owners of refused pods when a device is free. Without it they wait for up to 1000 s.",
    (
        Right(CORE_GROUP, ("replicationcontrollers/status",), ("patch",), f"{_WAKES} ReplicationController. {_BOUND}"),
        Right(
            "apps",
            ("replicasets/status", "statefulsets/status"),
            ("patch",),
            f"{_WAKES} ReplicaSet or StatefulSet. {_BOUND}",
        ),
        Right("batch", ("jobs/status",), ("patch",), f"{_WAKES} Job. {_BOUND}"),
    ),
)

ROLES = (CORE, WITNESS, WAKE)

_HEAD = """\
# Written by `python -m app.cluster.rights`; change the list there.
apiVersion: v1
kind: List
items:
"""


def manifest(roles: Iterable[Role] = ROLES) -> str:
    """ClusterRoles as one YAML document, with what they buy as comments. Both kubectl and a chart can read it."""
    return _HEAD + "".join(f"{line}\n" for role in roles for line in _lines(role))


def _lines(role: Role) -> Iterator[str]:
    yield f"# {role.buys}"
    yield "- apiVersion: rbac.authorization.k8s.io/v1"
    yield "  kind: ClusterRole"
    yield "  metadata:"
    yield f"    name: {role.name}"
    yield "    labels:"
    yield "      app.kubernetes.io/name: vacancy"
    yield "  rules:"
    for right in role.rights:
        yield f"  # {right.buys}"
        yield f'  - apiGroups: ["{right.group}"]'
        yield f"    resources: [{', '.join(right.resources)}]"
        yield f"    verbs: [{', '.join(right.verbs)}]"


if __name__ == "__main__":
    sys.stdout.write(manifest())
