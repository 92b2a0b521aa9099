"""The live view as a whole: what it hears, in which order, and what it then knows."""

import pytest

from app.dra.classes import IMPLICIT_PREFIX
from app.dra.demand import Ask
from app.dra.objects import DeviceClass, Node, ResourceClaim, ResourceSlice
from app.dra.pools import Condition
from app.dra.reasons import Reason
from app.dra.tallies import TALLIES_AT_MOST
from app.dra.vacancy import Vacancy
from app.dra.witness import DEVICES, HOLDS, Heard, Kind, Witness
from tests.builders import (
    GPU,
    NOON,
    decoded,
    device,
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
        cluster.witness.prune(kind, names, NOON)
    assert [pool.name for pool in cluster.witness.pools()] == ["n1"]
    assert [known.name for known in cluster.witness.classes] == ["gpu"]
    assert list(cluster.witness.nodes.names()) == ["n2"]
    assert not cluster.witness.claim_allocated("default", "c2")
    assert cluster.vacancy() is FULL
    cluster.witness.prune(Kind.PODS, set(), NOON)
    assert cluster.vacancy() is FREE


def test_the_end_of_a_pod_outlives_a_list_of_ended_pods_without_it() -> None:
    cluster = full_cluster().ended(pod_record("p1"))
    assert cluster.vacancy() is FREE
    cluster.witness.prune(Kind.ENDED_PODS, set(), NOON)
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


def test_of_too_many_asks_the_one_not_made_for_longest_is_forgotten() -> None:
    cluster = full_cluster()
    witness = cluster.witness
    first, second = Ask("gpu", ("true",)), Ask("gpu", ("1 == 1",))
    kept, forgotten = witness.tally(first), witness.tally(second)
    for number in range(TALLIES_AT_MOST - 1):
        witness.tally(Ask(f"nosuch-{number}", ("false",)))
        witness.tally(first)
    assert witness.tally(first) is kept
    (only,) = cluster.pool().devices()
    assert forgotten not in only.tallies
    assert witness.tally(second) is not forgotten
    assert len(only.tallies) == 2
    cluster.gone(resource_claim("gpu-0"))
    assert cluster.vacancy(first) is cluster.vacancy(second) is FREE


@pytest.mark.parametrize("selector", ["{0} == {0}", 'device.attributes["x"].y == "{0}"'], ids=["match", "may match"])
def test_of_asks_that_count_too_many_devices_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch, selector: str
) -> None:
    """A tenant writes selectors at will; 80,000 devices must not be remembered for each."""
    monkeypatch.setattr("app.dra.tallies.COUNTED_AT_MOST", 10)
    cluster = Watched(device_class("gpu"), resource_slice(4))
    for number in range(50):
        cluster.standing(Ask("gpu", (selector.format(number),)))
    assert {len(each.tallies) for each in cluster.pool().devices()} == {2}
    cluster.tell(resource_slice(20))
    assert cluster.standing().free == 20  # what is asked for now is counted, however much it is
    assert {len(each.tallies) for each in cluster.pool().devices()} == {1}


def three_pools_of_which_one_is_counted() -> Watched:
    cluster = Watched(device_class("gpu"), *(resource_slice(2, pool=pool) for pool in ("n1", "n2", "n3")))
    cluster.witness._tallies.devices_at_once = 1  # noqa: SLF001  # a cluster too large to be counted at once
    assert cluster.standing().total == 2
    return cluster


def test_what_changes_while_it_is_counted_is_counted_once() -> None:
    cluster = three_pools_of_which_one_is_counted()
    cluster.tell(resource_slice(3, pool="n1"), resource_slice(3, pool="n2")).gone(resource_slice(pool="n3"))
    while cluster.witness.work(1):
        pass
    assert (cluster.standing().total, cluster.standing().free) == (6, 6)
    cluster.gone(resource_slice(pool="n1"), resource_slice(pool="n2"))
    assert cluster.vacancy() is EMPTY


def test_a_slice_that_is_replaced_while_its_pool_is_counted_is_not_counted() -> None:
    def part(name: str, *devices: str) -> ResourceSlice:
        return resource_slice([device(each) for each in devices], name=name, slices=2)

    cluster = Watched(device_class("gpu"), part("a", "0"), part("b", "1"))
    cluster.witness._tallies.devices_at_once = 1  # noqa: SLF001
    assert cluster.standing().total == 1
    cluster.tell(part("b", "1", "2"))
    while cluster.witness.work(1):
        pass
    assert cluster.free() == ["n1/0", "n1/1", "n1/2"]


def test_an_ask_that_is_dropped_is_not_counted_on() -> None:
    cluster = three_pools_of_which_one_is_counted().tell(device_class("gpu", driver="nic.example.com"))
    while cluster.witness.work(1):
        pass
    assert not any(each.tallies for pool in cluster.witness.pools() for each in pool.devices())


def test_counting_that_is_spread_over_time_is_bound_by_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.dra.tallies.COUNTED_AT_MOST", 10)
    cluster = Watched(device_class("gpu"), *(resource_slice(4, pool=pool) for pool in ("n1", "n2")))
    cluster.witness._tallies.devices_at_once = 1  # noqa: SLF001  # a cluster too large to be counted at once
    for number in range(3):
        cluster.standing(Ask("gpu", (f"{number} == {number}",)))
    while cluster.witness.work(1):
        pass
    assert {len(each.tallies) for each in cluster.pool("n1").devices()} == {1}


# --- Shared counters --------------------------------------------------------------------------------------------------


def mig() -> ResourceSlice:
    """One card as a whole or in two halves."""
    return resource_slice(
        [
            device("whole", consumes={"card": {"memory": "80Gi"}}),
            device("half-0", consumes={"card": {"memory": "40Gi"}}),
            device("half-1", consumes={"card": {"memory": "40Gi"}}),
            device("apart"),
        ],
        counters={"card": {"memory": "80Gi"}},
    )


@pytest.mark.parametrize(
    ("held", "free"),
    [
        pytest.param([], ["apart", "half-0", "half-1", "whole"], id="nothing"),
        pytest.param(["whole"], ["apart"], id="row 108: the whole card"),
        pytest.param(["half-0"], ["apart", "half-1"], id="one half"),
        pytest.param(["half-0", "half-1"], ["apart"], id="both halves"),
        pytest.param(["apart"], ["half-0", "half-1", "whole"], id="what consumes nothing"),
        pytest.param(["gone"], ["apart", "half-0", "half-1", "whole"], id="a partition that is not published any more"),
    ],
)
@pytest.mark.parametrize("late", ["the slice", "the claim"])
def test_a_device_whose_counters_do_not_fit_is_taken(held: list[str], free: list[str], late: str) -> None:
    claim = resource_claim(*held, consumers=["p1"])
    known: list[ResourceSlice | ResourceClaim] = [mig(), claim] if late == "the claim" else [claim, mig()]
    cluster = Watched(device_class("gpu"), pod_record("p1"), *known)
    assert cluster.free() == [f"n1/{name}" for name in free]
    cluster.gone(claim)
    assert len(cluster.free()) == 4


def test_row_124_who_is_about_to_let_go_gives_its_counters_back() -> None:
    cluster = Watched(device_class("gpu"), mig(), resource_claim("whole", consumers=["p1"]), pod_record("p1"))
    cluster.tell(pod_record("p1", deadline=NOON + 30))
    assert cluster.free() == ["n1/apart", "n1/half-0", "n1/half-1", "n1/whole"]
    cluster.later(91)
    assert cluster.free() == ["n1/apart"]


def test_a_device_in_two_claims_consumes_once() -> None:
    claims = [resource_claim("half-0", name=name, consumers=["p1"]) for name in ("c1", "c2")]
    cluster = Watched(device_class("gpu"), mig(), pod_record("p1"), *claims)
    assert cluster.free() == ["n1/apart", "n1/half-1"]
    cluster.gone(claims[0])
    assert cluster.free() == ["n1/apart", "n1/half-1"]
    cluster.gone(claims[1])
    assert len(cluster.free()) == 4


def test_a_slice_published_again_counts_its_counters_anew() -> None:
    cluster = Watched(device_class("gpu"), mig(), resource_claim("half-0", consumers=["p1"]), pod_record("p1"))
    smaller = resource_slice(
        [
            device("half-0", consumes={"card": {"memory": "40Gi"}}),
            device("half-1", consumes={"card": {"memory": "40Gi"}}),
        ],
        counters={"card": {"memory": "40Gi"}},
    )
    assert cluster.tell(smaller).free() == []
    assert cluster.tell(mig()).free() == ["n1/apart", "n1/half-1"]


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
