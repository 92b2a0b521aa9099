"""The line of refused owners: whose turn it is, and whose it is not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dra.judgement import Source
from app.dra.objects import OwnerReference, Pod
from app.dra.promises import BINDING_SECONDS, EFFECT_SECONDS
from app.dra.snapshot import build_snapshot
from app.dra.wake import (
    FORBIDDEN_SECONDS,
    NUDGES_AT_ONCE,
    OWNERS_AT_MOST,
    REST_SECONDS,
    SILENT_SECONDS,
    VAIN_NUDGES,
    End,
)
from app.dra.witness import Kind
from tests.builders import QUEUE_LABEL, device_class, pod, pool_counts, pool_status, resource_slice
from tests.dra.c0 import ALL_FOUR, GPU_CLASS, N1_TAKEN, N2_TAKEN, NIC, TAKEN, claims
from tests.dra.line import Line, owner

LOOK = 0.25


# --- Whose turn it is -------------------------------------------------------------------------------------------------


def test_nobody_is_woken_while_all_is_taken() -> None:
    assert Line().refused("a", "b").due() == []


def test_who_waits_longest_is_woken_first_and_no_more_than_devices_are_free() -> None:
    line = Line().refused("a").later(1).refused("b").later(1).refused("c").later(1).refused("a")
    assert line.freed(N1_TAKEN[0], N2_TAKEN[0]).due() == ["a", "b"]


def test_a_device_that_somebody_was_woken_for_is_nobody_elses() -> None:
    line = Line().refused("a", "b").freed(N1_TAKEN[0])
    assert line.due() == ["a"]
    assert line.later(LOOK).due() == []


def test_pods_that_want_more_wait_until_so_much_is_free_and_do_not_hold_up_others() -> None:
    line = Line().refused("two", asking=pod({"example.com/gpu": "2"})).refused("one")
    line.freed(N1_TAKEN[0])
    assert line.due() == ["one"]
    assert line.later(LOOK).freed(N1_TAKEN[1]).due() == []
    assert line.later(LOOK).freed(N1_TAKEN[2]).due() == ["two"]


def test_what_is_free_in_pieces_on_two_nodes_is_not_enough() -> None:
    line = Line().refused("two", asking=pod({"example.com/gpu": "2"}))
    assert line.freed(N1_TAKEN[0], N2_TAKEN[0]).due() == []
    assert line.freed(N1_TAKEN[1]).due() == ["two"]


def test_all_that_is_asked_for_has_to_be_free() -> None:
    both = pod({"example.com/gpu": "1", f"deviceclass.resource.kubernetes.io/{NIC_NAME}": "1"})
    taken_nics = claims("n1", *ALL_FOUR, driver=NIC)
    line = Line(taken=[*TAKEN, *taken_nics]).refused("a", asking=both)
    assert line.freed(N1_TAKEN[0]).due() == []
    assert line.freed(taken_nics[0]).due() == ["a"]


NIC_NAME = "nic"


def test_two_classes_of_the_same_devices_share_them() -> None:
    line = Line(device_class("any", declares="example.com/any"))
    line.refused("a").refused("b", asking=pod({"example.com/any": "1"})).freed(N1_TAKEN[0])
    assert line.due() == ["a"]
    assert line.later(LOOK).freed(N1_TAKEN[1]).due() == ["b"]


def test_what_cannot_be_known_wakes_nobody() -> None:
    line = Line().refused("a").freed(N1_TAKEN[0])
    line.cluster.witness.lost(Kind.PODS)
    assert line.due() == []


def test_devices_of_a_class_that_is_gone_wake_nobody() -> None:
    line = Line().refused("a").freed(N1_TAKEN[0])
    line.cluster.gone(GPU_CLASS)
    assert line.due() == []
    line.cluster.tell(GPU_CLASS)
    assert line.due() == ["a"]


def test_a_new_node_is_as_good_as_a_freed_device() -> None:
    line = Line().refused("a")
    line.cluster.tell(resource_slice(1, pool="n3"))
    assert line.due() == ["a"]


def test_at_most_so_many_are_woken_at_once_and_the_next_at_the_next_look() -> None:
    names = [f"rs-{number}" for number in range(8)]
    line = Line().refused(*names).freed(*TAKEN)
    assert line.due() == names[:NUDGES_AT_ONCE]
    assert line.later(LOOK).due() == names[NUDGES_AT_ONCE:]


@pytest.mark.parametrize(
    ("api_version", "kind", "is_woken"),
    [
        ("apps/v1", "ReplicaSet", True),
        ("apps/v1", "StatefulSet", True),
        ("v1", "ReplicationController", True),
        ("batch/v1", "Job", True),
        ("batch.volcano.sh/v1alpha1", "Job", False),
        ("apps/v1", "DaemonSet", False),
        ("ray.io/v1", "RayCluster", False),
    ],
)
def test_only_controllers_that_are_known_to_listen_are_remembered(api_version: str, kind: str, is_woken: bool) -> None:  # noqa: FBT001
    line = Line()
    line.queue.refused(owner("a", kind, api_version), "default", line.demand(), line.now)
    assert len(line.queue) == is_woken


@pytest.mark.parametrize("field", ["uid", "name"])
def test_an_owner_that_cannot_be_real_is_not_remembered(field: str) -> None:
    line = Line()
    for text in ("", "x" * 300):
        forged = {"kind": "ReplicaSet", "api_version": "apps/v1", "name": "a", "uid": "u"} | {field: text}
        line.queue.refused(OwnerReference(**forged), "default", line.demand(), line.now)
    assert len(line.queue) == 0


BUSY_POD = pod(
    nodeSelector={"topology.kubernetes.io/zone": "europe-west4-a", "cloud.example.com/accelerator": "h100-80gb"},
    tolerations=[
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    + [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in ("example.com/gpu", "team", "spot")],
)


@pytest.mark.parametrize(
    ("asking", "is_remembered"),
    [
        (BUSY_POD, True),
        (pod(nodeSelector={f"k{number}": "" for number in range(1000)}), False),
        (pod(nodeSelector={"k": "x" * 5000}), False),
        (pod(tolerations=[{"key": f"k{number}", "operator": "Exists"} for number in range(100)]), False),
    ],
    ids=["busy", "many selectors", "long selector", "many tolerations"],
)
def test_an_owner_whose_pods_ask_for_more_than_anybody_needs_is_not_remembered(
    asking: Pod,
    is_remembered: bool,  # noqa: FBT001
) -> None:
    line = Line().refused("a", asking=asking)
    assert (len(line.queue), line.queue.dropped) == (int(is_remembered), int(not is_remembered))


def test_an_owner_whose_template_grows_too_large_is_forgotten() -> None:
    line = Line().refused("a").refused("a", asking=pod(nodeSelector={"k": "x" * 5000}))
    assert (len(line.queue), line.queue.dropped) == (0, 1)
    assert line.freed(N1_TAKEN[0]).due() == []


# --- How it ends ------------------------------------------------------------------------------------------------------


def test_an_admitted_pod_takes_its_owner_out_of_the_line() -> None:
    line = Line().refused("a", "b").freed(N1_TAKEN[0], N1_TAKEN[1])
    assert line.admitted("a").due() == ["b"]
    assert len(line.queue) == 1


def test_until_an_admitted_pod_is_bound_its_device_still_counts_as_promised() -> None:
    line = Line().refused("a", "b").freed(N1_TAKEN[0])
    assert line.due() == ["a"]
    line.later(EFFECT_SECONDS - 0.1).admitted("a")
    assert line.later(BINDING_SECONDS - 0.1).due() == []
    assert line.queue.ends == {End.ADMITTED: 1}
    assert line.later(0.2).due() == ["b"]


@pytest.mark.parametrize("passer_by", ["", "b"])
def test_nobody_is_woken_for_a_device_that_a_pod_passing_by_is_about_to_take(passer_by: str) -> None:
    line = Line().refused("a", "b").freed(N1_TAKEN[0]).admitted(passer_by)
    assert line.due() == []
    line.cluster.tell(N1_TAKEN[0])
    assert line.later(LOOK).freed(N2_TAKEN[0]).due() == ["a"]
    assert line.queue.ends == {}


def test_a_pod_out_of_scope_is_in_nobodys_way() -> None:
    line = Line().refused("a").freed(N1_TAKEN[0]).admitted(asking=pod(labels=QUEUE_LABEL))
    assert line.due() == ["a"]


def test_a_pod_passing_by_that_takes_nothing_is_in_nobodys_way_for_long() -> None:
    line = Line().refused("a").freed(N1_TAKEN[0]).admitted()
    assert line.later(BINDING_SECONDS - 0.1).due() == []
    assert line.later(0.1).due() == ["a"]


def test_a_pod_passing_by_that_asks_for_something_else_is_in_nobodys_way() -> None:
    line = Line().refused("a").freed(N1_TAKEN[0])
    line.admitted(asking=pod({f"deviceclass.resource.kubernetes.io/{NIC_NAME}": "1"}))
    assert line.due() == ["a"]


def test_the_next_device_is_free_for_the_next_owner_at_once() -> None:
    line = Line().refused("a", "b").freed(N1_TAKEN[0])
    assert line.due() == ["a"]
    line.admitted("a").cluster.tell(N1_TAKEN[0])
    assert line.later(LOOK).freed(N2_TAKEN[0]).due() == ["b"]


def test_who_comes_too_late_makes_way_and_rests_twice_as_long_each_time() -> None:
    line = Line().refused("a", "b").freed(N1_TAKEN[0])
    assert line.due() == ["a"]
    assert line.later(LOOK).refused("a").due() == ["b"]
    line.admitted("b").later(2 * REST_SECONDS - LOOK - 0.1)
    assert line.due() == []
    assert line.later(0.1).due() == ["a"]
    line.refused("a").later(4 * REST_SECONDS - 0.1)
    assert line.due() == []
    assert line.later(0.1).due() == ["a"]
    assert line.queue.ends == {End.REFUSED: 2, End.ADMITTED: 1}


def test_who_comes_too_late_again_and_again_is_let_through() -> None:
    line = Line().refused("a").freed(N1_TAKEN[0])
    let_through = []
    for number in range(VAIN_NUDGES):
        assert line.due() == ["a"]
        let_through.append(line.queue.refused(owner("a"), "default", line.demand(), line.now))
        line.later(REST_SECONDS * 2 ** (number + 1) + 1)
    assert let_through == [False, False, True]
    assert len(line.queue) == 0
    assert line.queue.ends == {End.REFUSED: 2, End.LET_THROUGH: 1}


def test_a_second_pod_of_a_woken_owner_may_be_refused_and_costs_it_nothing() -> None:
    line = Line().refused("a").freed(N1_TAKEN[0])
    assert line.due() == ["a"]
    line.admitted("a").refused("a").cluster.tell(N1_TAKEN[0])
    assert line.later(EFFECT_SECONDS).freed(N1_TAKEN[1]).due() == ["a"]
    assert line.queue.ends == {End.ADMITTED: 1}


def test_an_owner_is_not_woken_twice_for_one_slot_of_time_as_the_second_patch_would_change_nothing() -> None:
    line = Line().refused("a").freed(N1_TAKEN[0])
    assert line.due() == ["a"]
    line.admitted("a").refused("a").cluster.tell(N1_TAKEN[0])
    assert line.later(EFFECT_SECONDS - LOOK).freed(N1_TAKEN[1]).due() == []
    assert line.later(LOOK).due() == ["a"]


def test_who_does_not_answer_gives_way_at_once_and_is_forgotten_after_its_rest() -> None:
    line = Line().refused("a", "b").freed(N1_TAKEN[0])
    assert line.due() == ["a"]
    assert line.later(EFFECT_SECONDS).due() == ["b"]
    assert line.later(REST_SECONDS).due() == []
    assert len(line.queue) == 0
    assert line.queue.ends == {End.SILENT: 2}


def test_who_is_gone_is_forgotten_and_its_device_is_the_next_ones() -> None:
    line = Line().refused("a", "b").freed(N1_TAKEN[0])
    (nudge,) = line.queue.due(line.world, line.now)
    line.queue.ended(nudge, End.GONE, line.now)
    assert len(line.queue) == 1
    assert line.due() == ["b"]


def test_who_could_not_be_reached_waits_on() -> None:
    line = Line().refused("a").freed(N1_TAKEN[0])
    (nudge,) = line.queue.due(line.world, line.now)
    line.queue.ended(nudge, End.FAILED, line.now)
    assert line.later(LOOK).due() == []
    assert line.later(REST_SECONDS).due() == ["a"]
    assert line.queue.ends == {End.FAILED: 1}


@pytest.mark.parametrize(
    ("namespace", "kind", "rests"),
    [("default", "ReplicaSet", True), ("default", "Job", False), ("other", "ReplicaSet", False)],
)
def test_where_one_may_not_be_woken_the_others_of_its_namespace_and_kind_rest_too(
    namespace: str,
    kind: str,
    rests: bool,  # noqa: FBT001
) -> None:
    line = Line().refused("a").freed(N1_TAKEN[0])
    (nudge,) = line.queue.due(line.world, line.now)
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    line.queue.refused(owner("b", kind, api_version), namespace, line.demand(), line.now)
    line.queue.ended(nudge, End.FORBIDDEN, line.now)
    assert line.later(FORBIDDEN_SECONDS - 0.1).due() == ([] if rests else ["b"])
    assert line.admitted("b").later(FORBIDDEN_SECONDS).due() == ["a"]
    assert line.queue._forbidden == {}  # noqa: SLF001


def test_who_is_silent_for_a_day_is_forgotten() -> None:
    line = Line().refused("a").later(60).refused("b").later(SILENT_SECONDS - 60)
    assert line.due() == []
    assert [*line.queue._waiting] == [owner("b").uid]  # noqa: SLF001


def test_of_too_many_the_one_silent_longest_is_dropped_and_counted() -> None:
    line = Line().refused("first").later(1)
    demand = line.demand()
    for number in range(OWNERS_AT_MOST):
        line.queue.refused(owner(f"rs-{number}"), "default", demand, line.now)
    assert (len(line.queue), line.queue.dropped) == (OWNERS_AT_MOST, 1)
    assert line.freed(N1_TAKEN[0]).due() == ["rs-0"]


def test_an_owner_whose_template_changes_waits_for_what_it_asks_for_now() -> None:
    line = Line().refused("a").refused("a", asking=pod({"example.com/gpu": "2"})).freed(N1_TAKEN[0])
    assert line.due() == []
    assert line.freed(N1_TAKEN[1]).due() == ["a"]


# --- Pool statuses ----------------------------------------------------------------------------------------------------


def counted(line: Line, taken: int) -> Line:
    """A new count of all pools, in which so many devices of n1 are taken."""
    statuses = [
        pool_status(pool_counts("n1", allocated=taken), pool_counts("n2"), at=line.now),
        pool_status(pool_counts("n1", allocated=0, driver=NIC), driver=NIC, at=line.now),
    ]
    line.world = replace(line.world, snapshot=build_snapshot(statuses, received_at=line.now))
    return line


def test_by_counts_alone_a_free_device_is_given_away_once_until_the_next_count() -> None:
    line = counted(Line(taken=(), source=Source.POOL_STATUS), taken=4)  # claims are not read
    line.refused("a", "b", "c", "d")
    assert line.due() == []
    assert counted(line.later(60), taken=3).due() == ["a"]
    assert line.admitted("a").later(EFFECT_SECONDS + BINDING_SECONDS).due() == []
    assert counted(line.later(60), taken=2).due() == ["b", "c"]


# --- Laws -------------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.sampled_from(["refuse", "admit", "free", "take", "look"]), st.integers(0, 7), st.floats(0.01, 5)),
    max_size=60,
)
"""What happens, to whom or to which device, and after how many seconds: two looks never come at the same moment."""


@given(STEPS)
def test_there_are_never_more_nudges_under_way_than_free_devices_and_none_comes_twice_in_a_slot(
    steps: list[tuple[str, int, float]],
) -> None:
    line = Line()
    nudged: dict[str, float] = {}
    free = 0
    for what, number, seconds in steps:
        line.later(seconds)
        if what == "refuse" and not line.cluster.witness.tally(next(iter(line.demand().needs)).asks[0]).free:
            line.queue.refused(owner(f"rs-{number}"), "default", line.demand(), line.now)
        elif what == "admit":
            line.admitted(f"rs-{number}")
        elif what == "free":
            line.freed(TAKEN[number])
        elif what == "take":
            line.cluster.tell(TAKEN[number])
        else:
            free = len(line.cluster.free())
            for name in line.due():
                assert line.now - nudged.get(name, -1e9) >= EFFECT_SECONDS
                nudged[name] = line.now
            lately = [name for name, at in nudged.items() if line.now == at]
            assert len(lately) <= free
