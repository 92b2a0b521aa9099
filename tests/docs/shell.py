"""A place to type commands of the documents: a checkout in which nothing of the real one is written to."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.controlplane.process import Server
from tests.controlplane.waiting import until
from tests.docs.blocks import Command
from tests.test_docs import ROOT

ENDLESS = {
    "make run": " ready ",
    "kubectl vacancy capacity --watch": "CLASS",
    "vacancy serve": '"msg": "ready"',
    ".venv/bin/vacancy serve": '"msg": "ready"',
}
"""How commands start that run until Ctrl-C, and what they print when they are well under way."""


class Shell:
    """Runs commands as they are written, in `folder`."""

    def __init__(self, folder: Path, environment: Mapping[str, str], programs: Mapping[str, Path]) -> None:
        """`environment`: beside HOME and PATH. `programs`: what else is found by these names."""
        self.folder = folder / "checkout"
        self.folder.mkdir()
        for path in ROOT.iterdir():
            if path.name == ".venv" or not path.name.startswith((".", "tls", "build", "dist")):
                (self.folder / path.name).symlink_to(path)
        found = folder / "bin"
        found.mkdir()
        for name, program in programs.items():
            (found / name).symlink_to(program)
        path = os.pathsep.join((str(found), str(Path(sys.executable).parent), os.environ["PATH"]))
        self._environment = {"PATH": path, "HOME": str(folder), **environment}
        self._log = folder / "log"

    def run(self, command: str, below: str = ".") -> subprocess.CompletedProcess[str]:
        """Run it to its end, in a folder of the checkout. A failure anywhere in a pipe is one of the whole."""
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder / below,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def start(self, command: str, *before: str) -> Server:
        """Start what runs until Ctrl-C, and return when it is under way. `before`: the words of what runs it."""
        self._log.unlink(missing_ok=True)
        script = f"cd {self.folder} && exec {command}"
        # A session of its own, as a terminal's: `interrupt` reaches all its processes.
        server = Server(["setsid", *before, "bash", "-c", script], self._log, self._environment)
        wanted = next(text for start, text in ENDLESS.items() if command.startswith(start))
        server.wait(lambda: wanted in self.log)
        return server

    @staticmethod
    def interrupt(server: Server) -> int:
        """Ctrl-C, and a second one where the first is not enough; the exit code."""
        for _ in range(2):
            with suppress(ProcessLookupError, TimeoutError):
                os.killpg(server.pid, signal.SIGINT)
                until("ended", lambda: server.exit_code is not None, seconds=0.5)
        until("ended", lambda: server.exit_code is not None)
        server.stop()
        return server.exit_code or 0

    @property
    def log(self) -> str:
        """What the last command that was started has printed so far."""
        return self._log.read_text()

    def type(self, command: Command, *, instead: Mapping[str, str], below: str = ".") -> str:
        """Run it, with these words in the place of others, and give what it prints. It must end as it says it does."""
        text = command.text
        for placeholder, given in instead.items():
            text = text.replace(placeholder, given)
        if text.startswith(tuple(ENDLESS)):
            server = self.start(text)
            code, printed, complained = self.interrupt(server), self.log, ""
        else:
            ran = self.run(text, below)
            code, printed, complained = ran.returncode, ran.stdout, ran.stderr
        assert code == command.exit_code, f"{text}: exit {code}\n{printed}{complained}"
        assert command.says in printed, f"{text}\n{printed}"
        return printed
