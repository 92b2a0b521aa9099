"""What a Secret should hold, given what it holds: when certificates change, and in what order.

Servers share the Secret and have no leader: each asks the same question, and whoever writes first has answered it for
all. A change of authority never leaves a moment in which a certificate is shown that nobody trusts:

1. announced: the new authority is in `ca.crt`, the old one in `ca-old.crt`, both in every `caBundle`; the certificate
   is still the old authority's;
2. renewed: once every `caBundle` has listed the new authority for a while, it signs a certificate;
3. retired: once no server can be showing an older certificate any more, the old authority goes.

An authority that somebody else put in a `caBundle` takes the place of the old one: there may be a server that shows
what it signed, as after a Secret was emptied, or restored from a backup, or where cert-manager was in charge before.

Clocks differ. A certificate is judged by its own dates and is replaced for its end alone, never because it seems to
begin in the future: so of two servers one renews, and the other finds nothing to do.

`python -m certs.renewal` reads a Situation from stdin and writes a Renewal to stdout, so that keys pass through pipes
and touch no disk. It ends with 2 after one line on stderr where no certificate can be made.
"""

import datetime
import sys
from collections.abc import Iterable, Iterator

import msgspec
from cryptography import x509

from certs import exchange
from certs.authority import Authority, new_authority
from certs.exchange import Renewal, Situation
from certs.reading import (
    Pair,
    authority_of,
    certificates_of,
    der,
    ends_at,
    has_signed,
    made_at,
    normal_name,
    pair_of,
    pem,
)
from certs.serving import BadNames, address, serving_pair

OLD_AUTHORITIES_AT_MOST = 3
"""One is the rule. More come only from bundles that others wrote."""


def renewal(situation: Situation) -> Renewal:
    """What is to be done now; at most one of the steps above. Raises `BadNames`."""
    now, held = situation.now, situation.held
    authority = authority_of(held.get(exchange.AUTHORITY, b""), held.get(exchange.AUTHORITY_KEY, b""))
    pair = pair_of(held.get(exchange.CERTIFICATE, b""), held.get(exchange.KEY, b""))
    announced = _living(certificates_of(held.get(exchange.OLD_AUTHORITIES, b"")), now)
    old = [] if _has_retired(authority, pair, situation) else announced
    carried = list(_carried(situation.bundles, authority, pair))
    change = ""

    if authority is None or ends_at(authority.certificate) <= now:
        change = "repaired" if held or carried else "created"
        old = [*certificates_of(held.get(exchange.AUTHORITY, b"")), *old]
        authority = _new_authority(situation)
    elif _renews_at(authority.certificate, situation) <= now:
        change = "authority-announced"
        old = [authority.certificate, *old]
        authority = _new_authority(situation)
    old = _living(dict.fromkeys([*old, *carried]), now, but=authority.certificate)[:OLD_AUTHORITIES_AT_MOST]
    grown = not set(old) <= set(announced)
    if grown:
        change = change or "repaired"

    if pair is None or _is_done_for(pair, authority, old, situation, grown=grown):
        pair = _new_pair(authority, situation.names or sorted(pair.names if pair else ()), situation)
        change = change or "renewed"
    elif set(old) != set(announced):
        change = change or "authority-retired"
    return _result(change, authority, pair, old, situation)


def _new_authority(situation: Situation) -> Authority:
    return new_authority(situation.now, datetime.timedelta(seconds=situation.lifetimes.authority))


def _new_pair(authority: Authority, names: Iterable[str], situation: Situation) -> Pair:
    dns: list[str] = []
    ips: list[str] = []
    for name in names:
        (dns if address(name) is None else ips).append(name)
    lifetime = datetime.timedelta(seconds=situation.lifetimes.serving)
    made = serving_pair(authority, dns, ips, situation.now, lifetime)
    pair = pair_of(made.certificate_pem, made.key_pem)
    if pair is None:
        raise AssertionError("a pair that was just made cannot be read")
    return pair


def _is_done_for(
    pair: Pair, authority: Authority, old: list[x509.Certificate], situation: Situation, *, grown: bool
) -> bool:
    """Whether another pair takes its place now."""
    if ends_at(pair.certificate) <= situation.now or not pair.names.issuperset(map(normal_name, situation.names)):
        return True
    if has_signed(authority.certificate, pair.certificate):
        # The time for which an old authority stays counts from the newest certificate: it has to be a new one.
        return grown or _renews_at(pair.certificate, situation) <= situation.now
    if any(has_signed(each, pair.certificate) for each in old):
        return not situation.bundles or der(authority.certificate) in situation.trusted
    return True


def _has_retired(authority: Authority | None, pair: Pair | None, situation: Situation) -> bool:
    """Whether no server can be showing any more what an older authority signed."""
    return (
        authority is not None
        and pair is not None
        and has_signed(authority.certificate, pair.certificate)
        and made_at(pair.certificate) + situation.lifetimes.overlap <= situation.now
    )


def _carried(bundles: Iterable[bytes], authority: Authority | None, pair: Pair | None) -> Iterator[x509.Certificate]:
    """What is trusted where our authority is not, and who signed the certificate that is held."""
    ours = None if authority is None else authority.certificate
    for found in map(certificates_of, bundles):
        for each in found:
            if ours not in found or (each != ours and pair is not None and has_signed(each, pair.certificate)):
                yield each


def _renews_at(certificate: x509.Certificate, situation: Situation) -> float:
    """A third before its end, or up to a tenth of that third later: not all who share it come at once."""
    third = (ends_at(certificate) - made_at(certificate)) / 3
    return ends_at(certificate) - third * (1 - situation.late / 10)


def _living(
    found: Iterable[x509.Certificate], now: float, but: x509.Certificate | None = None
) -> list[x509.Certificate]:
    return [each for each in found if ends_at(each) > now and each != but]


def _result(
    change: str, authority: Authority, pair: Pair, old: list[x509.Certificate], situation: Situation
) -> Renewal:
    old_pem = b"".join(map(pem, old))
    data = {
        exchange.AUTHORITY: authority.pem,
        exchange.AUTHORITY_KEY: authority.key_pem,
        exchange.CERTIFICATE: pair.certificate_pem,
        exchange.KEY: pair.key_pem,
    } | ({exchange.OLD_AUTHORITIES: old_pem} if old else {})
    moments = [
        _renews_at(authority.certificate, situation),
        _renews_at(pair.certificate, situation),
        ends_at(pair.certificate),
        *map(ends_at, old),
        *([made_at(pair.certificate) + situation.lifetimes.overlap] if old else ()),
    ]
    return Renewal(
        change=change,
        data=data,
        bundle=authority.pem + old_pem,
        issuer=_issuer(pair, (authority.certificate, *old)),
        held_issuer=_held_issuer(situation),
        starts=pair.certificate.not_valid_before_utc.timestamp(),
        authority_ends=ends_at(authority.certificate),
        again_at=min((moment for moment in moments if moment > situation.now), default=situation.now),
    )


def _held_issuer(situation: Situation) -> bytes:
    held = situation.held
    pair = pair_of(held.get(exchange.CERTIFICATE, b""), held.get(exchange.KEY, b""))
    texts = (held.get(exchange.AUTHORITY, b""), held.get(exchange.OLD_AUTHORITIES, b""), *situation.bundles)
    known = _living((each for text in texts for each in certificates_of(text)), situation.now)
    return b"" if pair is None else _issuer(pair, known)


def _issuer(pair: Pair, among: Iterable[x509.Certificate]) -> bytes:
    """Who of these has signed it (DER); empty: nobody."""
    return next((der(each) for each in among if has_signed(each, pair.certificate)), b"")


def main() -> int:
    """Answer one question. Return 0, or 2 after one line on stderr."""
    situation = msgspec.json.decode(sys.stdin.buffer.read(), type=Situation)
    try:
        answer = renewal(situation)
    except BadNames as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
