"""Where a command's answer comes from: files, a Vacancy server, the cluster itself.

All give the same structs, so that a command prints one and the same whichever it asked. Each is imported when it is
asked: a person waits, and only one of them needs what judges, or what follows a cluster.
"""
# ruff: noqa: PLC0415 - see above

from dataclasses import dataclass
from typing import Protocol

from app.presubmit.manifest import Document
from app.presubmit.report import Report
from app.settings import BadSettings, Settings
from app.web.capacity import CapacityReport
from app.web.explain import MeaningReport

SERVICE = "vacancy/vacancy"
"""As the chart calls it, when the release and its namespace are called `vacancy`."""


@dataclass(frozen=True, slots=True)
class Where:
    """Whom to ask; the files of `--manifests` are a setting. None of it: the Service of the chart."""

    server: str = ""
    """Address of a Vacancy server."""
    service: str = ""
    """`NAMESPACE/NAME` of its Service in the cluster."""
    direct: bool = False
    """Judge here, by what the caller may read of the cluster."""


class Answers(Protocol):
    """What the commands ask."""

    namespace: str
    """Of objects that name none."""

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
    sources = {
        "--server": where.server,
        "--manifests": settings.manifests,
        "--service": where.service,
        "--direct": where.direct,
    }
    named = [flag for flag, given in sources.items() if given]
    if len(named) > 1:
        raise BadSettings((f"source: expected one of {', '.join(sources)}, found {' and '.join(named)}",))
    if settings.manifests is not None:
        from app.files import Files

        return Files(settings.manifests, settings)
    if where.direct:
        from app.direct import Direct

        return Direct(settings)
    from app.server import Address, Server

    if where.server:
        return Server(Address(where.server))
    from app.service import Service

    return Server(Service(where.service or SERVICE, settings.kubeconfig, settings.context))
