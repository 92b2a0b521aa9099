"""A certificate from a folder, which somebody else renews there while the server runs."""

import asyncio
import dataclasses
import logging
import time
from pathlib import Path
from typing import NoReturn

from app.metrics import CertificateCounts
from app.tls.serving import ServingCertificate, UnusableCertificate, loaded_pair

LOOK_SECONDS = 5.0
"""Between two looks at the files. The kubelet updates them a minute late anyway."""

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Unchanged:
    """The files hold what is served."""


@dataclasses.dataclass(frozen=True, slots=True)
class Replaced:
    """New connections are shown another certificate from now on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """The files changed to something that can't be served; the last good certificate stays. `problem` is one line."""

    problem: str


class CertificateFolder:
    """`tls.crt` and `tls.key`, and `serving`, which shows them.

    Raises `UnusableCertificate` where there is nothing to start with.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._content = self._read()
        self.serving = ServingCertificate()
        self.serving.show(loaded_pair(*self._content, str(directory)))

    def reload(self) -> Unchanged | Replaced | Kept:
        """Serve what the files hold now, if it can be served.

        Cheap enough for a timer: it reads two small files. It compares content, not times or inodes, since the kubelet
        swaps a symlink above the files and others write in place. A failure is tried again at every call, since it may
        lie in the reading.
        """
        try:
            content = self._read()
            if content == self._content:
                return Unchanged()
            self.serving.show(loaded_pair(*content, str(self._directory)))
        except UnusableCertificate as error:
            return Kept(str(error))
        self._content = content
        return Replaced()

    async def follow(self) -> NoReturn:
        """Look at the files again and again, until cancelled."""
        kept = ""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            match self.reload():
                case Replaced():
                    kept = ""
                    _log.info("certificate replaced", extra={"facts": {"ends": self.serving.ends}})
                case Kept(problem) if problem != kept:
                    kept = problem
                    _log.warning("certificate kept", extra={"facts": {"problem": problem}})

    def missing(self) -> str:
        """What readiness lacks; empty: nothing."""
        return self.serving.missing(time.time())

    def counts(self) -> CertificateCounts:
        """What a scrape is told."""
        return CertificateCounts({"serving": self.serving.not_after})

    def _read(self) -> tuple[bytes, bytes]:
        try:
            return (self._directory / "tls.crt").read_bytes(), (self._directory / "tls.key").read_bytes()
        except OSError as error:
            raise UnusableCertificate(f"can't read {error.filename}: {error.strerror}") from error
