"""Whom to believe: what each source concludes from claims and statuses."""

from collections.abc import Sequence

import pytest

from app.dra.judgement import Source
from app.dra.reasons import Reason
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.verdict import Outcome
from app.dra.witness import Heard, Kind
from tests.builders import (
    DRIVER,
    GPU,
    NOON,
    decoded,
    device,
    device_class,
    device_request,
    pod,
    pool_counts,
    pool_status,
    resource_slice,
    taint_rule,
)
from tests.dra.c0 import (
    ALL_FOUR,
    COUNTED,
    FREE1,
    HAS_ROOM,
    IS_FULL,
    N2_TAKEN,
    NIC,
    NICS_FREE,
    NO_ANSWER,
    OTHER_GENERATION,
    ROOM,
    STALE,
    STALE_ANSWER,
    TAKEN,
    UNKNOWN,
    claims,
    counted,
    need,
    outcome,
    requesting,
    world,
)

CUT = counted(pool_count=150)
ONE_IS_MISSING = [pool_status(pool_counts("n2"), at=COUNTED), NICS_FREE]
UNSET = counted({"driver": DRIVER, "poolName": "n2", "generation": 1, "validationError": "PoolIncomplete"})
SILENT = [decoded({"metadata": {"name": "x"}, "spec": {"driver": DRIVER}}, ResourcePoolStatusRequest)]

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
            {"both": IS_FULL, "auto": IS_FULL},
            id="a device was taken in the second of the count, before it or after it",
        ),
        pytest.param(
            (*claims("n1", *ALL_FOUR, at=COUNTED - 1), *N2_TAKEN),
            FREE1,
            {"both": STALE_ANSWER, "auto": STALE_ANSWER},
            id="the last device was taken a second before the count",
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
    known.witness.tallies.devices_at_once = 1  # a cluster too large to be counted at once
    assert outcome(known) == (UNKNOWN, Reason.SelectorUnknown)
    assert need(known).total is None
    assert outcome(known, pod({GPU: "5"})) == (UNKNOWN, Reason.SelectorUnknown)
    while known.witness.tallies.work(1):
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


def test_a_driver_whose_devices_only_may_match_is_concerned_too() -> None:
    """Its device is taken in the live view; no status confirms that, so `both` must not refuse."""
    unsure = device_class(
        "gpu", declares=GPU, selectors=[f'device.driver == "{DRIVER}" || device.attributes["x"].y == 1']
    )
    other = resource_slice(1, pool="n1", driver="other.example.com")
    taken = claims("n1", "gpu-0", driver="other.example.com")
    for source, want in {"both": NO_ANSWER, "witness": IS_FULL, "auto": IS_FULL}.items():
        nics = claims("n1", *ALL_FOUR, driver=NIC)
        assert outcome(world(unsure, other, *taken, *nics, *TAKEN, source=source)) == want
