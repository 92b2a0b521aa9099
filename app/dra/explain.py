"""Every sentence a user reads, made last and made here from a verdict.

A sentence is one line of printable ASCII, because it ends up in kubectl, in events, in conditions and in HTTP headers:
the API server drops a warning that holds a control character, and `kubectl get events` hides a second line. The facts
come first and always fit, since every name in them is bounded; only the platform team's text is ever cut.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, assert_never

from msgspec.structs import replace

from app.dra import facts
from app.dra.advice import advice
from app.dra.objects import Value
from app.dra.reasons import Reason
from app.dra.scope import QUEUE_LABEL
from app.dra.verdict import NeedVerdict, Outcome, Verdict
from app.dra.words import (
    DETAIL_LIMIT,
    PHRASES,
    age,
    as_sentence,
    counted_noun,
    cut,
    number,
    printable,
    reason_in_words,
    shortened,
)
from app.wording import Texts, link

SENTENCE_LIMIT: Final = 599
"""Characters of a sentence: every attempt repeats it in the API server's log, and events keep it."""

HEADLINE_LIMIT: Final = 100
"""Characters that must say it all: what the narrow columns of consoles show."""

WARNING_LIMIT: Final = 120
"""Characters of one warning; the API server may truncate longer ones."""

WARNINGS_LIMIT: Final = 3
"""Warnings of one answer: nobody reads more, and all share one header budget of 4096 characters."""

_EXPECTED: Final = frozenset(
    {
        Reason.OptedOut,
        Reason.MirrorPod,
        Reason.NodeNameSet,
        Reason.SchedulingGated,
        Reason.SchedulingGroup,
        Reason.OtherScheduler,
        Reason.DaemonSetPod,
        Reason.QueueManaged,
        Reason.MayPreempt,
        Reason.DevicePlugin,
        Reason.ClaimAllocated,
        Reason.AdminAccess,
        Reason.Dynamic,
        Reason.Shareable,
    },
)
"""Not judged on purpose: nothing is amiss, and a warning fails a command that runs with `--warnings-as-errors`."""


class Audience(Value, frozen=True):
    """Who reads the sentence, and what the platform team wants to tell them."""

    controlled: bool = False
    """A controller repeats the request: an age that changes every time would flood the owner with events."""
    quota_words: bool = False
    """The requester waits and retries only when it reads `exceeded quota`."""
    namespace: str = ""
    """That of the pod."""
    advice: Texts = ()
    """The platform team's; none: ours."""
    page_url: str = ""
    """The capacity page; empty: no link."""
    hide_names: bool = False
    """Names of nodes and pools are not shown."""
    queue_allowed: bool = True
    """Whether our advice offers the queue label."""


_remembered = lru_cache(maxsize=256)
"""Pods of one controller are told the same: of the work for a refusal the words are the larger half (measured)."""


# --- Sentences ------------------------------------------------------------------------------------------------------


def sentence(verdict: Verdict, audience: Audience, now: float, undeclared: tuple[str, ...] = ()) -> str:
    """The whole answer in one line under 600 characters; for a pod that is full or never fits it is the refusal.

    `undeclared`: names the pod asks for that are none of a device, where it asks for no other.
    """
    match verdict.outcome:
        case Outcome.FULL | Outcome.NEVER:
            return refusal(verdict, audience, now)
        case Outcome.ROOM:
            need = _leading_need(verdict)
            numbers = f": {facts.free(need)}, {_counted(verdict, audience, now)}" if need else _undeclared(undeclared)
            return f"{_headline(verdict, need, PHRASES[verdict.reason])}{numbers}."
        case Outcome.UNKNOWN:
            need = _leading_need(verdict)
            why = reason_in_words(verdict.reason, need.detail if need else "", hide_names=audience.hide_names)
            rest = f"{facts.remarks(need, hide_names=audience.hide_names)}{facts.for_claimant(need)}" if need else ""
            return f"{_headline(verdict, need, 'not checked')}: {why}{rest}."
        case _:  # pragma: no cover
            assert_never(verdict.outcome)


def refusal(verdict: Verdict, audience: Audience, now: float) -> str:
    """The message of a denial. Its first 100 characters hold the reason, the name and the number asked for."""
    return _refusal(verdict, audience, _counted(verdict, audience, now))


@_remembered
def _refusal(verdict: Verdict, audience: Audience, counted: str) -> str:
    need = _leading_need(verdict)
    quota = "exceeded quota" if audience.quota_words and verdict.outcome is Outcome.FULL else ""
    numbers = ", ".join(part for part in (quota, _facts(verdict, need, audience, counted)) if part)
    said = f"{_headline(verdict, need, PHRASES[verdict.reason])}{': ' if numbers else ''}{numbers}."
    closing = _closing(verdict, audience, SENTENCE_LIMIT - len(said) - 1)
    return f"{said} {closing}" if closing else said


def options(verdict: Verdict, audience: Audience) -> tuple[str, ...]:
    """What the reader can do about it, a way out each; nothing unless the pod is full or never fits."""
    if verdict.outcome in {Outcome.ROOM, Outcome.UNKNOWN}:
        return ()
    ways_out = _ways_out(verdict, audience)
    return tuple(filter(None, (*ways_out, link(audience.page_url, " ".join(ways_out)))))


@_remembered
def evidence(need: NeedVerdict, audience: Audience) -> str:
    """The numbers behind a need that is full or never fits, without their age: the message of its cause."""
    if need.outcome is Outcome.NEVER:
        return facts.shortage(need)
    return f"{facts.all_taken(need)}{facts.remarks(need, hide_names=audience.hide_names)}"


# --- Warnings -------------------------------------------------------------------------------------------------------


def warnings(verdict: Verdict, audience: Audience, now: float) -> tuple[str, ...]:
    """What an admitted requester is told: at most three lines of at most 120 characters, mostly none."""
    return _warnings(verdict, audience, _counted(verdict, audience, now))


@_remembered
def _warnings(verdict: Verdict, audience: Audience, counted: str) -> tuple[str, ...]:
    if verdict.outcome is Outcome.FULL:
        need = _leading_need(verdict)
        lines = [
            _headline(verdict, need, PHRASES[verdict.reason]),
            cut(_facts(verdict, need, audience, counted), WARNING_LIMIT),
            _short_closing(verdict, audience),
        ]
    elif verdict.needs:
        lines = [_warning_of(need, audience) for need in verdict.needs]
    elif verdict.outcome is Outcome.UNKNOWN:
        lines = [_unless_expected(verdict.reason, "", audience)]
    else:
        lines = []
    return tuple(dict.fromkeys(line for line in lines if line))[:WARNINGS_LIMIT]


def workload_warnings(verdict: Verdict, pods: int, audience: Audience, now: float) -> tuple[str, ...]:
    """The same for an object whose controller makes so many of these pods: how many fit, and what becomes of the rest.

    Whether the rest is refused and repeated or waits in the scheduler's queue is the mode's choice; to who reads this
    it is the same.
    """
    lines = warnings(verdict, audience, now)
    if verdict.outcome in {Outcome.UNKNOWN, Outcome.NEVER} or any(need.never_fits for need in verdict.needs):
        return lines
    short = min(verdict.needs, key=_pods_with_room, default=None)
    fitting = pods if short is None else _pods_with_room(short)
    if short is None or fitting >= pods:
        return lines
    if not lines:
        free = facts.deciding(short).free or 0
        asked = f"{number(pods)} x {number(short.count)} asked"
        lines = (_warning(replace(short, reason=Reason.FewerThanAsked), f"{number(free)} free, {asked}"),)
    return (*lines[: WARNINGS_LIMIT - 1], _outlook(int(fitting), pods, audience, exact=short.count == 1))


def _pods_with_room(need: NeedVerdict) -> float:
    """How many pods find what this need asks for, or a few more: it has to be on one node each. Not known: any number.

    A pod that finds something, but nowhere enough, finds no room.
    """
    free = facts.deciding(need).free
    if need.outcome is Outcome.FULL or need.reason is Reason.FewerThanAsked:
        return 0
    return float("inf") if need.outcome is not Outcome.ROOM or free is None or not need.count else free // need.count


def _outlook(fitting: int, pods: int, audience: Audience, *, exact: bool) -> str:
    """`2 of 8 pods fit now; the others start by themselves when devices are free`, with the link if there is room."""
    fit = f"{'' if exact or not fitting else 'at most '}{number(fitting)} of {counted_noun(pods, 'pod')} fit"
    rest = "it starts by itself" if pods == 1 else f"{'the others' if fitting else 'they'} start by themselves"
    said = f"{fit}{'s' if pods == 1 else ''} now; {rest} when devices are free"
    return next(text for text in (f"{said}. {link(audience.page_url)}".strip(". "), said) if len(text) <= WARNING_LIMIT)


def not_checked(reason: Reason, detail: str = "") -> str:
    """The warning of a request that could not be judged; `detail` says what was found, else the reason's words do."""
    return cut(f"GPU capacity not checked: {reason}, {printable(detail) or PHRASES[reason]}", WARNING_LIMIT)


def _warning_of(need: NeedVerdict, audience: Audience) -> str:
    asked, of_class = f"{number(need.count)} asked", facts.deciding(need)
    match need.reason:
        case Reason.FewerThanAsked:
            free = "fewer" if of_class.free is None else number(of_class.free)
            return _warning(need, f"{asked}, {free} free{facts.largest_free_block(of_class)}, the pod may wait")
        case Reason.NeverFits:
            most = f"more than {number(of_class.largest_block)}" if of_class.largest_block else "that many"
            return _warning(need, f"{asked}, no node has {most}, the pod cannot start")
        case Reason.Autoscaled:
            return _warning(need, PHRASES[need.reason])
        case _ if need.outcome is Outcome.UNKNOWN:
            return _unless_expected(need.reason, need.detail, audience)
        case _:
            return ""


def _warning(need: NeedVerdict, text: str) -> str:
    start = f"[{need.reason}] "
    return f"{start}{shortened(need.name, WARNING_LIMIT - len(f'{start}: {text}'))}: {text}"


def _unless_expected(reason: Reason, detail: str, audience: Audience) -> str:
    if reason in _EXPECTED:
        return ""
    return not_checked(reason, reason_in_words(reason, detail, hide_names=audience.hide_names))


# --- Facts ----------------------------------------------------------------------------------------------------------


def _leading_need(verdict: Verdict) -> NeedVerdict | None:
    """The need the sentence speaks of: the first that explains the verdict."""
    same = [need for need in verdict.needs if need.outcome is verdict.outcome]
    return next((need for need in same if need.reason is verdict.reason), same[0] if same else None)


def _headline(verdict: Verdict, need: NeedVerdict | None, phrase: str) -> str:
    """`[Reason] phrase for name (1 asked)` in at most 100 characters; the name gives way."""
    start = f"[{verdict.reason}] {phrase}"
    if need is None:
        return start
    full = sum(other.outcome is Outcome.FULL for other in verdict.needs)
    more = f" and {counted_noun(full - 1, 'more request')}" if full > 1 else ""
    rest = f" ({number(need.count)} asked){more}" if need.count else more
    return f"{start} for {shortened(need.name, HEADLINE_LIMIT - len(f'{start} for {rest}'))}{rest}"


def _facts(verdict: Verdict, need: NeedVerdict | None, audience: Audience, counted: str) -> str:
    if need is None:
        return ""
    if verdict.outcome is Outcome.NEVER:  # what exists at all, free or not: no matter of seconds
        return evidence(need, audience)
    too_many = f", and no node has {number(need.count)} of them in total" if need.never_fits else ""
    return f"{evidence(need, audience)}, {counted}{too_many}"


def _undeclared(names: tuple[str, ...]) -> str:
    """`: no device class declares example.com/gpus`; only the first of several is named."""
    more = f", nor {counted_noun(len(names) - 1, 'more name')}" if len(names) > 1 else ""
    return f": no device class declares {shortened(names[0], DETAIL_LIMIT)}{more}" if names else ""


def _counted(verdict: Verdict, audience: Audience, now: float) -> str:
    """How old the numbers are; for a controller in whole minutes of the clock, so that a repetition reads the same."""
    at = verdict.snapshot_time
    if at is None:
        return "seen live"
    return _as_of(at) if audience.controlled else f"counted {age(now - at)} ago"


@_remembered
def _as_of(at: float) -> str:
    return f"as of {datetime.fromtimestamp(at, UTC):%H:%M} UTC"


# --- Ways out -------------------------------------------------------------------------------------------------------


def _ways_out(verdict: Verdict, audience: Audience, *, waits: bool = False) -> tuple[str, ...]:
    """`waits`: the pod is admitted all the same."""
    need = _leading_need(verdict)
    if need is not None and (need.never_fits or verdict.outcome is Outcome.NEVER):
        # Waiting does not help, so neither does advice on how to wait.
        most = facts.deciding(need).largest_block
        fewer = f"at most {number(most)}" if most else "fewer devices"
        return (f"ask for {fewer} in one pod",)
    if need is not None:
        theirs = advice(audience.advice, audience.namespace, audience.page_url, need, facts.deciding(need))
        if theirs:
            return (theirs,)
    if waits:
        return ("the pod waits until a device is free",)
    queue = (f"wait in the queue with label {QUEUE_LABEL}=true",) if audience.queue_allowed else ()
    return ("try again later", *queue, "run on CPU")


def _closing(verdict: Verdict, audience: Audience, room: int) -> str:
    """Advice and link within `room` characters: the advice is cut, the link is whole or not there."""
    said = as_sentence(_ways_out(verdict, audience))
    page = link(audience.page_url, said)
    if len(page) > room:
        page = ""
    return f"{cut(said, room - len(page) - bool(page))} {page}".strip()


def _short_closing(verdict: Verdict, audience: Audience) -> str:
    """The same as a warning of an admitted pod: half an advice is worth less than the link."""
    said, page = as_sentence(_ways_out(verdict, audience, waits=True)), audience.page_url
    both = f"{said} {link(page, said)}".strip()
    return next((text for text in (both, link(page)) if 0 < len(text) <= WARNING_LIMIT), cut(said, WARNING_LIMIT))
