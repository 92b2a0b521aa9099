"""The command line: exit codes and text, on files and against a server; a few in processes of their own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from app import selftest
from app.cli import app
from app.settings import SETTINGS
from tests.web.tiny_cluster import CLUSTER

CLOCK = "2026-01-01T00:00:00Z"

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {containers: [{name: c, resources: {limits: {%s: %d}}}]}
"""
FULL = POD % ("busy", "example.com/full", 1)
ROOM = POD % ("lucky", "example.com/roomy", 1)
NEVER = POD % ("greedy", "example.com/roomy", 2)
UNKNOWN = POD % ("odd", "deviceclass.resource.kubernetes.io/other", 1)
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: mine}
spec: {devices: {requests: [{name: g, exactly: {deviceClassName: full}}]}}
"""
POD_WITH_CLAIM = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [], resourceClaims: [{name: g, resourceClaimName: mine}]}
"""
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The flags that name the tiny cluster."""
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "cluster.yaml").write_text(CLUSTER, "utf-8")
    return ["--manifests", str(tmp_path / "cluster"), "--now", CLOCK]


def vacancy(*arguments: str, text: str = "", **environment: str) -> Result:
    return CliRunner().invoke(app, arguments, input=text, env=environment)


# --- check ------------------------------------------------------------------------------------------------------------

EXIT_CODES = {
    "a pod that has room": (0, ROOM, []),
    "a pod that finds everything taken": (1, FULL, []),
    "a pod that never fits": (4, NEVER, []),
    "a pod nothing is known about": (0, UNKNOWN, []),
    "the same, strictly": (5, UNKNOWN, ["--strict"]),
    "room, strictly": (0, ROOM, ["--strict"]),
    "full before never": (1, f"{NEVER}---{FULL}", []),
    "never before unknown": (4, f"{UNKNOWN}---{NEVER}", ["--strict"]),
    "unknown before room": (5, f"{ROOM}---{UNKNOWN}", ["--strict"]),
    "no pod at all": (0, OTHER, []),
    "no YAML": (2, "kind: [", []),
    "a pod that is none": (2, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: 5\n", []),
    "a bad setting": (2, ROOM, ["--source", "neither"]),
    "two sources": (2, ROOM, ["--server", "http://127.0.0.1:1"]),
    "a flag that does not exist": (2, ROOM, ["--nonsense"]),
    "a folder without manifests": (2, ROOM, ["-f", str(Path(__file__).parent / "tls")]),
}


@pytest.mark.parametrize("case", EXIT_CODES)
def test_the_exit_code_of_check(files: list[str], case: str) -> None:
    code, text, flags = EXIT_CODES[case]
    assert vacancy("check", "-f", "-", *files, *flags, text=text).exit_code == code


def test_check_says_one_line_a_pod(files: list[str]) -> None:
    full, room = vacancy("check", "-f", "-", *files, text=f"{FULL}---{ROOM}").stdout.splitlines()
    assert full == (
        "full    default/busy: [NoGPUCapacity] no free device for example.com/full (1 asked): the only device of class "
        "full is taken in 1 pool, seen live. Try again later, wait in the queue with label "
        "gpu-vacancy.dev/queue=true, or run on CPU."
    )
    assert room == (
        "room    default/lucky: [HasRoom] room for example.com/roomy (1 asked): "
        "1 of 1 device of class roomy in 1 pool is free, seen live."
    )


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)], ids=["json", "yaml"])
def test_only_the_answer_goes_to_stdout_whatever_the_exit_code(
    files: list[str], form: str, read: Callable[[str], Any]
) -> None:
    found = vacancy("check", "-f", "-", "-o", form, "-n", "team", *files, text=FULL)
    assert found.exit_code == 1
    (check,) = read(found.stdout)["checks"]
    assert (check["name"], check["namespace"], check["kind"], check["verdict"]) == ("busy", "team", "Pod", "full")


def test_json_of_a_text_without_pods_is_an_empty_list_and_the_remark_goes_to_stderr(files: list[str]) -> None:
    found = vacancy("check", "-f", "-", "-o", "json", *files, text=OTHER)
    assert json.loads(found.stdout) == {"checks": []}
    assert found.stderr == "vacancy: neither pod nor workload in the input\n"


def test_check_reads_several_files_and_folders(files: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "pods" / "deep"
    folder.mkdir(parents=True)
    (folder / "full.yaml").write_text(FULL, "utf-8")
    (folder / "README.md").write_text("no manifest", "utf-8")
    (folder / ".hidden.yaml").write_text(FULL, "utf-8")
    (folder.parent / "..data").mkdir()
    (folder.parent / "..data" / "full.yaml").write_text(FULL, "utf-8")
    (tmp_path / "room.yml").write_text(ROOM, "utf-8")
    found = vacancy("check", "-f", str(tmp_path / "pods"), "-f", str(tmp_path / "room.yml"), *files)
    assert [line.split()[0] for line in found.stdout.splitlines()] == ["full", "room"]


def test_claims_in_one_submitted_file_count_for_pods_in_another(files: list[str], tmp_path: Path) -> None:
    for name, text in {"claim.yaml": CLAIM, "pod.yaml": POD_WITH_CLAIM}.items():
        (tmp_path / name).write_text(text, "utf-8")
    both = ["-f", str(tmp_path / "claim.yaml"), "-f", str(tmp_path / "pod.yaml")]
    assert vacancy("check", *both, *files).exit_code == 1
    assert vacancy("check", *both[2:], *files).exit_code == 0


def test_every_unreadable_input_is_named(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("kind: [", "utf-8")
    found = vacancy("check", "-f", str(tmp_path / "bad.yaml"), "-f", str(tmp_path / "none.yaml"), *files)
    assert found.exit_code == 2
    assert f"{tmp_path}/bad.yaml:1: " in found.stderr
    assert f"{tmp_path}/none.yaml: No such file or directory" in found.stderr


def test_without_a_source_one_line_says_so() -> None:
    found = vacancy("check", "-f", "-", text=ROOM)
    assert (found.exit_code, found.stdout) == (2, "")
    source = "source: expected one of --manifests PATH, --server URL and --direct, found none"
    assert found.stderr == f"vacancy: 1 bad setting:\n  {source}\n"


def test_settings_come_from_the_environment_too(files: list[str]) -> None:
    found = vacancy(
        "check", "-f", "-", text=FULL, VACANCY_MANIFESTS=files[1], VACANCY_NOW=CLOCK, VACANCY_DYNAMIC="full"
    )
    assert found.stdout.startswith("unknown default/busy: [Dynamic]")


def test_what_objects_are_called_cannot_steer_the_terminal(files: list[str]) -> None:
    evil = POD.replace("%s", '"a\\e[2J\\nroom", namespace: "\\u009b"', 1) % ("example.com/roomy", 1)
    (line,) = vacancy("check", "-f", "-", *files, text=evil).stdout.splitlines()
    assert line.split(":")[0] == "room    ?/a?[2J room"


# --- capacity and explain ---------------------------------------------------------------------------------------------


def test_capacity_is_a_plain_table_in_a_pipe(files: list[str]) -> None:
    assert [line.rstrip() for line in vacancy("capacity", *files).stdout.splitlines()] == [
        "CLASS / POOL               NODE  VACANCY  AVAILABLE  ALLOCATED  UNAVAILABLE  TOTAL  SEEN",
        "full (example.com/full)          full             0          1            0      1  seen live",
        "  gpu.example.com/n1       n1    full             0          1            0      1",
        "roomy (example.com/roomy)        free             1          0            0      1  seen live",
        "  gpu.example.com/n1       n1    free             1          0            0      1",
    ]


def test_capacity_as_json(files: list[str]) -> None:
    classes = json.loads(vacancy("capacity", "-o", "json", *files).stdout)["classes"]
    assert [(each["name"], each["vacancy"]) for each in classes] == [("full", "full"), ("roomy", "free")]


def test_watching_is_for_people(files: list[str]) -> None:
    assert vacancy("capacity", "--watch", "-o", "json", *files).exit_code == 2


def test_explain_names_class_devices_and_drivers(files: list[str]) -> None:
    found = vacancy("explain", "example.com/full", *files)
    assert found.exit_code == 0
    assert found.stdout.splitlines() == [
        "1 example.com/full is a device of class full (declares the name and is the newest): full, 0 of 1 free",
        "Behind it: 1 device in 1 pool of gpu.example.com, all alike.",
    ]


def test_explain_of_a_name_nobody_knows_exits_with_1(files: list[str]) -> None:
    found = vacancy("explain", "example.com/other", *files)
    assert found.exit_code == 1
    assert found.stdout == "example.com/other: no device class has or declares this name\n"


# --- Help -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["serve", "check", "capacity", "explain"])
def test_help_lists_the_settings_and_gives_an_example(verb: str) -> None:
    found = vacancy(verb, "--help")
    assert found.exit_code == 0
    assert "Example: " in found.stdout
    for setting in SETTINGS:
        assert (f"{setting.flag} " in found.stdout) == (verb == "serve" or not setting.serve_only)


@pytest.mark.parametrize("verb", ["selftest", "cleanup"])
def test_help_of_a_hook_lists_what_it_takes_and_nothing_else(verb: str) -> None:
    found = vacancy(verb, "--help")
    assert found.exit_code == 0
    assert "Example: " in found.stdout
    flags = {setting.flag for setting in SETTINGS if f"\n  {setting.flag} " in found.stdout}
    assert flags == {"--kubeconfig", "--context", "--webhooks"}


def test_no_verb_is_bad_usage() -> None:
    assert vacancy().exit_code == 2


def test_version() -> None:
    assert vacancy("--version").stdout.startswith("vacancy ")


# --- Hooks of the chart; what they do is in test_selftest and test_cleanup --------------------------------------------

UNUSABLE_HOOKS = {
    "no configuration": ([], "--webhooks: expected names of ValidatingWebhookConfigurations, found none"),
    "a name that is none": (["--webhooks", "a,b/c"], "--webhooks='a,b/c': expected "),
    "no cluster": (["--webhooks", "a", "--kubeconfig", "none"], "no cluster: none: no such kubeconfig"),
}


@pytest.mark.parametrize("verb", ["selftest", "cleanup"])
@pytest.mark.parametrize("case", UNUSABLE_HOOKS)
def test_what_a_hook_cannot_use_is_said_before_anything_is_done(verb: str, case: str) -> None:
    flags, said = UNUSABLE_HOOKS[case]
    found = vacancy(verb, *flags)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr


@pytest.mark.parametrize("verb", ["selftest", "cleanup"])
def test_a_hook_whose_cluster_does_not_answer_says_what_is_amiss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(selftest, "LAST_ATTEMPT_SECONDS", 0.0)
    config = tmp_path / "kubeconfig"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n",
        "utf-8",
    )
    found = vacancy(verb, "--webhooks", "gpu", VACANCY_KUBECONFIG=str(config))
    assert (found.exit_code, found.stderr) == (1, "")
    assert all(line.startswith("FAILED ") for line in found.stdout.splitlines())


# --- Asking a server --------------------------------------------------------------------------------------------------


class Canned(BaseHTTPRequestHandler):
    """Answers every request with what the server was told to."""

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length", 0))
        self.server.asked.append((self.command, self.path, self.rfile.read(length)))
        code, body = self.server.answer
        self.send_response(code)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the same

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Canned) as found:
        found.asked, found.answer = [], (200, b"")
        threading.Thread(target=found.serve_forever, args=(0.01,)).start()
        yield found
        found.shutdown()


def url(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def test_a_server_is_asked_with_all_objects_in_one_list(files: list[str], server: ThreadingHTTPServer) -> None:
    local = vacancy("check", "-f", "-", "-o", "json", "-n", "team", *files, text=f"{FULL}---{ROOM}")
    server.answer = (200, local.stdout.encode())
    found = vacancy("check", "-f", "-", "-o", "json", "-n", "team", "--server", url(server), text=f"{FULL}---{ROOM}")
    assert (found.exit_code, found.stdout) == (1, local.stdout)
    ((method, path, body),) = server.asked
    assert (method, path) == ("POST", "/api/v1/check?namespace=team")
    assert [item["metadata"]["name"] for item in json.loads(body)["items"]] == ["busy", "lucky"]


FROM_ELSEWHERE = {"VACANCY_MANIFESTS": "/nowhere", "VACANCY_NOW": CLOCK}


def test_a_server_named_by_a_flag_wins_over_files_named_by_a_variable(
    files: list[str], server: ThreadingHTTPServer
) -> None:
    server.answer = (200, vacancy("capacity", "-o", "json", *files).stdout.encode())
    found = vacancy("capacity", "--server", url(server), **FROM_ELSEWHERE)
    assert (found.exit_code, found.stderr) == (0, "")


def test_files_and_a_server_named_by_flags_contradict_each_other(files: list[str]) -> None:
    found = vacancy("capacity", "--server", "http://127.0.0.1:1", *files[:2])
    assert found.exit_code == 2
    assert "found --server and --manifests" in found.stderr


def test_the_cluster_named_by_a_flag_wins_over_files_named_by_a_variable(tmp_path: Path) -> None:
    found = process("-m", "app", "capacity", "--direct", "--kubeconfig", str(tmp_path / "none"), **FROM_ELSEWHERE)
    assert found.returncode == 2
    assert "no cluster: " in found.stderr


@pytest.mark.parametrize(
    "arguments", [("capacity",), ("explain", "example.com/full"), ("check", "-f", "-")], ids=lambda words: words[0]
)
def test_what_a_server_says_cannot_steer_the_terminal(
    files: list[str], server: ThreadingHTTPServer, arguments: tuple[str, ...]
) -> None:
    local = vacancy(*arguments, "-o", "json", *files, text=FULL).stdout
    for word in ("example.com", "busy", "n1"):
        local = local.replace(word, f"{word}\\u001b[2J\\n")
    server.answer = (200, local.encode())
    found = vacancy(*arguments, "--server", url(server), text=FULL)
    assert "?[2J" in found.stdout
    assert "\x1b" not in found.stdout
    assert len(found.stdout.splitlines()) == len(vacancy(*arguments, *files, text=FULL).stdout.splitlines())


def test_explain_keeps_the_slash_and_takes_404_for_an_answer(files: list[str], server: ThreadingHTTPServer) -> None:
    server.answer = (404, vacancy("explain", "example.com/other", "-o", "json", *files).stdout.encode())
    assert vacancy("explain", "example.com/other", "--server", url(server)).exit_code == 1
    assert server.asked[0][1] == "/api/v1/explain/example.com/other"


SERVER_FAULTS = {
    "an error of the server": ((500, b"oops"), 3, "HTTP 500"),
    "another program": ((200, b"<html>"), 3, "not an answer of Vacancy"),
    "another program without the page": ((404, b"<html>"), 3, "not an answer of Vacancy"),
    "a text the server does not take": ((400, b'{"error":"manifest:1: no"}'), 2, "manifest:1: no"),
    "a complaint that would steer the terminal": ((400, b'{"error":"\\u001b[2J"}'), 2, "vacancy: ?[2J\n"),
    "a text too large for the server": ((413, b"too large"), 2, "the server does not take it"),
}


@pytest.mark.parametrize("case", SERVER_FAULTS)
def test_what_a_server_may_answer_instead(server: ThreadingHTTPServer, case: str) -> None:
    server.answer, code, said = SERVER_FAULTS[case]
    found = vacancy("check", "-f", "-", "-o", "json", "--server", url(server), text=ROOM)
    assert (found.exit_code, found.stdout) == (code, "")
    assert said in found.stderr


def test_a_server_that_is_not_there_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    found = vacancy("capacity", "--server", f"http://127.0.0.1:{port}")
    assert found.exit_code == 3
    assert found.stderr == f"vacancy: no answer: http://127.0.0.1:{port}: [Errno 111] Connection refused\n"


@pytest.mark.parametrize("address", ["file:///etc/passwd", "localhost:8080", "http://"])
def test_a_server_is_an_http_address(address: str) -> None:
    assert vacancy("capacity", "--server", address).exit_code == 2


# --- In a process of its own ------------------------------------------------------------------------------------------


def process(*arguments: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command, variables = [sys.executable, *arguments], os.environ | environment
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False, env=variables)


def test_the_program_reads_stdin_and_exits_with_its_code(files: list[str]) -> None:
    found = process("-m", "app", "check", "-f", "-", *files, text=FULL)
    assert (found.returncode, found.stderr) == (1, "")
    assert found.stdout.startswith("full    default/busy: [NoGPUCapacity]")
    assert "\x1b" not in found.stdout


def test_watching_shows_the_table_until_interrupted(files: list[str]) -> None:
    command = [sys.executable, "-m", "app", "capacity", "--watch", *files]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith(b"CLASS / POOL")
        watching.send_signal(signal.SIGINT)
        assert watching.wait() == 0


def test_kubectl_calls_it_by_another_name() -> None:
    found = process("-c", "import sys; sys.argv = ['/bin/kubectl-vacancy', '--help']; from app.cli import main; main()")
    assert found.stdout.startswith("Usage: kubectl vacancy [OPTIONS]")


def test_a_check_of_files_loads_nothing_that_serves(files: list[str]) -> None:
    code = (
        "import sys; from app.cli import app; "
        f"app(['check', '-f', '-', *{files!r}], standalone_mode=False); "
        "print(sorted({'fastapi', 'uvicorn', 'kubernetes', 'prometheus_client', 'asyncio'} & set(sys.modules)))"
    )
    assert process("-c", code, text=ROOM).stdout.splitlines()[-1] == "[]"
