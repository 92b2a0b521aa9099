"""A webhook over real TLS that answers as it is told, in a thread of its own."""

import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from certs.serving import ServingPair

Json = dict[str, Any]
Respond = Callable[[Json], tuple[int, Json | bytes]]
"""Status and body for a review."""


def response(review: Json, **changes: object) -> Json:
    """A good answer, but for the changes to its response; what is changed to None is left out."""
    fields = {"uid": review["request"]["uid"], "allowed": True} | changes
    kept = {name: value for name, value in fields.items() if value is not None}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": kept}


class Answering:
    """Listens on 127.0.0.1 while it is open, and shows the pair."""

    def __init__(self, folder: Path, pair: ServingPair, respond: Respond) -> None:
        """`folder`: where the pair is written."""
        self.reviews: list[tuple[str, Json]] = []
        """Path with query, and content, of each that came."""
        _, certificate, key = pair.write(folder)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        answering = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["content-length"])))
                answering.reviews.append((self.path, review))
                status, body = respond(review)
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("location", "/elsewhere")  # only a redirection has it read
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
