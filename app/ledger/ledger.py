"""The ledger: judged pods added up by namespace, by what they asked for, and by what that meant at the time.

It grows with the number of different rows, not with the log: a log of gigabytes is read once, line by line.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from app.dra.reasons import Reason
from app.ledger.events import Ask, Meaning, PodOutcome, Review, event, review

MAX_ROWS: Final = 50_000
"""Different rows, about 0.6 KB each (measured): thousands of namespaces, and no log can fill the memory."""

REMEMBERED: Final = 50_000
"""So many reviews at least, and twice as many at most, are known again when a log holds them twice."""

PodRow = tuple[str, PodOutcome, Reason]
"""Namespace, what became of the pods, and why."""

AskRow = tuple[str, Meaning | None, PodOutcome, Reason]
"""The same with what was asked for; None: nothing that could be said of it."""


@dataclass(slots=True)
class Sum:
    """What is added up of one row."""

    pods: int = 0
    count: int = 0
    """Devices that these pods asked for."""
    devices: tuple[int, int] | None = None
    """Fewest and most that matched at the time; None: not known."""

    def add(self, ask: Ask | None) -> None:
        """One more pod."""
        self.pods += 1
        if ask is None:
            return
        self.count += ask.count
        if ask.devices is not None:
            fewest, most = self.devices or (ask.devices, ask.devices)
            self.devices = min(fewest, ask.devices), max(most, ask.devices)


@dataclass(slots=True)
class LeftOut:
    """What was read and is not in the table, by why."""

    dry_runs: int = 0
    duplicates: int = 0
    unreadable: int = 0
    """Reviews whose `resolved` is in a form we do not know: counted by namespace, and nothing is said of devices."""
    beyond_limit: int = 0


@dataclass(slots=True)
class Ledger:
    """Add every line of a log, then read."""

    pods: Counter[PodRow] = field(default_factory=Counter)
    asks: dict[AskRow, Sum] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    since: str = ""
    """When the first review ended, and when the last: RFC 3339; empty without any."""
    until: str = ""
    events: int = 0
    creations: int = 0
    """Requests to create pods, judged or not."""
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _seen_before: set[tuple[str, str]] = field(default_factory=set)

    def add(self, line: bytes) -> None:
        """Take one line of the log. Raises NotAnEvent."""
        one = event(line)
        self.events += 1
        if not one.creates_pod():
            return
        self.creations += 1
        found = review(one)
        if found is None:
            return
        if found.dry_run:
            self.left_out.dry_runs += 1
        elif found.identity in self._seen or found.identity in self._seen_before:
            self.left_out.duplicates += 1
        else:
            if len(self._seen) == REMEMBERED:
                self._seen, self._seen_before = set(), self._seen
            self._seen.add(found.identity)
            self._enter(found)

    def _enter(self, found: Review) -> None:
        end = found.outcome, found.reason
        pod_row: PodRow = found.namespace, *end
        ask_rows: dict[AskRow, Ask | None] = {(found.namespace, ask.meaning, *end): ask for ask in found.asks}
        ask_rows = ask_rows or {(found.namespace, None, *end): None}
        new = (pod_row not in self.pods) + sum(row not in self.asks for row in ask_rows)
        if len(self.pods) + len(self.asks) + new > MAX_ROWS:
            self.left_out.beyond_limit += 1
            return
        self.left_out.unreadable += not found.readable
        self.pods[pod_row] += 1
        for row, ask in ask_rows.items():
            self.asks.setdefault(row, Sum()).add(ask)
        self.since = min(self.since or found.time, found.time)
        self.until = max(self.until, found.time)
