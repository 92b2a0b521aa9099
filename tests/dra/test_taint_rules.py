"""Taints that rules put on devices."""

import pytest

from app.dra.objects import DeviceTaintRule
from app.dra.taint_rules import TaintRules
from tests.builders import Json, decoded, taint, taint_rule

DEVICE = ("gpu.example.com", "n1", "gpu-0")


def trusted(*rules: DeviceTaintRule) -> TaintRules:
    known = TaintRules()
    known.trust(current=True)
    for rule in rules:
        known.apply(rule)
    return known


@pytest.mark.parametrize(
    ("selector", "effect", "taints"),
    [
        pytest.param({}, "NoSchedule", True, id="a selector without fields matches every device"),
        pytest.param({"driver": "gpu.example.com"}, "NoExecute", True, id="all devices of a driver"),
        pytest.param({"driver": "GPU.example.com"}, "NoExecute", False, id="names are case-sensitive"),
        pytest.param({"pool": "n1"}, "NoSchedule", True, id="a pool of any driver"),
        pytest.param({"pool": "n2"}, "NoSchedule", False, id="another pool"),
        pytest.param(
            {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}, "NoSchedule", True, id="one device"
        ),
        pytest.param({"pool": "n1", "device": "gpu-1"}, "NoSchedule", False, id="all fields must be equal"),
        pytest.param({"device": ""}, "NoSchedule", False, id="an empty name is the name of nothing"),
        pytest.param({}, "None", False, id="effect None keeps nobody off"),
        pytest.param({}, "Weird", False, id="nor does one we do not know"),
        pytest.param(None, "NoSchedule", False, id="a rule without a selector matches nothing"),
        pytest.param({"deviceClassName": "gpu"}, "NoSchedule", False, id="a field of an old server: it taints nothing"),
        pytest.param({"pool": "n1", "selectors": []}, "NoSchedule", False, id="beside fields we do know, too"),
        pytest.param({"pool": 1}, "NoSchedule", False, id="a selector nobody can read"),
    ],
)
def test_a_rule_taints_what_its_selector_matches(
    selector: Json | None,
    effect: str,
    taints: bool,  # noqa: FBT001
) -> None:
    assert bool(trusted(taint_rule(selector, effect=effect)).taints(DEVICE)) is taints


def test_a_selector_of_null_is_none() -> None:
    rule = decoded({"metadata": {"name": "r"}, "spec": {"deviceSelector": None, "taint": taint()}}, DeviceTaintRule)
    assert trusted(rule).taints(DEVICE) == ()


def test_rules_that_may_be_out_of_date_taint_nothing() -> None:
    rules = TaintRules()
    assert rules.apply(taint_rule({}))
    assert rules.taints(DEVICE) == ()
    assert len(rules.trust(current=True)) == 1
    assert rules.trust(current=True) == []
    assert len(rules.taints(DEVICE)) == 1
    assert len(rules.trust(current=False)) == 1
    assert rules.taints(DEVICE) == ()


def test_a_change_concerns_what_a_rule_tainted_and_what_it_taints_now() -> None:
    rules = trusted(taint_rule({"pool": "n1"}))
    assert rules.apply(taint_rule({"pool": "n1"})) == []
    assert [rule.selector.pool for rule in rules.apply(taint_rule({"pool": "n2"}))] == ["n1", "n2"]
    assert [rule.selector.pool for rule in rules.apply(taint_rule(None))] == ["n2"]
    assert list(rules.names()) == ["broken"]
    assert rules.remove("broken") == []
    assert rules.remove("nosuch") == []
    assert list(rules.names()) == []


def test_a_device_carries_the_taints_of_all_rules() -> None:
    rules = trusted(taint_rule({}, name="a", key="a"), taint_rule({"pool": "n1"}, name="b", key="b"))
    assert {each.key for each in rules.taints(DEVICE)} == {"a", "b"}
    rules.remove("a")
    assert {each.key for each in rules.taints(DEVICE)} == {"b"}
