"""Sentences: laws of their length and alphabet, whatever the objects are called and however many there are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.dra.advice import advice as advised
from app.dra.explain import (
    HEADLINE_LIMIT,
    WARNING_LIMIT,
    Audience,
    evidence,
    not_checked,
    options,
    refusal,
    sentence,
    warnings,
)
from app.dra.reasons import Reason
from app.dra.verdict import NeedVerdict, Outcome, Unreachable, Verdict
from app.wording import LENGTHS, PAGE, Wording, link, wording

ONE_LINE_OF_ASCII = re.compile(r"[ -~]+")
ascii_texts = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="{}"), max_size=300)
texts = st.text(max_size=300) | st.text(st.characters(codec="ascii"), min_size=200, max_size=300)
counts = st.integers(0, 10**40) | st.integers(0, 20)
perhaps = st.none() | counts
places = st.lists(st.builds(Unreachable, texts, texts, counts), max_size=4).map(tuple)
REASONS_OF = {
    Outcome.FULL: [Reason.NoGPUCapacity],
    Outcome.NEVER: [Reason.NeverFits],
    Outcome.ROOM: [Reason.HasRoom, Reason.FewerThanAsked],
    Outcome.UNKNOWN: [*set(Reason) - {Reason.NoGPUCapacity, Reason.NeverFits, Reason.HasRoom, Reason.FewerThanAsked}],
}


@st.composite
def needs(draw: st.DrawFn) -> NeedVerdict:
    need = draw(needs_of_one_class())
    if draw(st.booleans()):
        return need
    other = draw(needs_of_one_class())
    claimant = replace(other, outcome=need.outcome, reason=need.reason, detail=need.detail)
    return replace(need, detail="" if need.outcome is Outcome.FULL else need.detail, claimant=claimant)


@st.composite
def needs_of_one_class(draw: st.DrawFn) -> NeedVerdict:
    outcome = draw(st.sampled_from(Outcome))
    return NeedVerdict(
        name=draw(texts),
        field=draw(st.sampled_from(["spec.containers[0]", "spec.resourceClaims[0]"])),
        count=draw(counts),
        outcome=outcome,
        reason=draw(st.sampled_from(REASONS_OF[outcome])),
        class_name=draw(texts),
        detail=draw(texts),
        total=draw(perhaps),
        free=draw(perhaps),
        pools=draw(perhaps),
        largest_free_block=draw(perhaps),
        largest_block=draw(perhaps),
        unreachable=draw(places),
        listed=draw(counts),
        never_fits=draw(st.booleans()),
    )


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    judged = draw(st.lists(needs(), max_size=4))
    outcome = judged[0].outcome if judged else draw(st.sampled_from(Outcome))
    reason = judged[0].reason if judged else draw(st.sampled_from(REASONS_OF[outcome]))
    return Verdict(outcome, reason, tuple(judged), "both", draw(st.none() | st.floats(0, 4e9)))


def of_one(need: NeedVerdict) -> Verdict:
    return Verdict(need.outcome, need.reason, (need,), "both", 0.0)


words = st.sampled_from([*(f"{{{field}}}" for field in (*LENGTHS, PAGE)), "{{", "}}"]) | ascii_texts
advice = st.lists(words, min_size=1).map(lambda parts: wording("".join(parts)))
audiences = st.builds(
    Audience,
    controlled=st.booleans(),
    quota_words=st.booleans(),
    namespace=texts,
    advice=st.just(()) | advice.map(lambda text: (("*", text),)),
    page_url=ascii_texts,
    hide_names=st.booleans(),
    queue_allowed=st.booleans(),
)
moments = st.floats(0, 4e9)


@given(verdicts(), audiences, moments)
def test_a_sentence_is_one_line_of_ascii_under_600_characters(judged: Verdict, audience: Audience, now: float) -> None:
    text = sentence(judged, audience, now)
    assert len(text) < 600
    assert ONE_LINE_OF_ASCII.fullmatch(text)
    if judged.outcome is Outcome.FULL and audience.quota_words:
        assert "exceeded quota" in text


@given(st.lists(texts, min_size=1, max_size=4).map(tuple))
def test_names_that_no_class_declares_are_one_line_of_ascii(names: tuple[str, ...]) -> None:
    nothing = Verdict(Outcome.ROOM, Reason.NoDeviceRequested)
    text = sentence(nothing, Audience(), 0.0, names)
    assert len(text) < 200
    assert ONE_LINE_OF_ASCII.fullmatch(text)


@given(needs().filter(lambda need: need.count > 0), audiences, moments)
def test_the_first_100_characters_hold_reason_and_number(need: NeedVerdict, audience: Audience, now: float) -> None:
    start = sentence(of_one(need), audience, now)[:HEADLINE_LIMIT]
    asked = need.count if need.count <= 999_999 else "999999+"
    assert start.startswith(f"[{need.reason}] ")
    assert f"({asked} asked)" in start


@given(needs().filter(lambda need: need.outcome in {Outcome.FULL, Outcome.NEVER}), audiences, moments)
def test_facts_are_never_cut(need: NeedVerdict, audience: Audience, now: float) -> None:
    assert evidence(need, audience) in refusal(of_one(need), audience, now)


@given(verdicts(), audiences, moments)
def test_warnings_are_few_and_short_lines_of_ascii(judged: Verdict, audience: Audience, now: float) -> None:
    lines = warnings(judged, audience, now)
    assert len(lines) <= 3
    for line in lines:
        assert len(line) <= WARNING_LIMIT
        assert ONE_LINE_OF_ASCII.fullmatch(line)
        assert not line.startswith("Warning:")


@given(needs(), advice, texts, st.just("") | ascii_texts.map("https://{}".format))
def test_advice_takes_no_more_room_than_was_told_at_start(
    need: NeedVerdict, text: Wording, namespace: str, page: str
) -> None:
    said = advised((("*", text),), namespace, page, need, need.claimant or need)
    assert len(f"{said} {link(page, said)}".strip()) <= len(text.longest(page))


@given(st.sampled_from(Reason), texts)
def test_a_fault_fits_into_a_warning(reason: Reason, detail: str) -> None:
    line = not_checked(reason, detail)
    assert len(line) <= WARNING_LIMIT
    assert ONE_LINE_OF_ASCII.fullmatch(line)
    assert line.startswith(f"GPU capacity not checked: {reason}, ")


@given(verdicts(), audiences)
def test_causes_and_ways_out_are_lines_of_ascii(judged: Verdict, audience: Audience) -> None:
    for text in (*options(judged, audience), *(evidence(need, audience) for need in judged.needs)):
        assert ONE_LINE_OF_ASCII.fullmatch(text)


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("by_claimant", [False, True])
def test_the_longest_facts_leave_room_for_nothing_else(outcome: Outcome, by_claimant: bool) -> None:  # noqa: FBT001
    """Names and numbers beyond every bound, all remarks at once."""
    name, many = "x" * 300, 10**9
    far = (Unreachable(name, name, many),) * 2
    for reason in REASONS_OF[outcome]:
        need = NeedVerdict(
            name=name,
            field="spec.resourceClaims[0]",
            count=many,
            outcome=outcome,
            reason=reason,
            class_name=name,
            detail="" if outcome is Outcome.FULL and by_claimant else name,
            total=many,
            free=many + 1,
            pools=many,
            largest_free_block=many,
            largest_block=many,
            unreachable=far,
            listed=many,
            never_fits=outcome in {Outcome.FULL, Outcome.NEVER},
        )
        judged = of_one(replace(need, claimant=need) if by_claimant else need)
        text = sentence(judged, Audience(quota_words=True), now=4e9)
        assert len(text) < 600
        if outcome in {Outcome.FULL, Outcome.NEVER}:
            assert evidence(judged.needs[0], Audience()) in text
