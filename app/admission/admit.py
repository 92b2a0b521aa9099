"""From a verdict to the webhook's answer: the platform team's rules, applied.

The verdict says what is so, the rules say how strict to be about it. Nothing here looks at a device, and nothing here
refuses for any reason but a full cluster (or, where the platform team wants it, a pod that can never fit).
"""

import enum
import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from app.admission.review import AdmissionRequest, Status, StatusCause, StatusDetails
from app.dra import explain
from app.dra.explain import Audience
from app.dra.objects import OwnerReference, Pod, Value
from app.dra.reasons import Reason
from app.dra.verdict import NeedVerdict, Outcome, Verdict


class Mode(enum.StrEnum):
    """How strict a namespace or an owner kind is treated, as in Pod Security Admission."""

    ENFORCE = "enforce"
    """Refuse."""
    WARN = "warn"
    """Admit, and say the sentence as warnings."""
    AUDIT = "audit"
    """Admit in silence, with annotations in the audit log."""
    OFF = "off"
    """Admit, and say nothing anywhere."""


_MILDEST_FIRST: Final = (Mode.OFF, Mode.AUDIT, Mode.WARN, Mode.ENFORCE)

_TALKING: Final = frozenset({Mode.ENFORCE, Mode.WARN})

BARE_POD: Final = "Pod"
"""The owner policy's key for pods without a controller."""

ANY_OWNER: Final = "*"
"""The owner policy's key for every kind not named."""

DEFAULT_OWNERS: Final[Mapping[str, Mode]] = MappingProxyType(
    {
        BARE_POD: Mode.ENFORCE,
        "ReplicaSet.apps": Mode.ENFORCE,
        "StatefulSet.apps": Mode.ENFORCE,
        "ReplicationController": Mode.ENFORCE,
        "Job.batch": Mode.ENFORCE,
        ANY_OWNER: Mode.WARN,
    },
)
"""Kubernetes' own controllers repeat a refused create for ever. What others make of a refusal is not known (some count
it as a failure of the work), so their pods are let through with a warning."""

QUOTA_WORDS_FOR: Final = (
    "system:serviceaccount:argo:argo",
    "system:serviceaccount:*:*argo-workflows-workflow-controller",
    "system:serviceaccount:*:tekton-pipelines-controller",
)
"""User names of Argo Workflows (its manifests and its chart) and Tekton. Both give up on a denial unless it is
Forbidden and says `exceeded quota`; then they wait and try again."""

WARN_ONLY_FOR: Final = ("system:serviceaccount:*:hub",)
"""JupyterHub's hub (as its chart calls it) makes bare pods. It takes a denial as final, and after five failures in a
row the chart's hub restarts itself."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the platform team has decided, for one of the webhook's paths."""

    mode: Mode = Mode.ENFORCE
    """The namespace's mode; the API server chooses the path by it."""
    owners: Mapping[str, Mode] = field(default_factory=dict)
    """Keys `Kind.group`, `Kind`, `Pod` (no controller) or `*`; what is not named here follows DEFAULT_OWNERS."""
    refuse_never_fits: bool = False
    """Whether a pod that asks for more than any node has is refused too."""
    quota_words_for: tuple[str, ...] = QUOTA_WORDS_FOR
    """User names, with `*`, `?` and `[…]` as in a shell."""
    warn_only_for: tuple[str, ...] = WARN_ONLY_FOR
    """The same; pods that these create are not refused. `system:serviceaccount:NAMESPACE:*` is a whole namespace."""
    audience: Audience = field(default_factory=Audience)
    """What sentences say to everybody; who is asking is filled in for each request."""


class Decision(Value, frozen=True):
    """The answer, before it is bytes."""

    allowed: bool
    mode: Mode
    """The one that applied: the namespace's, or the milder one of the owner's kind."""
    reason: Reason | None = None
    """None when there was nothing to judge: not a creation, or switched off."""
    status: Status | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: dict[str, str] = {}  # noqa: RUF012 - msgspec copies an empty default


def unjudged(request: AdmissionRequest, rules: Rules) -> Decision | None:
    """The answer to a request about pods that needs no judgement; None: judge `request.pod`, then `admit`."""
    if rules.mode is Mode.OFF:
        return Decision(allowed=True, mode=rules.mode)
    if request.problem:
        return not_checked(Reason.UnknownField, request.problem, rules.mode)
    if request.operation != "CREATE" or request.sub_resource:
        return Decision(allowed=True, mode=rules.mode)
    if request.resource != "pods":
        return not_checked(Reason.UnknownField, f"expected pods, found {request.resource or 'nothing'}", rules.mode)
    if request.pod is None:
        return not_checked(Reason.UnknownField, "the request holds no object", rules.mode)
    return None


def admit(request: AdmissionRequest, verdict: Verdict, rules: Rules, now: float) -> Decision:
    """The answer to a judged pod. `now` and the verdict's time are epoch seconds."""
    mode = effective_mode(request.pod, rules)
    if mode is Mode.OFF or verdict.reason is Reason.NoDeviceRequested:
        return Decision(allowed=True, mode=mode, reason=verdict.reason)
    annotations = audit_annotations(verdict, now)
    if verdict.reason is Reason.HasRoom:
        return Decision(allowed=True, mode=mode, reason=verdict.reason, audit_annotations=annotations)
    if _is_refused(request, verdict, rules, mode):
        status = _refusal(request, verdict, rules, now)
        return Decision(allowed=False, mode=mode, reason=verdict.reason, status=status, audit_annotations=annotations)
    if mode is Mode.ENFORCE and _is_short(verdict, rules):
        mode = Mode.WARN
    warnings = explain.warnings(verdict, _audience(request, rules), now) if mode in _TALKING else ()
    return Decision(allowed=True, mode=mode, reason=verdict.reason, warnings=warnings, audit_annotations=annotations)


def is_refused(request: AdmissionRequest, verdict: Verdict, rules: Rules) -> bool:
    """Whether `admit` refuses this pod."""
    return _is_short(verdict, rules) and _is_refused(request, verdict, rules, effective_mode(request.pod, rules))


def unjudged_workload(request: AdmissionRequest, rules: Rules) -> Decision | None:
    """The answer to a request about a workload that needs no judgement; None: judge its template, then `advise`."""
    if rules.mode is Mode.OFF:
        return Decision(allowed=True, mode=rules.mode)
    if request.problem:
        return not_checked(Reason.UnknownField, request.problem, rules.mode)
    is_written = request.operation in {"CREATE", "UPDATE"} and not request.sub_resource
    return None if is_written else Decision(allowed=True, mode=rules.mode)


def advise(verdict: Verdict, pods: int, rules: Rules, now: float) -> Decision:
    """The answer to a workload that makes so many pods: warnings at most. What may be refused is the pods, later."""
    warnings = explain.workload_warnings(verdict, pods, rules.audience, now) if rules.mode in _TALKING else ()
    return Decision(allowed=True, mode=rules.mode, reason=verdict.reason, warnings=warnings)


def not_checked(reason: Reason, detail: str = "", mode: Mode = Mode.ENFORCE) -> Decision:
    """The answer when judging was impossible: admitted, and said so; also for a bug of ours."""
    return Decision(
        allowed=True,
        mode=mode,
        reason=reason,
        warnings=(explain.not_checked(reason, detail),) if mode in _TALKING else (),
        audit_annotations={"verdict": Outcome.UNKNOWN, "reason": reason},
    )


# --- How strict -----------------------------------------------------------------------------------------------------


def effective_mode(pod: Pod | None, rules: Rules) -> Mode:
    """The namespace's mode, or that of the owner's kind where it is milder."""
    of_owner = owner_mode(controller(pod), rules.owners)
    return of_owner if _MILDEST_FIRST.index(of_owner) < _MILDEST_FIRST.index(rules.mode) else rules.mode


def owner_mode(owner: OwnerReference | None, owners: Mapping[str, Mode]) -> Mode:
    """The mode of an owner kind. The most specific key wins; of equals, the platform team's before the default."""
    kind = owner.kind if owner else BARE_POD
    group = owner.api_version.rpartition("/")[0] if owner else ""
    exact = f"{kind}.{group}" if group else kind
    return (
        owners.get(exact)
        or owners.get(kind)
        or DEFAULT_OWNERS.get(exact)
        or owners.get(ANY_OWNER)
        or DEFAULT_OWNERS[ANY_OWNER]
    )


def controller(pod: Pod | None) -> OwnerReference | None:
    """The owner that made the pod, and makes it again when it is refused; None: a bare pod."""
    for owner in (pod.metadata.owner_references if pod else None) or ():
        if owner.controller:
            return owner
    return None


def _is_refused(request: AdmissionRequest, verdict: Verdict, rules: Rules, mode: Mode) -> bool:
    is_short = mode is Mode.ENFORCE and _is_short(verdict, rules)
    return is_short and not _matches(request.username, rules.warn_only_for)


def _is_short(verdict: Verdict, rules: Rules) -> bool:
    return verdict.outcome is Outcome.FULL or (verdict.outcome is Outcome.NEVER and rules.refuse_never_fits)


# --- What is said ---------------------------------------------------------------------------------------------------


def _audience(request: AdmissionRequest, rules: Rules) -> Audience:
    return replace(rules.audience, controlled=controller(request.pod) is not None, namespace=request.namespace)


def _refusal(request: AdmissionRequest, verdict: Verdict, rules: Rules, now: float) -> Status:
    """403 Forbidden, nothing else: kubectl rewords 422, clients stall on 429, controllers take 409 for a name clash."""
    audience = _audience(request, rules)
    if _matches(request.username, rules.quota_words_for):
        audience = replace(audience, quota_words=True)
    needs = (need for need in verdict.needs if need.outcome is verdict.outcome)
    causes = tuple(StatusCause(need.reason, explain.evidence(need, audience), need.field) for need in needs)
    return Status(
        status="Failure",
        message=explain.refusal(verdict, audience, now),
        reason="Forbidden",
        details=StatusDetails(request.name, "pods", causes),
        code=403,
    )


def _matches(username: str, patterns: tuple[str, ...]) -> bool:
    return _any_of(patterns).match(username) is not None


@lru_cache(maxsize=8)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, patterns)) or "(?!)")


class _Resolved(msgspec.Struct, frozen=True, omit_defaults=True, rename={"class_name": "class"}):
    """What one name meant at the time; a number that is not known is left out."""

    count: int
    class_name: str = ""
    drivers: tuple[str, ...] = ()
    pools: int | None = None
    devices: int | None = None
    memory: tuple[str, str] | None = None


_json = msgspec.json.Encoder()


def audit_annotations(verdict: Verdict, now: float) -> dict[str, str]:
    """What the audit log keeps of a judged pod; the API server puts the webhook's name before each key.

    `snapshot-age-seconds` is "0" for an answer from the live view, and is left out when it rests on no device.
    `resolved` holds every need with a count, judged or not: a name that a device plugin may serve has no class.
    """
    if verdict.snapshot_time is not None:
        return _annotations(verdict, max(0, int(now - verdict.snapshot_time)))
    return _annotations(verdict, 0 if verdict.source else None)


@lru_cache(maxsize=256)
def _annotations(verdict: Verdict, age_seconds: int | None) -> dict[str, str]:
    annotations: dict[str, str] = {"verdict": verdict.outcome, "reason": verdict.reason}
    if age_seconds is not None:
        annotations["snapshot-age-seconds"] = str(age_seconds)
    resolved = {need.name: _resolved(need) for need in verdict.needs if need.count}
    if resolved:
        annotations["resolved"] = _json.encode(resolved).decode()
    return annotations


def _resolved(need: NeedVerdict) -> _Resolved:
    return _Resolved(need.count, need.class_name, need.drivers, need.pools, need.total, need.memory)
