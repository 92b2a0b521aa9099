"""The one mutable room: the world as it was last published, for every door to judge by.

One writer (the slow river) publishes; readers take what is there and keep it for the length of one answer, so that an
answer never mixes two states.
"""

from app.dra.judgement import World


class LatestSnapshot:
    """The newest world: a frozen snapshot of pool statuses, and the live view beside it."""

    __slots__ = ("_world",)

    def __init__(self, world: World) -> None:
        self._world = world

    def publish(self, world: World) -> None:
        """Replace what is known, whole."""
        self._world = world

    def get(self) -> World:
        """What is known now."""
        return self._world
