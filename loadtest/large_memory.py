"""Resident memory: with the example in files, with a small live cluster, with a large one."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from certs.serving import throwaway_pair
from loadtest import targets
from loadtest.large import Standin, vacancy, wait_until_counted
from loadtest.targets import Figure, Run

SETTLING_SECONDS = 10.0
"""After everything is known: the first pool statuses have come, and nothing happens any more."""

_EXAMPLE = Path(__file__).parents[1] / "examples" / "cluster"


def memory(run: Run) -> Iterator[Figure]:
    """The three figures."""
    for name, size in ((targets.RSS_EXAMPLE, ""), (targets.RSS_IDLE, "small"), (targets.RSS_LARGE, "large")):
        with tempfile.TemporaryDirectory() as folder:
            mb = _live(Path(folder), size) if size else _example(Path(folder))
        run.record({"part": "memory", "what": name, "mb": mb})
        yield Figure(name, mb, "MB")


def _example(folder: Path) -> float:
    throwaway_pair(["localhost"], ["127.0.0.1"], time.time()).write(folder)
    with vacancy({"--manifests": str(_EXAMPLE), "--now": "2026-01-01T12:00:00Z"}, folder) as server:
        time.sleep(SETTLING_SECONDS)
        return server.resident_mb()


def _live(folder: Path, size: str) -> float:
    with Standin(folder, size) as standin, standin.followed() as server:
        wait_until_counted(server)
        time.sleep(SETTLING_SECONDS)
        return server.resident_mb()
