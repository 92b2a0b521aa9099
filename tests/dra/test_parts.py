"""What is left of devices that are given away in parts."""

from typing import Any

import pytest
from msgspec import Raw

from app.dra.judgement import Policy, World
from app.dra.parts import (
    KINDS_AT_MOST,
    NO_PARTS,
    PARTITIONS_AT_MOST,
    PARTITIONS_AT_ONCE,
    Partitions,
    Parts,
    PartsSum,
    SharedCapacity,
)
from app.dra.places import Places
from app.dra.snapshot import Snapshot, build_snapshot
from app.dra.witness import Heard, Kind, Witness
from tests.builders import (
    NOON,
    device,
    device_class,
    pod_record,
    pool_counts,
    pool_status,
    resource_claim,
    resource_slice,
    taint,
)
from tests.dra.watched import Watched


def parts(*pools: dict[str, Any], at: float = NOON) -> Parts:
    witness = Watched(*(resource_slice(4, pool=pool["poolName"]) for pool in pools)).witness
    world = World(witness, build_snapshot([pool_status(*pools, at=at)], received_at=NOON), Policy())
    return summed(PartsSum(seen_live=False), witness, world)


def summed(found: PartsSum, witness: Witness, world: World) -> Parts:
    for _ in found.add(witness.pools(), world, NOON):
        pass
    return found.parts(Places())


def partitions(**types: tuple[int, int]) -> dict[str, Any]:
    entries = [
        {"attribute": "a/b", "type": name, "total": total, "allocatable": fits} for name, (total, fits) in types.items()
    ]
    return {"partitionSummary": entries}


def shares(**capacities: tuple[str, str]) -> dict[str, Any]:
    entries = [
        {"name": name, "total": total, "consumed": "0", "available": available}
        for name, (total, available) in capacities.items()
    ]
    return {"shareableSummary": {"fullyAvailableDevices": 0, "partiallyAvailableDevices": 1, "capacity": entries}}


def test_types_and_capacities_are_summed_over_pools() -> None:
    found = parts(
        pool_counts("n1", **partitions(half=(4, 1), whole=(2, 0)), **shares(memory=("48Gi", "12Gi"))),
        pool_counts("n2", **partitions(half=(4, 3)), **shares(memory=("48Gi", "500Mi"))),
        pool_counts("n3"),
    )
    assert found == Parts(
        (Partitions("half", 8, 4), Partitions("whole", 2, 0)), (SharedCapacity("memory", "96Gi", "12788Mi"),)
    )


NOTHING: dict[str, tuple[dict[str, Any], float]] = {
    "a plain pool": (pool_counts(), NOON),
    "too old": (pool_counts(**partitions(half=(4, 1))), NOON - 91),
    "of another generation": (pool_counts(generation=2, **partitions(half=(4, 1))), NOON),
    "a type without numbers": (pool_counts(partitionSummary=[{"attribute": "a/b", "type": "half"}]), NOON),
    "a capacity without amounts": (pool_counts(shareableSummary={"capacity": [{"name": "memory"}]}), NOON),
    "a capacity that is none": (pool_counts(**shares(memory=("much", "48Gi"))), NOON),
    "a capacity with too many digits to be written": (
        pool_counts(**shares(memory=(f"{'9' * 4000}e4000", "48Gi"))),
        NOON,
    ),
}


@pytest.mark.parametrize("case", NOTHING)
def test_what_is_not_known_is_not_told(case: str) -> None:
    counts, at = NOTHING[case]
    assert parts(counts, at=at) == NO_PARTS


def test_kinds_are_bounded() -> None:
    many = [pool_counts(f"n{i}", **partitions(**{f"{i}-{j}": (1, 1) for j in range(KINDS_AT_MOST)})) for i in (1, 2)]
    assert len(parts(*many).partitions) == KINDS_AT_MOST


# --- Seen live --------------------------------------------------------------------------------------------------------


def partition(name: str, profile: str, card: str, *, cells: tuple[int, ...], **rest: Any) -> dict[str, Any]:  # noqa: ANN401
    """A partition of a card that takes some of its four cells."""
    consumes = {card: {f"cell-{cell}": "1" for cell in cells}}
    return device(name, attributes={"profile": profile, "type": "mig"}, consumes=consumes, **rest)


def card(name: str) -> list[dict[str, Any]]:
    """Whole, or as halves, of which the one in the middle fits beside no other."""
    return [
        partition(f"{name}-whole", "whole", name, cells=(0, 1, 2, 3)),
        partition(f"{name}-half-0", "half", name, cells=(0, 1)),
        partition(f"{name}-half-1", "half", name, cells=(2, 3)),
        partition(f"{name}-mid", "half", name, cells=(1, 2)),
    ]


CELLS = {f"cell-{cell}": "1" for cell in range(4)}


def seen_live(*objects: Heard) -> Parts:
    cards = resource_slice([*card("a"), *card("b"), device("plain")], counters={"a": CELLS, "b": CELLS})
    witness = Watched(device_class(), cards, pod_record("p1"), *objects).witness
    return summed(PartsSum(seen_live=True), witness, World(witness, Snapshot({}), Policy()))


@pytest.mark.parametrize(
    ("held", "half", "whole"),
    [((), 4, 2), (("a-half-0",), 3, 1), (("a-mid",), 2, 1), (("a-whole", "b-half-0", "b-half-1"), 0, 0)],
)
def test_partitions_fit_one_after_the_other(held: tuple[str, ...], half: int, whole: int) -> None:
    claim = resource_claim(*held, consumers=["p1"]) if held else pod_record("p2")
    assert seen_live(claim).partitions == (Partitions("half", 6, half), Partitions("whole", 2, whole))


def test_a_partition_that_is_held_does_not_fit_again_however_much_is_left() -> None:
    parts_of_a_card = [partition(str(i), "cell", "a", cells=(0,)) for i in range(2)]
    cards = resource_slice(parts_of_a_card, counters={"a": {"cell-0": "9"}})
    witness = Watched(device_class(), cards, resource_claim("0", consumers=["p1"]), pod_record("p1")).witness
    found = summed(PartsSum(seen_live=True), witness, World(witness, Snapshot({}), Policy()))
    assert found.partitions == (Partitions("cell", 2, 1),)


def test_a_tainted_partition_does_not_fit() -> None:
    broken = partition("a", "half", "a", cells=(0, 1), taints=[taint()])
    witness = Watched(device_class(), resource_slice([broken], counters={"a": CELLS})).witness
    found = summed(PartsSum(seen_live=True), witness, World(witness, Snapshot({}), Policy()))
    assert found.partitions == (Partitions("half", 1, 0),)


TYPES: dict[str, tuple[dict[str, str | bool | int], tuple[str, ...]]] = {
    "by its profile": ({"mig.example.com/profile": "1g.5gb", "type": "mig"}, ("1g.5gb",)),
    "by its type": ({"type": "mig"}, ("mig",)),
    "by neither": ({"model": "H100"}, ()),
    "a profile that is no text": ({"profile": 3}, ()),
    "no attribute": ({}, ()),
}


@pytest.mark.parametrize("case", TYPES)
def test_a_type(case: str) -> None:
    attributes, types = TYPES[case]
    part = device("a", attributes=attributes, consumes={"a": {"cell-0": "1"}})
    witness = Watched(device_class(), resource_slice([part], counters={"a": CELLS})).witness
    found = summed(PartsSum(seen_live=True), witness, World(witness, Snapshot({}), Policy()))
    assert tuple(each.type for each in found.partitions) == types


def test_a_partition_whose_attributes_cannot_be_read_is_of_no_type() -> None:
    odd = partition("a", "half", "a", cells=(0, 1))
    odd["attributes"]["score"] = Raw(b"1e999")
    slices = resource_slice([odd, partition("b", "whole", "a", cells=(2, 3))], counters={"a": CELLS})
    witness = Watched(device_class(), slices).witness
    found = summed(PartsSum(seen_live=True), witness, World(witness, Snapshot({}), Policy()))
    assert found.partitions == (Partitions("whole", 1, 1),)


def test_of_more_partitions_than_can_be_counted_nothing_is_said() -> None:
    slices = [resource_slice(card("a"), pool=f"n{i}", counters={"a": CELLS}) for i in range(PARTITIONS_AT_MOST // 4)]
    witness = Watched(device_class(), *slices).witness
    world = World(witness, Snapshot({}), Policy())
    assert len(summed(PartsSum(seen_live=True), witness, world).partitions) == 2
    witness.apply(Kind.RESOURCE_SLICES, resource_slice(card("a"), pool="more", counters={"a": CELLS}), NOON)
    assert summed(PartsSum(seen_live=True), witness, world) == NO_PARTS


def test_a_large_pool_is_counted_some_at_a_time_and_as_it_was_at_one_moment() -> None:
    many = 3 * PARTITIONS_AT_ONCE
    cells = [partition(str(i), "cell", "a", cells=(0,)) for i in range(many)]
    watched = Watched(device_class(), resource_slice(cells, counters={"a": {"cell-0": "9999"}}))
    found, world = PartsSum(seen_live=True), World(watched.witness, Snapshot({}), Policy())
    moments = 0
    for moments, _ in enumerate(found.add(watched.witness.pools(), world, NOON), 1):
        if moments == 1:
            watched.tell(pod_record("p1"), resource_claim(str(many - 1), consumers=["p1"]))
    assert moments == 2 * 3 + 1
    assert found.parts(Places()).partitions == (Partitions("cell", many, many),)
    assert summed(PartsSum(seen_live=True), watched.witness, world).partitions == (Partitions("cell", many, many - 1),)


def test_a_type_that_names_a_pool_or_node_is_not_for_everybody() -> None:
    types = [partition(kind, kind, "a", cells=(0,)) for kind in ("rack-7-half", "whole")]
    witness = Watched(device_class(), resource_slice(types, counters={"a": CELLS})).witness
    found, known = PartsSum(seen_live=True), Places()
    known.add("Rack-7")
    assert list(found.add(witness.pools(), World(witness, Snapshot({}), Policy()), NOON)) == [None]
    assert [(each.type, each.private) for each in found.parts(known).partitions] == [
        ("rack-7-half", True),
        ("whole", False),
    ]


def test_a_status_does_not_count_again_what_is_seen_live() -> None:
    counted = build_snapshot(
        [pool_status(pool_counts(**partitions(half=(9, 9)), **shares(memory=("2Gi", "1Gi"))))], received_at=NOON
    )
    witness = Watched(device_class(), resource_slice(card("a"), counters={"a": CELLS})).witness
    found = summed(PartsSum(seen_live=True), witness, World(witness, counted, Policy()))
    assert found == Parts(
        (Partitions("half", 3, 2), Partitions("whole", 1, 1)), (SharedCapacity("memory", "2Gi", "1Gi"),)
    )
