"""When a refresher ticks, and what it says in the log."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from app.cluster.refresher import (
    JITTER,
    START_SECONDS,
)
from app.dra.demand import Ask, PodDemand
from app.dra.drivers import source_in_use
from app.dra.judgement import Policy, Source, World, find
from app.dra.snapshot import Snapshot, driver_status
from app.dra.vacancy import Vacancy
from app.dra.witness import HOLDS, Kind, Witness
from tests.builders import (
    DRIVER,
    NOON,
    device_class,
    node,
    pod_record,
    pool_counts,
    pool_status,
    resource_claim,
)
from tests.cluster.refreshing import (
    LITTLE,
    N1,
    REFRESH_SECONDS,
    Plane,
    play,
)
from tests.dra.watched import Watched

# --- Time and words ---------------------------------------------------------------------------------------------------


class Enough(Exception):
    """Ends a loop that has no end."""


def pauses(plane: Plane, pauses: int, now: Callable[[], float], jitter: float = 0.5) -> Awaitable[list[float]]:
    """How long `run` sleeps, the first times; it ticks in between."""

    async def ran() -> list[float]:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 1:
                plane.watched.witness.synced(Kind.RESOURCE_SLICES, NOON)
            if len(slept) == pauses:
                raise Enough

        with pytest.raises(Enough):
            await plane.refresher.run(now, sleep, lambda: jitter)
        return slept

    return ran()


@pytest.mark.parametrize(
    ("jitter", "seconds"),
    [(0.0, REFRESH_SECONDS * (1 - JITTER)), (0.5, REFRESH_SECONDS), (1.0, REFRESH_SECONDS * (1 + JITTER))],
)
def test_ticks_come_once_a_minute_more_or_less(tmp_path: Path, jitter: float, seconds: float) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        assert await pauses(plane, 3, lambda: NOON, jitter) == pytest.approx([seconds] * 3)
        assert len(plane.asked()) == 3

    play(tmp_path, story)


def test_the_first_tick_comes_when_the_slices_are_known(tmp_path: Path) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        witness = Witness(NOON)
        witness.synced(Kind.DEVICE_CLASSES, NOON)
        witness.apply(Kind.RESOURCE_SLICES, N1, NOON)
        plane.watched.witness = witness
        plane.latest.publish(World(witness, Snapshot({}), Policy()))
        assert await pauses(plane, 2, lambda: NOON) == [START_SECONDS, REFRESH_SECONDS]
        assert len(plane.asked()) == 1

    play(tmp_path, story)


def test_a_mistake_of_ours_in_one_tick_does_not_end_the_next(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(plane: Plane) -> None:
        plane.answer(pool_counts("n1"))
        times = iter([None, NOON])

        def now() -> float:
            moment = next(times)
            if moment is None:
                raise ZeroDivisionError
            return moment

        await pauses(plane, 2, now)
        assert plane.status().taken_at == NOON

    play(tmp_path, story)
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == ["refreshing failed"]


def test_a_change_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="app.cluster")

    async def story(plane: Plane) -> None:
        for minute, answers in enumerate((True, True, False, False, False, True, True)):
            plane.server.answers.clear()
            if answers:
                plane.answer(pool_counts("n1"), at=NOON + 60 * minute)
            await plane.refresher.tick(NOON + 60 * minute)
        plane.watched.gone(N1)
        await plane.refresher.tick(NOON + 600)
        await plane.refresher.tick(NOON + 660)

    play(tmp_path, story, patience=LITTLE)
    assert [(record.levelname, *record.__dict__["facts"].values()) for record in caplog.records] == [
        ("INFO", DRIVER, "complete", "both"),
        ("WARNING", DRIVER, "silent", "both"),
        ("WARNING", DRIVER, "silent", "witness"),
        ("INFO", DRIVER, "complete", "both"),
        ("INFO", DRIVER),
    ]


@pytest.mark.parametrize("source", Source)
@pytest.mark.parametrize("age", [None, 30.0, 300.0], ids=["never counted", "fresh", "stale"])
@pytest.mark.parametrize("holds", ["known", "lost", "denied"])
def test_the_source_in_use_is_the_one_the_judgement_uses(source: Source, age: float | None, holds: str) -> None:
    taken = resource_claim("gpu-0", "gpu-1", "gpu-2", "gpu-3", consumers=["p1"])
    witness = Watched(device_class(), N1, taken, pod_record("p1"), node()).witness
    for kind in HOLDS if holds != "known" else ():
        (witness.deny if holds == "denied" else witness.lost)(kind)
    counted = [] if age is None else [driver_status([pool_status(pool_counts("n1"), at=NOON - age)], received_at=NOON)]
    snapshot = Snapshot({status.driver: status for status in counted})
    world = World(witness, snapshot, Policy(source=source))
    finding = find(Ask("gpu"), PodDemand(), world, NOON)
    in_use = source_in_use(DRIVER, world, NOON)
    assert in_use in ("", finding.source)
    assert bool(in_use) is (finding.vacancy is not Vacancy.UNKNOWN)
