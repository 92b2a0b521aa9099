"""The control plane of the live runs, and a `vacancy serve` for every source, asked by real reviews."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from app.cluster.rights import CORE, ROLES
from tests.controlplane.client import Json
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.serving import Vacancy
from tests.truth.comparison import Said

SOURCES = ("auto", "witness", "both", "pool-status")

REFRESH_SECONDS = 10.0
"""Short, as a story lasts minutes; not shorter, as every driver of every story is asked for."""

_FAST = ("--kube-api-qps=200", "--kube-api-burst=400")  # or claims of one story would wait for those of all others


class FastPlane(ControlPlane):
    """A control plane whose parts do not wait before they speak to the API server."""

    def _start_beside(self, command: Callable[[int, Path], list[str]]) -> None:
        super()._start_beside(lambda port, kubeconfig: [*command(port, kubeconfig), *_FAST])


@dataclass(frozen=True, slots=True)
class Told:
    """One answer: when it was asked for, and how old the counts are that it rests on, in seconds."""

    said: Said
    asked_at: float
    age: float


class Servers:
    """One server for every source, all asked about each pod."""

    def __init__(self, plane: ControlPlane, folder: Path, sources: Sequence[str] = SOURCES) -> None:
        self._exit = ExitStack()
        self._servers = {
            source: self._exit.enter_context(
                Vacancy(
                    plane,
                    folder / f"truth-{source}",
                    source,
                    roles=(CORE,) if source == "pool-status" else ROLES,
                    refresh_seconds=REFRESH_SECONDS,
                )
            )
            for source in sources
        }
        for server in self._servers.values():
            until(f"{server.source} ready", server.is_ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def say(self, pod: Json, namespace: str) -> dict[str, Told]:
        """What each says of the pod."""
        found = {}
        for source, server in self._servers.items():
            asked_at = time.time()
            response = server.review(pod, namespace)
            told = response.get("auditAnnotations", {})
            reason = told.get("reason", "NoDeviceRequested")
            said = Said(not response["allowed"], reason, counts=source != "witness")
            found[source] = Told(said, asked_at, float(told.get("snapshot-age-seconds", 0)))
        return found
