"""What `1` of a name means now: the class behind it, its devices, and how unequal they are."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from app.dra.classes import IMPLICIT_PREFIX
from app.dra.demand import Ask, Need
from app.dra.judgement import ANYBODY, Finding, World, decide, find, never_refused, shown, total
from app.dra.names import holding_back, named
from app.dra.places import places
from app.dra.reasons import Reason
from app.dra.spreads import Spread, spreads
from app.dra.vacancy import Vacancy
from app.dra.verdict import NeedVerdict


@dataclass(frozen=True, slots=True)
class Claimant:
    """A class the scheduler may resolve the name to."""

    name: str
    declares: bool
    """Declares the name now."""
    why: str
    vacancy: Vacancy
    reason: Reason
    total: int | None
    free: int | None


@dataclass(frozen=True, slots=True)
class Meaning:
    """The answer to "what is 1 of this?"."""

    name: str
    claimants: tuple[Claimant, ...] = ()
    """The winner first; none: the name means nothing here."""
    held_back_by: str = ""
    """The class because of which a winner that is full, or matches no device, does not lead to a refusal."""
    plugin_node: str = ""
    """A node that may serve the name by device plugin: it is not judged."""
    never_refused: Reason | None = None
    """Why nobody who asks by the name is refused, free or not; None: they may be."""
    drivers: tuple[str, ...] = ()
    pools: int = 0
    """Those with matching devices, and those that may have some."""
    devices: int | None = 0
    """None: not known."""
    spreads: tuple[Spread, ...] = ()
    verdict: NeedVerdict | None = None

    @property
    def winner(self) -> str:
        """The class the rule resolves the name to; empty: none."""
        return self.claimants[0].name if self.claimants else ""

    @property
    def unequal(self) -> bool:
        """Whether equal counts may mean different devices."""
        return any(spread.differs for spread in self.spreads)


def meaning(name: str, world: World, now: float) -> Meaning:
    """What `1` of an extended resource name (explicit or implicit) or of a device class means at the moment `now`."""
    return next(step for step in meaning_in_steps(name, world, now) if step is not None)


def meaning_in_steps(name: str, world: World, now: float) -> Iterator[Meaning | None]:
    """The same, and before it None: moments to let others work, as every device may have to be looked at."""
    witness = world.witness
    witness.advance(now)
    known = named(name, world, now)
    names = known.claimants if "/" in name else (name,) if witness.has_class(name) else ()
    if not names:
        yield Meaning(name, plugin_node=known.plugin_node, never_refused=known.never_refused)
        return
    findings = [find(Ask(class_name), ANYBODY, world, now) for class_name in names]
    tally = findings[0].tally
    need = Need(
        name,
        "",
        1,
        tuple(Ask(n) for n in names),
        claimed_name=True,
        unjudged=_obstacle(name, known.plugin_node, world),
        detail=known.plugin_node,
    )
    pools = tally.concerned()
    found = Meaning(
        name=name,
        claimants=tuple(_claimant(finding, name, names[0], world) for finding in findings),
        held_back_by=holding_back(names, {f.tally.ask.class_name: f.vacancy for f in findings}),
        plugin_node=known.plugin_node,
        never_refused=known.never_refused if "/" in name else never_refused(names, world),
        drivers=tuple(sorted({pool.driver for pool in pools})),
        pools=len(pools),
        devices=total(tally, world),
        verdict=decide(replace(ANYBODY, needs=(need,)), world, now).needs[0],
    )
    known_places = yield from places(witness.pools(), witness.nodes.names())
    yield dataclasses.replace(found, spreads=(yield from spreads(tally, known_places, now)))


def _obstacle(name: str, plugin_node: str, world: World) -> Reason | None:
    """Why pods that ask for the name are not judged, as in `demand`."""
    if "/" in name and not world.witness.judges_extended_resources():
        return Reason.NoSource
    return Reason.DevicePlugin if plugin_node else None


def _claimant(finding: Finding, name: str, winner: str, world: World) -> Claimant:
    known = world.witness.classes.get(finding.tally.ask.class_name)
    declares = known is not None and known.declares == name
    if not declares:
        direct = "/" not in name or name.startswith(IMPLICIT_PREFIX)
        why = "named directly" if direct else "may have declared the name before"
    elif finding.tally.ask.class_name == winner:
        why = "declares the name and is the newest"
    else:
        why = f"declares the name too, shadowed by {winner}"
    vacancy, reason = shown(finding)
    is_judged = vacancy is finding.vacancy
    return Claimant(
        name=finding.tally.ask.class_name,
        declares=declares,
        why=why,
        vacancy=vacancy,
        reason=reason,
        total=total(finding.tally, world) if is_judged else None,
        free=finding.free if is_judged else None,
    )
