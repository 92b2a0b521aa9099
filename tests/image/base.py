"""The base of the image under test: Debian's Python, standing in for python:slim where no image registry is reached.

Made once a machine and then kept in the user's cache. The packages come from where the machine's own apt gets them.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.controlplane.cache import cache, made_once
from tests.image.store import Store

NAME = "docker.io/library/python:3.13-slim"
"""What the Dockerfile asks for."""

_SUITE = "trixie"  # its Python is 3.13
_PACKAGES = "ca-certificates,python3,python3-pip"
_LINKS = ("python", "python3")  # in /usr/local/bin, where python:slim has them


def base() -> Path:
    """The store that holds the base image, made if need be; takes half a minute then."""
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    return made_once(cache("image", f"{_SUITE}-{recipe}"), _make)


def _make(home: Path) -> None:
    root = home / "root"
    command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _SUITE, str(root), _mirror()]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    for path in ("var/lib/apt/lists", "var/cache/apt/archives"):
        shutil.rmtree(root / path)
    for name in _LINKS:
        (root / "usr/local/bin" / name).symlink_to("/usr/bin/python3")
    store = Store(home)
    container = store.run(["buildah", "from", "scratch"])
    store.run(["buildah", "add", "--quiet", container, root, "/"])
    path = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    store.run(["buildah", "config", "--env", path, "--env", "LANG=C.UTF-8", "--cmd", "python3", container])
    store.run(["buildah", "commit", "--quiet", "--rm", container, NAME])
    shutil.rmtree(root)


def _mirror() -> str:
    """The address from which apt gets Debian."""
    command = ["apt-get", "indextargets", "--format=$(REPO_URI)", "Created-By: Packages", "Label: Debian"]
    addresses = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert addresses, "apt knows no source of Debian's packages: run apt-get update"
    return addresses[0]
