"""Which nodes may serve a name by device plugin, and which a pod cannot get to."""

from collections.abc import Sequence

import pytest

from app.dra.nodes import UNSCHEDULABLE, Nodes, tolerates
from app.dra.objects import Node, Taint, Toleration
from tests.builders import GPU, IMPLICIT_GPU, Json, decoded, node, taint

T0 = 1_790_000_000.0
TWO_MINUTES = 120.0


def known(*seen: Node, since: float = T0) -> Nodes:
    """All nodes, seen since a moment."""
    nodes = Nodes()
    for each in seen:
        nodes.apply(each, since, since)
    nodes.known_since = since
    return nodes


def why(
    nodes: Nodes,
    at: float,
    *tolerations: Toleration,
    name: str = "n1",
    selector: Sequence[tuple[str, str]] = (),
    device_since: float = T0,
) -> str:
    return nodes.out_of_reach(name, device_since, tolerations, tuple(selector), T0 + at)


# --- Device plugins ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minute", [0, 9.99, 10, 10_000])
def test_a_node_serves_a_name_while_it_has_any_of_it(minute: float) -> None:
    nodes = known(node(plugin={GPU: "8"}))
    assert nodes.plugin_node(GPU, T0 + 60 * minute) == "n1"
    assert nodes.plugin_node("example.com/other", T0) is None


@pytest.mark.parametrize(
    ("status", "serves"),
    [
        pytest.param({"capacity": {GPU: "8"}, "allocatable": {GPU: "0"}}, True, id="capacity alone"),
        pytest.param({"capacity": {GPU: "0"}, "allocatable": {GPU: "8"}}, True, id="allocatable alone"),
        pytest.param({"capacity": {GPU: "1m"}}, True, id="a thousandth"),
        pytest.param({"capacity": {GPU: "what?"}}, True, id="an amount nobody can read is no plain zero"),
        pytest.param({"capacity": {GPU: 0}}, False, id="zero"),
        pytest.param({"capacity": {}}, False, id="no such key"),
        pytest.param({"capacity": {"cpu": "8", "hugepages-2Mi": "1Gi"}}, False, id="native resources"),
        pytest.param({}, False, id="no status"),
        pytest.param({"capacity": None, "allocatable": None}, False, id="status without a word"),
    ],
)
def test_capacity_and_allocatable_count_alike(status: Json, serves: bool) -> None:  # noqa: FBT001
    nodes = known(decoded({"metadata": {"name": "n1"}, "status": status}, Node))
    long_after = T0 + 10_000
    assert (nodes.plugin_node(GPU, long_after) == "n1") is serves


@pytest.mark.parametrize(
    ("minutes", "serves"),
    [
        pytest.param(0, True, id="at once"),
        pytest.param(9.99, True, id="for ten minutes"),
        pytest.param(10, False, id="not longer"),
    ],
)
@pytest.mark.parametrize("plugin", [{GPU: "0"}, {}], ids=["the key stays with zero", "the key is gone"])
def test_a_node_may_come_back_with_its_plugin(plugin: dict[str, str], minutes: float, serves: bool) -> None:  # noqa: FBT001
    nodes = known(node(plugin={GPU: "8"}))
    nodes.apply(node(plugin=plugin), T0 + 3_600, T0)
    assert (nodes.plugin_node(GPU, T0 + 3_600 + 60 * minutes) == "n1") is serves


def test_the_ten_minutes_count_from_the_zero_not_from_what_follows() -> None:
    nodes = known(node(plugin={GPU: "8"}))
    nodes.apply(node(plugin={GPU: "0"}), T0 + 10, T0)
    nodes.apply(node(plugin={GPU: "0"}, cordoned=True), T0 + 500, T0)
    nodes.apply(node(), T0 + 590, T0)
    assert nodes.plugin_node(GPU, T0 + 609) == "n1"
    assert nodes.plugin_node(GPU, T0 + 610) is None


def test_a_zero_at_first_sight_may_be_a_kubelet_restart() -> None:
    nodes = known(node(plugin={GPU: "0"}))
    assert nodes.plugin_node(GPU, T0 + 599) == "n1"
    assert nodes.plugin_node(GPU, T0 + 600) is None
    assert not nodes._served[GPU]  # noqa: SLF001  # the key stays for ever: no review goes through it again
    assert nodes.plugin_node(GPU, T0 + 601) is None


def test_a_plugin_that_comes_back_serves_again() -> None:
    nodes = known(node(plugin={GPU: "8"}))
    nodes.apply(node(plugin={GPU: "0"}), T0 + 10, T0)
    assert nodes.plugin_node(GPU, T0 + 10_000) is None
    nodes.apply(node(plugin={GPU: "4"}), T0 + 10_001, T0)
    assert nodes.plugin_node(GPU, T0 + 20_000) == "n1"


@pytest.mark.parametrize("amount", ["8", "0"])
def test_a_node_that_is_gone_may_come_back_with_its_plugin(amount: str) -> None:
    nodes = known(node(plugin={GPU: amount}))
    gone_at = T0 + 300
    nodes.remove("n1", gone_at)
    nodes.remove("nosuch", gone_at + 200)
    until = 600 if amount == "8" else 300  # of a node that has lost it already the ten minutes go on
    assert nodes.plugin_node(GPU, gone_at + until - 1) == "n1"
    nodes.apply(node(), gone_at + 250, gone_at + 250)  # registered anew, the plugin not yet
    assert nodes.plugin_node(GPU, gone_at + until - 1) == "n1"
    assert nodes.plugin_node(GPU, gone_at + until) is None


def test_nodes_that_come_and_go_are_forgotten() -> None:
    nodes = known()
    for number in range(100):
        moment = T0 + 60 * number
        nodes.apply(node(f"n{number}", plugin={GPU: "8"}), moment, moment)
        nodes.remove(f"n{number}", moment + 1)
    assert len(nodes._served[GPU]) == 10  # noqa: SLF001  # memory is not to be seen from outside


def test_one_node_of_many_is_enough_and_the_latest_counts() -> None:
    nodes = known(node("n1", plugin={GPU: "8"}), node("n2", plugin={GPU: "8"}))
    nodes.apply(node("n1", plugin={GPU: "0"}), T0 + 10, T0)
    assert nodes.plugin_node(GPU, T0 + 10_000) == "n2"
    nodes.apply(node("n2", plugin={GPU: "0"}), T0 + 20_000, T0)
    assert nodes.plugin_node(GPU, T0 + 20_001) == "n2"


def test_an_implicit_name_can_be_served_by_plugin_too() -> None:
    assert known(node(plugin={IMPLICIT_GPU: "1"})).plugin_node(IMPLICIT_GPU, T0) == "n1"


# --- Reach ------------------------------------------------------------------------------------------------------------

CORDONED = node(cordoned=True)
TAINTED = node(taints=[taint(key="team", value="b")])
TOLERATES_UNSCHEDULABLE = Toleration(UNSCHEDULABLE.key, "Exists")


@pytest.mark.parametrize(
    ("nodes", "selector", "reason"),
    [
        pytest.param(known(CORDONED), (), "is cordoned", id="a cordoned node"),
        pytest.param(known(TAINTED), (), "has taint team=b:NoSchedule", id="a tainted node"),
        pytest.param(known(node(taints=[taint("NoExecute", "k")])), (), "has taint k:NoExecute", id="without a value"),
        pytest.param(known(node()), [("zone", "a")], "lacks label zone=a", id="a node without the label"),
        pytest.param(known(node(labels={"zone": "b"})), [("zone", "a")], "lacks label zone=a", id="with another value"),
        pytest.param(known(), (), "does not exist", id="no such node"),
    ],
)
def test_what_has_lasted_for_two_minutes_is_out_of_reach(
    nodes: Nodes, selector: Sequence[tuple[str, str]], reason: str
) -> None:
    assert why(nodes, TWO_MINUTES - 0.01, selector=selector) == ""
    assert why(nodes, TWO_MINUTES, selector=selector) == reason
    assert why(nodes, 10 * TWO_MINUTES, selector=selector) == reason


@pytest.mark.parametrize(
    ("nodes", "selector"),
    [
        pytest.param(known(node()), (), id="nothing keeps it off"),
        pytest.param(known(node(labels={"zone": "a", "x": "y"})), [("zone", "a")], id="it has the label"),
        pytest.param(known(node(taints=[taint("PreferNoSchedule")])), (), id="a taint that only prefers"),
        pytest.param(known(node(taints=[taint("Weird")])), (), id="a taint with an effect we do not know"),
    ],
)
def test_a_node_within_reach(nodes: Nodes, selector: Sequence[tuple[str, str]]) -> None:
    assert why(nodes, 10 * TWO_MINUTES, selector=selector) == ""


def test_whoever_tolerates_what_a_cordon_stands_for_gets_there() -> None:
    assert why(known(CORDONED), TWO_MINUTES, TOLERATES_UNSCHEDULABLE) == ""
    assert why(known(CORDONED), TWO_MINUTES, Toleration("", "Exists")) == ""
    assert why(known(CORDONED), TWO_MINUTES, Toleration(UNSCHEDULABLE.key, "Exists", "", "NoExecute")) == "is cordoned"
    assert why(known(TAINTED), TWO_MINUTES, Toleration("team", "", "b")) == ""
    assert why(known(TAINTED), TWO_MINUTES, Toleration("team", "Equal", "a")) != ""


def test_every_change_starts_the_two_minutes_anew() -> None:
    nodes = known(node(labels={"zone": "b"}))
    nodes.apply(node(labels={"zone": "c"}), T0 + 100, T0)
    assert why(nodes, 219, selector=[("zone", "a")]) == ""
    assert why(nodes, 220, selector=[("zone", "a")]) == "lacks label zone=a"

    nodes = known(CORDONED)
    nodes.apply(node(), T0 + 300, T0)
    assert why(nodes, 10_000) == ""
    nodes.apply(CORDONED, T0 + 400, T0)
    nodes.apply(node(cordoned=True, labels={"a": "b"}), T0 + 500, T0)  # still cordoned
    assert why(nodes, 519) == ""
    assert why(nodes, 520) == "is cordoned"

    nodes = known(TAINTED)
    nodes.apply(node(taints=[taint(key="other"), taint(key="team", value="b")]), T0 + 100, T0)
    assert why(nodes, 130) == "has taint team=b:NoSchedule"
    nodes.apply(node(taints=[taint(key="other")]), T0 + 200, T0)
    assert why(nodes, 219) == ""
    assert why(nodes, 220).startswith("has taint other")


def test_a_node_cordoned_since_the_epoch_stays_so() -> None:
    nodes = known(CORDONED, since=0.0)
    nodes.apply(node(cordoned=True, labels={"a": "b"}), T0, T0)
    assert why(nodes, 0) == "is cordoned"


def test_a_missing_node_counts_from_its_end_from_the_list_and_from_the_slice() -> None:
    nodes = known(node())
    nodes.remove("n1", T0 + 1_000)
    assert why(nodes, 1_119) == ""
    assert why(nodes, 1_120) == "does not exist"
    assert why(nodes, 1_120, device_since=T0 + 1_100) == ""  # the slice has just been published: its node is coming
    assert why(nodes, 1_219, name="never-seen", device_since=T0 + 1_100) == ""
    assert why(nodes, 1_220, name="never-seen", device_since=T0 + 1_100) == "does not exist"
    nodes.apply(node(), T0 + 2_000, T0 + 2_000)
    assert why(nodes, 2_000) == ""


def test_a_list_that_was_lost_starts_the_two_minutes_of_missing_nodes_anew() -> None:
    nodes = known()
    nodes.known_since = None
    assert why(nodes, 10_000) == ""
    nodes.known_since = T0 + 10_000
    assert why(nodes, 10_119) == ""
    assert why(nodes, 10_120) == "does not exist"


def test_ends_of_nodes_are_not_remembered_for_ever() -> None:
    nodes = known()
    for second in range(2_000):
        nodes.apply(node(f"n{second}", plugin={GPU: "1"}), T0 + second, T0)
        nodes.remove(f"n{second}", T0 + second)
    assert len(nodes._absent_since) <= 601  # noqa: SLF001  # memory is not to be seen from outside
    assert list(nodes.names()) == []
    assert why(nodes, 2_000, name="n0", device_since=T0) == "does not exist"


# --- Tolerations ------------------------------------------------------------------------------------------------------

TAINT = Taint("team", "b", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param(Toleration("team", "Equal", "b", "NoSchedule"), True, id="equal in everything"),
        pytest.param(Toleration("team", "", "b"), True, id="no operator is Equal, no effect is any"),
        pytest.param(Toleration("team", "Equal", "c"), False, id="another value"),
        pytest.param(Toleration("team", "Equal"), False, id="no value is the empty one"),
        pytest.param(Toleration("team", "Exists"), True, id="Exists asks for no value"),
        pytest.param(Toleration("team", "Exists", "c"), True, id="even if it is given one"),
        pytest.param(Toleration("", "Exists"), True, id="no key is every key"),
        pytest.param(Toleration("tea", "Exists"), False, id="another key"),
        pytest.param(Toleration("team", "Exists", "", "NoExecute"), False, id="effects do not cover each other"),
        pytest.param(Toleration("team", "Gt", "5"), True, id="an operator we do not know can only admit"),
        pytest.param(Toleration("other", "Gt", "5"), False, id="not for another key"),
    ],
)
def test_tolerating(toleration: Toleration, tolerated: bool) -> None:  # noqa: FBT001
    assert tolerates([toleration], TAINT) is tolerated
    assert tolerates([Toleration("x", "Exists"), toleration], TAINT) is tolerated


def test_without_tolerations_nothing_is_tolerated() -> None:
    assert not tolerates([], TAINT)


def test_a_toleration_without_a_key_compares_values_as_the_scheduler_does() -> None:
    """`ToleratesTaint` asks no more; the API server accepts no such toleration."""
    assert tolerates([Toleration()], Taint("team", "", "NoSchedule"))
    assert not tolerates([Toleration()], TAINT)
