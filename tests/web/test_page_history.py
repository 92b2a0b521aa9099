"""The line of free devices: noted minute by minute, for an hour, for the classes there are."""

import asyncio
import re
import tracemalloc

import pytest

from app.dra.capacity import class_capacities
from app.web.history import HEIGHT, MINUTES, History, in_words, line
from app.web.table import CapacityTable, Table
from tests.builders import NOON, device_class, resource_claim, resource_slice
from tests.web.reader import Reader
from tests.web.test_table import a_class


def test_an_hour_is_kept_and_no_more() -> None:
    kept = History()
    for _ in range(3 * MINUTES):
        kept.note([a_class("a")])
    assert len(kept.of("a")) == MINUTES


def test_a_class_that_is_gone_is_forgotten_and_a_new_one_begins_now() -> None:
    kept = History()
    kept.note([a_class("a"), a_class("b")])
    kept.note([a_class("b"), a_class("c")])
    assert [len(kept.of(name)) for name in "abc"] == [0, 2, 1]


def test_an_hour_of_five_hundred_classes_is_less_than_a_megabyte() -> None:
    classes, kept = [a_class(f"class-{number}") for number in range(500)], History()
    tracemalloc.start()
    try:
        for _ in range(2 * MINUTES):
            kept.note(classes)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 1_000_000


def test_it_is_noted_while_nobody_looks() -> None:
    page = Reader(device_class("gpu"), resource_slice(4))

    async def story() -> None:
        noting = asyncio.create_task(page.history.follow(page.table, sample_seconds=0))
        while page.history.noted < 3 and not noting.done():  # noqa: ASYNC110 - it makes no event of it
            await asyncio.sleep(0)
        noting.cancel()

    asyncio.run(story())
    assert list(page.history.of("gpu"))[:3] == [4, 4, 4]


def test_a_mistake_of_ours_is_told_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    page = Reader(device_class("gpu"), resource_slice(4))
    faults = iter([ZeroDivisionError("tenant's secret")])

    class Faulty(CapacityTable):
        async def get(self) -> Table:
            for fault in faults:
                raise fault
            return await page.table.get()

    async def story() -> None:
        table = Faulty(class_capacities, world=page.world, now=lambda: NOON, hide_names=False)
        noting = asyncio.create_task(page.history.follow(table, sample_seconds=0))
        while page.history.noted < 1 and not noting.done():  # noqa: ASYNC110 - it makes no event of it
            await asyncio.sleep(0)
        noting.cancel()

    asyncio.run(story())
    assert page.history.of("gpu")[0] == 4
    assert caplog.messages == ["free devices not noted"]
    assert "secret" not in str(caplog.records[0].__dict__)


LINES: dict[str, tuple[list[int | None], int | None, str, str]] = {
    "nothing yet": ([], 4, "", "Not known how many were free in the last hour"),
    "one minute, at the right edge": ([4], 4, "M59 1h1", "4 free now"),
    "none is at the bottom": ([0], 4, "M59 19h1", "0 free now"),
    "steps": ([4, 4, 2, 0], 4, "M56 1h2v9h1v9h1", "0 to 4 free in the last 4 minutes"),
    "not known is a gap": ([4, None, None, 4], 4, "M56 1h1M59 1h1", "4 free in the last 4 minutes, at times not known"),
    "never known": ([None, None], None, "", "Not known how many were free in the last hour"),
    "known at last": ([None, 2], 2, "M59 1h1", "2 free in the last 2 minutes, at times not known"),
    "a class without devices": ([0, 0], 0, "M58 19h2", "0 free in the last 2 minutes"),
    "more than there are now": ([8, 4], 4, "M58 1h1v9h1", "4 to 8 free in the last 2 minutes"),
    "an hour": ([1] * MINUTES, 1, "M0 1h60", "1 free in the last hour"),
}


@pytest.mark.parametrize("case", LINES)
def test_a_line(case: str) -> None:
    samples, total, path, said = LINES[case]
    assert (line(samples, total), in_words(samples)) == (path, said)


def test_no_line_leaves_its_drawing() -> None:
    samples = [number * 7 % 101 for number in range(MINUTES)]
    heights = [int(start) for start in re.findall(r"M\d+ (\d+)", line(samples, 100))]
    for step in re.findall(r"v(-?\d+)", line(samples, 100)):
        heights.append(heights[-1] + int(step))
    assert 0 <= min(heights) <= max(heights) <= HEIGHT


def test_the_line_is_on_the_card_and_never_at_zero_where_nothing_is_known() -> None:
    page = Reader(device_class("gpu"), resource_slice(4))
    for _ in range(2):
        page.history.note(asyncio.run(page.table.get()).classes)
    page.tell(resource_claim("gpu-0", consumers=["p1"]))
    page.history.note(asyncio.run(page.table.get()).classes)
    assert 'role=img aria-label="3 to 4 free in the last 3 minutes"><path d="M57 1h2v' in page.card()
    page.tell(resource_slice(4, slices=2))
    page.history.note(asyncio.run(page.table.get()).classes)
    assert 'aria-label="3 to 4 free in the last 4 minutes, at times not known"><path d="M56 1h2v4h1"/>' in page.card()
