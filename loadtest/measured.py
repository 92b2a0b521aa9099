"""`vacancy serve` in a process that measures itself: `python -m loadtest.measured SOURCE KUBECONFIG TLS-DIR`.

It imports nothing but what the server imports, so that its memory is the server's. The class `gpu` has to exist.
"""

import asyncio
import json
import os
import re
import socket
import struct
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import uvloop

from app.dra.demand import Ask, PodDemand
from app.dra.judgement import find
from app.dra.vacancy import Vacancy
from app.live import Live
from app.logs import configure_logging
from app.serve import Server, open_cluster
from app.settings import read_settings

STARTING_SECONDS = 0.25
"""Until the listeners listen; that holds the loop, and nobody waits yet."""

SETTLING_SECONDS = 10.0
"""Until the first pool statuses have come; they are no part of a quiet minute."""

QUIET_SECONDS = 65.0
"""Longer than the minute between two bookmarks, or two rounds of pool statuses."""


async def _measure(source: str, kubeconfig: str, folder: str) -> dict[str, float]:
    flags = {"source": source, "kubeconfig": kubeconfig, "tls-dir": folder}
    settings = read_settings(flags | {"listen": "127.0.0.1:0", "web-listen": "127.0.0.1:0"}, {})
    with ExitStack() as stack:
        problems: list[str] = []
        cluster = await open_cluster(settings, problems)
        assert isinstance(cluster, Live), problems
        server, pulse, traffic = Server(settings, cluster, stack, problems=problems), Pulse(), Traffic()
        tasks = [asyncio.create_task(each) for each in (server.run(), pulse.run())]
        began = time.perf_counter()
        figures = {"before_mb": _memory("VmRSS")}
        await asyncio.sleep(STARTING_SECONDS)
        figures["held_starting_ms"], pulse.held, pulse.waited = pulse.held * 1e3, 0.0, 0.0
        await cluster.read()
        figures["read_seconds"] = time.perf_counter() - began
        while not _counted(cluster):  # noqa: ASYNC110 - it is a number that changes, not an event
            await asyncio.sleep(0.05)
        figures["counted_seconds"] = time.perf_counter() - began
        figures |= {"reading_mb": _memory("VmHWM"), "held_ms": pulse.held * 1e3, "waited_ms": pulse.waited * 1e3}
        await asyncio.sleep(SETTLING_SECONDS)
        pulse.held = 0.0
        await traffic.listen(QUIET_SECONDS)
        figures |= {"quiet_kb": traffic.received / 1e3 * 60 / QUIET_SECONDS, "held_after_ms": pulse.held * 1e3}
        figures["after_mb"] = _memory("VmRSS")
        server.stop()
        server.stop()
        await tasks[0]
        tasks[1].cancel()
    return figures


def _counted(cluster: Live) -> bool:
    return find(Ask("gpu"), PodDemand(), cluster.latest.get(), time.time()).vacancy is not Vacancy.UNKNOWN


class Pulse:
    """How long others keep the event loop from a task that wants it every millisecond, in seconds."""

    def __init__(self) -> None:
        self.held = self.waited = 0.0

    async def run(self) -> NoReturn:
        """Measure until cancelled."""
        while True:
            wall, work = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            # What this thread worked meanwhile it may have done in one piece; not longer can it have held the loop.
            self.held = max(self.held, time.thread_time() - work)
            self.waited = max(self.waited, time.perf_counter() - wall - 0.001)


class Traffic:
    """Bytes that arrive over TCP, of all connections of this process together."""

    _BYTES_RECEIVED = 128
    """Offset of `tcpi_bytes_received` in Linux's `struct tcp_info`."""

    def __init__(self) -> None:
        self.received = 0

    async def listen(self, seconds: float) -> None:
        """Add up for so long. A connection of less than a second is missed; those of the client stay for 15 s."""
        until, known = time.perf_counter() + seconds, dict(self._connections())
        while time.perf_counter() < until:
            await asyncio.sleep(1.0)
            now = dict(self._connections())
            self.received += sum(received - known.get(name, 0) for name, received in now.items())
            known |= now

    def _connections(self) -> Iterable[tuple[str, int]]:
        for entry in Path("/proc/self/fd").iterdir():
            try:
                name = str(entry.readlink())
                if not name.startswith("socket:"):
                    continue
                with socket.socket(fileno=os.dup(int(entry.name))) as connection:
                    if connection.family == socket.AF_INET and connection.type == socket.SOCK_STREAM:
                        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                        yield name, struct.unpack_from("=Q", info, self._BYTES_RECEIVED)[0]
            except OSError:  # closed meanwhile, or listening
                continue


def _memory(what: str) -> float:
    """A line of /proc/self/status in MB."""
    found = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found
    return int(found[1]) / 1024


if __name__ == "__main__":
    configure_logging(as_json=True, level="error")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(_measure(*sys.argv[1:]))))
