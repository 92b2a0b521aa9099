"""The API as programs read it: an OpenAPI document made of the routes, the structs and answers that were once given."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.dra.reasons import Reason
from app.dra.vacancy import Vacancy
from app.dra.verdict import Outcome
from app.presubmit.report import Report
from app.web import problems
from app.web.capacity import CapacityReport
from app.web.explain import MeaningReport
from app.web.problems import Problem

API_VERSION: Final = "v1"
"""That of the paths."""

ABOUT: Final = (
    "Is there a free device for this pod right now? Within a version fields are added, and none changes its meaning or "
    "goes away. A count that is not known is null, which is not zero. A name that is hidden or does not apply is empty."
)

EXAMPLES: Final = Path(__file__).with_name("examples.json")
"""What was asked of the example cluster, and what it answered; a test asks again."""

_STRUCTS: Final = (CapacityReport, MeaningReport, Report, Problem)

_CLOSED: Final[Mapping[str, tuple[str, ...]]] = {
    "verdict": tuple(Outcome),
    "reason": tuple(Reason),
    "vacancy": tuple(Vacancy),
}
"""The words a field of this name may hold. Structs call it a text, so that a client can read a word of tomorrow."""

_REFERENCE: Final = "#/components/schemas/{name}"

MANIFEST_TYPES: Final = ("application/yaml", "application/json")

_MANIFEST: Final = {
    "type": ["object", "null"],
    "description": "An object of the Kubernetes API or a List of them; in YAML several documents, also empty ones.",
    "required": ["apiVersion", "kind"],
    "properties": {name: {"type": "string", "minLength": 1} for name in ("apiVersion", "kind")},
}


def answers_with(schema: str, *also: int, takes_manifest: bool = False, has_tag: bool = False) -> dict[str, Any]:
    """How an operation is described whose bytes are made by msgspec.

    `also`: status codes of its problems; with that of what nobody knows comes the same as with what is known.
    """
    responses = {"200": _content("The answer.", "application/json", _ref(schema))}
    if has_tag:
        responses["200"]["headers"] = {"ETag": {"required": True, "schema": {"type": "string"}}}
        responses["304"] = {"description": "The answer is still the one whose ETag `If-None-Match` holds."}
    for status in also:
        told = _ref(Problem.__name__)
        if status == 404:  # noqa: PLR2004 - the status code is its own name
            # The problem alone for a name with a line break, which no path is: nothing is served there.
            told = {"anyOf": [{"allOf": [told, _ref(schema)]}, told]}
        responses[str(status)] = _content(f"{problems.TITLES[status]}.", problems.MEDIA_TYPE, told)
    if not takes_manifest:
        return {"responses": responses}
    content = {media_type: {"schema": _MANIFEST} for media_type in MANIFEST_TYPES}
    return {"responses": responses, "requestBody": {"required": True, "content": content}}


def _ref(schema: str) -> dict[str, Any]:
    return {"$ref": _REFERENCE.format(name=schema)}


def _content(description: str, media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def description(app: FastAPI) -> dict[str, Any]:
    """The document."""
    document = get_openapi(title=app.title, version=API_VERSION, description=ABOUT, routes=app.routes)
    document["components"] = {"schemas": _schemas()}
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)  # FastAPI's own word for what is a problem like others here
    for name, example in json.loads(EXAMPLES.read_bytes()).items():
        _add(document, name, example)
    return document


def _schemas() -> dict[str, Any]:
    _, schemas = msgspec.json.schema_components(_STRUCTS, ref_template=_REFERENCE)
    for schema in schemas.values():
        schema["description"], *_ = schema["description"].split("\n\n")  # what follows is for who changes it
        for name, words in _CLOSED.items():
            if name in schema["properties"]:
                schema["properties"][name]["enum"] = list(words)
    return schemas


def _add(document: dict[str, Any], name: str, example: Mapping[str, Any]) -> None:
    """Put an example where it belongs. A question that has no answer is no example of how to ask."""
    operation = document["paths"][example["path"]][example["method"].lower()]
    shown = [(operation["responses"][str(example["status"])]["content"].values(), example["answer"])]
    if example["status"] == 200:  # noqa: PLR2004 - the status code is its own name
        given = example["parameters"]
        shown += [([each], given[each["name"]]) for each in operation.get("parameters", ()) if each["name"] in given]
        if "body" in example:
            shown.append(([operation["requestBody"]["content"][example["type"]]], example["body"]))
    for places, value in shown:
        for place in places:
            place.setdefault("examples", {})[name] = {"value": value}
