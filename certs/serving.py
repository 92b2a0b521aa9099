"""The serving pair: the certificate and key that the webhook's listener shows, and who vouches for them."""

import dataclasses
import datetime
import ipaddress
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.authority import CLOCK_SKEW, Authority, key_usage, new_authority, private_pem

LIFETIME = datetime.timedelta(days=90)
"""Short enough for a stolen key to expire, long enough to renew with a month left."""

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DNS_NAME = re.compile(rf"(?=.{{1,253}}\Z)(\*\.)?{_LABEL}(\.{_LABEL})*")


class BadNames(ValueError):
    """Names no certificate can be made for. The message lists every problem, in one line."""


@dataclasses.dataclass(frozen=True, slots=True)
class ServingPair:
    """A listener's certificate and key with the certificate of their authority, all PEM."""

    authority_pem: bytes
    certificate_pem: bytes
    key_pem: bytes

    def write(self, directory: Path) -> tuple[Path, Path, Path]:
        """Write `ca.crt`, `tls.crt` and `tls.key` (mode 0600) and return their paths.

        The directory is made if missing. Each file is replaced whole, never seen half-written. Raises `OSError`.
        """
        directory.mkdir(parents=True, exist_ok=True)
        return (
            _replace(directory / "ca.crt", self.authority_pem, mode=0o644),
            _replace(directory / "tls.crt", self.certificate_pem, mode=0o644),
            _replace(directory / "tls.key", self.key_pem, mode=0o600),
        )


def throwaway_pair(dns: Sequence[str], ips: Sequence[str], now: float) -> ServingPair:
    """A pair signed by an authority that exists for it alone and whose key is forgotten.

    `now` is the real time in epoch seconds, also where the judgement runs on a frozen clock: clients compare with
    theirs. Raises `BadNames`.
    """
    return serving_pair(new_authority(now), dns, ips, now)


def serving_pair(
    authority: Authority,
    dns: Sequence[str],
    ips: Sequence[str],
    now: float,
    lifetime: datetime.timedelta = LIFETIME,
) -> ServingPair:
    """An ECDSA P-256 pair for a server of these DNS names and IP addresses, valid for `lifetime` from `now`.

    It ends no later than its authority. Raises `BadNames`.
    """
    names = _general_names(dns, ips)
    key = ec.generate_private_key(ec.SECP256R1())
    start = datetime.datetime.fromtimestamp(now, datetime.UTC)
    authority_key = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vacancy")]))  # no client matches it
        .issuer_name(authority.certificate.subject)
        .serial_number(x509.random_serial_number())
        .public_key(key.public_key())
        .not_valid_before(start - CLOCK_SKEW)
        .not_valid_after(min(start + lifetime, authority.certificate.not_valid_after_utc))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_key), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return ServingPair(
        authority_pem=authority.pem,
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
        key_pem=private_pem(key),
    )


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a text is; None if it is none."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _general_names(dns: Sequence[str], ips: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    problems = []
    for name in dns:
        if address(name) is not None:
            problems.append(f"{name!r} is an IP address, not a DNS name")  # as a DNS name no client would accept it
        elif not _DNS_NAME.fullmatch(name):
            problems.append(f"{name!r} is not a DNS name")
        else:
            names.append(x509.DNSName(name))
    for ip in ips:
        if (found := address(ip)) is None:
            problems.append(f"{ip!r} is not an IP address")
        else:
            names.append(x509.IPAddress(found))
    if not dns and not ips:
        problems.append("a certificate needs at least one DNS name or IP address")
    if problems:
        raise BadNames("; ".join(problems))
    return names


def _replace(path: Path, content: bytes, *, mode: int) -> Path:
    """Put `content` at `path` in one step, by a temporary file that has its mode before its first byte."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask says
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
