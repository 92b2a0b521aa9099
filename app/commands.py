"""The verbs that answer once: ask, print, return the exit code. Only the answer goes to stdout, all else to stderr."""

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import typer
import yaml

from app import terminal
from app.answers import Where, answers
from app.cluster.folders import files_of
from app.dra.verdict import Outcome
from app.dra.words import counted_noun, cut, printable
from app.presubmit.asked import concerning
from app.presubmit.manifest import Document, ManifestError, parse
from app.presubmit.report import exit_code
from app.settings import BadSettings, Settings
from app.unanswered import BAD_USAGE, NO_ANSWER, NoAnswer, Unusable

NOT_KNOWN = 1

WATCH_SECONDS = 2.0
"""Between two looks: a person's patience, and no load for a server."""

KINDS_LIMIT = 200
"""Characters of the list of kinds that were skipped."""


def check(  # noqa: PLR0913 - one argument a flag
    settings: Settings, where: Where, output: str, *, filenames: Sequence[Path], namespace: str, strict: bool
) -> int:
    """Tell whether the pods of these files would get their devices."""

    def run() -> int:
        documents, others = _sorted(submitted(filenames))
        with closing(answers(settings, where)) as source:
            report = source.check(documents, namespace or source.namespace)
        if others:
            kinds = cut(printable(", ".join(sorted(set(others)))), KINDS_LIMIT)
            typer.echo(f"vacancy: skipped {counted_noun(len(others), 'object')} without a pod: {kinds}", err=True)
        elif not report.checks:
            typer.echo("vacancy: neither pod nor workload in the input", err=True)
        _show(report, output, lambda: terminal.print_report(terminal.new_console(), report))
        return exit_code((_outcome(each.verdict) for each in report.checks), strict=strict)

    return _with_exit_codes(run)


def capacity(settings: Settings, where: Where, output: str, *, watch: bool) -> int:
    """Show what each class can still give."""
    if watch and output != "text":
        raise BadSettings((f"--watch with --output={output}: expected --output=text",))

    def run() -> int:
        with closing(answers(settings, where)) as source:
            if watch:
                terminal.watch(source.capacity, WATCH_SECONDS)
            else:
                report = source.capacity()
                _show(report, output, lambda: terminal.print_capacity(terminal.new_console(), report))
        return 0

    return _with_exit_codes(run)


def explain(settings: Settings, where: Where, output: str, *, name: str) -> int:
    """Tell what 1 of this name means."""

    def run() -> int:
        with closing(answers(settings, where)) as source:
            meaning = source.meaning(name)
        _show(meaning, output, lambda: terminal.print_meaning(terminal.new_console(), meaning))
        return 0 if meaning.claimants else NOT_KNOWN

    return _with_exit_codes(run)


def submitted(filenames: Sequence[Path]) -> tuple[Document, ...]:
    """The objects of all files, folders read recursively, `-` from standard input. Raises Unusable."""
    documents: list[Document] = []
    problems = []
    for name in filenames:
        try:
            files = files_of(name)
        except ManifestError as error:
            problems.append(str(error))
            continue
        for file in files:
            try:
                is_stdin = str(file) == "-"
                text = sys.stdin.buffer.read() if is_stdin else file.read_bytes()
                documents += parse(text, "stdin" if is_stdin else str(file))
            except ManifestError as error:
                problems.append(str(error))
            except OSError as error:
                problems.append(f"{file}: {error.strerror}")
    if problems:
        raise Unusable("\n".join(problems))
    return tuple(documents)


def _sorted(documents: tuple[Document, ...]) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """See `concerning`. Raises Unusable."""
    try:
        return concerning(documents)
    except ManifestError as error:
        raise Unusable(str(error)) from error


def _outcome(verdict: str) -> Outcome:
    """A word of a newer server says nothing here, and what is not known is refused nowhere."""
    try:
        return Outcome(verdict)
    except ValueError:
        return Outcome.UNKNOWN


def _with_exit_codes(run: Callable[[], int]) -> int:
    try:
        return run()
    except Unusable as error:
        typer.echo("vacancy: " + "\n".join(map(printable, str(error).split("\n"))), err=True)
        return BAD_USAGE
    except NoAnswer as error:
        typer.echo(f"vacancy: no answer: {printable(str(error))}", err=True)
        return NO_ANSWER


def _show(answer: msgspec.Struct, output: str, as_text: Callable[[], None]) -> None:
    match output:
        case "json":
            typer.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2))
        case "yaml":
            typer.echo(yaml.safe_dump(msgspec.to_builtins(answer), sort_keys=False, width=1000), nl=False)
        case _:
            as_text()
