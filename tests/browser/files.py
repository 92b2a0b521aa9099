"""`vacancy serve` over files, as a process of its own, with the clock of the example: every run sees the same page."""

import json
import os
import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.controlplane.process import Server

ROOT = Path(__file__).resolve().parents[2]

EXAMPLE = ROOT / "examples" / "cluster"
NOW = "2026-01-01T12:00:00Z"
"""The example's time."""


class FileServer:
    """One process, running from its making until `stop`; its log is in `folder`."""

    def __init__(self, manifests: Path, folder: Path, *flags: str) -> None:
        """`flags`: of `vacancy serve`, as NAME=VALUE. Returns when the process says that it is ready."""
        words = {"manifests": manifests, "now": NOW, "listen": "127.0.0.1:0", "web-listen": "127.0.0.1:0"}
        flags = (*(f"--{name}={value}" for name, value in words.items()), *flags)
        self._log = folder / "log"
        self._server = Server([sys.executable, "-m", "app", "serve", *flags], self._log)
        self._server.wait(lambda: bool(self.url))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """An orderly stop; a second signal skips the time in which endpoints would move."""
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(self._server.pid, number)
        self._server.stop()

    @property
    def url(self) -> str:
        """Of its web listener, without a slash at the end; empty: not yet there."""
        whole, _, _ = self._log.read_text().rpartition("\n")
        log = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
        return next((f"http://{line['web']}" for line in log if line["msg"] == "ready"), "")

    def classes(self) -> dict[str, dict[str, Any]]:
        """What the API says, by class."""
        answered = httpx.get(f"{self.url}/api/v1/capacity", trust_env=False).raise_for_status()
        return {each["name"]: each for each in answered.json()["classes"]}
