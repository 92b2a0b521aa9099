"""What pools and nodes are called, where a driver's own text may hold it."""

from collections.abc import Generator

import pytest

from app.dra.judgement import Policy, Source, World
from app.dra.meaning import meaning
from app.dra.places import LONGEST_VALUE, NAMES_AT_ONCE, Places, places
from app.dra.snapshot import Snapshot
from tests.builders import GPU, NOON, device, device_class, node, resource_slice
from tests.dra.watched import Watched


def known(*names: str) -> Places:
    found = Places()
    for name in names:
        found.add(name)
    return found


TEXTS: dict[str, tuple[str, bool, bool]] = {
    "a name": ("secret-1", True, True),
    "in capitals": ("SECRET-1", True, True),
    "with a domain": ("secret-1.example.com", True, True),
    "with another domain": ("secret-1.example.org", True, True),
    "within a text": ("board 0 of Secret-1/a", False, True),
    "one with more behind it": ("secret-12", False, True),
    "part of one": ("secret-", False, False),
    "the number an address begins with": ("A10", False, False),
    "an address": ("at 10.0.0.7", False, True),
    "nothing": ("", False, False),
    "too long to look at": ("a" * (LONGEST_VALUE + 1), False, True),
    "as long as may be": ("a" * LONGEST_VALUE, False, False),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_is_a_name_or_holds_one(case: str) -> None:
    text, is_one, holds_one = TEXTS[case]
    found = known("Secret-1.example.com", "10.0.0.7", "")
    assert (found.is_one(text), found.named_in(text)) == (is_one, holds_one)


def test_all_pools_and_nodes_are_known_whatever_is_in_them() -> None:
    witness = Watched(
        resource_slice(1, pool="incomplete", driver="other.example.com", node="bound", slices=2),
        resource_slice([device(node="chosen")], pool="fabric", node=""),
        node("bare"),
    ).witness
    found = made(places(witness.pools(), witness.nodes.names()))
    names = ("incomplete", "bound", "fabric", "chosen", "bare")
    assert [name for name in (*names, "absent") if found.is_one(name)] == list(names)


def test_others_may_work_meanwhile_and_change_the_nodes() -> None:
    watched = Watched(*(node(f"n{number}") for number in range(2 * NAMES_AT_ONCE)))
    steps = places(watched.witness.pools(), watched.witness.nodes.names())
    assert next(steps) is None
    watched.tell(node("new"))
    assert list(steps) == [None]


def made(steps: Generator[None, None, Places]) -> Places:
    """What comes after the moments for others."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Places = end.value
            return found


# --- In what devices publish ------------------------------------------------------------------------------------------

GPU_CLASS = device_class("gpu", declares=GPU, created=NOON - 3_600)


def a_world(cluster: Watched) -> World:
    return World(cluster.witness, Snapshot({}), Policy(source=Source.WITNESS))


PUBLISHED: dict[str, tuple[dict[str, object], bool]] = {
    "text": ({"rack": {"string": "r1"}}, True),
    "text that says what it is": ({"model": {"string": "L4"}}, False),
    "such text of another domain": ({"example.org/productName": {"string": "NVIDIA L4"}}, False),
    "such text with the name of a node": ({"model": {"string": "x-N1-y"}}, True),
    "with that of a pool of no class": ({"model": {"string": "Neighbour/board0"}}, True),
    "with that of a node without devices": ({"model": {"string": "for bare"}}, True),
    "a version": ({"driver": {"version": "1.2.3"}}, False),
    "a version with a name in it": ({"driver": {"version": "1.2.3-bare"}}, True),
    "a number": ({"cores": {"int": 12}}, False),
    "yes or no": ({"ecc": {"bool": True}}, False),
    "a list of text": ({"hosts": {"strings": ["a"]}}, True),
    "a list, whatever it is called": ({"model": {"ints": [1]}}, True),
    "nothing": ({"x": {}}, True),
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_what_may_name_a_pool_or_node_is_private(case: str) -> None:
    attributes, private = PUBLISHED[case]
    neighbour = resource_slice(1, pool="neighbour", driver="other.example.com")
    devices = [{"name": name, "attributes": attributes, "capacity": {"m": {"value": "n1"}}} for name in ("0", "1")]
    found = meaning(GPU, a_world(Watched(GPU_CLASS, resource_slice(devices), neighbour, node("bare"))), NOON)
    assert {each.capacity: each.private for each in found.spreads} == {False: private, True: False}


def test_a_name_that_comes_later_makes_private_what_was_found_before() -> None:
    cluster = Watched(GPU_CLASS, resource_slice([device(f"{i}", attributes={"model": "L4"}) for i in range(2)]))
    known = a_world(cluster)
    assert [each.private for each in meaning(GPU, known, NOON).spreads] == [False]
    cluster.tell(node("l4"))
    assert [each.private for each in meaning(GPU, known, NOON).spreads] == [True]
