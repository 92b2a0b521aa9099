"""Shared counters."""

import pytest

from app.dra.counters import Counters, consumption
from app.dra.objects import CounterSet, DeviceCounterConsumption
from tests.builders import decoded

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
