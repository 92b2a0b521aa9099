"""The loop belongs to reviews too."""

import asyncio
import itertools
import time

import pytest

from app.cluster.pace import PAUSE_SECONDS, WORK_SECONDS, Pace


@pytest.mark.parametrize("workers", [1, 7])
def test_between_two_pieces_of_work_others_get_several_turns_of_the_loop(workers: int) -> None:
    """However many work: they take one piece in all, not one each."""
    seen: list[str] = []

    async def work(pace: Pace) -> None:
        for _ in range(70 // workers):
            await pace.turn()
            seen.append("work")
            began = time.perf_counter()
            while time.perf_counter() < began + WORK_SECONDS / 2:
                pass

    async def others() -> None:
        while True:
            seen.append("other")
            await asyncio.sleep(PAUSE_SECONDS / 10)

    async def run() -> None:
        pace = Pace()
        task = asyncio.create_task(others())
        await asyncio.gather(*(work(pace) for _ in range(workers)))
        task.cancel()

    asyncio.run(run())
    in_one_piece = [len(list(group)) for each, group in itertools.groupby(seen) if each == "work"]
    assert max(in_one_piece) <= 10  # each takes half of what is allowed; a busy machine wakes the others late
    assert seen.count("other") >= 34
