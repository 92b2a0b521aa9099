"""The judgement: what a pod asks for, held against what is known of the devices.

Refusing needs certainty; every doubt ends as `unknown`, which admits. `witness` and `snapshot` say what they know, this
room decides whom to believe (the source) and how the parts of a pod's demand go together.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from app.dra.agreement import agreement
from app.dra.containers import resource_totals
from app.dra.demand import Ask, Lookups, Need, PodDemand, pod_demand
from app.dra.objects import Pod, Value
from app.dra.reasons import Reason
from app.dra.scope import Scope, out_of_scope
from app.dra.snapshot import DriverStatus, Snapshot, fresh
from app.dra.tally import Standing, Tally
from app.dra.vacancy import Vacancy
from app.dra.verdict import NeedVerdict, Outcome, Verdict
from app.dra.witness import Witness


class Source(enum.StrEnum):
    """Whom to believe about what is taken."""

    POOL_STATUS = "pool-status"
    WITNESS = "witness"
    BOTH = "both"
    AUTO = "auto"
    """Per driver: both while its status is fresh, the witness otherwise; pool-status where claims may not be read."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the platform team decided."""

    source: Source = Source.AUTO
    max_age_seconds: float = 90.0
    autoscaled: frozenset[str] = frozenset()
    """Drivers and classes for which a pending pod makes new devices: refusing it would prevent them."""
    dynamic: frozenset[str] = frozenset()
    """Drivers and classes whose devices appear on demand."""
    scope: Scope = field(default_factory=Scope)


@dataclass(frozen=True, slots=True)
class World:
    """All a verdict rests on."""

    witness: Witness
    snapshot: Snapshot
    policy: Policy


class Finding(Value, frozen=True):
    """One ask, judged by one source."""

    tally: Tally
    standing: Standing
    vacancy: Vacancy
    reason: Reason
    source: str = ""
    """Empty: no source could say anything."""
    counted_at: float | None = None
    """Time of the oldest pool status it rests on."""
    free: int | None = None
    listed: int = 0
    """Devices the statuses call available though they do not count."""


def judge(pod: Pod, namespace: str, lookups: Lookups, world: World, now: float) -> Verdict:
    """The verdict for one pod of a namespace at the moment `now` (epoch seconds)."""
    return demand_and_verdict(pod, namespace, lookups, world, now)[1]


def demand_and_verdict(
    pod: Pod, namespace: str, lookups: Lookups, world: World, now: float
) -> tuple[PodDemand, Verdict]:
    """The same with what the pod asks for, by which it can be judged again later."""
    witness, unseen = world.witness, world.witness.devices_unknown
    if unseen is not None and (pod.spec.resource_claims or resource_totals(pod.spec)):
        reason = out_of_scope(pod, world.policy.scope, witness.server_minor)
        # Which names are names of devices is not known either.
        return NO_DEMAND, Verdict(Outcome.UNKNOWN, reason or unseen)
    demand = pod_demand(pod, namespace, witness, lookups, now)
    if not demand.needs:
        return demand, NOTHING_ASKED
    verdict = decide(demand, world, now)
    reason = out_of_scope(pod, world.policy.scope, witness.server_minor)
    return demand, verdict if reason is None else _set_aside(verdict, reason)


def _set_aside(verdict: Verdict, reason: Reason) -> Verdict:
    """The verdict for a pod out of scope: what each need means is on record, whether it is met is not said."""
    needs = (
        NeedVerdict(
            name=need.name,
            field=need.field,
            count=need.count,
            outcome=Outcome.UNKNOWN,
            reason=reason,
            class_name=need.class_name,
            total=need.total,
            pools=need.pools,
            drivers=need.drivers,
            memory=need.memory,
        )
        for need in verdict.needs
    )
    return Verdict(Outcome.UNKNOWN, reason, tuple(needs))


NO_DEMAND = PodDemand()
"""Of a pod of which it is not known what it asks for."""

NOTHING_ASKED = Verdict(Outcome.ROOM, Reason.NoDeviceRequested)
"""The verdict for nearly every pod of a cluster."""

ANYBODY = PodDemand(tolerations=None)
"""Asks on behalf of no pod in particular: pages and commands."""


def decide(demand: PodDemand, world: World, now: float) -> Verdict:
    """The verdict for a demand: one certain "full" refuses, whatever else is unknown."""
    world.witness.advance(now)
    needs: list[NeedVerdict] = []
    findings: list[Finding] = []
    with world.witness.tallies:  # what all needs together look at has a bound
        for need in demand.needs:
            verdict, found = _judged(need, demand, world, now)
            needs.append(verdict)
            findings += found
    deciding = needs[0] if len(needs) == 1 else min(needs, key=_decides)
    source, counted_at = _evidence(findings)
    return Verdict(deciding.outcome, deciding.reason, tuple(needs), source, counted_at)


def find(ask: Ask, demand: PodDemand, world: World, now: float) -> Finding:
    """What the policy's source says of one ask."""
    witness, source = world.witness, world.policy.source
    tally = witness.tally(ask)
    standing = witness.standing(tally, demand.tolerations, demand.node_selector, now)
    if witness.devices_unknown is not None:
        return _unseen(tally, standing, witness.devices_unknown)
    if source is Source.POOL_STATUS or (source is Source.AUTO and witness.holds_denied):
        return _by_pool_status(tally, standing, world, now)
    if witness.holds_unknown is not None:
        return _unseen(tally, standing, witness.holds_unknown)
    return _by_witness(tally, standing, world, now)


def _unseen(tally: Tally, standing: Standing, reason: Reason) -> Finding:
    """Not known now, so that nothing is said of what was free out of reach."""
    return Finding(tally, replace(standing, unreachable=()), Vacancy.UNKNOWN, reason)


def _by_witness(tally: Tally, standing: Standing, world: World, now: float) -> Finding:
    """What the witness says; under `both` and `auto`, held against the statuses of every driver concerned."""
    vacancy, reason = standing.vacancy, standing.reason
    counted: list[float] = []
    listed = -sum([part.devices for part in standing.unreachable])
    for driver in tally.summary().possible_drivers if world.policy.source is not Source.WITNESS else ():
        status, doubt = world.snapshot.statuses.get(driver), None
        if status is None or not fresh(status, now, world.policy.max_age_seconds):
            doubt = _absence(status) if world.policy.source is Source.BOTH else None
        else:
            counted.append(status.taken_at or 0.0)
            if vacancy is Vacancy.FULL:
                said = agreement(status, tally, world.witness)
                doubt = said.doubt(tally)
                listed += said.uncounted()
        if doubt is not None and vacancy is Vacancy.FULL:
            vacancy, reason = Vacancy.UNKNOWN, doubt
    return Finding(
        tally=tally,
        standing=standing,
        vacancy=vacancy,
        reason=reason,
        source=Source.BOTH if counted else Source.WITNESS,
        counted_at=min(counted, default=None),
        free=standing.free if vacancy is not Vacancy.UNKNOWN and tally.complete else None,
        listed=max(0, listed) if vacancy is Vacancy.FULL and counted else 0,
    )


def _absence(status: DriverStatus | None) -> Reason:
    return Reason.NoSource if status is None or status.problem else Reason.StaleSnapshot


def _by_pool_status(tally: Tally, standing: Standing, world: World, now: float) -> Finding:
    """What the pool statuses alone prove: every pool that may hold a matching device is full."""
    parts: list[tuple[Vacancy, Reason]] = []
    counted: list[float] = []
    listed = block = 0
    exact = True
    for driver in tally.summary().possible_drivers:
        status = world.snapshot.statuses.get(driver)
        if status is None or not fresh(status, now, world.policy.max_age_seconds):
            parts.append((Vacancy.UNKNOWN, _absence(status)))
            exact = False
            continue
        said = agreement(status, tally, world.witness)
        parts.append((said.vacancy, said.reason))
        counted.append(status.taken_at or 0.0)
        listed += said.listed
        block += said.largest_block
        exact = exact and said.exact
    vacancy, reason = _together(parts)
    doubt = tally.blocked() or (Reason.Shareable if tally.shareable else None)
    if vacancy in (Vacancy.FULL, Vacancy.EMPTY) and doubt:
        vacancy, reason = Vacancy.UNKNOWN, doubt
    elif vacancy in (Vacancy.FULL, Vacancy.FREE) and not tally.total:
        vacancy, reason = Vacancy.UNKNOWN, Reason.SelectorUnknown
    free = 0 if vacancy is Vacancy.FULL else None
    if vacancy is Vacancy.FREE and exact and not tally.ask.tolerations:
        free = listed
    return Finding(
        tally=tally,
        standing=replace(standing, largest_free_block=block, unreachable=()),  # what is free the witness cannot know
        vacancy=vacancy,
        reason=reason,
        source=Source.POOL_STATUS,
        counted_at=min(counted, default=None),
        free=free,
        listed=listed if vacancy is Vacancy.FULL else 0,
    )


def _together(parts: list[tuple[Vacancy, Reason]]) -> tuple[Vacancy, Reason]:
    """Several drivers: one free is enough, one unknown spoils full."""
    for wanted in (Vacancy.FREE, Vacancy.UNKNOWN, Vacancy.FULL):
        for vacancy, reason in parts:
            if vacancy is wanted:
                return vacancy, reason
    return Vacancy.EMPTY, Reason.NoMatchingDevice


def shown(finding: Finding) -> tuple[Vacancy, Reason]:
    """What a reader is told: of pools that are never used nobody knows what would match, were they complete."""
    if finding.vacancy is Vacancy.EMPTY and finding.tally.unusable():
        return Vacancy.UNKNOWN, Reason.PoolIncomplete
    return finding.vacancy, finding.reason


def total(tally: Tally, world: World) -> int | None:
    """How many devices match, over all pools; None: not known."""
    return tally.total if tally.certain() and world.witness.devices_unknown is None else None


def never_refused(classes: Iterable[str], world: World) -> Reason | None:
    """Why nobody is refused what one of these classes serves, free or not, as `_judged` has it; None: they may be."""
    for names, reason in ((world.policy.dynamic, Reason.Dynamic), (world.policy.autoscaled, Reason.Autoscaled)):
        if names and any(_serves(world.witness.tally(Ask(name)), names) for name in classes):
            return reason
    return None


def _judged(need: Need, demand: PodDemand, world: World, now: float) -> tuple[NeedVerdict, list[Finding]]:
    """One need and the findings it rests on."""
    if need.unjudged is not None:
        return NeedVerdict(need.name, need.field, need.count, Outcome.UNKNOWN, need.unjudged, detail=need.detail), []
    findings = [find(ask, demand, world, now) for ask in need.asks]
    first, shown = findings[0], _deciding(findings, _OF_A_NAME if need.claimed_name else _OF_ALTERNATIVES)
    outcome, reason = _OUTCOMES[shown.vacancy], shown.reason
    never = need.count > shown.standing.largest_block and _never_fits(need, findings)
    if _touches(world.policy.dynamic, findings):
        outcome, reason, shown = Outcome.UNKNOWN, Reason.Dynamic, first
    elif (never or outcome is Outcome.FULL) and _touches(world.policy.autoscaled, findings):
        outcome, reason, shown = Outcome.UNKNOWN, Reason.Autoscaled, first
    elif outcome is not Outcome.FULL and never:
        outcome, reason, shown = Outcome.NEVER, Reason.NeverFits, max(findings, key=_largest_block)
    elif outcome is Outcome.ROOM and need.count > shown.standing.largest_free_block and _fewer(need, findings):
        reason = Reason.FewerThanAsked
    detail = ""
    if outcome is Outcome.FULL and not need.claimed_name:
        detail = ", ".join(finding.tally.ask.class_name for finding in findings if finding is not shown)
    elif reason in (Reason.PoolIncomplete, Reason.PoolInvalid):
        detail = min((pool.name for pool, why in shown.tally.blocking.items() if why is reason), default="")
    verdict = _need_verdict(need, shown, outcome, reason, detail)
    if need.claimed_name and shown is not first:
        verdict = replace(_need_verdict(need, first, outcome, reason, detail), claimant=verdict)
    return replace(verdict, never_fits=True) if never else verdict, findings


def _need_verdict(need: Need, finding: Finding, outcome: Outcome, reason: Reason, detail: str) -> NeedVerdict:
    """The need with the numbers of one class behind it."""
    tally, standing, summary = finding.tally, finding.standing, finding.tally.summary()
    known = finding.source != ""
    exact = known and tally.certain()
    return NeedVerdict(
        name=need.name,
        field=need.field,
        count=need.count,
        outcome=outcome,
        reason=reason,
        class_name=tally.ask.class_name,
        detail=detail,
        total=tally.total if exact else None,
        free=finding.free,
        pools=len(tally.pools) if exact else None,
        largest_free_block=standing.largest_free_block if finding.free is not None else None,
        largest_block=standing.largest_block if known else None,
        drivers=summary.drivers,
        memory=summary.memory,
        unreachable=standing.unreachable,
        listed=finding.listed,
    )


_DECIDES = (Outcome.FULL, Outcome.NEVER, Outcome.UNKNOWN, Outcome.ROOM)
"""Of several needs the first of these decides: a pod must get all it asks for."""


def _decides(need: NeedVerdict) -> tuple[int, bool]:
    """The smallest decides; of needs that have room, one that may have to wait is worth more words."""
    return _DECIDES.index(need.outcome), need.reason is not Reason.FewerThanAsked


_OUTCOMES = {
    Vacancy.FREE: Outcome.ROOM,
    Vacancy.FULL: Outcome.FULL,
    Vacancy.EMPTY: Outcome.UNKNOWN,
    Vacancy.UNKNOWN: Outcome.UNKNOWN,
}

_OF_A_NAME = (Vacancy.FREE, Vacancy.UNKNOWN, Vacancy.FULL, Vacancy.EMPTY)
"""Classes that may claim one name: all that match a device must be full; one that matches none is neutral."""

_OF_ALTERNATIVES = (Vacancy.FREE, Vacancy.UNKNOWN, Vacancy.EMPTY, Vacancy.FULL)
"""`firstAvailable`: every alternative must be full."""


def _deciding(findings: list[Finding], order: tuple[Vacancy, ...]) -> Finding:
    """The first finding of the vacancy that comes first in the order."""
    return min(findings, key=lambda finding: order.index(finding.vacancy)) if len(findings) > 1 else findings[0]


def _touches(names: frozenset[str], findings: list[Finding]) -> bool:
    """Whether a list of drivers and classes names one this need may be served by."""
    return bool(names) and any(_serves(finding.tally, names) for finding in findings)


def _serves(tally: Tally, names: frozenset[str]) -> bool:
    # Looked at by name alone: a driver that has yet to make its first device may be the one. The name of another class
    # is looked at in the same way; if this class excludes no driver, the devices made for the other match it too.
    return tally.ask.class_name in names or not all(tally.excludes(name) for name in names)


def _comparable(findings: list[Finding]) -> bool:
    """Whether all matching devices are known, and each serves one request at a time."""
    tallies = [finding.tally for finding in findings]
    return all(tally.certain() and not tally.shareable for tally in tallies) and any(tally.total for tally in tallies)


def _largest_block(finding: Finding) -> int:
    return finding.standing.largest_block


def _never_fits(need: Need, findings: list[Finding]) -> bool:
    """More is asked for than any node has in total, or could have: a pool that misses slices may hold more."""
    return (
        _comparable(findings)
        and all(need.count > finding.standing.largest_block for finding in findings)
        and not any(finding.tally.unusable() for finding in findings)
    )


def _fewer(need: Need, findings: list[Finding]) -> bool:
    """Something is free, but on no node as much as is asked for."""
    free = [finding for finding in findings if finding.vacancy is Vacancy.FREE]
    enough = any(f.free is None or need.count <= f.standing.largest_free_block for f in free)
    return not enough and _comparable(findings)


def _evidence(findings: list[Finding]) -> tuple[str, float | None]:
    """One word for what the answer rests on, and the time of the oldest status it rests on."""
    source, counted_at = "", None
    for finding in findings:
        if finding.source and finding.source != source:
            source = Source.BOTH if source else finding.source
        if finding.counted_at is not None and (counted_at is None or finding.counted_at < counted_at):
            counted_at = finding.counted_at
    return source, counted_at
