"""When a certificate ends, read from its DER bytes.

`ssl` tells it only of a peer it has verified, and the library that parses certificates stays out of the server; what
is left is a walk over six fields. No validator: OpenSSL has accepted the certificate before its end is asked for.
"""

import datetime
import ssl

_EXPLICIT_VERSION = 0xA0
_TIME_FORMATS = {  # RFC 5280 §4.1.2.5
    0x17: "%y%m%d%H%M%S%z",  # UTCTime, until 2049
    0x18: "%Y%m%d%H%M%S%z",  # GeneralizedTime, from 2050
}


def not_after(pem: str) -> float:
    """Return the end of validity of the first certificate in `pem`, in epoch seconds.

    Raises `ValueError` where none can be read.
    """
    begin, end = pem.find(ssl.PEM_HEADER), pem.find(ssl.PEM_FOOTER)
    if begin < 0 or end < 0:
        raise ValueError("no PEM certificate")
    der = ssl.PEM_cert_to_DER_cert(pem[begin : end + len(ssl.PEM_FOOTER)])
    try:
        return _not_after(der)
    except IndexError as error:
        raise ValueError("a certificate that ends too early") from error


def _not_after(der: bytes) -> float:
    # RFC 5280 §4.1: Certificate { tbsCertificate {
    #     [0] version?, serialNumber, signature, issuer, validity { notBefore, notAfter }, … }, … }
    _, at, _ = _element(der, 0)
    _, at, _ = _element(der, at)
    tag, _, after = _element(der, at)
    if tag == _EXPLICIT_VERSION:
        at = after
    for _field in ("serialNumber", "signature", "issuer"):
        _, _, at = _element(der, at)
    _, at, _ = _element(der, at)
    _, _, at = _element(der, at)
    tag, start, end = _element(der, at)
    if tag not in _TIME_FORMATS:
        raise ValueError(f"notAfter has tag {tag:#x}, expected UTCTime or GeneralizedTime")
    text = der[start:end].decode("ascii")
    return datetime.datetime.strptime(text, _TIME_FORMATS[tag]).timestamp()  # noqa: DTZ007 - both formats have %z


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of the element at this offset, and the offsets where its content starts and ends (X.690 §8.1)."""
    tag, length, start = der[at], der[at + 1], at + 2
    if length & 0x80:  # the long form: so many bytes of length follow
        start += length & 0x7F
        length = int.from_bytes(der[at + 2 : start])
    return tag, start, start + length
