"""A browser for each file of tests, a visitor for each test, and servers over files for the whole run."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.browser import Visitor, chromium
from tests.browser.files import EXAMPLE, FileServer

HERE = Path(__file__).parent

WORLDS = {
    "example": (EXAMPLE,),
    "pool statuses alone": (EXAMPLE, "--source=pool-status"),
    "hidden names": (EXAMPLE, "--hide-names=true"),
    "empty": (HERE / "empty.yaml",),
    "hostile": (HERE / "hostile.yaml",),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the run: while it is there an event loop counts as running, and tests elsewhere run their own."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    visitor = Visitor(browser)
    yield visitor
    visitor.close()
    assert visitor.complaints == []


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], FileServer]]:
    """The server of a world, started when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def server(world: str) -> FileServer:
            manifests, *flags = WORLDS[world]
            return stack.enter_context(FileServer(manifests, tmp_path_factory.mktemp("served"), *flags))

        yield server


@pytest.fixture(scope="session")
def example(serving: Callable[[str], FileServer]) -> FileServer:
    return serving("example")
