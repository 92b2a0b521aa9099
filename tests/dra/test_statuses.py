"""What a status proves, beside the live view and alone."""

import pytest

from app.dra.judgement import Source
from app.dra.reasons import Reason
from app.dra.verdict import Outcome, Unreachable
from app.dra.witness import Kind
from tests.builders import (
    GPU,
    NOON,
    device,
    device_class,
    device_request,
    node,
    pod,
    pool_counts,
    pool_status,
    resource_slice,
    taint,
)
from tests.dra.c0 import (
    AGES_AGO,
    ALL_FOUR,
    COUNTED,
    FULL,
    HAS_ROOM,
    IS_FULL,
    N1_TAKEN,
    N2_TAKEN,
    NICS_FREE,
    ROOM,
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


def test_the_number_of_free_devices_needs_every_pool_counted() -> None:
    """n2 is not in the status: how many are free there nobody knows."""
    status = pool_status(pool_counts("n1", allocated=3), at=COUNTED)
    said = need(world(source="pool-status", statuses=[status, NICS_FREE]))
    assert (said.outcome, said.free) == (ROOM, None)
