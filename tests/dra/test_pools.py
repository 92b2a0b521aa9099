"""Which slices of a pool count, and whether the pool counts at all."""

from collections.abc import Callable, Iterator

import pytest

from app.dra.demand import Ask
from app.dra.objects import ResourceSlice
from app.dra.pools import Condition, PoolState, memory_of
from app.dra.reasons import Reason
from app.dra.vacancy import Vacancy
from app.dra.witness import Heard, Kind
from tests.builders import NOON, Json, decoded, device, device_class, pod_record, resource_claim, resource_slice, taint
from tests.dra.watched import Watched

USABLE, INCOMPLETE, UNUSABLE, INVALID = Condition


def part(  # noqa: PLR0913
    name: str,
    *names: str,
    node: str = "n1",
    generation: int = 1,
    slices: int = 2,
    pool: str = "n1",
    version: str | None = None,
) -> ResourceSlice:
    """A slice with plain devices of these names."""
    return resource_slice(
        [device(each) for each in names],
        name=name,
        pool=pool,
        node=node,
        generation=generation,
        slices=slices,
        version=version,
    )


def per_device(name: str, *devices: Json, generation: int = 1, slices: int = 1) -> ResourceSlice:
    spec = {
        "driver": "gpu.example.com",
        "pool": {"name": "n1", "generation": generation, "resourceSliceCount": slices},
        "perDeviceNodeSelection": True,
        "devices": devices,
    }
    return decoded({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def selecting(name: str, selector: Json, *, generation: int = 1) -> ResourceSlice:
    spec = {
        "driver": "gpu.example.com",
        "pool": {"name": "n1", "generation": generation, "resourceSliceCount": 1},
        "nodeSelector": selector,
        "devices": [{"name": name}],
    }
    return decoded({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def card(name: str, memory: str, counter_set: str = "card") -> ResourceSlice:
    """One of two slices, with shared counters and a device that needs 40Gi of them."""
    needs = device(f"{name}-0", consumes={counter_set: {"memory": "40Gi"}})
    return resource_slice([needs], name=name, slices=2, counters={counter_set: {"memory": memory}})


def watched(*slices: ResourceSlice) -> Watched:
    return Watched(device_class("gpu"), *slices)


@pytest.mark.parametrize(
    ("slices", "condition", "counts"),
    [
        pytest.param([part("a", "0", slices=1)], USABLE, ["0"], id="one slice"),
        pytest.param([part("a", "0"), part("b", "1")], USABLE, ["0", "1"], id="two of two"),
        pytest.param([part("a", slices=1)], USABLE, [], id="a slice without devices"),
        pytest.param([part("a", "0")], INCOMPLETE, [], id="one of two"),
        pytest.param([part("a", "0"), part("b", "1"), part("c", "2")], INVALID, [], id="row 114: three of two"),
        pytest.param([part("a", "0"), part("b", "0")], INVALID, [], id="one device name in two slices"),
        pytest.param([part("a", "0", "0", slices=1)], INVALID, [], id="one device name twice in a slice"),
        pytest.param([card("a", "80Gi"), card("b", "40Gi")], INVALID, [], id="one counter set in two slices"),
        pytest.param(
            [card("a", "80Gi"), card("b", "40Gi", "b")], USABLE, ["a-0", "b-0"], id="two counter sets in two slices"
        ),
        pytest.param([part("a", "0"), part("b", "1", slices=3)], INVALID, [], id="two different counts"),
        pytest.param([part("a", "0", slices=1, generation=0)], USABLE, ["0"], id="row 149: generation 0"),
        pytest.param(
            [part("a", "0", slices=1), part("b", "1", slices=1, generation=2)], USABLE, ["1"], id="the newest counts"
        ),
        pytest.param(
            [part("a", "0", slices=3), part("b", "0", slices=1, generation=2)],
            USABLE,
            ["0"],
            id="what the older generation says is of no account",
        ),
        pytest.param([part("a", "0"), part("b", "1"), part("c", "2", generation=2)], INCOMPLETE, [], id="half way"),
        pytest.param(
            [part("a", "0", slices=1, node="n1"), part("b", "1", slices=1, node="n2", generation=2)],
            INVALID,
            [],
            id="row 130: n1 sees the old generation only",
        ),
        pytest.param(
            [part("a", "0", slices=1, node="n1"), part("b", "1", slices=1, node="", generation=2)],
            USABLE,
            ["1"],
            id="the newest is for all nodes",
        ),
        pytest.param(
            [part("a", "0", slices=1, node=""), part("b", "1", slices=1, node="n1", generation=2)],
            INVALID,
            [],
            id="the older one is for all nodes",
        ),
        pytest.param([per_device("a", {"name": "0", "nodeName": "n1"})], USABLE, ["0"], id="a node for each device"),
        pytest.param(
            [
                per_device("a", {"name": "0", "nodeName": "n1"}, {"name": "1", "nodeName": "n2"}),
                per_device("b", {"name": "0", "nodeName": "n1"}, generation=2),
            ],
            INVALID,
            [],
            id="a node for each device, n2 is left out by the newest",
        ),
        pytest.param(
            [
                per_device("a", {"name": "0", "nodeName": "n1"}),
                per_device("b", {"name": "0", "nodeName": "n1"}, {"name": "1", "nodeName": "n2"}, generation=2),
            ],
            USABLE,
            ["0", "1"],
            id="a node for each device, n2 is new",
        ),
        pytest.param(
            [
                per_device("a", {"name": "0", "nodeSelector": {"zone": "x"}}),
                per_device("b", {"name": "0", "nodeSelector": {"zone": "y"}}, generation=2),
            ],
            INVALID,
            [],
            id="a selector for each device: whether they cover each other is not known",
        ),
        pytest.param(
            [selecting("0", {"zone": "x"}), selecting("1", {"zone": "x"}, generation=2)],
            USABLE,
            ["1"],
            id="the same node selector",
        ),
        pytest.param(
            [selecting("0", {"zone": "x"}), selecting("1", {"zone": "y"}, generation=2)],
            INVALID,
            [],
            id="another node selector",
        ),
    ],
)
@pytest.mark.parametrize("reverse", [False, True], ids=["in order", "in reverse order"])
def test_a_pool_is_what_its_slices_say_together(
    slices: list[ResourceSlice],
    condition: Condition,
    counts: list[str],
    reverse: bool,  # noqa: FBT001
) -> None:
    cluster = watched(*(slices[::-1] if reverse else slices))
    assert cluster.pool().condition is condition
    assert cluster.free() == [f"n1/{name}" for name in counts]
    assert cluster.pool().size == len(counts)


@pytest.mark.parametrize(
    ("slices", "answer"),
    [
        pytest.param([part("a", "0")], (Vacancy.UNKNOWN, Reason.PoolIncomplete), id="an incomplete pool"),
        pytest.param([part("a", "0", "0", slices=1)], (Vacancy.UNKNOWN, Reason.PoolInvalid), id="an invalid pool"),
        pytest.param([], (Vacancy.FULL, Reason.NoGPUCapacity), id="no such pool"),
    ],
)
def test_a_pool_that_does_not_count_is_unknown_beside_a_full_one(
    slices: list[ResourceSlice], answer: tuple[Vacancy, Reason]
) -> None:
    full: list[Heard] = [
        resource_slice(1, pool="n2"),
        resource_claim("gpu-0", pool="n2", consumers=["p1"]),
        pod_record("p1"),
    ]
    cluster = Watched(device_class("gpu"), *full, *slices)
    assert (cluster.standing().vacancy, cluster.standing().reason) == answer
    cluster.gone(*slices)
    assert cluster.vacancy() is Vacancy.FULL


def test_an_invalid_pool_of_other_devices_does_not_concern_a_class() -> None:
    other = [device(each, attributes={"model": "b"}) for each in ("0", "0")]
    model_a = device_class("gpu", selectors=['device.attributes["gpu.example.com"].model == "a"'])
    full: list[Heard] = [resource_slice([device("0", attributes={"model": "a"})], pool="n2"), pod_record("p1")]
    cluster = Watched(model_a, *full, resource_claim("0", pool="n2", consumers=["p1"]), resource_slice(other))
    assert cluster.vacancy() is Vacancy.FULL
    assert cluster.standing().total == 1


def test_an_incomplete_pool_concerns_every_class_its_driver_may_serve() -> None:
    """More devices may appear, of any kind."""
    model_a = device_class("gpu", selectors=['device.attributes["gpu.example.com"].model == "a"'])
    cluster = Watched(model_a, device_class("nic", driver="nic.example.com"), part("a", "0"))
    assert cluster.standing().reason is Reason.PoolIncomplete


# --- Settling ---------------------------------------------------------------------------------------------------------


def test_an_incomplete_pool_that_stays_so_for_five_minutes_is_unusable() -> None:
    """Rows 147 and 148."""
    cluster = watched(part("a", "0"))
    assert cluster.standing().reason is Reason.PoolIncomplete
    assert cluster.later(299.99).pool().condition is INCOMPLETE
    assert cluster.later(0.01).pool().condition is UNUSABLE
    assert cluster.vacancy() is Vacancy.EMPTY
    assert cluster.tell(part("b", "1")).pool().condition is USABLE
    assert cluster.free() == ["n1/0", "n1/1"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda cluster: cluster.tell(part("a", "0", "1", slices=4)), id="a slice changes"),
        pytest.param(lambda cluster: cluster.tell(part("b", "2", slices=4)), id="a slice appears"),
        pytest.param(lambda cluster: cluster.gone(part("x")), id="a slice goes"),
    ],
)
def test_every_change_starts_the_five_minutes_anew(change: Callable[[Watched], Watched]) -> None:
    cluster = watched(part("a", "0", slices=4), part("x", "9", slices=4)).later(200)
    assert change(cluster).later(299).pool().condition is INCOMPLETE
    assert cluster.later(1).pool().condition is UNUSABLE


def test_a_list_that_says_the_same_again_does_not() -> None:
    cluster = watched(part("a", "0", version="7")).later(200).tell(part("a", "0", version="7"))
    assert cluster.later(100).pool().condition is UNUSABLE


def test_a_pool_that_is_unusable_from_the_first_or_gone_is_known_as_that() -> None:
    """A file says since when a slice is as it is."""
    cluster = watched()
    tally = cluster.witness.tally(Ask("gpu"))
    cluster.witness.apply(Kind.RESOURCE_SLICES, part("a", "0"), NOON, NOON - 300)
    assert [pool.condition for pool in tally.unusable()] == [UNUSABLE]
    cluster.gone(part("a"))
    assert not list(tally.unusable())


def test_a_settled_pool_that_changes_is_watched_again() -> None:
    cluster = watched(part("a", "0")).later(300).tell(part("a", "0", "1"))
    assert cluster.pool().condition is INCOMPLETE
    assert cluster.standing().reason is Reason.PoolIncomplete
    assert cluster.later(300).pool().condition is UNUSABLE


@pytest.mark.parametrize(
    "slices",
    [
        pytest.param([part("a", "0", node="")], id="of all nodes"),
        pytest.param([part("a", "0", slices=3), part("b", "1", slices=3, node="n2")], id="of two nodes"),
        pytest.param([part("a", "0", slices=1), part("b", "1", generation=2)], id="of two generations"),
    ],
)
def test_only_a_pool_of_one_generation_on_one_node_settles(slices: list[ResourceSlice]) -> None:
    cluster = watched(*slices).later(10_000)
    assert cluster.pool().condition is INCOMPLETE
    assert cluster.standing().reason is Reason.PoolIncomplete
    assert not cluster.witness._settling  # noqa: SLF001  # it must not be judged again at every review


@pytest.mark.parametrize("models", [["A100", "H100"], ["H100", "A100"]])
def test_of_two_devices_of_one_name_either_may_match(models: list[str]) -> None:
    twins = resource_slice([device("0", attributes={"model": model}) for model in models])
    selector = "device.attributes['gpu.example.com'].model == 'H100'"
    assert Watched(device_class("gpu", selectors=[selector]), twins).standing().reason is Reason.PoolInvalid


def test_until_the_first_pool_settles_time_that_passes_costs_nothing() -> None:
    """Time passes with every review; a roll-out may leave thousands of pools to wait for."""

    class Pools(set[PoolState]):
        looked_through = 0

        def __iter__(self) -> Iterator[PoolState]:
            self.looked_through += 1
            return super().__iter__()

    cluster = watched()
    waiting = cluster.witness._settling = Pools()  # noqa: SLF001  # what it costs is not to be seen from outside
    cluster.tell(part("a", "0")).later(100).tell(part("b", "0", pool="n2"))
    for _ in range(199):
        cluster.later(1)
    assert waiting.looked_through == 0
    assert cluster.later(1).pool("n1").condition is UNUSABLE
    assert cluster.later(99).pool("n2").condition is INCOMPLETE
    assert cluster.later(1).pool("n2").condition is UNUSABLE
    assert waiting.looked_through < 10


def test_a_pool_that_is_complete_or_gone_waits_for_nothing() -> None:
    cluster = watched(part("a", "0"))
    assert len(cluster.witness._settling) == 1  # noqa: SLF001
    cluster.tell(part("b", "1"))
    assert not cluster.witness._settling  # noqa: SLF001
    cluster.gone(part("b"))
    cluster.gone(part("a"))
    assert not cluster.witness._settling  # noqa: SLF001
    assert list(cluster.witness.pools()) == []


# --- Slices that change -----------------------------------------------------------------------------------------------


def test_a_slice_that_moves_to_another_pool_leaves_the_first() -> None:
    cluster = watched(part("a", "0", slices=1), part("b", "1", slices=1, pool="n2"))
    cluster.tell(part("a", "0", slices=2, pool="n2"))
    assert [pool.name for pool in cluster.witness.pools()] == ["n2"]
    assert cluster.pool("n2").condition is INVALID  # one slice declares one, the other two
    cluster.tell(part("b", "1", slices=2, pool="n2"))
    assert cluster.free() == ["n2/0", "n2/1"]


def test_a_slice_that_is_gone_takes_its_devices_along() -> None:
    cluster = watched(part("a", "0", slices=1))
    assert cluster.free() == ["n1/0"]
    cluster.gone(part("a")).gone(part("nosuch"))
    assert cluster.free() == []
    assert cluster.standing().total == 0
    assert cluster.witness.drivers() == ()


def test_a_slice_of_the_same_version_is_not_read_again() -> None:
    cluster = watched(part("a", "0", slices=1, version="7"))
    (before,) = cluster.pool().devices()
    cluster.tell(part("a", "changed", slices=1, version="7"))
    assert list(cluster.pool().devices()) == [before]
    cluster.tell(part("a", "changed", slices=1, version="8"))
    assert cluster.free() == ["n1/changed"]


def test_slices_that_do_not_change_keep_their_devices() -> None:
    cluster = watched(part("a", "0"), part("b", "1"))
    kept = next(each for each in cluster.pool().devices() if each.id[2] == "0")
    cluster.tell(part("b", "1", "2"))
    assert kept in list(cluster.pool().devices())
    assert cluster.free() == ["n1/0", "n1/1", "n1/2"]


def test_devices_that_are_published_again_are_still_held() -> None:
    """A roll-out, a new version, and a slice that comes after its claims."""
    held: list[Heard] = [resource_claim("0", consumers=["p1"], at=1_000.0), pod_record("p1")]
    cluster = Watched(device_class("gpu"), *held, part("a", "0", "1", slices=1))
    assert cluster.free() == ["n1/1"]
    assert cluster.pool().last_taken == 1_000
    cluster.tell(part("c", "0", "1", "2", slices=1, generation=2))
    assert cluster.free() == ["n1/1", "n1/2"]
    cluster.gone(part("a"), part("c")).tell(part("a", "0", slices=1))
    assert cluster.vacancy() is Vacancy.FULL
    assert cluster.pool().last_taken == 1_000


# --- What is kept of a device -----------------------------------------------------------------------------------------


def test_a_device_is_tied_to_the_node_of_its_slice_or_to_its_own() -> None:
    slices = [part("a", "0", slices=1), part("b", "1", slices=1, pool="all", node="")]
    cluster = watched(*slices, *[resource_slice([device("2", node="n3")], pool="per-device", node="")])
    assert {each.id[2]: each.node for pool in cluster.witness.pools() for each in pool.devices()} == {
        "0": "n1",
        "1": "",
        "2": "n3",
    }


def test_only_taints_that_keep_somebody_off_are_kept() -> None:
    effects = ("NoSchedule", "NoExecute", "None", "Weird")
    cluster = watched(resource_slice([device(each, taints=[taint(each)]) for each in effects]))
    assert cluster.free() == ["n1/None", "n1/Weird"]


def test_a_pool_is_plain_while_its_devices_are() -> None:
    cluster = watched(resource_slice([device("0")]))
    assert cluster.pool().plain
    assert not cluster.tell(resource_slice([device("0"), device("1", shareable=True)])).pool().plain
    assert not cluster.tell(resource_slice([device("0", consumes={"card": {"memory": "1"}})])).pool().plain
    assert cluster.tell(resource_slice([device("1")])).pool().plain


@pytest.mark.parametrize(
    ("capacity", "memory"),
    [
        pytest.param(b'{"memory": {"value": "80Gi"}}', "80Gi", id="as the slice writes it"),
        pytest.param(b'{"memory": {"value": 5}, "cores": {"value": "1"}}', "5", id="a bare number"),
        pytest.param(b'{"cores": {"value": "1"}}', "", id="another capacity"),
        pytest.param(b'{"memory": "80Gi"}', "", id="no capacity at all"),
        pytest.param(b"null", "", id="null"),
        pytest.param(b'{"memory": {"value": 1e999}}', "", id="a number larger than any"),
        pytest.param(b'{"cores":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "", id="lists too deep to be read"),
        pytest.param(b"", "", id="nothing"),
    ],
)
def test_memory_for_sentences(capacity: bytes, memory: str) -> None:
    assert memory_of(capacity) == memory
