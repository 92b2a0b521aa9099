"""The values of the chart, one by one: `webhook.timeoutSeconds` and the like, with what the schema says of each."""

import json
from collections.abc import Iterator
from typing import Any

from tests.chart.rendering import CHART, Json

SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text())


def resolved(schema: Json) -> Json:
    """A part of the schema, itself in the place of a reference to it."""
    reference = schema.get("$ref")
    return SCHEMA["definitions"][reference.rsplit("/", 1)[1]] if reference else schema


def is_closed(schema: Json) -> bool:
    """Whether it names every key there may be."""
    return schema.get("additionalProperties") is False and "patternProperties" not in schema


def knobs(values: Json, schema: Json = SCHEMA, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values by their paths. A map whose keys the user chooses, or Kubernetes, is one value."""
    for key, value in values.items():
        own = resolved(schema["properties"][key])
        name = f"{path}{key}"
        if is_closed(own):
            yield from knobs(value, own, f"{name}.")
        else:
            yield name, value


def schema_knobs(schema: Json = SCHEMA, path: str = "") -> Iterator[tuple[str, Json]]:
    """The same paths by the schema, with what it says of each."""
    for key, reference in schema["properties"].items():
        own = resolved(reference)
        if is_closed(own):
            yield from schema_knobs(own, f"{path}{key}.")
        else:
            yield f"{path}{key}", own


def nested(path: str, value: object) -> Json:
    """`a.b` and 1 as {"a": {"b": 1}}."""
    key, _, rest = path.partition(".")
    return {key: nested(rest, value) if rest else value}
