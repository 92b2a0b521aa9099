"""What the documents have one type in a checkout, without a cluster, does what they say."""

import gzip
import json
import re
from typing import Any

import pytest
import yaml

from tests.controlplane.cache import cache
from tests.docs.blocks import BLOCKS, Command
from tests.docs.shell import Shell
from tests.docs.table import IN_CHECKOUT, NOT_RUN
from tests.ledger.auditing import GPU, Json, event, line, meant
from tests.test_docs import ROOT

EXAMPLE = {"VACANCY_MANIFESTS": "examples/cluster", "VACANCY_NOW": "2026-01-01T12:00:00Z"}

BUILT = {"XDG_CACHE_HOME": str(cache().parent)}
"""What was built before."""

MAKE_RUN = "make run"

COMMANDS = [
    (name, command)
    for name in IN_CHECKOUT
    for command in BLOCKS[name].commands()
    if command.text not in NOT_RUN and command.text != MAKE_RUN
]

SSH = '#!/bin/sh\nshift\nexec "$@"\n'
"""Every host is this one."""


def judged(namespace: str, devices: int, memory: str = "40Gi 40Gi", *, name: str = GPU, **more: Any) -> Json:  # noqa: ANN401
    """The event of a pod that asked for one of so many devices; `more`: what `event` takes."""
    least, most = memory.split()
    of = "a100-40" if most == "40Gi" else "a100"
    resolved = {name: meant(more.pop("count", 1), of=of, memory=(least, most), devices=devices)}
    return event(namespace, **{"resolved": resolved, "stageTimestamp": "2026-11-30T08:25:11.259017Z", **more})


AUDITED = (
    judged("speech", 3),
    judged("speech", 3, count=2),
    judged("speech", 3, found="full NoGPUCapacity", denied=True),
    judged("research", 3, found="full NoGPUCapacity", webhook="warn.pods.gpu-vacancy.dev"),
    judged("research", 6, "40Gi 80Gi"),
    judged("vision", 6, "40Gi 80Gi"),
    judged("vision", 3, "80Gi 80Gi", name="gpu/device", stageTimestamp="2026-11-30T08:25:13.725279Z"),
)
"""What the page tells of the ledger."""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    shell = Shell(folder, EXAMPLE | BUILT, {"ssh": folder / "ssh"})
    first, *others = map(line, AUDITED)
    (shell.folder / "audit.log").write_bytes(first)
    (shell.folder / "audit-2026-11-29.log.gz").write_bytes(gzip.compress(b"".join(others)))
    # What the second command of a block reads, for either may be the first that is run.
    shell.run("vacancy check -f examples/pods/full.yaml -o json > devices.json")
    return shell


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=lambda each: each if isinstance(each, str) else each.text)
def test_a_command_ends_as_its_comment_says(shell: Shell, name: str, command: Command) -> None:
    shell.type(command, instead=IN_CHECKOUT[name])


README = " ".join((ROOT / "README.md").read_text("utf-8").split())


def quoted_refusal() -> str:
    [quoted] = re.findall(r"\[NoGPUCapacity\].*?run on CPU\.", README)
    return str(quoted)


def test_what_make_run_says_to_try_can_be_tried(shell: Shell) -> None:
    # In a network of its own, where its ports are free whatever runs on this machine.
    server = shell.start(MAKE_RUN, "unshare", "--net", "bash", "-c", 'ip link set lo up && exec "$@"', "bash")
    to_try = dict(re.findall(r"^  (page|refusal|command) +(.*)$", shell.log, re.MULTILINE))
    page, refusal, command = (
        shell.run(f"nsenter --target {server.pid} --net -- {typed}")
        for typed in (f"curl -sf {to_try['page']}docs", f"{to_try['refusal']} -s", to_try["command"])
    )
    Shell.interrupt(server)
    assert f"<{to_try['page']}>" in README
    assert page.returncode == 0, page.stderr
    assert json.loads(refusal.stdout)["response"]["status"]["message"] == quoted_refusal()
    assert (command.returncode, command.stdout.endswith(f"{quoted_refusal()}\n")) == (1, True)


def test_the_ledger_is_shown_as_it_is_printed(shell: Shell) -> None:
    name = 'docs/ledger.md: What did "1" mean?'
    files, _ = BLOCKS[name].commands()
    assert shell.type(files, instead=IN_CHECKOUT[name]) == BLOCKS["docs/ledger.md: What it shows"].text


def test_a_task_that_waits_for_a_device_knows_the_verdicts() -> None:
    task, later = (yaml.safe_load(BLOCKS[f"docs/pipelines.md: Tekton{number}"].text) for number in ("", " (2)"))
    [condition], [result] = later["when"], task["spec"]["results"]
    assert condition["input"] == f"$(tasks.{task['metadata']['name']}.results.{result['name']})"
    written = set(re.findall(r"verdict=(\w+)", task["spec"]["steps"][1]["script"]))
    assert set(condition["values"]) == written - {"room", "unanswered"}
