"""New asks: counted in steps, unknown until then, right whatever happens in between; and asks that are forgotten."""

import gc
from functools import partial
from weakref import ref

import pytest

from app.dra.demand import Ask, Need, PodDemand
from app.dra.judgement import Policy, Source, World, decide
from app.dra.objects import ResourceSlice
from app.dra.reasons import Reason
from app.dra.selector import Selector
from app.dra.snapshot import Snapshot
from app.dra.tallies import COUNTED_SOON, DEVICES_AT_ONCE, NEW_ASKS_AT_ONCE, TALLIES_AT_MOST
from app.dra.vacancy import Vacancy
from app.dra.verdict import Outcome
from tests.builders import device, device_class, pod_record, resource_claim, resource_slice
from tests.dra.watched import Watched

FREE, FULL, EMPTY, UNKNOWN = Vacancy

POOLS = [f"n{number}" for number in range(DEVICES_AT_ONCE // 4 + 50)]
"""More devices than are looked at at once, four to a pool."""


bounded = partial(Watched, devices_at_once=DEVICES_AT_ONCE)


def large() -> Watched:
    return bounded(device_class("gpu"), pod_record("p"), *(resource_slice(4, pool=pool) for pool in POOLS))


def finish(cluster: Watched) -> None:
    while cluster.witness.tallies.work(40):
        pass


def test_until_every_device_was_looked_at_nothing_is_full() -> None:
    cluster = large()
    for pool in POOLS:
        cluster.tell(resource_claim("gpu-0", "gpu-1", "gpu-2", "gpu-3", name=pool, pool=pool, consumers=["p"]))
    standing = cluster.standing()
    assert (standing.vacancy, standing.reason) == (UNKNOWN, Reason.SelectorUnknown)
    assert not cluster.witness.tally(Ask("gpu")).certain()
    while cluster.witness.tallies.work(1):
        assert cluster.vacancy() is UNKNOWN
    assert cluster.vacancy() is FULL
    assert cluster.standing().total == 4 * len(POOLS)


def test_a_new_ask_may_be_waited_for_until_it_is_counted_or_much_was_looked_at_for_it() -> None:
    cluster = large()
    assert not cluster.witness.tallies.counts_soon()
    cluster.standing()
    while cluster.witness.tallies.counts_soon():
        assert cluster.vacancy() is not FULL
        cluster.witness.tallies.work(40)
    assert cluster.witness.tally(Ask("gpu")).complete
    cluster.witness.tally(Ask("gpu", ("device.driver == '' || true",)))
    assert cluster.witness.tallies.counts_soon()
    cluster.witness.tallies._worked += COUNTED_SOON  # noqa: SLF001  # in a cluster with ten times the devices
    assert not cluster.witness.tallies.counts_soon()


def test_a_free_device_among_those_looked_at_is_room_at_once() -> None:
    assert large().vacancy() is FREE


@pytest.mark.parametrize("seen", [POOLS[0], POOLS[-1]], ids=["in a pool already counted", "in a pool still to come"])
def test_what_happens_between_two_steps_counts_once(seen: str) -> None:
    cluster = large()
    cluster.standing()
    cluster.tell(resource_claim("gpu-0", name="early", pool=seen, consumers=["p"]))
    cluster.tell(resource_slice(6, pool=seen, generation=2))
    cluster.tell(resource_slice(4, pool="new"))
    cluster.witness.tallies.work(40)
    cluster.gone(resource_slice(4, pool=POOLS[1]))
    cluster.gone(resource_slice(4, pool=POOLS[-2]))
    finish(cluster)
    assert cluster.standing().total == 4 * len(POOLS) + 2 + 4 - 8
    assert cluster.standing().free == cluster.standing().total - 1


def test_a_class_that_selects_others_meanwhile_is_counted_anew() -> None:
    cluster = large()
    cluster.standing()
    cluster.tell(device_class("gpu", selectors=["false"]))
    finish(cluster)
    cluster.standing()
    finish(cluster)
    assert cluster.vacancy() is EMPTY


def three_pools_of_which_one_is_counted() -> Watched:
    cluster = bounded(device_class("gpu"), *(resource_slice(2, pool=pool) for pool in ("n1", "n2", "n3")))
    cluster.witness.tallies.devices_at_once = 1  # a cluster too large to be counted at once
    assert cluster.standing().total == 2
    return cluster


def test_what_changes_while_it_is_counted_is_counted_once() -> None:
    cluster = three_pools_of_which_one_is_counted()
    cluster.tell(resource_slice(3, pool="n1"), resource_slice(3, pool="n2")).gone(resource_slice(pool="n3"))
    while cluster.witness.tallies.work(1):
        pass
    assert (cluster.standing().total, cluster.standing().free) == (6, 6)
    cluster.gone(resource_slice(pool="n1"), resource_slice(pool="n2"))
    assert cluster.vacancy() is EMPTY


@pytest.mark.parametrize("steps", range(5))
def test_a_slice_that_is_replaced_while_its_pool_is_counted_is_not_counted(steps: int) -> None:
    def part(name: str, *devices: str) -> ResourceSlice:
        return resource_slice([device(each) for each in devices], name=name, slices=3)

    cluster = bounded(device_class("gpu"), part("a", "0"), part("b", "1"), part("c", "2"))
    cluster.witness.tallies.devices_at_once = 1
    assert cluster.standing().total == 1
    for _ in range(steps):
        cluster.witness.tallies.work(1)
    cluster.tell(part("b", "1", "3"), part("c"))
    while cluster.witness.tallies.work(1):
        pass
    assert cluster.free() == ["n1/0", "n1/1", "n1/3"]


# --- One review -------------------------------------------------------------------------------------------------------


def test_all_new_asks_of_a_review_together_look_at_no_more_devices_than_one() -> None:
    cluster = large()
    asks = [Ask("gpu", (f"{number} == {number}",)) for number in range(4)]
    with cluster.witness.tallies:
        looked_at = [cluster.standing(ask).total for ask in asks]
    assert 0 < sum(looked_at) == looked_at[0] <= DEVICES_AT_ONCE
    with cluster.witness.tallies:
        assert [cluster.standing(ask).total for ask in asks] == looked_at
        assert cluster.standing(Ask("gpu", ("true",))).total > 0  # the next one may wait as long
    finish(cluster)
    assert {cluster.standing(ask).total for ask in asks} == {4 * len(POOLS)}


def test_of_more_new_asks_than_a_review_may_have_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr("app.dra.selector._compiled", compiled.append)
    cluster = bounded(device_class("gpu", selectors=[]), resource_slice(4))
    asks = [Ask("gpu", (f"{number} == {number} // new",)) for number in range(4 * NEW_ASKS_AT_ONCE)]
    with cluster.witness.tallies:
        answers = [cluster.standing(ask) for ask in asks]
    assert {(each.vacancy, each.reason) for each in answers} == {(UNKNOWN, Reason.SelectorUnknown)}
    finish(cluster)
    assert len(compiled) == NEW_ASKS_AT_ONCE
    assert cluster.witness.tally(asks[0]) is cluster.witness.tally(asks[0])
    with cluster.witness.tallies:
        assert [cluster.witness.tally(ask).complete for ask in asks].count(True) == 2 * NEW_ASKS_AT_ONCE


def test_what_is_compiled_counts_as_work() -> None:
    """A template may carry 32 selectors of 10 kB; each takes some 10 ms before it looks at its first device."""
    cluster = large()
    long = [f"{'1 == 1 && ' * 900}{number} == {number}" for number in range(8)]
    with cluster.witness.tallies:
        assert cluster.standing(Ask("gpu", tuple(long))).total == 0
        assert cluster.standing(Ask("gpu", ("1 == 1",))).total == 0
    finish(cluster)
    assert cluster.standing(Ask("gpu", ("1 == 1",))).total == 4 * len(POOLS)


def test_a_costly_selector_looks_at_fewer_devices_at_once() -> None:
    cluster = large()
    costly = "lists.range(1000).exists(x, x * x < 0) || true"
    assert Selector(costly).cost > 5
    with cluster.witness.tallies:
        assert 0 < cluster.standing(Ask("gpu", (costly,))).total < DEVICES_AT_ONCE / 5


def test_a_slice_that_is_replaced_in_the_middle_of_it_is_not_counted() -> None:
    cluster = bounded(device_class("gpu", selectors=["lists.range(999).all(x, x * x >= 0)"]), resource_slice(128))
    cluster.witness.tallies.devices_at_once = 1  # a cluster too large to be counted at once
    assert 0 < cluster.standing().total < 128
    cluster.tell(resource_slice(64))
    finish(cluster)
    assert (cluster.standing().total, cluster.standing().free) == (64, 64)


def test_every_decision_is_a_review() -> None:
    cluster = large()
    asks = [Ask("gpu", (f"{number} == {number}",)) for number in range(2 * NEW_ASKS_AT_ONCE)]
    demand = PodDemand(tuple(Need("gpu", "", 1, (ask,)) for ask in asks))
    world = World(cluster.witness, Snapshot({}), Policy(source=Source.WITNESS))
    outcomes = [need.outcome for need in decide(demand, world, cluster.now).needs]
    assert outcomes == [Outcome.ROOM, *[Outcome.UNKNOWN] * (len(asks) - 1)]
    finish(cluster)
    outcomes = [need.outcome for need in decide(demand, world, cluster.now).needs]
    assert outcomes.count(Outcome.ROOM) == NEW_ASKS_AT_ONCE + 1


def test_of_files_a_review_counts_all_it_asks_for() -> None:
    cluster = large()
    cluster.witness.from_files(pods=True, nodes=True)
    asks = [Ask("gpu", (f"{number} == {number}",)) for number in range(2 * NEW_ASKS_AT_ONCE)]
    with cluster.witness.tallies:
        assert {cluster.standing(ask).total for ask in asks} == {4 * len(POOLS)}


# --- What is forgotten ------------------------------------------------------------------------------------------------


def test_of_too_many_asks_the_one_not_made_for_longest_is_forgotten() -> None:
    held = resource_claim("gpu-0", consumers=["p"])
    cluster = bounded(device_class("gpu"), resource_slice(1), held, pod_record("p"))
    witness = cluster.witness
    first, second = Ask("gpu", ("true",)), Ask("gpu", ("1 == 1",))
    kept, forgotten = witness.tally(first), witness.tally(second)
    for number in range(TALLIES_AT_MOST - 1):
        witness.tally(Ask(f"nosuch-{number}", ("false",)))
        witness.tally(first)
    assert witness.tally(first) is kept
    (only,) = cluster.pool().devices()
    finish(cluster)
    assert forgotten not in only.tallies
    assert witness.tally(second) is not forgotten
    assert len(only.tallies) == 2
    cluster.gone(held)
    assert cluster.vacancy(first) is cluster.vacancy(second) is FREE


@pytest.mark.parametrize("selector", ["{0} == {0}", 'device.attributes["x"].y == "{0}"'], ids=["match", "may match"])
def test_of_asks_that_count_too_many_devices_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch, selector: str
) -> None:
    """A tenant writes selectors at will; 80,000 devices must not be remembered for each."""
    monkeypatch.setattr("app.dra.tallies.COUNTED_AT_MOST", 10)
    cluster = bounded(device_class("gpu"), resource_slice(4))
    for number in range(50):
        cluster.standing(Ask("gpu", (selector.format(number),)))
    finish(cluster)
    assert {len(each.tallies) for each in cluster.pool().devices()} == {2}
    cluster.tell(resource_slice(20))
    assert cluster.standing().free == 20  # what is asked for now is counted, however much it is
    finish(cluster)
    assert {len(each.tallies) for each in cluster.pool().devices()} == {1}


def test_an_ask_that_is_dropped_is_not_counted_on() -> None:
    cluster = three_pools_of_which_one_is_counted().tell(device_class("gpu", driver="nic.example.com"))
    while cluster.witness.tallies.work(1):
        pass
    assert not any(each.tallies for pool in cluster.witness.pools() for each in pool.devices())


def test_counting_that_is_spread_over_time_is_bound_by_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.dra.tallies.COUNTED_AT_MOST", 10)
    cluster = bounded(device_class("gpu"), *(resource_slice(4, pool=pool) for pool in ("n1", "n2")))
    cluster.witness.tallies.devices_at_once = 1  # a cluster too large to be counted at once
    for number in range(3):
        cluster.standing(Ask("gpu", (f"{number} == {number}",)))
    while cluster.witness.tallies.work(1):
        pass
    assert {len(each.tallies) for each in cluster.pool("n1").devices()} == {1}


def test_an_ask_that_is_dropped_lets_go_of_its_devices_a_few_at_a_time() -> None:
    """To go through 80,000 devices at once would stop all reviews for 56 ms."""
    cluster = large()
    tally = cluster.witness.tally(Ask("gpu"))
    finish(cluster)
    cluster.tell(device_class("gpu", selectors=["false"]))
    devices = [each for name in POOLS for each in cluster.pool(name).devices()]
    assert sum(tally in each.tallies for each in devices) == len(devices)
    assert cluster.witness.tallies.work(40)
    assert 0 < sum(tally in each.tallies for each in devices) < len(devices)
    cluster.tell(resource_slice(4, pool=POOLS[-1], generation=2)).gone(resource_slice(pool=POOLS[-2]))
    dropped = ref(tally)
    del tally
    finish(cluster)
    gc.collect()
    assert dropped() is None


def test_asks_that_are_dropped_while_others_let_go_let_go_too() -> None:
    cluster = large()
    asks = [Ask("gpu", (f"{number} == {number}",)) for number in range(3)]
    dropped = []
    for ask in asks:
        dropped.append(ref(cluster.witness.tally(ask)))
        finish(cluster)
        cluster.tell(device_class("gpu", selectors=[f"{len(dropped)} > 0"]))
        cluster.witness.tallies.work(40)
    finish(cluster)
    gc.collect()
    assert [each() for each in dropped] == [None] * 3


def test_an_ask_that_is_dropped_when_no_device_is_left_is_let_go_of() -> None:
    cluster = bounded(device_class("gpu"), resource_slice(2))
    dropped = ref(cluster.witness.tally(Ask("gpu")))
    cluster.gone(resource_slice(2)).tell(device_class("gpu", selectors=["false"]))
    finish(cluster)
    gc.collect()
    assert dropped() is None


def test_of_files_nobody_works_on_an_ask_that_is_dropped() -> None:
    cluster = large()
    cluster.witness.from_files(pods=True, nodes=True)
    dropped = ref(cluster.witness.tally(Ask("gpu")))
    cluster.tell(device_class("gpu", selectors=["false"]))
    gc.collect()
    assert dropped() is None


def test_devices_that_the_same_asks_count_share_the_list_of_them() -> None:
    """Of a large cluster these lists would be a tenth of the memory."""
    cluster = large()
    for ask in (Ask("gpu"), Ask("gpu", ("true",)), Ask("gpu", ("1 == 1",))):
        cluster.standing(ask)
        finish(cluster)
    cluster.tell(resource_slice(4, pool=POOLS[0], generation=2))

    def lists() -> list[int]:
        return [len({id(each.tallies) for each in cluster.pool(name).devices()}) for name in POOLS]

    assert lists() == [1] * len(POOLS)
    cluster.witness.tallies._drop(Ask("gpu", ("true",)))  # noqa: SLF001  # as when it was not made for long
    finish(cluster)
    assert lists() == [1] * len(POOLS)
    assert [len(each.tallies) for each in cluster.pool(POOLS[0]).devices()] == [2] * 4
