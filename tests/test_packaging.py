"""What a clean machine installs, and what nobody sees rot in a checkout that works already."""

import re
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-build.txt",
    "requirements-go.txt",
    "requirements-helm.txt",
    "requirements-sbom.txt",
)


def pins(lock: str) -> dict[str, str]:
    """Package to version of a lock file, in which a pin is `name==version`, a marker at most, and hashes."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+?)(?:;[^\\]+)? \\$", (ROOT / lock).read_text(), re.MULTILINE))


def package(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_nothing_but_pins_with_their_hashes(lock: str) -> None:
    lines = [line for line in (ROOT / lock).read_text().splitlines() if line and not line.lstrip().startswith("#")]
    pin = re.compile(r"[a-z0-9-]+==[\w.]+(; platform_machine == \"x86_64\")? \\")
    hash_ = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    strangers = [line for line in lines if not pin.fullmatch(line) and not hash_.fullmatch(line)]
    assert strangers == []
    assert len(pins(lock)) == sum(not line.startswith(" ") for line in lines) > 0


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_says_nothing_of_where_it_was_made(lock: str) -> None:
    assert not re.search(r"://|index|find-links|trusted-host| /|\.\./", (ROOT / lock).read_text())


def test_every_dependency_is_locked() -> None:
    assert {package(requirement) for requirement in PROJECT["dependencies"]} <= pins("requirements.txt").keys()
    dev = PROJECT["optional-dependencies"]["dev"]
    assert {package(requirement) for requirement in dev} <= pins("requirements-dev.txt").keys()


def test_tests_run_with_the_very_packages_that_are_shipped() -> None:
    assert pins("requirements.txt").items() <= pins("requirements-dev.txt").items()


@pytest.mark.parametrize("command", ["vacancy", "kubectl-vacancy"])
def test_a_command_leads_to_code(command: str) -> None:
    assert callable(EntryPoint(command, PROJECT["scripts"][command], "console_scripts").load())


def test_what_is_not_python_is_packaged_too() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["app"]
    packaged = {path for pattern in patterns for path in (ROOT / "app").glob(pattern)}
    files = (path for path in (ROOT / "app").rglob("*") if path.is_file())
    assert {path for path in files if path.suffix not in {".py", ".pyc"}} == packaged


def test_no_file_of_the_packages_holds_more_than_one_idea() -> None:
    lengths = {
        path: len(path.read_text().splitlines())
        for folder in ("app", "certs")
        for path in ROOT.glob(f"{folder}/**/*.py")
    }
    assert {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > 400} == {}
