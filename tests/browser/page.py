"""The capacity page as a reader sees it. What its elements are called is known here and in no test."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from playwright.sync_api import Locator, Page

COUNTS = ("total", "allocated", "available", "unavailable")


class Card:
    """One device class."""

    def __init__(self, root: Locator) -> None:
        self.root = root
        self.link = root.locator("h2 a")
        self.big = root.locator(".big")
        self.state = root.locator(".state")
        self.age = root.locator(".age")
        self.source = root.locator(".source")
        self.names = root.locator(".names")
        self.history = root.locator("svg.history")
        self.meaning = root.locator("details.meaning")
        self.details = root.locator("details")

    @property
    def vacancy(self) -> str:
        """The word of the API."""
        return self.root.get_attribute("data-vacancy") or ""

    def counts(self) -> list[Mapping[str, str]]:
        """The counts as they are written, a line a pool."""
        return [
            {name: (row.locator(f"td[data-count={name}]").text_content() or "").strip() for name in COUNTS}
            for row in self.root.locator("tr[data-driver]").all()
        ]


class CapacityPage:
    """`GET /` in a tab of a browser."""

    def __init__(self, tab: Page) -> None:
        self.tab = tab
        self.cards = tab.locator("article.card")
        self.by_class = tab.locator('form [name="class"]')
        self.by_state = tab.locator('form [name="state"]')
        self.sort = tab.locator('form [name="sort"]')
        self.submit = tab.locator("form button")

    def card(self, name: str) -> Card:
        """That of a class, by its name as it is."""
        return Card(self.tab.locator(f"article.card[id={_quoted(name)}]"))

    def driver(self, name: str) -> Locator:
        """What is said of a driver of which too little is known."""
        return self.tab.locator(f".drivers li[data-driver={_quoted(name)}]")

    def names(self) -> list[str]:
        """The classes on the page, from top to bottom."""
        return [str(card.get_attribute("id")) for card in self.cards.all()]

    def each(self) -> Iterator[tuple[str, Card]]:
        """All cards by name."""
        return ((name, self.card(name)) for name in self.names())

    def open_all(self) -> None:
        """Unfold everything."""
        self.tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")

    def too_wide(self) -> int:
        """By how many pixels the page must be scrolled sideways."""
        return int(self.tab.evaluate("(root => root.scrollWidth - root.clientWidth)(document.documentElement)"))


def written(count: int | None) -> str:
    """A count as a reader sees it."""
    return "unknown" if count is None else str(count)


def assert_shows(card: Card, said: Mapping[str, Any]) -> None:
    """The card shows what the API said of the class."""
    assert card.vacancy == said["vacancy"]
    big = card.big.inner_text()
    if said["available"] is None:
        assert "unknown" in big
        assert not re.search(r"\b0\b", big)
    else:
        assert big.startswith(str(said["available"]))
        assert said["total"] is None or big == f"{said['available']} of {said['total']} free"
    assert card.counts() == [{name: written(pool[name]) for name in COUNTS} for pool in said["pools"]]


def _quoted(text: str) -> str:
    """A string of CSS."""
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))
