"""Switches of the test run."""

import pytest

from tests.controlplane.fixtures import plane  # noqa: F401 - the control plane all live tests share


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-cases", action="store_true", help="rewrite `want` of stories whose answer has changed")
