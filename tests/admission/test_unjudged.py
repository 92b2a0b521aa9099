"""Requests that are answered without a judgement, in bytes."""

import json

import pytest

from app.admission.admit import Decision, Mode, Rules, not_checked, unjudged, unjudged_workload
from app.admission.review import AdmissionRequest, decode_review, encode_response
from app.dra.reasons import Reason

ENVELOPE = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":'
PLAIN = b'{"uid":"0d1d","allowed":true}}'


def unchecked(reason: str, words: str) -> bytes:
    return (
        f'{{"uid":"0d1d","allowed":true,"warnings":["GPU capacity not checked: {reason}, {words}"],'
        f'"auditAnnotations":{{"verdict":"unknown","reason":"{reason}"}}}}}}'
    ).encode()


def review(**parts: object) -> bytes:
    posted = {"uid": "0d1d", "operation": "CREATE", "resource": {"group": "", "version": "v1", "resource": "pods"}}
    posted["object"] = {"spec": {"containers": []}}
    document = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {**posted, **parts}}
    return json.dumps(document).encode()


ANSWERED_UNREAD = {
    "an update": (review(operation="UPDATE"), PLAIN),
    "a deletion": (review(operation="DELETE", object=None), PLAIN),
    "a sub-resource": (review(subResource="ephemeralcontainers"), PLAIN),
    "no containers": (
        review(object={"spec": {}}),
        unchecked("UnknownField", "Object missing required field `containers` - at `$.request.object.spec`"),
    ),
    "an object of null": (review(object=None), unchecked("UnknownField", "the request holds no object")),
    "another resource": (
        review(resource={"group": "apps", "resource": "deployments"}),
        unchecked("UnknownField", "expected pods, found deployments.apps"),
    ),
    "a group of its own": (
        review(resource={"group": "example.com", "resource": "pods"}),
        unchecked("UnknownField", "expected pods, found pods.example.com"),
    ),
    "no resource": (review(resource={}), unchecked("UnknownField", "expected pods, found nothing")),
}


@pytest.mark.parametrize("case", ANSWERED_UNREAD)
def test_bytes_in_and_out_without_a_judgement(case: str) -> None:
    body, answer = ANSWERED_UNREAD[case]
    decision = unjudged(decode_review(body), Rules())
    assert decision is not None
    assert sent(decision) == ENVELOPE + answer


def test_an_ordinary_pod_is_judged() -> None:
    assert unjudged(decode_review(review()), Rules()) is None
    assert unjudged(decode_review(review(dryRun=True)), Rules()) is None


def test_switched_off_means_not_a_word() -> None:
    for pod in (AdmissionRequest(uid="0d1d", operation="CREATE"), AdmissionRequest(uid="0d1d", problem="unreadable")):
        for decision in (unjudged(pod, Rules(mode=Mode.OFF)), unjudged_workload(pod, Rules(mode=Mode.OFF))):
            assert decision == Decision(allowed=True, mode=Mode.OFF)


def test_a_bug_of_ours_admits_and_says_so() -> None:
    answer = unchecked("InternalError", "an error in Vacancy itself")
    assert sent(not_checked(Reason.InternalError)) == ENVELOPE + answer
    assert not_checked(Reason.InternalError, mode=Mode.AUDIT).warnings == ()
    assert not_checked(Reason.InternalError, mode=Mode.AUDIT).audit_annotations["reason"] == "InternalError"


WORKLOAD_OPERATIONS = {("CREATE", ""): True, ("UPDATE", ""): True, ("UPDATE", "scale"): False, ("DELETE", ""): False}


@pytest.mark.parametrize("operation", WORKLOAD_OPERATIONS)
def test_a_workload_is_looked_at_when_it_is_written(operation: tuple[str, str]) -> None:
    posted = AdmissionRequest(uid="0d1d", operation=operation[0], sub_resource=operation[1])
    decision = unjudged_workload(posted, Rules())
    assert (decision is None) is WORKLOAD_OPERATIONS[operation]
    assert decision in (None, Decision(allowed=True, mode=Mode.ENFORCE))


def test_an_unreadable_workload_is_admitted_and_said_so() -> None:
    decision = unjudged_workload(AdmissionRequest(uid="0d1d", problem="no template"), Rules())
    assert decision is not None
    assert decision.warnings == ("GPU capacity not checked: UnknownField, no template",)


def sent(decision: Decision) -> bytes:
    return encode_response(
        "0d1d",
        allowed=decision.allowed,
        status=decision.status,
        warnings=decision.warnings,
        audit_annotations=decision.audit_annotations,
    )
