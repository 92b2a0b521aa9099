"""What the image holds, by the bytes that a registry would get."""

import json
import re
import stat
import tarfile
import tomllib
from typing import Any

import pytest

from tests.image.conftest import ROOT, SOURCE, Builds
from tests.image.layout import Layout

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PREFIX = "org.opencontainers.image."
BUDGET_BYTES = 80_000_000


def requirement(name: str, version: str) -> tuple[str, str]:
    return re.sub(r"[-_.]+", "-", name).lower(), version


@pytest.fixture(scope="module")
def files(image: Layout) -> dict[str, tarfile.TarInfo]:
    return image.own_files()


@pytest.fixture(scope="module")
def bill(image: Layout) -> dict[str, Any]:
    """The list of packages (SBOM), where docs/image.md says."""
    return dict(json.loads(image.text("opt/venv/vacancy.cdx.json")))


@pytest.fixture(scope="module")
def packages(files: dict[str, tarfile.TarInfo]) -> dict[str, str]:
    """The environment's distributions, name to version, by their folders."""
    infos = (re.fullmatch(r".*/site-packages/(.+)-([^-]+)\.dist-info", path) for path in files)
    return dict(requirement(*info.groups()) for info in infos if info)


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    text = (ROOT / "requirements.txt").read_text("utf-8")
    return dict(requirement(*pin) for pin in re.findall(r"^(\S+)==(\S+)", text, re.MULTILINE))


def test_two_builds_have_one_digest(builds: Builds) -> None:
    first, second = builds
    assert first.id == second.id
    assert first.layout.digest() == second.layout.digest()
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", first.id)


def test_it_is_small_where_its_base_is_there_already(image: Layout) -> None:
    assert 20_000_000 < image.own_bytes() < BUDGET_BYTES


def test_labels_say_what_it_is_and_where_it_came_from(image: Layout, commit: tuple[str, int]) -> None:
    labels = {name: text for name, text in image.config()["Labels"].items() if name.startswith(PREFIX)}
    assert labels.pop(f"{PREFIX}revision").removesuffix("-dirty") == commit[0]
    assert labels == {
        f"{PREFIX}title": "Vacancy",
        f"{PREFIX}description": PROJECT["description"],
        f"{PREFIX}licenses": PROJECT["license"],
        f"{PREFIX}source": SOURCE,
        f"{PREFIX}version": PROJECT["version"],
    }


def test_it_runs_as_a_user_that_a_number_names_and_that_is_not_root(image: Layout) -> None:
    config = image.config()
    assert (config["User"], config["Entrypoint"], config["Cmd"]) == ("65532:65532", ["vacancy"], ["serve"])


def test_it_adds_one_folder_and_no_time_but_the_commits(
    files: dict[str, tarfile.TarInfo], commit: tuple[str, int]
) -> None:
    assert {path for path in files if path.count("/") < 2} == {"opt", "opt/venv"}
    assert {member.mtime for member in files.values()} == {commit[1]}


def test_nobody_but_root_may_change_what_it_adds(files: dict[str, tarfile.TarInfo]) -> None:
    others = stat.S_IWGRP | stat.S_IWOTH
    assert {(member.uid, member.gid) for member in files.values()} == {(0, 0)}
    assert [path for path, member in files.items() if member.mode & others and not member.issym()] == []


def test_it_holds_the_locked_packages_and_no_other(packages: dict[str, str], locked: dict[str, str]) -> None:
    assert packages == locked | {"vacancy": PROJECT["version"]}
    assert not packages.keys() & {"pip", "setuptools", "wheel"}


def test_it_holds_no_tests_and_nothing_that_built_it(files: dict[str, tarfile.TarInfo]) -> None:
    names = {name for path in files for name in path.split("/")}
    assert not names & {"tests", "bazel-project", "pip", "setuptools", "pip.conf", "direct_url.json"}


def test_its_commands_are_python_and_ours(files: dict[str, tarfile.TarInfo]) -> None:
    commands = {path.rpartition("/")[2] for path in files if path.startswith("opt/venv/bin/")}
    assert {name for name in commands if not name.startswith("python")} == PROJECT["scripts"].keys()


def test_every_module_is_compiled_and_nothing_else_is(files: dict[str, tarfile.TarInfo]) -> None:
    modules = {path for path in files if path.endswith(".py")}
    compiled = [path for path in files if path.endswith(".pyc")]
    assert {re.sub(r"__pycache__/([^/]+)\.cpython-\d+\.pyc$", r"\1.py", path) for path in compiled} == modules
    assert len(compiled) == len(modules) > 1000


def test_the_list_of_packages_is_exactly_what_is_locked(bill: dict[str, Any], locked: dict[str, str]) -> None:
    assert bill["bomFormat"] == "CycloneDX"
    assert dict(requirement(part["name"], part["version"]) for part in bill["components"]) == locked
    assert all(part["purl"].startswith("pkg:pypi/") for part in bill["components"])
    about = bill["metadata"]["component"]
    assert (about["name"], about["version"]) == ("vacancy", PROJECT["version"])


def test_the_list_of_packages_says_nothing_that_changes_from_build_to_build(bill: dict[str, Any]) -> None:
    assert "serialNumber" not in bill
    assert "timestamp" not in bill["metadata"]


def test_nothing_of_the_machine_that_built_it_stays(image: Layout, bill: dict[str, Any]) -> None:
    assert not [name for name in image.config()["Env"] if name.startswith("PIP_")]
    assert "file://" not in json.dumps(bill)
