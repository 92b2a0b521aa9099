"""The chart's alerts as Prometheus gets them, and what of them fires in a made-up course of events."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.chart.rendering import Values, rendered


def groups(values: Values | None = None) -> list[dict[str, Any]]:
    """The groups of rules that the chart renders."""
    own = {"enabled": True, **(values or {})}
    found: list[dict[str, Any]] = rendered({"prometheusRule": own})["PrometheusRule/vacancy"]["spec"]["groups"]
    return found


def alerts(values: Values | None = None) -> dict[str, dict[str, Any]]:
    """The chart's alerts by name."""
    return {rule["alert"]: rule for group in groups(values) for rule in group["rules"]}


def written(folder: Path, values: Values | None = None) -> Path:
    """The rules as a file that Prometheus reads."""
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": groups(values)}))
    return path


def promtool(*arguments: str | Path, input: bytes = b"") -> str:  # noqa: A002 - as subprocess.run calls it
    """What promtool prints; empty if it has nothing to find fault with."""
    run = subprocess.run(["promtool", *arguments], input=input, capture_output=True, check=False)
    return "" if run.returncode == 0 else (run.stdout + run.stderr).decode()


def firing(
    folder: Path, series: Mapping[str, str], expected: Mapping[str, int], hours: int, *, minutes: int = 5
) -> str:
    """What is wrong with the claim that after so many hours just these alerts fire, so often; empty: it is true.

    `minutes`: between two samples of a series, and between two looks at the rules.
    """
    rules = {"rule_files": [written(folder).name], "evaluation_interval": f"{minutes}m"}
    test = {
        "interval": f"{minutes}m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"}) > 0',
                "eval_time": f"{hours}h",
                "exp_samples": [
                    {"labels": f'{{alertname="{name}"}}', "value": count} for name, count in expected.items()
                ],
            }
        ],
    }
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump({**rules, "tests": [test]}))
    return promtool("test", "rules", file)
