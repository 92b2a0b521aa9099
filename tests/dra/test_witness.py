"""The live view as a whole: what it hears, in which order, and what it then knows."""

import pytest

from app.dra.classes import IMPLICIT_PREFIX
from app.dra.demand import Ask
from app.dra.objects import DeviceClass, Node, ResourceClaim, ResourceSlice
from app.dra.pools import Condition
from app.dra.reasons import Reason
from app.dra.vacancy import Vacancy
from app.dra.witness import DEVICES, HOLDS, Heard, Kind, Witness
from tests.builders import (
    GPU,
    NOON,
    decoded,
    device_class,
    node,
    pod_record,
    resource_claim,
    resource_slice,
    taint_rule,
)
from tests.dra.watched import KINDS, Watched

FREE, FULL, EMPTY, UNKNOWN = Vacancy


def full_cluster() -> Watched:
    """One device, held by a living pod."""
    return Watched(device_class("gpu"), resource_slice(1), resource_claim("gpu-0", consumers=["p1"]), pod_record("p1"))


# --- What is known ----------------------------------------------------------------------------------------------------


def test_nothing_is_known_before_the_first_lists() -> None:
    witness = Witness(NOON)
    assert (witness.devices_unknown, witness.holds_unknown) == (Reason.NoSource, Reason.NoSource)
    assert not witness.judges_extended_resources()
    assert not witness.holds_denied


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_that_is_lost_makes_what_it_feeds_unknown_until_it_is_back(kind: Kind) -> None:
    witness = full_cluster().witness
    assert (witness.devices_unknown, witness.holds_unknown) == (None, None)
    witness.lost(kind)
    assert witness.devices_unknown is (Reason.StaleSnapshot if kind in DEVICES else None)
    assert witness.holds_unknown is (Reason.StaleSnapshot if kind in HOLDS else None)
    assert witness.judges_extended_resources() is (kind is not Kind.NODES)
    witness.synced(kind, NOON)
    assert (witness.devices_unknown, witness.holds_unknown) == (None, None)
    assert witness.judges_extended_resources()


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_that_may_not_be_read_is_denied_until_it_may(kind: Kind) -> None:
    witness = full_cluster().witness
    witness.deny(kind)
    assert witness.holds_denied is (kind in HOLDS)
    assert (witness.holds_unknown is None) is (kind not in HOLDS)
    witness.synced(kind, NOON)
    assert not witness.holds_denied


def test_before_1_37_extended_resources_are_not_judged() -> None:
    witness = full_cluster().witness
    witness.server_minor = 36
    assert not witness.judges_extended_resources()


@pytest.mark.parametrize(("minor", "vacancy"), [(36, FREE), (37, FULL), (38, FULL)])
def test_before_1_37_a_taint_rule_taints_nothing(minor: int, vacancy: Vacancy) -> None:
    cluster = Watched(device_class("gpu"), resource_slice(1), taint_rule({}), kinds=())
    cluster.witness.server_minor = minor
    for kind in Kind:
        cluster.witness.synced(kind, NOON)
    assert cluster.vacancy() is vacancy


def test_taint_rules_that_are_lost_taint_nothing() -> None:
    cluster = Watched(device_class("gpu"), resource_slice(1), taint_rule({}))
    assert cluster.vacancy() is FULL
    cluster.witness.lost(Kind.DEVICE_TAINT_RULES)
    assert cluster.vacancy() is FREE
    cluster.witness.synced(Kind.DEVICE_TAINT_RULES, NOON)
    assert cluster.vacancy() is FULL


def test_while_pods_are_lost_a_new_consumer_is_not_taken_for_gone() -> None:
    cluster = full_cluster()
    cluster.witness.lost(Kind.PODS)
    cluster.tell(resource_claim("gpu-0", consumers=["p2"]))
    assert cluster.vacancy() is FULL
    cluster.witness.synced(Kind.PODS, NOON)
    assert cluster.vacancy() is FREE
    cluster.tell(pod_record("p2"))
    assert cluster.vacancy() is FULL


def test_what_the_catalog_is_asked() -> None:
    cluster = full_cluster().tell(device_class("named", declares=GPU), node(plugin={GPU: "1"}))
    witness = cluster.witness
    assert witness.claimants(GPU) == ("named",)
    assert witness.claimants(IMPLICIT_PREFIX + "gpu") == ("gpu",)
    assert (witness.has_class("gpu"), witness.has_class("nosuch")) == (True, False)
    assert witness.plugin_node(GPU, NOON) == "n1"
    assert (witness.claim_allocated("default", "c1"), witness.claim_allocated("default", "c2")) == (True, False)
    assert witness.drivers() == ("gpu.example.com",)


# --- Events -----------------------------------------------------------------------------------------------------------


def test_every_kind_can_go() -> None:
    cluster = full_cluster().tell(taint_rule({}), node())
    cluster.gone(pod_record("p1"))
    assert cluster.vacancy() is FULL  # tainted
    cluster.gone(taint_rule({}))
    assert cluster.vacancy() is FREE
    cluster.tell(pod_record("p1"))
    assert cluster.vacancy() is FULL
    cluster.gone(resource_claim("gpu-0"))
    assert cluster.vacancy() is FREE
    cluster.gone(resource_slice(1))
    assert cluster.vacancy() is EMPTY
    cluster.gone(device_class("gpu"), node())
    assert list(cluster.witness.classes) == []
    assert list(cluster.witness.nodes.names()) == []


def test_a_list_forgets_what_it_does_not_name() -> None:
    cluster = full_cluster().tell(
        resource_slice(1, pool="n2"),
        device_class("nic"),
        resource_claim("gpu-0", pool="n2", name="c2", consumers=["p1"]),
    )
    cluster.tell(taint_rule({}, name="r"), node("n1"), node("n2")).ended(pod_record("p9"))
    keep = {
        Kind.DEVICE_CLASSES: {("", "gpu")},
        Kind.RESOURCE_SLICES: {("", "gpu.example.com-n1")},
        Kind.RESOURCE_CLAIMS: {("default", "c1")},
        Kind.NODES: {("", "n2")},
        Kind.PODS: {("default", "p1")},
        Kind.DEVICE_TAINT_RULES: set[tuple[str, str]](),
        Kind.ENDED_PODS: set[tuple[str, str]](),
    }
    for kind, names in keep.items():
        list(cluster.witness.prune(kind, names, NOON))
    assert [pool.name for pool in cluster.witness.pools()] == ["n1"]
    assert [known.name for known in cluster.witness.classes] == ["gpu"]
    assert list(cluster.witness.nodes.names()) == ["n2"]
    assert not cluster.witness.claim_allocated("default", "c2")
    assert cluster.vacancy() is FULL
    list(cluster.witness.prune(Kind.PODS, set(), NOON))
    assert cluster.vacancy() is FREE


def test_what_a_list_does_not_name_is_forgotten_one_object_at_a_time() -> None:
    """Not to hold the loop: there may be 100,000 pods."""
    cluster = Watched(*(node(f"n{number}") for number in range(4)))
    steps = cluster.witness.prune(Kind.NODES, {("", "n2")}, NOON)
    left = [sorted(cluster.witness.nodes.names()) for _ in steps]
    assert left == [["n1", "n2", "n3"], ["n2", "n3"], ["n2", "n3"], ["n2"]]


def test_the_end_of_a_pod_outlives_a_list_of_ended_pods_without_it() -> None:
    cluster = full_cluster().ended(pod_record("p1"))
    assert cluster.vacancy() is FREE
    list(cluster.witness.prune(Kind.ENDED_PODS, set(), NOON))
    cluster.witness.remove(Kind.ENDED_PODS, "default", "p1", NOON)
    assert cluster.vacancy() is FREE


def test_a_class_that_changes_is_counted_anew() -> None:
    cluster = Watched(device_class("gpu"), resource_slice(2))
    assert cluster.vacancy() is FREE
    cluster.tell(device_class("gpu", driver="nic.example.com"))
    assert cluster.vacancy() is EMPTY
    cluster.gone(device_class("gpu")).tell(device_class("gpu", selectors=[]))
    assert cluster.standing().total == 2


def test_a_class_that_comes_after_its_count_is_counted_anew() -> None:
    cluster = Watched(resource_slice(2))
    cluster.standing()
    cluster.tell(device_class("gpu", driver="nic.example.com"))
    assert cluster.vacancy() is EMPTY


def test_a_class_that_only_changes_its_name_keeps_its_count() -> None:
    cluster = full_cluster()
    before = cluster.witness.tally(Ask("gpu"))
    cluster.tell(device_class("gpu", declares=GPU))
    assert cluster.witness.tally(Ask("gpu")) is before


# --- When a device was taken ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", ["the slice", "the claim"])
def test_a_pool_knows_when_it_was_last_taken_from(late: str) -> None:
    claim = resource_claim("gpu-0", consumers=["p1"], at=NOON - 20)
    known: list[ResourceSlice | ResourceClaim] = [resource_slice(2), claim]
    cluster = Watched(device_class("gpu"), pod_record("p1"), *(known if late == "the claim" else known[::-1]))
    assert cluster.pool().last_taken == NOON - 20
    cluster.gone(claim)
    assert cluster.pool().last_taken == NOON - 20


# --- Odd objects ------------------------------------------------------------------------------------------------------


def test_odd_objects_stop_nothing() -> None:
    claim = {"devices": {"results": [{"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]}}
    odd: list[Heard] = [
        decoded({"metadata": {"name": "c", "creationTimestamp": "when?"}, "spec": {}}, DeviceClass),
        decoded(
            {"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "", "resourceSliceCount": -1}}},
            ResourceSlice,
        ),
        decoded({"metadata": {"name": "n", "labels": None}, "spec": {"taints": None}}, Node),
        decoded({"metadata": {}, "status": {"allocation": {}, "reservedFor": None}}, ResourceClaim),
        decoded(
            {
                "metadata": {"name": "x"},
                "status": {"allocation": {**claim, "allocationTimestamp": "2026-13-45T99:99Z"}},
            },
            ResourceClaim,
        ),
        decoded({"metadata": {"name": "null"}, "status": None}, ResourceClaim),
    ]
    cluster = full_cluster()
    assert {type(obj) for obj in odd} <= set(KINDS)
    assert cluster.tell(*odd).vacancy() is FULL
    assert cluster.gone(*odd).vacancy() is FULL


def test_attributes_of_null_are_devices_nobody_can_judge() -> None:
    spec = {
        "driver": "gpu.example.com",
        "pool": {"name": "n1", "resourceSliceCount": 1, "generation": 1},
        "nodeName": "n1",
        "devices": [{"name": "gpu-0", "attributes": None, "capacity": None}],
    }
    model = device_class("gpu", selectors=['device.attributes["gpu.example.com"].model == "a"'])
    cluster = Watched(model, decoded({"metadata": {"name": "s"}, "spec": spec}, ResourceSlice))
    assert cluster.vacancy() is UNKNOWN


# --- Files ------------------------------------------------------------------------------------------------------------


def test_files_without_pods_and_nodes_say_nothing_of_them() -> None:
    cluster = Watched(kinds=DEVICES | {Kind.RESOURCE_CLAIMS})
    cluster.witness.from_files(pods=False, nodes=False)
    cluster.tell(device_class("gpu"), resource_slice(1), resource_claim("gpu-0", consumers=["p1"]))
    assert cluster.witness.holds_unknown is None
    assert cluster.witness.judges_extended_resources()
    assert cluster.vacancy() is FULL
    assert cluster.later(1e6).standing().unreachable == ()
    cluster.tell(resource_claim("gpu-0"))
    assert cluster.later(1e6).vacancy() is FREE  # without consumers, however long


def test_files_read_again_without_pods_hold_what_their_claims_hold() -> None:
    cluster = full_cluster()
    cluster.witness.from_files(pods=True, nodes=True)
    cluster.gone(pod_record("p1"))
    assert cluster.vacancy() is FREE
    cluster.witness.lost(Kind.PODS)
    cluster.witness.from_files(pods=False, nodes=True)
    cluster.tell(resource_claim("gpu-0", consumers=["p1"]))
    assert cluster.vacancy() is FULL


def test_a_state_in_a_file_lasts_since_it_says() -> None:
    witness = Witness(NOON)
    witness.apply(Kind.RESOURCE_SLICES, resource_slice(1, slices=2), NOON, NOON - 3_600)
    (pool,) = witness.pools()
    assert pool.condition is Condition.UNUSABLE
