"""How many devices of each class were free in the last hour, a number a minute, in memory.

Noted also while nobody looks: a line that begins when somebody comes tells nothing. Bounded by the classes there are:
60 numbers a class, 1.3 kB (measured).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NoReturn

from app import mistakes
from app.dra.capacity import ClassCapacity
from app.web.table import CapacityTable

MINUTES = 60
"""As many numbers are kept for a class."""

SAMPLE_SECONDS = 60.0

HEIGHT = 20
"""Of the drawing, in its own units; it is MINUTES wide."""

_log = logging.getLogger(__name__)

Samples = Sequence[int | None]
"""The free devices minute by minute, the newest last; None: not known."""


class History:
    """The free devices of every class in the last hour."""

    def __init__(self) -> None:
        self._free: dict[str, deque[int | None]] = {}
        self.noted = 0
        """How often a number was noted: what is drawn is another drawing from then on."""

    def of(self, class_name: str) -> Samples:
        """Those of one class; none: it is new."""
        return self._free.get(class_name, ())

    def note(self, classes: Iterable[ClassCapacity]) -> None:
        """A minute has passed. A class that is gone is forgotten."""
        free = {each.name: each.counts.available for each in classes}
        self._free = {name: self._free.get(name, deque(maxlen=MINUTES)) for name in free}
        for name, samples in self._free.items():
            samples.append(free[name])
        self.noted += 1

    async def follow(self, table: CapacityTable, sample_seconds: float = SAMPLE_SECONDS) -> NoReturn:
        """Note a number a minute until cancelled; by the process's own clock, as the judgement's may stand still."""
        while True:
            try:
                self.note((await table.get()).classes)
            except Exception as error:  # noqa: BLE001 - for want of a line on a page no review must go unanswered
                _log.error("free devices not noted", extra={"facts": {"problem": mistakes.place(error)}})
            await asyncio.sleep(sample_seconds)


def line(samples: Samples, total: int | None) -> str:
    """The samples as a path of SVG, in steps: the newest at the right edge, zero at the bottom, a gap where not known.

    Only what changes is written, as there are hundreds of such lines on a page.
    """
    top = max(total or 0, *(free or 0 for free in samples), 1)
    path: list[str] = []
    run, last = 0, None
    for minute, free in enumerate(samples, MINUTES - len(samples)):
        level = None if free is None else 1 + round((HEIGHT - 2) * (1 - free / top))
        if level == last and level is not None:
            run += 1
            continue
        if run:
            path.append(f"h{run}")
        run = 0
        if level is not None:
            path.append(f"M{minute} {level}" if last is None else f"v{level - last}")
            run = 1
        last = level
    return "".join([*path, f"h{run}" if run else ""])


def in_words(samples: Samples) -> str:
    """The same for who cannot see it."""
    known = [free for free in samples if free is not None]
    if not known:
        return "Not known how many were free in the last hour"
    least, most = min(known), max(known)
    free = f"{least}" if least == most else f"{least} to {most}"
    gaps = "" if len(known) == len(samples) else ", at times not known"
    minutes = len(samples)
    since = "now" if minutes == 1 else "in the last hour" if minutes == MINUTES else f"in the last {minutes} minutes"
    return f"{free} free {since}{gaps}"
