"""The certificates we make: a strict verifier accepts them for the names asked for, and the key is nobody else's."""

import ipaddress
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from app.tls.reload import CertificateFolder
from certs.__main__ import main
from certs.authority import new_authority
from certs.serving import BadNames, serving_pair, throwaway_pair
from tests.tls.handshake import listening, shown, trusting

NOON = 1767268800.0  # 2026-01-01T12:00:00Z
DAY = 86400.0


@pytest.mark.parametrize("name", ["vacancy.vacancy.svc", "127.0.0.1"])
def test_a_strict_client_accepts_every_name_asked_for(tmp_path: Path, name: str) -> None:
    pair = throwaway_pair(["localhost", "vacancy.vacancy.svc"], ["127.0.0.1", "::1"], time.time())
    pair.write(tmp_path)
    with listening(CertificateFolder(tmp_path).serving.server_context) as port:
        assert shown(trusting(pair.authority_pem), port, name)


def test_openssl_accepts_the_chain_by_the_letter_of_rfc_5280(tmp_path: Path) -> None:
    authority, certificate, _key = throwaway_pair(["localhost"], [], time.time()).write(tmp_path)
    command = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "localhost", "-CAfile"]
    answer = subprocess.run([*command, authority, certificate], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"{certificate}: OK\n", "")


def test_the_names_are_those_asked_for_and_no_others() -> None:
    pair = throwaway_pair(["vacancy.vacancy.svc", "*.example.com"], ["10.0.0.1", "2001:db8::1"], NOON)
    names = x509.load_pem_x509_certificate(pair.certificate_pem).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert list(names.value) == [
        x509.DNSName("vacancy.vacancy.svc"),
        x509.DNSName("*.example.com"),
        x509.IPAddress(ipaddress.ip_address("10.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("2001:db8::1")),
    ]


def test_an_authority_lasts_ten_years_a_leaf_ninety_days_and_both_start_five_minutes_ago() -> None:
    pair = throwaway_pair(["localhost"], [], NOON)
    leaf, authority = map(x509.load_pem_x509_certificate, (pair.certificate_pem, pair.authority_pem))
    for certificate, days in ((leaf, 90), (authority, 3650)):
        assert certificate.not_valid_before_utc.timestamp() == NOON - 300
        assert certificate.not_valid_after_utc.timestamp() == NOON + days * DAY


def test_the_keys_are_ecdsa_p_256() -> None:
    pair = throwaway_pair(["localhost"], [], NOON)
    leaf, authority = map(x509.load_pem_x509_certificate, (pair.certificate_pem, pair.authority_pem))
    key = serialization.load_pem_private_key(pair.key_pem, None)
    for public in (leaf.public_key(), authority.public_key(), key.public_key()):
        assert isinstance(public, ec.EllipticCurvePublicKey)
        assert public.curve.name == "secp256r1"
    assert key.public_key() == leaf.public_key() != authority.public_key()


def test_an_authority_signs_leaves_only_and_a_leaf_serves_only() -> None:
    pair = throwaway_pair(["localhost"], [], NOON)
    leaf, authority = map(x509.load_pem_x509_certificate, (pair.certificate_pem, pair.authority_pem))
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.SERVER_AUTH]
    for certificate, expected in (
        (authority, x509.BasicConstraints(ca=True, path_length=0)),
        (leaf, x509.BasicConstraints(ca=False, path_length=None)),
    ):
        assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value == expected


def test_an_authority_can_sign_more_than_one_pair_and_no_two_pairs_share_a_key() -> None:
    authority = new_authority(NOON)
    first, second = (serving_pair(authority, ["localhost"], [], NOON) for _ in range(2))
    assert first.authority_pem == second.authority_pem == authority.pem
    assert first.key_pem != second.key_pem


GOOD_NAMES = ["localhost", "a.b-c.svc", "*.example.com", "xn--bcher-kva.example", "1and1.com", "a" * 63 + ".svc"]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_good_name_makes_a_certificate(name: str) -> None:
    assert throwaway_pair([name], [], NOON).certificate_pem


BAD_NAMES = {
    "no name at all": ([], [], "a certificate needs at least one DNS name or IP address"),
    "empty": ([""], [], "'' is not a DNS name"),
    "a space": (["local host"], [], "'local host' is not a DNS name"),
    "a newline at the end": (["localhost\n"], [], r"'localhost\n' is not a DNS name"),
    "an underscore": (["my_host"], [], "'my_host' is not a DNS name"),
    "a dash at an end": (["-host"], [], "'-host' is not a DNS name"),
    "a label of 64": (["a" * 64], [], f"'{'a' * 64}' is not a DNS name"),
    "a name of 255": ([".".join(["a" * 63] * 4)], [], f"'{'.'.join(['a' * 63] * 4)}' is not a DNS name"),
    "a wildcard inside": (["a.*.b"], [], "'a.*.b' is not a DNS name"),
    "not ASCII": (["bücher.example"], [], "'bücher.example' is not a DNS name"),
    "an address as a name": (["10.0.0.1"], [], "'10.0.0.1' is an IP address, not a DNS name"),
    "a name as an address": ([], ["localhost"], "'localhost' is not an IP address"),
    "a network as an address": ([], ["10.0.0.0/8"], "'10.0.0.0/8' is not an IP address"),
    "two problems": (["a b"], ["x"], "'a b' is not a DNS name; 'x' is not an IP address"),
}


@pytest.mark.parametrize(("dns", "ips", "problem"), BAD_NAMES.values(), ids=BAD_NAMES)
def test_a_bad_name_is_told_and_makes_nothing(dns: list[str], ips: list[str], problem: str) -> None:
    with pytest.raises(BadNames) as told:
        throwaway_pair(dns, ips, NOON)
    assert str(told.value) == problem


def modes(directory: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], ids=oct)
def test_the_key_is_readable_by_its_owner_only_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        throwaway_pair(["localhost"], [], NOON).write(tmp_path / "made")
    finally:
        os.umask(before)
    assert modes(tmp_path / "made") == {"ca.crt": 0o644, "tls.crt": 0o644, "tls.key": 0o600}


def test_a_key_that_was_readable_by_all_is_replaced_not_filled(tmp_path: Path) -> None:
    (tmp_path / "tls.key").write_text("old")
    (tmp_path / "tls.key").chmod(0o644)
    with (tmp_path / "tls.key").open() as open_before:
        throwaway_pair(["localhost"], [], NOON).write(tmp_path)
        assert open_before.read() == "old"
    assert modes(tmp_path)["tls.key"] == 0o600


def test_the_command_makes_three_files_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "new" / "tls"
    assert main(["--dir", str(made), "--dns", "localhost", "a.svc", "--dns", "b.svc", "--ip", "127.0.0.1"]) == 0
    assert capsys.readouterr() == (f"{made}/ca.crt\n{made}/tls.crt\n{made}/tls.key\n", "")
    client = trusting((made / "ca.crt").read_bytes())
    with listening(CertificateFolder(made).serving.server_context) as port:
        for name in ("localhost", "a.svc", "b.svc", "127.0.0.1"):
            assert shown(client, port, name)


def test_the_command_refuses_bad_names_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dir", str(tmp_path), "--dns", "a b"]) == 2
    assert capsys.readouterr() == (
        "",
        "python -m certs: 'a b' is not a DNS name: name the server with --dns NAME… and --ip ADDR…\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_cannot_write_and_leaves_nothing_half_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tls.key").mkdir()
    assert main(["--dir", str(tmp_path), "--dns", "localhost"]) == 2
    told = f"python -m certs: can't write {tmp_path}/tls.key: Is a directory: give a writable directory with --dir\n"
    assert capsys.readouterr() == ("", told)
    assert sorted(modes(tmp_path)) == ["ca.crt", "tls.crt", "tls.key"]


def test_the_command_without_a_directory_shows_its_usage() -> None:
    answer = subprocess.run([sys.executable, "-m", "certs"], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == (
        "usage: python -m certs --dir DIR [--dns NAME ...] [--ip ADDR ...]\n"
        "python -m certs: error: the following arguments are required: --dir\n"
    )
