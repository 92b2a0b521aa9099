"""Rules: mode x verdict x owner x age, and the texts and bytes that come of it."""

import dataclasses
import itertools
import json
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from app.admission.admit import (
    QUOTA_WORDS_FOR,
    Decision,
    Mode,
    Rules,
    admit,
    advise,
    audit_annotations,
    owner_mode,
)
from app.admission.review import AdmissionRequest, encode_response
from app.dra.explain import Audience
from app.dra.objects import ObjectMeta, OwnerReference, Pod, PodSpec
from app.dra.reasons import Reason
from app.dra.verdict import NeedVerdict, Outcome, Verdict
from app.wording import wording

TAKEN_AT = 1_790_000_580.0  # 14:23:00 UTC
NOW = TAKEN_AT + 37
HEAD = "[NoGPUCapacity] no free device for example.com/gpu (1 asked)"
ALL_TAKEN = "all 8 devices of class gpu-a100 are taken in 2 pools"
ADVICE = "Try again later, wait in the queue with label gpu-vacancy.dev/queue=true, or run on CPU."
FIELD = "spec.containers[0].resources.requests[example.com/gpu]"
ENVELOPE = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":'

FULL_NEED = NeedVerdict(
    name="example.com/gpu",
    field=FIELD,
    count=1,
    outcome=Outcome.FULL,
    reason=Reason.NoGPUCapacity,
    class_name="gpu-a100",
    total=8,
    free=0,
    pools=2,
    drivers=("gpu.example.com",),
    memory=("40Gi", "80Gi"),
)
FULL = Verdict(Outcome.FULL, Reason.NoGPUCapacity, (FULL_NEED,), "both", TAKEN_AT)
NEVER = Verdict(
    Outcome.NEVER,
    Reason.NeverFits,
    (replace(FULL_NEED, outcome=Outcome.NEVER, reason=Reason.NeverFits, count=16, free=3, largest_block=4),),
    "both",
    TAKEN_AT,
)
ROOM = Verdict(
    Outcome.ROOM,
    Reason.HasRoom,
    (replace(FULL_NEED, outcome=Outcome.ROOM, reason=Reason.HasRoom, free=3),),
    "both",
    TAKEN_AT,
)
FEWER = Verdict(
    Outcome.ROOM,
    Reason.FewerThanAsked,
    (replace(FULL_NEED, outcome=Outcome.ROOM, reason=Reason.FewerThanAsked, count=4, free=3),),
    "both",
    TAKEN_AT,
)
STALE = Verdict(
    Outcome.UNKNOWN,
    Reason.StaleSnapshot,
    (NeedVerdict("example.com/gpu", FIELD, 1, Outcome.UNKNOWN, Reason.StaleSnapshot, class_name="gpu-a100"),),
)
OPTED_OUT = Verdict(Outcome.UNKNOWN, Reason.OptedOut)
NOTHING = Verdict(Outcome.ROOM, Reason.NoDeviceRequested)
VERDICTS = (FULL, NEVER, ROOM, FEWER, STALE, OPTED_OUT, NOTHING)

REPLICA_SET = OwnerReference(kind="ReplicaSet", name="r", uid="1", api_version="apps/v1", controller=True)
RAY = OwnerReference(kind="RayCluster", name="r", uid="1", api_version="ray.io/v1", controller=True)


def request(*owners: OwnerReference, username: str = "jane") -> AdmissionRequest:
    pod = Pod(spec=PodSpec(containers=[]), metadata=ObjectMeta(name="p", owner_references=list(owners) or None))
    return AdmissionRequest(
        uid="0d1d",
        operation="CREATE",
        kind="Pod",
        resource="pods",
        namespace="team",
        name="p",
        username=username,
        pod=pod,
    )


BARE = request()
OWNED = request(REPLICA_SET)
FOREIGN = request(RAY)


# --- Mode, verdict, owner -------------------------------------------------------------------------------------------

ENFORCE, WARN, AUDIT, OFF = Mode.ENFORCE, Mode.WARN, Mode.AUDIT, Mode.OFF
REFUSED, WARNED, SILENT = "refused", "warned", "silent"

TABLE = {
    # verdict, never-fits: refuse, mode -> bare pod, ReplicaSet, another controller
    "full": {
        (FULL, False, ENFORCE): (REFUSED, REFUSED, WARNED),
        (FULL, False, WARN): (WARNED, WARNED, WARNED),
        (FULL, False, AUDIT): (SILENT, SILENT, SILENT),
        (FULL, False, OFF): (SILENT, SILENT, SILENT),
    },
    "never fits": {
        (NEVER, False, ENFORCE): (WARNED, WARNED, WARNED),
        (NEVER, True, ENFORCE): (REFUSED, REFUSED, WARNED),
        (NEVER, True, WARN): (WARNED, WARNED, WARNED),
        (NEVER, True, AUDIT): (SILENT, SILENT, SILENT),
        (NEVER, True, OFF): (SILENT, SILENT, SILENT),
    },
    "fewer than asked": {
        (FEWER, True, ENFORCE): (WARNED, WARNED, WARNED),
        (FEWER, True, WARN): (WARNED, WARNED, WARNED),
        (FEWER, True, AUDIT): (SILENT, SILENT, SILENT),
    },
    "unknown": {
        (STALE, True, ENFORCE): (WARNED, WARNED, WARNED),
        (STALE, True, AUDIT): (SILENT, SILENT, SILENT),
        (OPTED_OUT, True, ENFORCE): (SILENT, SILENT, SILENT),
    },
    "room": {
        (ROOM, True, ENFORCE): (SILENT, SILENT, SILENT),
        (NOTHING, True, ENFORCE): (SILENT, SILENT, SILENT),
    },
}


@pytest.mark.parametrize("story", TABLE)
def test_mode_verdict_owner(story: str) -> None:
    for (verdict, refuse_never_fits, mode), wanted in TABLE[story].items():
        rules = Rules(mode=mode, refuse_never_fits=refuse_never_fits)
        got = tuple(effect(admit(pod, verdict, rules, NOW)) for pod in (BARE, OWNED, FOREIGN))
        assert got == wanted, (verdict.reason, refuse_never_fits, mode)


def effect(decision: Decision) -> str:
    assert decision.allowed is (decision.status is None)
    assert decision.allowed or not decision.warnings
    if not decision.allowed:
        return REFUSED
    return WARNED if decision.warnings else SILENT


MODES_OF_OWNERS: dict[str, tuple[OwnerReference | None, Mapping[str, Mode], Mode]] = {
    "a bare pod": (None, {}, ENFORCE),
    "a bare pod, by policy": (None, {"Pod": WARN}, WARN),
    "ReplicaSet": (REPLICA_SET, {}, ENFORCE),
    "StatefulSet": (OwnerReference(kind="StatefulSet", api_version="apps/v1"), {}, ENFORCE),
    "ReplicationController": (OwnerReference(kind="ReplicationController", api_version="v1"), {}, ENFORCE),
    "Job": (OwnerReference(kind="Job", api_version="batch/v1"), {}, ENFORCE),
    "any other": (RAY, {}, WARN),
    "a Job that is not Kubernetes'": (OwnerReference(kind="Job", api_version="batch.volcano.sh/v1alpha1"), {}, WARN),
    "by kind": (RAY, {"RayCluster": ENFORCE, "*": AUDIT}, ENFORCE),
    "by kind and group": (RAY, {"RayCluster.ray.io": OFF, "RayCluster": ENFORCE}, OFF),
    "of another group": (RAY, {"RayCluster.example.com": ENFORCE}, WARN),
    "everybody else": (RAY, {"*": ENFORCE}, ENFORCE),
    "a default beats everybody else": (REPLICA_SET, {"*": AUDIT}, ENFORCE),
    "a kind beats its default": (REPLICA_SET, {"ReplicaSet": WARN}, WARN),
    "everybody else is not a bare pod": (None, {"*": AUDIT}, ENFORCE),
}


@pytest.mark.parametrize("case", MODES_OF_OWNERS)
def test_owner_policy(case: str) -> None:
    owner, policy, mode = MODES_OF_OWNERS[case]
    assert owner_mode(owner, policy) is mode


def test_the_milder_of_namespace_and_owner_applies() -> None:
    order = (OFF, AUDIT, WARN, ENFORCE)
    for of_namespace, of_owner in itertools.product(order, order):
        decision = admit(OWNED, FULL, Rules(mode=of_namespace, owners={"ReplicaSet": of_owner}), NOW)
        assert decision.mode is order[min(order.index(of_namespace), order.index(of_owner))]
        assert decision.allowed is (decision.mode is not ENFORCE)


WARNED_ONLY = {
    "system:serviceaccount:jupyter:hub": WARN,
    "system:serviceaccount:jupyter:hub-of-somebody": ENFORCE,
    "system:serviceaccount:kube-system:replicaset-controller": ENFORCE,
    "hub": ENFORCE,
}


@pytest.mark.parametrize("username", WARNED_ONLY)
def test_pods_of_a_requester_that_takes_a_refusal_as_final_are_not_refused(username: str) -> None:
    decision = admit(request(username=username), FULL, Rules(), NOW)
    assert decision.mode is WARNED_ONLY[username]
    assert effect(decision) == (WARNED if WARNED_ONLY[username] is WARN else REFUSED)


def test_such_requesters_are_listed_by_the_platform_team_by_name_or_by_namespace() -> None:
    rules = Rules(warn_only_for=("system:serviceaccount:batch:*", "jane"))
    assert effect(admit(BARE, FULL, rules, NOW)) == WARNED
    assert effect(admit(request(username="system:serviceaccount:batch:runner"), FULL, rules, NOW)) == WARNED
    assert effect(admit(request(username="system:serviceaccount:jupyter:hub"), FULL, rules, NOW)) == REFUSED
    assert effect(admit(BARE, FULL, dataclasses.replace(rules, mode=AUDIT), NOW)) == SILENT


def test_an_owner_that_is_no_controller_does_not_count() -> None:
    for controller in (None, False):
        owner = OwnerReference(kind="RayCluster", name="r", api_version="ray.io/v1", controller=controller)
        assert not admit(request(owner), FULL, Rules(), NOW).allowed


# --- The refusal ----------------------------------------------------------------------------------------------------


def test_the_advice_is_that_for_the_namespace_of_the_pod() -> None:
    advice = (("team", wording("Ask {namespace}.")), ("*", wording("Ask us.")))
    rules = Rules(audience=Audience(advice=advice))
    refused, warned = (admit(asking, FULL, rules, NOW) for asking in (OWNED, FOREIGN))
    assert refused.status
    assert refused.status.message.endswith(" Ask team.")
    assert warned.warnings[-1] == "Ask team."


def test_a_refusal_in_bytes() -> None:
    assert sent(admit(BARE, FULL, Rules(audience=Audience(page_url="https://x/")), NOW)) == (
        ENVELOPE + b'{"uid":"0d1d","allowed":false,"status":{"status":"Failure","message":"'
        b"[NoGPUCapacity] no free device for example.com/gpu (1 asked): all 8 devices of class gpu-a100 are taken in 2 "
        b"pools, counted 37s ago. Try again later, wait in the queue with label gpu-vacancy.dev/queue=true, or run on "
        b'CPU. Capacity: https://x/","reason":"Forbidden","details":{"name":"p","kind":"pods","causes":['
        b'{"reason":"NoGPUCapacity","message":"all 8 devices of class gpu-a100 are taken in 2 pools",'
        b'"field":"spec.containers[0].resources.requests[example.com/gpu]"}]},"code":403},'
        b'"auditAnnotations":{"verdict":"full","reason":"NoGPUCapacity","snapshot-age-seconds":"37","resolved":'
        b'"{\\"example.com/gpu\\":{\\"count\\":1,\\"class\\":\\"gpu-a100\\",\\"drivers\\":[\\"gpu.example.com\\"],'
        b'\\"pools\\":2,\\"devices\\":8,\\"memory\\":[\\"40Gi\\",\\"80Gi\\"]}}"}}}'
    )


def sent(decision: Decision) -> bytes:
    return encode_response(
        "0d1d",
        allowed=decision.allowed,
        status=decision.status,
        warnings=decision.warnings,
        audit_annotations=decision.audit_annotations,
    )


AGES = {
    "a person reads seconds": (BARE, FULL, f"{HEAD}: {ALL_TAKEN}, counted 37s ago. {ADVICE}"),
    "a controller reads minutes": (OWNED, FULL, f"{HEAD}: {ALL_TAKEN}, as of 14:23 UTC. {ADVICE}"),
    "nobody reads an age of the live view": (
        OWNED,
        replace(FULL, source="witness", snapshot_time=None),
        f"{HEAD}: {ALL_TAKEN}, seen live. {ADVICE}",
    ),
    "one who waits for the words": (
        request(REPLICA_SET, username="system:serviceaccount:argo:argo"),
        FULL,
        f"{HEAD}: exceeded quota, {ALL_TAKEN}, as of 14:23 UTC. {ADVICE}",
    ),
}


@pytest.mark.parametrize("case", AGES)
def test_what_a_refused_requester_reads(case: str) -> None:
    pod, verdict, message = AGES[case]
    status = admit(pod, verdict, Rules(), NOW).status
    assert status is not None
    assert status.message == message


WAITS_FOR_QUOTA = {
    "system:serviceaccount:argo:argo": True,
    "system:serviceaccount:ci:build-argo-workflows-workflow-controller": True,
    "system:serviceaccount:tekton-pipelines:tekton-pipelines-controller": True,
    "system:serviceaccount:openshift-pipelines:tekton-pipelines-controller": True,
    "system:serviceaccount:argo:default": False,
    "system:serviceaccount:kube-system:replicaset-controller": False,
    "tekton-pipelines-controller": False,
    "": False,
}


@pytest.mark.parametrize("username", WAITS_FOR_QUOTA)
def test_who_reads_the_words_exceeded_quota(username: str) -> None:
    status = admit(request(username=username), FULL, Rules(), NOW).status
    assert status is not None
    assert ("exceeded quota" in status.message) is WAITS_FOR_QUOTA[username]


def test_the_list_of_those_is_the_platform_teams() -> None:
    rules = Rules(quota_words_for=("j*",))
    assert "exceeded quota" in str(admit(BARE, FULL, rules, NOW).status)
    assert "exceeded quota" not in str(admit(request(username=QUOTA_WORDS_FOR[0]), FULL, rules, NOW).status)


def test_every_full_request_is_a_cause_and_no_other() -> None:
    claim = replace(FULL_NEED, name="c/r", field="spec.resourceClaims[0]", total=1, pools=1)
    status = admit(BARE, replace(FULL, needs=(ROOM.needs[0], FULL_NEED, *NEVER.needs, claim)), Rules(), NOW).status
    assert status is not None
    assert status.message.startswith(f"{HEAD} and 1 more request: {ALL_TAKEN}, ")
    assert [(cause.reason, cause.field, cause.message) for cause in status.details.causes] == [
        ("NoGPUCapacity", FIELD, ALL_TAKEN),
        ("NoGPUCapacity", "spec.resourceClaims[0]", "the only matching device of class gpu-a100 is taken in 1 pool"),
    ]


KUBERNETES_CAUSES = {
    "FieldValueNotFound",
    "FieldValueRequired",
    "FieldValueDuplicate",
    "FieldValueInvalid",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
    "InternalError",
    "UnexpectedServerResponse",
    "FieldManagerConflict",
    "ResourceVersionTooLarge",
    "NamespaceTerminating",
}


def test_every_refusal_is_forbidden_and_nothing_a_client_acts_on() -> None:
    for verdict, pod, mode in itertools.product(VERDICTS, (BARE, OWNED, FOREIGN), Mode):
        decision = admit(pod, verdict, Rules(mode=mode, refuse_never_fits=True), NOW)
        answer = json.loads(sent(decision))["response"]
        assert answer["allowed"] is decision.allowed
        if decision.allowed:
            assert "status" not in answer
            continue
        status = answer["status"]
        assert (status["status"], status["code"], status["reason"]) == ("Failure", 403, "Forbidden")
        assert status["details"].keys() == {"name", "kind", "causes"}
        assert KUBERNETES_CAUSES.isdisjoint(cause["reason"] for cause in status["details"]["causes"])


# --- Annotations ----------------------------------------------------------------------------------------------------


def test_the_audit_log_keeps_what_a_name_meant() -> None:
    assert audit_annotations(FULL, NOW) == {
        "verdict": "full",
        "reason": "NoGPUCapacity",
        "snapshot-age-seconds": "37",
        "resolved": (
            '{"example.com/gpu":{"count":1,"class":"gpu-a100","drivers":["gpu.example.com"],"pools":2,"devices":8,'
            '"memory":["40Gi","80Gi"]}}'
        ),
    }


def test_what_is_not_known_is_left_out_of_the_audit_log() -> None:
    assert audit_annotations(STALE, NOW) == {
        "verdict": "unknown",
        "reason": "StaleSnapshot",
        "resolved": '{"example.com/gpu":{"count":1,"class":"gpu-a100"}}',
    }
    assert audit_annotations(OPTED_OUT, NOW) == {"verdict": "unknown", "reason": "OptedOut"}


RESOLVED = {
    "a name a device plugin may serve": (
        NeedVerdict("a.io/b", "", 2, Outcome.UNKNOWN, Reason.DevicePlugin),
        {"a.io/b": {"count": 2}},
    ),
    "a claim that has its devices": (NeedVerdict("a/b", "", 0, Outcome.UNKNOWN, Reason.ClaimAllocated), None),
    "a fraction of a device": (NeedVerdict("a.io/b", "", 0, Outcome.UNKNOWN, Reason.FractionalQuantity), None),
}


@pytest.mark.parametrize("case", RESOLVED)
def test_what_is_asked_for_is_kept_also_where_its_class_is_not_known(case: str) -> None:
    need, kept = RESOLVED[case]
    found = audit_annotations(Verdict(need.outcome, need.reason, (need,)), NOW)
    assert json.loads(found.get("resolved", "null")) == kept


def test_the_live_view_and_the_future_are_no_seconds_old() -> None:
    live = replace(ROOM, source="witness", snapshot_time=None)
    assert audit_annotations(live, NOW)["snapshot-age-seconds"] == "0"
    assert audit_annotations(ROOM, TAKEN_AT - 5)["snapshot-age-seconds"] == "0"


def test_every_judged_pod_is_annotated_whatever_the_mode() -> None:
    for verdict, mode in itertools.product(VERDICTS, (ENFORCE, WARN, AUDIT)):
        decision = admit(BARE, verdict, Rules(mode=mode), NOW)
        assert decision.reason is verdict.reason
        assert decision.audit_annotations == ({} if verdict is NOTHING else audit_annotations(verdict, NOW))


def test_a_pod_without_devices_costs_a_plain_answer() -> None:
    assert sent(admit(BARE, NOTHING, Rules(), NOW)) == ENVELOPE + b'{"uid":"0d1d","allowed":true}}'


# --- Workloads ------------------------------------------------------------------------------------------------------


def test_a_workload_is_never_refused() -> None:
    fitting = "0 of 3 pods fit now; they start by themselves when devices are free"
    assert advise(FULL, 3, Rules(), NOW).warnings == (HEAD, f"{ALL_TAKEN}, counted 37s ago", fitting)
    for verdict, mode in itertools.product(VERDICTS, Mode):
        decision = advise(verdict, 3, Rules(mode=mode, refuse_never_fits=True), NOW)
        assert decision.allowed
        assert decision.status is None
        assert mode in (ENFORCE, WARN) or decision.warnings == ()


def test_switched_off_means_not_a_word() -> None:
    assert admit(BARE, FULL, Rules(mode=OFF), NOW) == Decision(allowed=True, mode=OFF, reason=Reason.NoGPUCapacity)
