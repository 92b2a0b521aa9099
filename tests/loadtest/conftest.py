"""Servers that all tests of a run share, and a place to tell what was measured, also when all is well."""

import os
from collections.abc import Callable, Iterator, Mapping

import pytest

from loadtest.peer_rounds import ROWS
from loadtest.servers import OURS, Running, serving

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Running]]:
    """Ours and its peers, by name."""
    assert (os.cpu_count() or 1) > 1, "one core is the servers' and one the client's: expected two, found one"
    with serving(tmp_path_factory.mktemp("servers"), (OURS, *ROWS)) as running:
        yield running


@pytest.fixture(scope="session")
def tell(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Takes one line."""
    return pytestconfig.stash.setdefault(_FIGURES, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if figures := config.stash.get(_FIGURES, []):
        terminalreporter.section("measured")
        for each in figures:
            terminalreporter.write_line(each)
