"""Builds the load generator and the peers in Go, each version once for all checkouts on a machine.

`go.mod` pins vegeta, and the Kubernetes types that a peer decodes.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.controlplane.build import CannotBuild, toolchain
from tests.controlplane.cache import cache, made_once

PACKAGES = ("./steady", "./peers/gominimal", "./peers/gofull")

_MODULE = Path(__file__).parent


def programs() -> Path:
    """The folder of `steady`, `gominimal` and `gofull`: built before, or now, in a minute. Raises `CannotBuild`."""
    sources = [_MODULE / "go.mod", _MODULE / "go.sum", *sorted(_MODULE.rglob("*.go"))]
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    return made_once(cache("loadtest", digest), _build)


def _build(folder: Path) -> None:
    sys.stderr.write("loadtest: building the load generator and the peers\n")
    command = [toolchain(), "build", "-trimpath", "-buildvcs=false", "-o", f"{folder}/", *PACKAGES]
    # A developer's own settings must not change what is built, nor bring another toolchain.
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    if subprocess.run(command, cwd=_MODULE, env=os.environ | settings, check=False).returncode:  # noqa: S603 - ours
        raise CannotBuild(f"`go build` failed in {_MODULE}: its output is above")


if __name__ == "__main__":
    try:
        print(programs())
    except CannotBuild as problem:
        sys.exit(f"loadtest: {problem}")
