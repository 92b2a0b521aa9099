"""Rotation, by real handshakes: the newest good certificate is shown, and nothing in the files stops the server."""

import datetime
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import NameOID

from app.tls.expiry import not_after
from app.tls.reload import CertificateFolder, Kept, Replaced, Unchanged
from app.tls.serving import UnusableCertificate
from certs.serving import ServingPair, throwaway_pair
from tests.tls.handshake import connected, echoed, listening, shown, trusting


def new_pair() -> ServingPair:
    return throwaway_pair(["localhost"], ["127.0.0.1"], time.time())


def rsa_pair() -> ServingPair:
    """Like a pair of cert-manager's default: RSA, here its own authority."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rsa")])
    now = datetime.datetime.now(datetime.UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .serial_number(x509.random_serial_number())
        .public_key(key.public_key())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    return ServingPair(certificate, certificate, private_pem(key, serialization.NoEncryption()))


def private_pem(key: PrivateKeyTypes, encryption: serialization.KeySerializationEncryption) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def encrypted(key_pem: bytes) -> bytes:
    key = serialization.load_pem_private_key(key_pem, None)
    return private_pem(key, serialization.BestAvailableEncryption(b"secret"))


def der(pair: ServingPair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair.certificate_pem.decode())


def test_a_new_connection_is_shown_the_new_certificate_and_an_open_one_goes_on(tmp_path: Path) -> None:
    old, new = new_pair(), new_pair()
    old.write(tmp_path)
    folder = CertificateFolder(tmp_path)
    with listening(folder.serving.server_context) as port, connected(trusting(old.authority_pem), port) as open_before:
        assert shown(trusting(old.authority_pem), port) == der(old)
        new.write(tmp_path)
        assert folder.reload() == Replaced()
        assert shown(trusting(new.authority_pem), port) == der(new)
        with pytest.raises(ssl.SSLCertVerificationError):
            shown(trusting(old.authority_pem), port)
        assert echoed(open_before, b"still here\n") == b"still here\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(rsa_pair, new_pair, id="RSA is followed by ECDSA"),
        pytest.param(new_pair, rsa_pair, id="ECDSA is followed by RSA"),
    ],
)
def test_a_pair_of_another_key_type_replaces_the_old_one(
    tmp_path: Path, before: Callable[[], ServingPair], after: Callable[[], ServingPair]
) -> None:
    old, new = before(), after()
    old.write(tmp_path)
    folder = CertificateFolder(tmp_path)
    with listening(folder.serving.server_context) as port:
        assert shown(trusting(old.authority_pem), port) == der(old)
        new.write(tmp_path)
        assert folder.reload() == Replaced()
        assert shown(trusting(new.authority_pem), port) == der(new)


def test_the_kubelet_swaps_a_symlink_above_the_files(tmp_path: Path) -> None:
    old, new = new_pair(), new_pair()
    old.write(tmp_path / "..2026_01")
    new.write(tmp_path / "..2026_02")
    (tmp_path / "..data").symlink_to("..2026_01")
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    folder = CertificateFolder(tmp_path)
    (tmp_path / "..data_tmp").symlink_to("..2026_02")
    (tmp_path / "..data_tmp").replace(tmp_path / "..data")
    assert folder.reload() == Replaced()
    with listening(folder.serving.server_context) as port:
        assert shown(trusting(new.authority_pem), port) == der(new)


def test_the_same_content_written_again_is_no_change(tmp_path: Path) -> None:
    pair = new_pair()
    pair.write(tmp_path)
    folder = CertificateFolder(tmp_path)
    pair.write(tmp_path)
    assert folder.reload() == Unchanged()


Files = Callable[[ServingPair, ServingPair], tuple[bytes | None, bytes | None]]
"""What `tls.crt` and `tls.key` hold after the old and a new pair; None: no file."""

UNUSABLE: dict[str, tuple[Files, str]] = {
    "the certificate is new and the key still the old one": (
        lambda old, new: (new.certificate_pem, old.key_pem),
        "{dir}: tls.key is not the key of tls.crt",
    ),
    "the key is of another type": (
        lambda old, _new: (rsa_pair().certificate_pem, old.key_pem),
        "{dir}: tls.key is not the key of tls.crt",
    ),
    "the certificate is half-written": (
        lambda _old, new: (new.certificate_pem[:200], new.key_pem),
        "{dir}: tls.crt and tls.key are not a PEM certificate and key (",
    ),
    "the key is half-written": (
        lambda _old, new: (new.certificate_pem, new.key_pem[:100]),
        "{dir}: tls.crt and tls.key are not a PEM certificate and key (",
    ),
    "both files are empty": (
        lambda _old, _new: (b"", b""),
        "{dir}: tls.crt and tls.key are not a PEM certificate and key (",
    ),
    "the certificate is no text": (
        lambda _old, new: (b"\x00\xff" * 500, new.key_pem),
        "{dir}: tls.crt and tls.key are not a PEM certificate and key (",
    ),
    "the key has a password": (
        lambda _old, new: (new.certificate_pem, encrypted(new.key_pem)),
        "{dir}: tls.key is encrypted; store it without a password",
    ),
    "the key is gone": (
        lambda _old, new: (new.certificate_pem, None),
        "can't read {dir}/tls.key: No such file or directory",
    ),
    "both are gone": (
        lambda _old, _new: (None, None),
        "can't read {dir}/tls.crt: No such file or directory",
    ),
}


@pytest.mark.parametrize(("files", "problem"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_served_keeps_the_last_good_one(tmp_path: Path, files: Files, problem: str) -> None:
    old, new = new_pair(), new_pair()
    old.write(tmp_path)
    folder = CertificateFolder(tmp_path)
    for name, content in zip(("tls.crt", "tls.key"), files(old, new), strict=True):
        (tmp_path / name).unlink()
        if content is not None:
            (tmp_path / name).write_bytes(content)
    expected = problem.format(dir=tmp_path)

    kept = folder.reload()
    assert isinstance(kept, Kept)
    assert kept.problem.startswith(expected)
    assert "\n" not in kept.problem
    with pytest.raises(UnusableCertificate) as nothing_to_start_with:
        CertificateFolder(tmp_path)
    assert str(nothing_to_start_with.value) == kept.problem

    with listening(folder.serving.server_context) as port:
        assert shown(trusting(old.authority_pem), port) == der(old)
        new.write(tmp_path)
        assert folder.reload() == Replaced()
        assert shown(trusting(new.authority_pem), port) == der(new)


def test_no_handshake_fails_while_the_files_are_replaced_one_after_the_other(tmp_path: Path) -> None:
    pairs = [new_pair() for _ in range(20)]
    pairs[0].write(tmp_path)
    folder = CertificateFolder(tmp_path)
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    seen: set[bytes] = set()
    done = threading.Event()

    def rotate() -> None:
        for pair in pairs:
            (tmp_path / "tls.crt").write_bytes(pair.certificate_pem)
            folder.reload()
            (tmp_path / "tls.key").write_bytes(pair.key_pem)
            folder.reload()
        done.set()

    with listening(folder.serving.server_context) as port:
        rotation = threading.Thread(target=rotate)
        rotation.start()
        while not done.is_set():
            seen.add(shown(anybody, port))
        rotation.join()
        assert shown(anybody, port) == der(pairs[-1])
    assert seen <= {der(pair) for pair in pairs}


def test_a_client_that_sends_no_name_is_shown_the_certificate_too(tmp_path: Path) -> None:
    pair = new_pair()
    pair.write(tmp_path)
    client = trusting(pair.authority_pem)
    client.check_hostname = False
    with listening(CertificateFolder(tmp_path).serving.server_context) as port:
        assert shown(client, port, name=None) == der(pair)


def test_no_session_is_left_to_resume_past_a_rotation(tmp_path: Path) -> None:
    pair = new_pair()
    pair.write(tmp_path)
    with (
        listening(CertificateFolder(tmp_path).serving.server_context) as port,
        connected(trusting(pair.authority_pem), port) as connection,
    ):
        assert echoed(connection, b"tickets would be here by now\n")
        assert connection.session is not None
        assert not connection.session.has_ticket


def test_tls_1_2_is_refused(tmp_path: Path) -> None:
    pair = new_pair()
    pair.write(tmp_path)
    client = trusting(pair.authority_pem)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with listening(CertificateFolder(tmp_path).serving.server_context) as port, pytest.raises(ssl.SSLError):
        shown(client, port)


def test_the_end_that_is_told_is_the_end_of_what_is_served(tmp_path: Path) -> None:
    sooner, later = (throwaway_pair(["localhost"], [], start) for start in (1767268800.0, 1767268800.0 + 86400))
    sooner.write(tmp_path)
    folder = CertificateFolder(tmp_path)
    assert folder.serving.not_after == 1767268800.0 + 90 * 86400
    (tmp_path / "tls.crt").write_bytes(later.certificate_pem)
    assert isinstance(folder.reload(), Kept)
    assert folder.serving.not_after == 1767268800.0 + 90 * 86400
    later.write(tmp_path)
    assert folder.reload() == Replaced()
    assert folder.serving.not_after == 1767268800.0 + 91 * 86400
    assert folder.serving.ends == "2026-04-02T12:00:00Z"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize(
    "start",
    [
        pytest.param(1767268800.0, id="two-digit year"),
        pytest.param(2524608000.0, id="four-digit year, from 2050"),
    ],
)
def test_not_after_reads_both_forms_of_time_in_any_time_zone(
    monkeypatch: pytest.MonkeyPatch, zone: str, start: float
) -> None:
    pem = throwaway_pair(["localhost"], [], start).certificate_pem
    with monkeypatch.context() as environment:
        environment.setenv("TZ", zone)
        time.tzset()
        end = not_after(pem.decode())
    time.tzset()
    assert end == start + 90 * 86400


def test_not_after_is_that_of_the_first_certificate_after_any_text() -> None:
    leaf, authority = (throwaway_pair(["localhost"], [], start).certificate_pem for start in (1767268800.0, 0.0))
    assert not_after("subject=vacancy\n" + (leaf + authority).decode()) == 1767268800.0 + 90 * 86400


def test_not_after_of_a_certificate_cut_anywhere_is_right_or_a_value_error() -> None:
    whole = der(throwaway_pair(["localhost"], [], 1767268800.0))
    unread = 0
    for length in range(len(whole)):
        try:
            assert not_after(ssl.DER_cert_to_PEM_cert(whole[:length])) == 1767268800.0 + 90 * 86400
        except ValueError:
            unread += 1
    assert 100 < unread < len(whole)
