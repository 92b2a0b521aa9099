"""The loop belongs to reviews too."""

import asyncio
import itertools

import pytest

from app.cluster import pace as paced
from app.cluster.pace import WORK_SECONDS, Pace

TURNS = 10
"""Of the loop, in a pause."""


class Clock:
    """Time passes by work and in pauses, and not because a machine is busy."""

    def __init__(self) -> None:
        self.now = 1.0

    async def sleep(self, seconds: float) -> None:
        """Let the loop turn, and have as much time passed."""
        ends = self.now + seconds
        for _ in range(TURNS):
            await asyncio.sleep(0)
        self.now = max(self.now, ends)


@pytest.mark.parametrize("workers", [1, 7])
def test_between_two_pieces_of_work_others_get_several_turns_of_the_loop(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many work: they take one piece in all, not one each."""
    seen: list[str] = []
    clock = Clock()
    monkeypatch.setattr(paced, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(paced, "asyncio", clock)

    async def work(pace: Pace) -> None:
        for _ in range(70 // workers):
            await pace.turn()
            seen.append("work")
            clock.now += WORK_SECONDS * 0.51

    async def others() -> None:
        while True:
            seen.append("other")
            await asyncio.sleep(0)

    async def run() -> None:
        pace = Pace()
        task = asyncio.create_task(others())
        await asyncio.gather(*(work(pace) for _ in range(workers)))
        task.cancel()

    asyncio.run(run())
    in_one_piece = [len(list(group)) for each, group in itertools.groupby(seen) if each == "work"]
    assert max(in_one_piece) <= 2  # each takes a little over half of what is allowed
    assert seen.count("other") >= 34
