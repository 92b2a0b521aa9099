"""Answers of a Vacancy server, however it is reached."""

import http.client
import urllib.error
import urllib.parse
import urllib.request
from typing import Protocol, TypeVar

import msgspec

from app.cluster.proxies import address, without_login
from app.dra.words import printable
from app.presubmit.manifest import Document
from app.presubmit.report import Report
from app.settings import BadSettings
from app.unanswered import NoAnswer, Unusable
from app.web.capacity import CapacityReport
from app.web.explain import MeaningReport
from app.web.problems import Problem

TIMEOUT_SECONDS = 10.0
"""For a server's answer. A person waits for it, and a pipeline has a time-out of its own."""

LONGEST = 64 * 1024 * 1024
"""Bytes of an answer; 40,000 pools are 8 MB."""

T = TypeVar("T")


class Way(Protocol):
    """How a server is reached."""

    name: str
    """What messages call it."""
    namespace: str
    """Of objects that name none."""

    def send(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Status code and content of the answer to GET or, with a body of JSON, POST. Raises NoAnswer."""


class Server:
    """See `answers.Answers`."""

    def __init__(self, way: Way) -> None:
        self._way, self.namespace = way, way.namespace

    def close(self) -> None:
        """Every question has a connection of its own."""

    def check(self, documents: tuple[Document, ...], namespace: str) -> Report:
        """See `answers.Answers`."""
        items = [msgspec.Raw(document.json) for document in documents]
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
        return self._ask(f"/api/v1/check?namespace={urllib.parse.quote(namespace)}", Report, body)

    def capacity(self) -> CapacityReport:
        """See `answers.Answers`."""
        return self._ask("/api/v1/capacity", CapacityReport)

    def meaning(self, name: str) -> MeaningReport:
        """See `answers.Answers`."""
        return self._ask(f"/api/v1/explain/{urllib.parse.quote(name)}", MeaningReport)

    def _ask(self, path: str, kind: type[T], body: bytes | None = None) -> T:
        code, content = self._way.send(path, body)
        match code:
            case 200 | 404:  # that of a name nobody knows is an answer too
                pass
            case 400 | 413:
                raise Unusable(_complaint(content))
            case _:
                raise NoAnswer(f"{self._way.name}: HTTP {code}")
        if len(content) > LONGEST:
            raise NoAnswer(f"{self._way.name}: not an answer of Vacancy: more than {LONGEST} bytes")
        try:
            return msgspec.json.decode(content, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise NoAnswer(f"{self._way.name}: not an answer of Vacancy: {error}") from error


class Address:
    """Straight to where it listens."""

    namespace = "default"

    def __init__(self, url: str) -> None:
        """Raises BadSettings."""
        parts = address(url)
        if parts is None or "@" in parts.netloc:  # no server of ours asks who it is
            expected = "expected an http or https address, without name and password"
            raise BadSettings((f"--server={without_login(url)!a}: {expected}",))
        self.name = url.rstrip("/")

    def send(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        """See `Way`."""
        request = urllib.request.Request(  # noqa: S310 - http and https only, see above
            self.name + path, body, {"accept": "application/json", "content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
                return response.status, response.read(LONGEST + 1)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(LONGEST + 1)
        except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: the address of a proxy
            raise NoAnswer(f"{self.name}: {getattr(error, 'reason', error)}") from error


def _complaint(content: bytes) -> str:
    try:
        return printable(msgspec.json.decode(content, type=Problem).detail)
    except msgspec.DecodeError:
        return "the server does not take it"
