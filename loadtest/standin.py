"""An API server that stands in for a large cluster's: `python -m loadtest.standin FOLDER SIZE`.

It lists in pages, watches with bookmarks and answers pool status requests, out of JSON that is encoded once, so that
it takes next to nothing of a machine on which others are measured. What it does otherwise is told by `POST /control`:
`{"rate": N}` claim events a second, `{"tide": 1}`, `{"class": 1}` and `{"slice": 1}` (`standin_cluster`).

In FOLDER it finds `tls.crt` and `tls.key`; once it listens it writes `kubeconfig` there.
"""

import asyncio
import base64
import json
import os
import ssl
import sys
import zlib
from collections import deque
from pathlib import Path

import uvloop
from aiohttp import web

from loadtest.standin_cluster import CLAIMS, COLLECTIONS, ENDED, LARGE, PODS, RESOURCE, SMALL, Cluster, Write
from loadtest.standin_objects import stamp, uid

STATUSES = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
POOLS_AT_MOST = 1000  # `spec.limit` of ours, and the API's own
BOOKMARK_SECONDS = 60.0
HISTORY = 20_000  # events of one kind: 100 s of the fastest
LISTS = 16  # of which the next page can be had
ZIPPED_BYTES = 128 * 1024  # as kube-apiserver does with all that is longer
NICE = 10  # whoever measures on the same core goes first


class Store:
    """Encoded objects by collection and name, and what happened to them lately."""

    def __init__(self) -> None:
        self.version = 1
        self.objects: dict[str, dict[str, bytes]] = {each: {} for each in COLLECTIONS}
        self.watchers: dict[str, set[asyncio.Queue[bytes]]] = {each: set() for each in COLLECTIONS}
        self._history: dict[str, deque[tuple[int, bytes]]] = {each: deque(maxlen=HISTORY) for each in COLLECTIONS}
        self._begins = 0
        self._lists: dict[str, tuple[int, list[bytes]]] = {}

    def put(self, collection: str, name: str, write: Write) -> None:
        """An object is new or changed."""
        known = self.objects[collection]
        kind = b"MODIFIED" if name in known else b"ADDED"
        self.version += 1
        known[name] = write(self.version)
        self._tell(collection, kind, known[name])

    def remove(self, collection: str, name: str, write: Write) -> None:
        """An object is gone, if it was there."""
        if self.objects[collection].pop(name, None) is not None:
            self.version += 1
            self._tell(collection, b"DELETED", write(self.version))

    def begin(self) -> None:
        """What has happened so far nobody will ask for."""
        self._begins = self.version
        for history in self._history.values():
            history.clear()

    def page(self, collection: str, limit: int, token: str) -> bytes | None:
        """A page of a list; None: it is too old to go on with. A look at one object goes on with nothing."""
        start, version, listed = 0, self.version, list(self.objects[collection].values())
        if token:
            key, _, at = token.partition("-")
            if key not in self._lists:
                return None
            start, (version, listed) = int(at), self._lists[key]
        end, more = start + limit, ""
        if end < len(listed) and limit > 1:
            key = token.partition("-")[0] or uid().replace("-", "")
            more = f'"continue":"{key}-{end}",'
            self._lists[key] = (version, listed)
            if len(self._lists) > LISTS:
                del self._lists[next(iter(self._lists))]
        elif token:
            del self._lists[key]
        head = f'{{"kind":"List","apiVersion":"v1","metadata":{{{more}"resourceVersion":"{version}"}},"items":['
        return head.encode() + b",".join(listed[start:end]) + b"]}"

    def since(self, collection: str, version: int) -> list[bytes] | None:
        """The lines of a watch that goes on from a version; None: that is too long ago."""
        history = self._history[collection]
        oldest = history[0][0] if len(history) == HISTORY else self._begins + 1
        return None if version < oldest - 1 else [line for at, line in history if at > version]

    def _tell(self, collection: str, kind: bytes, obj: bytes) -> None:
        line = b'{"type":"' + kind + b'","object":' + obj + b"}\n"
        self._history[collection].append((self.version, line))
        for watcher in self.watchers[collection]:
            watcher.put_nowait(line)


class Standin:
    """The server."""

    def __init__(self, store: Store, cluster: Cluster) -> None:
        self._store, self._cluster = store, cluster
        self._asked: dict[str, bytes] = {}  # pool status requests by name
        self._rate = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:  # noqa: PLR0911 - a return for each question
        """Answer one request."""
        path, query = request.path, request.query
        collection = ENDED if path == PODS and "fieldSelector" in query else path
        if path.startswith(STATUSES):
            return await self._pool_status(request)
        if request.method == "GET" and collection in self._store.objects:
            if "watch" in query:
                return await self._watch(collection, request)
            page = self._store.page(collection, int(query.get("limit", "500")), query.get("continue", ""))
            return web.Response(status=410) if page is None else _answer(page, request)
        if request.method == "GET" and path.startswith(f"{RESOURCE}/namespaces/"):
            namespace, _, name = path.removeprefix(f"{RESOURCE}/namespaces/").split("/")
            claim = self._store.objects[CLAIMS].get(f"{namespace}/{name}")
            return web.Response(status=404) if claim is None else _answer(claim, request)
        if request.method == "PATCH":  # an owner is woken
            return web.json_response({})
        if path == "/version":
            return web.json_response({"major": "1", "minor": "37"})
        return await self._control(request) if path == "/control" else web.Response(status=404)

    async def happen(self) -> None:
        """Let claim events happen as often as was told."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            if self._rate:
                self._cluster.next_claim_event()
            due = max(due + (1 / self._rate if self._rate else 0.1), loop.time() - 1)
            await asyncio.sleep(due - loop.time())

    async def _control(self, request: web.Request) -> web.Response:
        told = await request.json()
        self._rate = told.get("rate", self._rate)
        for word, action in (
            ("tide", self._cluster.turn_tide),
            ("class", self._cluster.change_class),
            ("slice", self._cluster.change_slice),
        ):
            if word in told:
                action()
        return web.json_response({"high": self._cluster.high})

    async def _watch(self, collection: str, request: web.Request) -> web.StreamResponse:
        missed = self._store.since(collection, int(request.query["resourceVersion"]))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if missed is None:
            gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
            await response.write(json.dumps(gone).encode() + b"\n")
            return response
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        for line in missed:
            lines.put_nowait(line)
        watchers = self._store.watchers[collection]
        watchers.add(lines)
        try:
            async with asyncio.timeout(float(request.query["timeoutSeconds"])):
                while True:
                    await response.write(await self._next(lines))
        except (TimeoutError, ConnectionError):
            return response
        finally:
            watchers.discard(lines)

    async def _next(self, lines: asyncio.Queue[bytes]) -> bytes:
        """An event, or a bookmark where there is none for long."""
        try:
            async with asyncio.timeout(BOOKMARK_SECONDS):
                return await lines.get()
        except TimeoutError:
            meta = {"resourceVersion": str(self._store.version)}
            return json.dumps({"type": "BOOKMARK", "object": {"metadata": meta}}).encode() + b"\n"

    async def _pool_status(self, request: web.Request) -> web.Response:
        name = request.path.removeprefix(STATUSES).strip("/")
        if request.method == "POST":
            spec = (await request.json())["spec"]
            made = f"vacancy-{uid()[:8]}"
            self._asked[made] = answered(self._cluster, made, spec["driver"])
            return web.Response(status=201, body=self._asked[made], content_type="application/json")
        if not name:
            return web.json_response({"metadata": {}, "items": []})
        found = self._asked.get(name) if request.method == "GET" else self._asked.pop(name, None)
        return web.Response(status=404) if found is None else _answer(found, request)


def answered(cluster: Cluster, name: str, driver: str) -> bytes:
    """A pool status request that was answered: by the counts of this moment."""
    pools = list(cluster.counts(driver))
    return (
        f'{{"metadata":{{"name":"{name}","uid":"{uid()}","labels":{{"app.kubernetes.io/managed-by":"vacancy"}}}},'
        f'"spec":{{"driver":"{driver}","limit":{POOLS_AT_MOST}}},"status":{{"poolCount":{len(pools)},'
        f'"pools":[{",".join(pools[:POOLS_AT_MOST])}],"conditions":[{{"type":"Complete","status":"True",'
        f'"lastTransitionTime":"{stamp()}","reason":"CalculationComplete","message":""}}]}}}}'
    ).encode()


def _answer(body: bytes, request: web.Request) -> web.Response:
    """Zipped as the real one does it."""
    if len(body) < ZIPPED_BYTES or "gzip" not in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=body, content_type="application/json")
    zipped = zlib.compressobj(1, wbits=31)
    content = zipped.compress(body) + zipped.flush()
    return web.Response(body=content, content_type="application/json", headers={"Content-Encoding": "gzip"})


async def _run(folder: Path, size: str) -> None:
    store = Store()
    standin = Standin(store, Cluster(LARGE if size == "large" else SMALL, store.put, store.remove))
    store.begin()
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", standin.serve)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.0)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    server = {
        "server": f"https://127.0.0.1:{runner.addresses[0][1]}",
        "certificate-authority-data": base64.b64encode((folder / "ca.crt").read_bytes()).decode(),
    }
    kubeconfig = {
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": server}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }
    (folder / "kubeconfig.new").write_text(json.dumps(kubeconfig), encoding="ascii")
    (folder / "kubeconfig.new").rename(folder / "kubeconfig")
    await standin.happen()


if __name__ == "__main__":
    os.nice(NICE)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as main:
        main.run(_run(Path(sys.argv[1]), sys.argv[2]))
