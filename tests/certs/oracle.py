"""What a client makes of a certificate at any time: the path validation of another library, with a clock of its own."""

import datetime

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError


def refusal(certificate: bytes, bundle: bytes, name: str, now: float) -> str:
    """Why a client that trusts this bundle (PEM) refuses this certificate (PEM) of a server it calls `name`; or ""."""
    try:
        trusted = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return "nothing is trusted"
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    verifier = PolicyBuilder().store(Store(trusted)).time(moment).build_server_verifier(x509.DNSName(name))
    try:
        verifier.verify(x509.load_pem_x509_certificate(certificate), [])
    except VerificationError as error:
        return str(error)
    return ""
