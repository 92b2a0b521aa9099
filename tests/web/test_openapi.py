"""The description of the API: its examples are answers of the example cluster, and a change of it is seen in review."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from app.web.description import EXAMPLES
from tests.web.example import asked, example

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "docs" / "openapi.json"
UPDATE = "--update-openapi"
HOW = f"pytest tests/web/test_openapi.py {UPDATE}"

Json = dict[str, Any]


@pytest.fixture(scope="module")
def app() -> ASGIApp:
    return example()


@pytest.fixture(scope="module")
def examples(app: ASGIApp, request: pytest.FixtureRequest) -> tuple[Json, Json]:
    """The committed ones, and what they would be now."""
    written = json.loads(EXAMPLES.read_bytes())
    return committed(EXAMPLES, now := {name: answered(app, each) for name, each in written.items()}, request), now


def answered(app: ASGIApp, example: Json) -> Json:
    """An example with the status and the answer of now."""
    path = example["path"].format_map(example["parameters"])
    query = {name: value for name, value in example["parameters"].items() if f"{{{name}}}" not in example["path"]}
    body, headers = example.get("body"), {"content-type": example["type"]} if "type" in example else {}
    content = body if body is None or isinstance(body, str) else json.dumps(body)
    found = asked(app, example["method"], path, params=query, content=content, headers=headers)
    return example | {"status": found.status_code, "answer": found.json()}


def committed(path: Path, now: Json, request: pytest.FixtureRequest) -> Json:
    """What is committed; rewritten first if that is wanted."""
    if request.config.getoption(UPDATE):
        path.write_text(json.dumps(now, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return json.loads(path.read_bytes())


def test_the_examples_are_what_the_example_cluster_answers(examples: tuple[Json, Json]) -> None:
    written, now = examples
    assert written == now, f"if that is right: {HOW}"


@pytest.mark.usefixtures("examples")
def test_the_description_is_the_committed_one(app: ASGIApp, request: pytest.FixtureRequest) -> None:
    """`docs/openapi.json` is there to be reviewed: clients rely on every line of it."""
    now = asked(app, "GET", "/openapi.json").json()
    assert committed(COMMITTED, now, request) == now, f"if clients can live with it: {HOW}"
