"""The cluster of the acceptance rows and questions to it: pools n1 and n2 of four devices each, class gpu."""

from collections.abc import Iterable
from typing import Any

from app.dra.demand import Lookups
from app.dra.judgement import Policy, Source, World, judge
from app.dra.objects import Pod, ResourceClaim
from app.dra.reasons import Reason
from app.dra.snapshot import build_snapshot
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.verdict import NeedVerdict, Outcome, Verdict
from app.dra.witness import Heard
from tests.builders import (
    DRIVER,
    GPU,
    NOON,
    Json,
    by_template,
    claim_template,
    device_class,
    node,
    pod,
    pod_record,
    pool_counts,
    pool_status,
    resource_claim,
    resource_slice,
)
from tests.dra.watched import Watched

ROOM, FULL, NEVER, UNKNOWN = Outcome
NIC = "nic.example.com"
AGES_AGO = NOON - 3_600
COUNTED = NOON - 2

GPU_CLASS = device_class("gpu", declares=GPU, created=AGES_AGO)
NIC_CLASS = device_class("nic", driver=NIC, created=AGES_AGO)
C0: tuple[Heard, ...] = (
    GPU_CLASS,
    NIC_CLASS,
    resource_slice(4, pool="n1"),
    resource_slice(4, pool="n2"),
    resource_slice(4, pool="n1", driver=NIC),
    node("n1"),
    node("n2"),
    pod_record("holder"),
)


def claims(pool: str, *devices: str, driver: str = DRIVER, at: float = AGES_AGO) -> list[ResourceClaim]:
    """A claim of a running pod for each device."""
    return [
        resource_claim(each, name=f"{driver}-{pool}-{each}", pool=pool, driver=driver, consumers=["holder"], at=at)
        for each in devices
    ]


ALL_FOUR = ("gpu-0", "gpu-1", "gpu-2", "gpu-3")
N1_TAKEN, N2_TAKEN = claims("n1", *ALL_FOUR), claims("n2", *ALL_FOUR)
TAKEN = (*N1_TAKEN, *N2_TAKEN)
NICS_FREE = pool_status(pool_counts("n1", allocated=0, driver=NIC), driver=NIC, at=COUNTED)


def counted(*pools: Json, at: float = COUNTED, **rest: Any) -> list[ResourcePoolStatusRequest]:  # noqa: ANN401
    """Statuses in which these pools are like this, and n1 and n2 full where nothing else is said."""
    named = {pool["poolName"] for pool in pools}
    full = [pool_counts(name) for name in ("n1", "n2") if name not in named]
    return [pool_status(*sorted([*pools, *full], key=lambda pool: pool["poolName"]), at=at, **rest), NICS_FREE]


def world(
    *objects: Heard,
    source: str = "both",
    statuses: Iterable[ResourcePoolStatusRequest] | None = None,
    **policy: Any,  # noqa: ANN401  # as Policy takes them
) -> World:
    """The cluster with these objects."""
    cluster = Watched(*C0, *objects, started_at=NOON)
    snapshot = build_snapshot(counted() if statuses is None else statuses, received_at=NOON)
    return World(cluster.witness, snapshot, Policy(source=Source(source), **policy))


NO_LOOKUPS = Lookups({}, {})


def verdict(what: World, asking: Pod | None = None, lookups: Lookups = NO_LOOKUPS, now: float = NOON) -> Verdict:
    return judge(pod() if asking is None else asking, "default", lookups, what, now)


def outcome(what: World, asking: Pod | None = None, lookups: Lookups = NO_LOOKUPS) -> tuple[Outcome, Reason]:
    said = verdict(what, asking, lookups)
    return said.outcome, said.reason


def need(what: World, asking: Pod | None = None, lookups: Lookups = NO_LOOKUPS) -> NeedVerdict:
    return verdict(what, asking, lookups).needs[0]


def requesting(*requests: Json) -> tuple[Pod, Lookups]:
    """A pod with a claim template of these device requests."""
    return pod(claims=[by_template()]), Lookups({}, {"t1": claim_template(*requests)})


IS_FULL = (FULL, Reason.NoGPUCapacity)
HAS_ROOM = (ROOM, Reason.HasRoom)

FREE1 = counted(pool_counts("n1", allocated=3))
STALE = counted(at=NOON - 91)
OTHER_GENERATION = counted(pool_counts("n1", generation=7))

STALE_ANSWER, NO_ANSWER = (UNKNOWN, Reason.StaleSnapshot), (UNKNOWN, Reason.NoSource)
