"""One line of an audit log: an event of the API server, and in it what Vacancy found when the pod was created.

The API server writes an event for each stage of a request; only the last stage knows how it ended. Annotations are
prefixed by the webhook that gave them, one webhook for each mode, under names the platform team may choose.
"""

import enum
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated
from urllib.parse import parse_qs

import msgspec

from app.dra import explain, verdict
from app.dra.explain import Audience
from app.dra.objects import Value, View
from app.dra.quantity import parse_quantity
from app.dra.reasons import Reason

_FINAL_STAGES = frozenset({"ResponseComplete", "Panic"})

_CREATES = frozenset({"create", "patch"})
"""A server-side apply is a patch, also when it creates; an update of a pod is never shown to us."""

_SILENT = "audit."
"""How a webhook's name starts whose mode says nothing to anybody."""

_VERDICT, _REASON, _RESOLVED = "/verdict", "/reason", "/resolved"

_LONGEST_QUANTITY = 40
"""Characters; a memory has five."""

_MOST_DEVICES = 10**12
"""Of one pod; what is more was not meant, and a sum of it could be too long to print."""

_VERDICTS, _REASONS = frozenset(verdict.Outcome), frozenset(Reason)


class NotAnEvent(ValueError):
    """A line that is no audit event: another format, or half of one."""


class PodOutcome(enum.StrEnum):
    """What became of the request to create a pod."""

    ADMITTED = "admitted"
    """Created, and nothing was said."""
    WARNED = "warned"
    """Created, with a warning."""
    REFUSED = "refused"
    """By Vacancy."""
    FAILED = "failed"
    """Not created, for a reason that is not ours: a quota, a name that is taken, another webhook."""


class Meaning(Value, frozen=True):
    """What one device stood for when it was asked for."""

    name: str
    """Extended resource; empty: asked for by class, in a claim. Only the pod knows how it calls its claims."""
    class_name: str
    """Empty: not known, as where a device plugin may serve the name."""
    drivers: tuple[str, ...]
    memory: tuple[str, str] | None
    """Smallest and largest among the matching devices; None: not known."""


class Ask(Value, frozen=True):
    """What a pod asked for under one meaning."""

    meaning: Meaning
    count: int
    devices: int | None
    """That matched, free or not; None: not known."""


class Review(Value, frozen=True):
    """One judged pod."""

    identity: tuple[str, str]
    """The same in every copy of the event. An audit ID alone is what the client likes it to be."""
    time: str
    """RFC 3339, as the API server writes it."""
    namespace: str
    outcome: PodOutcome
    reason: Reason
    asks: tuple[Ask, ...]
    dry_run: bool
    readable: bool
    """False: its asks are in a form we do not know, and left out."""


class _ObjectReference(View, frozen=True):
    resource: str = ""
    subresource: str = ""
    api_group: str = ""
    namespace: str = ""


class _ResponseStatus(View, frozen=True):
    code: int
    message: str = ""


class Event(View, frozen=True):
    """The part of an audit event that is read here, at any level."""

    audit_id: str = msgspec.field(name="auditID")
    stage: str
    verb: str = ""
    request_uri: str = msgspec.field(name="requestURI", default="")
    object_ref: _ObjectReference | None = None
    response_status: _ResponseStatus | None = None
    stage_timestamp: str = ""
    annotations: dict[str, str] | None = None

    def creates_pod(self) -> bool:
        """Whether this is the end of a request that creates a pod, or patches one."""
        target = self.object_ref
        return (
            self.verb in _CREATES
            and self.stage in _FINAL_STAGES
            and target is not None
            and target.resource == "pods"
            and not target.subresource
            and not target.api_group
        )


class _Resolved(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """What `resolved` says of one name."""

    count: Annotated[int, msgspec.Meta(ge=0, le=_MOST_DEVICES)]
    class_name: str = ""
    drivers: tuple[str, ...] = ()
    devices: Annotated[int, msgspec.Meta(ge=0, le=_MOST_DEVICES)] | None = None
    memory: tuple[str, str] | None = None


_event = msgspec.json.Decoder(Event)
_resolved = msgspec.json.Decoder(dict[str, _Resolved])


def event(line: bytes) -> Event:
    """The event in a line. Raises NotAnEvent."""
    try:
        return _event.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotAnEvent(str(error)) from error


def review(of: Event) -> Review | None:
    """What the event says of a judged pod; None: Vacancy was not asked about it, or did not judge it."""
    notes, target, status = of.annotations or {}, of.object_ref, of.response_status
    webhooks = sorted(_webhooks(notes))
    if not webhooks or target is None or status is None:
        return None
    # Two installations may both be asked; what the refusal names decides.
    webhook = max(webhooks, key=lambda name: _denied_by(name, status))
    reason = Reason(notes[webhook + _REASON])
    asks = _asks(notes.get(webhook + _RESOLVED, "{}"))
    return Review(
        identity=(of.audit_id, of.stage_timestamp),
        time=of.stage_timestamp,
        namespace=target.namespace,
        outcome=_outcome(webhook, verdict.Outcome(notes[webhook + _VERDICT]), reason, status),
        reason=reason,
        asks=asks or (),
        dry_run=bool(parse_qs(of.request_uri.partition("?")[2]).get("dryRun")),
        readable=asks is not None,
    )


def _webhooks(notes: Mapping[str, str]) -> Iterator[str]:
    """Names of the webhooks that speak as we do: the closed lists tell them from others with the same keys."""
    for key, word in notes.items():
        name = key.removesuffix(_VERDICT)
        if name != key and word in _VERDICTS and notes.get(name + _REASON) in _REASONS:
            yield name


def _denied_by(webhook: str, status: _ResponseStatus) -> bool:
    return status.message.startswith(f'admission webhook "{webhook}" denied the request')


def _outcome(webhook: str, found: verdict.Outcome, reason: Reason, status: _ResponseStatus) -> PodOutcome:
    if _denied_by(webhook, status):
        return PodOutcome.REFUSED
    if not 200 <= status.code < 300:  # noqa: PLR2004 - HTTP's successes
        return PodOutcome.FAILED
    return PodOutcome.WARNED if _warns(found, reason) and not webhook.startswith(_SILENT) else PodOutcome.ADMITTED


@lru_cache
def _warns(found: verdict.Outcome, reason: Reason) -> bool:
    """Whether who submits a pod is told; not recorded, but it follows from the reason."""
    need = verdict.NeedVerdict("", "", 1, found, reason)
    return bool(explain.warnings(verdict.Verdict(found, reason, (need,)), Audience(), 0.0))


def _asks(text: str) -> tuple[Ask, ...] | None:
    """The asks in `resolved`, those of one meaning as one; None: not readable."""
    try:
        found = _resolved.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    asks: dict[Meaning, Ask] = {}
    for name, one in found.items():
        # A claim's entry is called POD'S NAME FOR IT/REQUEST, both without dots; a resource belongs to a domain.
        resource = name if "." in name.partition("/")[0] else ""
        meaning = Meaning(resource, one.class_name, one.drivers, _memory(one.memory))
        before = asks.get(meaning)
        asks[meaning] = Ask(meaning, one.count + (before.count if before else 0), one.devices)
    return tuple(asks.values())


def _memory(written: tuple[str, str] | None) -> tuple[str, str] | None:
    try:
        return written and (_shortest(written[0]), _shortest(written[1]))
    except ValueError:
        return None


@lru_cache
def _shortest(quantity: str) -> str:
    """Its one form, so that 80Gi and 81920Mi are the same. Raises ValueError."""
    text = str(parse_quantity(quantity))
    if len(text) > _LONGEST_QUANTITY:
        raise ValueError(f"quantity of {len(text)} characters")
    return text
