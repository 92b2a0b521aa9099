"""Answers as text: colours and boxes for a person at a terminal, plain lines for a pipe.

What objects are called may have been written by anybody, also to steer the terminal: it is made printable.
"""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from app.columns import Columns
from app.dra.reasons import Reason
from app.dra.words import NEVER_REFUSED, PHRASES, behind, printable
from app.presubmit.report import Report
from app.unanswered import NoAnswer
from app.web.capacity import CapacityReport, Counted, counted
from app.web.explain import MeaningReport

_STYLES = {"room": "green", "free": "green", "full": "red", "never": "red", "unknown": "yellow", "empty": "dim"}

_UNBOUNDED = 10_000
"""Columns. A line is a line where another program reads it; a terminal breaks it by itself."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line: rich would end with exit code 1, which is an answer."""
        raise BrokenPipeError


def new_console() -> Console:
    """The console for standard output; NO_COLOR is respected, and FORCE_COLOR makes no terminal of a pipe."""
    console = _Console(force_terminal=sys.stdout.isatty(), highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _UNBOUNDED
    return console


def print_report(console: Console, report: Report) -> None:
    """One line a pod: verdict, object (and where in it), sentence."""
    for check in report.checks:
        kind = "" if check.kind == "Pod" else f"{check.kind} "
        template = f" {check.template}" if check.template else ""
        name = printable(f"{kind}{check.namespace}/{check.name}{template}")
        console.print(_word(check.verdict, 7), f"{name}:", printable(check.message), soft_wrap=True)


def print_capacity(console: Console, report: CapacityReport) -> None:
    """The table as wide as it is; a terminal that is narrower breaks its lines, as those of kubectl."""
    console.width = _UNBOUNDED
    console.print(_capacity_table(report))


def _capacity_table(report: CapacityReport) -> Columns:
    """A line for each class, and under it one for each of its pools. No column but the last holds a space."""
    table = Columns()
    for heading in ("CLASS/POOL", "RESOURCE/NODE"):
        table.add_column(heading, overflow="fold")
    table.add_column("VACANCY", no_wrap=True)
    for heading in ("AVAILABLE", "ALLOCATED", "UNAVAILABLE", "TOTAL"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("SEEN", overflow="fold")
    for each in report.classes:
        seen = f"{counted(each.source, each.age_seconds)}{_why(each.vacancy, each.reason)}"
        if each.never_refused:
            seen += f", never refused: {_in_words(each.never_refused, NEVER_REFUSED)}"
        if each.shadowed_by:
            seen += f", shadowed by {printable(each.shadowed_by)}"
        names = (_cell(each.name), _cell(each.extended_resource_name))
        table.add_row(*names, _word(each.vacancy), *_counts(each), seen, style="bold")
        for pool in each.pools:
            name = f"{pool.driver}/{pool.pool}" if pool.pool else pool.driver
            why = _why(pool.vacancy, pool.reason).lstrip(", ") or "-"
            table.add_row(f"  {_cell(name)}", _cell(pool.node), _word(pool.vacancy), *_counts(pool), why)
    return table


def watch(look: Callable[[], CapacityReport], seconds: float) -> None:
    """Show the table again and again until interrupted: in one place on a terminal, one below the other in a pipe.

    What goes wrong after the first look is shown with the last table, and ends nothing. Raises NoAnswer by the first.
    """
    console = new_console()
    table, remark = _capacity_table(look()), ""
    in_place = Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext()
    with suppress(KeyboardInterrupt), in_place as live:
        while True:
            said = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {remark}".rstrip()
            if live is not None:
                live.update(Group(table, said), refresh=True)
            elif remark:
                console.print(said)
            else:
                console.print(said, table, "", sep="\n")
            time.sleep(seconds)
            try:
                table, remark = _capacity_table(look()), ""
            except NoAnswer as error:
                remark = f"no answer, so this is the last known: {printable(str(error))}"


def print_meaning(console: Console, meaning: MeaningReport) -> None:
    """What `1` of the name means, line by line; first the class, then what stands behind it."""

    def line(text: str, *more: Text) -> None:
        console.print(printable(text), *more)

    if not meaning.claimants:
        line(f"{meaning.name}: no device class has or declares this name")
    for number, each in enumerate(meaning.claimants):
        of_total = "" if each.total is None else f" of {each.total}"
        free = "" if each.free is None else f", {each.free}{of_total} free"
        label = f"1 {meaning.name} is a device of class" if number == 0 else "possibly also of class"
        line(f"{label} {each.name} ({each.why}):", _word(each.vacancy) + f"{free}{_why(each.vacancy, each.reason)}")
    if meaning.held_back_by:
        line(f"Refusals are held back by class {meaning.held_back_by}: the scheduler may still resolve the name to it.")
    if meaning.plugin_node:
        line(f"Refusals are off: {meaning.plugin_node} may serve the name by device plugin.")
    elif meaning.never_refused:
        reason = meaning.never_refused
        line(f"Never refused: {_in_words(reason, NEVER_REFUSED)} ({_in_words(reason)}).")
    if meaning.claimants:
        equal = ", not all alike" if meaning.unequal else ", all alike" if meaning.devices else ""
        line(f"Behind it: {behind(meaning.devices, meaning.pools, meaning.drivers)}{equal}.")
    for spread in meaning.spreads:
        values = ", ".join(f"{each.value} ({each.devices})" for each in spread.values)
        console.print(f"  {printable(f'{spread.attribute}: {values}')}")


def _cell(text: str) -> str:
    """What is written in one word, so that columns can be told apart by spaces."""
    return printable(text).replace(" ", "?") or "-"


def _word(word: str, width: int = 0) -> Text:
    return Text(printable(word).ljust(width), style=_STYLES.get(word, ""))


def _in_words(reason: str, words: Mapping[Reason, str] = PHRASES) -> str:
    """What a reason means; of one that only a newer server knows, its name."""
    try:
        return words[Reason(reason)]
    except (KeyError, ValueError):
        return printable(reason)


def _why(vacancy: str, reason: str) -> str:
    return f", {_in_words(reason)}" if vacancy == "unknown" else ""


def _counts(counted: Counted) -> tuple[str, ...]:
    numbers = (counted.available, counted.allocated, counted.unavailable, counted.total)
    return tuple("unknown" if number is None else str(number) for number in numbers)
