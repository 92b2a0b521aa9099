"""What the capacity page says of one device class, in words: the page itself only lays it out.

Unknown is a word here and never a number.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from app.dra.capacity import ClassCapacity
from app.dra.names import holding_back
from app.dra.parts import Parts
from app.dra.reasons import Reason
from app.dra.spreads import WELL_KNOWN, Spread
from app.dra.vacancy import Vacancy
from app.dra.words import NEVER_REFUSED, PHRASES, behind, counted_noun, number, some
from app.web.capacity import ClassReport, PoolReport, counted
from app.web.history import Samples, in_words, line
from app.web.table import Table

SPREADS_AT_MOST = 6

OPEN_AT_MOST = 4
"""Pools that are shown at once; more are folded."""


@dataclass(frozen=True, slots=True)
class NameLine:
    """One name that leads to the class, or seems to."""

    text: str
    kind: str
    shadowed_by: str
    """The class it leads to instead; empty: to this one."""
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One device class."""

    row: ClassReport
    big: tuple[str, str]
    """The number of free devices, and what follows it."""
    bar: tuple[int, int] | None
    """Per cent of the devices that are free, and that are unavailable; None: not known, or no device."""
    rest: str
    """The other counts."""
    why: tuple[str, ...]
    counted: str
    counted_at: str
    """RFC 3339, and empty where nothing was counted."""
    line: str
    line_in_words: str
    names: tuple[NameLine, ...]
    behind: str
    """What "1" is one of."""
    unequal: bool
    kinds: tuple[tuple[str, str], ...]
    parts: tuple[tuple[str, str], ...]
    pools: str
    """How many there are, by state."""
    pool_rows: Sequence[PoolReport] | None
    """None: too many for this page."""
    open: bool


@dataclass(frozen=True, slots=True)
class Cards:
    """What all cards of one table need."""

    table: Table
    hide_names: bool
    _facts: Mapping[str, ClassCapacity]
    _vacancies: Mapping[str, Vacancy]

    @classmethod
    def of(cls, table: Table, *, hide_names: bool) -> "Cards":
        """Those of a table."""
        return cls(
            table,
            hide_names,
            {each.name: each for each in table.classes},
            {each.name: each.judged for each in table.classes},
        )

    def card(self, row: ClassReport, samples: Samples, *, with_pools: bool) -> Card:
        """The card of one class."""
        facts = self._facts[row.name]
        spreads = [each for each in facts.spreads if not (self.hide_names and each.private)]
        taken_at = None if row.age_seconds is None else self.table.made_at - row.age_seconds
        return Card(
            row=row,
            big=_big(row),
            bar=_bar(row),
            rest=_rest(row),
            why=tuple(self._why(row, facts)),
            counted=counted(row.source, row.age_seconds),
            counted_at="" if taken_at is None else f"{datetime.fromtimestamp(taken_at, UTC):%Y-%m-%dT%H:%M:%SZ}",
            line=line(samples, row.total),
            line_in_words=in_words(samples),
            names=tuple(self._names(facts)),
            behind=_behind(row),
            unequal=any(each.differs for each in facts.spreads),
            kinds=tuple(_kinds(spreads)),
            parts=tuple(_parts(facts.parts, hide_names=self.hide_names)),
            pools=_pools(row.pools),
            pool_rows=row.pools if with_pools else None,
            open=len(row.pools) <= OPEN_AT_MOST,
        )

    def _why(self, row: ClassReport, facts: ClassCapacity) -> Iterator[str]:
        """Why the number is what it is, where it does not speak for itself, and what does not follow from it."""
        if facts.never_refused:
            yield f"never refused: {NEVER_REFUSED[facts.never_refused]}"
        if row.vacancy in (Vacancy.UNKNOWN, Vacancy.EMPTY):
            yield PHRASES[Reason(row.reason)]
        elif row.available is None:
            yield "some are free, how many is not known"
        elif row.total is None:
            yield "there may be more of which nothing is known"
        if row.listed_not_counted:
            do = "does" if row.listed_not_counted == 1 else "do"
            yield f"the pool status lists {number(row.listed_not_counted)} more as available that {do} not count"

    def _names(self, facts: ClassCapacity) -> Iterator[NameLine]:
        for each in facts.names:
            winner, *others = each.claimants or (facts.name,)
            remarks = []
            if winner == facts.name:
                declaring = [
                    other
                    for other in others
                    if other in self._facts and self._facts[other].extended_resource_name == each.text
                ]
                lingering = [other for other in others if other not in declaring]
                if declaring:
                    remarks.append(f"also claimed by {some(declaring)}, shadowed")
                if lingering:
                    remarks.append(f"may still mean {some(lingering)}")
                if holder := holding_back(each.claimants, self._vacancies):
                    remarks.append(f"refusals are held back by {holder}")
            if each.plugin_node:
                node = "a node" if self.hide_names else f"node {each.plugin_node}"
                remarks.append(f"never refused: {node} may serve it by device plugin")
            elif each.never_refused and not facts.never_refused:
                remarks.append(f"never refused: {NEVER_REFUSED[each.never_refused]}")
            kind = "explicit" if each.explicit else "implicit"
            yield NameLine(each.text, kind, "" if winner == facts.name else winner, tuple(remarks))


def _big(row: ClassReport) -> tuple[str, str]:
    if row.available is None:
        return "unknown", ""
    return str(row.available), "free" if row.total is None else f"of {row.total} free"


def _bar(row: ClassReport) -> tuple[int, int] | None:
    if not row.total or row.available is None:
        return None
    return round(100 * row.available / row.total), round(100 * (row.unavailable or 0) / row.total)


def _rest(row: ClassReport) -> str:
    """`6 allocated, 1 unavailable`; nothing of what is none, or not known."""
    total = row.total if row.available is None else None
    counts = {"in total": total, "allocated": row.allocated, "unavailable": row.unavailable}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _behind(row: ClassReport) -> str:
    """`One of 8 devices in 2 pools of gpu.example.com`."""
    all_of_them = behind(row.total, len(row.pools), sorted({pool.driver for pool in row.pools}))
    if row.total == 0:
        return all_of_them.capitalize()
    return all_of_them.replace("1 device", "The only device", 1) if row.total == 1 else f"One of {all_of_them}"


def _kinds(spreads: Iterable[Spread]) -> Iterator[tuple[str, str]]:
    """What a device is, and in what it differs from the others: `memory`, `40Gi (4) to 80Gi (4)`."""
    telling = [each for each in spreads if each.differs or _last_part(each).lower() in WELL_KNOWN]
    for spread in sorted(telling, key=_rank)[:SPREADS_AT_MOST]:
        (first, _), *_, (last, _) = spread.values * 2
        listed = [f"{value} ({number(count)})" for value, count in spread.values]
        if len(listed) == 1:
            said = first
        elif not spread.capacity:
            said = some(listed)
        elif len(listed) == 2:  # noqa: PLR2004 - from and to
            said = " to ".join(listed)
        else:
            said = f"{first} to {last}: {some(listed)}"
        yield _last_part(spread), said


def _rank(spread: Spread) -> tuple[int, str]:
    name = _last_part(spread)
    return WELL_KNOWN.index(name.lower()) if name.lower() in WELL_KNOWN else len(WELL_KNOWN), name


def _last_part(spread: Spread) -> str:
    """`memory` of `gpu.example.com/memory`."""
    return spread.attribute.rpartition("/")[2]


def _parts(parts: Parts, *, hide_names: bool) -> Iterator[tuple[str, str]]:
    for each in parts.partitions:
        if not (hide_names and each.private):
            yield each.type, f"{number(each.allocatable)} of {number(each.total)} still fit"
    for capacity in parts.shared:
        yield capacity.name, f"{capacity.available} of {capacity.total} left to share"


def _pools(pools: Sequence[PoolReport]) -> str:
    """`3 pools: 1 free, 2 full`."""
    states = Counter(pool.vacancy for pool in pools)
    said = ", ".join(f"{number(states[state])} {state}" for state in Vacancy if states[state])
    return f"{counted_noun(len(pools), 'pool')}: {said}" if pools else "no pool"
