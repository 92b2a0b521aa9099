"""Certificates, keys and kubeconfigs of a throw-away control plane: who its parts are, and how they show it."""

import dataclasses
import datetime
import ssl
import time
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.authority import CLOCK_SKEW, Authority, key_usage, new_authority
from certs.serving import serving_pair

_LIFETIME = datetime.timedelta(days=7)  # longer than any playground is left running


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """Files in one directory: what the servers show, what they trust, and the administrator's way in."""

    directory: Path

    @property
    def authority(self) -> Path:
        """The certificate that vouches for every server and client of the plane."""
        return self.directory / "ca.crt"

    @property
    def serving(self) -> tuple[Path, Path]:
        """Certificate and key of every server on 127.0.0.1."""
        return self.directory / "tls.crt", self.directory / "tls.key"

    @property
    def admin(self) -> tuple[Path, Path]:
        """Certificate and key of a member of `system:masters`, who may do everything."""
        return self.directory / "admin.crt", self.directory / "admin.key"

    @property
    def service_accounts(self) -> tuple[Path, Path]:
        """The public key that checks the tokens of service accounts, and the key that signs them."""
        return self.directory / "service-accounts.pub", self.directory / "service-accounts.key"

    def client_context(self) -> ssl.SSLContext:
        """TLS towards the plane's servers, as the administrator."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(*self.admin)
        return context

    def kubeconfig(self, path: Path, server: str, user: dict[str, str]) -> Path:
        """Write a kubeconfig for `server` with the fields of one `user`, readable by its owner only; return `path`."""
        cluster = {"server": server, "certificate-authority": str(self.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        return _private(path, yaml.safe_dump(content).encode())


def new_credentials(directory: Path) -> Credentials:
    """Make everything new in `directory`, which is made if missing."""
    now = time.time()
    credentials = Credentials(directory)
    authority = new_authority(now)
    serving_pair(authority, ["localhost"], ["127.0.0.1"], now).write(directory)
    certificate, key = credentials.admin
    admin_key = ec.generate_private_key(ec.SECP256R1())
    certificate.write_bytes(_client_certificate(authority, admin_key.public_key(), "admin", "system:masters", now))
    _private(key, _pem(admin_key))
    public, private = credentials.service_accounts
    token_key = ec.generate_private_key(ec.SECP256R1())
    public.write_bytes(
        token_key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    _private(private, _pem(token_key))
    return credentials


def _client_certificate(
    authority: Authority, key: ec.EllipticCurvePublicKey, user: str, group: str, now: float
) -> bytes:
    """Kubernetes reads the user from the common name and the groups from the organizations."""
    name = [x509.NameAttribute(NameOID.COMMON_NAME, user), x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)]
    start = datetime.datetime.fromtimestamp(now, datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(name))
        .issuer_name(authority.certificate.subject)
        .serial_number(x509.random_serial_number())
        .public_key(key)
        .not_valid_before(start - CLOCK_SKEW)
        .not_valid_after(start + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _private(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
