"""A webhook that admits everything and remembers what it was asked: real TLS, real reviews."""

import http.server
import json
import ssl
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from certs.serving import throwaway_pair


class Recorder:
    """Listens on loopback from its making until it is left. Its certificate is in `folder`."""

    def __init__(self, folder: Path) -> None:
        pair = throwaway_pair(["localhost"], ["127.0.0.1"], time.time())
        _, certificate, key = pair.write(folder)
        self.authority = pair.authority_pem.decode()
        """Whom to trust, PEM."""
        self.asked: list[tuple[str, str, str]] = []
        """Namespace, kind and path of each review, in the order they came."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.recorder = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="recorder")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """What the API server is told to call."""
        return f"https://127.0.0.1:{self._server.server_port}"

    def paths(self, namespace: str) -> list[str]:
        """The paths asked about that namespace since the last look, without their query."""
        found = [path for where, _, path in self.asked if where == namespace]
        self.asked = [each for each in self.asked if each[0] != namespace]
        return found


class _Server(http.server.ThreadingHTTPServer):
    recorder: Recorder
    daemon_threads = True


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        path, _, _ = self.path.partition("?")
        self.server.recorder.asked.append((request["namespace"], request["kind"]["kind"], path))
        answer = review | {"response": {"uid": request["uid"], "allowed": True}}
        body = json.dumps(answer).encode()
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library calls it
        """Nothing: what was asked is remembered."""
