"""A server in the background: its log in a file, waited for until it is ready, ended by its own process id."""

import atexit
import secrets
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.controlplane.waiting import until

_GRACE_SECONDS = 10.0
_TAIL_BYTES = 4_000


class NotReady(Exception):
    """A server ended, or didn't get ready in time. The message closes with the end of its log."""


class Server:
    """One program that runs until `stop`, or until this interpreter exits."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        """`environment`: all of it; by default that of this interpreter."""
        self._program = Path(command[0]).name
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )
        atexit.register(self.stop)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """As a shell would say it; None while it runs."""
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    def terminate(self) -> None:
        """SIGTERM. Return at once."""
        self._process.terminate()

    def wait(self, ready: Callable[[], bool]) -> None:
        """Return as soon as `ready` says so. Raises `NotReady`."""
        try:
            until(f"{self._program} ready", lambda: self._process.poll() is not None or ready())
        except TimeoutError as late:
            raise NotReady(f"{late}{self._end_of_log()}") from late
        if (status := self._process.poll()) is not None:
            raise NotReady(f"{self._program} ended with status {status} before it was ready{self._end_of_log()}")

    def stop(self) -> None:
        """SIGTERM, and SIGKILL after a grace period. Return when the process is gone; a second call does nothing."""
        self.terminate()
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        atexit.unregister(self.stop)

    def kill(self) -> None:
        """SIGKILL at once. Return when the process is gone."""
        self._process.kill()
        self._process.wait()
        atexit.unregister(self.stop)

    def _end_of_log(self) -> str:
        return f"; {self._log} ends with\n{self._log.read_bytes()[-_TAIL_BYTES:].decode(errors='replace')}"


def free_port() -> int:
    """A free loopback port below the ephemeral range: no outgoing connection takes it before its server does."""
    while True:
        port = 20_000 + secrets.randbelow(32_768 - 20_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
