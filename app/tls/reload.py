"""Serve the newest good certificate.

A certificate is renewed while the server runs, by replacing `tls.crt` and `tls.key` in its directory. Loading a pair
into the context in use would be wrong twice (measured): a mismatched pair leaves it refusing every handshake, and a
pair of another key type is added beside the old one, which goes on being served. So every pair gets a context of its
own; the context that listens owns none and hands each new connection the current one.
"""

import dataclasses
import hashlib
import ssl
from pathlib import Path
from typing import NoReturn

from app.tls.expiry import not_after

# What OpenSSL says to another key of the same type, of another curve, of another type.
_MISMATCHES = {"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"}


class UnusableCertificate(Exception):
    """A directory holds no pair that could be served. The message is one line and names the directory."""


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


@dataclasses.dataclass(frozen=True, slots=True)
class _Pair:
    """A loaded pair. `content` identifies the bytes it was made from."""

    context: ssl.SSLContext
    not_after: float
    content: bytes


class ServingCertificate:
    """The certificate that new connections are shown. One writer: whoever calls `reload`.

    `server_context` is for the listener and stays the same for life. Raises `UnusableCertificate` where there is
    nothing to start with.
    """

    __slots__ = ("_directory", "_pair", "server_context")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pair = _load(directory, _content(directory))
        self.server_context = _new_context()
        # Called for every handshake, also where the client sends no name.
        self.server_context.sni_callback = self._show

    @property
    def not_after(self) -> float:
        """When the certificate that is served ends, epoch seconds."""
        return self._pair.not_after

    def reload(self) -> Unchanged | Replaced | Kept:
        """Serve what the files hold now, if it can be served. Connections that exist go on as they are.

        Cheap enough for a timer: it reads two small files. It compares content, not times or inodes, since the kubelet
        swaps a symlink above the files and others write in place. A failure is tried again at every call, since it may
        lie in the reading.
        """
        try:
            content = _content(self._directory)
            if content == self._pair.content:
                return Unchanged()
            self._pair = _load(self._directory, content)
        except UnusableCertificate as error:
            return Kept(str(error))
        return Replaced()

    def _show(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._pair.context


def _content(directory: Path) -> bytes:
    try:
        return b"".join(hashlib.sha256((directory / name).read_bytes()).digest() for name in ("tls.crt", "tls.key"))
    except OSError as error:
        raise UnusableCertificate(f"can't read {error.filename}: {error.strerror}") from error


def _load(directory: Path, content: bytes) -> _Pair:
    """Load the pair. `content` was read *before*: files that change in between are loaded again at the next look."""
    context = _new_context()
    certificate = directory / "tls.crt"
    try:
        context.load_cert_chain(certificate, directory / "tls.key", password=_no_password)
        return _Pair(context, not_after(certificate.read_text("ascii", "replace")), content)
    except ssl.SSLError as error:
        if error.reason in _MISMATCHES:
            raise UnusableCertificate(f"{directory}: tls.key is not the key of tls.crt") from error
        raise UnusableCertificate(
            f"{directory}: tls.crt and tls.key are not a PEM certificate and key ({error.reason})"
        ) from error
    except (OSError, ValueError) as error:
        raise UnusableCertificate(f"{directory}: {error}") from error


def _no_password() -> NoReturn:
    # OpenSSL would ask for it on the terminal, and the server would wait.
    raise ValueError("tls.key is encrypted; store it without a password")


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # A resumed session shows no certificate and so hides a rotation; client-go, the client, keeps none anyway.
    context.num_tickets = 0
    return context
