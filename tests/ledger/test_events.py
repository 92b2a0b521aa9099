"""What a line of an audit log says of a pod: which events count, which annotations are ours, what became of the pod."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.admission.admit import audit_annotations
from app.dra.reasons import Reason
from app.dra.verdict import NeedVerdict, Outcome, Verdict
from app.ledger.events import Ask, Meaning, NotAnEvent, PodOutcome, Review, event, review
from tests.dra.small_clusters import quick
from tests.dra.verdicts import FULL_NEED
from tests.ledger import auditing
from tests.ledger.auditing import ENFORCE, GPU, Json, line, meant, refused


def read(of: Json) -> Review | None:
    found = event(line(of))
    return review(found) if found.creates_pod() else None


def the(of: Json) -> Review:
    found = read(of)
    assert found is not None
    return found


# --- Which events -----------------------------------------------------------------------------------------------------

COUNTED = {
    "a creation": {},
    "a creation by server-side apply": {"verb": "patch"},
    "one that ended in a panic": {"stage": "Panic"},
}
NOT_COUNTED = {
    "a request that has only come in": {"stage": "RequestReceived"},
    "a response that has only begun": {"stage": "ResponseStarted"},
    "an update": {"verb": "update"},
    "a deletion": {"verb": "delete"},
    "a part of a pod": {"objectRef": {"resource": "pods", "namespace": "team-a", "subresource": "binding"}},
    "another kind": {"objectRef": {"resource": "configmaps", "namespace": "team-a"}},
    "pods of another group": {"objectRef": {"resource": "pods", "apiGroup": "example.com", "namespace": "team-a"}},
    "a request without an object": {"objectRef": None},
    "an answer nobody wrote down": {"responseStatus": None},
    "a pod nobody judged": {"annotations": {"authorization.k8s.io/decision": "allow"}},
    "no annotations": {"annotations": None},
    "another webhook with a key like ours": {"annotations": {"a.example.com/verdict": "fine"}},
    "another webhook with a word like ours": {"annotations": {"a.example.com/verdict": "full"}},
    "another webhook with a reason of its own": {
        "annotations": {"a.example.com/verdict": "full", "a.example.com/reason": "Because"}
    },
}


@pytest.mark.parametrize("case", COUNTED)
def test_the_end_of_a_creation_is_counted(case: str) -> None:
    assert read(auditing.event(**COUNTED[case])) is not None


@pytest.mark.parametrize("case", NOT_COUNTED)
def test_nothing_else_is(case: str) -> None:
    assert read(auditing.event(**NOT_COUNTED[case])) is None


NO_EVENTS = {
    "nothing": b"\n",
    "half a line": b'"verb":"create","objectRef":{}}\n',
    "text": b"I1130 08:00:00.000000       1 server.go:1] started\n",
    "another object": b'{"kind":"Pod","apiVersion":"v1"}\n',
    "an event in a list": b'[{"kind":"Event"}]\n',
    "a field of another type": line(auditing.event(annotations={"a": 1})),
    "no UTF-8": line(auditing.event()).replace(b"team-a", b"\xff"),
    "deep nesting": b'{"auditID":"1","stage":"Panic","a":' + b"[" * 100_000,
}


@pytest.mark.parametrize("case", NO_EVENTS)
def test_what_is_no_event_is_told(case: str) -> None:
    with pytest.raises(NotAnEvent):
        event(NO_EVENTS[case])


URIS = {
    "?dryRun=All": True,
    "?fieldManager=kubectl-create&dryRun=All": True,
    "?dry%52un=All": True,
    "": False,
    "?dryRun=": False,
    "?fieldManager=dryRun%3DAll": False,
}


@pytest.mark.parametrize("query", URIS)
def test_a_dry_run_is_known_by_its_query(query: str) -> None:
    assert the(auditing.event(requestURI=f"/api/v1/namespaces/team-a/pods{query}")).dry_run is URIS[query]


# --- What became of the pod -------------------------------------------------------------------------------------------

QUOTA = {"status": "Failure", "message": 'pods "p" is forbidden: exceeded quota: q', "reason": "Forbidden", "code": 403}
OTHER_WEBHOOK = QUOTA | {"message": 'admission webhook "other.example.com" denied the request: [NoGPUCapacity] no'}

ENDS = {
    "room": (auditing.event(), "admitted"),
    "no room": (refused(), "refused"),
    "never fits, and the platform team refuses it": (auditing.event(found="never NeverFits", denied=True), "refused"),
    "no room, in a namespace that warns": (
        auditing.event(found="full NoGPUCapacity", webhook="warn.pods.gpu-vacancy.dev"),
        "warned",
    ),
    "no room, for an owner that must not be refused": (auditing.event(found="full NoGPUCapacity"), "warned"),
    "no room, in a namespace that audits": (
        auditing.event(found="full NoGPUCapacity", webhook="audit.pods.gpu-vacancy.dev"),
        "admitted",
    ),
    "never fits": (auditing.event(found="never NeverFits"), "warned"),
    "fewer than asked": (auditing.event(found="room FewerThanAsked"), "warned"),
    "not known, and whoever asks is told": (auditing.event(found="unknown StaleSnapshot"), "warned"),
    "not known, as is to be expected": (auditing.event(found="unknown OptedOut"), "admitted"),
    "a webhook called otherwise": (auditing.event(webhook="gpu.corp.example.com"), "admitted"),
    "refused by a webhook called otherwise": (refused(webhook="gpu.corp.example.com"), "refused"),
    "room, and a quota is exceeded": (auditing.event(responseStatus=QUOTA), "failed"),
    "no room, and another webhook was faster to say no": (refused(responseStatus=OTHER_WEBHOOK), "failed"),
    "room, and the API server broke": (auditing.event(stage="Panic", responseStatus={"code": 500}), "failed"),
}


@pytest.mark.parametrize("case", ENDS)
def test_what_became_of_a_pod(case: str) -> None:
    of, outcome = ENDS[case]
    assert the(of).outcome == outcome


def test_of_two_installations_the_one_that_refused_is_believed() -> None:
    denied = refused(webhook="second.example.com")
    denied["annotations"] |= {"first.example.com/verdict": "room", "first.example.com/reason": "HasRoom"}
    found = the(denied)
    assert (found.outcome, found.reason) == (PodOutcome.REFUSED, Reason.NoGPUCapacity)


# --- What it asked for ------------------------------------------------------------------------------------------------


def test_what_the_webhook_writes_is_what_is_read() -> None:
    need = msgspec.structs.replace(FULL_NEED, drivers=("a.example.com", "b.example.com"), memory=("40Gi", "80Gi"))
    verdict = Verdict(Outcome.FULL, Reason.NoGPUCapacity, (need,), source="both", snapshot_time=0.0)
    written = {f"{ENFORCE}/{key}": value for key, value in audit_annotations(verdict, 3.0).items()}
    meaning = Meaning(need.name, need.class_name, ("a.example.com", "b.example.com"), ("40Gi", "80Gi"))
    assert the(refused(annotations=written)).asks == (Ask(meaning, need.count, need.total),)


def test_a_name_without_a_class_is_asked_for_all_the_same() -> None:
    need = NeedVerdict(GPU, "", 2, Outcome.UNKNOWN, Reason.DevicePlugin)
    verdict = Verdict(Outcome.UNKNOWN, Reason.DevicePlugin, (need,))
    written = {f"{ENFORCE}/{key}": value for key, value in audit_annotations(verdict, 3.0).items()}
    found = the(auditing.event(annotations=written))
    assert (found.asks, found.readable) == ((Ask(Meaning(GPU, "", (), None), 2, None),), True)


def test_a_claim_is_asked_for_by_class_whatever_the_pod_calls_it() -> None:
    asked = {"gpu/one": meant(), "other/two": meant(2), "deviceclass.resource.kubernetes.io/gpu": meant(4)}
    counts = {ask.meaning.name: ask.count for ask in the(auditing.event(resolved=asked)).asks}
    assert counts == {"": 3, "deviceclass.resource.kubernetes.io/gpu": 4}


MEMORIES = {
    "as written": (("40Gi", "80Gi"), ("40Gi", "80Gi")),
    "in another unit": (("40960Mi", "85899345920"), ("40Gi", "80Gi")),
    "not known": (None, None),
    "not a quantity": (("lots", "80Gi"), None),
    "a quantity of four thousand digits": (("1", "9" * 4000), None),
    "a quantity of a million digits": (("1", "9" * 1_000_000), None),
}


@pytest.mark.parametrize("case", MEMORIES)
def test_memory_has_one_form_and_is_not_known_where_it_has_none(case: str) -> None:
    written, known = MEMORIES[case]
    (ask,) = the(auditing.event(resolved={GPU: meant(memory=written)})).asks
    assert ask.meaning.memory == known


UNREADABLE = {
    "half of it": '{"example.com/gpu":{"count":1,',
    "another form": '{"example.com/gpu":1}',
    "no count": '{"example.com/gpu":{"class":"gpu"}}',
    "less than none": json.dumps({GPU: meant(-1)}),
    "more than there can be": json.dumps({GPU: meant(10**30)}),
    "deep nesting": '{"example.com/gpu":{"count":1,"class":"gpu","more":' + "[" * 100_000,
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_pod_counts_also_where_its_asks_cannot_be_read(case: str) -> None:
    found = the(auditing.event(resolved=UNREADABLE[case]))
    assert (found.outcome, found.asks, found.readable) == (PodOutcome.ADMITTED, (), False)


def test_a_pod_of_which_nothing_is_resolved_has_no_asks_and_that_is_no_fault() -> None:
    of = auditing.event(found="unknown OptedOut")
    del of["annotations"][f"{ENFORCE}/resolved"]
    assert (the(of).asks, the(of).readable) == ((), True)


@quick
@given(st.binary(max_size=200))
def test_bytes_are_an_event_or_they_are_told_to_be_none(junk: bytes) -> None:
    try:
        review(event(junk))
    except NotAnEvent:
        return
