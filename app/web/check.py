"""`POST /api/v1/check`: a manifest comes in, the report of its pods goes out. Nothing is created.

The text may come from anybody, and reviews run in the same process: few texts are here at once, each is parsed in a
thread, what its pods name is read by a reader of its own, and one after the other its pods are judged and told.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from app.dra.demand import REQUESTS_AT_MOST, ClaimReferences, Lookups, claim_references
from app.dra.explain import Audience
from app.dra.judgement import World
from app.presubmit.asked import Asked, each_asked, is_claim
from app.presubmit.manifest import ManifestError, parse
from app.presubmit.overlay import Overlay, overlay
from app.web.admit import SECOND_LOOK_SECONDS, Reader, until_counted
from app.web.question import answer
from app.web.table import in_pieces

MAX_BYTES = 1024 * 1024
"""Of one submitted text: people and pipelines submit a few objects of some kilobytes each."""

MAX_PODS = 500
"""In one submitted text: each is judged, and its answer of a kilobyte is kept until the last one is there."""

MAX_TEMPLATE_BYTES = 2 * 1024 * 1024
"""Of the pods of templates in one text: what all of them inherit is written once, and each has it."""

MAX_ASKS = 1100
"""Of one pod, in containers, amounts of resources, and requests its claims may hold: the 32 claims a pod may have are
1,024. It is judged in one piece, for which reviews wait: 25 ms (measured on a busy machine)."""

MAX_ASKS_OF_TEXT = 20 * MAX_ASKS
"""Of all its pods together: 500 pods with a claim each have 18,000."""

MAX_NAMES = 256
"""Claims and templates that one text may name: each is a call to the API server."""

MAX_CLAIM_BYTES = 64 * 1024
"""Of one claim or template in the text, as JSON: it is read again for each entry of a pod that names it."""

MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""500 pods are half a megabyte. A client reads no more than 64 MiB (`app.server.LONGEST`)."""

AT_ONCE = 8
"""Texts that are received, looked at or told of."""

WAITING_AT_MOST = 16
"""Texts that wait for it; nothing of them is read yet."""

_PARSED_AT_ONCE = 2


class Unreadable(Exception):
    """A text that is no manifest, or beyond a limit. The message is for the person who sent it."""


class Busy(Exception):
    """Too many are asking."""


class Checker:
    """The check, as a function of a text and the namespace for objects that name none; see `turn`."""

    def __init__(
        self, *, world: Callable[[], World], reader: Reader, now: Callable[[], float], audience: Audience
    ) -> None:
        self._world, self._reader, self._now, self._audience = world, reader, now, audience
        self._turns, self._waiting = asyncio.Semaphore(AT_ONCE), 0
        self._parsing = asyncio.Semaphore(_PARSED_AT_ONCE)
        self._judging = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """What a text is received and looked at within. Raises Busy."""
        if self._waiting >= WAITING_AT_MOST:
            raise Busy
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()

    async def __call__(self, body: bytes, namespace: str) -> tuple[bytes, ...]:
        """The `Report` for a YAML or JSON text, as JSON in pieces. Raises Unreadable."""
        try:
            async with self._parsing:
                text = await asyncio.to_thread(_text, body, namespace)
        except ManifestError as error:
            raise Unreadable(str(error)) from error
        found = await asyncio.gather(*(self._reader.lookups(*each) for each in text.references.items()))
        known = {each: text.given.over(each, read) for each, read in zip(text.references, found, strict=True)}
        async with self._judging:
            report = await self._report(text.pods, known)
            if self._world().witness.tallies.counts_soon():  # what the text was the first to ask for
                await until_counted(self._world, SECOND_LOOK_SECONDS)
                report = await self._report(text.pods, known)
        return report

    async def _report(self, pods: Iterable[Asked], known: Mapping[str, Lookups]) -> tuple[bytes, ...]:
        """By namespace what is `known` of what the pods name."""
        pieces, room = [b'{"checks":['], MAX_ANSWER_BYTES
        async for pod in in_pieces(pods):
            lookups = known.get(pod.namespace, _NO_LOOKUPS)
            check = msgspec.json.encode(answer(pod, lookups, self._world(), self._audience, self._now()))
            room -= len(check)
            if room < 0:
                raise Unreadable(f"the answer would be longer than {MAX_ANSWER_BYTES} bytes, send fewer pods")
            pieces.append(b"," + check if len(pieces) > 1 else check)
        return (*pieces, b"]}")


_NO_LOOKUPS = Lookups({}, {})


@dataclass(frozen=True, slots=True)
class _Text:
    """What a text within the limits asks."""

    pods: tuple[Asked, ...]
    given: Overlay
    """Claims and templates in the text count as existing."""
    references: dict[str, ClaimReferences]
    """What the pods of a namespace name."""


def _text(body: bytes, namespace: str) -> _Text:
    """Raises ManifestError, Unreadable."""
    documents = parse(body, "manifest", MAX_BYTES)
    if any(len(each.json) > MAX_CLAIM_BYTES for each in filter(is_claim, documents)):
        raise Unreadable(f"a claim or claim template is more than {MAX_CLAIM_BYTES} bytes")
    pods = _few(each_asked(documents, namespace))
    return _Text(pods, overlay(documents, namespace), _references(pods))


def _few(pods: Iterable[Asked]) -> tuple[Asked, ...]:
    """The pods, of which no more are made than there may be. Raises Unreadable."""
    few: list[Asked] = []
    template_bytes = asks = 0
    for pod in pods:
        few.append(pod)
        template_bytes += pod.template_bytes
        asks += (of_pod := _asks(pod))
        if len(few) > MAX_PODS:
            raise Unreadable(f"more than {MAX_PODS} pods")
        if template_bytes > MAX_TEMPLATE_BYTES:
            raise Unreadable(f"the pods of its templates are more than {MAX_TEMPLATE_BYTES} bytes")
        if of_pod > MAX_ASKS:
            raise Unreadable(f"a pod asks for up to {of_pod} resources and devices, more than the limit of {MAX_ASKS}")
        if asks > MAX_ASKS_OF_TEXT:
            raise Unreadable(f"its pods ask for more than {MAX_ASKS_OF_TEXT} resources and devices")
    return tuple(few)


def _references(pods: Iterable[Asked]) -> dict[str, ClaimReferences]:
    """What the pods of each namespace name, each name once. Raises Unreadable."""
    claims: dict[str, dict[str, None]] = defaultdict(dict)
    templates: dict[str, dict[str, None]] = defaultdict(dict)
    for pod in pods:
        if pod.pod.spec.resource_claims:
            named = claim_references(pod.pod)
            claims[pod.namespace] |= dict.fromkeys(named.claims)
            templates[pod.namespace] |= dict.fromkeys(named.templates)
    if sum(map(len, (*claims.values(), *templates.values()))) > MAX_NAMES:
        raise Unreadable(f"its pods name more than {MAX_NAMES} claims and claim templates")
    return {each: ClaimReferences(tuple(claims[each]), tuple(templates[each])) for each in claims}


def _asks(asked: Asked) -> int:
    """What judging the pod costs, in amounts and device requests it may look at."""
    spec = asked.pod.spec
    resources = [each.resources for each in (*spec.containers, *(spec.init_containers or ()))]
    amounts = sum(len(each.limits or ()) + len(each.requests or ()) for each in resources if each)
    return len(resources) + amounts + len(spec.resource_claims or ()) * REQUESTS_AT_MOST
