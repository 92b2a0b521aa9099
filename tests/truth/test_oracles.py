"""The oracles say what was seen on a live 1.37.2: names and their classes, devices that are free, taken or let go."""

import json
from collections.abc import Iterator

import pytest

from tests.builders import device, pod_manifest, taint, timestamp
from tests.controlplane.client import Json
from tests.truth.oracle import Oracle

GPU, OTHER = "example.com/gpu", "example.com/other"


@pytest.fixture(scope="module")
def allocator() -> Iterator[Oracle]:
    with Oracle("allocator") as oracle:
        yield oracle


def _asked(allocator: Oracle, *objects: Json, events: list[Json], name: str = GPU, freed: tuple[str, ...] = ()) -> Json:
    asking = pod_manifest({name: "1"})
    question = {"objects": objects, "classEvents": events, "freed": freed, "pod": asking}
    answer: Json = json.loads(allocator.ask(question))
    return answer


def _class(name: str, declares: str | None, second: float = 0) -> Json:
    spec: Json = {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}
    if declares:
        spec["extendedResourceName"] = declares
    return {"metadata": {"name": name, "creationTimestamp": timestamp(second)}, "spec": spec}


# --- Names ------------------------------------------------------------------------------------------------------------

Event = tuple[str, str, int, str | None]
"""What happened, to which class, in which second it was made, and what it declares."""

_A, _B = ("ADDED", "a", 100, GPU), ("ADDED", "b", 200, GPU)
_NAMES: dict[str, tuple[list[Event], str, str | None]] = {
    "V1: one class": ([_A], GPU, "a"),
    "V3: the newest": ([_A, _B], GPU, "b"),
    "V5: of one second the smallest name": ([("ADDED", "b", 100, GPU), ("ADDED", "a", 100, GPU)], GPU, "a"),
    "V5: the loser has no implicit name": (
        [_A, ("ADDED", "b", 100, GPU)],
        "deviceclass.resource.kubernetes.io/b",
        None,
    ),
    "V8: the winner is deleted": ([_A, _B, ("DELETED", "b", 200, GPU)], GPU, None),
    "V12: the winner declares another name": ([_A, _B, ("MODIFIED", "b", 200, OTHER)], GPU, None),
    "V15: a stale alias": ([_B, ("ADDED", "c", 300, OTHER), ("MODIFIED", "b", 200, OTHER)], GPU, "b"),
}


@pytest.mark.parametrize(("events", "name", "expected"), _NAMES.values(), ids=_NAMES)
def test_a_name_is_resolved_as_the_scheduler_did(
    allocator: Oracle, events: list[Event], name: str, expected: str | None
) -> None:
    heard = [{"type": kind, "object": _class(each, declares, second)} for kind, each, second, declares in events]
    asks = _asked(allocator, events=heard, name=name)["asks"]
    assert [option["class"] for ask in asks for option in ask["alternatives"]] == ([expected] if expected else [])


# --- Devices ----------------------------------------------------------------------------------------------------------

_NODE = {"kind": "Node", "metadata": {"name": "n1"}}


def _slice(published: Json, *, node: str = "n1", slices: int = 1) -> Json:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": slices}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [published]}
    return {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def _held(**how: bool) -> Json:
    result = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "g0"} | how
    status = {"allocation": {"devices": {"results": [result]}}}
    return {"kind": "ResourceClaim", "metadata": {"namespace": "default", "name": "held"}, "status": status}


def _rule(**selector: Json) -> Json:
    return {"kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": {"taint": taint()} | selector}


_ONE = _slice(device("g0"))
_DEVICES: dict[str, tuple[list[Json], bool]] = {
    "a free device": ([_ONE], True),
    "a device that is held": ([_ONE, _held()], False),
    "a device in use by an administrator": ([_ONE, _held(adminAccess=True)], True),
    "a tainted device": ([_slice(device("g0", taints=[taint()]))], False),
    "a device under a rule": ([_ONE, _rule(deviceSelector={"device": "g0"})], False),
    "a rule without a selector": ([_ONE, _rule()], True),
    "a pool that is not complete": ([_slice(device("g0"), slices=2)], False),
    "a pool of another node": ([_slice(device("g0"), node="n2")], False),
    "no slice": ([], False),
}
_EVENTS = [{"type": "ADDED", "object": _class("gpu", GPU)}]


@pytest.mark.parametrize(("objects", "binds"), _DEVICES.values(), ids=_DEVICES)
def test_a_device_is_allocated_as_the_scheduler_did(allocator: Oracle, objects: list[Json], *, binds: bool) -> None:
    assert _asked(allocator, _NODE, *objects, events=_EVENTS)["nodes"] == (["n1"] if binds else [])


def test_what_a_claim_lets_go_is_allocated(allocator: Oracle) -> None:
    assert _asked(allocator, _NODE, _ONE, _held(), events=_EVENTS, freed=("default/held",))["nodes"] == ["n1"]


def test_a_selector_is_answered_by_cel_go() -> None:
    tried = [
        {"driver": driver, "attributes": {"model": {"string": "a"}}, "capacity": {}, "allowMultipleAllocations": False}
        for driver in ("gpu.example.com", "nic.example.com")
    ]
    with Oracle("celoracle") as oracle:
        asked = {"expression": 'device.attributes["gpu.example.com"].model == "a"', "devices": tried}
        assert oracle.ask(asked) == "true error"
        assert oracle.ask({"expression": "device.model", "devices": tried}) == "compile"
