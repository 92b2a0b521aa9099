"""Certificates of our own: in a Secret that all replicas share, trusted by what sends to us, renewed by who is first.

`certs.renewal` decides what is to be done, here it is done. Every look reads the configurations first and the Secret
after them, and writes only what has not changed since: so nobody publishes a bundle older than one that is there.

Nothing that goes wrong takes a good certificate away. It is served until a better one is in the Secret and trusted,
whether or not the API server, the Secret and the process that signs can be reached; and who has none to serve serves
the one in the Secret, whether or not it can be renewed.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import msgspec

from app import mistakes, signing
from app.cluster.certificate_secret import CertificateSecret, Configuration
from app.cluster.client import ApiError, Conflict
from app.metrics import CertificateCounts
from app.tls.serving import Pair, ServingCertificate, UnusableCertificate, loaded_pair
from certs.exchange import CERTIFICATE, CHANGES, KEY, KEYS, Lifetimes, Renewal, Situation, certificates_in

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """How often we look and how long things last, in seconds. A value, for the tests; users have no say in it."""

    first_look: float = 1.0
    """Between looks while something is missing; doubled up to `look`."""
    look: float = 5.0
    """Between looks at three small objects. For so long at most no pod is refused after a `caBundle` was emptied."""
    settle: float = 60.0
    """From when an authority is in every `caBundle` to its first use: each API server learns of it by itself."""
    lifetimes: Lifetimes = field(default_factory=Lifetimes)


class SelfManaged:
    """What one replica does about the certificates of all, for as long as `follow` runs; `serving` shows the result."""

    def __init__(
        self, secret: CertificateSecret, timing: Timing | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.serving = ServingCertificate()
        self._secret, self._timing, self._now = secret, timing or Timing(), now
        self._late = random.random()  # noqa: S311 - no secret
        self._answered: tuple[Situation, Renewal] | None = None
        self._trusted: dict[bytes, float] = {}
        """Authorities (DER) that every webhook trusts, since when."""
        self._shown, self._issuer = (b"", b""), b""
        self._authority_ends: float | None = None
        self._outcomes = dict.fromkeys((*CHANGES, "conflict", "failed"), 0)
        self._problem = "not looked yet"
        self._in_step = self._was_trusted = False

    async def follow(self) -> NoReturn:
        """Look again and again, until cancelled; sooner where something is missing."""
        timing, pause = self._timing, self._timing.first_look
        while True:
            before = self._problem
            await self.look()
            if self._problem not in ("", before):
                _log.warning("certificates not in step", extra={"facts": {"problem": self._problem}})
            elif before and not self._problem:
                _log.info("certificates in step", extra={"facts": {"ends": self.serving.ends}})
            if not self._problem:
                pause = timing.first_look  # what was written just now has to be seen
            seconds = timing.look if self._in_step else pause
            await asyncio.sleep(seconds * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
            if self._problem:
                pause = min(pause * 2, timing.look)

    async def look(self) -> None:
        """Look once, and do what is to be done; what went wrong is told by `missing`."""
        try:
            self._problem = await self._do()
        except Conflict:
            self._outcomes["conflict"] += 1  # somebody else was first, and what they did is there at the next look
            self._in_step = False
        except (ApiError, signing.NotSigned, UnusableCertificate) as error:
            self._outcomes["failed"] += 1
            self._problem, self._in_step = str(error), False
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not end the server, which has a certificate
            self._outcomes["failed"] += 1
            self._note_mistake(error)

    def missing(self) -> str:
        """What readiness lacks; empty: who sends to us accepts what is shown, as far as is known."""
        missing = self.serving.missing(self._now()) or ("" if self._was_trusted else "not trusted yet")
        return f"{missing}: {self._problem}" if missing and self._problem else missing

    def counts(self) -> CertificateCounts:
        """What a scrape is told."""
        ends = {"serving": self.serving.not_after, "ca": self._authority_ends}
        return CertificateCounts(ends, self._outcomes, self._in_step)

    async def _do(self) -> str:
        """One look; what is missing that others have to bring."""
        configurations = await self._secret.configurations()
        held = await self._secret.read(KEYS)
        bundles = [bundle for each in configurations for bundle in each.bundles.values()]
        self._note_trusted(bundles)
        self._show_held(held.data)
        names = sorted({server for each in configurations for server in each.servers})
        absent = ", ".join(sorted({*self._secret.names}.difference(each.name for each in configurations)))
        problem = f"no ValidatingWebhookConfiguration {absent}" if absent else ""
        if not names and CERTIFICATE not in held.data:
            self._in_step = False
            return problem or "no webhook in the configurations"  # whose names would be in the certificate?
        renewal = await self._renewal(dict(held.data), names, bundles)
        if renewal.held_issuer and not self._issuer and _pair_in(held.data) == self._shown:
            self._note_issuer(renewal.held_issuer, bundles)
        if renewal.change:
            await self._secret.write(held, renewal.data)
            self._outcomes[renewal.change] += 1
            _log.info("certificates written", extra={"facts": {"change": renewal.change}})
        self._authority_ends = renewal.authority_ends
        self._show(renewal, bundles)
        self._in_step = not absent and all(bundle == renewal.bundle for bundle in bundles)
        await self._publish(configurations, renewal.bundle)
        return problem

    async def _renewal(self, held: dict[str, bytes], names: list[str], bundles: list[bytes]) -> Renewal:
        """The answer to what is the case now; the last one where nothing has changed and no time has come."""
        now, timing = self._now(), self._timing
        settled = sorted(each for each, since in self._trusted.items() if since + timing.settle <= now)
        asked = Situation(held, names, bundles, settled, 0.0, timing.lifetimes, self._late)
        if self._answered is not None and self._answered[0] == asked and now < self._answered[1].again_at:
            return self._answered[1]
        answer = await signing.renewal(msgspec.structs.replace(asked, now=now))
        self._answered = (asked, answer)
        return answer

    async def _publish(self, configurations: Iterable[Configuration], bundle: bytes) -> None:
        """Have them trust this bundle; one that cannot be written does not keep the others from it."""
        failure: ApiError | None = None
        for each in configurations:
            if any(trusted != bundle for trusted in each.bundles.values()):
                try:
                    await self._secret.publish(each, bundle)
                except ApiError as error:
                    failure = failure or error
        if failure is not None:
            raise failure

    def _note_trusted(self, bundles: list[bytes]) -> None:
        now, everywhere = self._now(), [set(certificates_in(bundle)) for bundle in bundles]
        self._trusted = {each: self._trusted.get(each, now) for each in set.intersection(*everywhere or [set()])}

    def _note_issuer(self, issuer: bytes, bundles: list[bytes]) -> None:
        self._issuer = issuer
        self._was_trusted |= not bundles or issuer in self._trusted

    def _note_mistake(self, error: Exception) -> None:
        """Once in a row."""
        problem = type(error).__name__
        if problem != self._problem:
            facts = {"problem": mistakes.place(error)}
            _log.error("exception while looking after certificates", extra={"facts": facts})
        self._problem, self._in_step = problem, False

    def _show_held(self, held: Mapping[str, bytes]) -> None:
        """Show what the Secret holds if there is nothing better: the next steps may fail for as long as it lasts.

        Who signed it is told by the process that signs. Until then nobody is taken to trust it: it is shown to whoever
        calls, but readiness does not vouch for it.
        """
        pair, now = _pair_in(held), self._now()
        if pair == self._shown or not self.serving.missing(now):
            return
        with contextlib.suppress(UnusableCertificate):  # it will be mended
            loaded = loaded_pair(*pair, "the Secret")
            if now < loaded.not_after:
                self._serve(loaded, pair)
                self._issuer, self._was_trusted = b"", False

    def _show(self, renewal: Renewal, bundles: list[bytes]) -> None:
        pair = _pair_in(renewal.data)
        # Of what nobody is known to have signed, nothing is lost.
        is_good = self._issuer != b"" and not self.serving.missing(self._now())
        if pair != self._shown and not (is_good and self._is_better_kept(renewal, bundles)):
            self._serve(loaded_pair(*pair, "the Secret"), pair)
            self._issuer = renewal.issuer
        self._note_issuer(self._issuer, bundles)

    def _serve(self, loaded: Pair, pair: tuple[bytes, bytes]) -> None:
        self.serving.show(loaded)
        self._shown = pair
        _log.info("certificate served", extra={"facts": {"ends": self.serving.ends}})

    def _is_better_kept(self, renewal: Renewal, bundles: list[bytes]) -> bool:
        """Whether the certificate shown, which is good, is not yet to be replaced by the one in the Secret."""
        now = self._now()
        if renewal.starts > now:  # its maker's clock is ahead of ours, or of the API server's
            return True
        if renewal.issuer == self._issuer or not bundles:
            return False
        since = self._trusted.get(renewal.issuer)
        return since is None or (self._issuer in self._trusted and since + self._timing.settle > now)


def _pair_in(data: Mapping[str, bytes]) -> tuple[bytes, bytes]:
    return data.get(CERTIFICATE, b""), data.get(KEY, b"")
