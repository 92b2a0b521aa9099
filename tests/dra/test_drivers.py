"""How it stands with a driver."""

import pytest

from app.dra.drivers import NAMED_AT_MOST, POOLS_AT_ONCE, DriverView, driver_views, unknown_entries
from app.dra.judgement import Policy, Source, World
from app.dra.objects import ResourceSlice
from app.dra.snapshot import build_snapshot
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.witness import Kind
from tests.builders import DRIVER, NOON, decoded, device, device_class, pool_counts, pool_status, resource_slice
from tests.dra.watched import Watched


def views(
    *slices: ResourceSlice, statuses: tuple[ResourcePoolStatusRequest, ...] = (), source: Source = Source.AUTO
) -> list[DriverView | None]:
    witness = Watched(device_class(), *slices).witness
    return list(driver_views(World(witness, build_snapshot(statuses, received_at=NOON), Policy(source=source)), NOON))


def view(*statuses: ResourcePoolStatusRequest, source: Source = Source.POOL_STATUS) -> DriverView:
    (found,) = views(resource_slice(4), statuses=statuses, source=source)
    assert found is not None
    return found


UNANSWERED = decoded({"metadata": {"name": "v"}, "spec": {"driver": DRIVER}}, ResourcePoolStatusRequest)
FAILED = decoded(
    {
        "metadata": {"name": "v"},
        "spec": {"driver": DRIVER},
        "status": {"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"}]},
    },
    ResourcePoolStatusRequest,
)

STATUSES: dict[str, tuple[tuple[ResourcePoolStatusRequest, ...], str, str]] = {
    "a fresh count": ((pool_status(pool_counts()),), "", ""),
    "none yet": ((), "silent", "its devices have not been counted yet"),
    "no answer": ((UNANSWERED,), "silent", "no count of its devices came when it was last asked for"),
    "a count that failed": ((FAILED,), "silent", "the cluster could not count its devices"),
    "no pool": ((pool_status(),), "silent", "the count of its devices lists no pool"),
    "a wrong one": ((pool_status(pool_counts(), pool_count=0),), "silent", "the count of its devices cannot be right"),
    "the future": (
        (pool_status(pool_counts(), at=NOON + 60),),
        "silent",
        "the count of its devices is from the future: two clocks differ",
    ),
    "an old one": (
        (pool_status(pool_counts(), at=NOON - 91),),
        "stale",
        "counted 91s ago, and a count is believed for 90s",
    ),
    "a list that was cut": (
        (pool_status(pool_counts(), pool_count=1200),),
        "incomplete",
        "the count lists 1 of 1200 pools",
    ),
}


@pytest.mark.parametrize("case", STATUSES)
def test_what_is_wrong_with_a_status(case: str) -> None:
    statuses, state, said = STATUSES[case]
    found = view(*statuses)
    assert (found.state, found.words) == (state, said)
    known = state in ("", "incomplete")
    assert (found.source, found.is_known) == (("pool-status", True) if known else ("", False))


def test_the_live_view_needs_no_status() -> None:
    assert view(source=Source.WITNESS) == DriverView(DRIVER, "witness", "", "")
    auto = view(source=Source.AUTO)
    assert (auto.source, auto.state, auto.is_known) == ("witness", "silent", True)


def test_pools_whose_devices_do_not_count_are_named_and_counted() -> None:
    half = [resource_slice(1, pool=f"n{i}", slices=3) for i in range(NAMED_AT_MOST + 2)]
    twice = resource_slice([device("gpu-0"), device("gpu-0")], pool="m1")
    (found,) = views(twice, *half, resource_slice(1, pool="z"), source=Source.WITNESS)
    assert found is not None
    assert [(pool.name, pool.words) for pool in found.pools] == [
        ("m1", "contradicts itself"),
        ("n0", "has published 1 of 3 slices"),
        ("n1", "has published 1 of 3 slices"),
    ]
    assert (found.unknown_pools, found.is_known, found.source) == (NAMED_AT_MOST + 3, False, "witness")


def test_others_may_work_while_the_pools_of_a_large_driver_are_looked_at() -> None:
    slices = [resource_slice(1, pool=f"n{i}") for i in range(2 * POOLS_AT_ONCE)]
    *moments, found = views(*slices)
    assert moments == [None, None]
    assert found is not None


def test_of_what_is_not_read_nothing_is_in_use() -> None:
    cluster = Watched(device_class(), resource_slice(4))
    cluster.witness.lost(Kind.RESOURCE_SLICES)
    (found,) = driver_views(World(cluster.witness, build_snapshot((), received_at=NOON), Policy()), NOON)
    assert found is not None
    assert (found.source, found.is_known) == ("", False)


# --- What settings list -----------------------------------------------------------------------------------------------

ENTRIES = {
    "the class": ("gpu", True),
    "its driver": (DRIVER, True),
    "a driver without a slice that a class is for": ("nic.example.com", True),
    "a slip of the pen": ("gpu.exmaple.com", False),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_an_entry_is_known_if_it_is_a_class_or_a_driver_now_or_a_class_is_for_its_devices(case: str) -> None:
    name, known = ENTRIES[case]
    anything = device_class("anything", selectors=["true"])  # serves every driver, and is for none
    objects = (device_class(), device_class("nic", driver="nic.example.com"), anything, resource_slice(1))
    policy = Policy(autoscaled=frozenset([name]), dynamic=frozenset([name, "gpu"]))
    world = World(Watched(*objects).witness, build_snapshot((), received_at=NOON), policy)
    found = [entry for entry in unknown_entries(world) if entry is not None]
    assert found == ([] if known else [f"autoscaled={name}", f"dynamic={name}"])
