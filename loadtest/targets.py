"""What is wanted, as data, and what a part of the load test hands back to be held against it."""

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


class Better(enum.Enum):
    """Which way a figure improves."""

    HIGHER = enum.auto()
    LOWER = enum.auto()


@dataclass(frozen=True, slots=True)
class Target:
    """What is aimed at, and what fails a test."""

    value: float
    gate: float | None
    """None: no test holds it."""
    better: Better = Better.LOWER

    def met(self, value: float) -> bool:
        """Whether this is as good as aimed at."""
        return _at_least(value, self.value, self.better)

    def passes(self, value: float) -> bool:
        """Whether a test may pass with this."""
        return self.gate is None or _at_least(value, self.gate, self.better)


def _at_least(value: float, wanted: float, better: Better) -> bool:
    return value >= wanted if better is Better.HIGHER else value <= wanted


FLOOR = "reviews per core, against the floor"
MINIMAL = "reviews per core, against gominimal"
WHOLE = "reviews per core, against gofull"
PYDANTIC = "reviews per core, against FastAPI and pydantic"
P50 = "p50 at 1000 a second, against gominimal"
P99 = "p99 at 1000 a second, against gominimal"
P99_LARGE = "p99 at 1000 a second while 10,000 slices sync and churn"
HANDLER = "decode, judge, encode, 8.6 kB"
START = "start to ready, example"
RSS_EXAMPLE = "resident memory, example"
RSS_IDLE = "resident memory, idle live cluster"
RSS_LARGE = "resident memory, 10,000 slices and 50,000 claims"
SOAK = "growth of resident memory"
BURST = "500 at once on a core: p99"

TARGETS: Mapping[str, Target] = {
    FLOOR: Target(0.70, 0.50, Better.HIGHER),
    MINIMAL: Target(1.0, 0.75, Better.HIGHER),
    WHOLE: Target(1.7, 1.2, Better.HIGHER),
    PYDANTIC: Target(4.5, 3.0, Better.HIGHER),
    P50: Target(1.3, 1.6),
    P99: Target(1.0, 1.5),
    P99_LARGE: Target(3.0, 10.0),  # ms
    HANDLER: Target(15.0, 30.0),  # us
    START: Target(0.6, 1.5),  # s
    RSS_EXAMPLE: Target(65.0, 90.0),  # MB, as all below
    RSS_IDLE: Target(85.0, 110.0),
    RSS_LARGE: Target(170.0, 250.0),
    SOAK: Target(1.0, None),  # an hour
    BURST: Target(500.0, None),  # ms
}
"""By the name of the figure."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table."""

    name: str
    """In words; of a figure with a target its name in `TARGETS`."""
    value: float
    unit: str
    low: float | None = None
    """The lowest and the highest of what `value` is the median of."""
    high: float | None = None

    def row(self) -> str:
        """A line of a table in Markdown, as `HEAD` has its columns."""
        spread = "" if self.low is None or self.high is None else f"{_digits(self.low)} .. {_digits(self.high)}"
        cells = [self.name, f"{_digits(self.value)} {self.unit}".strip(), spread]
        if target := TARGETS.get(self.name):
            sign = "≥" if target.better is Better.HIGHER else "≤"
            gate = "" if target.gate is None else f"{sign} {target.gate:g}"
            cells += [f"{sign} {target.value:g}", gate, "met" if target.met(self.value) else "**missed**"]
        else:
            cells += [""] * 3
        return f"| {' | '.join(cells)} |"


def _digits(value: float) -> str:
    """Three of them that mean something, and all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - as the sentence says


HEAD = "| what | measured | spread | target | gate | |\n|---|---|---|---|---|---|"


@dataclass(frozen=True, slots=True)
class Run:
    """How much is measured, and where every single result goes."""

    rounds: int
    seconds: int
    """Of one measurement."""
    minutes: float
    """Of the soak."""
    record: Callable[[Mapping[str, object]], None]


def recorder(file: Path | None) -> Callable[[Mapping[str, object]], None]:
    """What adds a line of JSON to the file, at once, so that a run that is ended has left what it had."""

    def record(result: Mapping[str, object]) -> None:
        if file is not None:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(f"{json.dumps(result)}\n")

    return record
