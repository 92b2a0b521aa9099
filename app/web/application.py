"""The web listener: page, API, probes, metrics and their description. The only importer of FastAPI.

Reviews do not come in here; they have a listener of their own (`admit`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import mistakes
from app.dra.capacity import ClassCapacity
from app.dra.meaning import Meaning
from app.dra.vacancy import Vacancy
from app.dra.words import DETAIL_LIMIT, shortened
from app.metrics import CONTENT_TYPE
from app.web import problems
from app.web.check import MAX_BYTES, Busy, Checker, Unreadable
from app.web.description import MANIFEST_TYPES, answers_with, description
from app.web.explain import meaning_report
from app.web.history import History
from app.web.page import CapacityPage, ViewsWait
from app.web.pages import SCRIPT, Pages
from app.web.probes import Probes
from app.web.problems import problem
from app.web.representation import Representation, representation, respond
from app.web.table import CapacityTable, Kept, in_pieces
from app.web.view import view_of

BODY_SECONDS = 10.0
"""For a text that is posted; who sends it sends it at once."""

_NOSNIFF = {"x-content-type-options": "nosniff"}

_log = logging.getLogger(__name__)

CURL_TYPE = "application/x-www-form-urlencoded"
"""What `curl --data-binary @pod.yaml` calls any text, unless it is told better."""

NAMESPACE = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
"""RFC 1123 label."""


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
    history: History = field(default_factory=History)
    """The free devices of the last hour."""


def create_application(answers: Answers) -> ASGIApp:
    """The application of the web listener."""
    # The default pages for people load their scripts from a public server; `_add_pages` has one of our own.
    app = FastAPI(
        title="Vacancy",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    _add_problems(app)
    pages = Pages()
    _add_pages(app, answers, pages)
    _add_description(app, answers.version, pages)
    _add_api(app, answers)
    _add_probes(app, answers)
    return _Outside(app, answers.probes)


def _add_pages(app: FastAPI, answers: Answers, pages: Pages) -> None:
    page = CapacityPage(pages, answers.history, version=answers.version, hide_names=answers.hide_names)
    headers = _NOSNIFF | pages.headers

    @app.get(
        "/",
        summary="The capacity page",
        response_class=HTMLResponse,
        responses={503: {"description": "Too many other views of it are to be made."}},
    )
    async def capacity_page(
        request: Request,
        text: Annotated[str, Query(alias="class", description="part of a class's name or resource name")] = "",
        state: Annotated[str, Query(description="free, full, empty or unknown")] = "",
        sort: Annotated[str, Query(description="name, free or state")] = "",
        pools: Annotated[str, Query(description="all: with every pool of the class that is called so")] = "",
    ) -> Response:
        table, view = await answers.table.get(), view_of(text, state, sort, pools)
        try:
            return respond(request, await page.get(table, answers.notice(), answers.switches(), view), headers)
        except ViewsWait:
            return _problem(503, "too many views of the page are to be made, try again soon", {"retry-after": "5"})

    @app.get(f"/{SCRIPT}", include_in_schema=False)
    async def script(request: Request) -> Response:
        return respond(request, await representation([pages.script], "text/javascript"), _NOSNIFF)


def _add_description(app: FastAPI, version: str, pages: Pages) -> None:
    """What is served, for people and for programs; made once, in a thread, as it takes some milliseconds."""
    kept = Kept[tuple[bytes, str]]()

    def made() -> tuple[bytes, str]:
        document = description(app)
        operations = (
            {"method": method.upper(), "path": path, "summary": operation["summary"]}
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        )
        return msgspec.json.encode(document), pages.operations(version, operations)

    async def described() -> tuple[bytes, str]:
        return await kept.get(None, lambda: asyncio.to_thread(made))

    @app.get("/docs", summary="This list", response_class=HTMLResponse)
    async def docs() -> Response:
        _, page = await described()
        return HTMLResponse(page, headers=_NOSNIFF | pages.headers)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        document, _ = await described()
        return Response(document, 200, _NOSNIFF, "application/json")


def _add_api(app: FastAPI, answers: Answers) -> None:
    kept = Kept[Representation]()
    one_at_a_time = asyncio.Lock()

    @app.get(
        "/api/v1/capacity",
        summary="What each device class can still give",
        response_class=Response,
        openapi_extra=answers_with("CapacityReport", has_tag=True),
    )
    async def capacity(request: Request) -> Response:
        table = await answers.table.get()

        def json() -> Iterator[bytes]:
            yield msgspec.json.encode(msgspec.structs.replace(table.report, classes=())).removesuffix(b"]}")
            for number, each in enumerate(table.report.classes):
                yield b"," * bool(number) + msgspec.json.encode(each)
            yield b"]}"

        made = await kept.get(table, lambda: representation(json(), "application/json"))
        return respond(request, made, _NOSNIFF)

    @app.post(
        "/api/v1/check",
        summary="Would the pods of this manifest get their devices now?",
        response_class=Response,
        openapi_extra=answers_with("Report", 400, 408, 413, 415, 503, takes_manifest=True),
    )
    async def check(
        request: Request, namespace: Annotated[str, Query(pattern=NAMESPACE, max_length=63)] = "default"
    ) -> Response:
        try:
            async with answers.check.turn():
                pieces = await answers.check(await _manifest(request), namespace)
        except Unreadable as error:
            return _problem(400, str(error))
        except Busy:
            return _problem(503, "too many are asking, try again in some seconds", {"retry-after": "5"})
        headers = {**_NOSNIFF, "content-length": str(sum(map(len, pieces)))}
        return StreamingResponse(in_pieces(pieces), 200, headers, "application/json")

    @app.get(
        "/api/v1/explain/{name:path}",
        summary='What "1" of this extended resource or device class means now',
        response_class=Response,
        openapi_extra=answers_with("MeaningReport", 404),
    )
    async def explain(name: str) -> Response:
        async with one_at_a_time:
            (found,) = [step async for step in in_pieces(answers.meaning(name)) if step is not None]
        report = meaning_report(found, hide_names=answers.hide_names)
        if report.claimants:
            return _json(report)
        # The report comes along: a node may serve the name though no class does.
        return _problem(404, f"no device class has or declares the name {shortened(name, DETAIL_LIMIT)}", also=report)


async def _manifest(request: Request) -> bytes:
    """The text that was posted. Raises HTTPException."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type and media_type not in (*MANIFEST_TYPES, CURL_TYPE):
        raise HTTPException(415, f"expected content type {' or '.join(MANIFEST_TYPES)}")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise HTTPException(413, f"expected at most {MAX_BYTES} bytes")
    except TimeoutError as error:
        told = f"expected all of the text within {BODY_SECONDS:g} s"
        raise HTTPException(408, told, {"connection": "close"}) from error
    if not body:
        raise HTTPException(400, "expected a manifest, found nothing")
    return bytes(body)


def _add_probes(app: FastAPI, answers: Answers) -> None:
    @app.get("/livez", summary="The process answers", response_class=PlainTextResponse)
    async def livez() -> Response:
        return PlainTextResponse("ok")

    @app.get(
        "/readyz",
        summary="Reviews may be sent here",
        response_class=PlainTextResponse,
        responses={503: {"description": "They may not, and why."}},
    )
    async def readyz(
        verbose: Annotated[str | None, Query(description="given at all: check by check")] = None,
    ) -> Response:
        code, text = answers.probes.readiness(verbose=verbose is not None)
        return PlainTextResponse(text, code)

    @app.get("/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> Response:
        table = await answers.table.get()
        return Response(answers.metrics(table.classes, table.pools), media_type=CONTENT_TYPE)


class _Outside:
    """HEAD is answered as GET, whose body the server leaves out; who is there while it stops is asked to leave.

    A mistake of ours, which has been answered, is logged once a place, without its text.
    """

    def __init__(self, app: ASGIApp, probes: Probes) -> None:
        self._app, self._probes = app, probes
        self._logged: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}

        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        try:
            await self._app(scope, receive, closing if self._probes.draining else send)
        except Exception as error:  # noqa: BLE001 - the server would log it each time, with what it quotes
            if (place := mistakes.place(error)) not in self._logged:
                self._logged.add(place)
                _log.error("exception while answering", extra={"facts": {"problem": place}})


def _add_problems(app: FastAPI) -> None:
    """What is wrong with a request before an operation sees it, or with us, is told like all else."""

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        path = shortened(request.url.path, DETAIL_LIMIT)
        match error.status_code:
            case 404:
                return _problem(404, f"nothing is served at {path}; /docs lists what is")
            case 405:
                allowed = (error.headers or {})["Allow"].replace("GET", "GET, HEAD")
                return _problem(405, f"expected {allowed} of {path}, found {request.method}", {"allow": allowed})
            case status:
                return _problem(status, error.detail, error.headers or {})

    @app.exception_handler(ClientDisconnect)
    async def gone(_request: Request, _error: ClientDisconnect) -> Response:
        return _problem(400, "the text has no end")  # which nobody reads

    @app.exception_handler(RequestValidationError)
    async def bad_parameter(_: Request, error: RequestValidationError) -> Response:
        [*_, name] = error.errors()[0]["loc"]
        return _problem(400, f"{name}: expected at most 63 lower-case letters, digits and hyphens")

    @app.exception_handler(Exception)
    async def mistake_of_ours(_request: Request, _error: Exception) -> Response:
        return _problem(500, "a mistake of ours, which is in the log")


def _problem(
    status: int,
    detail: str,
    headers: Mapping[str, str] = {},
    also: msgspec.Struct | None = None,
) -> Response:
    """A problem as an answer; `also`: members that go with it."""
    members = msgspec.to_builtins(problem(status, detail)) | (msgspec.to_builtins(also) if also else {})
    return Response(msgspec.json.encode(members), status, {**_NOSNIFF, **headers}, problems.MEDIA_TYPE)


def _json(answer: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(answer), 200, _NOSNIFF, "application/json")
