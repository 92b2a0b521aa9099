"""Real handshakes on loopback: a TLS echo server on uvloop, the loop of production, and clients on plain sockets."""

import asyncio
import contextlib
import queue
import socket
import ssl
import threading
from collections.abc import Iterator

import uvloop

TIMEOUT = 10.0  # seconds; only a hang reaches it


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError), contextlib.closing(writer):
        while line := await reader.readline():
            writer.write(line)


@contextlib.contextmanager
def listening(context: ssl.SSLContext) -> Iterator[int]:
    """Echo lines over TLS from a thread of its own; yield the port on 127.0.0.1."""
    started: queue.SimpleQueue[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = queue.SimpleQueue()

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(lambda _loop, _what: None)  # a refused handshake is the client's to see
        server = await asyncio.start_server(_echo, "127.0.0.1", 0, ssl=context)
        started.put((server.sockets[0].getsockname()[1], loop, stop))
        await stop.wait()
        server.close()

    thread = threading.Thread(target=uvloop.run, args=(serve(),))
    thread.start()
    port, loop, stop = started.get(timeout=TIMEOUT)
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(TIMEOUT)


def trusting(authority_pem: bytes) -> ssl.SSLContext:
    """A client as strict as Python knows, that trusts this authority only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cadata=authority_pem.decode())
    return context


def connected(client: ssl.SSLContext, port: int, name: str | None = "localhost") -> ssl.SSLSocket:
    """Shake hands with the server on this port, which is to be `name`. Raises `ssl.SSLError`."""
    plain = socket.create_connection(("127.0.0.1", port), TIMEOUT)
    try:
        return client.wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise


def shown(client: ssl.SSLContext, port: int, name: str | None = "localhost") -> bytes:
    """Return the certificate (DER) that a new connection is shown."""
    with connected(client, port, name) as connection:
        certificate = connection.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate


def echoed(connection: ssl.SSLSocket, line: bytes) -> bytes:
    """Send a line and return what comes back."""
    connection.sendall(line)
    return connection.recv(len(line))
