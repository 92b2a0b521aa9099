"""One watch at an API server that stands in, and what a witness heard of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from app.cluster.client import ApiClient
from app.cluster.collection import COLLECTIONS
from app.cluster.watch import Health, Patience, State, Watch, watches
from app.dra.holders import PodRecord
from app.dra.witness import Heard, Kind, Witness
from tests.apiserver import ApiServer, eventually
from tests.apiserver_parts import CLAIMS, CLASSES, NODES, SLICES, TAINT_RULES, Watcher
from tests.builders import Json

QUICK = Patience(quiet=0.05, succession=30.0, apart=0.01, shortest_pause=0.01, longest_pause=0.05, denied=0.05)
"""Impatient with failures; patient where only a fault of ours would make it wait."""

PATHS = {
    Kind.DEVICE_CLASSES: CLASSES,
    Kind.RESOURCE_SLICES: SLICES,
    Kind.RESOURCE_CLAIMS: CLAIMS,
    Kind.DEVICE_TAINT_RULES: TAINT_RULES,
    Kind.NODES: NODES,
}


class Diary(Witness):
    """A witness that writes down what it is told."""

    def __init__(self) -> None:
        super().__init__(started_at=0.0)
        self.entries: list[tuple[str, ...]] = []

    def apply(self, kind: Kind, obj: Heard, now: float, since: float | None = None) -> None:
        name, version = (obj.name, "") if isinstance(obj, PodRecord) else (obj.metadata.name, "")
        self.entries.append(("apply", name, version))
        super().apply(kind, obj, now, since)

    def remove(self, kind: Kind, namespace: str, name: str, now: float) -> None:
        self.entries.append(("remove", name))
        super().remove(kind, namespace, name, now)

    def synced(self, kind: Kind, now: float, since: float | None = None) -> None:
        self.entries.append(("synced",))
        super().synced(kind, now, since)

    def lost(self, kind: Kind) -> None:
        self.entries.append(("lost",))
        super().lost(kind)


@dataclass
class Scene:
    """A server, and watches of some kinds of it."""

    server: ApiServer
    witness: Diary
    watching: dict[Kind, Watch]

    def health(self, kind: Kind = Kind.RESOURCE_SLICES) -> Health:
        return self.watching[kind].health

    async def becomes(self, state: State, kind: Kind = Kind.RESOURCE_SLICES) -> None:
        await eventually(f"{kind} {state}", lambda: self.health(kind).state is state)

    async def open_watch(self, path: str = SLICES) -> Watcher:
        await eventually("a watch is open", lambda: self.server.watches(path))
        return self.server.watches(path)[-1]

    async def end_watch(self) -> None:
        watcher = await self.open_watch()
        self.server.end(watcher)
        await eventually("it is closed", lambda: watcher not in self.server.watchers)

    def slices(self) -> set[str]:
        return {name for pool in self.witness.pools() for name in pool.slices}

    def knows(self) -> tuple[bool, bool, bool]:
        """Whether devices, what is taken, and device plugins are known."""
        witness = self.witness
        return (
            witness.devices_unknown is None,
            witness.holds_unknown is None,
            witness.judges_extended_resources(),
        )

    def denied(self) -> bool:
        return self.witness.holds_denied

    def told(self, *what: str) -> list[tuple[str, ...]]:
        return [entry for entry in self.witness.entries if entry[0] in what]


Story = Callable[[Scene], Awaitable[None]]


@asynccontextmanager
async def watching(
    server: ApiServer, folder: Path, kinds: Iterable[Kind], patience: Patience, **user: object
) -> AsyncIterator[Scene]:
    witness = Diary()
    collections = [each for each in COLLECTIONS if each.kind in kinds]
    async with await ApiClient.connect(server.kubeconfig(folder, **user), None) as client:
        made = watches(client, witness, time.time, collections, patience)
        tasks = [asyncio.create_task(watch.run()) for watch in made]
        try:
            yield Scene(server, witness, {watch.collection.kind: watch for watch in made})
            for task in tasks:
                assert not task.done(), task.exception()
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def play(
    folder: Path,
    story: Story,
    *kinds: Kind,
    prepare: Callable[[ApiServer], None] = lambda _server: None,
    patience: Patience = QUICK,
    **user: object,
) -> None:
    """Run a story with watches of some kinds (slices, if none is named) of a server that was prepared before."""

    async def run() -> None:
        async with ApiServer() as server:
            prepare(server)
            async with watching(server, folder, kinds or (Kind.RESOURCE_SLICES,), patience, **user) as scene:
                await story(scene)

    asyncio.run(run())


def a_slice(name: str = "s1", *, devices: int = 1, **metadata: object) -> Json:
    names = [f"{name}-{number}" for number in range(devices)]
    return {
        "metadata": {"name": name, **metadata},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": each, "attributes": {"model": {"string": "a"}}} for each in names],
        },
    }


def slices(count: int) -> Callable[[ApiServer], None]:
    def prepare(server: ApiServer) -> None:
        for number in range(count):
            server.put(SLICES, a_slice(f"s{number}"))

    return prepare
