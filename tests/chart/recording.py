"""A webhook that admits everything and remembers what it was asked: real TLS, real reviews."""

import time
from pathlib import Path

from certs.serving import throwaway_pair
from tests.answering import Answering, response


class Recorder(Answering):
    """Listens on loopback while it is open. Its certificate is in `folder`."""

    def __init__(self, folder: Path) -> None:
        pair = throwaway_pair(["localhost"], ["127.0.0.1"], time.time())
        super().__init__(folder, pair, lambda review: (200, response(review)))
        self.authority = pair.authority_pem.decode()
        """Whom to trust, PEM."""

    @property
    def url(self) -> str:
        """What the API server is told to call."""
        return f"https://127.0.0.1:{self.port}"

    def paths(self, namespace: str) -> list[str]:
        """The paths asked about that namespace since the last look, without their query."""
        found = [each for each in self.reviews if each[1]["request"]["namespace"] == namespace]
        self.reviews = [each for each in self.reviews if each not in found]
        return [path.partition("?")[0] for path, _ in found]
