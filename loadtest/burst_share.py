"""A process before all others of the machine, or with no more than so much of a core (cgroup, version 1 or 2)."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

_PERIOD = 100_000  # microseconds; Linux's default, and the kubelet's
_VERSION_2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
_ABOVE = Path("/sys/fs/cgroup" if _VERSION_2 else "/sys/fs/cgroup/cpu")


class Share:
    """A group of its own for a process, its threads and the children it will have, until the end. Needs root.

    It goes first wherever it runs, so that what others do on the machine is not measured.
    """

    def __init__(self, name: str, pid: int) -> None:
        """Raises `OSError` where there are no cgroups."""
        self._pid = pid
        self._group = _ABOVE / f"vacancy-{name}-{os.getpid()}"

    def __enter__(self) -> Self:
        self._group.mkdir()
        if _VERSION_2:
            (_ABOVE / "cgroup.subtree_control").write_text("+cpu")
            (self._group / "cpu.weight").write_text("10000")  # a hundred times that of others, and the most there is
        else:
            (self._group / "cpu.shares").write_text("102400")
        (self._group / "cgroup.procs").write_text(str(self._pid))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in (self._group / "cgroup.procs").read_text().split():
            (_ABOVE / "cgroup.procs").write_text(pid)
        self._group.rmdir()

    def limit(self, cores: float) -> None:
        """No more than that from now on, whether others want it or not."""
        quota = int(cores * _PERIOD)
        if _VERSION_2:
            (self._group / "cpu.max").write_text(f"{quota} {_PERIOD}")
        else:
            (self._group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (self._group / "cpu.cfs_quota_us").write_text(str(quota))
