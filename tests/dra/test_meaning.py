"""What `1` of a name means."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from msgspec import Raw

from app.dra.capacity import capacity
from app.dra.demand import Ask
from app.dra.judgement import Policy, Source, World
from app.dra.meaning import Meaning, meaning, meaning_in_steps
from app.dra.objects import ResourceSlice
from app.dra.reasons import Reason
from app.dra.snapshot import Snapshot
from app.dra.spreads import KEPT_SECONDS, LARGE, VALUES_AT_MOST, Spread
from app.dra.vacancy import Vacancy
from app.dra.verdict import Outcome
from app.dra.witness import Heard, Kind
from tests.builders import (
    GPU,
    IMPLICIT_GPU,
    NOON,
    decoded,
    device,
    device_class,
    node,
    pod_record,
    resource_claim,
    resource_slice,
    taint,
)
from tests.dra.watched import Watched

GPU_CLASS = device_class("gpu", declares=GPU, created=NOON - 3_600)
OLD = device_class("old", driver="old.example.com", created=50.0, generation=3)
TAKEN = (resource_claim("gpu-0", consumers=["p1"]), pod_record("p1"))


def world(*objects: Heard, lost: Iterable[Kind] = ()) -> World:
    cluster = Watched(*objects)
    for kind in lost:
        cluster.witness.lost(kind)
    return World(cluster.witness, Snapshot({}), Policy(source=Source.WITNESS))


def said(name: str, *objects: Heard, **rest: Any) -> Meaning:  # noqa: ANN401
    return meaning(name, world(*objects, **rest), NOON)


@pytest.mark.parametrize("name", ["example.com/nosuch", "nosuch", "deviceclass.resource.kubernetes.io/nosuch", "", "/"])
def test_a_name_that_means_nothing(name: str) -> None:
    nothing = said(name, GPU_CLASS, resource_slice(1))
    assert nothing == Meaning(name)
    assert (nothing.winner, nothing.unequal, nothing.verdict) == ("", False, None)


@pytest.mark.parametrize(
    ("name", "declares", "why"),
    [
        pytest.param(GPU, True, "declares the name and is the newest", id="the name it declares"),
        pytest.param(IMPLICIT_GPU, False, "named directly", id="its implicit name"),
        pytest.param("gpu", False, "named directly", id="the class itself"),
    ],
)
def test_a_class_behind_a_name(name: str, declares: bool, why: str) -> None:  # noqa: FBT001
    found = said(name, GPU_CLASS, resource_slice(1), *TAKEN)
    assert (found.winner, found.drivers, found.pools, found.devices) == ("gpu", ("gpu.example.com",), 1, 1)
    (claimant,) = found.claimants
    assert (claimant.declares, claimant.why, claimant.vacancy, claimant.total, claimant.free) == (
        declares,
        why,
        Vacancy.FULL,
        1,
        0,
    )
    assert found.verdict is not None
    assert (found.verdict.outcome, found.verdict.count, found.verdict.name) == (Outcome.FULL, 1, name)
    assert found.held_back_by == ""


@pytest.mark.parametrize(
    ("others", "held_back_by"),
    [
        pytest.param(
            [OLD, resource_slice(1, driver="old.example.com")], "old", id="a forgotten alias has a free device"
        ),
        pytest.param([OLD], "", id="one without devices is neutral"),
        pytest.param(
            [
                OLD,
                resource_slice(1, driver="old.example.com", pool="n2"),
                device_class("zero", driver="zero.example.com", created=40.0, generation=3),
            ],
            "old",
            id="one of several",
        ),
        pytest.param([OLD, resource_slice(1, driver="old.example.com", slices=2)], "old", id="one that rolls out"),
    ],
)
def test_a_claimant_holds_refusals_back(others: list[Heard], held_back_by: str) -> None:
    found = said(GPU, GPU_CLASS, resource_slice(1), *TAKEN, *others)
    assert found.held_back_by == held_back_by
    assert [claimant.name for claimant in found.claimants][:2] == ["gpu", "old"]
    assert found.claimants[1].why == "may have declared the name before"
    assert found.verdict is not None
    assert (found.verdict.outcome is Outcome.FULL) is (not held_back_by)


def test_a_claimant_whose_pool_is_never_used_is_not_known_and_holds_nothing_back() -> None:
    unusable = resource_slice(1, driver="old.example.com", pool="n2", node="n2", slices=2)
    cluster = Watched(GPU_CLASS, OLD, resource_slice(1), unusable, *TAKEN).later(600.0)
    found = meaning(GPU, World(cluster.witness, Snapshot({}), Policy(source=Source.WITNESS)), cluster.now)
    old = found.claimants[1]
    assert (old.vacancy, old.reason, old.total, old.free) == (Vacancy.UNKNOWN, Reason.PoolIncomplete, None, None)
    assert found.held_back_by == ""
    assert found.verdict is not None
    assert found.verdict.outcome is Outcome.FULL


@pytest.mark.parametrize(("taken", "held_back_by"), [((), "gpu"), (TAKEN, "")])
def test_a_winner_without_devices_is_held_back_by_a_claimant_with_room(
    taken: tuple[Heard, ...], held_back_by: str
) -> None:
    newest = device_class("new", driver="new.example.com", declares=GPU, created=NOON - 60)
    found = said(GPU, newest, GPU_CLASS, resource_slice(1), *taken)
    assert (found.winner, found.claimants[0].vacancy, found.held_back_by) == ("new", Vacancy.EMPTY, held_back_by)


def test_a_taint_of_a_node_keeps_only_some_pods_from_its_devices() -> None:
    """Nobody in particular asks: the verdict is that of a pod which gets wherever some pod gets."""
    cluster = Watched(GPU_CLASS, node(taints=[taint(key="team")]), resource_slice(2), *TAKEN).later(600)
    found = meaning(GPU, World(cluster.witness, Snapshot({}), Policy(source=Source.WITNESS)), cluster.now)
    assert (found.claimants[0].vacancy, found.claimants[0].free) == (Vacancy.FREE, 1)
    assert found.verdict is not None
    assert found.verdict.outcome is Outcome.ROOM


def test_a_winner_with_room_is_held_back_by_nobody() -> None:
    shadowed = device_class("shadowed", declares=GPU, created=60.0)
    found = said(GPU, GPU_CLASS, shadowed, resource_slice(1))
    assert found.held_back_by == ""
    assert found.claimants[1].why == "declares the name too, shadowed by gpu"


def test_a_name_is_judged_here_as_at_admission() -> None:
    plugin = said(GPU, GPU_CLASS, resource_slice(1), *TAKEN, node("n3", plugin={GPU: "1"}))
    assert plugin.plugin_node == "n3"
    assert plugin.verdict is not None
    assert (plugin.verdict.outcome, plugin.verdict.reason) == (Outcome.UNKNOWN, Reason.DevicePlugin)
    assert said("example.com/other", node("n3", plugin={"example.com/other": "1"})).plugin_node == "n3"

    for name in (GPU, IMPLICIT_GPU):
        unseen = said(name, GPU_CLASS, resource_slice(1), *TAKEN, lost=[Kind.NODES])
        assert unseen.verdict is not None
        assert (unseen.verdict.outcome, unseen.verdict.reason) == (Outcome.UNKNOWN, Reason.NoSource)
    direct = said("gpu", GPU_CLASS, resource_slice(1), *TAKEN, lost=[Kind.NODES])
    assert direct.verdict is not None
    assert direct.verdict.outcome is Outcome.FULL


def test_without_a_source_numbers_are_unknown() -> None:
    (claimant,) = said(GPU, GPU_CLASS, resource_slice(1), lost=[Kind.PODS]).claimants
    assert (claimant.vacancy, claimant.total, claimant.free) == (Vacancy.UNKNOWN, 1, None)


NEW = device_class("new", driver="new.example.com", declares="example.com/new")
MATCHING = ['device.attributes["gpu.example.com"].model == "a"']

HOW_MANY: dict[str, tuple[list[Heard], list[Kind], tuple[str, ...], int, int | None]] = {
    "an incomplete pool": (
        [NEW, resource_slice(1, driver="new.example.com", slices=2)],
        [],
        ("new.example.com",),
        1,
        None,
    ),
    "one beside a complete one": (
        [NEW, *(resource_slice(1, pool=f"n{i}", driver="new.example.com", slices=i) for i in (1, 2))],
        [],
        ("new.example.com",),
        2,
        None,
    ),
    "a selector that says nothing of some": (
        [device_class("new", declares="example.com/new", selectors=MATCHING), resource_slice(1)],
        [],
        ("gpu.example.com",),
        1,
        None,
    ),
    "slices that are not current": (
        [NEW, resource_slice(1, driver="new.example.com")],
        [Kind.RESOURCE_SLICES],
        ("new.example.com",),
        1,
        None,
    ),
    "no device": ([NEW], [], (), 0, 0),
    "a complete pool": ([NEW, resource_slice(3, driver="new.example.com")], [], ("new.example.com",), 1, 3),
}


@pytest.mark.parametrize("case", HOW_MANY)
def test_how_many_devices_are_behind_a_name_is_unknown_and_not_none_where_it_is_not_known(case: str) -> None:
    """The same as in the capacity table, whose page says it too."""
    objects, lost, drivers, pools, devices = HOW_MANY[case]
    known = world(*objects, lost=lost)
    found = meaning("example.com/new", known, NOON)
    assert (found.drivers, found.pools, found.devices, found.claimants[0].total) == (drivers, pools, devices, devices)
    (row,) = capacity(known, NOON).classes
    assert (len(row.pools), row.counts.total) == (pools, devices)
    assert {pool.driver for pool in row.pools} == set(drivers)


# --- Who is never refused ---------------------------------------------------------------------------------------------

LISTED: dict[str, tuple[dict[str, str], list[Heard], str, Reason | None]] = {
    "nothing": ({}, [], GPU, None),
    "the class": ({"autoscaled": "gpu"}, [], GPU, Reason.Autoscaled),
    "the class, by its own name": ({"autoscaled": "gpu"}, [], "gpu", Reason.Autoscaled),
    "the class, by its implicit name": ({"dynamic": "gpu"}, [], IMPLICIT_GPU, Reason.Dynamic),
    "the driver": ({"autoscaled": "gpu.example.com"}, [], GPU, Reason.Autoscaled),
    "the driver in both lists": ({"autoscaled": "gpu", "dynamic": "gpu.example.com"}, [], GPU, Reason.Dynamic),
    "another driver": ({"autoscaled": "nic.example.com"}, [], GPU, None),
    "a class that may have declared the name": ({"autoscaled": "old"}, [OLD], GPU, Reason.Autoscaled),
    "that class, and not the name": ({"autoscaled": "old"}, [OLD], "gpu", None),
    "a node that serves it": ({"autoscaled": "gpu"}, [node("n3", plugin={GPU: "1"})], GPU, Reason.DevicePlugin),
}


@pytest.mark.parametrize("case", LISTED)
def test_who_is_never_refused_is_told_whether_it_is_full_or_not(case: str) -> None:
    """As at admission, where what is full is unknown then."""
    listed, others, name, reason = LISTED[case]
    gpu = device_class("gpu", driver="gpu.example.com", declares=GPU, created=NOON - 3_600)
    for taken in ((), TAKEN):
        policy = Policy(Source.WITNESS, **{setting: frozenset([each]) for setting, each in listed.items()})
        known = replace(world(gpu, resource_slice(1), *taken, *others), policy=policy)
        found = meaning(name, known, NOON)
        assert found.never_refused == reason
        assert found.verdict is not None
        assert not taken or found.verdict.reason == (reason or Reason.NoGPUCapacity)
        (row,) = (each for each in capacity(known, NOON).classes if each.name == "gpu")
        assert [each.never_refused for each in row.names if each.text == name] == [reason] * ("/" in name)


# --- How unequal the devices are --------------------------------------------------------------------------------------


def spreads(*devices: dict[str, Any]) -> dict[str, tuple[tuple[str, int], ...]]:
    found = said(GPU, GPU_CLASS, resource_slice(devices))
    return {spread.attribute: spread.values for spread in found.spreads}


def test_attributes_and_capacities_group_the_devices() -> None:
    devices = [
        device(f"gpu-{index}", memory=memory, attributes={"model": model, "uuid": str(index), "example.com/fast": True})
        for index, (model, memory) in enumerate([("a", "40Gi"), ("a", "80Gi"), ("b", "80Gi")])
    ]
    assert spreads(*devices) == {
        "example.com/fast": (("true", 3),),
        "gpu.example.com/memory": (("40Gi", 1), ("80Gi", 2)),
        "gpu.example.com/model": (("a", 2), ("b", 1)),
    }
    assert said(GPU, GPU_CLASS, resource_slice(devices)).unequal
    assert not said(GPU, GPU_CLASS, resource_slice([device("0", memory="1Gi"), device("1", memory="1Gi")])).unequal


def test_two_devices_of_unequal_memory_are_unequal() -> None:
    """Every device has its own value, and yet a capacity is no identifier."""
    assert spreads(device("0", memory="40Gi"), device("1", memory="80Gi")) == {
        "gpu.example.com/memory": (("40Gi", 1), ("80Gi", 1))
    }


def test_a_capacity_and_an_attribute_of_one_name_are_apart() -> None:
    both = [device(name, memory="40Gi", attributes={"memory": "40Gi"}) for name in ("0", "1")]
    found = said(GPU, GPU_CLASS, resource_slice(both))
    of_attribute, of_capacity = found.spreads
    assert of_attribute == Spread("gpu.example.com/memory", (("40Gi", 2),))
    assert of_capacity == Spread("gpu.example.com/memory", (("40Gi", 2),), capacity=True)


def test_values_without_number_are_no_spread() -> None:
    many = [device(f"gpu-{i}", attributes={"slot": str(i // 2)}) for i in range(2 * VALUES_AT_MOST + 2)]
    assert spreads(*many) == {}
    assert len(spreads(*many[:-2])["gpu.example.com/slot"]) == VALUES_AT_MOST


def test_of_a_single_device_no_attribute_is_shown() -> None:
    """Any of them may be what identifies it, and names may be hidden."""
    only = device("gpu-0", memory="40Gi", attributes={"model": "a", "uuid": "GPU-1"})
    assert spreads(only) == {"gpu.example.com/memory": (("40Gi", 1),)}


def test_a_device_that_only_may_match_is_not_among_them() -> None:
    unsure = device_class("gpu", declares=GPU, selectors=['device.attributes["gpu.example.com"].model == "a"'])
    found = said(GPU, unsure, resource_slice([device("0", attributes={"model": "a"}), device("1", memory="1Gi")]))
    assert (found.devices, found.spreads) == (None, ())


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"capacity": {"memory": {"requestPolicy": {"default": "1Gi"}, "value": "40Gi"}}},
            {"gpu.example.com/memory": (("40Gi", 2),)},
            id="a capacity with a request policy, as kubectl sorts its keys",
        ),
        pytest.param({"attributes": None, "capacity": None}, {}, id="null"),
        pytest.param({"attributes": {"x": {}}}, {"gpu.example.com/x": (("", 2),)}, id="an attribute without a value"),
        pytest.param({"attributes": {"x": {"ints": [1, 2]}}}, {"gpu.example.com/x": (("1, 2", 2),)}, id="a list"),
        pytest.param(
            {"attributes": {"x": {"strings": ["a", "b c"]}}}, {"gpu.example.com/x": (("a, b c", 2),)}, id="of texts"
        ),
        pytest.param({"attributes": {"x": {"bools": []}}}, {"gpu.example.com/x": (("", 2),)}, id="an empty list"),
        pytest.param({"attributes": {"x": {"string": None}}}, {"gpu.example.com/x": (("null", 2),)}, id="no value"),
        pytest.param({"attributes": {"x": 5}}, {"gpu.example.com/x": (("5", 2),)}, id="no attribute at all"),
        pytest.param(
            {"attributes": {"x": {"int": 1}}, "capacity": {"memory": {"value": Raw(b"1e999")}}},
            {"gpu.example.com/x": (("1", 2),)},
            id="a number larger than any",
        ),
        pytest.param(
            {"attributes": {"x": {"ints": Raw(b"[" * 900 + b"]" * 900)}}},
            {"gpu.example.com/x": (("[" * 899 + "]" * 899, 2),)},
            id="lists in a list",
        ),
    ],
)
def test_whatever_a_slice_writes(fields: dict[str, object], want: dict[str, tuple[tuple[str, int], ...]]) -> None:
    spec = {
        "driver": "gpu.example.com",
        "pool": {"name": "n1", "resourceSliceCount": 1, "generation": 1},
        "nodeName": "n1",
        "devices": [{"name": name, **fields} for name in ("gpu-0", "gpu-1")],
    }
    found = said("gpu", GPU_CLASS, decoded({"metadata": {"name": "s"}, "spec": spec}, ResourceSlice))
    assert {spread.attribute: spread.values for spread in found.spreads} == want


def test_others_may_work_while_the_devices_of_a_large_class_are_looked_at() -> None:
    """A pool goes meanwhile, and a device of another comes."""
    slices = [resource_slice([device("gpu-0", memory="40Gi")], pool=name) for name in ("n1", "n2", "n3")]
    cluster = Watched(GPU_CLASS, *slices)
    steps = meaning_in_steps(GPU, World(cluster.witness, Snapshot({}), Policy(source=Source.WITNESS)), NOON)
    assert next(steps) is None
    cluster.gone(slices[1]).tell(resource_slice([device("gpu-0", memory="80Gi")], pool="n4"))
    *moments, found = steps
    assert moments == [None, None]
    assert found is not None
    (spread,) = found.spreads
    assert (found.devices, spread.values) == (3, (("40Gi", 2),))


def test_values_that_name_pools_or_nodes_are_marked_and_make_no_difference() -> None:
    """Whole, or without the domain of either."""
    hosts = ["n1", "n1", "n1.example.com", "n1.example.com", "n2", "n2"]
    devices = [device(f"{i}", node="n2.example.com", attributes={"host": host}) for i, host in enumerate(hosts)]
    found = said(GPU, GPU_CLASS, resource_slice(devices, pool="n1", node=""))
    assert [(spread.attribute, spread.names_places) for spread in found.spreads] == [("gpu.example.com/host", True)]
    assert not found.unequal


@pytest.mark.parametrize(
    ("name", "unequal"),
    [("model", True), ("gpu.example.com/index", False), ("resource.kubernetes.io/pcieRoot", False), ("rack", True)],
)
def test_a_difference_in_place_alone_makes_no_device_unequal(name: str, unequal: bool) -> None:  # noqa: FBT001 - a row
    devices = [device(f"{i}", attributes={name: str(i // 2)}) for i in range(4)]
    found = said(GPU, GPU_CLASS, resource_slice(devices))
    assert (len(found.spreads), found.unequal) == (1, unequal)


def test_amounts_are_in_their_order_and_not_in_that_of_their_letters() -> None:
    assert spreads(*(device(each, memory=each) for each in ("80Gi", "141Gi", "9Gi", "odd"))) == {
        "gpu.example.com/memory": (("odd", 1), ("9Gi", 1), ("80Gi", 1), ("141Gi", 1))
    }


@pytest.mark.parametrize(
    ("devices", "later", "looks_again"),
    [(4, 0, True), (LARGE + 1, KEPT_SECONDS - 1, False), (LARGE + 1, KEPT_SECONDS, True), (LARGE + 1, -1, True)],
)
def test_of_a_large_class_what_was_found_is_kept_a_while(devices: int, later: float, looks_again: bool) -> None:  # noqa: FBT001 - a row
    cluster = Watched(GPU_CLASS, *(resource_slice([device(memory="1Gi")], pool=f"n{i}") for i in range(devices)))
    known = World(cluster.witness, Snapshot({}), Policy(source=Source.WITNESS))
    cluster.witness.tally(Ask("gpu"))
    while cluster.witness.tallies.work(LARGE):
        pass
    before = meaning(GPU, known, NOON).spreads
    tally = cluster.witness.tally(Ask("gpu"))
    found = tally.spreads
    assert meaning(GPU, known, NOON).spreads == before
    assert tally.spreads is found
    cluster.tell(resource_slice([device(memory="2Gi")], pool="new"))
    assert (meaning(GPU, known, NOON + later).spreads != before) is looks_again


def test_what_was_found_while_a_class_was_being_counted_is_not_kept() -> None:
    slices = [resource_slice([device(memory=f"{1 + i // LARGE}Gi")], pool=f"n{i}") for i in range(2 * LARGE)]
    cluster = Watched(GPU_CLASS, *slices, devices_at_once=LARGE / 2)
    known = World(cluster.witness, Snapshot({}), Policy(source=Source.WITNESS))
    cluster.witness.tally(Ask("gpu"))
    cluster.witness.tallies.work(LARGE)
    assert meaning(GPU, known, NOON).spreads != ()
    while cluster.witness.tallies.work(LARGE):
        pass
    (memory,) = (each for each in meaning(GPU, known, NOON).spreads if each.capacity)
    assert memory.values == (("1Gi", LARGE), ("2Gi", LARGE))
