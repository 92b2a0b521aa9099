"""`python -m tests.truth`: the long run of `docs/truth.md`. Exit code 1 if anything was refused or answered wrongly."""

# ruff: noqa: T201  # a command prints

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.truth.comparison import Worth
from tests.truth.live import LiveFigures, Run
from tests.truth.offline import compare_stories
from tests.truth.selector_agreement import compare_selectors
from tests.truth.servers import FastPlane, Servers


def main() -> int:
    """Run the parts one after the other; the disagreements are in the folder, as stories that replay."""
    options = argparse.ArgumentParser(prog="python -m tests.truth")
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4])
    options.add_argument("--selectors", type=int, default=50_000)
    options.add_argument("--stories", type=int, default=100_000)
    options.add_argument("--candidates", type=int, default=2_000)
    options.add_argument("--side-by-side", type=int, default=40)
    options.add_argument("--folder", type=Path, default=Path("build/truth"), help="where disagreements are saved")
    given = options.parse_args()
    seeds, share = given.seeds, len(given.seeds)
    wrong = 0
    for seed in seeds if given.selectors else ():
        selectors = compare_selectors(given.selectors // share, seed)  # the first wrong answer ends it
        _say(f"seed {seed}: {selectors.lines()}")
    for seed in seeds if given.stories else ():
        stories = compare_stories(seed, given.stories // share, given.folder / "stories")
        wrong += stories.count(Worth.WRONG)
        _say(f"seed {seed}: stories: {stories.lines()}")
    if given.candidates:
        live = _live(seeds, given.candidates, given.side_by_side, given.folder / "live")
        wrong += sum(figures.count(Worth.WRONG) for figures in live.of.values())
        _say(f"seeds {seeds}: {live.lines()}")
    return 1 if wrong else 0


def _live(seeds: list[int], candidates: int, side_by_side: int, folder: Path) -> LiveFigures:
    with (
        tempfile.TemporaryDirectory() as scratch,
        FastPlane(Path(scratch, "plane")) as plane,
        Servers(plane, Path(scratch)) as servers,
    ):
        return Run(plane, servers, folder).compare(seeds, candidates, side_by_side)


def _say(text: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
