"""What a reader can do with the page: filter, sort, follow a link, leave it open; also without JavaScript."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.browser import Visitor
from tests.browser.files import FileServer
from tests.browser.page import CapacityPage
from tests.controlplane.waiting import until
from tests.web.tiny_cluster import CLUSTER

with_and_without_scripts = pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])


@with_and_without_scripts
def test_the_form_filters_by_class_and_state_and_the_address_says_so(
    visitor: Visitor, example: FileServer, *, scripts: bool
) -> None:
    tab = visitor.opens(example.url, java_script_enabled=scripts)
    page = CapacityPage(tab)
    page.by_class.fill("gpu")
    page.by_state.select_option("full")
    page.submit.click()
    assert page.names() == ["gpu-legacy", "gpu.example.com"]
    assert "class=gpu" in tab.url
    assert "state=full" in tab.url
    assert page.by_class.input_value() == "gpu"
    assert page.by_state.input_value() == "full"


@with_and_without_scripts
@pytest.mark.parametrize("state", ["free", "full", "unknown"])
def test_a_state_in_the_address_shows_the_classes_in_that_state(
    visitor: Visitor, example: FileServer, state: str, *, scripts: bool
) -> None:
    page = CapacityPage(visitor.opens(example.url, f"/?state={state}", java_script_enabled=scripts))
    wanted = sorted(name for name, said in example.classes().items() if said["vacancy"] == state)
    assert page.names() == wanted != []


@with_and_without_scripts
def test_sorted_by_free_devices_the_most_come_first(visitor: Visitor, example: FileServer, *, scripts: bool) -> None:
    tab = visitor.opens(example.url, java_script_enabled=scripts)
    page = CapacityPage(tab)
    page.sort.select_option("free")
    page.submit.click()
    said = example.classes()
    free = [said[name]["available"] for name in page.names()]
    assert None in free
    assert free == sorted(free, key=lambda each: -1 if each is None else each, reverse=True)


@with_and_without_scripts
def test_a_link_leads_to_the_class(visitor: Visitor, example: FileServer, *, scripts: bool) -> None:
    tab = visitor.opens(example.url, "/#mig-whole", java_script_enabled=scripts, viewport={"width": 360, "height": 640})
    page = CapacityPage(tab)
    expect(page.card("mig-whole").link).to_be_in_viewport()
    expect(page.card("fpga").link).not_to_be_in_viewport()
    page.card("gpu-t4").link.click()
    assert tab.url.endswith("#gpu-t4")


def test_a_card_says_how_old_its_numbers_are_and_the_exact_time_on_hover(visitor: Visitor, example: FileServer) -> None:
    page = CapacityPage(visitor.opens(example.url))
    counted, live = page.card("gpu.example.com"), page.card("gpu-t4")
    assert counted.age.inner_text() == "counted 37s ago"
    assert "2026-01-01T11:59:23Z" in (counted.age.locator("time").get_attribute("title") or "")
    assert live.age.inner_text() == "seen live"
    assert (counted.source.inner_text(), live.source.inner_text()) == ("both", "witness")


def test_a_name_that_leads_to_another_class_says_so(visitor: Visitor, example: FileServer) -> None:
    page = CapacityPage(visitor.opens(example.url))
    lines = page.card("gpu-legacy").names.locator("li").all_inner_texts()
    assert [line for line in lines if line.startswith("example.com/gpu ") and "shadowed by gpu.example.com" in line]
    own = page.card("gpu.example.com").names.locator("li").all_inner_texts()
    assert own[0].startswith("example.com/gpu explicit")
    assert own[1:] == ["deviceclass.resource.kubernetes.io/gpu.example.com implicit"]


def test_devices_that_are_not_alike_are_flagged_behind_their_name(visitor: Visitor, example: FileServer) -> None:
    page = CapacityPage(visitor.opens(example.url))
    unequal, alike = page.card("gpu.example.com").meaning, page.card("gpu-l4").meaning
    assert "unequal devices" in unequal.inner_text()
    assert "unequal" not in alike.inner_text()
    unequal.locator("summary").click()
    assert "40Gi (4) to 80Gi (4)" in unequal.inner_text()


def test_without_scripts_everything_unfolds_and_the_page_asks_to_be_loaded_again(
    visitor: Visitor, example: FileServer
) -> None:
    tab = visitor.opens(example.url, java_script_enabled=False)
    page = CapacityPage(tab)
    for name, card in page.each():
        for details in card.details.all():
            before = details.get_attribute("open")
            details.locator(":scope > summary").click()
            assert details.get_attribute("open") != before, name
    assert tab.locator('meta[http-equiv="refresh"]').count() == 1


def test_an_empty_cluster_is_told_what_to_do_next(visitor: Visitor, serving: Callable[[str], FileServer]) -> None:
    page = CapacityPage(visitor.opens(serving("empty").url))
    assert page.cards.count() == 0
    assert "device class" in page.tab.locator("main").inner_text().lower()


# --- Left open --------------------------------------------------------------------------------------------------------


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[tuple[FileServer, Path]]:
    """A server of a file that a test may change."""
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    with FileServer(file, tmp_path) as server:
        yield server, file


def test_an_open_page_follows_the_cluster_and_keeps_what_was_unfolded_and_typed(
    visitor: Visitor, changing: tuple[FileServer, Path]
) -> None:
    server, file = changing
    tab = visitor.opens(server.url, own_clock=True)
    page = CapacityPage(tab)
    card = page.card("roomy")
    assert card.big.inner_text() == "1 of 1 free"
    card.meaning.locator("summary").click()
    page.by_class.fill("ro")

    file.write_text(CLUSTER.replace("device: gpu-0}", "device: gpu-1}"))
    until("file read", lambda: server.classes()["roomy"]["available"] == 0)
    tab.clock.run_for("02:00")
    expect(card.big).to_have_text("0 of 1 free")
    expect(page.card("full").big).to_have_text("1 of 1 free")
    assert card.meaning.evaluate("it => it.open")
    assert not page.card("full").meaning.evaluate("it => it.open")
    assert page.by_class.input_value() == "ro"
    assert page.by_class.evaluate("it => it === document.activeElement")
