"""`python -m loadtest [PART...]`: measures, and prints one table with what is aimed at beside what was found.

`--out FILE` adds every single result to a file, a line of JSON each, from which `loadtest.plots` draws.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from loadtest.bench import machine
from loadtest.burst import burst
from loadtest.churn import churn
from loadtest.growth import growth
from loadtest.handling import handling
from loadtest.large_memory import memory
from loadtest.peer_rounds import kinds, latencies, peers
from loadtest.soak import soak
from loadtest.targets import HEAD, Figure, Run, recorder
from tests.controlplane.build import CannotBuild

PARTS: Mapping[str, Callable[[Run], Iterator[Figure]]] = {
    "handling": handling,
    "peers": peers,
    "kinds": kinds,
    "latency": latencies,
    "memory": memory,
    "growth": growth,
    "churn": churn,
    "burst": burst,
    "soak": soak,
}
"""What can be measured, in this order."""


def main() -> None:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m loadtest", description="Measure speed and memory.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; none: all of them")
    parser.add_argument("--rounds", type=int, default=5, help="of which the median is taken (5)")
    parser.add_argument("--seconds", type=int, default=5, help="of each measurement (5)")
    parser.add_argument("--minutes", type=float, default=60, help="of the soak (60)")
    parser.add_argument("--out", type=Path, help="a file for every single result")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    run = Run(given.rounds, given.seconds, given.minutes, recorder(given.out))
    print(f"machine: {machine()}\n\n{HEAD}")
    for name in given.parts or PARTS:
        for figure in PARTS[name](run):
            print(figure.row(), flush=True)


if __name__ == "__main__":
    try:
        main()
    except CannotBuild as problem:
        sys.exit(f"loadtest: {problem}")
