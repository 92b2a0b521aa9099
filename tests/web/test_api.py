"""What is wrong with a request to the API, told as RFC 9457 has it."""

import logging
import re
from typing import Any

import pytest
from starlette.types import ASGIApp

from app.web.application import CURL_TYPE
from app.web.check import MAX_BYTES
from app.web.problems import TITLES
from tests.web.example import asked, example

YAML = {"content-type": "application/yaml"}
PATH = "/api/v1/check"

# sentence: (method, path, content, headers; status, what is told)
WRONG: dict[str, tuple[str, str, str | None, dict[str, str], int, str]] = {
    "a path that is not served": ("GET", "/api/v2/capacity", None, {}, 404, "nothing is served at /api/v2/capacity"),
    "a slash too many": ("GET", "/api/v1/capacity/", None, {}, 404, "nothing is served at /api/v1/capacity/; /docs"),
    "a path that would steer a terminal": ("GET", "/%1b[2J", None, {}, 404, "nothing is served at /?[2J;"),
    "a name nobody has": (
        "GET",
        "/api/v1/explain/example.com/none",
        None,
        {},
        404,
        "no device class has or declares the name example.com/none",
    ),
    "no name": ("GET", "/api/v1/explain/", None, {}, 404, "no device class has or declares the name "),
    "a method": ("PUT", "/api/v1/capacity", None, {}, 405, "expected GET, HEAD of /api/v1/capacity, found PUT"),
    "a method of a check": ("GET", PATH, None, {}, 405, "expected POST of /api/v1/check, found GET"),
    "nothing": ("POST", PATH, "", YAML, 400, "expected a manifest, found nothing"),
    "no manifest": ("POST", PATH, "kind: [", YAML, 400, "manifest:1: "),
    "a namespace there can't be": (
        "POST",
        f"{PATH}?namespace=A/b",
        "kind: A",
        YAML,
        400,
        "namespace: expected at most 63 lower-case letters, digits and hyphens",
    ),
    "a namespace that is too long": ("POST", f"{PATH}?namespace={'a' * 64}", "kind: A", YAML, 400, "namespace: "),
    "too large a text": ("POST", PATH, "#" * (MAX_BYTES + 1), YAML, 413, "expected at most 1048576 bytes"),
    "a text of another type": (
        "POST",
        PATH,
        "kind=Pod",
        {"content-type": "text/csv"},
        415,
        "expected content type application/yaml or application/json",
    ),
}


@pytest.fixture(scope="module")
def app() -> ASGIApp:
    return example()


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_status_title_and_one_line_of_detail(app: ASGIApp, case: str) -> None:
    method, path, content, headers, status, told = WRONG[case]
    answered = asked(app, method, path, content=content, headers=headers)
    problem = answered.json()
    assert answered.status_code == status
    assert answered.headers["content-type"] == "application/problem+json"
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert (problem["type"], problem["title"], problem["status"]) == ("about:blank", TITLES[status], status)
    assert problem["detail"].startswith(told)
    assert problem["detail"].isprintable()


@pytest.mark.parametrize(("path", "allowed"), [("/api/v1/capacity", "GET, HEAD"), ("/", "GET, HEAD"), (PATH, "POST")])
def test_a_wrong_method_is_told_which_are_right(app: ASGIApp, path: str, allowed: str) -> None:
    assert asked(app, "DELETE", path).headers["allow"] == allowed


def test_a_name_nobody_has_comes_with_what_is_known_of_it(app: ASGIApp) -> None:
    found = asked(app, "GET", "/api/v1/explain/example.com/none").json()
    assert (found["name"], found["claimants"], found["pluginNode"]) == ("example.com/none", [], "")


SAID = ["application/json", "application/yaml; charset=utf-8", "Application/YAML", CURL_TYPE, ""]


@pytest.mark.parametrize("media_type", SAID)
def test_a_manifest_is_yaml_or_json_or_what_curl_calls_it_or_does_not_say(app: ASGIApp, media_type: str) -> None:
    headers = {"content-type": media_type} if media_type else {}
    assert asked(app, "POST", PATH, content='{"apiVersion": "v1", "kind": "List"}', headers=headers).is_success


@pytest.mark.parametrize("path", ["/", "/api/v1/capacity", "/livez"])
def test_head_is_answered_like_get(app: ASGIApp, path: str) -> None:
    head, get = (asked(app, method, path) for method in ("HEAD", "GET"))
    assert (head.status_code, head.headers) == (get.status_code, get.headers)


def test_a_mistake_of_ours_is_told_and_logged_once_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: str) -> Any:  # noqa: ANN401 - never returns
        raise ZeroDivisionError("secret")

    app = example(meaning=broken)
    asked(app, "GET", "/api/v1/explain/a")
    answered = asked(app, "GET", "/api/v1/explain/a")
    (logged,) = caplog.records
    assert (logged.levelno, logged.message, logged.exc_info) == (logging.ERROR, "exception while answering", None)
    assert re.fullmatch(r"ZeroDivisionError in test_api.broken, line \d+", vars(logged)["facts"]["problem"])
    assert answered.json() == {
        "type": "about:blank",
        "title": "Internal Server Error",
        "status": 500,
        "detail": "a mistake of ours, which is in the log",
    }
