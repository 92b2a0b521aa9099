"""The image as a cluster runs it, and stricter: nothing of what it may do without is there."""

import contextlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certs.serving import throwaway_pair
from tests.image.store import Store

IMAGE = "localhost/vacancy"
USER = 65532
TIMEOUT = 60.0  # seconds; only a hang reaches it

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
SHELLS = ("/usr/bin/dash", "/usr/bin/bash")

# The host's network: a bridge would need a firewall, and reaching the port is no part of what is tested.
HARDENED = [
    *("--rm", "--pull=never", "--network=host"),
    *("--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges"),
    *(f"--user={USER}:{USER}", "--memory=128m", "--pids-limit=64"),
    *(f"--volume=/dev/null:{shell}:ro" for shell in SHELLS),
]


@dataclass(frozen=True, slots=True)
class Container:
    """A running `vacancy serve`: its process as the host sees it, and where it answers."""

    store: Store
    name: str
    process: "subprocess.Popen[str]"
    log: Iterator[dict[str, Any]]
    """What it says from here on, line by line."""
    pid: int
    webhook: str
    authority: Path

    def review(self, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to an AdmissionReview, over TLS."""
        trust = ssl.create_default_context(cafile=self.authority)
        connection = http.client.HTTPSConnection(self.webhook, timeout=TIMEOUT, context=trust)
        with contextlib.closing(connection):
            connection.request("POST", "/validate", body, {"content-type": "application/json"})
            answered = connection.getresponse()
            return answered.status, answered.read()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal the way the kubelet does, to the first process."""
        self.store.run(["podman", "kill", f"--signal={number.name}", self.name])

    def status(self) -> dict[str, str]:
        """What the kernel says of its first process: /proc/PID/status."""
        lines = Path(f"/proc/{self.pid}/status").read_text("utf-8").splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def mounts(self) -> dict[str, str]:
        """The options of what is mounted where: /proc/PID/mountinfo."""
        lines = Path(f"/proc/{self.pid}/mountinfo").read_text("utf-8").splitlines()
        return {fields[4]: fields[5] for fields in map(str.split, lines)}


@contextlib.contextmanager
def serving(store: Store, folder: Path) -> Iterator[Container]:
    """The example cluster, served; `folder` holds the certificate. Left, it ends at once."""
    authority, *pair = throwaway_pair(["localhost"], ["127.0.0.1"], time.time()).write(folder)
    for path in (folder, *pair):
        os.chown(path, USER, USER)
    name = folder.name
    anywhere = ["--listen=127.0.0.1:0", "--web-listen=127.0.0.1:0"]
    command = [
        *("podman", "run", *HARDENED, f"--name={name}"),
        *(f"--volume={EXAMPLES / 'cluster'}:/cluster:ro", f"--volume={folder}:/tls:ro", IMAGE),
        *("serve", "--manifests=/cluster", "--now=2026-01-01T12:00:00Z", "--tls-dir=/tls", *anywhere),
    ]
    with subprocess.Popen(command, env=store.environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        log = (json.loads(line) for line in process.stdout)
        ready = next((line for line in log if line["msg"] == "ready"), None)
        assert ready is not None, "it ended before it was ready"
        try:
            pid = int(store.run(["podman", "inspect", "--format={{.State.Pid}}", name]))
            yield Container(store, name, process, log, pid, ready["webhook"], authority)
        finally:
            if process.poll() is None:
                store.run(["podman", "rm", "--force", "--time=0", name])
