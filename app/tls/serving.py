"""The certificate that new connections are shown: the newest good one, whatever happens where it comes from.

Loading a pair into the context in use would be wrong twice (measured): a mismatched pair leaves it refusing every
handshake, and a pair of another key type is added beside the old one, which goes on being served. So every pair gets a
context of its own; the context that listens owns none and hands each new connection the current one.
"""

import contextlib
import dataclasses
import os
import ssl
from collections.abc import Iterator
from typing import NoReturn

from app.presubmit.report import timestamp
from app.tls.expiry import not_after

# What OpenSSL says to another key of the same type, of another curve, of another type.
_MISMATCHES = {"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"}


class UnusableCertificate(Exception):
    """No pair that could be served. The message is one line and says where it was found."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, ready for handshakes."""

    context: ssl.SSLContext
    not_after: float
    """Epoch seconds."""


class ServingCertificate:
    """What new connections are shown; nothing, and no handshake succeeds, until the first `show`. One writer.

    `server_context` is for the listener and stays the same for life.
    """

    __slots__ = ("_pair", "server_context")

    def __init__(self) -> None:
        self._pair: Pair | None = None
        self.server_context = _new_context()
        # Called for every handshake, also where the client sends no name.
        self.server_context.sni_callback = self._hand_over

    @property
    def not_after(self) -> float | None:
        """When the certificate that is served ends, epoch seconds; None: there is none."""
        return None if self._pair is None else self._pair.not_after

    @property
    def ends(self) -> str:
        """The same for the log: RFC 3339; empty: there is none."""
        return "" if self._pair is None else timestamp(self._pair.not_after)

    def show(self, pair: Pair) -> None:
        """Show this one from now on. Connections that exist go on as they are."""
        self._pair = pair

    def missing(self, now: float) -> str:
        """Why no client would accept it; empty: one that trusts its authority does."""
        if self._pair is None:
            return "none yet"
        return "" if now < self._pair.not_after else "expired"

    def _hand_over(
        self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        if self._pair is not None:  # else the handshake fails, as it does in a context that owns no certificate
            connection.context = self._pair.context


def loaded_pair(certificate: bytes, key: bytes, where: str) -> Pair:
    """A pair from its PEM bytes. Raises `UnusableCertificate`, which begins with `where`."""
    context = _new_context()
    try:
        with _path_to(certificate) as certificate_path, _path_to(key) as key_path:
            context.load_cert_chain(certificate_path, key_path, password=_no_password)
        return Pair(context, not_after(certificate.decode("ascii", "replace")))
    except ssl.SSLError as error:
        if error.reason in _MISMATCHES:
            raise UnusableCertificate(f"{where}: tls.key is not the key of tls.crt") from error
        raise UnusableCertificate(
            f"{where}: tls.crt and tls.key are not a PEM certificate and key ({error.reason})"
        ) from error
    except (OSError, ValueError) as error:
        raise UnusableCertificate(f"{where}: {error}") from error


@contextlib.contextmanager
def _path_to(content: bytes) -> Iterator[str]:
    """A path that leads to memory: `ssl` loads keys from paths only, and a key must not be written to a disk.

    Linux only, as memfd_create(2) is. May go when `load_cert_chain` takes bytes (python/cpython#60691).
    """
    with os.fdopen(os.memfd_create("pem", os.MFD_CLOEXEC), "wb") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def _no_password() -> NoReturn:
    # OpenSSL would ask for it on the terminal, and the server would wait.
    raise ValueError("tls.key is encrypted; store it without a password")


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # A resumed session shows no certificate and so hides a rotation; client-go, the client, keeps none anyway.
    context.num_tickets = 0
    return context
