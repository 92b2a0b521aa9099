"""The web listener: page, API, probes, metrics and their description. The only importer of FastAPI.

Reviews do not come in here; they have a listener of their own (`admit`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.dra.capacity import Capacity
from app.dra.meaning import Meaning
from app.metrics import CONTENT_TYPE
from app.presubmit.report import Report
from app.web.capacity import CapacityReport, capacity_report
from app.web.check import MAX_BYTES, Checker, Unreadable
from app.web.explain import MeaningReport, meaning_report
from app.web.pages import Pages
from app.web.probes import Probes

_STRUCTS = (CapacityReport, MeaningReport, Report)
_NOSNIFF = {"x-content-type-options": "nosniff"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What can be asked here; each answer is made when it is asked for."""

    now: Callable[[], float]
    capacity: Callable[[], Capacity]
    meaning: Callable[[str], Meaning]
    check: Checker
    metrics: Callable[[], bytes]
    notice: Callable[[], str]
    """What readers of the page should know about its numbers; empty for nothing."""
    probes: Probes
    hide_names: bool
    version: str


def create_application(answers: Answers) -> ASGIApp:
    """The application of the web listener."""
    # The default pages for people load their scripts from a public server; `_add_pages` has one of our own.
    app = FastAPI(title="Vacancy", version=answers.version, docs_url=None, redoc_url=None)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    _add_pages(app, answers)
    _add_api(app, answers)
    _add_probes(app, answers)
    return _Closing(app, answers.probes)


def _add_pages(app: FastAPI, answers: Answers) -> None:
    pages = Pages()

    def page(html: str) -> HTMLResponse:
        return HTMLResponse(html, headers=_NOSNIFF | pages.headers)

    @app.get("/", summary="The capacity page", response_class=HTMLResponse)
    async def capacity_page() -> Response:
        report = capacity_report(answers.capacity(), hide_names=answers.hide_names)
        now, notice = answers.now(), answers.notice()
        return page(pages.capacity(report, now, notice=notice, hide_names=answers.hide_names))

    @app.get("/docs", summary="This list", response_class=HTMLResponse)
    async def docs() -> Response:
        operations = (
            {"method": method.upper(), "path": path, "summary": operation["summary"]}
            for path, methods in app.openapi()["paths"].items()
            for method, operation in methods.items()
        )
        return page(pages.operations(answers.version, operations))


def _add_api(app: FastAPI, answers: Answers) -> None:
    @app.get("/api/v1/capacity", summary="What each device class can still give", **_answers_with("CapacityReport"))
    async def capacity() -> Response:
        return _json(capacity_report(answers.capacity(), hide_names=answers.hide_names))

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
        report = meaning_report(answers.meaning(name), hide_names=answers.hide_names)
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
        return Response(answers.metrics(), media_type=CONTENT_TYPE)


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
