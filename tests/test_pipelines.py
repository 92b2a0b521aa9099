"""The pipelines of docs/pipelines.md do what the page says: their scripts run, against a real server."""

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.browser.files import EXAMPLE, FileServer

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "pipelines.md").read_text("utf-8")
NOBODY = "http://127.0.0.1:1"


def code_below(heading: str, language: str) -> str:
    """The first block in this language below a heading."""
    _, found, below = PAGE.partition(f"\n## {heading}\n")
    assert found
    block = re.search(rf"```{language}\n(.*?)```", below, re.DOTALL)
    assert block
    return block[1]


def yaml_below(heading: str) -> Any:  # noqa: ANN401 - whatever it is
    return yaml.load(code_below(heading, "yaml"), yaml.BaseLoader)  # noqa: S506 - `on` is text to GitHub


@pytest.fixture(scope="module")
def vacancy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server of the example cluster."""
    with FileServer(EXAMPLE, tmp_path_factory.mktemp("pipelines")) as server:
        yield server.url


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with this project's files, to run in."""
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "examples").symlink_to(ROOT / "examples")
    return tmp_path / "checkout"


def run(command: list[str], folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {"PATH": path, "HOME": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=kept | variables, capture_output=True, text=True, check=False, timeout=120
    )


MANIFESTS = {
    "room": "examples/pods/free.yaml",
    "full": "examples/pods/deployment.yaml",
    "never": "examples/pods/never.yaml",
    "unknown": "examples/pods/unknown.yaml",
}


# --- GitHub Actions ---------------------------------------------------------------------------------------------------

ON_GITHUB = {
    "room": (0, ""),
    "unknown": (0, ""),
    "full": (0, "::warning title=GPU capacity::No device is free now; see the summary.\n"),
    "never": (4, ""),
    "unanswered": (0, "::notice title=GPU capacity::Vacancy did not answer.\n"),
    "unreadable": (2, ""),
}


@pytest.mark.parametrize("case", ON_GITHUB)
def test_the_job_on_github_goes_on_or_fails_by_the_exit_code(checkout: Path, vacancy: str, case: str) -> None:
    job = yaml_below("GitHub Actions")["jobs"]["devices"]
    (step,) = [step for step in job["steps"] if "run" in step]
    assert step["shell"] == "bash", "then GitHub's command is that of below"
    (checkout / "script").write_text(step["run"])
    variables = job["env"] | {"VACANCY": NOBODY if case == "unanswered" else vacancy, "GITHUB_STEP_SUMMARY": "summary"}
    assert variables["MANIFESTS"] == MANIFESTS["full"]
    variables["MANIFESTS"] = MANIFESTS.get(case, MANIFESTS["full"] if case == "unanswered" else "none.yaml")
    done = run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "script"], checkout, variables)
    code, said = ON_GITHUB[case]
    summary = (checkout / "summary").read_text()
    assert (done.returncode, done.stdout) == (code, summary + said)
    assert summary.startswith(case) or (case in {"unanswered", "unreadable"} and not summary)


# --- GitLab -----------------------------------------------------------------------------------------------------------

ON_GITLAB = {"room": "passed", "unknown": "passed", "full": "warned", "never": "failed", "unanswered": "warned"}


@pytest.mark.parametrize("shell", ["bash -eo pipefail", "sh -e"])
@pytest.mark.parametrize("case", ON_GITLAB)
def test_the_job_on_gitlab_passes_warns_or_fails_by_the_exit_code(
    checkout: Path, vacancy: str, case: str, shell: str
) -> None:
    job = yaml_below("GitLab")["devices"]
    variables = job["variables"] | {"VACANCY": NOBODY if case == "unanswered" else vacancy}
    variables["MANIFESTS"] = MANIFESTS.get(case, variables["MANIFESTS"])
    code = run([*shell.split(), "-c", "\n".join(job["script"])], checkout, variables).returncode
    allowed = [int(each) for each in job["allow_failure"]["exit_codes"]]
    outcome = "passed" if code == 0 else "warned" if code in allowed else "failed"
    assert outcome == ON_GITLAB[case]
    (artifact,) = job["artifacts"]["paths"]
    report = run(["sh", "-c", "\n".join(job["after_script"])], checkout, {}).stdout
    assert report == (checkout / artifact).read_text()
    if case == "unanswered":
        assert report == ""
    else:
        assert case in {check["verdict"] for check in json.loads(report)["checks"]}


# --- Tekton -----------------------------------------------------------------------------------------------------------


def test_the_task_is_as_tekton_wants_it() -> None:
    task = yaml_below("Tekton")
    assert (task["apiVersion"], task["kind"]) == ("tekton.dev/v1", "Task")
    check, decide = task["spec"]["steps"]
    assert check["onError"] == "continue"
    assert f"$(steps.step-{check['name']}.exitCode.path)" in decide["script"]


ON_TEKTON = {
    "room": (0, "room"),
    "unknown": (0, "room"),
    "full": (0, "full"),
    "never": (0, "never"),
    "unanswered": (0, "unanswered"),
    "unreadable": (2, ""),
}


@pytest.mark.parametrize("case", ON_TEKTON)
def test_the_task_in_tekton_has_the_verdict_for_its_result(checkout: Path, vacancy: str, case: str) -> None:
    spec = yaml_below("Tekton")["spec"]
    check, decide = spec["steps"]
    given = {f"$(params.{each['name']})": each["default"] for each in spec["params"]}
    assert given["$(params.manifests)"] == MANIFESTS["full"]
    if case != "unanswered":
        given["$(params.manifests)"] = MANIFESTS.get(case, "none.yaml")
    given["$(params.vacancy)"] = NOBODY if case == "unanswered" else vacancy
    asked = run([*check["command"], *(given.get(word, word) for word in check["args"])], checkout, {})

    (result,) = spec["results"]
    script = decide["script"].replace("$(steps.step-check.exitCode.path)", "code")
    script = script.replace(f"$(results.{result['name']}.path)", "result")
    (checkout / "code").write_text(str(asked.returncode))
    (checkout / "script").write_text(script)
    decided = run(["sh", "script"], checkout, {})
    written = checkout / "result"
    assert (decided.returncode, written.read_text() if written.exists() else "") == ON_TEKTON[case]


# --- JupyterHub -------------------------------------------------------------------------------------------------------


def profiles(address: str) -> list[dict[str, Any]]:
    """What a spawner would show for this server."""
    config = SimpleNamespace(KubeSpawner=SimpleNamespace(profile_list=None))
    names: dict[str, Any] = {"c": config}
    exec(compile(code_below("JupyterHub", "python"), "jupyterhub_config.py", "exec"), names)  # noqa: S102 - ours
    names["VACANCY"] = address
    spawner = SimpleNamespace(log=logging.getLogger("spawner"))
    found: list[dict[str, Any]] = asyncio.run(config.KubeSpawner.profile_list(spawner))
    return found


def test_jupyterhub_marks_what_is_full_and_nothing_else(vacancy: str) -> None:
    assert [profile["display_name"] for profile in profiles(vacancy)] == ["CPU", "GPU (all taken)", "Small GPU"]
    assert [profile["slug"] for profile in profiles(vacancy) if "description" in profile] == ["gpu"]


def test_jupyterhub_marks_nothing_without_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    assert [profile["display_name"] for profile in profiles(NOBODY)] == ["CPU", "GPU", "Small GPU"]
    assert "GPU capacity not known" in caplog.text


# --- Full, or for ever? -----------------------------------------------------------------------------------------------

IN_VAIN = {
    '"example.com/gpu": 1': (1, False),
    '"example.com/gpu": 9': (1, True),
    '"example.com/gpu": 1, "example.com/l4": 8': (1, True),
    '"example.com/l4": 8': (4, True),
}
"""What is asked for, the exit code, and whether waiting for it is in vain."""


@pytest.mark.parametrize("asked", IN_VAIN)
def test_the_answer_tells_where_waiting_is_in_vain(checkout: Path, vacancy: str, asked: str) -> None:
    _, _, query = code_below("Full, or for ever?", "sh").partition("jq -e ")
    words, reason = re.findall(r'"(.*?)"', query)
    resources = f'{{"limits": {{{asked}}}}}'
    (checkout / "pod.json").write_text(
        f'{{"apiVersion": "v1", "kind": "Pod", "spec": {{"containers": [{{"name": "c", "resources": {resources}}}]}}}}'
    )
    done = run(["vacancy", "check", "-f", "pod.json", "--server", vacancy, "-o", "json"], checkout, {})
    (check,) = json.loads(done.stdout)["checks"]
    in_vain = words in check["message"] or reason in {ask["reason"] for ask in check["asks"]}
    assert (done.returncode, in_vain) == IN_VAIN[asked]


# --- The table of exit codes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MANIFESTS)
def test_the_exit_codes_at_the_top_are_right(checkout: Path, vacancy: str, case: str) -> None:
    wanted = {"room": 0, "full": 1, "never": 4, "unknown": 5}
    done = run(["vacancy", "check", "-f", MANIFESTS[case], "--server", vacancy, "--strict"], checkout, {})
    assert done.returncode == wanted[case]
