"""The page of a real cluster follows it: its numbers are those of the API server's own objects."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.browser import Visitor
from tests.browser.page import CapacityPage, assert_shows
from tests.controlplane.client import Json
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.scene import DRA, SLICES, Scene
from tests.live.serving import Vacancy


@pytest.fixture(scope="module")
def vacancy(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vacancy]:
    with Vacancy(plane, tmp_path_factory.mktemp("browser") / "vacancy-browser", "auto") as vacancy:
        yield vacancy


@pytest.fixture
def scene(plane: ControlPlane) -> Iterator[Scene]:
    scene = Scene(plane)
    yield scene
    scene.close()


def free_in_the_cluster(scene: Scene) -> tuple[int, int]:
    """How many devices of the scene are not allocated, and how many there are, as the API server's objects say."""
    slices = [each["spec"] for each in scene.client.get(SLICES)["items"]]
    devices = {each["name"] for spec in slices if spec["driver"] == scene.driver for each in spec["devices"]}
    claims = scene.client.get(f"{DRA}/namespaces/{scene.name}/resourceclaims")["items"]
    allocations = [claim.get("status", {}).get("allocation", {}) for claim in claims]
    held = {result["device"] for each in allocations for result in each.get("devices", {}).get("results", ())}
    return len(devices - held), len(devices)


def address(scene: Scene) -> str:
    """The page of the scene's class: the cluster has those of other tests too."""
    return f"/?class={scene.name}"


def said(vacancy: Vacancy, scene: Scene) -> Json:
    """What the API says of the scene's class, without what changes by the second."""
    return {name: value for name, value in vacancy.capacity(scene.name).items() if name != "ageSeconds"}


def assert_agrees(tab: Page, vacancy: Vacancy, scene: Scene) -> None:
    """The page that is loaded between two equal answers of the API shows the same."""

    def at_rest() -> Json | None:
        before = said(vacancy, scene)
        tab.reload()
        return before if said(vacancy, scene) == before else None

    answered = until("nothing changed while the page was loaded", at_rest)
    assert_shows(CapacityPage(tab).card(scene.name), answered)


def test_numbers_follow_the_cluster_when_pods_take_devices_and_when_one_lets_go(
    visitor: Visitor, vacancy: Vacancy, scene: Scene
) -> None:
    scene.add_class()
    scene.publish(3)
    tab = visitor.opens(vacancy.url, address(scene))

    def assert_free(free: int) -> None:
        until(f"{free} free", lambda: said(vacancy, scene).get("available") == free)
        assert free_in_the_cluster(scene) == (free, 3)
        assert_agrees(tab, vacancy, scene)
        assert CapacityPage(tab).card(scene.name).big.inner_text() == f"{free} of 3 free"

    assert_free(3)
    scene.hold(scene.pod("one"), scene.pod("two"))
    assert_free(1)
    scene.hold(scene.pod("three"))
    assert_free(0)
    scene.free("one")
    until("device free", lambda: free_in_the_cluster(scene) == (1, 3))
    assert_free(1)


def test_a_pool_that_is_half_published_is_unknown_until_the_other_half_is_there(
    visitor: Visitor, vacancy: Vacancy, scene: Scene
) -> None:
    scene.add_class()
    scene.publish([{"name": "gpu-0"}], slices=2)
    until("pool seen", lambda: said(vacancy, scene).get("pools"))
    tab = visitor.opens(vacancy.url, address(scene))
    page = CapacityPage(tab)
    card = page.card(scene.name)
    assert card.vacancy == "unknown"
    assert "unknown" in card.big.inner_text()
    assert not re.search(r"\b0\b", card.big.inner_text())
    assert "unknown" in page.driver(scene.driver).inner_text()

    scene.publish([{"name": "gpu-1"}], slices=2, number=1)
    until("driver in order", lambda: tab.reload() and page.driver(scene.driver).count() == 0)
    assert card.big.inner_text() == "2 of 2 free"


def test_what_a_driver_publishes_is_text(visitor: Visitor, vacancy: Vacancy, scene: Scene) -> None:
    model = '<script>ran=1</script>"><img src=x onerror=ran=2>'
    scene.add_class()
    scene.publish([{"name": f"gpu-{each}", "attributes": {"model": {"string": model}}} for each in range(2)])
    until("devices seen", lambda: said(vacancy, scene).get("available") == 2)
    tab = visitor.opens(vacancy.url, address(scene))
    page = CapacityPage(tab)
    page.open_all()
    assert model in page.card(scene.name).root.inner_text()
    assert tab.evaluate("typeof ran") == "undefined"
