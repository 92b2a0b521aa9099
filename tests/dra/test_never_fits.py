"""More asked for than there is: on one node, or free at present."""

from collections.abc import Sequence

import pytest

from app.dra.reasons import Reason
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.verdict import Outcome
from app.dra.witness import Heard, Kind
from tests.builders import (
    DRIVER,
    GPU,
    NOON,
    device,
    device_class,
    pod,
    pool_counts,
    resource_slice,
)
from tests.dra.c0 import (
    AGES_AGO,
    COUNTED,
    FREE1,
    HAS_ROOM,
    IS_FULL,
    N1_TAKEN,
    N2_TAKEN,
    NEVER,
    OTHER_GENERATION,
    ROOM,
    STALE,
    TAKEN,
    UNKNOWN,
    counted,
    need,
    outcome,
    verdict,
    world,
)


@pytest.mark.parametrize(
    ("objects", "count", "want"),
    [
        pytest.param(TAKEN[2:], "1", HAS_ROOM, id="less than is free"),
        pytest.param(TAKEN[2:], "2", HAS_ROOM, id="as many as are free"),
        pytest.param(TAKEN[2:], "3", (ROOM, Reason.FewerThanAsked), id="row 3: more than are free"),
        pytest.param(TAKEN[2:], "5", (NEVER, Reason.NeverFits), id="more than any node has"),
        pytest.param(TAKEN, "5", IS_FULL, id="more than any node has, none free: full wins"),
        pytest.param((*N1_TAKEN[1:], *N2_TAKEN[1:]), "2", (ROOM, Reason.FewerThanAsked), id="one free on two nodes"),
        pytest.param(
            (resource_slice(4, pool="fabric", node=""), *TAKEN), "5", (ROOM, Reason.FewerThanAsked), id="row 135"
        ),
        pytest.param(
            (resource_slice([device("s", shareable=True)], pool="n3"), *TAKEN), "5", HAS_ROOM, id="a shareable device"
        ),
        pytest.param((resource_slice(4, pool="n3", slices=2), *TAKEN[2:]), "5", HAS_ROOM, id="an incomplete pool"),
    ],
)
def test_how_many_are_asked_for(objects: Sequence[Heard], count: str, want: tuple[Outcome, Reason]) -> None:
    assert outcome(world(*objects, source="witness"), pod({GPU: count})) == want


def test_what_never_fits_is_said_of_a_full_need_too() -> None:
    assert need(world(*TAKEN), pod({GPU: "5"})).never_fits
    assert not need(world(*TAKEN), pod({GPU: "4"})).never_fits


def test_numbers_of_a_need() -> None:
    said = need(world(*TAKEN[3:], statuses=counted(pool_counts("n1", allocated=1))))
    assert (said.total, said.free, said.pools, said.drivers) == (8, 3, 2, (DRIVER,))
    assert (said.largest_free_block, said.largest_block, said.listed) == (3, 4, 0)
    whole = verdict(world(*TAKEN))
    assert (whole.source, whole.snapshot_time) == ("both", COUNTED)
    alone = verdict(world(*TAKEN, source="witness"))
    assert (alone.source, alone.snapshot_time) == ("witness", None)


@pytest.mark.parametrize("statuses", [FREE1, STALE, OTHER_GENERATION, []], ids=["veto", "stale", "roll-out", "none"])
def test_a_doubt_is_no_number(statuses: list[ResourcePoolStatusRequest]) -> None:
    said = need(world(*TAKEN, statuses=statuses))
    assert (said.outcome, said.free, said.largest_free_block) == (UNKNOWN, None, None)


def test_a_pool_that_misses_slices_for_good_may_yet_hold_more_than_any_node() -> None:
    known = world(*TAKEN[2:], source="witness")
    known.witness.apply(Kind.RESOURCE_SLICES, resource_slice(8, pool="n3", slices=2), NOON - 360)
    said = need(known, pod({GPU: "5"}))
    assert (said.outcome, said.reason, said.never_fits) == (ROOM, Reason.FewerThanAsked, False)


def test_the_largest_node_is_named_whichever_claimant_has_it() -> None:
    """Who asks for five is told of four, although the winner has only one."""
    newer = device_class("b", driver="b.example.com", declares=GPU, created=AGES_AGO + 1)
    one = resource_slice(1, pool="b", driver="b.example.com", node="n1")
    said = need(world(newer, one, source="witness"), pod({GPU: "5"}))
    assert (said.outcome, said.class_name, said.largest_block) == (NEVER, "b", 1)
    assert said.claimant is not None
    assert said.claimant.largest_block == 4
