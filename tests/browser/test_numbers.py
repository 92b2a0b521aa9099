"""What the page says is what the API says; what is not known is never a zero."""

import re
from collections.abc import Callable

import pytest

from tests.browser.browser import Visitor
from tests.browser.files import FileServer
from tests.browser.page import CapacityPage, assert_shows


@pytest.mark.parametrize("world", ["example", "pool statuses alone", "hidden names", "hostile"])
def test_page_and_api_say_the_same_of_every_class(
    visitor: Visitor, serving: Callable[[str], FileServer], world: str
) -> None:
    server = serving(world)
    page, said = CapacityPage(visitor.opens(server.url)), server.classes()
    assert page.names() == sorted(said)
    for name, card in page.each():
        assert_shows(card, said[name])


@pytest.mark.parametrize(
    ("world", "name", "why", "age"),
    [
        ("example", "gpu-new", "a pool is not completely published", "seen live"),
        ("pool statuses alone", "gpu-t4", "no current count of the devices", "not counted"),
    ],
    ids=["of a pool half of which is published", "of a driver that gave no status"],
)
def test_what_is_not_known_is_written_unknown_with_its_reason_and_nowhere_as_zero(  # noqa: PLR0913 - a row
    visitor: Visitor, serving: Callable[[str], FileServer], *, world: str, name: str, why: str, age: str
) -> None:
    server = serving(world)
    said = server.classes()[name]
    assert said["vacancy"] == "unknown"
    assert said["available"] is None  # else this test is of something else
    card = CapacityPage(visitor.opens(server.url)).card(name)
    assert "unknown" in card.big.inner_text()
    assert "unknown" in card.state.inner_text()
    assert why in card.root.inner_text().lower()
    assert card.age.inner_text() == age
    assert {each["available"] for each in card.counts()} == {"unknown"}
    assert not re.search(r"\b0\b", card.root.inner_text())


@pytest.mark.parametrize(
    ("world", "driver"), [("example", "newgpu.example.com"), ("pool statuses alone", "inference.example.com")]
)
def test_a_driver_of_which_too_little_is_known_is_named(
    visitor: Visitor, serving: Callable[[str], FileServer], world: str, driver: str
) -> None:
    page = CapacityPage(visitor.opens(serving(world).url))
    assert "unknown" in page.driver(driver).inner_text()


def test_hidden_names_are_nowhere_in_the_page(
    visitor: Visitor, serving: Callable[[str], FileServer], example: FileServer
) -> None:
    pools = [pool for said in example.classes().values() for pool in said["pools"]]
    secret = {name for pool in pools for name in (pool["pool"], pool["node"])}
    assert "gpu-node-1" in secret
    shown = visitor.opens(serving("hidden names").url).content()
    assert [name for name in secret if name in shown] == []
    assert "gpu-node-1" in visitor.opens(example.url).content()
