"""The ledger for people: what one of each name was, in whose namespace, and what became of the pods.

Names come from the log, which may be anybody's file: they are made printable.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.columns import Columns
from app.dra.words import counted_noun, printable
from app.ledger.report import CREATED, AskReport, LedgerReport, NameReport

_STYLES = {"admitted": "green", "warned": "yellow", "refused": "red", "failed": "dim"}

_UNKNOWN = "unknown"

_NAMED = 3
"""Namespaces that are named where many mean the same; a spreadsheet holds them all."""


def print_ledger(console: Console, report: LedgerReport) -> None:
    """Three tables, of which each line can be read alone; the last only where equal counts were not equal."""
    console.print(f"Pods judged from {printable(report.since or '')} to {printable(report.until or '')}")
    for table in (_asks(report), _pods(report), _unequal(report.names)):
        if table.row_count:
            console.print()
            console.print(table)


def _table(*headings: str, numbers: Sequence[str]) -> Table:
    table = Columns()
    for heading in headings:
        table.add_column(heading, justify="right" if heading in numbers else "left")
    return table


def _asks(report: LedgerReport) -> Table:
    numbers = ("PODS", "DEVICES", "NOT CREATED")
    table = _table("NAMESPACE", "ASKED FOR", "CLASS", "DRIVERS", *numbers, "MEMORY OF 1", "OUT OF", numbers=numbers)
    for each in report.namespaces:
        for ask in each.asks:
            created = [row for row in ask.pods if row.outcome in CREATED]
            pods, count = sum(row.pods for row in created), sum(row.count for row in created)
            table.add_row(
                printable(each.namespace),
                printable(_asked(ask.name)),
                printable(ask.class_name or _UNKNOWN),
                printable(", ".join(ask.drivers)),
                *(str(pods), str(count), str(sum(row.pods for row in ask.pods) - pods)),
                _range(ask.memory),
                _devices(ask),
            )
    return table


def _pods(report: LedgerReport) -> Table:
    table = _table("NAMESPACE", "PODS", "OUTCOME", "REASON", numbers=("PODS",))
    for each in report.namespaces:
        for row in each.pods:
            outcome = Text(row.outcome, style=_STYLES[row.outcome])
            table.add_row(printable(each.namespace), str(row.pods), outcome, row.reason)
    return table


def _unequal(names: Iterable[NameReport]) -> Table:
    numbers = ("DEVICES", "PODS")
    table = _table("EQUAL COUNTS, UNEQUAL DEVICES", "MEMORY OF 1", "CLASS", *numbers, "NAMESPACES", numbers=numbers)
    for name in names:
        if name.memory is None or name.memory[0] == name.memory[1]:
            continue
        for meaning in name.meanings:
            table.add_row(
                printable(f"1 {name.name or f'of class {meaning.class_name or _UNKNOWN}'}"),
                _range(meaning.memory),
                printable(meaning.class_name or _UNKNOWN),
                *(str(meaning.count), str(meaning.pods)),
                printable(", ".join(_some(meaning.namespaces))),
            )
    return table


def _asked(name: str | None) -> str:
    return name or "(the class, in a claim)"


def _some(names: Sequence[str]) -> Iterator[str]:
    yield from names[:_NAMED]
    if len(names) > _NAMED:
        yield f"{len(names) - _NAMED} more"


def _range(known: tuple[str, str] | None) -> str:
    if known is None:
        return _UNKNOWN
    return known[0] if known[0] == known[1] else f"{known[0]} to {known[1]}"


def _devices(ask: AskReport) -> str:
    if ask.devices is None:
        return _UNKNOWN
    fewest, most = ask.devices
    return counted_noun(most, "device") if fewest == most else f"{fewest} to {most} devices"
