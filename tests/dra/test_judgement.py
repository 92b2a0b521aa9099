"""How the parts of a demand go together, and what the platform team has to say in it."""

from collections.abc import Sequence
from typing import Any

import pytest

from app.dra.demand import Lookup, Lookups
from app.dra.judgement import Policy, Source, World
from app.dra.objects import Pod
from app.dra.reasons import Reason
from app.dra.snapshot import Snapshot
from app.dra.verdict import Outcome
from app.dra.witness import Heard, Kind
from tests.builders import (
    DRIVER,
    GPU,
    IMPLICIT_GPU,
    NOON,
    QUEUE_LABEL,
    by_claim,
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
)
from tests.dra.c0 import (
    AGES_AGO,
    COUNTED,
    FULL,
    HAS_ROOM,
    IS_FULL,
    NIC,
    NO_ANSWER,
    NO_LOOKUPS,
    ROOM,
    TAKEN,
    UNKNOWN,
    claims,
    counted,
    need,
    outcome,
    requesting,
    verdict,
    world,
)
from tests.dra.watched import Watched

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


@pytest.mark.parametrize(
    ("newer", "taken", "want", "claimant"),
    [
        pytest.param("gpu", TAKEN, IS_FULL, "", id="the winner is full, and so is the other"),
        pytest.param("gpu", TAKEN[1:], HAS_ROOM, "", id="both have room: the winner is enough"),
        pytest.param("b", TAKEN, IS_FULL, "gpu", id="the winner matches nothing, the other is full"),
        pytest.param("b", TAKEN[1:], HAS_ROOM, "gpu", id="the winner matches nothing, the other has room"),
    ],
)
def test_the_numbers_are_the_winners_and_a_claimant_that_decides_has_its_own(
    newer: str, taken: Sequence[Heard], want: tuple[Outcome, Reason], claimant: str
) -> None:
    """What the audit log keeps as resolved must be the class the rule resolves the name to."""
    driver = {"gpu": DRIVER, "b": "b.example.com"}[newer]
    winner = device_class(newer, driver=driver, declares=GPU, created=AGES_AGO + 1)
    said = need(world(winner, *taken, source="witness"))
    assert (said.outcome, said.reason) == want
    assert said.class_name == newer
    assert (said.total, said.drivers) == ((8, (DRIVER,)) if newer == "gpu" else (0, ()))
    if said.claimant:
        assert (said.claimant.class_name, said.claimant.total, said.claimant.drivers) == (claimant, 8, (DRIVER,))
    assert bool(said.claimant) == bool(claimant)


def test_a_claimant_that_is_rolling_out_keeps_a_full_winner_from_refusing() -> None:
    older = device_class("b", driver="b.example.com", declares=GPU, created=AGES_AGO - 1)
    rolling = resource_slice(1, pool="p", driver="b.example.com", slices=2)
    said = need(world(older, rolling, *TAKEN, source="witness"))
    assert (said.outcome, said.reason, said.detail, said.class_name) == (UNKNOWN, Reason.PoolIncomplete, "p", "gpu")
    assert said.claimant is not None
    assert (said.claimant.class_name, said.total, said.free) == ("b", 8, 0)


def test_pools_are_not_counted_where_only_some_devices_may_match() -> None:
    unsure = device_class("gpu", declares=GPU, selectors=['device.attributes["gpu.example.com"].model == "a"'])
    said = need(world(unsure, source="witness"))
    assert (said.outcome, said.total, said.pools, said.free) == (UNKNOWN, None, None, None)


@pytest.mark.parametrize("kind", [Kind.PODS, Kind.RESOURCE_CLAIMS, Kind.RESOURCE_SLICES])
def test_what_was_free_out_of_reach_is_not_told_while_it_is_not_known_what_is_taken(kind: Kind) -> None:
    tainted = node(taints=[taint()])
    known = world(tainted, *TAKEN, source="witness", statuses=())
    request = requesting(device_request())
    known.witness.remove(Kind.RESOURCE_CLAIMS, "default", f"{DRIVER}-n1-gpu-0", NOON)
    assert verdict(known, *request, now=NOON + 600).needs[0].unreachable
    known.witness.lost(kind)
    assert not any(need.unreachable for need in verdict(known, *request, now=NOON + 600).needs)


def test_nodes_decide_whether_extended_resources_are_judged() -> None:
    known = world(*TAKEN)
    known.witness.lost(Kind.NODES)
    assert outcome(known) == (UNKNOWN, Reason.NoSource)
    assert outcome(known, *requesting(device_request())) == IS_FULL
    plugin = need(world(node("n3", plugin={GPU: "8"}), *TAKEN))
    assert (plugin.outcome, plugin.reason, plugin.detail) == (UNKNOWN, Reason.DevicePlugin, "n3")


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


@pytest.mark.parametrize(("setting", "reason"), [("autoscaled", Reason.Autoscaled), ("dynamic", Reason.Dynamic)])
def test_a_driver_without_devices_counts_beside_drivers_that_have_some(setting: str, reason: Reason) -> None:
    either = ['device.driver == "gpu.example.com" || device.driver == "new.example.com"']
    listed: dict[str, Any] = {setting: frozenset({"new.example.com"})}
    known = world(device_class("gpu", declares=GPU, selectors=either), *TAKEN, source="witness", **listed)
    assert outcome(known) == (UNKNOWN, reason)


def test_pods_out_of_scope_are_not_judged() -> None:
    assert outcome(world(*TAKEN), pod(labels={"gpu-vacancy.dev/queue": "true"})) == (UNKNOWN, Reason.OptedOut)
    newer = world(*TAKEN)
    newer.witness.server_minor = 38
    assert outcome(newer, pod(priority=1_000)) == (UNKNOWN, Reason.MayPreempt)
    assert outcome(newer, pod(priority=1_000, preemptionPolicy="Never")) == IS_FULL


@pytest.mark.parametrize("taken", [(), TAKEN], ids=["room", "full"])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"labels": QUEUE_LABEL}, Reason.OptedOut),
        ({"schedulerName": "volcano"}, Reason.OtherScheduler),
        ({"nodeName": "n1"}, Reason.NodeNameSet),
        ({"schedulingGates": [{"name": "quota"}]}, Reason.SchedulingGated),
    ],
)
def test_what_a_pod_out_of_scope_asks_for_is_told_and_not_whether_it_is_free(
    fields: dict[str, Any], reason: Reason, taken: tuple[Heard, ...]
) -> None:
    asked = need(world(*taken), pod({GPU: "9"}, **fields))
    assert (asked.name, asked.count, asked.class_name, asked.total, asked.pools) == (GPU, 9, "gpu", 8, 2)
    assert (asked.outcome, asked.reason, asked.free, asked.largest_free_block) == (UNKNOWN, reason, None, None)
    assert (asked.unreachable, asked.never_fits, asked.claimant) == ((), False, None)


def test_of_a_name_a_device_plugin_may_serve_only_the_count_is_told_also_out_of_scope() -> None:
    known = world(*TAKEN, node("n9", plugin={GPU: "2"}))
    for fields, reason in (({}, Reason.DevicePlugin), ({"labels": QUEUE_LABEL}, Reason.OptedOut)):
        asked = need(known, pod({GPU: "2"}, **fields))
        assert (asked.count, asked.class_name, asked.total, asked.reason) == (2, "", None, reason)


@pytest.mark.parametrize("fields", [{"schedulerName": "volcano"}, {"nodeName": "n1"}, {"labels": QUEUE_LABEL}])
def test_a_pod_without_devices_is_room_also_out_of_scope(fields: dict[str, Any]) -> None:
    known = world(*TAKEN)
    assert outcome(known, pod({"cpu": "1"}, **fields)) == (ROOM, Reason.NoDeviceRequested)
    assert outcome(known, pod(**fields))[0] is UNKNOWN


def test_out_of_scope_comes_before_what_is_not_known_of_devices() -> None:
    """Row 131 with a pod that is not judged anyway: its reason does not come and go with a watch."""
    known = world(*TAKEN)
    known.witness.lost(Kind.RESOURCE_SLICES)
    assert outcome(known, pod(labels=QUEUE_LABEL)) == (UNKNOWN, Reason.OptedOut)


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
