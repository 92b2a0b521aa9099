"""For everybody: axe-core's rules, the keyboard alone, a small phone, paper."""

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.browser import NARROW, WIDE, Visitor
from tests.browser.files import FileServer
from tests.browser.page import CapacityPage

PAGES = {
    "the page": ("example", "/"),
    "the filtered page": ("example", "/?class=gpu&state=full&sort=free"),
    "the filtered page without a match": ("example", "/?class=none"),
    "the page of long names": ("hostile", "/"),
    "the page of an empty cluster": ("empty", "/"),
    "the API's page": ("example", "/docs"),
}

every_page = pytest.mark.parametrize(("world", "path"), PAGES.values(), ids=PAGES)


def violations(tab: Page) -> str:
    """What axe-core finds, with the places; empty: nothing."""
    found = Axe().run(tab)
    return found.generate_report() if found.violations_count else ""


@every_page
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_rule_of_axe_is_broken(
    visitor: Visitor, serving: Callable[[str], FileServer], world: str, path: str, scheme: str
) -> None:
    tab = visitor.opens(serving(world).url, path, color_scheme=scheme)
    CapacityPage(tab).open_all()
    for width in (WIDE, NARROW):
        tab.set_viewport_size({"width": width, "height": 900})
        assert violations(tab) == ""


def test_axe_would_find_what_cannot_be_read(visitor: Visitor, example: FileServer) -> None:
    tab = visitor.opens(example.url)
    tab.evaluate("document.querySelector('h1').style.color = '#eee'")
    assert "color-contrast" in violations(tab)


@every_page
def test_nothing_is_scrolled_sideways_on_a_small_phone(
    visitor: Visitor, serving: Callable[[str], FileServer], world: str, path: str
) -> None:
    tab = visitor.opens(serving(world).url, path, viewport={"width": NARROW, "height": 640})
    page = CapacityPage(tab)
    assert page.too_wide() == 0
    page.open_all()
    assert page.too_wide() == 0


def test_the_line_of_the_last_hour_says_in_words_what_it_shows(visitor: Visitor, example: FileServer) -> None:
    for _, card in CapacityPage(visitor.opens(example.url)).each():
        expect(card.history).to_have_role("img")
        expect(card.history).to_have_accessible_name(re.compile(r"\d free (now|in the last )|^Not known"))


# --- The keyboard alone -----------------------------------------------------------------------------------------------


def steps(tab: Page) -> list[str]:
    """What Tab reaches one after the other, until the page's end; each must show that it has the focus."""
    reached = []
    while True:
        tab.keyboard.press("Tab")
        focus = tab.evaluate(
            """() => {
                const it = document.activeElement, style = getComputedStyle(it)
                if (it === document.body) return null
                const card = it.closest('article.card')
                return {
                    tag: it.localName, field: it.name || '', card: card ? card.id : '',
                    ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1,
                }
            }"""
        )
        if focus is None or len(reached) > 500:
            return reached
        assert focus["ring"], focus
        reached.append(f"{focus['card']} {focus['field'] or focus['tag']}".strip())


def test_the_keyboard_reaches_the_filter_then_every_card_and_what_unfolds_in_it(
    visitor: Visitor, example: FileServer
) -> None:
    tab = visitor.opens(example.url)
    page = CapacityPage(tab)
    reached = steps(tab)
    fields = [each for each in reached if each in {"class", "state", "sort"}]
    assert fields == ["class", "state", "sort"]
    assert "button" in reached
    cards = [each for each in reached if each.partition(" ")[0] in page.names()]
    assert reached.index("button") < reached.index(cards[0])
    assert [name for name in page.names() if f"{name} a" not in cards] == []
    for name, card in page.each():
        assert cards.count(f"{name} summary") == card.details.count() > 0


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_key_unfolds_and_folds(visitor: Visitor, example: FileServer, key: str) -> None:
    tab = visitor.opens(example.url)
    details = CapacityPage(tab).card("gpu-l4").meaning
    details.locator("summary").focus()
    for is_open in (True, False):
        tab.keyboard.press(key)
        assert details.evaluate("it => it.open") is is_open


def test_the_keyboard_filters(visitor: Visitor, example: FileServer) -> None:
    tab = visitor.opens(example.url)
    page = CapacityPage(tab)
    page.by_class.focus()
    tab.keyboard.type("mig")
    with tab.expect_navigation():
        tab.keyboard.press("Enter")
    assert page.names() == ["mig-half", "mig-whole"]


# --- Paper ------------------------------------------------------------------------------------------------------------


def test_paper_shows_what_is_folded_on_a_screen(visitor: Visitor, example: FileServer) -> None:
    tab = visitor.opens(example.url)
    card = CapacityPage(tab).card("gpu.example.com")
    inside = card.meaning.locator(":scope > :not(summary)").first
    assert not inside.is_visible()
    tab.emulate_media(media="print")
    assert inside.is_visible()
    assert card.counts()
