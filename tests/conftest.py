"""Switches of the test run."""

import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.controlplane.fixtures import helm3, helm4, plane  # noqa: F401 - shared by all tests of a run

# A busy machine is no fault of the code: neither an example nor the making of it is timed.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# The tests' own calls to the control plane, some of them in threads, are not what a test finds in the log.
logging.getLogger("httpx").setLevel(logging.WARNING)

# A shell's background job is started with this signal ignored, which the programs under test would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def log_level() -> Iterator[None]:
    """Whoever runs the server in this process says what is logged, and must not say it for the tests after it."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-cases", action="store_true", help="rewrite `want` of stories whose answer has changed")
    parser.addoption("--update-openapi", action="store_true", help="rewrite the description of the API, examples too")
    parser.addoption("--update-screenshots", action="store_true", help="take the pictures of docs/img anew")
