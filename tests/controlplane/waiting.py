"""Waiting for what another process does in its own time, with a deadline that only a fault reaches."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_SECONDS = 0.02
_DEADLINE_SECONDS = 120.0  # what is waited for takes up to 3 s; the rest is for machines that are busy building


def until(what: str, answer: Callable[[], T | None], seconds: float = _DEADLINE_SECONDS) -> T:
    """The first answer that is true, asking again and again. Raises `TimeoutError` that says `what` did not happen."""
    deadline = time.monotonic() + seconds
    while not (found := answer()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(_POLL_SECONDS)
    return found
