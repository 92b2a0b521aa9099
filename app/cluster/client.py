"""Bytes to and from a Kubernetes API server, every call with an end, every error by its meaning.

Of the `kubernetes` package only the finding of credentials and the transport are used. Its API groups and models cost
0.6 s and 25 MB at import, and decode about 95 times slower than the structs of `app.dra.objects` (measured, 37.0.2).
"""

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec
from kubernetes.aio.client import api_client as kubernetes_api
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException

from app.cluster.credentials import BadConfig, Credentials, credentials, one_line
from app.cluster.kubeconfig import current
from app.cluster.user import impersonation

__all__ = [
    "ApiClient",
    "ApiError",
    "BadConfig",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "ServerFault",
    "Stream",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
]

Query = Iterable[tuple[str, str]]

CONNECT_SECONDS = 5.0
"""To reach the API server; it is near, or it is not there."""

CALL_SECONDS = 30.0
"""For an answer, unless a call says otherwise: the slowest here is a page of a hundred large objects."""

READ_BYTES = 64 * 1024
"""Taken at once from what has come, so that a burst of megabytes is cut into lines piece by piece."""

LINE_BYTES_AT_MOST = 32 * 1024 * 1024
"""Of one watch event. etcd takes 1.5 MiB as protobuf, and JSON needs several times that."""

LOGIN_SECONDS = 60.0
"""For credentials: an exec plugin may ask a person or another server."""

LOGIN_PAUSE_SECONDS = 5.0
"""Between two times that credentials are looked up because of a 401: a wrong one does not get better by asking."""

RETRY_AFTER_AT_MOST = 60.0
"""Seconds. The API server asks for 1; the hour that a proxy's maintenance page asks for would outlast its reason."""

KEEP_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Seconds, seconds and probes: a peer that vanished without a word is noticed after 25 s."""


class ApiError(Exception):
    """A call came to nothing. The text is one line and holds neither a token nor a body."""


class Unreachable(ApiError):
    """No answer, not in time, or not a whole one."""


class Unauthorized(ApiError):
    """401: the credentials are missing, expired or wrong, also after a second look at where they come from."""


class Forbidden(ApiError):
    """403."""


class NotFound(ApiError):
    """404: there is no such object, or no such kind."""


class Conflict(ApiError):
    """409: the name is taken, or a precondition does not hold."""


class Gone(ApiError):
    """410: the version to go on from is too old."""


class Invalid(ApiError):
    """400, 422 and the like: what we sent is not understood."""


class TooManyRequests(ApiError):
    """429."""

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        """Seconds the server asks to be left alone; None if it does not say."""


class ServerFault(ApiError):
    """5xx, or an answer that is none."""


_BY_STATUS: dict[int, type[ApiError]] = {401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 410: Gone}


class Stream:
    """The lines of a response that goes on."""

    def __init__(self, content: aiohttp.StreamReader, what: str) -> None:
        self._content, self._what = content, what
        self._begun = bytearray()
        self._lines: list[bytes] = []
        """Whole lines that have come, the last one first."""

    async def line(self, seconds: float) -> bytes | None:
        """The next line without its end; None after the last one.

        Raises TimeoutError if no bytes come for `seconds`, by which nothing is lost, and Unreachable if the stream
        breaks.
        """
        while not self._lines:
            async with asyncio.timeout(seconds):
                chunk = await self._chunk()
            if not chunk:
                if self._begun:
                    raise Unreachable(f"{self._what}: ended within a line")
                return None
            *whole, rest = chunk.split(b"\n")
            if whole:
                self._lines = [bytes(self._begun) + whole[0], *whole[1:]][::-1]
                self._begun.clear()
            self._begun += rest
            if len(self._begun) > LINE_BYTES_AT_MOST:
                raise Unreachable(f"{self._what}: expected lines of at most {LINE_BYTES_AT_MOST} bytes")
        return self._lines.pop()

    async def _chunk(self) -> bytes:
        try:
            return await self._content.read(READ_BYTES)
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{self._what}: {one_line(error)}") from error


class ApiClient:
    """One API server, as one user; use it as an async context manager, or `close` it."""

    def __init__(
        self, origin: Credentials, configuration: Configuration, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        """`configuration`: what `origin` held; `headers`: of every call. Raises BadConfig."""
        self._origin, self._configuration = origin, configuration
        try:
            self._api = kubernetes_api.ApiClient(configuration)
        except (OSError, ValueError) as error:  # certificates that are not there, or none; ssl.SSLError is an OSError
            raise BadConfig(f"certificates of the cluster or the user cannot be used: {one_line(error)}") from error
        self._api.user_agent = "vacancy"
        self._tls = self._api.rest_client.ssl_context
        self._connector = aiohttp.TCPConnector(ssl=self._tls, socket_factory=_socket)
        configuration.client_session_kwargs = {"connector": self._connector, "headers": headers}
        self._renewal: asyncio.Task[None] | None = None
        self._renewed_at = float("-inf")

    @classmethod
    async def connect(cls, kubeconfig: Path | None, context: str | None) -> Self:
        """For the cluster that kubectl would talk to, see `credentials`; nothing is sent yet. Raises BadConfig."""
        return await cls.log_in(credentials(kubeconfig, context))

    @classmethod
    async def log_in(cls, origin: Credentials) -> Self:
        """With credentials from there; nothing is sent yet. Raises BadConfig."""
        headers: tuple[tuple[str, str], ...] = ()
        if origin.files:
            found = current(origin.files, origin.context)
            # Of several files the package lets the last one choose the context, kubectl the first.
            origin = replace(origin, context=found.context)
            # It knows nothing of `as` either, and would ask with other rights.
            headers = tuple(impersonation(found.user))
        return cls(origin, await _looked_up(origin), headers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._renewal is not None:
            self._renewal.cancel()
        await self._api.close()  # type: ignore[no-untyped-call]
        await self._connector.close()

    async def request(  # noqa: PLR0913 - a request has that many parts
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout_seconds: float = CALL_SECONDS,
    ) -> bytes:
        """The body of the answer. `body` is JSON. Raises ApiError, by meaning."""
        headers = {"Accept": accept, "Content-Type": content_type}
        async with (
            _within(timeout_seconds, f"{method} {path}"),
            await self._answer(method, path, query, headers, body) as response,
        ):
            return await response.read()

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Query = (), accept: str = "application/json", timeout_seconds: float = CALL_SECONDS
    ) -> AsyncIterator[Stream]:
        """A response that goes on, line by line. `timeout_seconds`: until it begins. Raises ApiError, by meaning."""
        async with _within(timeout_seconds, f"GET {path}"):
            response = await self._answer("GET", path, query, {"Accept": accept}, None)
        try:
            yield Stream(response.content, f"GET {path}")
        finally:
            response.close()

    async def server_minor(self) -> int:
        """Minor version of the API server; vendors write "37+". Raises ApiError."""
        found = re.search(rb'"minor":\s*"(\d+)', await self.request("GET", "/version"))
        if found is None:
            raise ServerFault("GET /version: expected a minor version")
        return int(found[1])

    async def _answer(
        self, method: str, path: str, query: Query, headers: dict[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        """An answer that is no refusal; after a 401 once more with credentials looked up anew."""
        sent_at = time.monotonic()
        response = await self._send(method, path, query, headers, body)
        if response.status == 401:  # noqa: PLR2004 - the status code is its own name
            response.release()
            await self._renew(sent_at)
            response = await self._send(method, path, query, headers, body)
        if not 200 <= response.status < 300:  # noqa: PLR2004 - as above
            response.release()
            raise _refusal(f"{method} {path}", response)
        return response

    async def _send(
        self, method: str, path: str, query: Query, headers: dict[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        content = None if body is None else msgspec.json.decode(body)  # the package encodes it once more
        try:
            parts = await self._api.param_serialize(
                method,
                path,
                query_params=list(query),
                header_params=dict(headers),
                body=content,
                auth_settings=["BearerToken"],
            )
        except (ConfigException, OSError) as error:  # the token's file, read again once a minute
            raise Unauthorized(f"{method} {path}: {one_line(error)}") from error
        # Reads are bounded by whoever reads: a total here would end every watch.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        try:
            wrapped = await self._api.call_api(*parts, _request_timeout=timeout, _preload_content=False)
        except ValueError as error:  # aiohttp's, for a token with a line break or a server address that is none
            raise Invalid(f"{method} {path}: {one_line(error)}") from error
        response: aiohttp.ClientResponse = wrapped.response
        return response

    async def _renew(self, sent_at: float) -> None:
        """Look up credentials again, once for all calls that were refused; then they are tried with what was found.

        A task of its own: a caller with little time must not break off a login that others wait for.
        """
        if self._renewal is None and min(sent_at, time.monotonic() - LOGIN_PAUSE_SECONDS) > self._renewed_at:
            self._renewal = asyncio.create_task(self._look_up())
            self._renewal.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may be waiting
        if self._renewal is not None:
            await asyncio.shield(self._renewal)

    async def _look_up(self) -> None:
        try:
            found = await _looked_up(self._origin)
            self._configuration.api_key = found.api_key
            self._configuration.refresh_api_key_hook = found.refresh_api_key_hook
            if found.cert_file:
                self._tls.load_cert_chain(found.cert_file, keyfile=found.key_file)
        except (BadConfig, OSError) as error:
            raise Unauthorized(one_line(error)) from error
        finally:
            self._renewal, self._renewed_at = None, time.monotonic()


async def _looked_up(origin: Credentials) -> Configuration:
    try:
        async with asyncio.timeout(LOGIN_SECONDS):
            return await origin.load()
    except TimeoutError as error:
        raise BadConfig(f"no credentials within {LOGIN_SECONDS:g} s") from error


@asynccontextmanager
async def _within(seconds: float, what: str) -> AsyncIterator[None]:
    """Bounds a call, and says in our words what went wrong below HTTP."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except aiohttp.ClientError as error:
        raise Unreachable(f"{what}: {one_line(error)}") from error
    except TimeoutError as error:
        raise Unreachable(f"{what}: no answer within {seconds:g} s") from error
    except OSError as error:
        raise Unreachable(f"{what}: {one_line(error)}") from error


def _socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket that notices when its peer is gone."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.settimeout(0)  # as the event loop wants it
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):  # Linux has all of them
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _refusal(what: str, response: aiohttp.ClientResponse) -> ApiError:
    status = response.status
    text = f"{what}: {status} {response.reason or ''}".rstrip()
    if status == 429:  # noqa: PLR2004 - the status code is its own name
        after = response.headers.get("Retry-After", "")
        return TooManyRequests(text, min(float(after), RETRY_AFTER_AT_MOST) if after.isdecimal() else None)
    if known := _BY_STATUS.get(status):
        return known(text)
    return Invalid(text) if 400 <= status < 500 else ServerFault(text)  # noqa: PLR2004 - as above
