"""Servers to measure, each a process of its own pinned to one core: ours as it is installed, and its peers."""

import functools
import http.client
import json
import os
import re
import ssl
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from certs.serving import throwaway_pair
from loadtest.build import programs
from loadtest.cluster import FREE, FULL, NOW, write_cluster
from loadtest.payloads import KINDS, body
from tests.controlplane.process import Server, free_port

SERVER_CORE = 0

OURS, FLOOR, MINIMAL, WHOLE, PYDANTIC = "vacancy", "floor", "gominimal", "gofull", "pydantic"

_TABLE = (f"{FREE}=4000", f"{FULL}=0")
_CHECKOUT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers."""

    name: str
    address: str
    """`host:port`."""
    ca: Path
    pid: int

    def url(self, path: str) -> str:
        """Where a review is posted."""
        return f"https://{self.address}{path}"

    def cpu_seconds(self) -> float:
        """What all its threads have used so far, also those that have ended."""
        return time.clock_gettime(~self.pid << 3 | 2)  # how Linux writes "the CPU clock of that process"

    def resident_mb(self) -> float:
        """Memory it holds now, in MB of 2**20 bytes."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text(encoding="ascii"))
        assert found
        return int(found[1]) / 1024

    def answer(self, path: str, body: bytes) -> bytes:
        """What it says to one review, on a connection of its own. Raises `OSError`, `HTTPException`."""
        context = ssl.create_default_context(cafile=self.ca)
        connection = http.client.HTTPSConnection(self.address, timeout=10, context=context)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        assert response.status == 200, (response.status, content)  # noqa: PLR2004 - the status code is its own name
        return content


@contextmanager
def serving(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Running]]:
    """Servers of these names that say what they should, until the end; their files are in `folder`.

    Idle ones cost nothing, so all may run at once. Raises `CannotBuild`, `NotReady`.
    """
    ca, _, _ = throwaway_pair(["localhost"], ["127.0.0.1"], time.time()).write(folder)
    started = []
    try:
        found = {}
        for name in names:
            address = f"127.0.0.1:{free_port()}"
            server = Server(pinned(SERVER_CORE, _command(name, address, folder)), Path(os.devnull), _environment())
            started.append(server)
            found[name] = Running(name, address, ca, server.pid)
            server.wait(functools.partial(_answers, found[name]))
            _check(found[name])
        yield found
    finally:
        for server in started:
            server.kill()  # nobody waits for an answer


def pinned(core: int, command: Sequence[str]) -> list[str]:
    """The command, on that core alone."""
    return ["taskset", "--cpu-list", str(core), *command]


def _command(name: str, address: str, folder: Path) -> list[str]:
    if name == OURS:
        cluster = folder / "cluster"
        files = ["--manifests", str(cluster if cluster.exists() else write_cluster(cluster)), "--now", NOW]
        where = ["--listen", address, "--web-listen", f"127.0.0.1:{free_port()}", "--tls-dir", str(folder)]
        return [sys.executable, "-m", "app", "serve", *files, *where]
    if name in {MINIMAL, WHOLE}:
        return [str(programs() / name), address, str(folder), *_TABLE]
    module = "loadtest.peers.floor" if name == FLOOR else "loadtest.peers.pydantic_app"
    return [sys.executable, "-m", module, address, str(folder), *_TABLE]


def _environment() -> dict[str, str]:
    return os.environ | {"GOMAXPROCS": "1", "PYTHONPATH": str(_CHECKOUT)}


def _answers(running: Running) -> bool:
    try:
        running.answer("/validate", body(KINDS[0]))
    except (OSError, http.client.HTTPException):
        return False
    return True


def _check(running: Running) -> None:
    """A server that answers wrongly may be fast; it is not compared. The floor has one answer, the peers no modes."""
    for kind in KINDS if running.name != FLOOR else ():
        if running.name == OURS or kind.path == "/validate":
            allowed = json.loads(running.answer(kind.path, body(kind)))["response"]["allowed"]
            assert allowed is kind.allowed, (running.name, kind.name, allowed)
