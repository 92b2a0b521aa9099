"""The door for admission reviews, with a listener of its own.

Nearly all of them come by `at_once` (`prompt.py`), the rest as an ASGI application. Between HTTP and the domain there
is nothing but this file; a framework would cost several times what a review does.
Two rules: without a uid the answer is 400, and with one it is 200 with that uid whatever goes wrong, for an answer the
API server cannot use helps nobody.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

import msgspec
from starlette.types import Receive, Scope, Send

from app import mistakes
from app.admission.admit import (
    Decision,
    Mode,
    Rules,
    admit,
    advise,
    controller,
    is_refused,
    not_checked,
    unjudged,
    unjudged_workload,
)
from app.admission.repeats import Repeats
from app.admission.review import (
    CONTENT_TYPE,
    MAX_BODY_BYTES,
    AdmissionRequest,
    BadReview,
    decode_review,
    decode_workload_review,
    encode_response,
)
from app.dra.demand import ClaimReferences, Lookups, PodDemand, claim_references
from app.dra.explain import HEADLINE_LIMIT
from app.dra.judgement import World, demand_and_verdict, judge
from app.dra.objects import ObjectMeta, Pod
from app.dra.reasons import Reason
from app.dra.verdict import Outcome, Verdict
from app.dra.wake import WakeQueue
from app.dra.workloads import pod_of_workload
from app.metrics import DoorCounts
from app.web.probes import Probes

SECOND_LOOK_SECONDS = 0.05
"""After which a pod about to be refused is judged once more: what made room a moment before the question may still be
on its way to us (for up to 30 ms, docs/truth.md). Only a refusal waits, and nobody notices."""

COUNTING_LOOKS = 5
"""So many times as long waits, at most, a claim that is the first to ask for something, until that is counted: 100 ms
with 2,500 devices (measured)."""

_NO_LOOKUPS = Lookups({}, {})
_AtOnce = Callable[[bytes, float], bytes | Coroutine[Any, Any, bytes] | None]
_Deciding = Decision | Coroutine[Any, Any, Decision]
_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_JSON = (b"content-type", b"application/json")
_CLOSE = (b"connection", b"close")

_log = logging.getLogger(__name__)


class Reader(Protocol):
    """Reads what a pod names, within the review's time; what it cannot read, it says so in the answer."""

    async def lookups(self, namespace: str, references: ClaimReferences) -> Lookups:
        """The claims and templates of that namespace."""


class AdmissionDoor:
    """`POST /validate`, `/validate/{enforce,warn,audit}` and `/validate-workload`; anything else is 404."""

    def __init__(  # noqa: PLR0913 - parts are handed in
        self,
        *,
        rules: Rules,
        world: Callable[[], World],
        reader: Reader,
        now: Callable[[], float],
        counts: DoorCounts,
        probes: Probes,
        wake: WakeQueue | None = None,
        second_look_seconds: float = 0.0,
    ) -> None:
        """Hand in the parts.

        `wake`: hears of who is refused; None: nobody will be woken. `second_look_seconds`: 0 for files, which send
        nothing that could be on its way.
        """
        self._world, self._reader, self._now = world, reader, now
        self._counts, self._probes, self._wake = counts, probes, wake
        self._second_look_seconds = second_look_seconds
        self._repeats = Repeats()
        self._logged: dict[str, set[str]] = {}
        of_pods = {
            "/validate": rules,
            **{f"/validate/{mode}": replace(rules, mode=mode) for mode in (Mode.ENFORCE, Mode.WARN, Mode.AUDIT)},
        }
        self._rules: dict[str, tuple[Rules, bool]] = {path: (of_path, True) for path, of_path in of_pods.items()}
        """By path; with whether it is about pods."""
        # Which namespaces hear of their workloads is the webhook configuration's choice, not the default mode's.
        self._rules["/validate-workload"] = replace(rules, mode=Mode.WARN), False

    def at_once(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> _AtOnce | None:
        """Who answers reviews posted so; None: they go the long way, by `__call__`."""
        rules, of_pods = self._rules.get(path, (None, False))
        if rules is None or not of_pods or method != "POST" or not _is_json(headers):
            return None
        return partial(self._answered_at_once, rules)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        rules, of_pods = self._rules.get(scope["path"], (None, False))
        try:
            if rules is None or scope["method"] != "POST" or not _is_json(scope["headers"]):
                raise _wrong_request(scope, known_path=rules is not None)
            body = await _body(receive)
            if body is None:
                return  # the client has gone
            status, content, headers = 200, await self._answered(body, rules, of_pods=of_pods), [_JSON]
        except BadReview as error:
            self._counts.bad_requests[error.status] += 1
            status, content, headers = error.status, f"{error.text}\n".encode(), [_TEXT]
            if status == 405:  # noqa: PLR2004 - the status code is its own name
                headers.append((b"allow", b"POST"))
        headers.append((b"content-length", b"%d" % len(content)))
        if self._probes.draining:
            headers.append(_CLOSE)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _answered_at_once(self, rules: Rules, body: bytes, since: float) -> bytes | Coroutine[Any, Any, bytes] | None:
        """The answer; later, if something has to be waited for; None: go the long way, which says what is wrong."""
        if self._probes.draining:
            return None
        try:
            request = decode_review(body)
        except Exception:  # noqa: BLE001 - the long way meets it again
            return None
        try:
            decision = self._deciding(request, rules)
            if not isinstance(decision, Decision):
                return self._finished(request, rules, decision, since)
            content = _encoded(request.uid, decision)
        except Exception as error:  # noqa: BLE001 - whatever it is, the pod is admitted
            decision = self._panic(error, rules.mode)
            content = _encoded(request.uid, decision)
        return self._answer(request, decision, content, since)

    async def _answered(self, body: bytes, rules: Rules, *, of_pods: bool) -> bytes:
        since = perf_counter()
        try:
            request = decode_review(body) if of_pods else decode_workload_review(body)
        except BadReview:
            raise
        except Exception as error:
            self._panic(error, rules.mode)
            raise BadReview(400, "the review cannot be read, by a mistake of ours") from error
        deciding = self._decide(request, rules) if of_pods else self._decide_workload(request, rules)
        return await self._finished(request, rules, deciding, since)

    async def _finished(
        self, request: AdmissionRequest, rules: Rules, deciding: Coroutine[Any, Any, Decision], since: float
    ) -> bytes:
        self._counts.open += 1
        try:
            decision = await deciding
            content = _encoded(request.uid, decision)
        except Exception as error:  # noqa: BLE001 - whatever it is, the pod is admitted
            decision = self._panic(error, rules.mode)
            content = _encoded(request.uid, decision)
        finally:
            self._counts.open -= 1
        return self._answer(request, decision, content, since)

    def _answer(self, request: AdmissionRequest, decision: Decision, content: bytes, since: float) -> bytes:
        """The content, once it is counted and logged."""
        if request.problem:
            self._log_once(logging.WARNING, "review not understood", request.problem)
        if not decision.allowed:
            self._note_refusal(request, decision)
        self._counts.answered("allow" if decision.allowed else "deny", decision.mode, perf_counter() - since)
        return content

    async def _decide(self, request: AdmissionRequest, rules: Rules) -> Decision:
        decision = self._deciding(request, rules)
        return decision if isinstance(decision, Decision) else await decision

    def _deciding(self, request: AdmissionRequest, rules: Rules) -> _Deciding:
        """The decision, or what has to be waited for."""
        decision, pod = unjudged(request, rules), request.pod
        if decision is not None or pod is None:
            return self._counted(decision or not_checked(Reason.UnknownField, mode=rules.mode))
        if pod.spec.resource_claims:
            return self._decide_with_claims(request, pod, rules)
        return self._decide_pod(request, pod, rules, _NO_LOOKUPS)

    async def _decide_with_claims(self, request: AdmissionRequest, pod: Pod, rules: Rules) -> Decision:
        decision = self._decide_pod(request, pod, rules, await self._lookups(pod, request.namespace))
        return decision if isinstance(decision, Decision) else await decision

    def _decide_pod(self, request: AdmissionRequest, pod: Pod, rules: Rules, lookups: Lookups) -> _Deciding:
        demand, verdict = self._judged(request, pod, lookups)
        if self._second_look_seconds > 0:
            if is_refused(request, verdict, rules):
                return self._decide_again(request, pod, rules, looks=1)
            if self._counts_soon(pod, verdict):
                return self._decide_again(request, pod, rules, looks=COUNTING_LOOKS)
        return self._settled(request, rules, demand, verdict)

    def _counts_soon(self, pod: Pod, verdict: Verdict) -> bool:
        """Whether it asks by claim for what is being counted: classes are counted before they are asked for."""
        unknown = pod.spec.resource_claims and any(need.reason is Reason.SelectorUnknown for need in verdict.needs)
        return bool(unknown) and self._world().witness.tallies.counts_soon()

    async def _decide_again(self, request: AdmissionRequest, pod: Pod, rules: Rules, looks: int) -> Decision:
        await until_counted(self._world, self._second_look_seconds, looks)
        demand, verdict = self._judged(request, pod, await self._lookups(pod, request.namespace))
        return self._settled(request, rules, demand, verdict)

    def _judged(self, request: AdmissionRequest, pod: Pod, lookups: Lookups) -> tuple[PodDemand, Verdict]:
        return demand_and_verdict(pod, request.namespace, lookups, self._world(), self._now())

    def _settled(self, request: AdmissionRequest, rules: Rules, demand: PodDemand, verdict: Verdict) -> Decision:
        """What was judged, counted, and told to those who wake owners."""
        decision = admit(request, verdict, rules, self._now())
        self._counts.judged(verdict.outcome, verdict.reason)
        wake = self._wake if demand.needs else None
        if wake is not None and self._is_let_through(wake, request, decision, demand, verdict):
            decision = admit(request, verdict, replace(rules, mode=Mode.WARN), self._now())
        return decision

    async def _lookups(self, pod: Pod, namespace: str) -> Lookups:
        return await self._reader.lookups(namespace, claim_references(pod)) if pod.spec.resource_claims else _NO_LOOKUPS

    def _is_let_through(
        self, wake: WakeQueue, request: AdmissionRequest, decision: Decision, demand: PodDemand, verdict: Verdict
    ) -> bool:
        """Tell those who wake owners what becomes of a pod, and hear whether they want a refused one let through."""
        owner = controller(request.pod)
        if request.dry_run:
            return False
        if decision.allowed:
            wake.admitted(owner.uid if owner else "", demand, verdict, self._world(), self._now())
            return False
        if owner is None or verdict.outcome is not Outcome.FULL:
            return False  # nobody repeats it, or repeating it is of no use: what never fits is not waited for
        return wake.refused(owner, request.namespace, demand, self._now())

    async def _decide_workload(self, request: AdmissionRequest, rules: Rules) -> Decision:
        decision = unjudged_workload(request, rules)
        if decision is not None or request.workload is None:
            return self._counted(decision or Decision(allowed=True, mode=rules.mode))
        try:
            workload = pod_of_workload(request.kind, request.workload, request.workload_before)
        except msgspec.DecodeError as error:
            return self._counted(not_checked(Reason.UnknownField, str(error), rules.mode))
        if workload is None or workload.controlled or not workload.new_pods:
            return Decision(allowed=True, mode=rules.mode)
        lookups = await self._lookups(workload.pod, request.namespace)
        verdict = judge(workload.pod, request.namespace, lookups, self._world(), self._now())
        if self._second_look_seconds > 0 and self._counts_soon(workload.pod, verdict):
            await until_counted(self._world, self._second_look_seconds)
            verdict = judge(workload.pod, request.namespace, lookups, self._world(), self._now())
        self._counts.judged(verdict.outcome, verdict.reason)
        return advise(verdict, workload.new_pods, rules, self._now())

    def _note_refusal(self, request: AdmissionRequest, decision: Decision) -> None:
        """Count it, and log it unless the owner's last one was a moment ago."""
        owner = controller(request.pod)
        is_repeat = owner is not None and self._repeats.is_repeat(owner.uid, self._now())
        self._counts.refused(is_repeat=is_repeat)
        if not is_repeat:
            metadata = request.pod.metadata if request.pod else ObjectMeta()
            facts = {
                "uid": request.uid,
                "namespace": request.namespace,
                "owner": f"{owner.kind}/{owner.name}" if owner else "",
                "name": metadata.name or metadata.generate_name,
                "reason": decision.reason or "",
                "message": decision.status.message[:HEADLINE_LIMIT] if decision.status else "",
            }
            _log.info("refused", extra={"facts": {fact: _brief(text) for fact, text in facts.items()}})

    def _counted(self, decision: Decision) -> Decision:
        if decision.reason is not None:
            self._counts.judged(Outcome.UNKNOWN, decision.reason)
        return decision

    def _panic(self, error: Exception, mode: Mode) -> Decision:
        """Admit, count and log."""
        self._counts.panics += 1
        self._log_once(logging.ERROR, "exception while judging", mistakes.place(error))
        return self._counted(not_checked(Reason.InternalError, mode=mode))

    def _log_once(self, level: int, event: str, problem: str) -> None:
        """Once per kind of problem, and for few kinds: whoever may post must not be able to fill the log.

        Nor to use up what there is for another event.
        """
        most_kinds = 100
        problem, logged = _brief(problem), self._logged.setdefault(event, set())
        if problem not in logged and len(logged) < most_kinds:
            logged.add(problem)
            _log.log(level, event, extra={"facts": {"problem": problem}})


async def until_counted(world: Callable[[], World], seconds: float, looks: int = COUNTING_LOOKS) -> None:
    """Wait for what is being counted: so long, and again up to so many times in all."""
    for _ in range(looks):
        await asyncio.sleep(seconds)
        if not world().witness.tallies.counts_soon():
            return


def _wrong_request(scope: Scope, *, known_path: bool) -> BadReview:
    """What is wrong with a request whatever its body holds."""
    if not known_path:
        return BadReview(404, "reviews are posted to /validate, /validate/MODE and /validate-workload")
    if scope["method"] != "POST":
        return BadReview(405, f"expected POST, found {scope['method']}")
    return BadReview(415, f"expected content type {CONTENT_TYPE}")


async def _body(receive: Receive) -> bytes | None:
    """The body, uncopied if it comes in one piece; None if the client went away. Raises BadReview above the limit."""
    message = await receive()
    chunk: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message["more_body"] and len(chunk) <= MAX_BODY_BYTES:
        return chunk
    chunks, length = [], 0
    while message["type"] == "http.request":
        chunks.append(message["body"])
        length += len(message["body"])
        if length > MAX_BODY_BYTES:
            # uvicorn reads the rest of it and throws it away, so that the client gets to read this.
            raise BadReview(413, f"expected at most {MAX_BODY_BYTES} bytes")
        if not message["more_body"]:
            return b"".join(chunks)
        message = await receive()
    return None


def _is_json(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    for name, value in headers:
        if name == b"content-type":
            return value.partition(b";")[0].strip().lower() == CONTENT_TYPE.encode()
    return False


def _encoded(uid: str, decision: Decision) -> bytes:
    return encode_response(
        uid,
        allowed=decision.allowed,
        status=decision.status,
        warnings=decision.warnings,
        audit_annotations=decision.audit_annotations,
    )


def _brief(text: str) -> str:
    """One printable line that is no longer than any true name, kind included."""
    most = 320
    return ascii(text[:most])[1:-1]
