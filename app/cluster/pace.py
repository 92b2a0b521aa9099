"""The share of the event loop that reading the cluster may take, so that no review waits for ten thousand slices.

One `Pace` serves all watches: each of them alone would be brief, and together they would not.
"""

import asyncio
from time import perf_counter

WORK_SECONDS = 0.002
"""In one piece. What is added to it is the one object that was begun last, well under a millisecond."""

PAUSE_SECONDS = 0.001
"""A review needs several turns of the loop, so to yield once is not enough (measured: no gain by `sleep(0)`)."""


class Pace:
    """Work, then a pause in which nobody works."""

    def __init__(self) -> None:
        self._works_until = self._pauses_until = 0.0

    async def turn(self) -> None:
        """Before every piece of work: returns at once while there is time for it, else after the pause.

        The pause begins when somebody wants to work again, not when the time for work is over: a process that the
        machine held up meanwhile owes it all the same.
        """
        while (now := perf_counter()) >= self._works_until:
            if self._pauses_until < self._works_until:
                self._pauses_until = now + PAUSE_SECONDS
            if now >= self._pauses_until:
                self._works_until = now + WORK_SECONDS
            else:
                await asyncio.sleep(self._pauses_until - now)
