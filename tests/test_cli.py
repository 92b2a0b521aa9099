"""The command line: exit codes and text, on files and against a server; a few in processes of their own."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from typer.testing import CliRunner, Result

from app import commands, selftest
from app.cli import app
from app.settings import SETTINGS
from app.web.problems import problem
from tests.canned import Canned, canned
from tests.web.tiny_cluster import CLUSTER

ROOT = Path(__file__).parents[1]

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
    assert found.stderr == "vacancy: skipped 1 object without a pod: ConfigMap\n"
    assert vacancy("check", "-f", "-", *files, text=CLAIM).stderr == "vacancy: neither pod nor workload in the input\n"


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


def test_without_a_cluster_one_line_says_what_to_do(tmp_path: Path) -> None:
    found = vacancy("check", "-f", "-", text=ROOM, HOME=str(tmp_path), KUBECONFIG="")
    assert (found.exit_code, found.stdout) == (2, "")
    path = tmp_path / ".kube" / "config"
    otherwise = "(or ask elsewhere: --kubeconfig, --server, --manifests)"
    assert found.stderr == f"vacancy: no cluster to ask: {path}: no such kubeconfig {otherwise}\n"


def test_a_custom_resource_is_listed_with_kind_and_path_template_by_template(files: list[str]) -> None:
    template = "{spec: {containers: [{name: c, resources: {limits: {example.com/%s: 1}}}]}}"
    ray = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: ray, namespace: team}\nspec:\n"
    ray += f"  headGroupSpec: {{template: {template % 'roomy'}}}\n"
    ray += f"  workerGroupSpecs: [{{replicas: 2, template: {template % 'full'}}}]\n"
    found = vacancy("check", "-f", "-", *files, text=f"{OTHER}---\n{ray}")
    head, workers = found.stdout.splitlines()
    assert head.startswith("room    RayCluster team/ray spec.headGroupSpec.template: [HasRoom]")
    assert workers.startswith("full    RayCluster team/ray spec.workerGroupSpecs[0].template: [NoGPUCapacity]")
    assert workers.endswith(" This is for each of 2 replicas alone.")
    assert (found.exit_code, found.stderr) == (1, "vacancy: skipped 1 object without a pod: ConfigMap\n")


def test_settings_come_from_the_environment_too(files: list[str]) -> None:
    found = vacancy(
        "check", "-f", "-", text=FULL, VACANCY_MANIFESTS=files[1], VACANCY_NOW=CLOCK, VACANCY_DYNAMIC="full"
    )
    assert found.stdout.startswith("unknown default/busy: [Dynamic]")


def test_what_objects_are_called_cannot_steer_the_terminal(files: list[str]) -> None:
    evil = POD.replace("%s", '"a\\e[2J\\nroom", namespace: "\\u009b"', 1) % ("example.com/roomy", 1)
    (line,) = vacancy("check", "-f", "-", *files, text=evil).stdout.splitlines()
    assert line.split(":")[0] == "room    ?/a?[2J room"


def test_what_a_mistaken_object_calls_itself_cannot_steer_the_terminal(files: list[str]) -> None:
    odd = 'apiVersion: a.b/v1\nkind: "Po\\e]0;x\\ad\\nroom"\n'
    odd += "spec: {template: {spec: {containers: [{name: c, resources: 5}]}}}"
    found = vacancy("check", "-f", "-", *files, text=odd)
    assert (found.exit_code, found.stderr.split(": Expected ")[0]) == (2, "vacancy: stdin:1: Po?]0;x?d room")
    assert found.stderr.count("\n") == 1


def test_nor_can_a_file(tmp_path: Path, files: list[str]) -> None:
    found = vacancy("check", "-f", str(tmp_path / "\x1b[2J"), *files)
    assert found.stderr == f"vacancy: {tmp_path}/?[2J: No such file or directory\n"


# --- capacity and explain ---------------------------------------------------------------------------------------------


def test_capacity_is_a_plain_table_in_a_pipe(files: list[str]) -> None:
    assert vacancy("capacity", *files).stdout.splitlines() == [
        "CLASS/POOL            RESOURCE/NODE      VACANCY  AVAILABLE  ALLOCATED  UNAVAILABLE  TOTAL  SEEN",
        "full                  example.com/full   full             0          1            0      1  seen live",
        "  gpu.example.com/n1  n1                 full             0          1            0      1  -",
        "roomy                 example.com/roomy  free             1          0            0      1  seen live",
        "  gpu.example.com/n1  n1                 free             1          0            0      1  -",
    ]


EXAMPLES = ["--manifests", str(ROOT / "examples" / "cluster"), "--now", "2026-01-01T12:00:00Z"]


def test_capacity_says_where_a_full_class_does_not_mean_a_refusal() -> None:
    found = vacancy("capacity", *EXAMPLES, "--autoscaled", "mig-whole")
    seen = {line.split()[0]: line.split(" ago", 1)[-1] for line in found.stdout.splitlines() if " full " in line}
    assert {name: rest for name, rest in seen.items() if "/" not in name} == {
        "fpga": ", never refused: device plugin",
        "gpu-legacy": ", shadowed by gpu.example.com",
        "gpu.example.com": "",
        "mig-whole": ", never refused: autoscaled",
    }


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


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("autoscaled", "a new node may bring devices, the pod may wait for it"),
        ("dynamic", "devices are made on demand"),
    ],
)
def test_explain_tells_that_nobody_is_refused_and_why(files: list[str], setting: str, why: str) -> None:
    arguments = ["explain", "example.com/full", *files, f"--{setting}", "full"]
    assert vacancy(*arguments).stdout.splitlines()[1] == f"Never refused: {setting} ({why})."
    assert json.loads(vacancy(*arguments, "-o", "json").stdout)["neverRefused"] == setting.capitalize()


BEHIND = {
    "an incomplete pool": ("gpu-new", "an unknown number of devices in 1 pool of newgpu.example.com.", (None, 1)),
    "equal devices": ("gpu-t4", "6 devices in 2 pools of inference.example.com, all alike.", (6, 2)),
}


@pytest.mark.parametrize("case", BEHIND)
def test_explain_tells_how_many_devices_there_are_or_that_it_is_unknown(case: str) -> None:
    name, said, numbers = BEHIND[case]
    assert f"Behind it: {said}" in vacancy("explain", name, *EXAMPLES).stdout.splitlines()
    found = json.loads(vacancy("explain", name, *EXAMPLES, "-o", "json").stdout)
    assert (found["devices"], found["pools"]) == numbers
    assert found["claimants"][0]["total"] == numbers[0]


def test_explain_of_a_name_nobody_knows_exits_with_1(files: list[str]) -> None:
    found = vacancy("explain", "example.com/other", *files)
    assert found.exit_code == 1
    assert found.stdout == "example.com/other: no device class has or declares this name\n"


@pytest.mark.parametrize(
    "arguments", [("explain", "\udcff"), ("check", "-f", "-", "-n", "\udcff")], ids=lambda words: words[0]
)
def test_what_is_no_text_is_bad_usage(files: list[str], arguments: tuple[str, ...]) -> None:
    """Arguments that are not UTF-8 reach Python as halves of surrogate pairs."""
    found = vacancy(*arguments, "-o", "json", *files, text=ROOM)
    assert (found.exit_code, found.stdout) == (2, "")
    assert r"='\udcff': expected UTF-8" in found.stderr


def test_a_mistake_of_ours_is_no_answer_and_told_without_what_it_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_: object) -> None:
        raise KeyError(FULL)

    monkeypatch.setattr(commands, "answers", mistaken)
    found = vacancy("check", "-f", "-", text=FULL)
    assert (found.exit_code, found.stdout) == (3, "")
    assert re.fullmatch(r"vacancy: no answer: unexpected KeyError in test_cli.mistaken, line \d+\n", found.stderr)


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
    "no cluster, and a terminal to steer": (
        ["--webhooks", "a", "--kubeconfig", "\x1b[2J"],
        "bad setting:\n  no cluster: ?[2J: no such kubeconfig",
    ),
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


@pytest.fixture
def server() -> Iterator[Canned]:
    with canned() as server:
        yield server


def test_a_server_is_asked_with_all_objects_in_one_list(files: list[str], server: Canned) -> None:
    local = vacancy("check", "-f", "-", "-o", "json", "-n", "team", *files, text=f"{FULL}---{ROOM}")
    server.answer = (200, local.stdout.encode())
    found = vacancy("check", "-f", "-", "-o", "json", "-n", "team", "--server", server.url, text=f"{FULL}---{ROOM}")
    assert (found.exit_code, found.stdout) == (1, local.stdout)
    ((method, path, _, body),) = server.asked
    assert (method, path) == ("POST", "/api/v1/check?namespace=team")
    assert [item["metadata"]["name"] for item in json.loads(body)["items"]] == ["busy", "lucky"]


FROM_ELSEWHERE = {"VACANCY_MANIFESTS": "/nowhere", "VACANCY_NOW": CLOCK}


def test_a_server_named_by_a_flag_wins_over_files_named_by_a_variable(files: list[str], server: Canned) -> None:
    server.answer = (200, vacancy("capacity", "-o", "json", *files).stdout.encode())
    found = vacancy("capacity", "--server", server.url, **FROM_ELSEWHERE)
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
    files: list[str], server: Canned, arguments: tuple[str, ...]
) -> None:
    local = vacancy(*arguments, "-o", "json", *files, text=FULL).stdout
    for word in ("example.com", "busy", "n1"):
        local = local.replace(word, f"{word}\\u001b[2J\\n")
    server.answer = (200, local.encode())
    found = vacancy(*arguments, "--server", server.url, text=FULL)
    assert "?[2J" in found.stdout
    assert "\x1b" not in found.stdout
    assert len(found.stdout.splitlines()) == len(vacancy(*arguments, *files, text=FULL).stdout.splitlines())


BY_ITS_OWN = "a server judges by its own; expected --direct or --manifests as well"
IDLE = {
    "the chart's Service": ([], ["--autoscaled", "full"], f"--autoscaled: {BY_ITS_OWN}"),
    "a Service": (
        ["--service", "gpu/ours"],
        ["--max-age", "5", "--source", "both"],
        f"--source, --max-age: {BY_ITS_OWN}",
    ),
    "an address": (["--server", "http://127.0.0.1:1"], ["--hide-names", "true"], f"--hide-names: {BY_ITS_OWN}"),
    "the cluster itself": (
        ["--direct"],
        ["--max-age", "5", "--autoscaled", "full"],
        "--max-age: --direct judges by what it sees live, and asks for no counts",
    ),
}


@pytest.mark.parametrize("case", IDLE)
def test_a_flag_that_would_not_be_heeded_is_bad_usage(case: str) -> None:
    where, flags, said = IDLE[case]
    found = vacancy("check", "-f", "-", *where, *flags, text=ROOM)
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr == f"vacancy: 1 bad setting:\n  {said}\n"


def test_a_variable_that_a_server_does_not_heed_is_none_of_its_business(files: list[str], server: Canned) -> None:
    server.answer = (200, vacancy("capacity", "-o", "json", *files).stdout.encode())
    found = vacancy("capacity", "--server", server.url, VACANCY_AUTOSCALED="full", VACANCY_SOURCE="witness")
    assert (found.exit_code, found.stderr) == (0, "")


def test_explain_keeps_the_slash_and_takes_404_for_an_answer(files: list[str], server: Canned) -> None:
    server.answer = (404, vacancy("explain", "example.com/other", "-o", "json", *files).stdout.encode())
    assert vacancy("explain", "example.com/other", "--server", server.url).exit_code == 1
    assert server.asked[0].path == "/api/v1/explain/example.com/other"


def complaint(detail: str) -> bytes:
    return msgspec.json.encode(problem(400, detail))


SERVER_FAULTS = {
    "an error of the server": ((500, b"oops"), 3, "HTTP 500"),
    "another program": ((200, b"<html>"), 3, "not an answer of Vacancy"),
    "another program of many brackets": ((200, b'{"a":' + b"[" * 100_000), 3, "not an answer of Vacancy"),
    "another program without the page": ((404, b"<html>"), 3, "not an answer of Vacancy"),
    "a text the server does not take": ((400, complaint("manifest:1: no")), 2, "manifest:1: no"),
    "a complaint that would steer the terminal": ((400, complaint("\u001b[2J")), 2, "vacancy: ?[2J\n"),
    "a text too large for the server": ((413, b"too large"), 2, "the server does not take it"),
}


@pytest.mark.parametrize("case", SERVER_FAULTS)
def test_what_a_server_may_answer_instead(server: Canned, case: str) -> None:
    server.answer, code, said = SERVER_FAULTS[case]
    found = vacancy("check", "-f", "-", "-o", "json", "--server", server.url, text=ROOM)
    assert (found.exit_code, found.stdout) == (code, "")
    assert said in found.stderr


def test_a_server_that_is_not_there_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    found = vacancy("capacity", "--server", f"http://127.0.0.1:{port}")
    assert found.exit_code == 3
    assert found.stderr == f"vacancy: no answer: http://127.0.0.1:{port}: [Errno 111] Connection refused\n"


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "localhost:8080",
        "http://",
        "http://a..b",
        "http://[::1",
        "http://h/ü",
        "http://me:s3cret@h",
        "ftp://me:s3cret@h",
    ],
)
def test_a_server_is_an_http_address(address: str) -> None:
    found = vacancy("capacity", "--server", address)
    shown = ascii(address.rpartition("@")[2])
    assert found.exit_code == 2
    assert f"  --server={shown}: expected an http or https address, without name and password\n" in found.stderr
    assert "s3cret" not in found.stderr


def test_a_proxy_that_is_none_is_no_answer() -> None:
    found = vacancy("capacity", "--server", "http://h", http_proxy="http://a..b:1", no_proxy="", NO_PROXY="")
    assert (found.exit_code, found.stderr.count("\n")) == (3, 1)
    assert found.stderr.startswith("vacancy: no answer: http://h: ")


def test_words_of_a_newer_server_are_printed_and_refuse_nothing(files: list[str], server: Canned) -> None:
    local = vacancy("check", "-f", "-", "-o", "json", *files, text=FULL).stdout
    server.answer = (200, local.replace('"verdict": "full"', r'"verdict": "soon\u001b"').encode())
    found = vacancy("check", "-f", "-", "--server", server.url, text=FULL)
    assert (found.exit_code, found.stdout.split(":")[0]) == (0, "soon?   default/busy")
    assert vacancy("check", "-f", "-", "--strict", "--server", server.url, text=FULL).exit_code == 5


@pytest.mark.parametrize("arguments", [("capacity",), ("explain", "example.com/full")], ids=lambda words: words[0])
def test_reasons_of_a_newer_server_are_printed_by_name(
    files: list[str], server: Canned, arguments: tuple[str, ...]
) -> None:
    local = json.loads(vacancy(*arguments, "-o", "json", *files).stdout)
    (local if arguments[0] == "explain" else local["classes"][0])["neverRefused"] = "Rented"
    for each in local.get("classes", ()) or local["claimants"]:
        each |= {"vacancy": "unknown", "reason": "New\x1b"}
    server.answer = (200, json.dumps(local).encode())
    found = vacancy(*arguments, "--server", server.url)
    assert (found.exit_code, found.stderr) == (0, "")
    assert ", New?" in found.stdout
    assert "ever refused: Rented" in found.stdout


# --- In a process of its own ------------------------------------------------------------------------------------------


def process(*arguments: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command, variables = [sys.executable, *arguments], os.environ | environment
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False, env=variables)


def test_the_program_reads_stdin_and_exits_with_its_code(files: list[str]) -> None:
    found = process("-m", "app", "check", "-f", "-", *files, text=FULL)
    assert (found.returncode, found.stderr) == (1, "")
    assert found.stdout.startswith("full    default/busy: [NoGPUCapacity]")
    assert "\x1b" not in found.stdout


UNREAD = {
    "check": ("check", "-f", "-"),
    "check, in JSON": ("check", "-f", "-", "-o", "json"),
    "capacity": ("capacity",),
    "capacity, in YAML": ("capacity", "-o", "yaml"),
    "capacity, again and again": ("capacity", "--watch"),
    "explain": ("explain", "example.com/full"),
    "a usage that is bad, with nobody to hear of it": ("capacity", "--watch", "-o", "json"),
}


@pytest.mark.parametrize("case", UNREAD)
def test_where_nobody_reads_on_a_command_ends_as_others_do_in_silence_and_by_no_exit_code(
    files: list[str], case: str
) -> None:
    """As in `| head -1`, but without the luck of who is first."""
    theirs, ours = os.pipe()
    os.close(theirs)
    told = ours if "bad" in case else subprocess.PIPE
    command = [sys.executable, "-m", "app", *UNREAD[case], *files]
    found = subprocess.run(command, input=FULL, text=True, stdout=ours, stderr=told, check=False)
    os.close(ours)
    assert (found.returncode, found.stderr or "") == (-signal.SIGPIPE, "")


def test_watching_shows_the_table_until_interrupted(files: list[str]) -> None:
    command = [sys.executable, "-m", "app", "capacity", "--watch", *files]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        blocks = [[watching.stdout.readline() for _ in range(7)] for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert (watching.wait(), watching.stderr.read()) == (0, b"")
    for time, heading, *_, end in blocks:
        assert re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n", time)
        assert heading.startswith(b"CLASS/POOL")
        assert end == b"\n"


def test_watching_goes_on_while_the_server_is_away(files: list[str], server: Canned) -> None:
    table = vacancy("capacity", "-o", "json", *files).stdout.encode()
    server.answer = (200, table)
    command = [sys.executable, "-m", "app", "capacity", "--watch", "--server", server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        for line in watching.stdout:
            if line == b"\n" and server.answer[0] == 200:
                server.answer = (500, b"away")
            elif b"no answer" in line:
                assert line.endswith(b"HTTP 500\n")
                break
        server.answer = (200, table)
        assert any(line.startswith(b"CLASS/POOL") for line in iter(watching.stdout.readline, b""))
        watching.send_signal(signal.SIGINT)
        assert (watching.wait(), watching.stderr.read()) == (0, b"")


def test_watching_says_when_the_files_are_not_readable_any_more(files: list[str]) -> None:
    command = [sys.executable, "-m", "app", "capacity", "--watch", *files]
    file = Path(files[1]) / "cluster.yaml"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert b"\n" in iter(watching.stdout.readline, b"")
        file.write_text("kind: [", "utf-8")
        remarks = [watching.stdout.readline() for _ in range(2)]
        file.write_text(CLUSTER, "utf-8")
        assert any(line.startswith(b"CLASS/POOL") for line in iter(watching.stdout.readline, b""))
        watching.send_signal(signal.SIGINT)
        assert (watching.wait(), watching.stderr.read()) == (0, b"")
    for remark in remarks:
        assert b"Z no answer, so this is the last known: " in remark
        assert b"cluster.yaml:1: " in remark


def test_watching_what_was_never_there_is_no_answer() -> None:
    assert vacancy("capacity", "--watch", "--server", "http://127.0.0.1:1").exit_code == 3


def on_terminal(command: list[str], until: Callable[[bytes], bool], **environment: str) -> bytes:
    """What a program writes to a terminal of 80 columns until it ends, or is interrupted once it has written enough."""
    ours, theirs = pty.openpty()
    variables = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}}
    variables |= {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40", **environment}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=variables) as process:
        os.close(theirs)
        seen, is_enough = b"", False
        while True:
            try:
                seen += os.read(ours, 4096)
            except OSError:  # it has ended
                break
            if not is_enough and until(seen):
                process.send_signal(signal.SIGINT)
                is_enough = True
        assert process.stderr is not None
        assert (process.wait(), process.stderr.read()) == (0, b"")
    os.close(ours)
    return seen


COLOUR = re.compile(rb"\x1b\[(?:\d+;)*3[1-6]m")


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["in colour", "without"])
def test_on_a_terminal_the_table_is_drawn_in_place_and_in_colour_if_wanted(
    files: list[str], environment: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "app", "capacity", "--watch", *files]
    seen = on_terminal(command, lambda seen: seen.count(b"VACANCY") == 2, **environment)
    assert b"\x1b[1A" in seen, "the cursor goes up to where the table begins"
    assert b"\x1b[?25h" in seen, "the cursor is shown again"
    assert bool(COLOUR.search(seen)) is (environment == {})


def test_names_are_whole_on_a_narrow_terminal(files: list[str]) -> None:
    seen = on_terminal([sys.executable, "-m", "app", "capacity", *files], lambda _: False)
    assert b"  gpu.example.com/n1  n1 " in seen
    assert COLOUR.search(seen)


def test_a_pipe_gets_plain_text_whatever_a_variable_says(files: list[str]) -> None:
    found = process("-m", "app", "capacity", *files, FORCE_COLOR="1", TTY_COMPATIBLE="1")
    assert "\x1b" not in found.stdout
    assert found.stdout.isascii()


def test_an_answer_that_was_interrupted_is_none() -> None:
    """Not 1, by which a pipeline would take the pod for refused."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        command = [sys.executable, "-m", "app", "capacity", "--server", f"http://127.0.0.1:{silent.getsockname()[1]}"]
        with subprocess.Popen(command) as asking, silent.accept()[0]:
            asking.send_signal(signal.SIGINT)
            assert asking.wait() == 130


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
