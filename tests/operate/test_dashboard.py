"""The dashboard as it is written; whether its queries have an answer is seen in a live cluster."""

import itertools
import re

from tests.operate.queries import dashboard, metrics, of_alerts, of_dashboard, of_documentation
from tests.test_docs import REFERENCE, column


def test_every_panel_says_what_it_shows_and_has_a_place_of_its_own() -> None:
    panels = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
    assert all(panel["title"] and panel["description"].endswith(".") for panel in panels)
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(dashboard()["panels"])
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)


def test_every_query_goes_to_the_chosen_data_source() -> None:
    panels = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
    for asked in [*panels, *(target for panel in panels for target in panel["targets"])]:
        assert asked["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_devices_and_drivers_are_those_that_were_chosen() -> None:
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            for metric, selector in re.findall(
                r"(vacancy_(?:class|driver|pool|snapshot)\w*)({[^}]*})?", target["expr"]
            ):
                chosen = {label for label in ("class", "driver") if f'{label}=~"${label}"' in selector}
                assert chosen, f"{metric} of {panel['title']}"


def test_what_is_asked_is_documented() -> None:
    ours = set(column(REFERENCE, "Metrics"))
    for query in [*of_dashboard().values(), *of_alerts().values(), *of_documentation().values()]:
        named = {name.removesuffix("_bucket") for name in metrics(query) if name.startswith("vacancy_")}
        assert named <= ours
