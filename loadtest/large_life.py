"""What happens in the large cluster while it is measured."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from loadtest.large import Standin
from loadtest.large_reviews import Tide

CLAIM_EVENTS_A_SECOND = 200


@contextmanager
def life(
    standin: Standin,
    every: Mapping[str, int],
    *,
    rate: int = CLAIM_EVENTS_A_SECOND,
    each_second: Callable[[int], None] = lambda _second: None,
) -> Iterator[Tide]:
    """Claim events, and every so many seconds a turn of the "tide", a change of a "slice" or of a "class".

    `each_second` is told how many have passed. What goes wrong meanwhile is raised at the end.
    """
    tide, over = Tide(), threading.Event()
    high = standin.tell(rate=rate)
    tide.turned(high=high)

    def happen() -> None:
        began, second = time.monotonic(), 0
        while not over.wait(max(0.0, began + second + 1 - time.monotonic())):
            second += 1
            for what in [what for what, seconds in every.items() if second % seconds == 0]:
                turned = standin.tell(**{what: 1})
                if what == "tide":
                    tide.turned(high=turned)
            each_second(second)

    with ThreadPoolExecutor(1) as pool:
        happening = pool.submit(happen)
        try:
            yield tide
        finally:
            over.set()
            standin.tell(rate=0)
        happening.result()
