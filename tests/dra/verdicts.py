"""Verdicts to put into words."""

from msgspec.structs import replace

from app.dra.explain import (
    Audience,
)
from app.dra.reasons import Reason
from app.dra.verdict import NeedVerdict, Outcome, Unreachable, Verdict
from app.wording import Texts, wording

TAKEN_AT = 1_790_000_580.0  # 14:23:00 UTC
NOW = TAKEN_AT + 37.9
ADVICE = "Try again later, wait in the queue with label gpu-vacancy.dev/queue=true, or run on CPU."

FULL_NEED = NeedVerdict(
    name="example.com/gpu",
    field="spec.containers[0].resources.requests[example.com/gpu]",
    count=1,
    outcome=Outcome.FULL,
    reason=Reason.NoGPUCapacity,
    class_name="gpu.example.com",
    total=8,
    free=0,
    pools=2,
)
CLAIM_NEED = replace(FULL_NEED, name="gpus/one", field="spec.resourceClaims[0]")
NEVER_NEED = replace(
    FULL_NEED,
    outcome=Outcome.NEVER,
    reason=Reason.NeverFits,
    count=16,
    free=3,
    largest_block=4,
    largest_free_block=3,
    never_fits=True,
)
ROOM_NEED = replace(FULL_NEED, outcome=Outcome.ROOM, reason=Reason.HasRoom, free=3)
FEWER_NEED = replace(ROOM_NEED, reason=Reason.FewerThanAsked, count=4, largest_free_block=2)
UNKNOWN_NEED = NeedVerdict(
    "example.com/gpu", FULL_NEED.field, 1, Outcome.UNKNOWN, Reason.PoolIncomplete, detail="gpu.example.com/n5"
)
OLD_CLASS = "old.example.com"
EMPTY_WINNER = replace(
    FULL_NEED, total=0, pools=0, claimant=replace(FULL_NEED, class_name=OLD_CLASS, total=4, pools=1, largest_block=4)
)
CORDONED = Unreachable("n2", "is cordoned", 1)
ANYONE = Audience()


def advising(text: str) -> Texts:
    """The platform team's advice to everybody."""
    return (("*", wording(text)),)


def verdict(*needs: NeedVerdict, live: bool = False) -> Verdict:
    taken_at = None if live else TAKEN_AT
    return Verdict(needs[0].outcome, needs[0].reason, needs, "witness" if live else "both", taken_at)


def full(**changes: object) -> Verdict:
    return verdict(replace(FULL_NEED, **changes))  # type: ignore[arg-type]


HEAD = "[NoGPUCapacity] no free device for example.com/gpu (1 asked)"
ALL_TAKEN = "all 8 devices of class gpu.example.com are taken in 2 pools"
