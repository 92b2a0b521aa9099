"""What can be answered without uvicorn is, together with what else has come; all the rest reaches the application."""

import asyncio
import gc
import socket
import struct
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import pytest

from app.listeners import Listener
from app.prompt import HEADS, LONGEST_HEAD, Answer, Headers, Heads, Prompt, Reception
from tests.controlplane.waiting import until
from tests.listening import TIMEOUT, listening

LARGE = 1_000_000  # bytes of an answer; a few of them are more than a socket holds

Answered = bytes | Coroutine[Any, Any, bytes] | None


class Door:
    """It says how long a body is: at once, or when it is let."""

    def __init__(self) -> None:
        self.heads: list[Headers] = []
        self.bodies: list[bytes] = []
        self.let = threading.Event()

    def __call__(self, method: str, path: str, headers: Headers) -> Answer | None:
        self.heads.append(headers)
        answers: dict[str, Callable[[bytes], Answered]] = {
            "/at-once": self._at_once,
            "/later": self._later,
            "/large": lambda _: b"x" * LARGE,
            "/never": lambda _: None,
            "/broken": lambda _: b"%d" % (1 // 0),
            "/broken-later": self._broken_later,
        }
        answer = answers.get(path) if method == "POST" else None
        return None if answer is None else lambda body, _: answer(body)

    def _at_once(self, body: bytes) -> bytes:
        self.bodies.append(body)
        return b"%d" % len(body)

    async def _broken_later(self, body: bytes) -> bytes:
        return b"%d" % (len(body) // 0)

    async def _later(self, body: bytes) -> bytes:
        self.bodies.append(body)
        await asyncio.to_thread(self.let.wait, TIMEOUT)
        return b"later %d" % len(body)


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def listener(door: Door) -> Iterator[Listener]:
    with listening(partial(Prompt, Reception(door))) as listener:
        yield listener


def connect(listener: Listener) -> socket.socket:
    host, _, port = listener.address.partition(":")
    return socket.create_connection((host, int(port)), TIMEOUT)


def asked(path: str, body: bytes, field: bytes = b"") -> bytes:
    return b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n%s" % (path.encode(), len(body), field, body)


def received(connection: socket.socket, answers: int) -> list[bytes]:
    """The contents of so many answers; an empty one is of the application."""
    contents = []
    with connection.makefile("rb") as stream:
        for _ in range(answers):
            assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
            fields = dict(line.split(b": ") for line in iter(lambda: stream.readline().strip(), b""))
            contents.append(stream.read(int(fields[b"content-length"])))
            assert (b"content-type" in fields) == bool(contents[-1])
    return contents


SHORT, LONG, LATER = asked("/at-once", b"abc"), asked("/long", b"abc"), asked("/later", b"abc")
CHUNKED = b"POST /at-once HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"
EITHER = (b"", b"3")
"""It depends on whether the pieces came one by one."""

CASES: dict[str, tuple[tuple[bytes, ...], list[bytes | tuple[bytes, ...]]]] = {
    "in one piece": ((SHORT,), [b"3"]),
    "without a body": ((asked("/at-once", b""),), [b"0"]),
    "the body comes later": ((SHORT[:-3], b"a", b"bc"), [b"3"]),
    "as long as is read here": ((asked("/at-once", b"x" * 65536),), [b"65536"]),
    "longer": ((asked("/at-once", b"x" * 65537),), [b""]),
    "much longer": ((asked("/at-once", b"x" * 10_000_000),), [b""]),
    "with a query, as the API server asks": ((asked("/at-once?timeout=1s", b"abc"),), [b"3"]),
    "the head comes in pieces": ((SHORT[:20], SHORT[20:]), [EITHER]),
    "the end of the head comes later": ((SHORT[:-5], SHORT[-5:]), [EITHER]),
    "in chunks": ((CHUNKED,), [b""]),
    "another path": ((LONG,), [b""]),
    "another method": ((SHORT.replace(b"POST", b"PUT"),), [b""]),
    "given back": ((asked("/never", b"abc"),), [b""]),
    "by a bug of ours": ((asked("/broken", b"abc"),), [b""]),
    "by a bug of ours, later": ((asked("/broken-later", b"abc"),), [b""]),
    "after a blank line": ((b"\r\n" + SHORT,), [b""]),
    "without waiting for answers": ((SHORT + LONG + SHORT,), [b"", b"", b""]),
    "half of the next one with it": ((SHORT + SHORT[:30], SHORT[30:]), [b"", b""]),
    "before another one has been answered": ((asked("/slow", b""), SHORT), [b"", EITHER]),
    "what looks like one goes on with a head": ((b"POST /long HTTP/1.1\r\nX: ", SHORT), [b""]),
    "what looks like one goes on with a body": ((asked("/long", SHORT)[: -len(SHORT)], SHORT), [b""]),
}
LAST: dict[str, bytes] = {
    "of a very old client": SHORT.replace(b"1.1", b"1.0"),
    "of an old client": asked("/at-once", b"abc", b"Connection: keep-alive\r\n").replace(b"1.1", b"1.0"),
    "of one who says so": asked("/at-once", b"abc", b"Connection: close\r\n"),
    "of a proxy that says so": asked("/at-once", b"abc", b"Proxy-Connection: close\r\n"),
    "that would be something else": asked("/at-once", b"abc", b"Connection: upgrade\r\nUpgrade: h2c\r\n"),
}
BAD: dict[str, bytes] = {
    "with chunks and a length": asked("/at-once", b"0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"),
    "with two lengths": asked("/at-once", b"abc", b"content-length: 1\r\n"),
    "with a length that is none": SHORT.replace(b": 3", b": +3"),
    "with a length of two lines": asked("/at-once", b"abc", b" 4\r\n"),
    "with a length before it": b"\r\nContent-Length: 3\r\nPOST /at-once HTTP/1.1\r\nHost: a\r\n\r\nabc",
}


@pytest.mark.parametrize("case", CASES)
def test_a_request_is_answered_by_the_right_one(listener: Listener, case: str) -> None:
    pieces, expected = CASES[case]
    with connect(listener) as connection:
        for _ in range(2):  # the connection is as good as new
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.01)  # that it comes by itself
            for content, want in zip(received(connection, len(expected)), expected, strict=True):
                assert content in (want if isinstance(want, tuple) else (want,))
            connection.sendall(SHORT)
            assert received(connection, 1) == [b"3"]


@pytest.mark.parametrize("case", LAST)
def test_the_last_request_of_a_connection_is_left_to_uvicorn(listener: Listener, case: str) -> None:
    with connect(listener) as connection:
        connection.sendall(SHORT)
        assert received(connection, 1) == [b"3"]
        connection.sendall(LAST[case])
        assert received(connection, 1) == [b""]


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_request_is_left_to_uvicorn(listener: Listener, case: str) -> None:
    with connect(listener) as connection:
        connection.sendall(BAD[case])
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 Bad Request")


def test_who_waits_to_be_told_to_go_on_is_told(listener: Listener) -> None:
    with connect(listener) as connection:
        connection.sendall(asked("/at-once", b"abc", b"Expect: 100-continue\r\n")[:-3])
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        assert received(connection, 1) == [b""]


def test_a_head_is_read_once_whatever_the_length(listener: Listener, door: Door) -> None:
    with connect(listener) as connection, connect(listener) as other:
        for number, each in enumerate((connection, other, connection)):
            each.sendall(asked("/at-once", b"x" * number))
            assert received(each, 1) == [b"%d" % number]
    assert door.heads == [[(b"host", b"a")]]
    assert door.bodies == [b"", b"x", b"xx"]


def test_what_comes_in_one_turn_is_answered_together_and_not_too_much_of_it(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.prompt.TOGETHER", 2)
    turns: list[str] = []

    class Connection:
        def __init__(self, name: str) -> None:
            self.name, self.loop = name, asyncio.get_running_loop()

        def answered(self, content: bytes) -> None:
            turns.append(f"{self.name} gets {content.decode()}")

    def answer(body: bytes, since: float) -> bytes:
        assert began <= since <= taken
        turns.append(f"{body.decode()} is judged")
        return body

    async def all_of_them() -> None:
        nonlocal taken
        reception = Reception(door)
        for name in "abcde":
            reception.take(Connection(name), answer, name.encode())  # type: ignore[arg-type]  # as much as is needed
        taken = time.perf_counter()
        assert not turns
        for _ in range(3):
            await asyncio.sleep(0)
            turns.append("-")

    began = taken = time.perf_counter()
    asyncio.run(all_of_them())
    some = [f"{a} is judged, {b} is judged, {a} gets {a}, {b} gets {b}, -, " for a, b in ("ab", "cd")]
    assert ", ".join(turns) == "".join(some) + "e is judged, e gets e, -"


def test_what_comes_while_an_answer_is_waited_for_has_its_turn_after_it(listener: Listener, door: Door) -> None:
    with connect(listener) as connection, connect(listener) as other:
        connection.sendall(LATER)
        other.sendall(SHORT)
        assert received(other, 1) == [b"3"]
        connection.sendall(SHORT)
        connection.sendall(LONG)
        time.sleep(0.05)
        assert door.bodies == [b"abc", b"abc"]
        door.let.set()
        assert received(connection, 3)[0] == b"later 3"


def test_who_waits_for_an_answer_gets_it_though_the_server_stops(listener: Listener, door: Door) -> None:
    with connect(listener) as connection, connect(listener) as idle:
        connection.sendall(LATER)
        while not door.bodies:
            time.sleep(0.001)
        listener.stop()
        assert idle.recv(65536) == b""
        door.let.set()
        assert received(connection, 1) == [b"later 3"]
        assert connection.recv(65536) == b""


def test_whose_body_is_on_its_way_gets_an_answer_though_the_server_stops(listener: Listener) -> None:
    with connect(listener) as connection, connect(listener) as idle:
        connection.sendall(SHORT)
        assert received(connection, 1) == [b"3"]
        connection.sendall(SHORT[:-1])
        time.sleep(0.05)
        listener.stop()
        assert idle.recv(65536) == b""
        connection.sendall(SHORT[-1:])
        assert received(connection, 1) == [b""]
        assert connection.recv(65536) == b""


@pytest.mark.parametrize("request_", [SHORT[:-1], LATER, SHORT], ids=["half", "later", "whole"])
def test_a_client_that_goes_harms_nobody(listener: Listener, door: Door, request_: bytes) -> None:
    with connect(listener) as connection:
        connection.sendall(request_)
    door.let.set()
    with connect(listener) as connection:
        connection.sendall(SHORT)
        assert received(connection, 1) == [b"3"]


def test_nothing_is_kept_of_a_connection_that_was_reset(listener: Listener) -> None:
    before = _protocols()
    with connect(listener) as connection:
        connection.sendall(SHORT[:-1])
        time.sleep(0.05)
        assert _protocols() == before + 1
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until("it is gone", lambda: _protocols() == before)


def _protocols() -> int:
    gc.collect()
    return sum(isinstance(each, Prompt) for each in gc.get_objects())


def test_blank_lines_between_requests_do_not_add_up(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prompt, "max_bytes", 20)
    with connect(listener) as connection:
        for _ in range(20):
            connection.sendall(SHORT)
            assert received(connection, 1) == [b"3"]
            connection.sendall(b"\r\n")
            time.sleep(0.001)


def test_only_a_connection_that_is_not_used_is_closed(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.listeners.KEEP_ALIVE_SECONDS", 0.2)
    with listening(partial(Prompt, Reception(door))) as listener, connect(listener) as connection:
        connection.sendall(LATER)
        time.sleep(0.5)
        door.let.set()
        assert received(connection, 1) == [b"later 3"]
        for _ in range(10):
            connection.sendall(SHORT)
            assert received(connection, 1) == [b"3"]
            time.sleep(0.05)
        assert connection.recv(65536) == b""


@pytest.mark.parametrize("first", [(), (SHORT,), (LONG,)], ids=["first", "after one", "after one of uvicorn's"])
@pytest.mark.parametrize("late", [SHORT[:-1], LONG[:-1], SHORT[:20]], ids=["a body", "a body for uvicorn", "a head"])
def test_what_does_not_come_as_a_whole_in_time_is_not_waited_for(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, first: tuple[bytes, ...], late: bytes
) -> None:
    monkeypatch.setattr("app.listeners.HEAD_SECONDS", 0.1)
    with connect(listener) as connection:
        for each in first:
            connection.sendall(each)
            received(connection, 1)
        connection.sendall(late)
        assert connection.recv(65536) == b""


@pytest.mark.parametrize("path", ["/later", "/slow"])
def test_an_answer_may_take_longer_than_its_request(
    listener: Listener, door: Door, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("app.listeners.HEAD_SECONDS", 0.05)
    with connect(listener) as connection:
        for piece in (asked(path, b"abc")[:-1], b"c"):
            connection.sendall(piece)
            time.sleep(0.01)
        time.sleep(0.1)
        door.let.set()
        received(connection, 1)


def test_a_client_that_does_not_read_its_answers_is_left_to_uvicorn(listener: Listener) -> None:
    with connect(listener) as connection:
        for _ in range(40):
            connection.sendall(asked("/large", b""))
            time.sleep(0.01)
        first, *_, last = received(connection, 40)
        assert (len(first), len(last)) == (LARGE, 0)


def test_as_many_heads_are_remembered_as_there_is_room_for(door: Door) -> None:
    heads = Heads(door)
    usual = SHORT[:-3]
    for number in range(HEADS + 1):
        assert heads.find(usual.replace(b"Host: a", b"Host: %d" % number))
    assert len(door.heads) == HEADS + 1
    assert heads.find(usual.replace(b"Host: a", b"Host: %d" % HEADS))
    assert len(door.heads) == HEADS + 1
    assert heads.find(usual.replace(b"Host: a", b"Host: 0"))
    assert len(door.heads) == HEADS + 2
    assert heads.find(usual.replace(b"Host: a", b"Host: " + b"a" * LONGEST_HEAD)) is None
