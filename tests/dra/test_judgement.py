"""Whom to believe, and how the parts of a demand go together.

The cluster is C0 of the acceptance rows: driver gpu.example.com with pools n1 and n2 of four devices each, class gpu.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from app.dra.demand import Lookup, Lookups
from app.dra.judgement import Policy, Source, World, judge
from app.dra.objects import Pod, ResourceClaim
from app.dra.reasons import Reason
from app.dra.snapshot import Snapshot, build_snapshot
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.verdict import NeedVerdict, Outcome, Unreachable, Verdict
from app.dra.witness import Heard, Kind
from tests.builders import (
    DRIVER,
    GPU,
    IMPLICIT_GPU,
    NOON,
    Json,
    by_claim,
    by_template,
    claim_template,
    decoded,
    device,
    device_class,
    device_request,
    first_available,
    node,
    pod,
    pod_record,
    pool_counts,
    pool_status,
    resource_claim,
    resource_slice,
    taint,
    taint_rule,
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


# --- Sources ----------------------------------------------------------------------------------------------------------

FREE1 = counted(pool_counts("n1", allocated=3))
STALE = counted(at=NOON - 91)
OTHER_GENERATION = counted(pool_counts("n1", generation=7))
CUT = counted(pool_count=150)
ONE_IS_MISSING = [pool_status(pool_counts("n2"), at=COUNTED), NICS_FREE]
UNSET = counted({"driver": DRIVER, "poolName": "n2", "generation": 1, "validationError": "PoolIncomplete"})
SILENT = [decoded({"metadata": {"name": "x"}, "spec": {"driver": DRIVER}}, ResourcePoolStatusRequest)]

STALE_ANSWER, NO_ANSWER = (UNKNOWN, Reason.StaleSnapshot), (UNKNOWN, Reason.NoSource)
NOT_CONFIRMED = (UNKNOWN, Reason.PoolIncomplete)


@pytest.mark.parametrize(
    ("objects", "statuses", "want"),
    [
        pytest.param(
            TAKEN,
            counted(),
            {"pool-status": IS_FULL, "witness": IS_FULL, "both": IS_FULL, "auto": IS_FULL},
            id="row 1: everybody says full",
        ),
        pytest.param(
            TAKEN[1:],
            FREE1,
            {"pool-status": HAS_ROOM, "witness": HAS_ROOM, "both": HAS_ROOM, "auto": HAS_ROOM},
            id="row 2: everybody says one is free",
        ),
        pytest.param(
            TAKEN,
            STALE,
            {"pool-status": STALE_ANSWER, "witness": IS_FULL, "both": STALE_ANSWER, "auto": IS_FULL},
            id="row 31: the status is stale",
        ),
        pytest.param(
            TAKEN,
            SILENT,
            {"pool-status": NO_ANSWER, "witness": IS_FULL, "both": NO_ANSWER, "auto": IS_FULL},
            id="row 32: the driver is silent",
        ),
        pytest.param(
            TAKEN,
            [],
            {"pool-status": NO_ANSWER, "witness": IS_FULL, "both": NO_ANSWER, "auto": IS_FULL},
            id="there is no status at all",
        ),
        pytest.param(
            TAKEN,
            UNSET,
            {"pool-status": NOT_CONFIRMED, "witness": IS_FULL, "both": NOT_CONFIRMED, "auto": NOT_CONFIRMED},
            id="row 33: a pool could not be counted",
        ),
        pytest.param(
            TAKEN,
            CUT,
            {"pool-status": NO_ANSWER, "witness": IS_FULL, "both": IS_FULL, "auto": IS_FULL},
            id="row 34: the list is cut",
        ),
        pytest.param(
            TAKEN,
            OTHER_GENERATION,
            {"pool-status": STALE_ANSWER, "witness": IS_FULL, "both": NOT_CONFIRMED, "auto": NOT_CONFIRMED},
            id="row 36: the slices are of another generation",
        ),
        pytest.param(
            TAKEN,
            ONE_IS_MISSING,
            {"pool-status": STALE_ANSWER, "witness": IS_FULL, "both": NOT_CONFIRMED, "auto": NOT_CONFIRMED},
            id="the status does not know a pool",
        ),
        pytest.param(
            TAKEN,
            FREE1,
            {"pool-status": HAS_ROOM, "witness": IS_FULL, "both": STALE_ANSWER, "auto": STALE_ANSWER},
            id="the status proves a device free",
        ),
        pytest.param(
            TAKEN[1:],
            counted(),
            {"pool-status": IS_FULL, "witness": HAS_ROOM, "both": HAS_ROOM, "auto": HAS_ROOM},
            id="a device was freed since the count",
        ),
        pytest.param(
            (*claims("n1", *ALL_FOUR, at=NOON - 1), *N2_TAKEN),
            FREE1,
            {"pool-status": HAS_ROOM, "witness": IS_FULL, "both": IS_FULL, "auto": IS_FULL},
            id="row 121: a device was taken since the count",
        ),
        pytest.param(
            (*claims("n1", *ALL_FOUR, at=COUNTED), *N2_TAKEN),
            FREE1,
            {"both": STALE_ANSWER, "auto": STALE_ANSWER},
            id="a device was taken in the second of the count",
        ),
    ],
)
def test_what_each_source_concludes(
    objects: Sequence[Heard], statuses: list[ResourcePoolStatusRequest], want: dict[str, tuple[Outcome, Reason]]
) -> None:
    assert {source: outcome(world(*objects, source=source, statuses=statuses)) for source in want} == want


@pytest.mark.parametrize(
    ("age", "want"),
    [
        pytest.param(90, IS_FULL, id="of the greatest age"),
        pytest.param(91, STALE_ANSWER, id="older"),
        pytest.param(0, IS_FULL, id="of now"),
        pytest.param(-5, IS_FULL, id="so little ahead of our clock"),
        pytest.param(-6, NO_ANSWER, id="from the future"),
    ],
)
@pytest.mark.parametrize("source", ["pool-status", "both"])
def test_how_old_a_status_may_be(source: str, age: float, want: tuple[Outcome, Reason]) -> None:
    assert outcome(world(*TAKEN, source=source, statuses=counted(at=NOON - age))) == want


def test_a_limit_of_the_platform_team_counts() -> None:
    assert outcome(world(*TAKEN, source="pool-status", statuses=STALE, max_age_seconds=120.0)) == IS_FULL


@pytest.mark.parametrize(
    ("objects", "statuses", "want"),
    [
        pytest.param(
            [resource_slice([device(f"gpu-{index}") for index in (1, 2, 3, 4)], pool="n1"), *TAKEN],
            counted(),
            HAS_ROOM,
            id="rows 101 and 102: the device that is held has another name in the slice now",
        ),
        pytest.param(
            [taint_rule({"pool": "n1", "device": "gpu-0"}), *TAKEN[:3], *N2_TAKEN],
            counted(pool_counts("n1", allocated=3, unavailable=1)),
            HAS_ROOM,
            id="row 103: one device allocated and tainted, another free",
        ),
        pytest.param(
            [taint_rule({"pool": "n1", "device": "gpu-3"}), *TAKEN[:3], *N2_TAKEN],
            counted(pool_counts("n1", allocated=3, unavailable=1)),
            IS_FULL,
            id="row 104: the same counts, the tainted one is the free one",
        ),
        pytest.param(
            [resource_slice([device("gpu-0"), device("gpu-1", shareable=True)], pool="n1"), *TAKEN],
            counted(pool_counts("n1", total=2, allocated=2)),
            (UNKNOWN, Reason.Shareable),
            id="row 40: a shareable device",
        ),
        pytest.param(
            [resource_slice(4, pool="n3", slices=2), *TAKEN],
            counted(),
            (UNKNOWN, Reason.PoolIncomplete),
            id="row 148: an incomplete pool",
        ),
        pytest.param(
            [resource_slice([device("a"), device("a")], pool="n3"), *TAKEN],
            counted(),
            (UNKNOWN, Reason.PoolInvalid),
            id="row 114: an invalid pool",
        ),
        pytest.param([taint_rule({})], counted(), IS_FULL, id="row 106: a rule for every device"),
        pytest.param([taint_rule(None)], counted(), HAS_ROOM, id="row 107: a rule for none"),
        pytest.param(
            [taint_rule({"deviceClassName": "gpu"})], counted(), HAS_ROOM, id="row 134: a rule of an old server"
        ),
    ],
)
def test_only_the_live_view_tells_the_devices_apart(
    objects: Sequence[Heard], statuses: list[ResourcePoolStatusRequest], want: tuple[Outcome, Reason]
) -> None:
    assert outcome(world(*objects, statuses=statuses)) == want


def test_row_130_the_newest_generation_does_not_cover_every_node_for_any_source() -> None:
    old = resource_slice(1, pool="p", node="n1", name="old")
    new = resource_slice([device("x")], pool="p", node="n2", name="new", generation=2)
    statuses = counted(pool_counts("p", total=1, allocated=1, generation=2))
    for source in Source:
        known = world(old, new, *TAKEN, *claims("p", "x"), source=source, statuses=statuses)
        assert outcome(known) == (UNKNOWN, Reason.PoolInvalid)


@pytest.mark.parametrize("kind", [Kind.RESOURCE_CLAIMS, Kind.PODS, Kind.ENDED_PODS])
@pytest.mark.parametrize("source", ["witness", "both", "auto"])
def test_row_131_a_watch_that_ended_refuses_nothing(kind: Kind, source: str) -> None:
    known = world(*TAKEN, source=source)
    known.witness.lost(kind)
    assert outcome(known) == STALE_ANSWER
    assert need(known).free is None
    known.witness.synced(kind, NOON)
    assert outcome(known) == IS_FULL


@pytest.mark.parametrize("kind", [Kind.RESOURCE_CLAIMS, Kind.PODS, Kind.ENDED_PODS])
@pytest.mark.parametrize(
    ("source", "want"),
    [("pool-status", IS_FULL), ("auto", IS_FULL), ("witness", NO_ANSWER), ("both", NO_ANSWER)],
)
def test_where_claims_may_not_be_read_auto_is_the_pool_status(
    kind: Kind, source: str, want: tuple[Outcome, Reason]
) -> None:
    known = world(source=source)
    known.witness.deny(kind)
    assert outcome(known) == want


@pytest.mark.parametrize("kind", [Kind.DEVICE_CLASSES, Kind.RESOURCE_SLICES])
@pytest.mark.parametrize("source", Source)
def test_without_classes_or_slices_nothing_is_judged(kind: Kind, source: Source) -> None:
    known = world(*TAKEN, source=source)
    known.witness.lost(kind)
    assert outcome(known) == STALE_ANSWER
    assert outcome(known, pod({"cpu": "1"})) == (ROOM, Reason.NoDeviceRequested)
    assert outcome(known, *requesting(device_request())) == STALE_ANSWER


@pytest.mark.parametrize("source", Source)
def test_a_count_that_is_not_complete_refuses_nothing(source: Source) -> None:
    """The first pool is full; the second has not been looked at."""
    known = world(*TAKEN, source=source)
    known.witness._tallies.devices_at_once = 1  # noqa: SLF001  # a cluster too large to be counted at once
    assert outcome(known) == (UNKNOWN, Reason.SelectorUnknown)
    assert need(known).total is None
    assert outcome(known, pod({GPU: "5"})) == (UNKNOWN, Reason.SelectorUnknown)
    while known.witness.work(1):
        pass
    assert outcome(known) == IS_FULL


def test_auto_decides_per_driver() -> None:
    """One driver's status is fresh and vetoes, the other's is stale and cannot."""
    any_class = device_class("gpu", declares=GPU, selectors=[])
    nics = claims("n1", *ALL_FOUR, driver=NIC)
    fresh_gpu = pool_status(pool_counts("n1"), pool_counts("n2"), at=COUNTED)
    nic_free = [pool_status(pool_counts("n1", allocated=3, driver=NIC), driver=NIC, at=NOON - age) for age in (2, 91)]
    for status, want in zip(nic_free, (STALE_ANSWER, IS_FULL), strict=True):
        assert outcome(world(any_class, *TAKEN, *nics, source="auto", statuses=[fresh_gpu, status])) == want


# --- What a status proves ---------------------------------------------------------------------------------------------


def test_row_122_a_mixed_pool_proves_nothing_for_one_kind() -> None:
    mixed = resource_slice([device("a", attributes={"model": "a"}), device("b", attributes={"model": "b"})], pool="n1")
    statuses = counted(pool_counts("n1", total=2, allocated=1))
    known = world(mixed, *claims("n1", "a"), *N2_TAKEN, statuses=statuses)
    selector = [{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "a"'}}]
    other = world(mixed, *claims("n1", "a"), *N2_TAKEN, statuses=statuses)
    assert outcome(other) == HAS_ROOM
    gpu_model = resource_slice([device(name, attributes={"model": "a"}) for name in ALL_FOUR], pool="n2", generation=1)
    known.witness.apply(Kind.RESOURCE_SLICES, gpu_model, NOON)
    said = need(known, *requesting(device_request(selectors=selector)))
    assert (said.outcome, said.total, said.listed) == (FULL, 5, 1)


def test_row_108_partitions_whose_counters_are_used_up() -> None:
    card = resource_slice(
        [
            device("whole", consumes={"card": {"memory": "80Gi"}}),
            device("half-0", consumes={"card": {"memory": "40Gi"}}),
            device("half-1", consumes={"card": {"memory": "40Gi"}}),
        ],
        pool="n1",
        counters={"card": {"memory": "80Gi"}},
    )
    statuses = counted(pool_counts("n1", total=3, allocated=1))
    for source, want in {"both": IS_FULL, "witness": IS_FULL, "pool-status": HAS_ROOM}.items():
        known = world(card, *claims("n1", "whole"), *N2_TAKEN, source=source, statuses=statuses)
        assert outcome(known) == want
    assert need(world(card, *claims("n1", "whole"), *N2_TAKEN, statuses=statuses)).listed == 2


CORDONED = node("n2", cordoned=True)


@pytest.mark.parametrize(
    ("since", "want"),
    [
        pytest.param(300, IS_FULL, id="row 138: for five minutes"),
        pytest.param(30, HAS_ROOM, id="row 139: for 30 seconds"),
    ],
)
@pytest.mark.parametrize("source", ["witness", "both", "auto"])
def test_a_free_device_on_a_cordoned_node(source: str, since: float, want: tuple[Outcome, Reason]) -> None:
    known = world(*N1_TAKEN, *N2_TAKEN[1:], source=source, statuses=counted(pool_counts("n2", allocated=3)))
    known.witness.apply(Kind.NODES, CORDONED, NOON - since)
    assert outcome(known) == want
    if want == IS_FULL:
        said = need(known)
        assert said.unreachable == (Unreachable("n2", "is cordoned", 1),)
        assert said.listed == 0  # what the status lists there is what the sentence names already


def test_a_status_proves_more_devices_free_than_are_out_of_reach() -> None:
    known = world(*N1_TAKEN, *N2_TAKEN[1:], statuses=counted(pool_counts("n2", allocated=2)))
    known.witness.apply(Kind.NODES, CORDONED, NOON - 300)
    assert outcome(known) == STALE_ANSWER


def test_a_device_that_only_tolerations_make_free_is_none_a_status_calls_available() -> None:
    """Available devices carry no taint: the one the status lists is not the tainted one out of reach."""
    tainted = resource_slice([device("gpu-0", taints=[taint()]), device("gpu-1")], pool="n2")
    status = counted(pool_counts("n2", total=2, allocated=0, unavailable=1))
    known = world(tainted, *N1_TAKEN, *claims("n2", "gpu-1"), statuses=status)
    known.witness.apply(Kind.NODES, CORDONED, NOON - 300)
    tolerating = device_request(tolerations=[{"key": "example.com/broken", "operator": "Exists"}])
    assert outcome(known, *requesting(tolerating)) == STALE_ANSWER


# --- Pool status alone ------------------------------------------------------------------------------------------------


def test_the_pool_status_knows_nothing_of_reach_and_of_blocks_the_witness_counts() -> None:
    known = world(source="pool-status", statuses=counted(pool_counts("n1", allocated=3)))
    known.witness.apply(Kind.NODES, CORDONED, NOON - 300)
    said = need(known, pod({GPU: "4"}))
    assert (said.outcome, said.reason) == (ROOM, Reason.FewerThanAsked)
    assert (said.free, said.total, said.largest_free_block, said.unreachable) == (1, 8, 1, ())
    full = need(world(source="pool-status"))
    assert (full.free, full.total, full.unreachable, full.largest_free_block) == (0, 8, (), 0)


def test_the_number_of_free_devices_needs_every_driver_counted() -> None:
    any_class = device_class("gpu", declares=GPU, selectors=[])
    known = world(any_class, source="pool-status", statuses=counted(pool_counts("n1", allocated=3))[:1])
    said = need(known, pod({GPU: "4"}))
    assert (said.outcome, said.reason, said.free) == (ROOM, Reason.HasRoom, None)


@pytest.mark.parametrize("source", Source)
def test_a_claimant_whose_pool_is_rolling_out_is_not_neutral(source: Source) -> None:
    """It matches no device yet; the next slice may bring one."""
    newer = device_class("b", driver="b.example.com", declares=GPU, created=AGES_AGO + 1)
    rolling = resource_slice(1, pool="n1", driver="b.example.com", slices=2)
    assert outcome(world(newer, rolling, *TAKEN, source=source)) == (UNKNOWN, Reason.PoolIncomplete)
    assert outcome(world(newer, *TAKEN, source=source)) == IS_FULL


def test_a_pool_that_will_never_be_used_is_neutral_for_every_source() -> None:
    """Row 147."""
    unusable = resource_slice(1, pool="n3", slices=2)
    for source in Source:
        known = world(*TAKEN, source=source)
        known.witness.apply(Kind.RESOURCE_SLICES, unusable, NOON - 360)
        assert outcome(known) == IS_FULL


def test_row_149_generation_0() -> None:
    zero = resource_slice(4, pool="n1", generation=0)
    assert outcome(world(zero, *TAKEN, source="witness")) == IS_FULL
    statuses = counted(pool_counts("n1", generation=0))
    assert outcome(world(zero, *TAKEN, source="pool-status", statuses=statuses)) == STALE_ANSWER


def test_a_device_that_may_match_keeps_the_pool_status_from_calling_a_class_full() -> None:
    unsure = device_class("gpu", declares=GPU, selectors=['device.attributes["gpu.example.com"].model == "a"'])
    assert outcome(world(unsure, source="pool-status")) == (UNKNOWN, Reason.SelectorUnknown)


def test_to_who_tolerates_taints_tainted_devices_may_be_free() -> None:
    known = world(source="pool-status", statuses=counted(pool_counts("n1", allocated=3, unavailable=1)))
    tolerating = device_request(tolerations=[{"key": "k", "operator": "Exists"}])
    assert outcome(known, *requesting(device_request()))[0] is UNKNOWN
    assert outcome(known, *requesting(tolerating)) == HAS_ROOM
    assert need(known, *requesting(tolerating)).free is None  # available devices are those without a taint


# --- Several needs, alternatives, claimants ---------------------------------------------------------------------------

BOTH_CLASSES = (device_request("gpu", name="a"), device_request("nic", name="b"))


@pytest.mark.parametrize(
    ("asking", "want"),
    [
        pytest.param((pod(), NO_LOOKUPS), IS_FULL, id="the extended resource"),
        pytest.param((pod({IMPLICIT_GPU: "1"}), NO_LOOKUPS), IS_FULL, id="the implicit name"),
        pytest.param((pod({"cpu": "1"}), NO_LOOKUPS), (ROOM, Reason.NoDeviceRequested), id="no device"),
        pytest.param((pod({"example.com/other": "1"}), NO_LOOKUPS), (ROOM, Reason.NoDeviceRequested), id="row 9"),
        pytest.param(requesting(device_request("nic")), HAS_ROOM, id="devices of another class"),
        pytest.param(requesting(*BOTH_CLASSES), IS_FULL, id="one full request of two"),
        pytest.param(requesting(*BOTH_CLASSES[::-1]), IS_FULL, id="whichever comes first"),
        pytest.param(requesting(device_request("gpu"), {"odd": 1}), IS_FULL, id="one beside a request we cannot read"),
        pytest.param(
            requesting(device_request("nic"), {"odd": 1}), (UNKNOWN, Reason.UnknownField), id="unknown beats room"
        ),
        pytest.param(requesting(first_available("gpu", "nic")), HAS_ROOM, id="row 48: an alternative is free"),
        pytest.param(requesting(first_available("gpu", "gpu")), IS_FULL, id="every alternative is full"),
        pytest.param(
            requesting(first_available("gpu", "nosuch")),
            (UNKNOWN, Reason.ClassMissing),
            id="row 113: a class is missing",
        ),
        pytest.param(requesting(device_request(adminAccess=True)), (UNKNOWN, Reason.AdminAccess), id="row 46"),
        pytest.param(requesting(device_request(allocationMode="All")), IS_FULL, id="row 51: All"),
    ],
)
def test_what_a_pod_asks_for(asking: tuple[Pod, Lookups], want: tuple[Outcome, Reason]) -> None:
    assert outcome(world(*TAKEN), *asking) == want


def test_an_alternative_without_devices_is_not_full() -> None:
    empty = device_class("empty", driver="empty.example.com")
    known = world(empty, *TAKEN)
    assert outcome(known, *requesting(first_available("gpu", "empty"))) == (UNKNOWN, Reason.NoMatchingDevice)
    assert outcome(known, *requesting(first_available("empty", "gpu"))) == (UNKNOWN, Reason.NoMatchingDevice)


def test_row_58_an_allocated_claim_needs_nothing_new_also_if_only_the_witness_knows() -> None:
    unallocated = Lookups({"c1": resource_claim(name="c1")}, {})
    asking = pod(claims=[by_claim()])
    assert outcome(world(*TAKEN), asking, unallocated) == IS_FULL
    known = world(*TAKEN[1:], resource_claim("gpu-0", name="c1", consumers=["holder"]))
    assert outcome(known, asking, unallocated) == (UNKNOWN, Reason.ClaimAllocated)
    assert outcome(world(*TAKEN), asking, Lookups({"c1": Lookup.MISSING}, {})) == (UNKNOWN, Reason.ClaimMissing)


@pytest.mark.parametrize(
    ("other", "free", "want"),
    [
        pytest.param({"declares": GPU, "created": NOON - 9}, 1, HAS_ROOM, id="row 22: the winner has a device"),
        pytest.param({"declares": GPU, "created": NOON - 9_999}, 1, HAS_ROOM, id="the loser has a device"),
        pytest.param({"declares": GPU, "created": NOON - 9}, 0, IS_FULL, id="both are full"),
        pytest.param({"created": 50.0, "generation": 2}, 1, IS_FULL, id="row 144: edited once, no other name"),
        pytest.param({"created": 50.0, "generation": 3}, 1, HAS_ROOM, id="row 145: edited twice"),
        pytest.param(
            {"created": 50.0, "generation": 2, "declares": "example.com/y"}, 1, HAS_ROOM, id="row 120: another name now"
        ),
        pytest.param({"created": NOON + 1, "generation": 1}, 1, IS_FULL, id="created after our start, never edited"),
    ],
)
def test_every_class_that_may_claim_the_name_must_be_full(
    other: dict[str, Any], free: int, want: tuple[Outcome, Reason]
) -> None:
    b = "b.example.com"
    known: list[Heard] = [device_class("b", driver=b, **other), resource_slice(1, pool="b", driver=b, node="n1")]
    statuses = [*counted(), pool_status(pool_counts("b", total=1, allocated=1 - free, driver=b), driver=b, at=COUNTED)]
    taken = claims("b", *(["gpu-0"] if not free else []), driver=b)
    assert outcome(world(*known, *taken, *TAKEN, statuses=statuses)) == want


def test_row_146_a_claimant_without_devices_is_neutral() -> None:
    lingering = device_class("old", driver="old.example.com", created=50.0, generation=3)
    assert outcome(world(lingering, *TAKEN)) == IS_FULL
    alone = world(device_class("gpu", driver="old.example.com", declares=GPU))
    assert outcome(alone) == (UNKNOWN, Reason.NoMatchingDevice)


def test_row_25_the_message_names_the_winner_by_the_rule() -> None:
    assert need(world(device_class("gpv", declares=GPU, created=AGES_AGO), *TAKEN)).class_name == "gpu"


def test_nodes_decide_whether_extended_resources_are_judged() -> None:
    known = world(*TAKEN)
    known.witness.lost(Kind.NODES)
    assert outcome(known) == (UNKNOWN, Reason.NoSource)
    assert outcome(known, *requesting(device_request())) == IS_FULL
    plugin = need(world(node("n3", plugin={GPU: "8"}), *TAKEN))
    assert (plugin.outcome, plugin.reason, plugin.detail) == (UNKNOWN, Reason.DevicePlugin, "n3")


# --- More than there is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "count", "want"),
    [
        pytest.param(TAKEN[2:], "1", HAS_ROOM, id="less than is free"),
        pytest.param(TAKEN[2:], "2", HAS_ROOM, id="as many as are free"),
        pytest.param(TAKEN[2:], "3", (ROOM, Reason.FewerThanAsked), id="row 3: more than are free"),
        pytest.param(TAKEN[2:], "5", (NEVER, Reason.NeverFits), id="more than any node has"),
        pytest.param(TAKEN, "5", IS_FULL, id="more than any node has, none free: full wins"),
        pytest.param((*N1_TAKEN[1:], *N2_TAKEN[1:]), "2", (ROOM, Reason.FewerThanAsked), id="one free on two nodes"),
        pytest.param(
            (resource_slice(4, pool="fabric", node=""), *TAKEN), "5", (ROOM, Reason.FewerThanAsked), id="row 135"
        ),
        pytest.param(
            (resource_slice([device("s", shareable=True)], pool="n3"), *TAKEN), "5", HAS_ROOM, id="a shareable device"
        ),
        pytest.param((resource_slice(4, pool="n3", slices=2), *TAKEN[2:]), "5", HAS_ROOM, id="an incomplete pool"),
    ],
)
def test_how_many_are_asked_for(objects: Sequence[Heard], count: str, want: tuple[Outcome, Reason]) -> None:
    assert outcome(world(*objects, source="witness"), pod({GPU: count})) == want


def test_what_never_fits_is_said_of_a_full_need_too() -> None:
    assert need(world(*TAKEN), pod({GPU: "5"})).never_fits
    assert not need(world(*TAKEN), pod({GPU: "4"})).never_fits


def test_numbers_of_a_need() -> None:
    said = need(world(*TAKEN[3:], statuses=counted(pool_counts("n1", allocated=1))))
    assert (said.total, said.free, said.pools, said.drivers) == (8, 3, 2, (DRIVER,))
    assert (said.largest_free_block, said.largest_block, said.listed) == (3, 4, 0)
    whole = verdict(world(*TAKEN))
    assert (whole.source, whole.snapshot_time) == ("both", COUNTED)
    alone = verdict(world(*TAKEN, source="witness"))
    assert (alone.source, alone.snapshot_time) == ("witness", None)


@pytest.mark.parametrize("statuses", [FREE1, STALE, OTHER_GENERATION, []], ids=["veto", "stale", "roll-out", "none"])
def test_a_doubt_is_no_number(statuses: list[ResourcePoolStatusRequest]) -> None:
    said = need(world(*TAKEN, statuses=statuses))
    assert (said.outcome, said.free, said.largest_free_block) == (UNKNOWN, None, None)


# --- What the platform team says --------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [{"gpu"}, {DRIVER}, {"other", DRIVER}])
@pytest.mark.parametrize(
    ("objects", "count", "autoscaled", "dynamic"),
    [
        pytest.param(TAKEN, "1", (UNKNOWN, Reason.Autoscaled), (UNKNOWN, Reason.Dynamic), id="full"),
        pytest.param(TAKEN[1:], "1", HAS_ROOM, (UNKNOWN, Reason.Dynamic), id="free"),
        pytest.param(TAKEN[1:], "5", (UNKNOWN, Reason.Autoscaled), (UNKNOWN, Reason.Dynamic), id="never fits as it is"),
        pytest.param(TAKEN, "5", (UNKNOWN, Reason.Autoscaled), (UNKNOWN, Reason.Dynamic), id="full, and never fits"),
    ],
)
def test_devices_that_are_made_on_demand(
    names: set[str],
    objects: Sequence[Heard],
    count: str,
    autoscaled: tuple[Outcome, Reason],
    dynamic: tuple[Outcome, Reason],
) -> None:
    asking = pod({GPU: count})
    assert outcome(world(*objects, source="witness", autoscaled=frozenset(names)), asking) == autoscaled
    assert outcome(world(*objects, source="witness", dynamic=frozenset(names)), asking) == dynamic
    others: dict[str, Any] = {"autoscaled": frozenset({"nic", NIC}), "dynamic": frozenset({"nic", NIC})}
    assert outcome(world(*objects, source="witness", **others), asking)[1] not in (Reason.Autoscaled, Reason.Dynamic)


@pytest.mark.parametrize("setting", ["autoscaled", "dynamic"])
def test_a_driver_that_has_yet_to_make_its_first_device_counts(setting: str) -> None:
    """The winner matches nothing now; a pod that pends would change that."""
    newer = device_class("b", driver="b.example.com", declares=GPU, created=AGES_AGO + 1)
    driver, another = ({setting: frozenset({name})} for name in ("b.example.com", "c.example.com"))
    assert outcome(world(newer, *TAKEN, **driver))[0] is UNKNOWN  # type: ignore[arg-type]  # a field of Policy
    assert outcome(world(newer, *TAKEN, **another)) == IS_FULL  # type: ignore[arg-type]


def test_pods_out_of_scope_are_not_judged() -> None:
    assert outcome(world(*TAKEN), pod(labels={"gpu-vacancy.dev/queue": "true"})) == (UNKNOWN, Reason.OptedOut)
    newer = world(*TAKEN)
    newer.witness.server_minor = 38
    assert outcome(newer, pod(priority=1_000)) == (UNKNOWN, Reason.MayPreempt)
    assert outcome(newer, pod(priority=1_000, preemptionPolicy="Never")) == IS_FULL


def test_time_passes_before_a_pod_is_judged() -> None:
    """A holder past its deadline, an incomplete pool that has settled: nobody else calls `advance`."""
    leaving: list[Heard] = [
        pod_record("p1", deadline=NOON),
        resource_claim("gpu-0", name=f"{DRIVER}-n1-gpu-0", pool="n1", consumers=["p1"]),
    ]
    known = world(*TAKEN, *leaving, source="witness")
    assert outcome(known) == HAS_ROOM
    assert verdict(known, now=NOON + 61).outcome is FULL
    known = world(*TAKEN, resource_slice(1, pool="n3", slices=2), source="witness")
    assert outcome(known)[0] is UNKNOWN
    assert verdict(known, now=NOON + 300).outcome is FULL


def test_before_the_first_lists_a_device_is_not_taken_for_none() -> None:
    """A name that no class declares is not ours; but no class is known yet."""
    unlisted = World(Watched(kinds=()).witness, Snapshot({}), Policy())
    assert outcome(unlisted) == NO_ANSWER
    assert outcome(unlisted, *requesting(device_request())) == NO_ANSWER
    assert outcome(unlisted, pod({"cpu": "1"})) == (ROOM, Reason.NoDeviceRequested)


def test_an_empty_world_admits() -> None:
    cluster = Watched()
    for source in Source:
        assert outcome(World(cluster.witness, Snapshot({}), Policy(source=source))) == (ROOM, Reason.NoDeviceRequested)
