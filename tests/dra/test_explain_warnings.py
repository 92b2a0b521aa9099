"""Warnings: what an admitted requester is told."""

import pytest
from msgspec.structs import replace

from app.dra.explain import (
    Audience,
    warnings,
)
from app.dra.reasons import Reason
from app.dra.verdict import Outcome, Verdict
from tests.dra.verdicts import (
    ADVICE,
    ALL_TAKEN,
    ANYONE,
    FEWER_NEED,
    HEAD,
    NEVER_NEED,
    NOW,
    ROOM_NEED,
    UNKNOWN_NEED,
    full,
    verdict,
)

WARNINGS = {
    "the refusal in parts": (
        full(),
        ANYONE,
        (HEAD, f"{ALL_TAKEN}, counted 37s ago", ADVICE),
    ),
    "the link where both do not fit": (
        full(),
        Audience(page_url="https://vacancy.example.com/capacity"),
        (HEAD, f"{ALL_TAKEN}, counted 37s ago", "Capacity: https://vacancy.example.com/capacity"),
    ),
    "no words about quotas to someone who was admitted": (
        full(),
        Audience(quota_words=True, controlled=True),
        (HEAD, f"{ALL_TAKEN}, as of 14:23 UTC", ADVICE),
    ),
    "both numbers": (
        verdict(replace(FEWER_NEED, largest_free_block=3)),
        ANYONE,
        ("[FewerThanAsked] example.com/gpu: 4 asked, 3 free, the pod may wait",),
    ),
    "free on several nodes": (
        verdict(FEWER_NEED),
        ANYONE,
        ("[FewerThanAsked] example.com/gpu: 4 asked, 3 free (at most 2 on one node), the pod may wait",),
    ),
    "free in a class that is not the winner": (
        verdict(replace(FEWER_NEED, free=0, largest_free_block=0, claimant=replace(FEWER_NEED, largest_free_block=3))),
        ANYONE,
        ("[FewerThanAsked] example.com/gpu: 4 asked, 3 free, the pod may wait",),
    ),
    "never fits": (
        verdict(NEVER_NEED),
        ANYONE,
        ("[NeverFits] example.com/gpu: 16 asked, no node has more than 4, the pod cannot start",),
    ),
    "autoscaled": (
        verdict(replace(UNKNOWN_NEED, reason=Reason.Autoscaled)),
        ANYONE,
        ("[Autoscaled] example.com/gpu: a new node may bring devices, the pod may wait for it",),
    ),
    "unknown": (
        verdict(UNKNOWN_NEED),
        ANYONE,
        ("GPU capacity not checked: PoolIncomplete, a pool is not completely published (gpu.example.com/n5)",),
    ),
    "nobody is told the same twice": (
        verdict(UNKNOWN_NEED, replace(UNKNOWN_NEED, name="other")),
        ANYONE,
        ("GPU capacity not checked: PoolIncomplete, a pool is not completely published (gpu.example.com/n5)",),
    ),
    "three are enough": (
        verdict(*(replace(FEWER_NEED, name=f"a/{i}", free=1, largest_free_block=1) for i in range(5))),
        ANYONE,
        tuple(f"[FewerThanAsked] a/{i}: 4 asked, 1 free, the pod may wait" for i in range(3)),
    ),
    "a fault": (
        Verdict(Outcome.UNKNOWN, Reason.InternalError),
        ANYONE,
        ("GPU capacity not checked: InternalError, an error in Vacancy itself",),
    ),
    "room": (verdict(ROOM_NEED), ANYONE, ()),
    "nothing asked": (Verdict(Outcome.ROOM, Reason.NoDeviceRequested), ANYONE, ()),
    "the tenant's own choice": (Verdict(Outcome.UNKNOWN, Reason.OptedOut), ANYONE, ()),
    "a device plugin may serve it": (verdict(replace(UNKNOWN_NEED, reason=Reason.DevicePlugin)), ANYONE, ()),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_warnings(case: str) -> None:
    judged, audience, lines = WARNINGS[case]
    assert warnings(judged, audience, NOW) == lines
