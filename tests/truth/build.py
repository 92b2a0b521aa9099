"""Builds the oracles of this folder: small Go programs on the scheduler's own libraries.

Like the control plane's, the binaries land in the user's cache, so that every clone on a machine shares one build.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.controlplane.build import CannotBuild, toolchain
from tests.controlplane.cache import cache, made_once

PROGRAMS = ("celoracle", "allocator")

_MODULE = Path(__file__).parent


def oracles() -> Path:
    """The folder that holds both programs: built before, or built now, in under a minute. Raises `CannotBuild`."""
    sources = [_MODULE / "go.mod", _MODULE / "go.sum", *sorted(_MODULE.glob("*/*.go"))]
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    return made_once(cache("truth", digest), _build)


def _build(folder: Path) -> None:
    sys.stderr.write("truth: building the oracles\n")
    command = [toolchain(), "build", "-trimpath", "-buildvcs=false", "-o", f"{folder}/", *(f"./{p}" for p in PROGRAMS)]
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    if subprocess.run(command, cwd=_MODULE, env=os.environ | settings, check=False).returncode:
        raise CannotBuild(f"`go build` failed in {_MODULE}: its output is above")


if __name__ == "__main__":
    try:
        oracles()
    except CannotBuild as problem:
        sys.exit(f"truth: {problem}")
