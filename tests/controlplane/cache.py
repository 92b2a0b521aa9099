"""The user's cache: what takes long to make is made once for all checkouts on a machine, whole or not at all."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def cache(*names: str) -> Path:
    """A place of that name in the cache; it may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "vacancy", *names)


def made_once(home: Path, make: Callable[[Path], None]) -> Path:
    """`home`, which is there: from before, or because `make` has filled a new folder that was then put in its place.

    Where another process is making it, this one waits.
    """
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with (home.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():  # nobody made it while we waited
                _make(home, make)
    return home


def _make(home: Path, make: Callable[[Path], None]) -> None:
    building = home.parent / "building"  # the lock makes it ours
    shutil.rmtree(building, ignore_errors=True)  # of one that was killed
    building.mkdir()
    try:
        make(building)
        building.rename(home)
    finally:
        shutil.rmtree(building, ignore_errors=True)
