"""Sentences: whole ones by example, their length and alphabet as laws."""

import pytest
from msgspec.structs import replace

from app.dra.explain import (
    Audience,
    evidence,
    options,
    refusal,
    sentence,
)
from app.dra.reasons import Reason
from app.dra.verdict import NeedVerdict, Outcome, Unreachable, Verdict
from app.wording import wording
from tests.dra.verdicts import (
    ADVICE,
    ALL_TAKEN,
    ANYONE,
    CLAIM_NEED,
    CORDONED,
    EMPTY_WINNER,
    FEWER_NEED,
    FULL_NEED,
    HEAD,
    NEVER_NEED,
    NOW,
    OLD_CLASS,
    ROOM_NEED,
    TAKEN_AT,
    UNKNOWN_NEED,
    advising,
    full,
    verdict,
)

REFUSALS = {
    "the contract's example": (
        full(),
        Audience(page_url="https://vacancy.example.com/"),
        f"{HEAD}: {ALL_TAKEN}, counted 37s ago. {ADVICE} Capacity: https://vacancy.example.com/",
    ),
    "no page, no link": (full(), ANYONE, f"{HEAD}: {ALL_TAKEN}, counted 37s ago. {ADVICE}"),
    "one device in one pool": (
        full(total=1, pools=1),
        ANYONE,
        f"{HEAD}: the only device of class gpu.example.com is taken in 1 pool, counted 37s ago. {ADVICE}",
    ),
    "numbers that are not known are not named": (
        full(total=None, pools=None),
        ANYONE,
        f"{HEAD}: every device of class gpu.example.com is taken, counted 37s ago. {ADVICE}",
    ),
    "a controller reads whole minutes": (
        full(),
        Audience(controlled=True),
        f"{HEAD}: {ALL_TAKEN}, as of 14:23 UTC. {ADVICE}",
    ),
    "the live view has no age": (verdict(FULL_NEED, live=True), ANYONE, f"{HEAD}: {ALL_TAKEN}, seen live. {ADVICE}"),
    "the live view has none for a controller either": (
        verdict(FULL_NEED, live=True),
        Audience(controlled=True),
        f"{HEAD}: {ALL_TAKEN}, seen live. {ADVICE}",
    ),
    "the words some requesters wait for": (
        full(),
        Audience(quota_words=True),
        f"{HEAD}: exceeded quota, {ALL_TAKEN}, counted 37s ago. {ADVICE}",
    ),
    "a free device nobody can get to": (
        full(unreachable=(CORDONED,)),
        ANYONE,
        (
            f"{HEAD}: all 8 devices of class gpu.example.com are taken or out of reach in 2 pools "
            f"(1 free on n2, which is cordoned), counted 37s ago. {ADVICE}"
        ),
    ),
    "several of them": (
        full(unreachable=(CORDONED, Unreachable("n3", "does not exist", 2), Unreachable("n4", "is cordoned", 3))),
        ANYONE,
        (
            f"{HEAD}: all 8 devices of class gpu.example.com are taken or out of reach in 2 pools "
            f"(1 free on n2, which is cordoned, and 5 on 2 more nodes), counted 37s ago. {ADVICE}"
        ),
    ),
    "its node may be hidden": (
        full(unreachable=(CORDONED,)),
        Audience(hide_names=True),
        (
            f"{HEAD}: all 8 devices of class gpu.example.com are taken or out of reach in 2 pools "
            f"(1 free on a node, which is cordoned), counted 37s ago. {ADVICE}"
        ),
    ),
    "the pool status lists more": (
        full(listed=2),
        ANYONE,
        f"{HEAD}: {ALL_TAKEN} (the pool status lists 2 as available that do not count), counted 37s ago. {ADVICE}",
    ),
    "the pool status lists one more": (
        full(listed=1),
        ANYONE,
        f"{HEAD}: {ALL_TAKEN} (the pool status lists 1 as available that does not count), counted 37s ago. {ADVICE}",
    ),
    "full, and too large for any node": (
        full(count=16, never_fits=True, largest_block=4),
        ANYONE,
        (
            f"[NoGPUCapacity] no free device for example.com/gpu (16 asked): {ALL_TAKEN}, counted 37s ago, "
            "and no node has 16 of them in total. Ask for at most 4 in one pod."
        ),
    ),
    "a claim's selectors may leave devices out": (
        verdict(CLAIM_NEED),
        ANYONE,
        (
            "[NoGPUCapacity] no free device for gpus/one (1 asked): all 8 matching devices of class gpu.example.com "
            f"are taken in 2 pools, counted 37s ago. {ADVICE}"
        ),
    ),
    "every alternative of a claim": (
        verdict(replace(CLAIM_NEED, detail="gpu-a100, gpu-l4")),
        ANYONE,
        (
            "[NoGPUCapacity] no free device for gpus/one (1 asked): all 8 matching devices of class gpu.example.com "
            f"are taken in 2 pools, and so are those of class gpu-a100, gpu-l4, counted 37s ago. {ADVICE}"
        ),
    ),
    "two full requests": (
        Verdict(Outcome.FULL, Reason.NoGPUCapacity, (ROOM_NEED, FULL_NEED, CLAIM_NEED), "both", TAKEN_AT),
        ANYONE,
        f"{HEAD} and 1 more request: {ALL_TAKEN}, counted 37s ago. {ADVICE}",
    ),
    "the platform team's advice": (
        full(),
        Audience(advice=advising("ask #gpu-help or use the CPU queue"), page_url="https://x/"),
        f"{HEAD}: {ALL_TAKEN}, counted 37s ago. Ask #gpu-help or use the CPU queue. Capacity: https://x/",
    ),
    "the platform team's advice, filled in": (
        full(count=2),
        Audience(
            namespace="team-a",
            advice=advising("Get {count} of the {total} {class} ({name}) in #{namespace} at {page}#{class}: {{now}}"),
            page_url="https://x/",
        ),
        (
            f"{HEAD.replace('1 asked', '2 asked')}: {ALL_TAKEN}, counted 37s ago. Get 2 of the 8 gpu.example.com "
            "(example.com/gpu) in #team-a at https://x/#gpu.example.com: {now}."
        ),
    ),
    "what is not known is not said to be none": (
        full(total=None, pools=None),
        Audience(advice=advising("Of {total}.")),
        f"{HEAD}: every device of class gpu.example.com is taken, counted 37s ago. Of unknown.",
    ),
    "the class the answer rests on": (
        verdict(EMPTY_WINNER),
        Audience(advice=advising("All {total} of {class}.")),
        (
            f"{HEAD}: class gpu.example.com has the name but no device, and all 4 devices of class old.example.com "
            "are taken in 1 pool, counted 37s ago. All 4 of old.example.com."
        ),
    ),
    "a page beside the one that is linked": (
        full(),
        Audience(advice=advising("Ask at https://x/tickets"), page_url="https://x/"),
        f"{HEAD}: {ALL_TAKEN}, counted 37s ago. Ask at https://x/tickets. Capacity: https://x/",
    ),
    "a link that the advice has already": (
        full(),
        Audience(advice=advising("See https://x/."), page_url="https://x/"),
        f"{HEAD}: {ALL_TAKEN}, counted 37s ago. See https://x/.",
    ),
    "where queueing by label is not allowed": (
        full(),
        Audience(queue_allowed=False),
        f"{HEAD}: {ALL_TAKEN}, counted 37s ago. Try again later or run on CPU.",
    ),
    "never fits": (
        verdict(NEVER_NEED),
        Audience(quota_words=True, page_url="https://x/", advice=advising("Wait.")),
        (
            "[NeverFits] no node has enough devices for example.com/gpu (16 asked): at most 4 devices of class "
            "gpu.example.com are on one node. Ask for at most 4 in one pod. Capacity: https://x/"
        ),
    ),
    "never fits a single device": (
        verdict(replace(NEVER_NEED, count=2, largest_block=1)),
        ANYONE,
        (
            "[NeverFits] no node has enough devices for example.com/gpu (2 asked): at most 1 device of class "
            "gpu.example.com is on one node. Ask for at most 1 in one pod."
        ),
    ),
    "the winner of the name matches no device": (
        verdict(EMPTY_WINNER),
        ANYONE,
        (
            f"{HEAD}: class gpu.example.com has the name but no device, and all 4 devices of class old.example.com "
            f"are taken in 1 pool, counted 37s ago. {ADVICE}"
        ),
    ),
    "the same, and too large for any node": (
        verdict(replace(EMPTY_WINNER, count=16, never_fits=True)),
        ANYONE,
        (
            "[NoGPUCapacity] no free device for example.com/gpu (16 asked): class gpu.example.com has the name but no "
            "device, and all 4 devices of class old.example.com are taken in 1 pool, counted 37s ago, and no node has "
            "16 of them in total. Ask for at most 4 in one pod."
        ),
    ),
    "never fits, and the larger node is another claimant's": (
        verdict(replace(NEVER_NEED, largest_block=1, claimant=replace(NEVER_NEED, class_name=OLD_CLASS))),
        ANYONE,
        (
            "[NeverFits] no node has enough devices for example.com/gpu (16 asked): at most 4 devices of class "
            "old.example.com, which may still claim the name instead of gpu.example.com, are on one node. "
            "Ask for at most 4 in one pod."
        ),
    ),
    "a verdict without its needs": (
        Verdict(Outcome.FULL, Reason.NoGPUCapacity),
        ANYONE,
        f"[NoGPUCapacity] no free device. {ADVICE}",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal(case: str) -> None:
    judged, audience, text = REFUSALS[case]
    assert refusal(judged, audience, NOW) == text
    assert sentence(judged, audience, NOW) == text


SENTENCES = {
    "room": (
        verdict(ROOM_NEED),
        ANYONE,
        (
            "[HasRoom] room for example.com/gpu (1 asked): 3 of 8 devices of class gpu.example.com in 2 pools are "
            "free, counted 37s ago."
        ),
    ),
    "one is free": (
        verdict(replace(ROOM_NEED, free=1, pools=1), live=True),
        ANYONE,
        (
            "[HasRoom] room for example.com/gpu (1 asked): 1 of 8 devices of class gpu.example.com in 1 pool is free, "
            "seen live."
        ),
    ),
    "free, but not known how many": (
        verdict(replace(ROOM_NEED, free=None)),
        ANYONE,
        "[HasRoom] room for example.com/gpu (1 asked): a device of class gpu.example.com is free, counted 37s ago.",
    ),
    "room of a class that is not the winner": (
        verdict(replace(ROOM_NEED, free=0, claimant=replace(ROOM_NEED, class_name=OLD_CLASS, free=2, total=4))),
        ANYONE,
        (
            "[HasRoom] room for example.com/gpu (1 asked): class old.example.com, which may still claim the name "
            "instead of gpu.example.com, has 2 of 4 devices free, counted 37s ago."
        ),
    ),
    "the same, and it is not known how much": (
        verdict(replace(ROOM_NEED, free=0, claimant=replace(ROOM_NEED, class_name=OLD_CLASS, free=None))),
        ANYONE,
        (
            "[HasRoom] room for example.com/gpu (1 asked): class old.example.com, which may still claim the name "
            "instead of gpu.example.com, has a device free, counted 37s ago."
        ),
    ),
    "a class that is not the winner keeps the refusal back": (
        verdict(
            replace(
                UNKNOWN_NEED,
                class_name="gpu.example.com",
                detail="n5",
                claimant=replace(UNKNOWN_NEED, class_name=OLD_CLASS),
            )
        ),
        ANYONE,
        (
            "[PoolIncomplete] not checked for example.com/gpu (1 asked): a pool is not completely published (n5), "
            "for class old.example.com, which may still claim the name instead of gpu.example.com."
        ),
    ),
    "fewer than asked": (
        verdict(FEWER_NEED),
        ANYONE,
        (
            "[FewerThanAsked] fewer free devices than needed for example.com/gpu (4 asked): 3 of 8 devices of class "
            "gpu.example.com in 2 pools are free (at most 2 on one node), counted 37s ago."
        ),
    ),
    "nothing asked": (
        Verdict(Outcome.ROOM, Reason.NoDeviceRequested),
        ANYONE,
        "[NoDeviceRequested] the pod asks for no device.",
    ),
    "not judged": (
        Verdict(Outcome.UNKNOWN, Reason.OptedOut),
        ANYONE,
        "[OptedOut] not checked: the pod chose to wait in the queue by label gpu-vacancy.dev/queue=true.",
    ),
    "a request not judged": (
        verdict(UNKNOWN_NEED),
        ANYONE,
        (
            "[PoolIncomplete] not checked for example.com/gpu (1 asked): a pool is not completely published "
            "(gpu.example.com/n5)."
        ),
    ),
    "the pool's name may be hidden": (
        verdict(UNKNOWN_NEED),
        Audience(hide_names=True),
        "[PoolIncomplete] not checked for example.com/gpu (1 asked): a pool is not completely published.",
    ),
    "only devices out of reach": (
        verdict(replace(UNKNOWN_NEED, reason=Reason.OutOfReach, detail="", unreachable=(CORDONED,))),
        ANYONE,
        (
            "[OutOfReach] not checked for example.com/gpu (1 asked): the only devices are on nodes out of reach "
            "(1 free on n2, which is cordoned)."
        ),
    ),
    "a claim that could not be counted": (
        verdict(NeedVerdict("gpus", "spec.resourceClaims[0]", 0, Outcome.UNKNOWN, Reason.ClaimMissing, detail="mine")),
        ANYONE,
        "[ClaimMissing] not checked for gpus: the resource claim does not exist (mine).",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_sentence(case: str) -> None:
    judged, audience, text = SENTENCES[case]
    assert sentence(judged, audience, NOW) == text


def test_ways_out_are_offered_only_where_something_is_missing() -> None:
    three = ("try again later", "wait in the queue with label gpu-vacancy.dev/queue=true", "run on CPU")
    assert options(full(), ANYONE) == three
    assert options(full(), Audience(advice=advising("Ask us."), page_url="https://x/")) == (
        "Ask us.",
        "Capacity: https://x/",
    )
    assert options(full(), Audience(advice=advising("See {page}"), page_url="https://x/")) == ("See https://x/",)
    assert options(verdict(replace(NEVER_NEED, largest_block=None)), ANYONE) == ("ask for fewer devices in one pod",)
    assert options(verdict(ROOM_NEED), ANYONE) == ()
    assert options(verdict(UNKNOWN_NEED), Audience(page_url="https://x/")) == ()


def test_each_namespace_reads_its_own_advice() -> None:
    """Which comes first is the setting's business."""
    texts = (("team-a", wording("A.")), ("team-*", wording("Any.")))
    said = {name: options(full(), Audience(namespace=name, advice=texts))[0] for name in ("team-a", "team-b", "other")}
    assert said == {"team-a": "A.", "team-b": "Any.", "other": "try again later"}


def test_evidence_has_no_age() -> None:
    assert evidence(FULL_NEED, ANYONE) == ALL_TAKEN
    assert (
        evidence(replace(NEVER_NEED, largest_block=None), ANYONE)
        == "fewer devices of class gpu.example.com are on any node"
    )


def test_a_controller_reads_the_same_text_all_minute_long() -> None:
    texts = {refusal(full(), Audience(controlled=True), TAKEN_AT + seconds) for seconds in range(90)}
    assert len(texts) == 1


def test_long_advice_is_cut_and_the_facts_and_the_link_are_not() -> None:
    text = refusal(full(), Audience(advice=advising("word " * 500), page_url="https://x/"), NOW)
    assert 590 < len(text) < 600
    assert text.startswith(f"{HEAD}: {ALL_TAKEN}, counted 37s ago. Word word")
    assert text.endswith(" word... Capacity: https://x/")
    assert len(refusal(full(), Audience(advice=advising("w" * 600), page_url="https://x/"), NOW)) == 599
    assert refusal(full(), Audience(page_url="https://" + "x" * 600), NOW).endswith(ADVICE)


def test_a_long_name_loses_its_middle() -> None:
    name = "deviceclass.resource.kubernetes.io/" + "a" * 200 + ".gpu.example.com"
    text = refusal(full(name=name), ANYONE, NOW)
    assert text.startswith(
        "[NoGPUCapacity] no free device for deviceclass.resource.kuber...aaaaaaaaaa.gpu.example.com (1 asked): "
    )
