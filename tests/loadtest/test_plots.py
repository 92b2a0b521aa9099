"""Pictures are drawn from what the parts wrote, the same ones from the same results."""

from pathlib import Path
from typing import Any

import pytest

from loadtest.payloads import SIZES
from loadtest.plots import PLOTS, draw
from loadtest.servers import FLOOR, MINIMAL, OURS, PYDANTIC, WHOLE

RESULTS: dict[str, list[dict[str, Any]]] = {
    "peers": [
        {"part": "peers", "server": server, "size": size, "us": 50.0}
        for server in (OURS, FLOOR, MINIMAL, WHOLE, PYDANTIC)
        for size in SIZES
    ],
    "latency": [{"part": "latency", "server": OURS, "rate": 200, "p50": 0.0002, "p99": 0.0007}],
    "churn": [{"part": "churn", "condition": "<quiet> & idle", "p50": 0.0002, "p99": 0.0007}],
    "growth": [
        {"part": "growth", "slices": slices}
        | dict.fromkeys(("an event of a claim", "an event of a slice", "a review, free", "a review, full"), 20.0)
        for slices in (1_000, 10_000)
    ],
    "soak": [{"part": "soak", "second": 10 * number, "mb": 150.0} for number in range(1, 9)],
}


@pytest.mark.parametrize("name", PLOTS)
def test_a_part_has_its_picture_and_no_other(name: str, tmp_path: Path) -> None:
    part, _ = PLOTS[name]
    assert draw(RESULTS[part], tmp_path) == [tmp_path / f"performance-{name}.svg"]


def test_the_same_results_make_the_same_bytes(tmp_path: Path) -> None:
    results = [each for its in RESULTS.values() for each in its]
    first = [path.read_bytes() for path in draw(results, tmp_path)]
    assert [path.read_bytes() for path in draw(results, tmp_path)] == first
    assert len(first) == len(PLOTS)
