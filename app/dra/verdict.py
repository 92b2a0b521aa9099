"""The domain's answer for one pod: has room, full, never fits, unknown; with the evidence behind it.

Values only. `judgement.decide` makes them, `explain` puts them into sentences.
"""

import enum

from app.dra.objects import Value
from app.dra.reasons import Reason


class Outcome(enum.StrEnum):
    """What a pod can expect. The values are the words of the JSON answer."""

    ROOM = "room"
    FULL = "full"
    NEVER = "never"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        """Refuse to be used as a truth value: four outcomes do not fit two."""
        message = "an outcome is not a truth value; compare it"
        raise TypeError(message)


class Unreachable(Value, frozen=True):
    """Free devices that do not count, because the pod cannot get to their node."""

    node: str
    why: str
    """How a sentence goes on after "which": "is cordoned", "does not exist", …"""
    devices: int


class NeedVerdict(Value, frozen=True):
    """One need, judged. Counts are None where they are not known."""

    name: str
    field: str
    count: int
    outcome: Outcome
    reason: Reason
    class_name: str = ""
    """The winner of a name, or of several alternatives the one the sentence speaks of; what the numbers are of."""
    detail: str = ""
    """What the reason is about: a pool, a node, a claim, the classes of other alternatives."""
    total: int | None = None
    """Devices that match class and request, over all pools."""
    free: int | None = None
    pools: int | None = None
    largest_free_block: int | None = None
    """Most free devices on one node (devices of pools without a node count for every node)."""
    largest_block: int | None = None
    """Most matching devices on one node, free or not."""
    drivers: tuple[str, ...] = ()
    memory: tuple[str, str] | None = None
    """Smallest and largest `memory` capacity among the matching devices, as the slices write them."""
    unreachable: tuple[Unreachable, ...] = ()
    listed: int = 0
    """Devices the pool status calls available that the judgement does not count: another kind, or no longer fitting."""
    never_fits: bool = False
    """More devices asked for than any node has in total (also set when `full` wins)."""
    claimant: "NeedVerdict | None" = None
    """The need as judged for another class that may claim the name, where the answer rests on that and not on the
    winner: the other has room, is not known, or is full while the winner matches no device."""


class Verdict(Value, frozen=True):
    """The answer for one pod."""

    outcome: Outcome
    reason: Reason
    needs: tuple[NeedVerdict, ...] = ()
    source: str = ""
    """`pool-status`, `witness` or `both`: what the answer rests on; empty when nothing was judged."""
    snapshot_time: float | None = None
    """Time of the oldest pool status used, epoch seconds; None with the witness alone."""
