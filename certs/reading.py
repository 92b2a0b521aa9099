"""Certificates and keys as somebody stored them: read as far as they are good for something, else not at all."""

import contextlib
import dataclasses

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs import exchange
from certs.authority import CLOCK_SKEW, Authority
from certs.serving import address

_UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.UnsupportedGeneralNameType,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A serving certificate whose key is there."""

    certificate: x509.Certificate
    names: frozenset[str]
    """DNS names and IP addresses, as `normal_name` has them."""
    certificate_pem: bytes
    key_pem: bytes
    """Both as they were stored."""


def certificates_of(text: bytes) -> list[x509.Certificate]:
    """Each certificate of a text that can be read."""
    found = []
    for der in exchange.certificates_in(text):
        with contextlib.suppress(*_UNREADABLE):
            found.append(x509.load_der_x509_certificate(der))
    return found


def authority_of(certificate_pem: bytes, key_pem: bytes) -> Authority | None:
    """An authority; None where it cannot sign: no key, somebody else's key, a certificate that is no authority's."""
    try:
        certificate, key = _certificate_and_key(certificate_pem, key_pem)
        certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)  # leaves refer to it
        is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except _UNREADABLE:
        return None
    return Authority(certificate, key) if is_authority else None


def pair_of(certificate_pem: bytes, key_pem: bytes) -> Pair | None:
    """A serving pair; None where it cannot be served: half of it is there, or two halves of two."""
    try:
        certificate, _ = _certificate_and_key(certificate_pem, key_pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except _UNREADABLE:
        return None
    told = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    return Pair(certificate, frozenset(map(normal_name, told)), certificate_pem, key_pem)


def normal_name(name: str) -> str:
    """A DNS name or IP address in the one form in which it is compared."""
    found = address(name)
    return name.lower() if found is None else str(found)


def has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Whether one vouches for the other."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def pem(certificate: x509.Certificate) -> bytes:
    """The bytes that are stored."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def der(certificate: x509.Certificate) -> bytes:
    """The bytes that are compared."""
    return certificate.public_bytes(serialization.Encoding.DER)


def made_at(certificate: x509.Certificate) -> float:
    """When it was made, epoch seconds; its validity begins a little before."""
    return (certificate.not_valid_before_utc + CLOCK_SKEW).timestamp()


def ends_at(certificate: x509.Certificate) -> float:
    """When it ends, epoch seconds."""
    return certificate.not_valid_after_utc.timestamp()


def _certificate_and_key(certificate_pem: bytes, key_pem: bytes) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate = x509.load_pem_x509_certificate(certificate_pem)
    key = serialization.load_pem_private_key(key_pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise ValueError("not the key of this certificate")
    return certificate, key
