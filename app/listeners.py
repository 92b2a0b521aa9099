"""Two uvicorn servers in one event loop. The only importer of uvicorn.

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


class Listener(uvicorn.Server):
    """A server whose stop is decided by the composition root, not by the server's own signal handlers."""

    def __init__(
        self, app: Callable[..., Awaitable[None]], sock: socket.socket, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="none",
                http="httptools",
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
        if self.config.http_protocol_class is not HttpToolsProtocol:
            raise RuntimeError(f"expected httptools to parse HTTP, found {self.config.http_protocol_class}")
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
