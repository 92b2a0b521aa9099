"""A refresher at an API server that stands in, told tick by tick."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from app.cluster.client import ApiClient
from app.cluster.pool_status import ANSWER_SECONDS
from app.cluster.refresher import (
    Refresher,
)
from app.dra.judgement import Policy, Source, World
from app.dra.snapshot import DriverStatus, Snapshot
from app.dra.witness import Heard
from app.latest_snapshot import LatestSnapshot
from tests.apiserver import ApiServer
from tests.apiserver_parts import POOL_STATUS_REQUESTS, Answer, Fault
from tests.builders import (
    DRIVER,
    NOON,
    Json,
    device_class,
    resource_slice,
    timestamp,
)
from tests.dra.watched import Watched

REFRESH_SECONDS = 60.0
LITTLE = 0.5
LABEL = {"app.kubernetes.io/managed-by": "vacancy"}
N1 = resource_slice(pool="n1")


class Plane:
    """An API server, a live view of slices, and a refresher between them."""

    def __init__(
        self, server: ApiServer, client: ApiClient, source: Source, patience: float, objects: Iterable[Heard]
    ) -> None:
        self.server, self._client, self._patience = server, client, patience
        self.watched = Watched(device_class(), *objects)
        self.latest = LatestSnapshot(World(self.watched.witness, Snapshot({}), Policy(source=source)))
        self.refresher = self.replica()

    def replica(self) -> Refresher:
        return Refresher(self._client, self.latest, refresh_seconds=REFRESH_SECONDS, answer_seconds=self._patience)

    def answer(
        self, *pools: Json, driver: str = DRIVER, pool: str | None = None, at: float = NOON, of: int | None = None
    ) -> None:
        """What is answered from now on; `of`: how many pools there are, if more than these."""
        condition = {"type": "Complete", "status": "True", "lastTransitionTime": timestamp(at)}
        status = {"poolCount": len(pools) if of is None else of, "pools": list(pools), "conditions": [condition]}
        self.server.answers[driver, pool] = Answer(status)

    def status(self, driver: str = DRIVER) -> DriverStatus:
        return self.latest.get().snapshot.statuses[driver]

    def left(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.server.objects(POOL_STATUS_REQUESTS)]

    def asked(self) -> list[tuple[str, str | None]]:
        """Driver and pool of every request so far."""
        specs = [json.loads(asked.body)["spec"] for asked in self.server.asked if asked.method == "POST"]
        return [(spec["driver"], spec.get("poolName")) for spec in specs]


def play(
    folder: Path,
    story: Callable[[Plane], Awaitable[None]],
    *objects: Heard,
    source: Source = Source.AUTO,
    patience: float = ANSWER_SECONDS,
) -> None:
    """`patience`: seconds a request has for its answer; `LITTLE` where somebody is silent."""

    async def main() -> None:
        async with ApiServer() as server, await ApiClient.connect(server.kubeconfig(folder), None) as client:
            await story(Plane(server, client, source, patience, objects or (N1,)))

    asyncio.run(main())


def met(fault: Fault, method: str = "POST") -> Callable[[Plane], None]:
    return lambda plane: plane.server.fault(fault, method=method, times=None)
