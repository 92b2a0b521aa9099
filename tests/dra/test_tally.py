"""One live count: matching devices, free ones, and what follows from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dra.demand import Ask
from app.dra.objects import Toleration
from app.dra.reasons import Reason
from app.dra.tally import REACH_AT_MOST, Blocks, PoolCount, Standing
from app.dra.vacancy import Vacancy
from app.dra.verdict import Unreachable
from app.dra.witness import Heard
from tests.builders import device, device_class, node, pod_record, resource_claim, resource_slice, taint
from tests.dra.watched import Watched

FREE, FULL, EMPTY, UNKNOWN = Vacancy
UNSURE = 'device.attributes["gpu.example.com"].model == "a"'
"""Of a device without that attribute nobody can say whether it matches."""


def held(*devices: str, pool: str = "n1") -> tuple[Heard, Heard]:
    """A claim of a living pod."""
    name = f"holder-{pool}"
    return resource_claim(*devices, name=name, pool=pool, consumers=[name]), pod_record(name)


def answer(standing: Standing) -> tuple[Vacancy, Reason, int, int]:
    return standing.vacancy, standing.reason, standing.free, standing.total


# --- What is free -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([resource_slice(2)], (FREE, Reason.HasRoom, 2, 2), id="nothing is taken"),
        pytest.param([resource_slice(2), *held("gpu-0")], (FREE, Reason.HasRoom, 1, 2), id="one of two"),
        pytest.param([resource_slice(2), *held("gpu-0", "gpu-1")], (FULL, Reason.NoGPUCapacity, 0, 2), id="all"),
        pytest.param([], (EMPTY, Reason.NoMatchingDevice, 0, 0), id="no device at all"),
        pytest.param([resource_slice(0)], (EMPTY, Reason.NoMatchingDevice, 0, 0), id="a pool without devices"),
        pytest.param([resource_slice(driver="nic.example.com")], (EMPTY, Reason.NoMatchingDevice, 0, 0), id="not ours"),
        pytest.param(
            [resource_slice(1), *held("gone")],
            (FREE, Reason.HasRoom, 1, 1),
            id="row 101: the device that is held has left its slice",
        ),
        pytest.param(
            [resource_slice([device("gpu-0", taints=[taint()])])], (FULL, Reason.NoGPUCapacity, 0, 1), id="a taint"
        ),
        pytest.param(
            [resource_slice([device("gpu-0", taints=[taint("None")])])],
            (FREE, Reason.HasRoom, 1, 1),
            id="row 105: effect None is no taint",
        ),
        pytest.param(
            [resource_slice([device("gpu-0", shareable=True)])], (FREE, Reason.HasRoom, 1, 1), id="a shareable device"
        ),
        pytest.param(
            [resource_slice([device("gpu-0", shareable=True), device("gpu-1")]), *held("gpu-0", "gpu-1")],
            (UNKNOWN, Reason.Shareable, 0, 2),
            id="a shareable device with a share taken: there may be room for another",
        ),
    ],
)
def test_a_count_says_what_is_free(objects: list[Heard], want: tuple[Vacancy, Reason, int, int]) -> None:
    assert answer(Watched(device_class("gpu"), *objects).standing()) == want


def test_what_is_remembered_of_it_is_forgotten_when_something_changes() -> None:
    cluster, both = Watched(device_class("gpu")), resource_slice(2)
    half = resource_slice(1, name="half", pool="n2", slices=2)
    tally = cluster.witness.tally(Ask("gpu"))
    assert answer(tally.standing()) == (EMPTY, Reason.NoMatchingDevice, 0, 0)
    cluster.tell(both)
    assert answer(tally.standing()) == (FREE, Reason.HasRoom, 2, 2)
    cluster.tell(*held("gpu-0", "gpu-1"))
    assert answer(tally.standing()) == (FULL, Reason.NoGPUCapacity, 0, 2)
    cluster.tell(half)
    assert answer(tally.standing()) == (UNKNOWN, Reason.PoolIncomplete, 0, 2)
    cluster.gone(half)
    assert answer(tally.standing()) == (FULL, Reason.NoGPUCapacity, 0, 2)
    cluster.tell(*held("gpu-0"))
    assert answer(tally.standing()) == (FREE, Reason.HasRoom, 1, 2)
    cluster.gone(both)
    assert answer(tally.standing()) == (EMPTY, Reason.NoMatchingDevice, 0, 0)


@pytest.mark.parametrize(
    ("tolerations", "free"),
    [
        pytest.param((), 0, id="none"),
        pytest.param((Toleration("example.com/broken", "Exists", "", "NoSchedule"),), 0, id="row 112: one effect"),
        pytest.param((Toleration("example.com/broken", "Exists"),), 1, id="every effect"),
    ],
)
def test_a_tainted_device_is_free_to_who_tolerates_all_of_it(tolerations: tuple[Toleration, ...], free: int) -> None:
    both = device("gpu-0", taints=[taint("NoSchedule"), taint("NoExecute")])
    cluster = Watched(device_class("gpu"), resource_slice([both]))
    assert cluster.standing(Ask("gpu", tolerations=tolerations)).free == free


def test_the_request_narrows_what_the_class_matches() -> None:
    models = [device(f"gpu-{model}", attributes={"model": model}) for model in "ab"]
    cluster = Watched(device_class("gpu"), resource_slice(models))
    assert cluster.free() == ["n1/gpu-a", "n1/gpu-b"]
    assert cluster.free(Ask("gpu", (UNSURE,))) == ["n1/gpu-a"]
    assert cluster.vacancy(Ask("gpu", (UNSURE, 'device.driver == "nic.example.com"'))) is EMPTY


# --- Doubt ------------------------------------------------------------------------------------------------------------

PLAIN = device("plain")
MODEL_A = device("a", attributes={"model": "a"})


@pytest.mark.parametrize(
    ("devices", "taken", "want"),
    [
        pytest.param([PLAIN], [], (UNKNOWN, Reason.SelectorUnknown, 0, 0), id="only a possible match, free"),
        pytest.param([PLAIN], ["plain"], (UNKNOWN, Reason.SelectorUnknown, 0, 0), id="only a possible match, taken"),
        pytest.param([PLAIN, MODEL_A], ["a"], (UNKNOWN, Reason.SelectorUnknown, 0, 1), id="a free one beside a taken"),
        pytest.param([PLAIN, MODEL_A], ["a", "plain"], (FULL, Reason.NoGPUCapacity, 0, 1), id="both are taken"),
        pytest.param([PLAIN, MODEL_A], ["plain"], (FREE, Reason.HasRoom, 1, 1), id="the certain match is free"),
    ],
)
def test_a_device_that_may_match_can_only_admit(
    devices: list[dict[str, object]], taken: list[str], want: tuple[Vacancy, Reason, int, int]
) -> None:
    cluster = Watched(device_class("gpu", selectors=[UNSURE]), resource_slice(devices), *held(*taken))
    assert answer(cluster.standing()) == want
    tally = cluster.witness.tally(Ask("gpu"))
    assert not tally.certain()
    assert [device.id[2] for device in cluster.pool().devices() if tally.matches(device)] == [
        each["name"] for each in devices if each is MODEL_A
    ]
    assert {pool.name for pool in tally.candidates()} == {"n1"}


def test_a_possible_match_that_comes_or_goes_is_another_version() -> None:
    """What was worked out from the tally before does not hold any more."""
    cluster = Watched(device_class("gpu", selectors=[UNSURE]), resource_slice([MODEL_A]))
    tally = cluster.witness.tally(Ask("gpu"))
    before = tally.version
    cluster.tell(resource_slice([PLAIN], pool="n2"))
    assert (between := tally.version) != before
    assert tally.size == 2
    cluster.gone(resource_slice(pool="n2"))
    assert tally.version not in (before, between)
    assert tally.size == 1


def test_a_possible_match_that_goes_leaves_no_doubt() -> None:
    cluster = Watched(device_class("gpu", selectors=[UNSURE]), resource_slice([PLAIN, MODEL_A]), *held("a"))
    assert cluster.vacancy() is UNKNOWN
    cluster.tell(resource_slice([MODEL_A]))
    assert cluster.vacancy() is FULL
    assert cluster.witness.tally(Ask("gpu")).certain()


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_pools_that_do_not_count_the_reason_does_not_depend_on_the_order(order: int) -> None:
    pools = [resource_slice(1, pool="a", slices=2), resource_slice([PLAIN, PLAIN], pool="b")]
    cluster = Watched(device_class("gpu"), *pools[::order])
    assert cluster.standing().reason is Reason.PoolInvalid
    assert not cluster.witness.tally(Ask("gpu")).certain()


# --- Reach ------------------------------------------------------------------------------------------------------------


def far_away(free: int, *others: Heard) -> Watched:
    """So many free devices on a node that has been cordoned for long."""
    return Watched(device_class("gpu"), node(cordoned=True), resource_slice(free), *others).later(600)


def test_a_free_device_out_of_reach_does_not_count_and_is_named() -> None:
    standing = far_away(2, resource_slice(1, pool="n2"), node("n2"), *held("gpu-0", pool="n2")).standing()
    assert answer(standing) == (FULL, Reason.NoGPUCapacity, 0, 3)
    assert standing.unreachable == (Unreachable("n1", "is cordoned", 2),)
    assert (standing.largest_block, standing.largest_free_block) == (2, 0)


def test_who_can_get_to_it_is_looked_at_whatever_is_remembered() -> None:
    tally = Watched(device_class("gpu"), resource_slice(1)).witness.tally(Ask("gpu"))
    assert tally.standing().free == 1
    assert tally.standing(lambda _: "is gone").free == 0
    assert tally.standing().free == 1


def test_devices_out_of_reach_and_no_others_prove_nothing() -> None:
    assert answer(far_away(2).standing()) == (UNKNOWN, Reason.OutOfReach, 0, 2)


def test_a_device_within_reach_counts() -> None:
    standing = far_away(2, resource_slice(1, pool="n2"), node("n2")).standing()
    assert answer(standing) == (FREE, Reason.HasRoom, 1, 3)
    assert standing.largest_free_block == 1


def test_a_device_of_no_one_node_is_always_within_reach() -> None:
    standing = far_away(1, resource_slice(1, pool="fabric", node="")).standing()
    assert answer(standing) == (FREE, Reason.HasRoom, 1, 2)


@pytest.mark.parametrize(("free", "vacancy"), [(REACH_AT_MOST, FULL), (REACH_AT_MOST + 1, FREE)])
def test_reach_is_looked_at_for_few_devices_only(free: int, vacancy: Vacancy) -> None:
    full = (resource_slice(1, pool="n2"), node("n2"), *held("gpu-0", pool="n2"))
    assert far_away(free, *full).vacancy() is vacancy


# --- Numbers ----------------------------------------------------------------------------------------------------------


def test_blocks_know_the_most_on_one_node() -> None:
    blocks = Blocks(["n1", "n1", "n2"])
    assert blocks.largest == 2
    blocks.add("")
    assert blocks.largest == 3  # a device of no one node counts for every node
    blocks.discard("n1")
    assert blocks.largest == 2
    blocks.discard("n1")
    blocks.discard("n2")
    assert blocks.largest == 1
    blocks.discard("")
    assert blocks.largest == 0


@pytest.mark.parametrize(
    ("memories", "spread"),
    [
        pytest.param(["40Gi", "80Gi", "9Gi"], ("9Gi", "80Gi"), id="by size, as the slice writes it"),
        pytest.param(["40Gi", ""], ("40Gi", "40Gi"), id="devices without memory have none"),
        pytest.param(["", ""], None, id="none has any"),
        pytest.param(["40Gi", "much"], None, id="an amount nobody can read spoils it"),
    ],
)
def test_memory_of_the_matching_devices(memories: list[str], spread: tuple[str, str] | None) -> None:
    cluster = Watched(
        device_class("gpu"),
        resource_slice([device(f"gpu-{index}", memory=memory) for index, memory in enumerate(memories)]),
    )
    tally = cluster.witness.tally(Ask("gpu"))
    assert tally.summary().memory == spread
    cluster.tell(resource_slice([device("gpu-0", memory="1Gi")]))
    assert tally.summary().memory == ("1Gi", "1Gi")


def test_drivers_and_pools_are_those_of_the_matching_devices() -> None:
    slices = [resource_slice(1, pool="n1"), resource_slice(2, pool="n2"), resource_slice(1, driver="nic.example.com")]
    cluster = Watched(device_class("gpu"), device_class("any", selectors=[]), *slices)
    assert cluster.witness.tally(Ask("gpu")).summary().drivers == ("gpu.example.com",)
    tally = cluster.witness.tally(Ask("any"))
    assert tally.summary().drivers == ("gpu.example.com", "nic.example.com")
    assert sorted(tally.pools.values()) == [1, 1, 2]
    cluster.gone(slices[2])
    assert tally.summary().drivers == ("gpu.example.com",)
    assert tally.total == 3


DEVICES = [
    device("plain"),
    device("tainted", taints=[taint()]),
    device("large", consumes={"card": {"memory": "2"}}),
    device("small", consumes={"card": {"memory": "1"}}),
    device("shared", shareable=True),
]


@given(st.lists(st.sampled_from([*(each["name"] for each in DEVICES), "unsure", "free all", "slice"]), max_size=12))
def test_what_is_counted_of_a_pool_is_what_a_walk_over_its_devices_finds(events: list[str]) -> None:
    known = [{**each, "attributes": {"model": {"string": "a"}}} for each in DEVICES]
    published = resource_slice([*known, device("unsure")], counters={"card": {"memory": "2"}})
    cluster = Watched(device_class("gpu", selectors=[UNSURE]), published)
    tally = cluster.witness.tally(Ask("gpu"))
    taken: list[str] = []
    for event in events:
        if event == "slice":
            cluster.gone(published).tell(published)
        else:
            taken = [] if event == "free all" else [*taken, event]
            cluster.tell(*held(*dict.fromkeys(taken)))
        pool = cluster.pool()
        matching = [each for each in pool.devices() if each.id[2] != "unsure"]
        (unsure,) = (each for each in pool.devices() if each.id[2] == "unsure")
        free = [each for each in matching if not each.taken and not each.taints]
        assert tally.count_of(pool) == PoolCount(
            matching=5,
            free=len(free),
            unavailable=sum(not each.holders for each in matching) - len(free),
            shareable=1,
            maybe_free=not unsure.taken,
        )
        assert tally.held == tally.count_of(pool).held == sum(each.holders > 0 for each in matching)


def test_nothing_is_counted_of_a_pool_that_is_gone() -> None:
    slice_of_all = resource_slice(DEVICES)
    cluster = Watched(device_class("gpu"), slice_of_all, *held("plain"))
    tally, pool = cluster.witness.tally(Ask("gpu")), cluster.pool()
    assert tally.count_of(pool).matching == len(DEVICES)
    cluster.gone(slice_of_all)
    assert tally.count_of(pool) == PoolCount(0, 0, 0, 0, 0)


def test_a_pool_that_is_never_used_is_known_until_it_is_complete() -> None:
    halves = [resource_slice(1, name="a", slices=2), resource_slice([device("b")], name="b", slices=2)]
    cluster = Watched(device_class("gpu"), halves[0]).later(300)
    tally = cluster.witness.tally(Ask("gpu"))
    assert {pool.name for pool in tally.unusable()} == {"n1"}
    cluster.tell(halves[1])
    assert tally.unusable() == set()
    assert tally.certain()
