"""A new ask in a large cluster: counted in steps, unknown until then, and right whatever happens in between."""

import pytest

from app.dra.demand import Ask
from app.dra.reasons import Reason
from app.dra.tallies import DEVICES_AT_ONCE
from app.dra.vacancy import Vacancy
from tests.builders import device_class, pod_record, resource_claim, resource_slice
from tests.dra.watched import Watched

POOLS = [f"n{number}" for number in range(DEVICES_AT_ONCE // 4 + 50)]
"""More devices than are looked at at once, four to a pool."""


def large() -> Watched:
    return Watched(device_class("gpu"), pod_record("p"), *(resource_slice(4, pool=pool) for pool in POOLS))


def finish(cluster: Watched) -> None:
    while cluster.witness.work(40):
        pass


def test_until_every_device_was_looked_at_nothing_is_full() -> None:
    cluster = large()
    for pool in POOLS:
        cluster.tell(resource_claim("gpu-0", "gpu-1", "gpu-2", "gpu-3", name=pool, pool=pool, consumers=["p"]))
    standing = cluster.standing()
    assert (standing.vacancy, standing.reason) == (Vacancy.UNKNOWN, Reason.SelectorUnknown)
    assert not cluster.witness.tally(Ask("gpu")).certain()
    finish(cluster)
    assert cluster.vacancy() is Vacancy.FULL
    assert cluster.standing().total == 4 * len(POOLS)


def test_a_free_device_among_those_looked_at_is_room_at_once() -> None:
    assert large().vacancy() is Vacancy.FREE


@pytest.mark.parametrize("seen", [POOLS[0], POOLS[-1]], ids=["in a pool already counted", "in a pool still to come"])
def test_what_happens_between_two_steps_counts_once(seen: str) -> None:
    cluster = large()
    cluster.standing()
    cluster.tell(resource_claim("gpu-0", name="early", pool=seen, consumers=["p"]))
    cluster.tell(resource_slice(6, pool=seen, generation=2))
    cluster.tell(resource_slice(4, pool="new"))
    cluster.witness.work(40)
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
    assert cluster.vacancy() is Vacancy.EMPTY
