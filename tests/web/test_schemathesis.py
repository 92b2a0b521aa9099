"""The live server and its description, held against each other by requests that nobody would think of."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CLOCK = "2026-01-01T12:00:00Z"
EXAMPLES = 100
"""Of each operation at most, beside those of its description and at the bounds of its parameters: some seconds."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of the web listener of `vacancy serve`, in a process of its own, with the example cluster."""
    command = [sys.executable, "-m", "app", "serve", "--manifests", "examples/cluster", "--now", CLOCK]
    command += ["--listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        log = map(json.loads, process.stdout)
        yield next(line["web"] for line in log if line["msg"] == "ready")
        process.kill()


def test_the_server_does_what_its_description_says(
    address: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """By every check there is; its seed is that of the run."""
    seed = request.config.getoption("randomly_seed", 1)
    command = [SCHEMATHESIS, "run", f"http://{address}/openapi.json", "--checks=all", f"--max-examples={EXAMPLES}"]
    command += [f"--seed={seed}", "--generation-database=none", "--no-color"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert re.search(r" ([1-9]\d*) selected / \1 total", done.stdout)
