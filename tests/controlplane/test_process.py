"""A server never outlives who started it, and a failed start shows why."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import process
from tests.controlplane.process import NotReady, Server
from tests.controlplane.waiting import until

CHECKOUT = Path(__file__).parents[2]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_server_that_ends_at_once_shows_the_end_of_its_log(tmp_path: Path) -> None:
    server = Server(["/bin/sh", "-c", "echo no such flag; exit 3"], tmp_path / "log")
    with pytest.raises(NotReady, match=r"(?s)sh ended with status 3 before it was ready.*no such flag"):
        server.wait(lambda: False)
    server.stop()


def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_GRACE_SECONDS", 0.05)
    log = tmp_path / "log"
    server = Server(["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.01; done"], log)
    server.wait(lambda: "deaf" in log.read_text())
    server.stop()
    assert not is_running(server.pid)


def test_a_server_ends_with_the_interpreter_that_started_it(tmp_path: Path) -> None:
    start = "from pathlib import Path; from tests.controlplane.process import Server"
    script = f"{start}; print(Server(['sleep', '600'], Path({str(tmp_path / 'log')!r})).pid); 1 / 0"
    run = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert "ZeroDivisionError" in run.stderr
    assert not is_running(int(run.stdout))


def test_waiting_ends_with_what_did_not_happen() -> None:
    with pytest.raises(TimeoutError, match="the moon: not within 0 s"):
        until("the moon", lambda: None, seconds=0)
