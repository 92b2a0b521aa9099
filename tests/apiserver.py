"""A small HTTP API server on loopback: it stores objects, lists them in pages, watches them, and misbehaves on command.

It stores and returns; it never decides. What the real one would make of an object (a status, a phase) is put here by
the test. Versions, pages, watch events, bookmarks, selectors, UID preconditions and error bodies are those that
kube-apiserver 1.37 sends. Everything runs in the event loop of the test: what a test does here has happened when the
call returns, and no lock is needed.

    async with ApiServer() as server:
        server.put(SLICES, {"metadata": {"name": "s1"}, "spec": ...})
        server.fault(Fault(status=503), path=SLICES, watch=False)       # the next list of slices fails, once
        client = await ApiClient.connect(server.kubeconfig(tmp_path), None)
"""

import asyncio
import base64
import json
import socket
import ssl
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.apiserver_parts import (
    PATH,
    POOL_STATUS_REQUESTS,
    Answer,
    Asked,
    Event,
    Fault,
    Json,
    Name,
    Order,
    Watcher,
    form_of,
    line_of,
    refusal,
    selected,
    stamp,
    status_of,
    suffer,
)


async def eventually(what: str, holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Let the loop run until it holds. Raises TimeoutError that says `what` did not happen; only a fault waits long."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        await asyncio.sleep(0.005)


_TURNS_TO_ACCEPT = 5
"""Of the loop, until what it has accepted is a connection: asyncio leaves one open when the server is closed before."""


class ApiServer:
    """The server; open it with `async with`."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.url = ""
        self.minor = "37"
        self.token: str | None = None
        """If set, who does not bring it gets 401."""
        self.refused: dict[str, int] = {}
        """Status codes by collection: 403 for a kind that may not be read, 404 for one that is not served."""
        self.answers: dict[tuple[str, str | None], Answer] = {}
        """What a pool status request for (driver, pool or None) gets; without an entry it is never answered."""
        self.on_create: Callable[[str, Json], None] = lambda _collection, _object: None
        """Called with every object that was created over HTTP, before the client hears of it."""
        self.bookmark_seconds = 60.0
        self.gone_in_watch = True
        """A watch from too old a version: an ERROR event in a watch that opens (as 1.37), or status 410."""
        self.asked: list[Asked] = []
        self.watchers: list[Watcher] = []
        self._objects: dict[str, dict[Name, Json]] = {}
        self._version = 1000
        self._history: deque[Event] = deque()
        self._history_starts = 0
        self._pages: dict[str, tuple[int, list[Json]]] = {}
        self._orders: list[Order] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._runner: web.AppRunner | None = None
        self._port, self._tls = 0, tls

    # --- Life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; after a stop on the same port again, with the same objects."""
        application = web.Application(client_max_size=16 * 1024 * 1024)
        application.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.0)
        await self._runner.setup()
        self._listening = socket.create_server(("127.0.0.1", self._port))
        await web.SockSite(self._runner, self._listening, ssl_context=self._tls).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Close everything at once, as a crash does."""
        for watcher in list(self.watchers):
            self.cut(watcher)
        for task in self._tasks:
            task.cancel()
        if self._runner is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            for _ in range(_TURNS_TO_ACCEPT):
                await asyncio.sleep(0)
            await self._runner.cleanup()
            self._runner = None

    def kubeconfig(self, folder: Path, **user: object) -> Path:
        """A kubeconfig for this server; `user`: how to log in, in a kubeconfig's words (`token`, `exec`)."""
        path = folder / "kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": user}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        }
        path.write_text(json.dumps(content))  # JSON is YAML
        return path

    # --- What a test puts in ------------------------------------------------------------------------------------------

    def put(self, collection: str, obj: Mapping[str, Any]) -> Json:
        """Create or replace an object; what a server sets and `obj` lacks (uid, creationTimestamp) is set."""
        meta = dict(obj.get("metadata", {}))
        name = (meta.get("namespace", ""), meta["name"])
        stored = self._objects.setdefault(collection, {})
        old = stored.get(name)
        known = {"uid": str(uuid.uuid4()), "creationTimestamp": stamp()} if old is None else old["metadata"]
        meta = {key: known[key] for key in ("uid", "creationTimestamp")} | meta
        self._version += 1
        new = {**obj, "metadata": meta | {"resourceVersion": str(self._version)}}
        stored[name] = new
        self._tell(Event(self._version, collection, new, old))
        return new

    def remove(self, collection: str, name: str, namespace: str = "") -> None:
        """Delete an object."""
        old = self._objects[collection].pop((namespace, name))
        self._version += 1
        last = {**old, "metadata": old["metadata"] | {"resourceVersion": str(self._version)}}
        self._tell(Event(self._version, collection, None, last))

    def objects(self, collection: str) -> list[Json]:
        """All objects of a collection, in the order of their names."""
        return [obj for _, obj in sorted(self._objects.get(collection, {}).items())]

    # --- Misbehaving --------------------------------------------------------------------------------------------------

    def fault(
        self,
        fault: Fault,
        *,
        method: str | None = None,
        path: str | None = None,
        watch: bool | None = None,
        times: int | None = 1,
    ) -> None:
        """The next requests like this meet a fault; `times` None: until `heal`."""
        self._orders.append(Order(fault, method, path, watch, times))

    def heal(self) -> None:
        """No fault waits any more."""
        self._orders.clear()

    def compact(self) -> None:
        """Forget the past: watches from before and pages of lists begun before are gone (410)."""
        self._history.clear()
        self._history_starts = self._version
        self._pages.clear()

    def watches(self, collection: str, *, selector: str | None = None) -> list[Watcher]:
        """Open watches of a collection, the oldest first; `selector`: only those with that field selector ("" none)."""
        found = [watcher for watcher in self.watchers if watcher.asked.path == collection]
        return [w for w in found if selector is None or w.asked.query.get("fieldSelector", "") == selector]

    def lists(self, collection: str) -> int:
        """How often a list of the collection was begun; later pages and looks at one object do not count."""
        lists = [asked.query for asked in self.asked if asked.path == collection and not asked.watch]
        return sum("continue" not in query and query.get("limit") != "1" for query in lists)

    def say(self, watcher: Watcher, raw: bytes) -> None:
        """Send these bytes in an open watch, whatever they are."""
        watcher.lines.put_nowait(raw)

    def bookmark(self, watcher: Watcher) -> None:
        """Send a bookmark of the current version."""
        self.say(watcher, line_of("BOOKMARK", {"metadata": {"resourceVersion": str(self._version)}}))

    def error(self, watcher: Watcher, code: int) -> None:
        """Send an ERROR event, and end the watch, as the real server does."""
        self.say(watcher, line_of("ERROR", status_of(code)))
        watcher.lines.put_nowait(None)

    def end(self, watcher: Watcher) -> None:
        """End a watch in an orderly way, as after `timeoutSeconds`."""
        watcher.lines.put_nowait(None)

    def cut(self, watcher: Watcher) -> None:
        """Drop the connection of a watch at once."""
        if watcher.transport is not None:
            watcher.transport.abort()

    # --- HTTP ---------------------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:  # noqa: PLR0911 - every refusal is a return
        asked = Asked(
            method=request.method,
            path=request.rel_url.raw_path,
            query=dict(request.query),
            headers=request.headers,
            body=await request.read(),
            at=time.monotonic(),
        )
        self.asked.append(asked)
        order = next((order for order in self._orders if order.concerns(asked)), None)
        if order is not None:
            order.times = None if order.times is None else order.times - 1
            answer = await suffer(order.fault, request)
            if answer is not None:
                return answer
        where = PATH.fullmatch(request.path)
        collection = f"{where['group']}/{where['plural']}" if where else ""
        scheme, _, token = asked.headers.get("Authorization", "").partition(" ")
        if self.token is not None and (scheme.lower(), token) != ("bearer", self.token):
            return refusal(401)
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": self.minor})
        if where is None or collection in self.refused:
            return refusal(self.refused.get(collection, 404))
        listing = asked.method == "GET" and not where["name"] and not asked.watch
        if "as=PartialObjectMetadata" in asked.accept and ("List;" in asked.accept) != listing:
            return refusal(406)
        name = (where["namespace"] or "", where["name"] or "")
        if asked.watch:
            return await self._watch(collection, asked, request)
        actions: dict[tuple[str, bool], Callable[[str, Name, Asked], Awaitable[web.Response]]] = {
            ("GET", False): self._list,
            ("GET", True): self._read,
            ("POST", False): self._create,
            ("DELETE", True): self._delete,
        }
        action = actions.get((asked.method, where["name"] is not None))
        return refusal(405) if action is None else await action(collection, name, asked)

    async def _list(self, collection: str, name: Name, asked: Asked) -> web.Response:
        limit = int(asked.query.get("limit", "0"))
        token = asked.query.get("continue")
        if token is not None:
            if token not in self._pages:
                return refusal(410)
            version, left = self._pages.pop(token)
        else:
            found = self.objects(collection)
            version, left = self._version, [obj for obj in found if selected(obj, asked.query, name[0])]
        page, rest = (left[:limit], left[limit:]) if limit else (left, [])
        meta: Json = {"resourceVersion": str(version)}
        if rest:
            meta["continue"] = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()
            meta["remainingItemCount"] = len(rest)
            self._pages[meta["continue"]] = (version, rest)
        return web.json_response({"kind": "List", "metadata": meta, "items": [form_of(obj, asked) for obj in page]})

    async def _read(self, collection: str, name: Name, asked: Asked) -> web.Response:
        found = self._objects.get(collection, {}).get(name)
        return refusal(404) if found is None else web.json_response(form_of(found, asked))

    async def _create(self, collection: str, name: Name, asked: Asked) -> web.Response:
        obj = json.loads(asked.body)
        obj.pop("status", None)  # a status is not created
        meta = obj["metadata"]
        if not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{uuid.uuid4().hex[:5]}"
        if name[0]:
            meta["namespace"] = name[0]
        if (meta.get("namespace", ""), meta["name"]) in self._objects.get(collection, {}):
            return refusal(409)
        made = self.put(collection, obj)
        if collection == POOL_STATUS_REQUESTS:
            self._answer_later(made)
        self.on_create(collection, made)
        return web.json_response(made, status=201)

    async def _delete(self, collection: str, name: Name, asked: Asked) -> web.Response:
        found = self._objects.get(collection, {}).get(name)
        if found is None:
            return refusal(404)
        options = json.loads(asked.body) if asked.body else {}
        uid = (options.get("preconditions") or {}).get("uid")
        if uid not in (None, found["metadata"]["uid"]):
            return refusal(409)
        self.remove(collection, name[1], name[0])
        return web.json_response(found)

    def _answer_later(self, made: Json) -> None:
        answer = self.answers.get((made["spec"]["driver"], made["spec"].get("poolName")))
        if answer is not None:
            task = asyncio.get_running_loop().create_task(self._answer(made, answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, made: Json, answer: Answer) -> None:
        await asyncio.sleep(answer.after_seconds)
        found = self._objects.get(POOL_STATUS_REQUESTS, {}).get(("", made["metadata"]["name"]))
        if found is not None and found["metadata"]["uid"] == made["metadata"]["uid"]:
            self.put(POOL_STATUS_REQUESTS, found | {"status": answer.status})

    # --- Watches ------------------------------------------------------------------------------------------------------

    async def _watch(self, collection: str, asked: Asked, request: web.Request) -> web.StreamResponse:
        version = int(asked.query["resourceVersion"])
        too_old = version < self._history_starts
        if too_old and not self.gone_in_watch:
            return refusal(410)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        watcher = Watcher(asked, response, request.transport)
        if too_old:
            self.error(watcher, 410)
        for event in self._history:
            if event.version > version and event.collection == collection:
                self._pass_on(event, watcher)
        self.watchers.append(watcher)
        try:
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(float(asked.query.get("timeoutSeconds", "3600"))):
                    await self._speak(watcher)
        finally:
            self.watchers.remove(watcher)
        return response

    async def _speak(self, watcher: Watcher) -> None:
        while True:
            try:
                async with asyncio.timeout(self.bookmark_seconds):
                    line = await watcher.lines.get()
            except TimeoutError:
                self.bookmark(watcher)
                continue
            if watcher.hushed:
                await asyncio.Event().wait()
            if line is None:
                return
            await watcher.response.write(line)
            watcher.sent += 1

    def _tell(self, event: Event) -> None:
        self._history.append(event)
        for watcher in self.watchers:
            if watcher.asked.path == event.collection:
                self._pass_on(event, watcher)

    def _pass_on(self, event: Event, watcher: Watcher) -> None:
        """What a watch with a selector sees of an event: an object may come into view, or go out of it."""
        query = watcher.asked.query
        now, before = (obj is not None and selected(obj, query, "") for obj in (event.new, event.old))
        if now or before:
            kind = "DELETED" if not now else "MODIFIED" if before else "ADDED"
            obj = form_of((event.new if event.new is not None else event.old) or {}, watcher.asked)
            self.say(watcher, line_of(kind, obj))
