"""What becomes of a Secret: step by step, from every state it can be in, by every clock."""

import ipaddress

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from certs.authority import new_authority
from certs.exchange import DAY, KEYS, Lifetimes, Renewal, Situation, certificates_in
from certs.renewal import OLD_AUTHORITIES_AT_MOST, renewal
from certs.serving import BadNames, serving_pair, throwaway_pair
from tests.certs.oracle import refusal

NOON = 1767268800.0  # 2026-01-01T12:00:00Z
NAME = "vacancy.vacancy.svc"
USUAL = Lifetimes()


def asked(  # noqa: PLR0913 - a situation has that many parts
    held: dict[str, bytes],
    now: float,
    bundle: bytes = b"",
    *,
    names: tuple[str, ...] = (NAME,),
    trusted: bytes = b"",
    late: float = 0.0,
) -> Renewal:
    """`trusted`: a bundle whose authorities have been everywhere for long."""
    return renewal(Situation(held, list(names), [bundle], certificates_in(trusted), now, USUAL, late))


FIRST = asked({}, NOON)
RENEWS = NOON + 60 * DAY
AUTHORITY_RENEWS = NOON + USUAL.authority * 2 / 3


def end(pem: bytes) -> float:
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()


# --- Steps ------------------------------------------------------------------------------------------------------------


def test_an_empty_secret_gets_an_authority_and_a_certificate_that_it_vouches_for() -> None:
    assert FIRST.change == "created"
    assert sorted(FIRST.data) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert FIRST.bundle == FIRST.data["ca.crt"]
    assert end(FIRST.data["tls.crt"]) == NOON + 90 * DAY
    assert end(FIRST.data["ca.crt"]) == FIRST.authority_ends == NOON + USUAL.authority
    assert refusal(FIRST.data["tls.crt"], FIRST.bundle, NAME, NOON) == ""


def test_who_signed_what_was_held_is_told_whatever_takes_its_place() -> None:
    assert FIRST.held_issuer == b""
    [ours] = certificates_in(FIRST.data["ca.crt"])
    assert asked(FIRST.data, RENEWS).held_issuer == ours
    stranger = throwaway_pair([NAME], [], NOON)
    theirs = FIRST.data | {"tls.crt": stranger.certificate_pem, "tls.key": stranger.key_pem}
    assert asked(theirs, NOON, FIRST.bundle).held_issuer == b""
    assert [asked(theirs, NOON, stranger.authority_pem).held_issuer] == certificates_in(stranger.authority_pem)
    assert asked(FIRST.data, FIRST.authority_ends).held_issuer == b""


def test_nothing_is_done_until_a_third_of_the_life_is_left() -> None:
    assert FIRST.again_at == RENEWS
    idle = asked(FIRST.data, RENEWS - 1, FIRST.bundle)
    assert (idle.change, idle.data, idle.again_at) == ("", FIRST.data, RENEWS)
    renewed = asked(FIRST.data, RENEWS, FIRST.bundle)
    assert (renewed.change, renewed.bundle) == ("renewed", FIRST.bundle)
    assert {key for key in KEYS if renewed.data.get(key) != FIRST.data.get(key)} == {"tls.crt", "tls.key"}
    assert end(renewed.data["tls.crt"]) == RENEWS + 90 * DAY


@given(st.floats(0, 1))
def test_servers_renew_one_after_the_other_within_a_tenth_of_the_third(late: float) -> None:
    at = asked(FIRST.data, NOON, FIRST.bundle, late=late).again_at
    assert at == pytest.approx(RENEWS + late * 3 * DAY)


def test_an_authority_is_announced_then_used_then_the_old_one_goes() -> None:
    held, bundle = asked(FIRST.data, AUTHORITY_RENEWS - DAY, FIRST.bundle).data, FIRST.bundle
    leaf = held["tls.crt"]

    announced = asked(held, AUTHORITY_RENEWS, bundle)
    assert announced.change == "authority-announced"
    assert announced.data["tls.crt"] == leaf
    assert announced.data["ca-old.crt"] == held["ca.crt"]
    assert announced.bundle == announced.data["ca.crt"] + held["ca.crt"]
    held, old, bundle = announced.data, bundle, announced.bundle

    assert asked(held, AUTHORITY_RENEWS + 1, old).change == ""  # announced in the Secret, and nowhere else
    assert asked(held, AUTHORITY_RENEWS + 1, bundle).change == ""  # everywhere, but not for long

    renewed = asked(held, AUTHORITY_RENEWS + 60, bundle, trusted=bundle)
    assert (renewed.change, renewed.bundle) == ("renewed", bundle)
    assert renewed.data["tls.crt"] != leaf
    assert refusal(renewed.data["tls.crt"], renewed.data["ca.crt"], NAME, AUTHORITY_RENEWS + 60) == ""
    held = renewed.data

    assert renewed.again_at == AUTHORITY_RENEWS + 60 + USUAL.overlap
    assert asked(held, renewed.again_at - 1, bundle, trusted=bundle).change == ""
    retired = asked(held, renewed.again_at, bundle, trusted=bundle)
    assert (retired.change, retired.bundle) == ("authority-retired", held["ca.crt"])
    assert "ca-old.crt" not in retired.data
    assert retired.data["tls.crt"] == renewed.data["tls.crt"]


def test_an_announced_authority_that_is_never_trusted_waits_until_the_certificate_ends() -> None:
    held = asked(FIRST.data, AUTHORITY_RENEWS - DAY, FIRST.bundle).data
    announced = asked(held, AUTHORITY_RENEWS, FIRST.bundle)
    ends = end(announced.data["tls.crt"])
    assert asked(announced.data, ends - 1, FIRST.bundle).change == ""
    assert asked(announced.data, ends, FIRST.bundle).change == "renewed"


def test_a_new_name_makes_a_new_certificate_and_one_name_less_does_not() -> None:
    more = asked(FIRST.data, NOON + 1, FIRST.bundle, names=(NAME, "::0001", "10.0.0.1", "Other.svc"))
    assert (more.change, more.bundle) == ("renewed", FIRST.bundle)
    san = x509.load_pem_x509_certificate(more.data["tls.crt"]).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert san.value.get_values_for_type(x509.DNSName) == [NAME, "Other.svc"]
    assert san.value.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address(a) for a in ("::1", "10.0.0.1")]
    for names in ((NAME, "::1"), ("other.svc",), ()):
        assert asked(more.data, NOON + 2, FIRST.bundle, names=names).change == ""


def test_a_certificate_is_renewed_for_its_own_names_where_no_others_are_known() -> None:
    renewed = asked(FIRST.data, RENEWS, names=())
    assert refusal(renewed.data["tls.crt"], renewed.bundle, NAME, RENEWS) == ""
    with pytest.raises(BadNames):
        asked({}, NOON, names=())


# --- States of the Secret that nobody wanted --------------------------------------------------------------------------

STRANGER = throwaway_pair([NAME], [], NOON)
OTHER = asked({}, NOON)
LATER = asked(FIRST.data, NOON + 1, FIRST.bundle, names=(NAME, "other.svc"))
EXPIRED_AUTHORITY = asked({}, NOON - 6 * USUAL.authority)


def without(key: str) -> dict[str, bytes]:
    return {name: content for name, content in FIRST.data.items() if name != key}


SPOILT: dict[str, tuple[dict[str, bytes], str]] = {
    "emptied": ({}, "repaired"),
    "all is garbage": (dict.fromkeys(KEYS, b"garbage"), "repaired"),
    "all is empty": (dict.fromkeys(KEYS, b""), "repaired"),
    "the authority's key is gone": (without("ca.key"), "repaired"),
    "the authority is gone": (without("ca.crt"), "repaired"),
    "the authority has another key": (FIRST.data | {"ca.key": OTHER.data["ca.key"]}, "repaired"),
    "the authority's key is half-written": (FIRST.data | {"ca.key": FIRST.data["ca.key"][:90]}, "repaired"),
    "the authority is another one": (
        FIRST.data | {key: OTHER.data[key] for key in ("ca.crt", "ca.key")},
        "repaired",
    ),
    "the authority is a server's certificate": (
        FIRST.data | {"ca.crt": FIRST.data["tls.crt"], "ca.key": FIRST.data["tls.key"]},
        "repaired",
    ),
    "restored from a backup of another authority": (OTHER.data, "repaired"),
    "the authority has ended": (EXPIRED_AUTHORITY.data, "repaired"),
    "the certificate is gone": (without("tls.crt"), "renewed"),
    "the key is gone": (without("tls.key"), "renewed"),
    "the certificate is half-written": (FIRST.data | {"tls.crt": FIRST.data["tls.crt"][:200]}, "renewed"),
    "half a certificate before a whole one": (
        FIRST.data | {"tls.crt": FIRST.data["tls.crt"][:200] + b"\n" + FIRST.data["tls.crt"]},
        "renewed",
    ),
    "the key is that of an older certificate": (LATER.data | {"tls.key": FIRST.data["tls.key"]}, "renewed"),
    "the pair is a stranger's": (
        FIRST.data | {"tls.crt": STRANGER.certificate_pem, "tls.key": STRANGER.key_pem},
        "renewed",
    ),
    "the old authorities are garbage": (FIRST.data | {"ca-old.crt": b"garbage"}, ""),
}


@pytest.mark.parametrize("state", SPOILT)
def test_whatever_the_secret_holds_it_is_mended_and_what_others_serve_stays_trusted(state: str) -> None:
    held, change = SPOILT[state]
    mended = asked(held, NOON + DAY, FIRST.bundle)
    assert mended.change == change
    assert refusal(mended.data["tls.crt"], mended.bundle, NAME, NOON + DAY) == ""
    assert refusal(FIRST.data["tls.crt"], mended.bundle, NAME, NOON + DAY) == ""
    assert set(mended.data) <= set(KEYS)

    # It is mended once and for all, and the change ends as every other.
    assert asked(mended.data, NOON + DAY, FIRST.bundle).change == ""
    assert asked(mended.data, NOON + DAY, mended.bundle).change == ""
    held, bundle, now = mended.data, mended.bundle, NOON + DAY + 60
    for _ in range(3):
        then = asked(held, now, bundle, trusted=bundle)
        assert refusal(then.data["tls.crt"], bundle, NAME, now) == ""
        held, bundle, now = then.data, then.bundle, now + USUAL.overlap
    assert len(certificates_in(bundle)) == 1
    assert refusal(held["tls.crt"], bundle, NAME, now) == ""


def test_a_certificate_still_signed_by_an_authority_that_lost_its_key_is_kept_until_the_new_one_is_trusted() -> None:
    mended = asked(without("ca.key"), NOON + DAY, FIRST.bundle)
    assert mended.data["tls.crt"] == FIRST.data["tls.crt"]
    later = asked(mended.data, NOON + 2 * DAY, mended.bundle, trusted=mended.bundle)
    assert later.data["tls.crt"] != FIRST.data["tls.crt"]


def test_a_signer_that_the_secret_forgot_is_found_in_the_bundle() -> None:
    held = asked(FIRST.data, AUTHORITY_RENEWS - DAY, FIRST.bundle).data
    announced = asked(held, AUTHORITY_RENEWS, FIRST.bundle)
    forgotten = {key: content for key, content in announced.data.items() if key != "ca-old.crt"}
    mended = asked(forgotten, AUTHORITY_RENEWS, announced.bundle)
    assert (mended.change, mended.data) == ("repaired", announced.data)


def test_an_old_authority_that_a_person_takes_out_of_the_secret_is_trusted_no_more() -> None:
    taken_over = asked({}, NOON, STRANGER.authority_pem)
    taken_out = {key: content for key, content in taken_over.data.items() if key != "ca-old.crt"}
    then = asked(taken_out, NOON + 1, taken_over.bundle)
    assert (then.change, then.bundle) == ("", taken_over.data["ca.crt"])


def test_what_somebody_else_had_trusted_is_trusted_until_the_overlap_is_over() -> None:
    taken_over = asked({}, NOON, STRANGER.authority_pem)
    assert taken_over.change == "repaired"
    assert refusal(STRANGER.certificate_pem, taken_over.bundle, NAME, NOON) == ""
    over = asked(taken_over.data, NOON + USUAL.overlap, taken_over.bundle)
    assert (over.change, over.bundle) == ("authority-retired", taken_over.data["ca.crt"])


def test_bundles_that_cannot_be_written_grow_nothing_and_renew_nothing() -> None:
    foreign = b"".join(new_authority(NOON).pem for _ in range(OLD_AUTHORITIES_AT_MOST + 2))
    held = asked({}, NOON, foreign).data
    assert len(certificates_in(held["ca-old.crt"])) == OLD_AUTHORITIES_AT_MOST
    for days in (0, 1, 8, 30, 59):
        assert asked(held, NOON + days * DAY, foreign).change == ""


def test_a_bundle_of_garbage_is_a_bundle_of_nothing() -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    for bundle in (b"garbage", broken, broken + FIRST.bundle):
        assert asked(FIRST.data, NOON, bundle).change == ""


# --- Clocks -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-2 * DAY, 2 * DAY), min_size=2, max_size=4), st.sampled_from([0.0, RENEWS, AUTHORITY_RENEWS]))
def test_servers_whose_clocks_differ_by_days_change_once_and_then_agree(skews: list[float], moment: float) -> None:
    now = moment + 3 * DAY if moment else NOON
    held: dict[str, bytes] = asked(FIRST.data, AUTHORITY_RENEWS - 10 * DAY).data if moment > RENEWS else {}
    held = FIRST.data if moment == RENEWS else held
    bundle = b"" if not held else FIRST.bundle
    changes = []
    for _ in range(3):
        for skew in skews:
            step = asked(held, now + skew, bundle)
            held, bundle = step.data, step.bundle
            changes.append(step.change)
    assert [each for each in changes if each] == [
        {0.0: "created", RENEWS: "renewed"}.get(moment, "authority-announced")
    ]


def test_a_certificate_that_seems_to_begin_in_the_future_is_left_alone() -> None:
    ahead = asked(FIRST.data, RENEWS + 30 * DAY, FIRST.bundle)
    assert asked(ahead.data, RENEWS, FIRST.bundle).change == ""
    assert ahead.starts == RENEWS + 30 * DAY - 300


def test_a_certificate_never_outlives_its_authority() -> None:
    authority = new_authority(NOON)
    late = authority.certificate.not_valid_after_utc.timestamp() - DAY
    assert end(serving_pair(authority, [NAME], [], late).certificate_pem) == late + DAY
