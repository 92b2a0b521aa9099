"""What a reader asks to see of the capacity page, in its address."""

import re

import pytest

from tests.builders import device_class, resource_claim, resource_slice
from tests.web.reader import Reader


def a_class(name: str, devices: int, *, taken: int = 0, slices: int = 1) -> list[object]:
    """A class with a driver and a pool of its own."""
    driver = f"{name}.example.com"
    held = [f"gpu-{i}" for i in range(taken)]
    objects: list[object] = [
        device_class(name, driver=driver, declares=f"example.com/{name}-card"),
        resource_slice(devices, pool=name, driver=driver, slices=slices),
    ]
    if taken:
        objects.append(resource_claim(*held, name=name, pool=name, driver=driver, consumers=["p1"]))
    return objects


@pytest.fixture(scope="module")
def page() -> Reader:
    objects = [
        *a_class("a100", 4, taken=4),
        *a_class("b200", 2, slices=2),
        *a_class("h100", 8, taken=3),
        *a_class("l4", 2),
        device_class("none", driver="none.example.com"),
    ]
    return Reader(*objects)  # type: ignore[arg-type]  # objects of the cluster


BY_NAME = ["a100", "b200", "h100", "l4", "none"]

VIEWS: dict[str, tuple[str, list[str]]] = {
    "all, by name": ("", BY_NAME),
    "part of a name": ("class=100", ["a100", "h100"]),
    "in any case, with space around it": ("class=+L4+", ["l4"]),
    "part of the name a pod asks by": ("class=b200-c", ["b200"]),
    "free": ("state=free", ["h100", "l4"]),
    "full": ("state=full", ["a100"]),
    "empty": ("state=empty", ["none"]),
    "unknown": ("state=unknown", ["b200"]),
    "both": ("class=a1&state=full", ["a100"]),
    "the most free first, unknown last": ("sort=free", ["h100", "l4", "a100", "none", "b200"]),
    "by state": ("sort=state", ["h100", "l4", "a100", "none", "b200"]),
    "a state there is not": ("state=broken", BY_NAME),
    "a state there is not, and a name": ("state=broken&class=100", BY_NAME),
    "an order there is not": ("sort=age", BY_NAME),
    "a word there is not": ("colour=red&class=", BY_NAME),
    "nothing is like that": ("class=xyz", []),
    "a text longer than any name": (f"class={'a' * 300}", []),
}


@pytest.mark.parametrize("case", VIEWS)
def test_a_view(page: Reader, case: str) -> None:
    query, names = VIEWS[case]
    assert page.names(f"/?{query}") == names


def test_what_is_not_understood_is_said(page: Reader) -> None:
    for address in ("/?state=broken", "/?sort=age", "/?state=full&sort=age"):
        assert "The address asks for a state or an order that there is not" in page.words(address)
    assert "The address asks for" not in page.words("/?state=full")


def test_nothing_found_leads_back_to_all(page: Reader) -> None:
    assert "There is none with such a name and state. Show 5 classes" in page.words("/?class=xyz")


def test_the_form_holds_what_was_asked_for(page: Reader) -> None:
    text = page.text("/?class=%22x%22&state=full&sort=free")
    assert 'name=class value="&#34;x&#34;"' in text
    assert "<option selected>full" in text
    assert "<option selected>free" in text


def test_states_are_links_that_keep_the_rest_of_the_view(page: Reader) -> None:
    links = re.findall(
        r'<a(?: class=(\w+))? href="(\?[^"]*)"( aria-current=true)?>(\d+ \w+)', page.text("/?sort=free&state=full")
    )
    assert links == [
        ("", "?sort=free", "", "5 classes"),
        ("free", "?state=free&amp;sort=free", "", "2 free"),
        ("full", "?state=full&amp;sort=free", " aria-current=true", "1 full"),
        ("empty", "?state=empty&amp;sort=free", "", "1 empty"),
        ("unknown", "?state=unknown&amp;sort=free", "", "1 unknown"),
    ]


def test_states_are_counted_among_the_classes_of_the_name(page: Reader) -> None:
    assert re.findall(r'<a[^>]*href="\?[^>]*>(\d+ \w+)</a>', page.text("/?class=100")) == [
        "2 classes",
        "1 free",
        "1 full",
    ]


def test_a_class_can_be_linked_to(page: Reader) -> None:
    assert '<a href="#h100">h100</a>' in page.card("h100")
