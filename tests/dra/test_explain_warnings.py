"""Warnings: what an admitted requester is told."""

import pytest
from msgspec.structs import replace

from app.dra.explain import WARNING_LIMIT, Audience, warnings, workload_warnings
from app.dra.reasons import Reason
from app.dra.verdict import Outcome, Verdict
from tests.dra.verdicts import (
    ALL_TAKEN,
    ANYONE,
    FEWER_NEED,
    HEAD,
    NEVER_NEED,
    NOW,
    ROOM_NEED,
    UNKNOWN_NEED,
    advising,
    full,
    verdict,
)

WAITS = "The pod waits until a device is free."

WARNINGS = {
    "the refusal in parts": (
        full(),
        ANYONE,
        (HEAD, f"{ALL_TAKEN}, counted 37s ago", WAITS),
    ),
    "with the link": (
        full(),
        Audience(page_url="https://vacancy.example.com/capacity"),
        (HEAD, f"{ALL_TAKEN}, counted 37s ago", f"{WAITS} Capacity: https://vacancy.example.com/capacity"),
    ),
    "the platform team's advice": (
        full(),
        Audience(advice=advising("ask #gpu-help")),
        (HEAD, f"{ALL_TAKEN}, counted 37s ago", "Ask #gpu-help."),
    ),
    "the link where both do not fit": (
        full(),
        Audience(advice=advising("ask #gpu-help " * 7), page_url="https://vacancy.example.com/capacity"),
        (HEAD, f"{ALL_TAKEN}, counted 37s ago", "Capacity: https://vacancy.example.com/capacity"),
    ),
    "no words about quotas to someone who was admitted": (
        full(),
        Audience(quota_words=True, controlled=True),
        (HEAD, f"{ALL_TAKEN}, as of 14:23 UTC", WAITS),
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


TWO_EACH = replace(ROOM_NEED, count=2, free=5, largest_free_block=4)
OUTLOOKS = {
    "none of one": (
        full(),
        1,
        (HEAD, f"{ALL_TAKEN}, counted 37s ago", "0 of 1 pod fits now; it starts by itself when devices are free"),
    ),
    "none of many": (
        full(),
        8,
        (HEAD, f"{ALL_TAKEN}, counted 37s ago", "0 of 8 pods fit now; they start by themselves when devices are free"),
    ),
    "some": (
        verdict(ROOM_NEED),
        8,
        (
            "[FewerThanAsked] example.com/gpu: 3 free, 8 x 1 asked",
            "3 of 8 pods fit now; the others start by themselves when devices are free",
        ),
    ),
    "some that want more than one on a node": (
        verdict(TWO_EACH),
        3,
        (
            "[FewerThanAsked] example.com/gpu: 5 free, 3 x 2 asked",
            "at most 2 of 3 pods fit now; the others start by themselves when devices are free",
        ),
    ),
    "none that wants so much on a node": (
        verdict(replace(FEWER_NEED, largest_free_block=3)),
        2,
        (
            "[FewerThanAsked] example.com/gpu: 4 asked, 3 free, the pod may wait",
            "0 of 2 pods fit now; they start by themselves when devices are free",
        ),
    ),
    "the scarcest decides": (
        verdict(replace(ROOM_NEED, name="example.com/nic", free=9), ROOM_NEED),
        8,
        (
            "[FewerThanAsked] example.com/gpu: 3 free, 8 x 1 asked",
            "3 of 8 pods fit now; the others start by themselves when devices are free",
        ),
    ),
    "all": (verdict(ROOM_NEED), 3, ()),
    "how many are free is not known": (verdict(replace(ROOM_NEED, free=None)), 100, ()),
    "never": (
        verdict(NEVER_NEED),
        2,
        ("[NeverFits] example.com/gpu: 16 asked, no node has more than 4, the pod cannot start",),
    ),
}


@pytest.mark.parametrize("sentence", OUTLOOKS)
def test_a_workload_is_told_how_many_of_its_pods_fit_and_what_becomes_of_the_rest(sentence: str) -> None:
    asked, pods, want = OUTLOOKS[sentence]
    assert workload_warnings(asked, pods, ANYONE, NOW) == want


def test_waiting_is_not_promised_to_what_never_fits() -> None:
    never = replace(NEVER_NEED, outcome=Outcome.FULL, reason=Reason.NoGPUCapacity, free=0)
    assert not any("by themselves" in line for line in workload_warnings(verdict(never), 2, ANYONE, NOW))


def test_the_link_comes_along_where_it_fits() -> None:
    near, far = (Audience(page_url=f"https://{name}/") for name in ("x", "x" * 60))
    assert workload_warnings(full(), 2, near, NOW)[-1].endswith("when devices are free. Capacity: https://x/")
    assert workload_warnings(full(), 2, far, NOW)[-1].endswith("when devices are free")
    assert len(workload_warnings(full(), 999_999, near, NOW)[-1]) <= WARNING_LIMIT
