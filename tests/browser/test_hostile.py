"""Whatever names hold, the page runs nothing and loads nothing; a browser that did either would say so here."""

from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.browser.browser import Visitor
from tests.browser.files import FileServer
from tests.browser.page import CapacityPage

PAYLOADS = ("<script>ran=11</script>", '"><img src=x onerror=ran=12>', "</select><svg onload=ran=13>")


def test_names_that_are_markup_are_text(visitor: Visitor, serving: Callable[[str], FileServer]) -> None:
    server = serving("hostile")
    tab = visitor.opens(server.url)
    page = CapacityPage(tab)
    page.open_all()
    for name, said in server.classes().items():
        shown = page.card(name).root.inner_text()
        for each in (name, said["extendedResourceName"], *(pool["driver"] for pool in said["pools"])):
            assert each in shown
    shown = tab.locator("body").inner_text()
    for number in (1, 2, 3, 4, 5, 7, 8, 9, 10):
        assert f"ran={number}" in shown
    assert tab.evaluate("typeof ran") == "undefined"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_question_that_is_markup_is_text(visitor: Visitor, example: FileServer, payload: str) -> None:
    asked = quote(payload)
    for question, kept in ((f"class={asked}", payload), (f"class={asked}&state={asked}&sort={asked}", "")):
        tab = visitor.opens(example.url, f"/?{question}")
        assert CapacityPage(tab).by_class.input_value() == kept
        assert tab.evaluate("typeof ran") == "undefined"


def test_the_policy_stops_what_markup_alone_would_let_through(visitor: Visitor, example: FileServer) -> None:
    tab = visitor.opens(example.url)
    tab.evaluate(
        """() => {
            const script = document.createElement('script')
            script.textContent = 'ran = 1'
            document.body.append(script)
            document.body.insertAdjacentHTML('beforeend', '<img src="https://elsewhere.example/x.png" onerror="ran=2">')
            document.body.insertAdjacentHTML('beforeend', '<p style="color: red">red</p>')
        }"""
    )
    tab.wait_for_timeout(100)
    assert tab.evaluate("typeof ran") == "undefined"
    refused = [each for each in visitor.complaints if "Content Security Policy" in each]
    assert len(refused) >= 3  # and so every other test would have seen it
    visitor.complaints.clear()
