"""Where a command's answer comes from: files judged in this process, or a Vacancy server.

Both give the same structs, so that a command prints one and the same whichever it asked.
"""

import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from app.cluster.manifests import ManifestError, lookups
from app.dra.capacity import capacity
from app.dra.demand import claim_references
from app.dra.meaning import meaning
from app.dra.words import printable
from app.embedded import Embedded
from app.parts import clock, judgement_policy, readers
from app.presubmit.manifest import Document
from app.presubmit.report import Report
from app.settings import BadSettings, Settings
from app.unanswered import NoAnswer, Unusable
from app.web.capacity import CapacityReport, capacity_report
from app.web.explain import MeaningReport, meaning_report
from app.web.question import answer, question

TIMEOUT_SECONDS = 10.0
"""For a server's answer. A person waits for it, and a pipeline has a time-out of its own."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Where:
    """Whom to ask; the files of `--manifests` are a setting."""

    server: str = ""
    """Address of a Vacancy server."""
    direct: bool = False
    """Judge here, by what the caller may read of the cluster."""


class Answers(Protocol):
    """What the commands ask."""

    def check(self, documents: tuple[Document, ...], namespace: str) -> Report:
        """Would these pods get devices now? Raises NoAnswer, Unusable."""

    def capacity(self) -> CapacityReport:
        """The capacity table. Raises NoAnswer."""

    def meaning(self, name: str) -> MeaningReport:
        """What `1` of a name means. Raises NoAnswer."""

    def close(self) -> None:
        """Let go of what was opened for it."""


def answers(settings: Settings, where: Where) -> Answers:
    """The answers of the one source that is named. Raises BadSettings, Unusable, NoAnswer."""
    sources = {"--server": where.server, "--manifests": settings.manifests, "--direct": where.direct}
    named = [flag for flag, given in sources.items() if given]
    if len(named) != 1:
        found = " and ".join(named) or "none"
        raise BadSettings((f"source: expected one of --manifests PATH, --server URL and --direct, found {found}",))
    if where.server:
        return _Server(where.server)
    if settings.manifests is not None:
        return _Files(settings.manifests, settings)
    from app.direct import Direct  # noqa: PLC0415 - half a second that no other source needs

    return Direct(settings)


class _Files:
    def close(self) -> None:
        """Files are read and closed."""

    def __init__(self, manifests: Path, settings: Settings) -> None:
        self._now, self._readers = clock(settings), readers(settings)
        try:
            self._embedded = Embedded(manifests, judgement_policy(settings), self._now)
        except ManifestError as error:
            raise Unusable(str(error)) from error

    def check(self, documents: tuple[Document, ...], namespace: str) -> Report:
        try:
            asking = question(documents, namespace)
        except ManifestError as error:
            raise Unusable(str(error)) from error
        world, now = self._embedded.latest.get(), self._now()
        checks = []
        for pod in asking.pods:
            found = lookups(self._embedded.manifests, pod.namespace, claim_references(pod.pod))
            checks.append(answer(pod, asking.given.over(pod.namespace, found), world, self._readers, now))
        return Report(tuple(checks))

    def capacity(self) -> CapacityReport:
        self._embedded.look()
        return capacity_report(capacity(self._embedded.latest.get(), self._now()), hide_names=self._readers.hide_names)

    def meaning(self, name: str) -> MeaningReport:
        return meaning_report(
            meaning(name, self._embedded.latest.get(), self._now()), hide_names=self._readers.hide_names
        )


class _Server:
    def close(self) -> None:
        """Every question has a connection of its own."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadSettings((f"--server={url!r}: expected an http or https address",))
        self._url = url.rstrip("/")

    def check(self, documents: tuple[Document, ...], namespace: str) -> Report:
        items = [msgspec.Raw(document.json) for document in documents]
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
        return self._ask(f"/api/v1/check?namespace={urllib.parse.quote(namespace)}", Report, body)

    def capacity(self) -> CapacityReport:
        return self._ask("/api/v1/capacity", CapacityReport)

    def meaning(self, name: str) -> MeaningReport:
        return self._ask(f"/api/v1/explain/{urllib.parse.quote(name)}", MeaningReport)

    def _ask(self, path: str, kind: type[T], body: bytes | None = None) -> T:
        request = urllib.request.Request(  # noqa: S310 - http and https only, see above
            self._url + path, body, {"accept": "application/json", "content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
                content = response.read()
        except urllib.error.HTTPError as error:
            content = self._content_of(error)
        except OSError as error:
            raise NoAnswer(f"{self._url}: {getattr(error, 'reason', error)}") from error
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise NoAnswer(f"{self._url}: not an answer of Vacancy: {error}") from error

    def _content_of(self, error: urllib.error.HTTPError) -> bytes:
        """The body of an answer that is none: 404 of a name nobody knows has one; 400 and 413 blame the question."""
        with error:
            content: bytes = error.read()
        match error.code:
            case 404:
                return content
            case 400 | 413:
                raise Unusable(_complaint(content)) from error
            case _:
                raise NoAnswer(f"{self._url}: HTTP {error.code}") from error


class _Complaint(msgspec.Struct):
    error: str


def _complaint(content: bytes) -> str:
    try:
        return printable(msgspec.json.decode(content, type=_Complaint).error)
    except msgspec.DecodeError:
        return "the server does not take it"
