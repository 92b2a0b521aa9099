"""What the dashboard, the alerts and the documentation ask Prometheus, ready to be asked."""

import json
import re
from typing import Any

from tests.chart.rendering import CHART, rendered
from tests.operate.alerts import alerts

OPERATE = CHART.parents[1] / "docs" / "operate.md"

VARIABLES = {"$class": ".*", "$driver": ".*", "$__rate_interval": "5m"}
"""With nothing chosen, as Grafana fills them in."""

_LABEL_VALUES = re.compile(r"label_values\((\w+), (\w+)\)")


def dashboard() -> dict[str, Any]:
    """As Grafana gets it."""
    found: dict[str, Any] = json.loads(
        rendered({"dashboards": {"enabled": True}})["ConfigMap/vacancy-dashboard-vacancy"]["data"]["vacancy.json"]
    )
    return found


def of_dashboard() -> dict[str, str]:
    """By panel and target."""
    return {
        f"{panel['title']}, {target['refId']}": _filled(target["expr"])
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
    }


def of_variables() -> dict[str, tuple[str, str]]:
    """Metric and label, by the variable whose choices they are."""
    asked = {each["name"]: each.get("definition", "") for each in dashboard()["templating"]["list"]}
    return {name: (found[1], found[2]) for name, text in asked.items() if (found := _LABEL_VALUES.fullmatch(text))}


def of_alerts() -> dict[str, str]:
    """By alert."""
    return {name: alert["expr"] for name, alert in alerts().items()}


def of_documentation() -> dict[str, str]:
    """By question."""
    return {row[0]: code[1].replace("\\|", "|") for row in _rows() if (code := re.search("`(.+?)`", row[1]))}


def _rows() -> list[list[str]]:
    """The first table of docs/operate.md."""
    _, _, below = OPERATE.read_text("utf-8").partition("## Metrics\n")
    below, _, _ = below.partition("## Alerts\n")
    rows = [re.split(r"(?<!\\)\|", line.strip("|")) for line in below.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def metrics(query: str) -> set[str]:
    """The metrics a query names."""
    return set(re.findall(r"\b(?:vacancy|apiserver)_\w+", query))


def _filled(query: str) -> str:
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    assert "$" not in query
    return query
