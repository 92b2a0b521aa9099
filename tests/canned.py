"""An HTTP server that answers every request as it is told, in a thread of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    """What has come."""

    method: str
    path: str
    """With its query."""
    headers: Message
    body: bytes


class Canned(ThreadingHTTPServer):
    """It stores and returns."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[Request] = []
        self.answer = (200, b"")
        """Status code and body."""

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Canned

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append(Request(self.command, self.path, self.headers, body))
        code, answer = self.server.answer
        self.send_response(code)
        self.send_header("location", "/elsewhere")  # only a redirection has it read
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_CONNECT = do_GET  # noqa: N815 - the same

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def canned() -> Iterator[Canned]:
    """It listens on 127.0.0.1."""
    with Canned() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield server
        server.shutdown()
