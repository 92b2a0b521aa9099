"""The capacity page for every view of it, each made once for a table and kept until the next one.

Anybody may ask for views without end and hang up: all but the plain one are made one after the other, and few wait.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from app.dra.drivers import DriverView
from app.dra.words import number, some
from app.web.capacity import ClassReport
from app.web.cards import Card, Cards
from app.web.history import History
from app.web.pages import Pages
from app.web.representation import Representation, representation
from app.web.table import Kept, Table
from app.web.view import PLAIN, SORTS, STATES, View

VIEWS_AT_MOST = 8
"""Kept of one table beside the plain one: readers of a page left open come back to the same ones."""

WAITING_AT_MOST = 4
"""Views that are to be made, the one that is being made among them."""

PAGE_BYTES, CARD_BYTES, ROW_BYTES = 51_000, 1000, 230
"""A page is to stay under 60 kB, of which the style takes 7. The pools are listed where they fit in beside the cards;
sizes as measured."""

TROUBLED_AT_MOST = 20
"""Drivers that are named; the others are counted."""


class ViewsWait(Exception):
    """So many other views are to be made that this one is not."""


class CapacityPage:
    """The page."""

    def __init__(self, pages: Pages, history: History, *, version: str, hide_names: bool) -> None:
        self._pages, self._history, self._version, self._hide_names = pages, history, version, hide_names
        self._compiled, self._plain = Kept[None](), Kept[Representation]()
        self._of: Hashable = None
        self._others: dict[View, Kept[Representation]] = {}
        self._turn, self._waiting = asyncio.Lock(), 0

    async def get(self, table: Table, notice: str, switches: Mapping[str, str], view: View) -> Representation:
        """The page of a table; who asks for the same view meanwhile waits for it. Raises ViewsWait."""
        # In a thread: reviews are answered meanwhile.
        await self._compiled.get(self._pages, lambda: asyncio.to_thread(self._pages.compile))
        of = (table, notice, *switches.items(), self._history.noted)

        async def make() -> Representation:
            return await representation(self._html(table, notice, switches, view), "text/html")

        if view == PLAIN:
            return await self._plain.get(of, make)
        if of != self._of:
            self._of, self._others = of, {}
        others = self._others
        if view not in others and len(others) >= VIEWS_AT_MOST:
            del others[next(iter(others))]
        made = await others.setdefault(view, Kept()).get(of, lambda: self._in_turn(make))
        if view.all_pools:
            others.pop(view, None)  # megabytes
        return made

    async def _in_turn(self, make: Callable[[], Awaitable[Representation]]) -> Representation:
        if self._waiting >= WAITING_AT_MOST:
            raise ViewsWait
        self._waiting += 1
        try:
            async with self._turn:
                return await make()
        finally:
            self._waiting -= 1

    def _html(self, table: Table, notice: str, switches: Mapping[str, str], view: View) -> Iterator[bytes]:
        classes = table.report.classes
        named = view.named(classes)
        chosen = [row for row in named if view.state in ("", row.vacancy)]
        states = Counter(row.vacancy for row in named)
        troubled = [each for each in table.drivers if not each.is_known]
        pieces = self._pages.capacity(
            time=datetime.fromtimestamp(table.made_at, UTC).replace(second=0, microsecond=0),
            unknown=table.unknown,
            view=view,
            cards=self._cards(table, chosen, view),
            chosen=len(chosen),
            total=len(classes),
            named=_classes(len(named)),
            all_classes=_classes(len(classes)),
            states={state: states[state] for state in STATES if states[state] or state == view.state},
            every_state=STATES,
            sorts=tuple(SORTS),
            notice=notice,
            unknown_entries=table.unknown_entries,
            troubled=[(each.driver, _state(each), self._trouble(each)) for each in troubled[:TROUBLED_AT_MOST]],
            more_troubled=len(troubled[TROUBLED_AT_MOST:]),
            sources=_sources(table.drivers),
            switches=switches,
            version=self._version,
            hide_names=self._hide_names,
        )
        return (piece.encode() for piece in pieces)

    def _cards(self, table: Table, chosen: Sequence[ClassReport], view: View) -> Iterator[Card]:
        cards = Cards.of(table, hide_names=self._hide_names)
        room = (PAGE_BYTES - CARD_BYTES * len(chosen)) // ROW_BYTES
        fits = sum(len(row.pools) for row in chosen) <= room
        return (
            cards.card(row, self._history.of(row.name), with_pools=fits or view.all_pools_of(row)) for row in chosen
        )

    def _trouble(self, driver: DriverView) -> str:
        """What is wrong with a driver, and what follows."""
        said = [driver.words] if driver.words else []
        if driver.unknown_pools:
            named = [] if self._hide_names else [f"pool {pool.name} {pool.words}" for pool in driver.pools]
            if more := driver.unknown_pools - len(named):
                pools = f"{number(more)}{' more' if named else ''} {'pool' if more == 1 else 'pools'}"
                named.append(f"{pools} cannot be counted, being incomplete or contradicting")
            said += named
        one = driver.unknown_pools == 1
        follows = f"what is in {'it' if one else 'them'} is unknown" if driver.source else "all its devices are unknown"
        return f"{'; '.join(said) or 'nothing current is known of it'}; {follows}."


def _classes(count: int) -> str:
    return f"{number(count)} class{'' if count == 1 else 'es'}"


def _state(driver: DriverView) -> str:
    """`silent`, `stale` or `incomplete`, or more than one of these."""
    words = [driver.state] if driver.state else []
    if driver.unknown_pools and "incomplete" not in words:
        words.append("incomplete")
    return " and ".join(words) or "unknown"


def _sources(drivers: Sequence[DriverView]) -> str:
    """`both (gpu.example.com), witness (nic.example.com)`."""
    by_source: dict[str, list[str]] = {}
    for each in drivers:
        by_source.setdefault(each.source or "none", []).append(each.driver)
    return ", ".join(f"{source} ({some(names)})" for source, names in sorted(by_source.items()))
