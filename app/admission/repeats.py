"""Which refusals are news: a ReplicaSet makes eleven attempts in its first five seconds, and one line says enough."""

from typing import Final

WINDOW_SECONDS: Final = 60.0
"""In which an owner is told of once."""

OWNERS_AT_MOST: Final = 10_000
"""Of one window. With more, some are told of twice."""

UID_AT_MOST: Final = 36
"""Characters: whoever creates a pod can write any text into its owner."""


class Repeats:
    """The owners told of in the present window, by uid."""

    __slots__ = ("_told", "_window")

    def __init__(self) -> None:
        self._window = 0.0
        self._told: set[str] = set()

    def is_repeat(self, uid: str, now: float) -> bool:
        """Whether this owner was told of already; if not, it is told of now. `now`: epoch seconds."""
        window = now // WINDOW_SECONDS
        if window != self._window or len(self._told) >= OWNERS_AT_MOST:
            self._window = window
            self._told.clear()
        uid = uid[:UID_AT_MOST]
        if uid in self._told:
            return True
        self._told.add(uid)
        return False
