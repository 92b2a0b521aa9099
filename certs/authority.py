"""The authority: a self-signed certificate that the API server is told to trust (`caBundle`), and its key."""

import dataclasses
import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFETIME = datetime.timedelta(days=3650)
"""Ten years: never the first to end, since who renews a leaf without the authority's key makes a new authority."""

CLOCK_SKEW = datetime.timedelta(minutes=5)
"""How far before `now` a certificate starts to be valid, for API servers whose clock is behind ours."""


@dataclasses.dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority: its certificate, and its key in memory."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        """The certificate as PEM, ready for `ca.crt` or `caBundle`."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key as PEM, not encrypted."""
        return private_pem(self.key)


def new_authority(now: float, lifetime: datetime.timedelta = LIFETIME) -> Authority:
    """A new ECDSA P-256 authority that signs leaves only, valid for `lifetime` from `now` (epoch seconds)."""
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial is in the name: two authorities trusted at once, as during a rotation, aren't taken for each other.
    serial = x509.random_serial_number()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"vacancy-ca-{serial & 0xFFFFFFFF:08x}")])
    start = datetime.datetime.fromtimestamp(now, datetime.UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .serial_number(serial)
        .public_key(key.public_key())
        .not_valid_before(start - CLOCK_SKEW)
        .not_valid_after(start + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A key as PEM, not encrypted: who may read the Secret or the file may use it."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """What a key may sign, certificates or handshakes. Strict verifiers insist on being told (RFC 5280 §4.2.1.3)."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
