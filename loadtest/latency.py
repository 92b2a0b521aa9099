"""Latency at a constant rate, by vegeta: an open loop that asks again on time, answered or not.

Connections are kept as kube-apiserver keeps them: HTTP/1.1 over TLS, 25 idle ones. What counts begins when a request
should have been sent, not when the client came to it.
"""

import base64
import csv
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtest.build import programs

CLIENT_CORE = 1

_WARM_UP = 200  # requests: the connections are open, and every path has been taken
_GRACE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Target:
    """One request that is posted in turn with the others."""

    url: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """One request. Seconds count from the first one's intended start."""

    intended: float
    late: float
    """How long after that the client began; it is part of `seconds`."""
    seconds: float
    code: int
    """0: no answer came."""
    url: str
    answer: bytes


@dataclass(frozen=True, slots=True)
class Latency:
    """All requests of one run, in the order of their intended starts."""

    samples: Sequence[Sample]
    began: float = 0.0
    """Epoch seconds of the first one's intended start."""

    def quantile(self, share: float) -> float:
        """Seconds that this share of the requests took at most, those without an answer included."""
        return _quantile((sample.seconds for sample in self.samples), share)

    def late(self, share: float) -> float:
        """Seconds after its time that the client began this share of the requests at most; a part of the above."""
        return _quantile((sample.late for sample in self.samples), share)

    @property
    def p50(self) -> float:
        """Seconds."""
        return self.quantile(0.5)

    @property
    def p99(self) -> float:
        """Seconds."""
        return self.quantile(0.99)

    @property
    def p999(self) -> float:
        """Seconds."""
        return self.quantile(0.999)

    @property
    def longest(self) -> float:
        """Seconds."""
        return self.quantile(1.0)

    @property
    def errors(self) -> int:
        """Requests that got no answer, or one that is not 200."""
        return sum(sample.code != 200 for sample in self.samples)  # noqa: PLR2004 - the status code is its own name


def _quantile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


def measure(
    targets: Sequence[Target], rate: int, seconds: float, ca: Path, *, warm_up_requests: int = _WARM_UP
) -> Latency:
    """Post the targets in turn, `rate` a second for so long, after a warm-up that is not told.

    `ca`: the authority of the servers' certificates. Raises `CalledProcessError`, `CannotBuild`.
    """
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "targets")
        lines.write_text("".join(f"{_line(target)}\n" for target in targets), encoding="ascii")
        warm_up = math.ceil(warm_up_requests / rate)
        command = [str(programs() / "steady"), str(lines), str(ca), str(rate), str(warm_up + seconds)]
        printed = subprocess.run(  # noqa: S603 - our own command
            ["taskset", "--cpu-list", str(CLIENT_CORE), *command],  # noqa: S607 - as PATH has it
            check=True,
            stdout=subprocess.PIPE,
            timeout=warm_up + seconds + _GRACE_SECONDS,
            env=os.environ | {"GOMAXPROCS": "4"},  # a thread waits for the next request, others read answers
            text=True,
        ).stdout
    csv.field_size_limit(1 << 24)
    rows = sorted(csv.reader(printed.splitlines()), key=lambda row: int(row[8]))
    return Latency(tuple(samples(rows, rate, warm_up)), _began(rows, rate) / 1e9 + warm_up)


def _line(target: Target) -> str:
    body = base64.b64encode(target.body).decode()
    header = {"Content-Type": ["application/json"]}
    return json.dumps({"method": "POST", "url": target.url, "header": header, "body": body})


def samples(rows: Sequence[Sequence[str]], rate: int, warm_up: float) -> Iterator[Sample]:
    """Vegeta's results in the order of their numbers, without those of the warm-up's seconds.

    Request n was due n / rate after the first one, which was due when none of them was early. The columns: time in ns,
    code, latency in ns, bytes out and in, error, answer, attack, number, method, URL, header fields.
    """
    began = _began(rows, rate)
    for row in rows:
        due = int(row[8]) * 1e9 / rate
        if due < warm_up * 1e9:
            continue
        late = int(row[0]) - began - due
        seconds = (late + int(row[2])) / 1e9
        yield Sample(due / 1e9 - warm_up, late / 1e9, seconds, int(row[1]), row[10], base64.b64decode(row[6]))


def _began(rows: Sequence[Sequence[str]], rate: int) -> float:
    """Epoch nanoseconds at which the first request was due."""
    return min(int(row[0]) - int(row[8]) * 1e9 / rate for row in rows)
