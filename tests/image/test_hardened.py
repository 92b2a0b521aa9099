"""The image does its work with nothing it could do without: no root, no right, no writable file, no shell, 128 MiB."""

import datetime
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.listeners import GRACE_SECONDS
from app.serve import DRAIN_SECONDS
from app.version import version
from tests.image.conftest import Builds, step
from tests.image.container import EXAMPLES, HARDENED, IMAGE, SHELLS, TIMEOUT, USER, Container, serving
from tests.image.store import Store


@pytest.fixture(scope="module")
def store(builds: Builds) -> Store:
    return builds[0].store


@pytest.fixture(scope="module")
def container(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    with serving(store, tmp_path_factory.mktemp("serving")) as container:
        yield container


def test_it_refuses_a_pod_over_tls(container: Container) -> None:
    status, body = container.review((EXAMPLES / "reviews" / "full.json").read_bytes())
    response = json.loads(body)["response"]
    assert (status, response["allowed"], response["status"]["code"]) == (200, False, 403)
    assert "example.com/gpu" in response["status"]["message"]


def test_it_has_no_right_and_gets_none(container: Container) -> None:
    status = container.status()
    assert status["Uid"].split() == status["Gid"].split() == [str(USER)] * 4
    assert {status[f"Cap{which}"] for which in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_it_writes_nothing(container: Container) -> None:
    mounts = container.mounts()
    assert {mounts[path].split(",")[0] for path in ("/", "/cluster", "/tls")} == {"ro"}
    assert "/tmp" not in mounts  # noqa: S108 - nowhere to write
    changes = json.loads(container.store.run(["podman", "diff", "--format=json", container.name]))
    mounted = {"/cluster", "/tls", *SHELLS}
    assert {path for paths in changes.values() for path in paths} <= mounted | {"/usr", "/usr/bin", "/etc", "/run"}


def test_it_needs_no_shell(container: Container) -> None:
    with pytest.raises(AssertionError, match=r'"sh": executable file not found'):
        container.store.run(["podman", "exec", container.name, "sh", "-c", "true"])


def test_it_says_its_version(store: Store) -> None:
    assert store.run(["podman", "run", *HARDENED, IMAGE, "--version"]) == f"vacancy {version()}"


def test_told_to_stop_it_drains_and_ends_well(store: Store, tmp_path: Path) -> None:
    with serving(store, tmp_path) as container, step("drain"):
        container.signal(signal.SIGTERM)
        told, stopped = (logged(container, message) for message in ("told to stop, draining", "stopped"))
        assert container.process.wait(TIMEOUT) == 0
    drained = (stopped - told).total_seconds()
    assert DRAIN_SECONDS <= drained < DRAIN_SECONDS + GRACE_SECONDS


def logged(container: Container, message: str) -> datetime.datetime:
    """When it says that, by its own clock: podman needs seconds to tell on a busy machine."""
    return next(datetime.datetime.fromisoformat(line["ts"]) for line in container.log if line["msg"] == message)
