"""`vacancy ledger`: what it reads, what it prints, how it ends."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from app import audit_log
from app.cli import app
from app.unanswered import Unusable
from tests.dra.small_clusters import quick
from tests.ledger.auditing import GPU, event, line, meant, refused

UNEQUAL = b"".join(
    line(each)
    for each in (
        event("team-a", resolved={GPU: meant(2, of="old")}),
        event("team-b", resolved={GPU: meant(of="new", memory=("80Gi", "80Gi"))}),
        event("team-b", resolved={"gpu/one": meant(of="any", memory=("40Gi", "80Gi"), devices=16)}),
        refused("team-b", resolved={GPU: meant(of="new", memory=("80Gi", "80Gi"))}),
        event("team-c", found="unknown OptedOut", resolved={}),
    )
)


def ledger(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["ledger", *map(str, arguments)])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "audit.log"
    path.write_bytes(UNEQUAL)
    return path


# --- What it prints ---------------------------------------------------------------------------------------------------


def test_the_table_says_what_one_was_and_for_whom(log: Path) -> None:
    found = ledger(log)
    assert (found.exit_code, found.stderr) == (0, "")
    head, *lines = (" ".join(each.split()) for each in found.stdout.splitlines())
    assert head.startswith("Pods judged from 2026-01-01T12:00:00.")
    assert lines == [
        "",
        "NAMESPACE ASKED FOR CLASS DRIVERS PODS DEVICES NOT CREATED MEMORY OF 1 OUT OF",
        "team-a example.com/gpu old gpu.example.com 1 2 0 40Gi 8 devices",
        "team-b example.com/gpu new gpu.example.com 1 1 1 80Gi 8 devices",
        "team-b (the class, in a claim) any gpu.example.com 1 1 0 40Gi to 80Gi 16 devices",
        "",
        "NAMESPACE PODS OUTCOME REASON",
        "team-a 1 admitted HasRoom",
        "team-b 2 admitted HasRoom",
        "team-b 1 refused NoGPUCapacity",
        "team-c 1 admitted OptedOut",
        "",
        "EQUAL COUNTS, UNEQUAL DEVICES MEMORY OF 1 CLASS DEVICES PODS NAMESPACES",
        "1 example.com/gpu 40Gi old 2 1 team-a",
        "1 example.com/gpu 80Gi new 1 1 team-b",
        "1 of class any 40Gi to 80Gi any 1 1 team-b",
    ]


def test_equal_devices_are_not_listed_as_unequal(log: Path) -> None:
    log.write_bytes(line(event("team-a")) + line(event("team-b")))
    assert "UNEQUAL" not in ledger(log).stdout


def test_many_namespaces_are_counted_and_not_all_named(log: Path) -> None:
    spread = {GPU: meant(memory=("40Gi", "80Gi"))}
    log.write_bytes(b"".join(line(event(f"team-{each}", resolved=spread)) for each in range(5)))
    assert ledger(log).stdout.rstrip().endswith("team-0, team-1, team-2, 2 more")


def test_what_is_not_known_is_called_so(log: Path) -> None:
    log.write_bytes(line(event(resolved={GPU: {"count": 1, "class": "gpu"}})))
    assert ledger(log).stdout.splitlines()[3].split()[-2:] == ["unknown", "unknown"]


def test_what_a_device_plugin_serves_is_listed_beside_what_is_known(log: Path) -> None:
    with log.open("ab") as file:
        file.write(line(event("team-d", found="unknown DevicePlugin", resolved={GPU: {"count": 3}})))
    lines = [" ".join(each.split()) for each in ledger(log).stdout.splitlines()]
    assert "team-d example.com/gpu unknown 1 3 0 unknown unknown" in lines
    assert "1 example.com/gpu unknown unknown 3 1 team-d" in lines


def test_json_and_yaml_hold_the_same(log: Path) -> None:
    as_json = json.loads(ledger(log, "-o", "json").stdout)
    assert yaml.safe_load(ledger(log, "-o", "yaml").stdout) == as_json
    assert [each["namespace"] for each in as_json["namespaces"]] == ["team-a", "team-b", "team-c"]


def test_csv_has_a_row_for_each_difference(log: Path) -> None:
    found = list(csv.DictReader(io.StringIO(ledger(log, "-o", "csv").stdout)))
    assert [(row["namespace"], row["outcome"], row["memory_min"], row["count"]) for row in found] == [
        ("team-a", "admitted", "40Gi", "2"),
        ("team-b", "admitted", "80Gi", "1"),
        ("team-b", "refused", "80Gi", "1"),
        ("team-b", "admitted", "40Gi", "1"),
        ("team-c", "admitted", "", ""),
    ]


@pytest.mark.parametrize("form", ["text", "json", "yaml", "csv"])
def test_nothing_in_a_log_steers_a_terminal_or_a_spreadsheet(log: Path, form: str) -> None:
    evil = '=cmd("\x1b[2J")\n'
    log.write_bytes(line(event(evil, resolved={f"a.b/{evil}": meant(of=evil)}, stageTimestamp=evil)))
    found = ledger(log, "-o", form)
    assert found.exit_code == 0
    assert "\x1b" not in found.stdout
    if form == "csv":
        ((namespace, *_),) = list(csv.reader(io.StringIO(found.stdout)))[1:]
        assert namespace == '\'=cmd("?[2J")'


# --- What it reads ----------------------------------------------------------------------------------------------------


def test_several_logs_are_one_ledger_and_compressed_ones_are_known_by_their_bytes(tmp_path: Path, log: Path) -> None:
    older = tmp_path / "audit.1"
    older.write_bytes(gzip.compress(line(event("team-d"))) + gzip.compress(line(event("team-e"))))
    found = json.loads(ledger(older, log, "-o", "json").stdout)
    names = [each["namespace"] for each in found["namespaces"]]
    assert names == ["team-a", "team-b", "team-c", "team-d", "team-e"]


@pytest.mark.parametrize("content", [UNEQUAL, gzip.compress(UNEQUAL)], ids=["plain", "gzip"])
def test_standard_input_is_read_as_a_file_would_be(log: Path, content: bytes) -> None:
    command = [sys.executable, "-m", "app", "ledger", "-"]
    found = subprocess.run(command, input=content, capture_output=True, check=False)
    assert (found.returncode, found.stderr) == (0, b"")
    assert found.stdout.decode() == ledger(log).stdout


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_where_nobody_reads_on_it_ends_as_others_do_in_silence(log: Path, form: str) -> None:
    theirs, ours = os.pipe()
    os.close(theirs)
    command = [sys.executable, "-m", "app", "ledger", str(log), "-o", form]
    found = subprocess.run(command, stdout=ours, stderr=subprocess.PIPE, check=False)
    os.close(ours)
    assert (found.returncode, found.stderr) == (-signal.SIGPIPE, b"")


def test_lines_that_are_no_use_are_counted_and_the_first_is_named(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_LINE_BYTES", 4096)
    cut, long = b'"stage":"ResponseComplete"}\n', b'{"requestObject":"' + b"x" * 9000 + b'"}\n'
    log.write_bytes(cut + UNEQUAL + b"\n" + long + long + cut + line(event("team-d"))[:50])
    found = ledger(log, "-o", "json")
    assert found.exit_code == 0
    assert len(json.loads(found.stdout)["namespaces"]) == 3
    odd, too_long = found.stderr.splitlines()
    assert odd == f"vacancy: 3 lines are no audit event (a rotated log may start within a line), the first is {log}:1"
    assert too_long.startswith("vacancy: 2 lines are longer than ")
    assert too_long.endswith(f"{log}:8")


def test_a_line_as_long_as_may_be_is_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = line(event())
    monkeypatch.setattr(audit_log, "MAX_LINE_BYTES", len(one))
    log.write_bytes(one + one)
    assert ledger(log, "-o", "csv").stderr == "vacancy: 1 event written twice, and counted once\n"


def test_what_is_left_out_is_said(log: Path) -> None:
    one, unreadable = line(event()), line(event(resolved="?"))
    log.write_bytes(one + one + unreadable + line(event(requestURI="/api/v1/namespaces/a/pods?dryRun=All")))
    assert ledger(log, "-o", "csv").stderr.splitlines() == [
        "vacancy: 1 dry run left out: nothing is created by one",
        "vacancy: 1 event written twice, and counted once",
        "vacancy: 1 pod without a readable `resolved`: no devices are known of them",
    ]


NOTHING_JUDGED = {
    "an empty log": (b"", "no pod is created in 0 events: the audit policy must log the creation of pods"),
    "a log of other things": (line(event(verb="get")), "no pod is created in 1 event: the audit policy must log"),
    "pods that nobody judged": (line(event(annotations=None)), "none of 1 creation of pods was judged by Vacancy"),
}


@pytest.mark.parametrize("case", NOTHING_JUDGED)
def test_a_log_without_judged_pods_is_no_error_and_says_what_it_must_hold(log: Path, case: str) -> None:
    content, said = NOTHING_JUDGED[case]
    log.write_bytes(content)
    found = ledger(log)
    assert (found.exit_code, found.stdout) == (0, "")
    assert said in found.stderr


# --- What it cannot read ----------------------------------------------------------------------------------------------

UNREADABLE = {
    "no log at all": (b"I1130 08:00:00 started\n", "expected JSON lines of an API server's audit log; 1 line is no"),
    "gzip that ends early": (gzip.compress(UNEQUAL)[:-20], "damaged gzip: Compressed file ended"),
    "gzip of nothing": (b"\x1f\x8bno", "damaged gzip: "),
    "gzip of noise": (gzip.compress(UNEQUAL)[:10] + b"\xff" * 20, "damaged gzip: Error -3 "),
    "gzip that was changed": (gzip.compress(UNEQUAL)[:-8] + b"\0" * 8, "damaged gzip: CRC"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_log_that_cannot_be_read_to_its_end_gives_no_table(log: Path, case: str) -> None:
    content, said = UNREADABLE[case]
    log.write_bytes(content)
    found = ledger(log)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr


def test_all_files_that_are_not_there_are_named_before_anything_is_read(tmp_path: Path, log: Path) -> None:
    found = ledger(log, tmp_path / "none", tmp_path)
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr == f"vacancy: {tmp_path}/none: no such file\n{tmp_path}: a folder, expected a file\n"


def test_a_file_that_gives_nothing_is_named() -> None:
    found = ledger("/proc/self/mem")
    assert found.exit_code == 2
    assert found.stderr == "vacancy: /proc/self/mem: Input/output error\n"


def test_a_ledger_of_nothing_is_bad_usage() -> None:
    assert ledger().exit_code == 2


@quick
@given(st.binary(max_size=100) | st.binary(max_size=100).map(lambda some: gzip.compress(b"")[:10] + some))
def test_whatever_a_file_holds_it_is_read_or_named(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            assert b"".join(each or b"" for each in audit_log.lines(Path(file.name))) in {content, b""}
        except Unusable as error:
            assert str(error).startswith(f"{file.name}: ")  # noqa: PT017 - it may be read as well
