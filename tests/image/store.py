"""Images and containers of one test run, in a folder of their own: those of the user are neither seen nor touched.

The tools are Debian's buildah and podman, since both work as root in a container and need no daemon.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Store:
    """A folder in which buildah and podman keep all they have."""

    home: Path
    shared: tuple[Path, ...] = ()
    """Folders of `Store`s whose images can be used here too, and are not written to."""

    def environment(self) -> dict[str, str]:
        """What makes buildah and podman use this store, and work inside a container."""
        (self.home / "tmp").mkdir(parents=True, exist_ok=True)
        others = ", ".join(f'"{_images(home)}"' for home in self.shared)
        storage, containers = self.home / "storage.conf", self.home / "containers.conf"
        storage.write_text(
            f"""
[storage]
driver = "overlay"
graphroot = "{_images(self.home)}"
runroot = "{self.home}/run"
[storage.options]
additionalimagestores = [{others}]
""",
            "utf-8",
        )
        # runc: crun does not start where both versions of cgroups are mounted. The limits: what a container may lower
        # its own to, where raising them is not permitted. Locks in files: the default is one piece of shared memory
        # for all podmans of the machine.
        containers.write_text(
            f"""
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "{self.home}/run/libpod"
volume_path = "{self.home}/volumes"
""",
            "utf-8",
        )
        return os.environ | {
            "BUILDAH_ISOLATION": "chroot",  # the others need more rights than a container has
            "CONTAINERS_CONF": str(containers),
            "CONTAINERS_STORAGE_CONF": str(storage),
            "TMPDIR": str(self.home / "tmp"),
        }

    def run(self, command: Sequence[str | Path], **environment: str) -> str:
        """The standard output of a command that uses this store; its last words where it fails."""
        ran = subprocess.run(command, env=self.environment() | environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{' '.join(map(str, command))}: {ran.stderr[-2000:]}"
        return ran.stdout.strip()


def _images(home: Path) -> Path:
    return home / "images"
