"""The head of a request has an end, in bytes and in time; what can be answered at once is."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
import uvloop
from starlette.types import Receive, Scope, Send

from app import listeners
from app.listeners import (
    MAX_HEAD_BYTES,
    MAX_WEB_HEAD_BYTES,
    BoundedHead,
    Headers,
    Listener,
    Prompt,
    ShortHead,
    bound_socket,
)
from app.settings import Address

TIMEOUT = 30.0  # seconds; only a hang reaches it

ENDLESS = b"GET / HTTP/1.1\r\nx: "
POST = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\n"
REST = b"#\r\n0\r\n"


async def answer(_: Scope, receive: Receive, send: Send) -> None:
    """Read the body and say that it is there."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """Where a listener listens, in a thread of its own."""
    sock = bound_socket(Address("127.0.0.1", 0))
    http: type[BoundedHead] = getattr(request, "param", BoundedHead)
    listener = Listener(answer, sock, http=http)

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(listener.run_until_stopped())

    thread = threading.Thread(target=run)
    thread.start()
    yield sock.getsockname()
    listener.stop(at_once=True)
    thread.join()


HEADS: dict[str, tuple[bytes, bytes]] = {
    "one endless field": (ENDLESS.ljust(MAX_HEAD_BYTES, b"x"), b"431"),
    "an endless address": (b"GET /".ljust(MAX_HEAD_BYTES, b"x"), b"431"),
    "many fields": (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * (MAX_HEAD_BYTES // 6), b"431"),
    "an endless field after the body": ((POST + REST + b"x: ").ljust(2 * MAX_HEAD_BYTES, b"x"), b"431"),
    "a long field with an end": (ENDLESS.ljust(MAX_HEAD_BYTES - 100, b"x") + b"\r\n\r\n", b"200"),
    "a long body": (b"POST / HTTP/1.1\r\ncontent-length: 200000\r\n\r\n" + b"x" * 200_000, b"200"),
    "a field after the body": (POST + REST + b"x: y\r\n\r\n", b"200"),
    "many chunks": (POST + b"#\r\n" + b"1\r\n#\r\n" * MAX_HEAD_BYTES + b"0\r\n\r\n", b"200"),
}


@pytest.mark.parametrize("case", HEADS)
def test_a_head_has_an_end(address: tuple[str, int], case: str) -> None:
    sent, status = HEADS[case]
    with socket.create_connection(address, TIMEOUT) as connection:
        connection.sendall(sent)
        assert connection.recv(65536).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("address", [ShortHead], indirect=True)
@pytest.mark.parametrize(("length", "status"), [(MAX_WEB_HEAD_BYTES, b"431"), (MAX_WEB_HEAD_BYTES - 100, b"200")])
def test_for_anybody_it_is_shorter(address: tuple[str, int], length: int, status: bytes) -> None:
    with socket.create_connection(address, TIMEOUT) as connection:
        connection.sendall(ENDLESS.ljust(length, b"x") + b"\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 " + status)


def test_many_requests_of_one_connection_do_not_add_up(address: tuple[str, int]) -> None:
    with socket.create_connection(address, TIMEOUT) as connection:
        for _ in range(3):
            connection.sendall(ENDLESS.ljust(MAX_HEAD_BYTES // 2, b"x") + b"\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")


SLOW: dict[str, tuple[bytes, ...]] = {
    "no head": (b"",),
    "half a head": (b"GET / HT",),
    "half a second head": (b"GET / HTTP/1.1\r\n\r\n", b"GET / HT"),
}


@pytest.mark.parametrize("case", SLOW)
def test_a_connection_whose_head_does_not_come_is_closed(
    monkeypatch: pytest.MonkeyPatch, address: tuple[str, int], case: str
) -> None:
    monkeypatch.setattr(listeners, "HEAD_SECONDS", 0.05)
    *complete, last = SLOW[case]
    with socket.create_connection(address, TIMEOUT) as connection:
        for request in complete:
            connection.sendall(request)
            assert connection.recv(65536)
        connection.sendall(last)
        assert connection.recv(65536) == b""


def test_a_body_may_take_longer_than_a_head(monkeypatch: pytest.MonkeyPatch, address: tuple[str, int]) -> None:
    monkeypatch.setattr(listeners, "HEAD_SECONDS", 0.05)
    with socket.create_connection(address, TIMEOUT) as connection:
        connection.sendall(POST)
        with socket.create_connection(address, TIMEOUT) as later:
            assert later.recv(1) == b""  # it came later, and its time is over
        connection.sendall(REST + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


# --- At once ----------------------------------------------------------------------------------------------------------


def at_once(_method: str, path: str, _headers: Headers, body: bytes) -> bytes | None:
    """The length of the body, at one path only."""
    return b"%d" % len(body) if path == "/at-once" else None


def asked(path: str, body: bytes, field: bytes = b"") -> bytes:
    return b"POST %s HTTP/1.1\r\ncontent-length: %d\r\n%s\r\n%s" % (path.encode(), len(body), field, body)


CHUNKED = b"POST /at-once HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n2\r\nfg\r\n0\r\n\r\n"
LONG = asked("/long", b"abc")
CLOSED = {"the last one of a connection", "of an old client"}
PROMPT: dict[str, tuple[tuple[bytes, ...], tuple[bytes, ...]]] = {
    "in one piece": ((asked("/at-once", b"abc"),), (b"3",)),
    "without a body": ((asked("/at-once", b""),), (b"0",)),
    "in chunks": ((CHUNKED,), (b"7",)),
    "the body comes later": ((asked("/at-once", b"abc")[:-3], b"a", b"bc"), (b"3",)),
    "the head comes in pieces": ((asked("/at-once", b"abc")[:20], asked("/at-once", b"abc")[20:]), (b"3",)),
    "more than is read without anybody who takes it": ((asked("/at-once", b"x" * 200_000),), (b"",)),
    "another path": ((LONG,), (b"",)),
    "with a query, as the API server asks": ((asked("/at-once?timeout=1s", b"abc"),), (b"3",)),
    "of an old client": ((asked("/at-once", b"abc", b"connection: keep-alive\r\n").replace(b"1.1", b"1.0"),), (b"",)),
    "that would be something else": ((asked("/at-once", b"abc", b"connection: upgrade\r\nupgrade: h2c\r\n"),), (b"",)),
    "the last one of a connection": ((asked("/at-once", b"abc", b"connection: close\r\n"),), (b"",)),
    "one after the other": ((asked("/at-once", b"abc"), LONG, asked("/at-once", b"abcd")), (b"3", b"", b"4")),
    "without waiting for answers": (
        (asked("/at-once", b"abc") + LONG + asked("/at-once", b"abcd") + asked("/at-once", b"abcde"),),
        (b"3", b"", b"", b""),  # who stands in a line is not answered on the spot
    ),
}


@pytest.mark.parametrize("address", [partial(Prompt, at_once)], indirect=True, ids=["prompt"])
@pytest.mark.parametrize("case", PROMPT)
def test_what_can_be_answered_at_once_is(address: tuple[str, int], case: str) -> None:
    pieces, expected = PROMPT[case]
    with socket.create_connection(address, TIMEOUT) as connection, connection.makefile("rb") as answers:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.01)  # that it comes by itself
        for content in expected:
            assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
            fields = dict(line.split(b": ") for line in iter(lambda: answers.readline().strip(), b""))
            assert answers.read(int(fields[b"content-length"])) == content
            assert (b"content-type" in fields) == bool(content)
        assert (fields.get(b"connection") == b"close") == (case in CLOSED)


@pytest.mark.parametrize("address", [partial(Prompt, at_once)], indirect=True, ids=["prompt"])
def test_who_waits_to_be_told_to_go_on_is_told(address: tuple[str, int]) -> None:
    with socket.create_connection(address, TIMEOUT) as connection:
        connection.sendall(asked("/at-once", b"abc", b"expect: 100-continue\r\n")[:-3])
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("address", [partial(Prompt, at_once)], indirect=True, ids=["prompt"])
def test_a_client_that_goes_before_its_body_has_come_harms_nobody(address: tuple[str, int]) -> None:
    with socket.create_connection(address, TIMEOUT) as connection:
        connection.sendall(asked("/at-once", b"abc")[:-1])
    with socket.create_connection(address, TIMEOUT) as connection:
        connection.sendall(asked("/at-once", b"abc"))
        assert connection.recv(65536).endswith(b"\r\n\r\n3")
