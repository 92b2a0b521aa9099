"""The verb that reads audit logs: line by line into the ledger, and out as a table, JSON, YAML or rows.

What could not be used is counted and said at the end: one odd line in a log of a million spoils nothing.
"""

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import typer
import yaml

from app import audit_log, terminal
from app.dra.words import counted_noun, printable
from app.ledger import report
from app.ledger.events import NotAnEvent
from app.ledger.ledger import MAX_ROWS, Ledger
from app.ledger_tables import print_ledger
from app.unanswered import BAD_USAGE, Unusable

_FORMULA = ("=", "+", "-", "@")

_POLICY = "the audit policy must log the creation of pods at level Metadata, as examples/audit-policy.yaml does"


@dataclass(slots=True)
class _Unused:
    """Lines that are no use, all for one reason."""

    what: str
    lines: int = 0
    first: str = ""

    def count(self, place: str) -> None:
        self.lines += 1
        self.first = self.first or place

    def note(self) -> str:
        is_or_are = "is" if self.lines == 1 else "are"
        return f"{counted_noun(self.lines, 'line')} {is_or_are} {self.what}, the first is {self.first}"


def ledger(files: Sequence[Path], output: str) -> int:
    """Print what the logs say of judged pods; return the exit code."""
    problems = [problem for each in files if (problem := audit_log.obstacle(each))]
    if problems:
        return _bad_input("\n".join(problems))
    known, odd = Ledger(), _Unused("no audit event (a rotated log may start within a line)")
    long = _Unused(f"longer than {audit_log.MAX_LINE_BYTES // 2**20} MiB")
    try:
        for each in files:
            _read(each, known, odd, long)
    except Unusable as error:
        return _bad_input(str(error))
    unused = [each.note() for each in (odd, long) if each.lines]
    if unused and not known.events:
        return _bad_input(f"expected JSON lines of an API server's audit log; {'; '.join(unused)}")
    _show(known, output)
    for note in (*unused, *_notes(known)):
        typer.echo(f"vacancy: {printable(note)}", err=True)
    return 0


def _bad_input(problem: str) -> int:
    typer.echo(f"vacancy: {problem}", err=True)
    return BAD_USAGE


def _read(file: Path, known: Ledger, odd: _Unused, long: _Unused) -> None:
    for number, line in enumerate(audit_log.lines(file), 1):
        if line is None:
            long.count(f"{file}:{number}")
        elif not line.isspace():
            try:
                known.add(line)
            except NotAnEvent:
                odd.count(f"{file}:{number}")


def _notes(known: Ledger) -> Iterator[str]:
    """What a reader of the table should know besides."""
    left = known.left_out
    if not known.creations:
        yield f"no pod is created in {counted_noun(known.events, 'event')}: {_POLICY}"
    elif not known.pods:
        yield f"none of {counted_noun(known.creations, 'creation')} of pods was judged by Vacancy, or was meant to last"
    if left.dry_runs:
        yield f"{counted_noun(left.dry_runs, 'dry run')} left out: nothing is created by one"
    if left.duplicates:
        yield f"{counted_noun(left.duplicates, 'event')} written twice, and counted once"
    if left.unreadable:
        yield f"{counted_noun(left.unreadable, 'pod')} without a readable `resolved`: no devices are known of them"
    if left.beyond_limit:
        yield f"{counted_noun(left.beyond_limit, 'pod')} left out: the table is full with {MAX_ROWS} different rows"


def _show(known: Ledger, output: str) -> None:
    match output:
        case "csv":
            csv.writer(sys.stdout, lineterminator="\n").writerows((report.COLUMNS, *map(_cells, report.rows(known))))
        case "json":
            typer.echo(msgspec.json.format(msgspec.json.encode(report.report(known)), indent=2))
        case "yaml":
            typer.echo(yaml.safe_dump(msgspec.to_builtins(report.report(known)), sort_keys=False, width=1000), nl=False)
        case _ if known.pods:
            print_ledger(terminal.new_console(), report.report(known))


def _cells(row: Iterable[str | int]) -> Iterator[str | int]:
    """Text that a spreadsheet takes for text, whatever wrote the log."""
    for cell in row:
        text = printable(cell) if isinstance(cell, str) else cell
        yield f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text
