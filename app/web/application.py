"""The web listener: page, API, probes, metrics and their description. The only importer of FastAPI.

Reviews do not come in here; they have a listener of their own (`admit`).
"""

import asyncio
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.dra.capacity import ClassCapacity
from app.dra.meaning import Meaning
from app.dra.vacancy import Vacancy
from app.metrics import CONTENT_TYPE
from app.presubmit.report import Report
from app.web.capacity import CapacityReport
from app.web.check import MAX_BYTES, Checker, Unreadable
from app.web.explain import MeaningReport, meaning_report
from app.web.pages import Pages
from app.web.probes import Probes
from app.web.table import CapacityTable, Kept, in_pieces

_STRUCTS = (CapacityReport, MeaningReport, Report)
_NOSNIFF = {"x-content-type-options": "nosniff"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What can be asked here; each answer is made when it is asked for."""

    table: CapacityTable
    meaning: Callable[[str], Iterable[Meaning | None]]
    """The meaning of a name, and before it None wherever others may work."""
    check: Checker
    metrics: Callable[[Sequence[ClassCapacity], Mapping[tuple[str, Vacancy], int]], bytes]
    notice: Callable[[], str]
    """What readers of the page should know about its numbers; empty for nothing."""
    switches: Callable[[], Mapping[str, str]]
    """What is used of the rights that can be withheld, and whether it is; for the page's footer."""
    probes: Probes
    hide_names: bool
    version: str


def create_application(answers: Answers) -> ASGIApp:
    """The application of the web listener."""
    # The default pages for people load their scripts from a public server; `_add_pages` has one of our own.
    app = FastAPI(title="Vacancy", version=answers.version, docs_url=None, redoc_url=None)
    app.openapi = functools.cache(lambda: _description(app))  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    _add_pages(app, answers)
    _add_api(app, answers)
    _add_probes(app, answers)
    return _Closing(app, answers.probes)


def _add_pages(app: FastAPI, answers: Answers) -> None:
    pages = Pages()
    kept = Kept[list[bytes]]()

    headers = _NOSNIFF | pages.headers

    @app.get("/", summary="The capacity page", response_class=HTMLResponse)
    async def capacity_page() -> Response:
        table, notice, switches = await answers.table.get(), answers.notice(), answers.switches()

        async def html() -> list[bytes]:
            pieces = pages.capacity(
                table, notice=notice, switches=switches, version=answers.version, hide_names=answers.hide_names
            )
            return [piece.encode() async for piece in in_pieces(pieces)]

        return _in_pieces(await kept.get((table, notice, *switches.items()), html), "text/html", headers)

    @app.get("/docs", summary="This list", response_class=HTMLResponse)
    async def docs() -> Response:
        operations = (
            {"method": method.upper(), "path": path, "summary": operation["summary"]}
            for path, methods in app.openapi()["paths"].items()
            for method, operation in methods.items()
        )
        return HTMLResponse(pages.operations(answers.version, operations), headers=headers)


def _add_api(app: FastAPI, answers: Answers) -> None:
    kept = Kept[list[bytes]]()
    one_at_a_time = asyncio.Lock()

    @app.get("/api/v1/capacity", summary="What each device class can still give", **_answers_with("CapacityReport"))
    async def capacity() -> Response:
        table = await answers.table.get()

        async def json() -> list[bytes]:
            without_classes = msgspec.json.encode(msgspec.structs.replace(table.report, classes=()))
            classes = [msgspec.json.encode(each) async for each in in_pieces(table.report.classes)]
            between = itertools.chain.from_iterable((b",", each) for each in classes)
            return [without_classes.removesuffix(b"]}"), *itertools.islice(between, 1, None), b"]}"]

        return _in_pieces(await kept.get(table, json), "application/json", _NOSNIFF)

    @app.post(
        "/api/v1/check",
        summary="Would the pods of this manifest get their devices now?",
        **_answers_with("Report", takes=("application/yaml", "application/json")),
    )
    async def check(request: Request, namespace: str = "default") -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BYTES:
                return _error(413, f"expected at most {MAX_BYTES} bytes")
        try:
            return _json(await answers.check(bytes(body), namespace))
        except Unreadable as error:
            return _error(400, str(error))

    @app.get(
        "/api/v1/explain/{name:path}",
        summary='What "1" of this extended resource or device class means now',
        **_answers_with("MeaningReport"),
    )
    async def explain(name: str) -> Response:
        async with one_at_a_time:
            (found,) = [step async for step in in_pieces(answers.meaning(name)) if step is not None]
        report = meaning_report(found, hide_names=answers.hide_names)
        return _json(report, 200 if report.claimants else 404)


def _add_probes(app: FastAPI, answers: Answers) -> None:
    @app.get("/livez", summary="The process answers", response_class=PlainTextResponse)
    async def livez() -> Response:
        return PlainTextResponse("ok")

    @app.get("/readyz", summary="Reviews may be sent here; ?verbose: check by check", response_class=PlainTextResponse)
    async def readyz(request: Request) -> Response:
        code, text = answers.probes.readiness(verbose="verbose" in request.query_params)
        return PlainTextResponse(text, code)

    @app.get("/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> Response:
        table = await answers.table.get()
        return Response(answers.metrics(table.classes, table.pools), media_type=CONTENT_TYPE)


class _Closing:
    """Tells clients to leave their connection while the process is being stopped."""

    def __init__(self, app: ASGIApp, probes: Probes) -> None:
        self._app, self._probes = app, probes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, closing if self._probes.draining else send)


def _json(answer: msgspec.Struct, status_code: int = 200) -> Response:
    return Response(msgspec.json.encode(answer), status_code, _NOSNIFF, "application/json")


def _in_pieces(body: Sequence[bytes], media_type: str, headers: Mapping[str, str]) -> Response:
    """A body of any size: to join megabytes and hand them over at once holds the loop for some milliseconds."""
    length = {"content-length": str(sum(map(len, body)))}
    return StreamingResponse(in_pieces(body), 200, {**headers, **length}, media_type)


def _error(status_code: int, text: str) -> Response:
    return Response(msgspec.json.encode({"error": text}), status_code, _NOSNIFF, "application/json")


def _answers_with(schema: str, takes: tuple[str, ...] = ()) -> dict[str, Any]:
    """How an operation is described whose bytes are made by msgspec and not by FastAPI."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    extra: dict[str, Any] = {"responses": {"200": {"description": "The answer", "content": content}}}
    if takes:
        body = {media_type: {"schema": {"type": "string"}} for media_type in takes}
        extra["requestBody"] = {"required": True, "content": body}
    return {"response_class": Response, "openapi_extra": extra}


def _description(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, routes=app.routes)
    _, schemas = msgspec.json.schema_components(_STRUCTS, ref_template="#/components/schemas/{name}")
    document.setdefault("components", {}).setdefault("schemas", {}).update(schemas)
    return document
