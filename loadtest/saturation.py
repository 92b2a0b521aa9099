"""Server CPU per answered review while 16 connections keep the server busy, by wrk.

Not requests a second: on a shared machine those tell what the neighbours do. What the server's own clock says per
request is what a whole core of it would give.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtest.latency import CLIENT_CORE
from loadtest.payloads import Review
from loadtest.servers import Running, pinned
from tests.controlplane.build import CannotBuild

CONNECTIONS = 16

_SCRIPT = Path(__file__).with_name("closed_loop.lua")
_GRACE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Cost:
    """One run against one server."""

    micros: float
    """Of the server's CPU, per review."""
    busy: float
    """Share of the time that the server's core worked for it; near 1, or it was not saturated."""


def cost(server: Running, reviews: Sequence[Review], seconds: int) -> Cost:
    """Post the reviews in turn for so long. Raises `CalledProcessError`, `CannotBuild` where wrk is missing."""
    if shutil.which("wrk") is None:
        raise CannotBuild("wrk is missing: as root, apt-get install wrk")
    with tempfile.TemporaryDirectory() as folder:
        for number, review in enumerate(reviews):
            Path(folder, str(number)).write_bytes(review.body)
        paths = [review.kind.path for review in reviews]
        wrk = [
            "wrk",
            "-t1",
            f"-c{CONNECTIONS}",
            f"-d{seconds}s",
            f"-s{_SCRIPT}",
            server.url(""),
            "--",
            folder,
            *paths,
        ]
        began, before = time.perf_counter(), server.cpu_seconds()
        ran = subprocess.run(  # noqa: S603 - our own command
            pinned(CLIENT_CORE, wrk), check=True, stdout=subprocess.PIPE, timeout=seconds + _GRACE_SECONDS, text=True
        )
        used, took = server.cpu_seconds() - before, time.perf_counter() - began
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["answers"], told
    assert not told["refused"] + told["failed"], told
    return Cost(micros=used / told["answers"] * 1e6, busy=used / took)
