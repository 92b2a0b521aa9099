"""The ledger as a report: for programs as JSON, for spreadsheets as rows, and what a table for people is made of."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from app.dra.quantity import parse_quantity
from app.ledger.events import Meaning, PodOutcome
from app.ledger.ledger import AskRow, Ledger, Sum

CREATED = frozenset({PodOutcome.ADMITTED, PodOutcome.WARNED})
"""What became of pods that came to be."""


class PodCount(Struct, frozen=True):
    """Pods with one outcome for one reason."""

    outcome: str
    reason: str
    pods: int


class AskCount(PodCount, frozen=True):
    """Of those that asked for the same, and the devices they asked for."""

    count: int


class AskReport(Struct, frozen=True, rename={"class_name": "class"}):
    """What pods of a namespace asked for, and what one of it meant. What is not known is null."""

    name: str | None
    """Extended resource; null: asked for by class, in a claim."""
    class_name: str | None
    drivers: tuple[str, ...]
    memory: tuple[str, str] | None
    """Of one device: the smallest and the largest that matched."""
    devices: tuple[int, int] | None
    """That matched, free or not: fewest and most over the time of the log."""
    pods: tuple[AskCount, ...]


class NamespaceReport(Struct, frozen=True):
    """One namespace."""

    namespace: str
    pods: tuple[PodCount, ...]
    asks: tuple[AskReport, ...]


class MeaningReport(Struct, frozen=True, rename={"class_name": "class"}):
    """One of the things a name meant to pods that were created."""

    class_name: str | None
    memory: tuple[str, str] | None
    pods: int
    count: int
    namespaces: tuple[str, ...]


class NameReport(Struct, frozen=True):
    """What one of a name was, over all namespaces: equal counts, and the spread behind them."""

    name: str | None
    memory: tuple[str, str] | None
    meanings: tuple[MeaningReport, ...]


class LeftOutReport(Struct, frozen=True, rename="camel"):
    """What was read and is not in the table."""

    dry_runs: int
    duplicates: int
    unreadable: int
    beyond_limit: int


class LedgerReport(Struct, frozen=True, rename="camel"):
    """All of it."""

    since: str | None
    until: str | None
    namespaces: tuple[NamespaceReport, ...]
    names: tuple[NameReport, ...]
    left_out: LeftOutReport


def report(ledger: Ledger) -> LedgerReport:
    """What has been added up so far, in a fixed order."""
    pods: dict[str, list[PodCount]] = defaultdict(list)
    for (namespace, outcome, reason), number in sorted(ledger.pods.items()):
        pods[namespace].append(PodCount(outcome, reason, number))
    asks: dict[str, list[AskReport]] = defaultdict(list)
    for (namespace, meaning), sums in groupby(_sorted(ledger), key=lambda row: row[0][:2]):
        if meaning is not None:
            asks[namespace].append(_ask(meaning, list(sums)))
    left = ledger.left_out
    return LedgerReport(
        since=ledger.since or None,
        until=ledger.until or None,
        namespaces=tuple(NamespaceReport(each, tuple(pods[each]), tuple(asks[each])) for each in pods),
        names=tuple(_names(ledger)),
        left_out=LeftOutReport(left.dry_runs, left.duplicates, left.unreadable, left.beyond_limit),
    )


COLUMNS = (
    *("namespace", "name", "class", "drivers", "memory_min", "memory_max", "devices_min", "devices_max"),
    *("outcome", "reason", "pods", "count"),
)


def rows(ledger: Ledger) -> Iterator[tuple[str | int, ...]]:
    """The ledger under COLUMNS; what is not known is empty. A pod that asked for two things is in two rows."""
    for (namespace, meaning, outcome, reason), total in _sorted(ledger):
        asked: tuple[str, ...] = ("",) * 5
        if meaning is not None:
            drivers, memory = " ".join(meaning.drivers), meaning.memory or ("", "")
            asked = (meaning.name, meaning.class_name, drivers, *memory)
        count = "" if meaning is None else total.count
        yield (namespace, *asked, *(total.devices or ("", "")), outcome, reason, total.pods, count)


_Sums = Iterable[tuple[AskRow, Sum]]


def _sorted(ledger: Ledger) -> list[tuple[AskRow, Sum]]:
    return sorted(ledger.asks.items(), key=lambda row: (row[0][0], _order(row[0][1]), row[0][2:]))


def _order(meaning: Meaning | None) -> tuple[object, ...]:
    """Resources by name, then what was asked for by class, then pods of which nothing could be said."""
    if meaning is None:
        return (2,)
    return not meaning.name, meaning.name, meaning.class_name, _amounts(meaning.memory), meaning.drivers


def _ask(meaning: Meaning, sums: _Sums) -> AskReport:
    known = [each for _, total in sums for each in total.devices or ()]
    return AskReport(
        name=meaning.name or None,
        class_name=meaning.class_name or None,
        drivers=meaning.drivers,
        memory=meaning.memory,
        devices=(min(known), max(known)) if known else None,
        pods=tuple(AskCount(outcome, reason, total.pods, total.count) for (_, _, outcome, reason), total in sums),
    )


def _names(ledger: Ledger) -> Iterator[NameReport]:
    """What is asked for by class has one name with everything of that class."""
    created = [
        (meaning, namespace, total)
        for (namespace, meaning, outcome, _), total in ledger.asks.items()
        if meaning is not None and outcome in CREATED
    ]
    created.sort(key=lambda row: _order(row[0]))
    for (name, _), of_name in groupby(created, key=lambda row: (row[0].name, row[0].name or row[0].class_name)):
        alike = groupby(of_name, key=lambda row: (row[0].class_name, row[0].memory))
        meanings = sorted((_meaning(*what, list(pods)) for what, pods in alike), key=lambda of: _amounts(of.memory))
        known = sorted((each for meaning in meanings for each in meaning.memory or ()), key=_amount)
        yield NameReport(name or None, (known[0], known[-1]) if known else None, tuple(meanings))


def _meaning(
    class_name: str, memory: tuple[str, str] | None, pods: Sequence[tuple[Meaning, str, Sum]]
) -> MeaningReport:
    return MeaningReport(
        class_name=class_name or None,
        memory=memory,
        pods=sum(total.pods for _, _, total in pods),
        count=sum(total.count for _, _, total in pods),
        namespaces=tuple(sorted({namespace for _, namespace, _ in pods})),
    )


def _amounts(memory: tuple[str, str] | None) -> list[int]:
    """To sort by; what is not known comes first."""
    return [_amount(each) for each in memory or ()]


def _amount(memory: str) -> int:
    return parse_quantity(memory).nano
