"""Draws docs/img/performance-*.svg: `python -m loadtest.plots FILE...`, the files that `--out` made.

One picture a question. The same results make the same bytes, so that a change of a picture is a change of a figure.
"""

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Results = Sequence[Mapping[str, Any]]

FOLDER = Path(__file__).parents[1] / "docs" / "img"

# In between, so that it can be read on white and on black.
_INK = "#7a7a7a"
_COLOURS = {
    "vacancy": "#d9822b",
    "floor": "#9a9a9a",
    "gominimal": "#3b8fc4",
    "gofull": "#2b6a94",
    "pydantic": "#8a6fc0",
}
_SHADES = ("#3b8fc4", "#d9822b", "#8a6fc0", "#4f9a5b", "#c4553b")

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "vacancy",
    "svg.fonttype": "none",  # letters stay letters
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.prop_cycle": mpl.cycler(color=_SHADES),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK),
}


def cpu(axes: Axes, results: Results) -> None:
    """CPU per review, by server and size of review."""
    of_size = _grouped(results, "server", "size", value="us")
    sizes = sorted({size for _, size in of_size})
    for place, server in enumerate(_COLOURS):
        heights = [statistics.median(of_size[server, size]) for size in sizes]
        bars = axes.bar([n + (place - 2) * 0.16 for n in range(len(sizes))], heights, 0.15, color=_COLOURS[server])
        bars.set_label(server)
        axes.bar_label(bars, fmt="%.0f", fontsize=8, color=_INK)
    axes.set_xticks(range(len(sizes)), [f"{size / 1000:g} kB" for size in sizes])
    axes.set_ylabel("server CPU per review, µs")
    axes.legend(ncols=len(_COLOURS), loc="upper center", bbox_to_anchor=(0.5, 1.15), columnspacing=1.0)


def at_rates(axes: Axes, results: Results) -> None:
    """Time to the answer, by rate and server."""
    found = {what: _grouped(results, "rate", "server", value=what) for what in ("p50", "p99")}
    places = sorted(found["p50"])
    for offset, (what, of_place) in zip((-0.2, 0.2), found.items(), strict=True):
        heights = [statistics.median(of_place[place]) * 1e3 for place in places]
        bars = axes.bar([number + offset for number in range(len(places))], heights, 0.38, label=what)
        axes.bar_label(bars, fmt="%.2f", fontsize=8, color=_INK)
    axes.set_xticks(range(len(places)), [f"{server}\n{rate} a second" for rate, server in places])
    axes.set_ylabel("from the intended start, ms")
    axes.legend(loc="upper right")


def churning(axes: Axes, results: Results) -> None:
    """Time to the answer of a server with a large cluster, by what happens in it meanwhile."""
    found = {what: _grouped(results, "condition", value=what) for what in ("p50", "p99")}
    places = list(reversed(found["p50"]))  # the first one on top
    for offset, (what, of_place) in zip((0.2, -0.2), found.items(), strict=True):
        widths = [statistics.median(of_place[place]) * 1e3 for place in places]
        bars = axes.barh([number + offset for number in range(len(places))], widths, 0.38, label=what)
        axes.bar_label(bars, fmt="%.2f", fontsize=8, color=_INK, padding=2)
    axes.set_yticks(range(len(places)), [condition for (condition,) in places])
    axes.set_xlabel("at 1000 a second, from the intended start, ms")
    axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, 1.15))


def growth(axes: Axes, results: Results) -> None:
    """Cost of an event and of a review, by the size of the cluster."""
    by_size = sorted(results, key=lambda result: result["slices"])
    sizes = [each["slices"] for each in by_size]
    for what in ("an event of a claim", "an event of a slice", "a review, free", "a review, full"):
        axes.plot(sizes, [each[what] for each in by_size], marker="o", label=what)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("slices of eight devices")
    axes.set_ylabel("µs")
    axes.legend()


def memory(axes: Axes, results: Results) -> None:
    """Memory over the soak."""
    points = [(each["second"] / 60, each["mb"]) for each in results if "second" in each]
    axes.plot(*zip(*points, strict=True))
    axes.set_ylim(0, 1.2 * max(mb for _, mb in points))
    axes.set_xlabel("minutes")
    axes.set_ylabel("resident memory, MB")


PLOTS: Mapping[str, tuple[str, Callable[[Axes, Results], None]]] = {
    "cpu": ("peers", cpu),
    "latency": ("latency", at_rates),
    "churn": ("churn", churning),
    "growth": ("growth", growth),
    "soak": ("soak", memory),
}
"""By the name of the picture: whose results, and how they are drawn."""


def draw(results: Results, folder: Path = FOLDER) -> list[Path]:
    """The pictures there are results for."""
    drawn = []
    for name, (part, plot) in PLOTS.items():
        if its := [each for each in results if each["part"] == part]:
            with mpl.rc_context(_STYLE):
                figure = Figure(figsize=(7.2, 3.6), layout="constrained")
                plot(figure.add_subplot(), its)
                drawn.append(folder / f"performance-{name}.svg")
                figure.savefig(drawn[-1], transparent=True, metadata={"Date": None})
    return drawn


def _grouped(results: Results, *keys: str, value: str) -> dict[tuple[Any, ...], list[float]]:
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for each in results:
        groups[tuple(each[key] for key in keys)].append(each[value])
    return groups


def read(files: Iterable[str]) -> Results:
    """What `--out` wrote."""
    return [json.loads(line) for file in files for line in Path(file).read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    for path in draw(read(sys.argv[1:])):
        print(path)
