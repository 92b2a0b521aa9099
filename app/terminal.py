"""Answers as text: colours and boxes for a person at a terminal, plain lines for a pipe.

What objects are called may have been written by anybody, also to steer the terminal: it is made printable.
"""

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.dra.reasons import Reason
from app.dra.words import PHRASES, counted_noun, printable
from app.presubmit.report import Report
from app.web.capacity import CapacityReport, Counted, counted
from app.web.explain import MeaningReport

_STYLES = {"room": "green", "free": "green", "full": "red", "never": "red", "unknown": "yellow", "empty": "dim"}

_PIPED_WIDTH = 10_000
"""A line is a line where another program reads it."""


def new_console() -> Console:
    """The console for standard output; NO_COLOR is respected."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH
    return console


def print_report(console: Console, report: Report) -> None:
    """One line a pod: verdict, object, sentence."""
    for check in report.checks:
        kind = "" if check.kind == "Pod" else f"{check.kind} "
        name = printable(f"{kind}{check.namespace}/{check.name}")
        console.print(_word(check.verdict.ljust(7)), f"{name}:", printable(check.message), soft_wrap=True)


def capacity_table(report: CapacityReport) -> Table:
    """A line for each class, and under it one for each of its pools."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("CLASS / POOL", "NODE", "VACANCY"):
        table.add_column(heading)
    for heading in ("AVAILABLE", "ALLOCATED", "UNAVAILABLE", "TOTAL"):
        table.add_column(heading, justify="right")
    table.add_column("SEEN")
    for each in report.classes:
        extended = f" ({each.extended_resource_name})" if each.extended_resource_name else ""
        name = printable(f"{each.name}{extended}")
        seen = f"{counted(each.source, each.age_seconds)}{_why(each.vacancy, each.reason)}"
        table.add_row(name, "", _word(each.vacancy), *_counts(each), seen, style="bold")
        for pool in each.pools:
            name = printable(f"{pool.driver}/{pool.pool}" if pool.pool else pool.driver)
            why = _why(pool.vacancy, pool.reason).lstrip(", ")
            table.add_row(f"  {name}", printable(pool.node), _word(pool.vacancy), *_counts(pool), why)
    return table


def watch(table: Callable[[], Table], seconds: float) -> None:
    """Show the table again and again until interrupted: in one place on a terminal, one below the other in a pipe."""
    console = new_console()
    try:
        if not console.is_terminal:
            while True:
                console.print(table())
                time.sleep(seconds)
        with Live(table(), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(seconds)
                live.update(table(), refresh=True)
    except KeyboardInterrupt:
        return


def print_meaning(console: Console, meaning: MeaningReport) -> None:
    """What `1` of the name means, line by line; first the class, then what stands behind it."""

    def line(text: str, *more: Text) -> None:
        console.print(printable(text), *more)

    if not meaning.claimants:
        line(f"{meaning.name}: no device class has or declares this name")
    for number, each in enumerate(meaning.claimants):
        free = "" if each.free is None else f", {each.free} of {each.total} free"
        label = f"1 {meaning.name} is a device of class" if number == 0 else "possibly also of class"
        line(f"{label} {each.name} ({each.why}):", _word(each.vacancy) + f"{free}{_why(each.vacancy, each.reason)}")
    if meaning.held_back_by:
        line(f"Refusals are held back by class {meaning.held_back_by}: the scheduler may still resolve the name to it.")
    if meaning.plugin_node:
        line(f"Refusals are off: {meaning.plugin_node} may serve the name by device plugin.")
    if meaning.claimants:
        equal = "not all alike" if meaning.unequal else "all alike"
        drivers = ", ".join(meaning.drivers) or "no driver"
        devices, pools = counted_noun(meaning.devices, "device"), counted_noun(meaning.pools, "pool")
        line(f"Behind it: {devices} in {pools} of {drivers}, {equal}.")
    for spread in meaning.spreads:
        values = ", ".join(f"{each.value} ({each.devices})" for each in spread.values)
        console.print(f"  {printable(f'{spread.attribute}: {values}')}")


def _word(word: str) -> Text:
    return Text(word, style=_STYLES[word.rstrip()])


def _why(vacancy: str, reason: str) -> str:
    return f", {PHRASES[Reason(reason)]}" if vacancy == "unknown" else ""


def _counts(counted: Counted) -> tuple[str, ...]:
    numbers = (counted.available, counted.allocated, counted.unavailable, counted.total)
    return tuple("unknown" if number is None else str(number) for number in numbers)
