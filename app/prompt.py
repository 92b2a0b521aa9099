"""Reviews are answered without what a web server does for requests of all kinds, and those of a moment together.

uvicorn's way to an application (fields as objects, a scope, a cycle, a task, coroutines to read and to write) costs
more than all that is done for a review. But the API server sends the same head again and again, and only the length in
it changes. So a head is read once, and what it meant is known when it comes again.

Between two reviews the core works for the kernel, for TLS and for HTTP, and has forgotten ours: the same code then
takes twice as long. So what has come in one turn of the event loop is judged in one go. Both are measured in
docs/performance.md.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import lru_cache
from time import perf_counter
from typing import Any

import httptools

from app.listeners import BoundedHead

Headers = Iterable[tuple[bytes, bytes]]
Later = Coroutine[Any, Any, bytes]
Answer = Callable[[bytes, float], bytes | Later | None]
"""From a body, and when it was here (`perf_counter`), to the content of its answer, JSON of status 200, at once or
later; None: the application answers."""
Door = Callable[[str, str, Headers], Answer | None]
"""Method, path and header fields (their names in lower case) to who answers such requests; None: the application."""

HEADS = 64
"""Remembered. The API server has one for each path; a client that writes something new into each takes nobody's place
for long."""

LONGEST_HEAD = 2048
"""Bytes of a head that is remembered."""

LONGEST_BODY = 64 * 1024
"""Bytes of a body that is kept for whoever sends it slowly; of a longer one uvicorn stops reading in time."""

TOGETHER = 32
"""Answered before any of them is sent: more would save nothing, and keep the first ones waiting."""

_END = b"\r\n\r\n"
_LENGTH = b"\r\nContent-Length: "
"""As Go writes it."""

_LONGEST_LENGTH = len(str(LONGEST_BODY))
_OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


class Heads:
    """Who answers requests with such a head."""

    def __init__(self, door: Door) -> None:
        def read(head: bytes) -> Answer | None:
            return _read(head, door)

        self._answer = lru_cache(HEADS)(read)

    def find(self, data: bytes) -> tuple[Answer, int, int] | None:
        """Who answers the request that begins here, where its body begins, and how much of that is missing.

        None: the head is not here as a whole or is an unusual one, the body is long, or there is more than the request.
        """
        body = data.find(_END, 0, LONGEST_HEAD) + len(_END)
        start = data.find(_LENGTH, 0, body)
        if start < 0:
            return None
        end = data.find(b"\r", start + len(_LENGTH), body)
        length = data[start + len(_LENGTH) : end]
        answer = self._answer(data[:start] + data[end:body])
        if answer is None or not length.isdigit() or len(length) > _LONGEST_LENGTH:
            return None
        missing = body + int(length) - len(data)
        return (answer, body, missing) if missing >= 0 and int(length) <= LONGEST_BODY else None


class _Head:
    """What the parser tells of one."""

    def __init__(self) -> None:
        self.url = b""
        self.fields: list[tuple[bytes, bytes]] = []

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name.lower(), value))


_UNUSUAL = frozenset({b"connection", b"content-length", b"expect", b"proxy-connection", b"transfer-encoding"})


def _read(head: bytes, door: Door) -> Answer | None:
    """Who answers requests with such a head, from which the length has been taken out."""
    found = _Head()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(head)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    is_usual = parser.get_http_version() == "1.1" and head[:1].isalpha()  # blank lines may come before it
    if not is_usual or not _UNUSUAL.isdisjoint(name for name, _ in found.fields):
        return None
    return door(parser.get_method().decode(), found.url.partition(b"?")[0].decode("latin-1"), found.fields)


class Reception:
    """What all connections of a listener share: the heads they know, and what came in this turn of the event loop."""

    def __init__(self, door: Door) -> None:
        self.heads = Heads(door)
        self._waiting: list[tuple[Prompt, Answer, bytes, float]] = []

    def take(self, connection: "Prompt", answer: Answer, body: bytes) -> None:
        """Answer it when all that is here has been read."""
        if not self._waiting:
            connection.loop.call_soon(self._answer)
        self._waiting.append((connection, answer, body, perf_counter()))

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
        answered = [(connection, _answered(answer, body, since)) for connection, answer, body, since in waiting]
        if self._waiting:
            answered[0][0].loop.call_soon(self._answer)
        for connection, content in answered:
            connection.answered(content)


def _answered(answer: Answer, body: bytes, since: float) -> bytes | Later | None:
    try:
        return answer(body, since)
    except Exception:  # noqa: BLE001 - the others must not wait for ever; the application meets it again, and says so
        return None


class Prompt(BoundedHead):
    """HTTP of reviews. What is unusual goes to uvicorn, from its first byte on."""

    def __init__(self, reception: Reception, **uvicorn: Any) -> None:  # noqa: ANN401 - uvicorn's own
        """`reception`: of all connections."""
        super().__init__(**uvicorn)
        self._reception = reception
        self._is_between = True
        """Whether uvicorn's parser waits for the first byte of a request."""
        self._pieces: list[bytes] = []
        """What came of a request that is not here as a whole, or is being answered."""
        self._missing = 0
        """Bytes of it."""
        self._is_busy = False
        """Whether it is being answered."""
        self._early: list[bytes] = []
        """What came before its turn."""
        self._is_used = False
        """Since the clock for idle connections was started."""
        self._is_last = False

    def data_received(self, data: bytes) -> None:
        """Read a request that can be answered here; leave any other to uvicorn."""
        if self._is_busy:
            self._early.append(data)
            self.flow.pause_reading()
            return
        if self._pieces:
            self._pieces.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = b"".join(self._pieces)
        found = self._reception.heads.find(data) if self._is_free() else None
        if found is None:
            self._pieces = []
            super().data_received(data)
            return
        answer, body, self._missing = found
        self._stays()
        self._pieces = [data]
        if self._missing:
            self._has_to_end()
        else:
            self._in_time()
            self._is_busy = True
            self._reception.take(self, answer, data[body:])

    def answered(self, content: bytes | Later | None) -> None:
        """What was taken in is answered so."""
        if content is None:
            self._is_busy = False
            self._go_the_long_way()
        elif isinstance(content, bytes):
            self._is_busy, self._pieces = False, []
            if not self.transport.is_closing():
                self.transport.write(_OK % len(content) + content)
        else:
            later = self.loop.create_task(content)
            self.tasks.add(later)  # type: ignore[arg-type]  # what they return is nothing to uvicorn
            later.add_done_callback(self._is_here)
            return
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Keep nothing for a clock that nobody looks at any more; uvicorn lets it run after a reset."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._pieces, self._early = [], []

    def on_message_begin(self) -> None:
        """What comes belongs to it."""
        self._is_between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """Another one may come."""
        self._is_between = True
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that was not used since the clock was started."""
        self.timeout_keep_alive_task = None
        if self._is_busy or self._is_used:
            self._stays()
            self._is_used = False
        else:
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """Answer what has begun, as uvicorn does."""
        self._is_last = self._is_busy
        if not self._is_busy:
            self._go_the_long_way()
            super().shutdown()

    def _is_free(self) -> bool:
        cycle = self.cycle
        is_idle = cycle is None or cycle.response_complete  # type: ignore[redundant-expr]  # None at first
        return self._is_between and is_idle and not self.flow.write_paused

    def _is_here(self, later: asyncio.Task[bytes]) -> None:
        """What was to come later."""
        self.tasks.discard(later)
        if later.cancelled():
            self.transport.close()
        else:
            self.answered(None if later.exception() else later.result())

    def _go_on(self) -> None:
        """With what came meanwhile, or not at all."""
        if self._early:
            early, self._early = b"".join(self._early), []
            self.flow.resume_reading()
            self.data_received(early)
        if self._is_last:
            self.shutdown()

    def _go_the_long_way(self) -> None:
        """Leave what came of a request to uvicorn."""
        pieces, self._pieces = b"".join(self._pieces), []
        if pieces:
            super().data_received(pieces)

    def _fields_end(self) -> None:
        """The body has to come in time as well."""
        super()._fields_end()
        self._has_to_end()

    def _stays(self) -> None:
        """A request has come, and the clock for idle connections begins anew when it has run out."""
        self._is_used, self._field_bytes = True, 0
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
