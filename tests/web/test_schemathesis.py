"""The live server and its description, held against each other by requests that nobody would think of."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.files import EXAMPLE, FileServer

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
EXAMPLES = 100
"""Of each operation at most, beside those of its description and at the bounds of its parameters: some seconds."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the web listener of `vacancy serve`, in a process of its own, with the example cluster."""
    with FileServer(EXAMPLE, tmp_path_factory.mktemp("schemathesis")) as server:
        yield server.url


def test_the_server_does_what_its_description_says(
    address: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """By every check there is; its seed is that of the run."""
    seed = request.config.getoption("randomly_seed", 1)
    command = [SCHEMATHESIS, "run", f"{address}/openapi.json", "--checks=all", f"--max-examples={EXAMPLES}"]
    command += [f"--seed={seed}", "--generation-database=none", "--no-color"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert re.search(r" ([1-9]\d*) selected / \1 total", done.stdout)
