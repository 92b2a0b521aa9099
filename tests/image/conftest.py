"""The image that all tests here share: built and pushed twice."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.image.base import NAME, base
from tests.image.container import IMAGE
from tests.image.layout import Layout
from tests.image.store import Store

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = "https://example.com/vacancy"  # what a release would say of itself

_seconds: dict[str, float] = {}


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Take the time, for the summary of the test run."""
    started = time.monotonic()
    yield
    _seconds[what] = time.monotonic() - started


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _seconds:
        steps = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in _seconds.items())
        terminalreporter.write_line(f"image: {steps}")


@dataclass(frozen=True, slots=True)
class Build:
    """One run of the project's own script, and what a registry would get of it."""

    store: Store
    id: str
    layout: Layout


Builds = tuple[Build, Build]


def build(store: Store) -> Build:
    id_ = store.run([ROOT / "scripts" / "image.sh"], IMAGE=IMAGE, PYTHON_IMAGE=NAME, SOURCE=SOURCE)
    layout = Layout(store.home / "layout")
    store.run(["buildah", "push", "--quiet", IMAGE, f"oci:{layout.home}"])
    return Build(store, id_, layout)


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builds]:
    """Two builds that share nothing but their base."""
    with step("base"):
        shared = base()
    stores = [Store(tmp_path_factory.mktemp("image"), (shared,)) for _ in range(2)]
    try:
        with step("two builds"), ThreadPoolExecutor() as builders:
            first, second = builders.map(build, stores)
        yield first, second
    finally:
        for store in stores:
            store.run(["buildah", "rmi", "--all", "--force"])
            shutil.rmtree(store.home, ignore_errors=True)  # podman's own processes may still be tidying up


@pytest.fixture(scope="session")
def image(builds: Builds) -> Layout:
    return builds[0].layout


@pytest.fixture(scope="session")
def commit() -> tuple[str, int]:
    """The commit of this checkout, and its time."""
    command = ["git", "log", "-1", "--format=%H %ct"]
    name, seconds = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return name, int(seconds)
