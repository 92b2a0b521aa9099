"""The capacity table."""

from collections.abc import Iterable
from typing import Any

import pytest

from app.dra.capacity import POOLS_AT_ONCE, Capacity, ClassCapacity, Counts, capacity, class_capacities
from app.dra.judgement import Policy, Source, World
from app.dra.pools import PoolState
from app.dra.reasons import Reason
from app.dra.snapshot import build_snapshot
from app.dra.tallies import DEVICES_AT_ONCE
from app.dra.vacancy import ResourcePoolStatusRequest, Vacancy
from app.dra.witness import Heard, Kind
from tests.builders import (
    GPU,
    NOON,
    device,
    device_class,
    node,
    pod_record,
    pool_counts,
    pool_status,
    resource_claim,
    resource_slice,
    taint,
)
from tests.dra.watched import Watched

FREE, FULL, EMPTY, UNKNOWN = Vacancy
GPU_CLASS = device_class("gpu", declares=GPU)
MODEL_A = 'device.attributes["gpu.example.com"].model == "a"'


def held(*devices: str, pool: str = "n1") -> tuple[Heard, Heard]:
    return resource_claim(*devices, name=f"c-{pool}", pool=pool, consumers=["p1"], at=NOON - 600), pod_record("p1")


def table(
    *objects: Heard,
    source: str = "witness",
    statuses: Iterable[ResourcePoolStatusRequest] = (),
    **policy: Any,  # noqa: ANN401  # as Policy takes them
) -> Capacity:
    cluster = Watched(GPU_CLASS, *objects)
    snapshot = build_snapshot(statuses, received_at=NOON)
    return capacity(World(cluster.witness, snapshot, Policy(source=Source(source), **policy)), NOON)


def gpu(*objects: Heard, **rest: Any) -> ClassCapacity:  # noqa: ANN401
    (row,) = table(*objects, **rest).classes
    return row


def pools(row: ClassCapacity) -> dict[str, tuple[Counts, Vacancy, Reason]]:
    return {pool.pool: (pool.counts, pool.vacancy, pool.reason) for pool in row.pools}


def test_a_class_is_the_sum_of_its_pools() -> None:
    row = gpu(
        resource_slice(4, pool="n1"), resource_slice(2, pool="n2"), *held("gpu-0"), *held("gpu-0", "gpu-1", pool="n2")
    )
    assert (row.name, row.extended_resource_name, row.source, row.age_seconds) == ("gpu", GPU, "witness", None)
    assert (row.counts, row.vacancy, row.reason) == (Counts(6, 3, 3, 0), FREE, Reason.HasRoom)
    assert pools(row) == {
        "n1": (Counts(4, 1, 3, 0), FREE, Reason.HasRoom),
        "n2": (Counts(2, 2, 0, 0), FULL, Reason.NoGPUCapacity),
    }
    assert [(pool.driver, pool.node) for pool in row.pools] == [("gpu.example.com", "n1"), ("gpu.example.com", "n2")]


def test_classes_and_pools_come_by_name() -> None:
    slices = [resource_slice(1, pool=name) for name in ("n2", "n10", "n1")]
    rows = table(*slices, device_class("a"), device_class("z")).classes
    assert [row.name for row in rows] == ["a", "gpu", "z"]
    assert [pool.pool for pool in rows[0].pools] == ["n1", "n10", "n2"]


@pytest.mark.parametrize(
    ("devices", "counts"),
    [
        pytest.param([device("a", taints=[taint()]), device("b")], Counts(2, 0, 1, 1), id="a tainted device"),
        pytest.param([device("gpu-0", taints=[taint()]), device("b")], Counts(2, 1, 1, 0), id="one that is held, too"),
        pytest.param(
            [device(name, consumes={"card": {"memory": "2"}}) for name in ("gpu-0", "b")],
            Counts(2, 1, 0, 1),
            id="counters that are used up",
        ),
        pytest.param([device("a", shareable=True)], Counts(1, 0, 1, 0), id="a shareable device nobody uses"),
    ],
)
def test_what_is_unavailable(devices: list[dict[str, Any]], counts: Counts) -> None:
    assert gpu(resource_slice(devices, counters={"card": {"memory": "2"}}), *held("gpu-0")).counts == counts


def test_a_device_nobody_gets_to_is_unavailable() -> None:
    cluster = Watched(GPU_CLASS, node(cordoned=True), resource_slice(2), *held("gpu-0")).later(120)
    (row,) = capacity(World(cluster.witness, build_snapshot((), received_at=NOON), Policy()), cluster.now).classes
    assert (row.counts, row.vacancy) == (Counts(2, 1, 0, 1), FULL)


def test_a_taint_of_a_node_keeps_only_some_pods_from_its_devices() -> None:
    """No pod asks here: nodes with devices are often tainted so that nobody else comes."""
    reserved = node(taints=[taint(key="team")])
    cluster = Watched(GPU_CLASS, reserved, resource_slice(2), *held("gpu-0")).later(600)
    (row,) = capacity(World(cluster.witness, build_snapshot((), received_at=NOON), Policy()), cluster.now).classes
    assert (row.counts, row.vacancy) == (Counts(2, 1, 1, 0), FREE)
    assert pools(row)["n1"] == (Counts(2, 1, 1, 0), FREE, Reason.HasRoom)


@pytest.mark.parametrize("taints", [[], [taint(key="team")], [taint(key="node.kubernetes.io/unschedulable")]])
def test_a_cordon_keeps_every_pod_away_whatever_else_the_node_carries(taints: list[dict[str, Any]]) -> None:
    cordoned = node(cordoned=True, taints=taints)
    cluster = Watched(GPU_CLASS, cordoned, resource_slice(2), *held("gpu-0")).later(600)
    (row,) = capacity(World(cluster.witness, build_snapshot((), received_at=NOON), Policy()), cluster.now).classes
    assert (row.counts, row.vacancy) == (Counts(2, 1, 0, 1), FULL)


# --- Unknown is never zero --------------------------------------------------------------------------------------------


def test_without_holds_only_the_total_is_known() -> None:
    cluster = Watched(GPU_CLASS, resource_slice(4))
    cluster.witness.lost(Kind.RESOURCE_CLAIMS)
    (row,) = capacity(World(cluster.witness, build_snapshot((), received_at=NOON), Policy()), NOON).classes
    assert (row.counts, row.vacancy, row.reason, row.source) == (Counts(4), UNKNOWN, Reason.StaleSnapshot, "")
    assert pools(row) == {"n1": (Counts(4), UNKNOWN, Reason.StaleSnapshot)}


STATUS_OF_N1 = [pool_status(pool_counts("n1", total=1, allocated=1), at=NOON - 9)]


def test_a_doubt_about_a_status_leaves_what_there_is_and_hides_what_is_left() -> None:
    """The reason is the same as that of an incomplete pool; the counts must not vanish with it."""
    row = gpu(resource_slice(1, generation=2), *held("gpu-0"), source="both", statuses=STATUS_OF_N1)
    assert (row.counts, row.vacancy, row.reason) == (Counts(1, 1), UNKNOWN, Reason.PoolIncomplete)
    assert pools(row) == {"n1": (Counts(1, 1), UNKNOWN, Reason.PoolIncomplete)}


def test_a_pool_that_does_not_count_makes_the_total_unknown() -> None:
    rolling = resource_slice(2, pool="n2", slices=2)
    row = gpu(resource_slice(1), rolling, *held("gpu-0"))
    assert (row.counts, row.vacancy, row.reason) == (Counts(), UNKNOWN, Reason.PoolIncomplete)
    assert pools(row)["n2"] == (Counts(), UNKNOWN, Reason.PoolIncomplete)
    free = gpu(resource_slice(1), resource_slice([device("a"), device("a")], pool="n2"))
    assert (free.counts, free.vacancy) == (Counts(available=1), FREE)
    assert pools(free)["n2"] == (Counts(), UNKNOWN, Reason.PoolInvalid)


def test_a_pool_that_is_never_used_is_shown_and_counts_for_nothing() -> None:
    cluster = Watched(GPU_CLASS, resource_slice(1), resource_slice(2, pool="n2", slices=2), *held("gpu-0")).later(300)
    (row,) = capacity(World(cluster.witness, build_snapshot((), received_at=NOON), Policy()), cluster.now).classes
    assert (row.counts, row.vacancy) == (Counts(1, 1, 0, 0), FULL)
    assert pools(row)["n2"] == (Counts(), UNKNOWN, Reason.PoolIncomplete)


def test_devices_that_may_match_are_not_counted_and_their_pool_is_shown() -> None:
    unsure = device_class("gpu", declares=GPU, selectors=[MODEL_A])
    mixed = resource_slice([device("a", attributes={"model": "a"}), device("x")])
    row = gpu(unsure, mixed, resource_slice(1, pool="n2"))
    assert (row.counts, row.vacancy) == (Counts(available=1), FREE)
    assert pools(row) == {
        "n1": (Counts(1, 0, 1, 0), FREE, Reason.HasRoom),
        "n2": (Counts(), UNKNOWN, Reason.SelectorUnknown),
    }


FREE_ELSEWHERE = resource_slice([device("x", attributes={"model": "a"})], pool="n2")


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        pytest.param(
            [device("gpu-0", shareable=True, attributes={"model": "a"})], Reason.Shareable, id="a share may be left"
        ),
        pytest.param(
            [device("gpu-0", attributes={"model": "a"}), device("unsure")],
            Reason.SelectorUnknown,
            id="the free device may match",
        ),
    ],
)
def test_a_pool_with_a_doubt_is_not_full_beside_a_free_one(devices: list[dict[str, Any]], reason: Reason) -> None:
    unsure = device_class("gpu", declares=GPU, selectors=[MODEL_A])
    row = gpu(unsure, resource_slice(devices), FREE_ELSEWHERE, *held("gpu-0"))
    assert row.vacancy is FREE
    assert pools(row)["n1"] == (Counts(1, 1), UNKNOWN, reason)


def test_a_taken_device_that_may_match_leaves_no_doubt() -> None:
    unsure = device_class("gpu", declares=GPU, selectors=[MODEL_A])
    both = resource_slice([device("a", attributes={"model": "a"}), device("unsure")])
    row = gpu(unsure, both, *held("a", "unsure"))
    assert (row.vacancy, pools(row)["n1"]) == (FULL, (Counts(1, 1, 0, 0), FULL, Reason.NoGPUCapacity))


def test_a_class_without_devices_has_none() -> None:
    row = gpu(resource_slice(1, driver="nic.example.com"))
    assert (row.counts, row.vacancy, row.reason, row.pools) == (Counts(0, 0, 0, 0), EMPTY, Reason.NoMatchingDevice, ())


# --- Pool statuses ----------------------------------------------------------------------------------------------------


def by_status(*counts: dict[str, Any], age: float = 9) -> ClassCapacity:
    slices = [resource_slice(2, pool=name) for name in ("n1", "n2")]
    return gpu(*slices, source="pool-status", statuses=[pool_status(*counts, at=NOON - age)])


def test_counts_of_pool_statuses() -> None:
    row = by_status(pool_counts("n1", total=2, allocated=1), pool_counts("n2", total=2, allocated=2))
    assert (row.counts, row.vacancy, row.age_seconds, row.source) == (Counts(4, 3, 1, 0), FREE, 9, "pool-status")
    assert pools(row)["n2"] == (Counts(2, 2, 0, 0), FULL, Reason.NoGPUCapacity)


def test_nothing_available_is_not_full_for_a_pool_either() -> None:
    """One device allocated, one tainted, or one of both and another free: the counts are the same."""
    row = by_status(pool_counts("n1", total=2, allocated=1, unavailable=1), pool_counts("n2", total=2, allocated=2))
    assert (row.counts, row.vacancy) == (Counts(4, 3), UNKNOWN)
    assert pools(row)["n1"] == (Counts(2, 1), UNKNOWN, Reason.NoSource)
    assert pools(row)["n2"] == (Counts(2, 2, 0, 0), FULL, Reason.NoGPUCapacity)


def test_what_is_stale_is_not_shown_as_free() -> None:
    row = by_status(pool_counts("n1", total=2, allocated=0), pool_counts("n2", total=2, allocated=0), age=91)
    assert (row.vacancy, row.reason, row.counts.available) == (UNKNOWN, Reason.StaleSnapshot, None)
    assert {answer[1:] for answer in pools(row).values()} == {(UNKNOWN, Reason.StaleSnapshot)}
    assert {answer[0].available for answer in pools(row).values()} == {None}


def test_a_pool_the_status_does_not_know_is_unknown_beside_a_free_one() -> None:
    row = by_status(pool_counts("n1", total=2, allocated=1))
    assert (row.vacancy, row.counts.available) == (FREE, None)
    assert pools(row)["n2"] == (Counts(2), UNKNOWN, Reason.StaleSnapshot)


MIXED = resource_slice([device("a", attributes={"model": "a"}), device("b", attributes={"model": "b"})])


def test_a_status_of_a_mixed_pool_counts_no_class() -> None:
    """What is available there may be of the other model."""
    only_a = device_class("gpu", declares=GPU, selectors=[MODEL_A])
    status = pool_status(pool_counts("n1", total=2, allocated=1), at=NOON - 9)
    row = gpu(only_a, MIXED, source="pool-status", statuses=[status])
    assert (row.counts, row.vacancy) == (Counts(1), FREE)
    assert pools(row)["n1"] == (Counts(1), FREE, Reason.HasRoom)


def test_a_status_with_shareable_devices_is_not_full_for_a_pool_either() -> None:
    shareable = resource_slice([device("a", shareable=True)])
    row = gpu(shareable, source="pool-status", statuses=STATUS_OF_N1)
    assert (row.counts, row.vacancy) == (Counts(1), UNKNOWN)
    assert pools(row)["n1"] == (Counts(1), UNKNOWN, Reason.Shareable)


def test_devices_a_status_lists_that_do_not_count_are_named() -> None:
    only_a = device_class("gpu", declares=GPU, selectors=[MODEL_A])
    status = pool_status(pool_counts("n1", total=2, allocated=1), at=NOON - 9)
    row = gpu(only_a, MIXED, *held("a"), source="both", statuses=[status])
    assert (row.counts, row.vacancy, row.listed) == (Counts(1, 1, 0, 0), FULL, 1)
    assert gpu(MIXED, *held("a"), source="both", statuses=[status]).listed == 0


def test_the_table_is_as_old_as_the_oldest_status() -> None:
    nic = pool_status(pool_counts("n1", driver="nic.example.com"), driver="nic.example.com", at=NOON - 50)
    known = table(resource_slice(1), *held("gpu-0"), source="both", statuses=[*STATUS_OF_N1, nic])
    assert known.snapshot_time == NOON - 50
    (row,) = known.classes
    assert (row.age_seconds, row.source, row.vacancy) == (9, "both", FULL)
    assert table(resource_slice(1)).snapshot_time is None


# --- A large cluster --------------------------------------------------------------------------------------------------


def large(number_of_pools: int, *objects: Heard) -> tuple[Watched, World]:
    slices = [resource_slice(1, pool=f"n{index}") for index in range(number_of_pools)]
    cluster = Watched(GPU_CLASS, *objects, *slices)
    return cluster, World(cluster.witness, build_snapshot((), received_at=NOON), Policy(source=Source.WITNESS))


def test_others_may_work_between_parts_of_the_table() -> None:
    _, world = large(2 * POOLS_AT_ONCE + 1, device_class("a"))
    steps = list(class_capacities(world, NOON))
    assert [step.name for step in steps if step is not None] == ["a", "gpu"]
    assert steps.count(None) >= 2 * 3
    assert tuple(step for step in steps if step is not None) == capacity(world, NOON).classes


def test_what_happens_meanwhile_does_not_upset_the_table() -> None:
    cluster, world = large(POOLS_AT_ONCE + 1, device_class("z"))
    rows = []
    for step in class_capacities(world, NOON):
        if step is not None:
            rows.append(step)
            continue
        cluster.gone(*(resource_slice(1, pool=f"n{index}") for index in range(POOLS_AT_ONCE + 1)), device_class("z"))
        cluster.tell(resource_slice(1, pool="new"))
    assert [row.name for row in rows] == ["gpu"]
    assert [pool.pool for pool in rows[0].pools] in ([], ["new"])


@pytest.mark.parametrize("at", range(12))
def test_what_is_taken_or_gone_meanwhile_makes_no_number_negative(at: int) -> None:
    cluster = Watched(GPU_CLASS, node("n1", cordoned=True), resource_slice(2), resource_slice(2, pool="n2"))
    cluster.tell(*held("gpu-1")).later(600)
    world = World(cluster.witness, build_snapshot((), received_at=NOON), Policy(source=Source.WITNESS))
    for number, step in enumerate(class_capacities(world, cluster.now)):
        if number == at:
            cluster.tell(*held("gpu-0", "gpu-1")).gone(resource_slice(2, pool="n2"))
        for counts in (step.counts, *(pool.counts for pool in step.pools)) if step else ():
            assert counts.total == (counts.allocated or 0) + (counts.available or 0) + (counts.unavailable or 0)
            assert min(counts.allocated or 0, counts.available or 0, counts.unavailable or 0) >= 0


def test_of_a_class_that_is_being_counted_no_part_is_shown() -> None:
    cluster, world = large(2 * DEVICES_AT_ONCE)
    cluster.witness.tallies.devices_at_once = DEVICES_AT_ONCE
    (row,) = capacity(world, NOON).classes
    assert row.vacancy is FREE
    assert {row.counts, *(pool.counts for pool in row.pools), *dict(row.drivers).values()} == {Counts()}
    while cluster.witness.tallies.work(100):
        pass
    assert capacity(world, NOON).classes[0].counts == Counts(2 * DEVICES_AT_ONCE, 0, 2 * DEVICES_AT_ONCE, 0)


def test_the_table_does_not_look_at_single_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    _, world = large(3, *held("gpu-0"))
    counted = capacity(world, NOON)
    monkeypatch.delattr(PoolState, "devices")
    assert capacity(world, NOON) == counted
