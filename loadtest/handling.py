"""The code of a review alone, and a start of the server, as `loadtest.bench` measures them."""

import statistics
from collections.abc import Iterator

from loadtest import bench, targets
from loadtest.targets import Figure, Run


def handling(run: Run) -> Iterator[Figure]:
    """What the code costs without a server around it, and how soon there is a server."""
    judged = []
    for name, micros, unit, _ in bench.handler():
        run.record({"part": "handling", "what": name, "us": micros})
        yield Figure(name, micros, unit)
        if name.endswith("decode, judge, encode"):
            judged.append(micros)
    yield Figure(targets.HANDLER, max(judged), "us", min(judged), max(judged))
    starts = [bench.started()[0] for _ in range(run.rounds)]
    run.record({"part": "handling", "what": targets.START, "seconds": starts})
    yield Figure(targets.START, statistics.median(starts), "s", min(starts), max(starts))
