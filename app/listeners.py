"""Two uvicorn servers in one event loop.

uvloop and httptools are not optional: without them uvicorn quietly does half the work per second (measured).
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.settings import Address

BACKLOG = 2048
"""Connections that wait for their handshake: the API server opens one for each of up to 500 pods created at once."""

KEEP_ALIVE_SECONDS = 120
"""The API server closes an idle connection after 90 s. Whoever closes first loses calls, so it must not be us."""

GRACE_SECONDS = 10
"""For answers under way when the listener closes; a review takes 1 s at most."""

MAX_HEAD_BYTES = 64 * 1024
"""Of request line and header fields of a review. The API server sends half a kilobyte; a proxy may add some."""

MAX_WEB_HEAD_BYTES = 8 * 1024
"""Of those of another request: its query and fields are taken apart in one piece, for which reviews wait."""

HEAD_SECONDS = 10.0
"""For a head that has begun, or a first one, and for a review whole: who sends it sends it at once."""


class BoundedHead(HttpToolsProtocol):
    """The server's HTTP with an end to the head of a request, which uvicorn and httptools keep however long it gets.

    The fields that may follow the last chunk of a body are kept too; they are bounded alike.
    """

    max_bytes = MAX_HEAD_BYTES

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Wait for the first head."""
        super().connection_made(transport)
        self._in_fields, self._field_bytes = True, 0
        self._late: asyncio.TimerHandle | None = None
        self._has_to_end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        super().connection_lost(exc)
        self._in_time()

    def data_received(self, data: bytes) -> None:
        """Parse what fits into the bound; the rest once it is known to be no head."""
        while data and not self.transport.is_closing():
            room = self.max_bytes - self._field_bytes if self._in_fields else len(data)
            self._field_bytes += min(room, len(data))
            super().data_received(data[:room])
            data = data[room:]
            if self._in_fields and self._field_bytes >= self.max_bytes:
                self._refuse()
            elif self._in_fields and self._field_bytes:
                self._has_to_end()

    def on_headers_complete(self) -> None:
        """A body comes, or nothing."""
        self._fields_end()
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Bytes of a chunk come, or it was the last one, and fields may come."""
        self._in_fields, self._field_bytes = True, 0

    def on_body(self, body: bytes) -> None:
        """These are no fields."""
        self._in_fields = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Another head may come, or none; uvicorn closes a connection that stays idle."""
        self._message_ends()
        super().on_message_complete()

    def _fields_end(self) -> None:
        self._in_fields = False
        self._in_time()

    def _message_ends(self) -> None:
        self._in_fields, self._field_bytes = True, 0
        self._in_time()

    def _has_to_end(self) -> None:
        """What has begun; else the connection is closed."""
        if self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _refuse(self) -> None:
        self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n")
        self.transport.close()


class ShortHead(BoundedHead):
    """For the web listener, where anybody may ask."""

    max_bytes = MAX_WEB_HEAD_BYTES


class Listener(uvicorn.Server):
    """A server whose stop is decided by the composition root, not by the server's own signal handlers."""

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        sock: socket.socket,
        tls: ssl.SSLContext | None = None,
        http: Callable[..., BoundedHead] = BoundedHead,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="none",
                http=http,  # type: ignore[arg-type]  # it calls it, whatever it is
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                date_header=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            )
        )
        self.config.load()
        self._socket = sock
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the process's signals alone."""
        yield

    @property
    def address(self) -> str:
        """Where it listens, as `host:port`; the port is a real one where 0 was asked for."""
        host, port, *_ = self._socket.getsockname()
        return str(Address(host, port))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and let it be known."""
        await super().startup(sockets)
        self.listening.set()

    async def run_until_stopped(self) -> None:
        """Serve until `stop`."""
        await self.serve(sockets=[self._socket])

    def stop(self, *, at_once: bool = False) -> None:
        """Close the listener, let answers under way finish (or not), and return from `run_until_stopped`."""
        self.force_exit = at_once
        self.should_exit = True


def bound_socket(address: Address) -> socket.socket:
    """A socket bound to `address`; an IPv6 wildcard takes IPv4 as well. Raises OSError."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    dual = family is socket.AF_INET6 and address.host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((address.host, address.port), family=family, backlog=BACKLOG, dualstack_ipv6=dual)
