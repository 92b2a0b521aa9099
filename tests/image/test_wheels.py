"""The image can be built for the other architecture too: every locked package has a wheel for it.

For the architecture of this machine the build is the proof; it takes wheels alone, by the same hashes.
"""

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.conftest import ROOT, step

ARCHITECTURES = {"x86_64", "aarch64"}
PYTHON = "3.13"  # the Dockerfile's
GLIBC = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")  # up to that of Debian 10 and RHEL 8


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-build.txt", "requirements-sbom.txt"])
def test_every_locked_package_has_a_wheel_for_the_other_architecture(lock: str, tmp_path: Path) -> None:
    (other,) = ARCHITECTURES - {platform.machine()}
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    target = ["--only-binary=:all:", f"--python-version={PYTHON}", *(f"--platform={glibc}_{other}" for glibc in GLIBC)]
    with step(f"wheels of {lock}"):
        ran = subprocess.run(
            [*download, *target, "--dest", tmp_path, "--requirement", ROOT / lock],
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    pins = re.findall(r"^\S+==", (ROOT / lock).read_text("utf-8"), re.MULTILINE)
    assert len(list(tmp_path.glob("*.whl"))) == len(pins) > 0


def test_the_base_is_of_that_python() -> None:
    assert f"ARG PYTHON_IMAGE=python:{PYTHON}-slim\n" in (ROOT / "Dockerfile").read_text("utf-8")
