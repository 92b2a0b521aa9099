"""`vacancy serve`, alone on its core, and beside it the API server that stands in for a large cluster."""

import http.client
import json
import socket
import ssl
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

from certs.serving import throwaway_pair
from loadtest.large_reviews import TAKEN, target, verdict
from loadtest.latency import CLIENT_CORE
from loadtest.servers import SERVER_CORE, Running, pinned
from tests.controlplane.process import Server, free_port
from tests.controlplane.waiting import until

_LOOK_SECONDS = 3.0
_CALM_SHARE = 0.1  # of a core: looking for new classes takes 2 to 5 %, counting 30 to 60 %


class Standin:
    """The API server, until the end of the context. Its files, and those of who follows it, are in `folder`."""

    def __init__(self, folder: Path, size: str) -> None:
        """`size`: "large" or "small". Returns when it listens."""
        self._folder = folder
        ca, _, _ = throwaway_pair(["localhost"], ["127.0.0.1"], time.time()).write(folder)
        self._kubeconfig = folder / "kubeconfig"
        command = [sys.executable, "-m", "loadtest.standin", str(folder), size]
        self._server = Server(pinned(CLIENT_CORE, command), folder / "standin.log")
        self._server.wait(self._kubeconfig.exists)
        clusters = json.loads(self._kubeconfig.read_text(encoding="ascii"))["clusters"]
        self._url = f"{clusters[0]['cluster']['server']}/control"
        self._tls = ssl.create_default_context(cafile=ca)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.kill()

    def tell(self, **what: int) -> bool:
        """Have something happen (`standin`); whether the tide is high, that is whether TIDE is taken."""
        request = urllib.request.Request(self._url, json.dumps(what).encode())  # noqa: S310 - our own address
        with urllib.request.urlopen(request, timeout=60, context=self._tls) as answer:  # noqa: S310 - the same
            return bool(json.load(answer)["high"])

    def followed(self, refresh_seconds: float = 60.0) -> AbstractContextManager[Running]:
        """A Vacancy that has just begun to listen, and knows nothing yet."""
        flags = {"--kubeconfig": str(self._kubeconfig), "--refresh-seconds": f"{refresh_seconds:g}"}
        return vacancy(flags, self._folder)


@contextmanager
def vacancy(flags: Mapping[str, str], folder: Path) -> Iterator[Running]:
    """`vacancy serve` as soon as it listens; its certificate is in `folder`, and so is its log."""
    address = f"127.0.0.1:{free_port()}"
    where = {"--tls-dir": str(folder), "--listen": address, "--web-listen": f"127.0.0.1:{free_port()}"}
    words = [word for flag in ({**flags, **where}).items() for word in flag]
    server = Server(pinned(SERVER_CORE, [sys.executable, "-m", "app", "serve", *words]), folder / "vacancy.log")
    try:
        server.wait(lambda: _listens(address))
        yield Running("vacancy", address, folder / "ca.crt", server.pid)
    finally:
        server.kill()


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until_counted(server: Running, seconds: float = 300.0) -> None:
    """Return when the server knows who holds what. Raises `TimeoutError`."""
    asked = target(server, "taken")

    def knows() -> bool:
        time.sleep(0.2)
        try:
            answer = server.answer(asked.url.removeprefix(server.url("")), asked.body)
        except (OSError, http.client.HTTPException):
            return False
        return verdict(json.loads(answer)["response"]) == TAKEN

    until("the large cluster is read and counted", knows, seconds)


def wait_until_calm(server: Running, seconds: float = 900.0) -> None:
    """Return when the server has nothing more to do by itself: every class is counted. Raises `TimeoutError`."""

    def rests() -> bool:
        before = server.cpu_seconds()
        time.sleep(_LOOK_SECONDS)
        return server.cpu_seconds() - before < _CALM_SHARE * _LOOK_SECONDS

    until("the server has counted all classes", rests, seconds)
