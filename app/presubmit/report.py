"""The report of a pre-submit check: a verdict as JSON, one entry for every pod or pod template, and the exit code."""

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from app.dra.explain import Audience, options, sentence
from app.dra.verdict import NeedVerdict, Outcome, Verdict
from app.presubmit.asked import Asked

EXIT_CODES = {Outcome.FULL: 1, Outcome.NEVER: 4, Outcome.UNKNOWN: 0, Outcome.ROOM: 0}
"""Of `vacancy check`, the outcome that decides first. 2 and 3 are kept for bad usage and for no answer."""
EXIT_CODE_UNKNOWN_STRICT = 5


class AskReport(Struct, frozen=True, rename="camel"):
    """One need of a pod. A count that is not known is null."""

    name: str
    class_: str
    count: int
    field: str
    free: int | None
    total: int | None
    pools: int | None
    largest_free_block: int | None
    reason: str


class VerdictReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer for one pod."""

    verdict: str
    """`room`, `full`, `never` or `unknown`."""
    reason: str
    message: str
    asks: tuple[AskReport, ...]
    source: str
    """What the answer rests on: `pool-status`, `witness` or `both`; empty when nothing was judged."""
    snapshot_time: str | None
    """When the devices were counted (RFC 3339, UTC); null with the witness alone."""
    age_seconds: float | None
    options: tuple[str, ...]
    """Ways out, for people."""


class Check(VerdictReport, frozen=True, rename="camel"):
    """The answer, and the object it is for."""

    name: str
    namespace: str
    kind: str
    template: str
    """Where in a custom resource the pod template is, as in `spec.template`; empty for other kinds."""


class Report(Struct, frozen=True):
    """The answers for a submitted text, in its order."""

    checks: tuple[Check, ...]


def check(asked: Asked, verdict: Verdict, audience: Audience, now: float, undeclared: tuple[str, ...] = ()) -> Check:
    """One entry of the report; `undeclared`: see `explain.sentence`."""
    audience = replace(audience, namespace=asked.namespace)
    message = sentence(verdict, audience, now, undeclared)
    counted_at = verdict.snapshot_time
    return Check(
        name=asked.name,
        namespace=asked.namespace,
        kind=asked.kind,
        template=asked.template,
        verdict=verdict.outcome,
        reason=verdict.reason,
        message=f"{message} This is for {asked.note}." if asked.note else message,
        asks=tuple(_ask(need) for need in verdict.needs),
        source=verdict.source,
        snapshot_time=None if counted_at is None else timestamp(counted_at),
        age_seconds=None if counted_at is None else max(0.0, round(now - counted_at, 1)),
        options=options(verdict, audience),
    )


def exit_code(outcomes: Iterable[Outcome], *, strict: bool) -> int:
    """Exit code of `vacancy check`: the first of full, never, unknown (if `strict`), room that occurs decides."""
    occurring = set(outcomes)
    for outcome, code in EXIT_CODES.items():
        if outcome in occurring:
            return EXIT_CODE_UNKNOWN_STRICT if strict and outcome is Outcome.UNKNOWN else code
    return 0


def _ask(need: NeedVerdict) -> AskReport:
    return AskReport(
        name=need.name,
        class_=need.class_name,
        count=need.count,
        field=need.field,
        free=need.free,
        total=need.total,
        pools=need.pools,
        largest_free_block=need.largest_free_block,
        reason=need.reason,
    )


def timestamp(seconds: float) -> str:
    """Epoch seconds as RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
