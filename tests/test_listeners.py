"""The head of a request has an end, in bytes and in time."""

import socket
from collections.abc import Iterator

import pytest

from app import listeners
from app.listeners import (
    MAX_HEAD_BYTES,
    MAX_WEB_HEAD_BYTES,
    BoundedHead,
    ShortHead,
)
from tests.listening import TIMEOUT, listening

ENDLESS = b"GET / HTTP/1.1\r\nx: "
POST = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\n"
REST = b"#\r\n0\r\n"


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """Where a listener listens."""
    with listening(getattr(request, "param", BoundedHead)) as listener:
        host, _, port = listener.address.partition(":")
        yield host, int(port)


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
