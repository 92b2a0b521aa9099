"""What the server asks the process that signs, and what it is answered; and the keys of the Secret both speak of.

The server imports this room and no other of this package: what signs costs 8 MB of memory for a signature a season.
"""

import base64
import re

import msgspec

AUTHORITY, AUTHORITY_KEY = "ca.crt", "ca.key"
CERTIFICATE, KEY = "tls.crt", "tls.key"
OLD_AUTHORITIES = "ca-old.crt"
"""Authorities on their way out: still trusted, for there may be servers that show what they signed."""

KEYS = (AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY, OLD_AUTHORITIES)
"""All that the Secret holds of ours. The names are those of a Secret of type kubernetes.io/tls."""

DAY = 86400.0

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+?)-----END CERTIFICATE-----")


class Lifetimes(msgspec.Struct, frozen=True):
    """How long things last, in seconds. Values, so that a test can live through years in a minute."""

    authority: float = 5 * 365.25 * DAY
    serving: float = 90 * DAY
    """Short enough for a stolen key to expire, long enough to renew with a month left."""
    overlap: float = 7 * DAY
    """For which an authority stays trusted after it was last used: until every server shows something newer."""


class Situation(msgspec.Struct, frozen=True):
    """All that decides what is to be done."""

    held: dict[str, bytes]
    """What the Secret holds under `KEYS`."""
    names: list[str]
    """DNS names and IP addresses the server is called by; empty: not known, those of its certificate."""
    bundles: list[bytes]
    """The `caBundle` of each webhook that sends to us, PEM. Empty bytes: it has none."""
    trusted: list[bytes]
    """Authorities (DER) that all of them have listed for so long that every API server knows."""
    now: float
    """Epoch seconds."""
    lifetimes: Lifetimes
    late: float = 0.0
    """From 0 to 1, another for each server: so they don't all renew at the same moment."""


class Renewal(msgspec.Struct, frozen=True):
    """What is to be done, which may be nothing. Times are in epoch seconds."""

    change: str
    """Why the Secret is to be written: one of `CHANGES`, or empty."""
    data: dict[str, bytes]
    """What the Secret should hold; worth writing if there is a change."""
    bundle: bytes
    """What every `caBundle` should be, PEM."""
    issuer: bytes
    """The authority (DER) that signed the certificate in `data`."""
    held_issuer: bytes
    """The one that signed the certificate that was held; empty: none, or nobody living among all that we know."""
    starts: float
    """When the certificate in `data` begins to be valid."""
    authority_ends: float
    again_at: float
    """When to ask again, if nothing else changes before."""


CHANGES = ("created", "repaired", "authority-announced", "renewed", "authority-retired")
"""Why the Secret is written: it was empty; what it held, or what was trusted, was not ours; a new authority is told of;
the certificate is a new one; an old authority is no longer trusted."""


def certificates_in(pem: bytes) -> list[bytes]:
    """Each certificate (DER) of a text, in its order; what is none is passed over, as the API server does."""
    found = []
    for block in _BLOCK.findall(pem):
        try:
            found.append(base64.b64decode(block))
        except ValueError:
            continue
    return found
