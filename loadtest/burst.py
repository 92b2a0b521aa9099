"""Everything at once: 500 reviews on new connections, and a StatefulSet of 500 through a real API server.

The first is asked of a server that has a core to itself, and of one that gets a fifth of one (cgroup).
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadtest.burst_replicas import replicas
from loadtest.burst_share import Share
from loadtest.payloads import KINDS, body
from loadtest.peer_rounds import median
from loadtest.servers import OURS, Running, pinned, serving
from loadtest.targets import Figure, Run

COUNT = 500

PATIENCE_SECONDS = 1.0
"""What the API server waits by default of the chart (`webhook.timeoutSeconds`); who is answered later fails open."""

FIFTH = 0.2
"""Of a core."""

_HANG_SECONDS = 60
_CLIENT_CORE = 1


@dataclass(frozen=True, slots=True)
class Burst:
    """What came of so many reviews at once."""

    seconds: tuple[float, ...]
    """Until each was answered, the quickest first."""
    problems: tuple[str, ...]
    """Of those that were not answered as they should be."""
    after: float
    """Seconds of a review that was posted when all was over."""

    def quantile(self, share: float) -> float:
        """Milliseconds."""
        return self.seconds[math.ceil(share * len(self.seconds)) - 1] * 1e3

    @property
    def late(self) -> int:
        """Answers that nobody waited for any more."""
        return sum(each > PATIENCE_SECONDS for each in self.seconds)


def burst(run: Run) -> Iterator[Figure]:
    """Both, a core first."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), [OURS]) as servers,
        Share("client", os.getpid()),
        Share("server", servers[OURS].pid) as share,
    ):
        yield from _rows("on a core", [_measured(servers[OURS], run, 1.0) for _ in range(run.rounds)])
        share.limit(FIFTH)
        yield from _rows("on a fifth of it", [_measured(servers[OURS], run, FIFTH) for _ in range(run.rounds)])
    yield from replicas(run)


def _rows(where: str, found: list[Burst]) -> Iterator[Figure]:
    for name, share in (("p50", 0.5), ("p99", 0.99), ("longest", 1.0)):
        yield median(f"{COUNT} at once {where}: {name}", [each.quantile(share) for each in found], "ms")
    yield Figure(f"{COUNT} at once {where}: not answered, all rounds", sum(len(each.problems) for each in found), "")
    yield median(f"{COUNT} at once {where}: answered after {PATIENCE_SECONDS:g} s", [each.late for each in found])
    yield median(f"{COUNT} at once {where}: the next review", [each.after * 1e3 for each in found], "ms")


def _measured(server: Running, run: Run, cores: float) -> Burst:
    command = ["-m", "loadtest.burst_client", server.address, str(server.ca), str(COUNT), str(_HANG_SECONDS)]
    before = server.cpu_seconds()
    printed = subprocess.run(  # noqa: S603 - ours
        pinned(_CLIENT_CORE, [sys.executable, *command]), check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    used = server.cpu_seconds() - before
    answers = [json.loads(line) for line in printed.splitlines()]
    problems = tuple(each["outcome"] for each in answers if each["outcome"] != "right")
    began = time.perf_counter()
    server.answer("/validate", body(KINDS[0]))
    found = Burst(tuple(sorted(each["seconds"] for each in answers)), problems, time.perf_counter() - began)
    quantiles = {"p50": found.quantile(0.5), "p99": found.quantile(0.99), "longest": found.quantile(1.0)}
    others = {"late": found.late, "problems": problems, "after": found.after * 1e3, "server_cpu": used}
    run.record({"part": "burst", "cores": cores} | quantiles | others)
    return found
