"""The capacity page and what a name means, for readers from whom the names of pools and nodes are hidden."""

import re
from typing import Any

import pytest

from app.dra.witness import Heard
from tests.builders import GPU, NOON, device, device_class, node, resource_slice
from tests.web.reader import Reader

GPU_CLASS = device_class("gpu", declares=GPU, created=NOON - 3_600)


def test_hidden_names_are_nowhere_also_not_in_a_box() -> None:
    """Pools and nodes; whole, as the first part of a name, and as an attribute that a driver publishes."""
    devices = [
        device(f"{i}", attributes={"model": "L4", "type": f"secret-{i // 2}"}, node=f"secret-{i // 2}.example.com")
        for i in range(4)
    ]
    objects: list[Heard] = [
        GPU_CLASS,
        resource_slice(devices, pool="secret-pool", node=""),
        resource_slice(1, pool="secret-half", slices=2),
        node("secret-plugin", plugin={GPU: "1"}),
    ]
    shown, hidden = Reader(*objects), Reader(*objects, hide_names=True)
    assert {"secret-pool", "secret-half", "secret-plugin"} <= set(re.findall(r"secret-\w+", shown.text()))
    assert "type secret-0 (2), secret-1 (2)" in shown.card_words()
    assert "secret-0" in shown.text(f"/api/v1/explain/{GPU}")
    for path in ("/", "/?class=gpu&pools=all", "/api/v1/capacity", f"/api/v1/explain/{GPU}"):
        assert "secret" not in hidden.text(path)
    assert "model L4" in hidden.card_words()
    assert "data-pool" not in hidden.text()
    assert "1 pool cannot be counted, being incomplete or contradicting" in hidden.words()


LEAKS: dict[str, dict[str, object]] = {
    "a list": {"hosts": {"strings": ["secretnode-1"]}},
    "in capitals": {"host": {"string": "SECRETNODE-1"}},
    "with more behind it": {"board": {"string": "secretnode-1/board0"}},
    "a neighbour": {"leader": {"string": "secretnode-2"}},
    "a neighbour's, where a model is told": {"model": {"string": "L4 of SecretNode-2"}},
    "where a profile is told": {"profile": {"string": "secretnode-1-half"}},
}


@pytest.mark.parametrize("case", LEAKS)
def test_no_attribute_brings_a_hidden_name_to_light(case: str) -> None:
    """Numbers, versions and what a device is stay; a class whose devices differ in what is hidden says that they do."""
    known = {"model": {"string": "L4"}, "driver": {"version": "1.2.3"}, "cores": {"int": 12}} | LEAKS[case]
    consumes = [{"counterSet": "a", "counters": {"b": {"value": "1"}}}]
    devices = [{"name": f"{i}", "attributes": known, "consumesCounters": consumes} for i in range(2)]
    others = [{"name": f"{i}", "attributes": {"rack": {"string": f"x{i // 4}"}}} for i in range(2, 6)]
    objects: list[Heard] = [
        GPU_CLASS,
        resource_slice([*devices, *others], pool="secretnode-1", counters={"a": {"b": "1"}}),
        resource_slice(1, pool="secretnode-2", driver="other.example.com"),
    ]
    shown, hidden = Reader(*objects), Reader(*objects, hide_names=True)
    explain = f"/api/v1/explain/{GPU}"
    assert "secretnode" in shown.text(explain).lower()
    assert "[" not in " ".join(each["value"] for spread in spreads(shown) for each in spread["values"])
    for path in ("/", explain):
        assert "secretnode" not in hidden.text(path).lower()
    left = [each["attribute"].partition("/")[2] for each in spreads(hidden)]
    assert left == [name for name in ("cores", "driver", "model") if name not in LEAKS[case]]
    assert "unequal devices" in hidden.card_words()
    assert hidden.get(explain).json()["unequal"]


def spreads(page: Reader) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.get(f"/api/v1/explain/{GPU}").json()["spreads"]
    return found
