"""Shared counters."""

import pytest

from app.dra.counters import Counters, consumption
from app.dra.objects import CounterSet, DeviceCounterConsumption, ResourceClaim, ResourceSlice
from tests.builders import NOON, decoded, device, device_class, pod_record, resource_claim, resource_slice
from tests.dra.watched import Watched

Amounts = dict[str, str | int]


def counters(name: str = "card", **amounts: str | int) -> Counters:
    return Counters.of([decoded({"name": name, "counters": {k: {"value": v} for k, v in amounts.items()}}, CounterSet)])


def consumes(name: str = "card", **amounts: str | int) -> list[DeviceCounterConsumption]:
    whole = {"counterSet": name, "counters": {k: {"value": v} for k, v in amounts.items()}}
    return [decoded(whole, DeviceCounterConsumption)]


FULL, HALF = consumption(consumes(memory="80Gi")), consumption(consumes(memory="40Gi"))


def test_what_one_device_takes_is_missing_to_the_others_until_it_gives_it_back() -> None:
    card = counters(memory="80Gi")
    assert card.fit(FULL)
    card.take(HALF)
    assert not card.fit(FULL)
    assert card.fit(HALF)
    card.take(HALF)
    assert not card.fit(HALF)
    card.give_back(HALF)
    card.give_back(HALF)
    assert card.fit(FULL)


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        pytest.param(consumes(memory="80Gi", slots=2), True, id="exactly what is there"),
        pytest.param(consumes(memory="80Gi", slots="2001m"), False, id="a thousandth more"),
        pytest.param(consumes(memory="81Gi"), False, id="one counter of two"),
        pytest.param(consumes(memory=0), True, id="nothing"),
        pytest.param(consumes(copies="5"), True, id="a counter nobody declares bounds nothing"),
        pytest.param(consumes("other", memory="99Gi"), True, id="nor does one of another set"),
        pytest.param(consumes(copies="1e4000"), True, id="however much of it"),
        pytest.param(consumes(memory="many"), True, id="an amount that cannot be read counts as nothing"),
        pytest.param(consumes(memory="-1"), True, id="a negative amount is less than what is left"),
        pytest.param(None, True, id="a device that consumes nothing"),
    ],
)
def test_a_device_fits_if_every_counter_has_enough(
    wanted: list[DeviceCounterConsumption] | None,
    fits: bool,  # noqa: FBT001
) -> None:
    assert counters(memory="80Gi", slots=2).fit(consumption(wanted)) is fits


def test_a_total_that_cannot_be_read_bounds_nothing() -> None:
    card = counters(memory="plenty")
    card.take(consumption(consumes(memory="1e4000")))
    assert card.fit(consumption(consumes(memory="1e4000")))


def test_a_negative_total_fits_nothing_but_less() -> None:
    card = counters(memory="-1")
    assert not card.fit(consumption(consumes(memory=0)))
    assert card.fit(consumption(consumes(memory="-2")))


def test_what_is_not_declared_leaves_no_trace() -> None:
    card = counters(memory="80Gi")
    card.take(consumption(consumes(copies="5")))
    assert list(card.left) == [("card", "memory")]


def test_sets_are_apart() -> None:
    both = Counters.of(
        decoded({"name": name, "counters": {"memory": {"value": "80Gi"}}}, CounterSet) for name in ("card-0", "card-1")
    )
    both.take(consumption(consumes("card-0", memory="80Gi")))
    assert not both.fit(consumption(consumes("card-0", memory="1")))
    assert both.fit(consumption(consumes("card-1", memory="80Gi")))


# --- In a cluster -----------------------------------------------------------------------------------------------------


def mig() -> ResourceSlice:
    """One card as a whole or in two halves."""
    return resource_slice(
        [
            device("whole", consumes={"card": {"memory": "80Gi"}}),
            device("half-0", consumes={"card": {"memory": "40Gi"}}),
            device("half-1", consumes={"card": {"memory": "40Gi"}}),
            device("apart"),
        ],
        counters={"card": {"memory": "80Gi"}},
    )


@pytest.mark.parametrize(
    ("held", "free"),
    [
        pytest.param([], ["apart", "half-0", "half-1", "whole"], id="nothing"),
        pytest.param(["whole"], ["apart"], id="row 108: the whole card"),
        pytest.param(["half-0"], ["apart", "half-1"], id="one half"),
        pytest.param(["half-0", "half-1"], ["apart"], id="both halves"),
        pytest.param(["apart"], ["half-0", "half-1", "whole"], id="what consumes nothing"),
        pytest.param(["gone"], ["apart", "half-0", "half-1", "whole"], id="a partition that is not published any more"),
    ],
)
@pytest.mark.parametrize("late", ["the slice", "the claim"])
def test_a_device_whose_counters_do_not_fit_is_taken(held: list[str], free: list[str], late: str) -> None:
    claim = resource_claim(*held, consumers=["p1"])
    known: list[ResourceSlice | ResourceClaim] = [mig(), claim] if late == "the claim" else [claim, mig()]
    cluster = Watched(device_class("gpu"), pod_record("p1"), *known)
    assert cluster.free() == [f"n1/{name}" for name in free]
    cluster.gone(claim)
    assert len(cluster.free()) == 4


def test_row_124_who_is_about_to_let_go_gives_its_counters_back() -> None:
    cluster = Watched(device_class("gpu"), mig(), resource_claim("whole", consumers=["p1"]), pod_record("p1"))
    cluster.tell(pod_record("p1", deadline=NOON + 30))
    assert cluster.free() == ["n1/apart", "n1/half-0", "n1/half-1", "n1/whole"]
    cluster.later(91)
    assert cluster.free() == ["n1/apart"]


def test_a_device_in_two_claims_consumes_once() -> None:
    claims = [resource_claim("half-0", name=name, consumers=["p1"]) for name in ("c1", "c2")]
    cluster = Watched(device_class("gpu"), mig(), pod_record("p1"), *claims)
    assert cluster.free() == ["n1/apart", "n1/half-1"]
    cluster.gone(claims[0])
    assert cluster.free() == ["n1/apart", "n1/half-1"]
    cluster.gone(claims[1])
    assert len(cluster.free()) == 4


def test_a_slice_published_again_counts_its_counters_anew() -> None:
    cluster = Watched(device_class("gpu"), mig(), resource_claim("half-0", consumers=["p1"]), pod_record("p1"))
    smaller = resource_slice(
        [
            device("half-0", consumes={"card": {"memory": "40Gi"}}),
            device("half-1", consumes={"card": {"memory": "40Gi"}}),
        ],
        counters={"card": {"memory": "40Gi"}},
    )
    assert cluster.tell(smaller).free() == []
    assert cluster.tell(mig()).free() == ["n1/apart", "n1/half-1"]


@pytest.mark.parametrize(("held", "free"), [([], (0, 2, 2)), (["half-0"], (0, 0, 1))])
def test_counters_in_a_slice_of_their_own_may_become_others(held: list[str], free: tuple[int, int, int]) -> None:
    halves = [device(f"half-{number}", consumes={"card": {"memory": "40Gi"}}) for number in (0, 1)]
    claim = resource_claim(*held, consumers=["p1"])
    cluster = Watched(device_class("gpu"), resource_slice(halves, slices=2), claim, pod_record("p1"))
    for memory, devices in [*zip(("0", "40Gi", "80Gi"), free, strict=True)] * 2:
        cluster.tell(resource_slice([], name="card", slices=2, counters={"card": {"memory": memory}}))
        assert len(cluster.free()) == devices
