"""The kept capacity table: when it is made again, how often, and whom it lets work meanwhile."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from app.dra.capacity import ClassCapacity, Counts, PoolCapacity
from app.dra.judgement import Policy, World
from app.dra.reasons import Reason
from app.dra.snapshot import Snapshot
from app.dra.vacancy import Vacancy
from app.dra.witness import Witness
from app.web import table
from app.web.table import KEPT_SECONDS, CapacityTable, Kept, Table, in_pieces

NOON = 1767268800.0


def a_class(name: str, **pools: Vacancy) -> ClassCapacity:
    rows = tuple(
        PoolCapacity("gpu.example.com", pool, pool, Counts(1, 0, 1, 0), vacancy, Reason.HasRoom)
        for pool, vacancy in pools.items()
    )
    return ClassCapacity(
        name=name,
        extended_resource_name="",
        counts=Counts(len(rows), 0, len(rows), 0),
        listed=0,
        vacancy=Vacancy.FREE,
        judged=Vacancy.FREE,
        reason=Reason.HasRoom,
        age_seconds=None,
        source="witness",
        pools=rows,
    )


def a_world() -> World:
    return World(Witness(NOON), Snapshot({}), Policy())


@dataclass
class Kitchen:
    """A table whose world and clock are set by hand, and how often it was made."""

    world: World = field(default_factory=a_world)
    now: float = NOON
    made: int = 0
    classes: tuple[ClassCapacity, ...] = (a_class("a", n1=Vacancy.FREE),)

    def __post_init__(self) -> None:
        self.table = CapacityTable(self.steps, world=lambda: self.world, now=lambda: self.now, hide_names=False)

    def steps(self, _world: World, _now: float) -> Iterator[ClassCapacity | None]:
        self.made += 1
        for each in self.classes:
            yield None
            yield each

    def get(self) -> Table:
        return asyncio.run(self.table.get())


@pytest.mark.parametrize(("seconds", "made"), [(0.0, 1), (KEPT_SECONDS - 0.1, 1), (KEPT_SECONDS, 2), (-1.0, 2)])
def test_it_is_made_again_when_it_is_two_seconds_old_or_of_the_future(seconds: float, made: int) -> None:
    kitchen = Kitchen()
    kitchen.get()
    kitchen.now += seconds
    assert kitchen.get().made_at == (kitchen.now if made > 1 else NOON)
    assert kitchen.made == made


def test_under_a_clock_that_stands_still_it_is_made_again_for_another_world() -> None:
    kitchen = Kitchen()
    first = kitchen.get()
    assert kitchen.get() is first
    kitchen.world = a_world()
    assert kitchen.get() is not first


def test_a_table_that_takes_long_is_kept_from_its_end_on() -> None:
    kitchen = Kitchen()

    def slow(_world: World, _now: float) -> Iterator[ClassCapacity | None]:
        kitchen.made += 1
        kitchen.now += 10 * KEPT_SECONDS
        yield None

    kitchen.table = CapacityTable(slow, world=lambda: kitchen.world, now=lambda: kitchen.now, hide_names=False)
    kitchen.get()
    kitchen.get()
    assert kitchen.made == 1


def test_who_asks_while_it_is_made_waits_for_the_same() -> None:
    kitchen = Kitchen()

    async def all_at_once() -> list[Table]:
        return list(await asyncio.gather(*(kitchen.table.get() for _ in range(5))))

    assert len(set(map(id, asyncio.run(all_at_once())))) == 1
    assert kitchen.made == 1


def test_a_pool_counts_once_by_the_best_it_can_give_to_any_class() -> None:
    a = a_class("a", n1=Vacancy.FULL, n2=Vacancy.FULL, n3=Vacancy.EMPTY, n4=Vacancy.UNKNOWN)
    b = a_class("b", n1=Vacancy.FREE, n2=Vacancy.UNKNOWN, n3=Vacancy.FULL)
    made = Kitchen(classes=(a, b)).get()
    assert made.pools == {
        ("gpu.example.com", Vacancy.FREE): 1,
        ("gpu.example.com", Vacancy.UNKNOWN): 2,
        ("gpu.example.com", Vacancy.FULL): 1,
    }
    assert [(each.name, each.pools) for each in made.classes] == [("a", ()), ("b", ())]
    assert [len(each.pools) for each in made.report.classes] == [4, 3]


def test_others_work_between_two_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "WORK_SECONDS", 0.0)
    monkeypatch.setattr(table, "PAUSE_SECONDS", 0.0)
    order: list[str] = []

    async def reviews() -> None:
        for number in range(3):
            order.append(f"review {number}")
            await asyncio.sleep(0)

    async def story() -> None:
        answering = asyncio.create_task(reviews())
        async for piece in in_pieces(["piece 0", "piece 1", "piece 2"]):
            order.append(piece)  # noqa: PERF401 - one after the other is the point
        await answering

    asyncio.run(story())
    assert order == ["piece 0", "review 0", "piece 1", "review 1", "piece 2", "review 2"]


def test_a_rendering_is_made_once_for_what_it_is_made_of() -> None:
    kept, made = Kept[str](), []

    async def story() -> list[str]:
        async def make() -> str:
            made.append(len(made))
            await asyncio.sleep(0)
            return str(len(made))

        one, two = object(), object()
        return list(await asyncio.gather(*(kept.get(of, make) for of in (one, one, two, two, one))))

    assert asyncio.run(story()) == ["1", "1", "2", "2", "3"]
