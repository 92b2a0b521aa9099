"""AdmissionReview by bytes: what comes in, what goes out."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.admission.review import (
    MAX_BODY_BYTES,
    AdmissionRequest,
    BadReview,
    Status,
    StatusCause,
    StatusDetails,
    decode_review,
    decode_workload_review,
    encode_response,
)

START = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"0d1d","object":'
POD = b'{"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{"example.com/gpu":"1"}}}]}}'
DEEP = b'{"spec":{"containers":[],"x":' + b'[{"uid":"no\\"]}","request":' * 2500 + b"1" + b"}]" * 2500 + b"}}"
NOT_A_REVIEW = "the body is not an AdmissionReview in JSON: "
NO_UID = "the AdmissionReview has no request.uid"


def review(**request: object) -> bytes:
    """As the API server writes it, with the line feed at its end."""
    document = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": "0d1d", **request}}
    return json.dumps(document).encode() + b"\n"


def test_a_request_of_the_api_server() -> None:
    request = decode_review(
        review(
            kind={"group": "", "version": "v1", "kind": "Pod"},
            resource={"group": "", "version": "v1", "resource": "pods"},
            requestKind={"group": "", "version": "v1", "kind": "Pod"},
            name="p",
            namespace="t2",
            operation="CREATE",
            userInfo={"username": "admin", "groups": ["system:masters"]},
            object=json.loads(POD),
            oldObject=None,
            dryRun=True,
            options={"kind": "CreateOptions"},
        )
    )
    assert request.pod is not None
    assert request.pod.metadata.name == "p"
    assert request.pod.spec.containers[0].resources is not None
    assert request.pod.spec.containers[0].resources.requests == {"example.com/gpu": "1"}
    assert request == AdmissionRequest(
        uid="0d1d",
        operation="CREATE",
        kind="Pod",
        resource="pods",
        namespace="t2",
        name="p",
        dry_run=True,
        username="admin",
        pod=request.pod,
    )


def test_a_workload_stays_as_it_came() -> None:
    body = review(
        kind={"group": "apps", "version": "v1", "kind": "Deployment"},
        resource={"group": "apps", "version": "v1", "resource": "deployments"},
        subResource="scale",
        object={"spec": {"replicas": 3}},
    )
    request = decode_workload_review(body)
    assert (request.kind, request.resource, request.sub_resource) == ("Deployment", "deployments.apps", "scale")
    assert request.workload is not None
    assert bytes(request.workload) == b'{"spec": {"replicas": 3}}'
    assert request.pod is None
    assert decode_workload_review(review()).workload == msgspec.Raw(b"null")


UNANSWERABLE = {
    "nothing": (b"", NOT_A_REVIEW + "Input data was truncated"),
    "a blank": (b" ", NOT_A_REVIEW + "Input data was truncated"),
    "cut short": (START + b'{"spec":', NOT_A_REVIEW + "Input data was truncated"),
    "not JSON": (b"<html>", NOT_A_REVIEW + "JSON is malformed: invalid character (byte 0)"),
    "a byte order mark": (b"\xef\xbb\xbf" + review(), NOT_A_REVIEW + "JSON is malformed: invalid character (byte 0)"),
    "NaN is not JSON": (START + b"NaN}}", NOT_A_REVIEW + "JSON is malformed: invalid character (byte 94)"),
    "something after the end": (review() + b"{}", NOT_A_REVIEW + "JSON is malformed: trailing characters (byte 94)"),
    "an array": (b"[]", NOT_A_REVIEW + "Expected `object`, got `array`"),
    "null": (b"null", NOT_A_REVIEW + "Expected `object`, got `null`"),
    "an empty object": (b"{}", "expected kind 'AdmissionReview' of 'admission.k8s.io/v1', found kind '' of ''"),
    "another kind": (
        review().replace(b"AdmissionReview", b"SubjectAccessReview"),
        (
            "expected kind 'AdmissionReview' of 'admission.k8s.io/v1', "
            "found kind 'SubjectAccessReview' of 'admission.k8s.io/v1'"
        ),
    ),
    "the old version": (
        review().replace(b"k8s.io/v1", b"k8s.io/v1beta1"),
        (
            "expected kind 'AdmissionReview' of 'admission.k8s.io/v1', "
            "found kind 'AdmissionReview' of 'admission.k8s.io/v1beta1'"
        ),
    ),
    "a kind with a line feed": (
        review().replace(b"AdmissionReview", b"a\\n\\u00e9"),
        "expected kind 'AdmissionReview' of 'admission.k8s.io/v1', found kind 'a\\n\\xe9' of 'admission.k8s.io/v1'",
    ),
    "no request": (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', NO_UID),
    "a request of null": (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}', NO_UID),
    "no uid": (review().replace(b"uid", b"UID"), NO_UID),
    "an empty uid": (review(uid=""), NO_UID),
    "no uid beside an unreadable pod": (review(uid="", object=7), NO_UID),
    "a uid of null": (review(uid=None), NOT_A_REVIEW + "Expected `str`, got `null` - at `$.request.uid`"),
    "a numeric uid": (review(uid=7), NOT_A_REVIEW + "Expected `str`, got `int` - at `$.request.uid`"),
    "a uid that is not UTF-8": (review().replace(b"0d1d", b"\xff"), NOT_A_REVIEW + "Invalid UTF-8 encoded string"),
    "half a surrogate pair as uid": (review(uid="\ud800"), NOT_A_REVIEW + "Input data was truncated"),
    "5 MB of brackets": (START + b"[" * 5_000_000, "the body is nested too deeply"),
    "a uid in a nested field alone": (
        START.replace(b'"uid":"0d1d",', b"") + DEEP.replace(b'"x"', b'"uid":"0d1d","x"') + b"}}",
        NO_UID,
    ),
    "a string without an end after deep nesting": (
        START + DEEP + b',"s":"' + b'\\"' * 100_000,
        "the body is nested too deeply",
    ),
}


@pytest.mark.parametrize("case", UNANSWERABLE)
def test_without_a_uid_there_is_no_answer(case: str) -> None:
    body, text = UNANSWERABLE[case]
    for decode in (decode_review, decode_workload_review):
        with pytest.raises(BadReview) as caught:
            decode(body)
        assert (caught.value.status, caught.value.text, str(caught.value)) == (400, text, text)


UNREADABLE = {
    "an object of another type": (b"7", "Expected `object | null`, got `int` - at `$.request.object`"),
    "no containers": (b'{"spec":{}}', "Object missing required field `containers` - at `$.request.object.spec`"),
    "containers of null": (
        b'{"spec":{"containers":null}}',
        "Expected `array`, got `null` - at `$.request.object.spec.containers`",
    ),
    "a quantity that is an object": (
        POD.replace(b'"1"', b"{}"),
        (
            "Expected `int | float | str`, got `object` - "
            "at `$.request.object.spec.containers[0].resources.requests[...]`"
        ),
    ),
    "a quantity beyond every number": (
        POD.replace(b'"1"', b"1e999"),
        "Number out of range - at `$.request.object.spec.containers[0].resources.requests[...]`",
    ),
    "a name that is not UTF-8": (POD.replace(b'"p"', b'"\xff"'), "Invalid UTF-8 encoded string"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_with_a_uid_a_problem_is_a_request(case: str) -> None:
    pod, problem = UNREADABLE[case]
    request = decode_review(START + pod + b"}}")
    assert request == AdmissionRequest(uid="0d1d", problem=problem)


TOO_DEEP = {
    "an object": START + DEEP + b"}}",
    "an object before the uid": START.replace(b'"uid":"0d1d",', b"") + DEEP + b',"uid":"0d1d"}}',
    "a field before the request": START.replace(b'"request"', b'"x":' + DEEP + b',"request"') + b"null}}",
    "two fields": START + DEEP + b',"y":' + DEEP + b"}}",
}


@pytest.mark.parametrize("case", TOO_DEEP)
def test_what_is_nested_too_deeply_does_not_hide_the_uid(case: str) -> None:
    for decode in (decode_review, decode_workload_review):
        assert decode(TOO_DEEP[case]) == AdmissionRequest(uid="0d1d", problem="nested too deeply")


def test_a_field_of_the_envelope_can_be_the_problem_too() -> None:
    problem = "Expected `str`, got `array` - at `$.request.operation`"
    assert decode_review(review(operation=[])) == AdmissionRequest(uid="0d1d", problem=problem)
    assert decode_workload_review(review(operation=[])) == AdmissionRequest(uid="0d1d", problem=problem)


READABLE = {
    "an object of null": START + b"null}}",
    "no object": review(),
    "a line feed at the end": review() + b"\n",
    "the second of two equal keys counts": review().replace(b'"uid"', b'"uid":"no","uid"'),
    "fields nobody reads": review(problem="forged", pod=1, extra={"deep": [[[]]]}),
    "a field nobody reads that is not UTF-8": START + b'null,"extra":"\xff"}}',
}


@pytest.mark.parametrize("case", READABLE)
def test_what_is_no_problem(case: str) -> None:
    assert decode_review(READABLE[case]) == AdmissionRequest(uid="0d1d")


def test_a_large_body_costs_nothing_but_time() -> None:
    body = review(object={"spec": {"containers": [{"image": "x" * 1000}] * 5000}})
    assert len(body) > MAX_BODY_BYTES
    pod = decode_review(body).pod
    assert pod is not None
    assert len(pod.spec.containers) == 5000


# --- Out ------------------------------------------------------------------------------------------------------------

ENVELOPE = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":'
REFUSED = Status(
    status="Failure",
    message='[NoGPUCapacity] "none"',
    reason="Forbidden",
    details=StatusDetails("p", "pods", (StatusCause("NoGPUCapacity", "all taken", "spec.containers[0]"),)),
    code=403,
)


def test_a_plain_admission() -> None:
    assert encode_response("0d1d", allowed=True) == ENVELOPE + b'{"uid":"0d1d","allowed":true}}'


def test_allowed_is_written_even_when_it_is_false() -> None:
    """The API server takes a missing `allowed` for a refusal, and encoders like to leave out what is false."""
    assert encode_response("0d1d", allowed=False) == ENVELOPE + b'{"uid":"0d1d","allowed":false}}'


def test_an_admission_with_everything() -> None:
    assert encode_response("0d1d", allowed=True, warnings=("a", "b"), audit_annotations={"reason": "HasRoom"}) == (
        ENVELOPE + b'{"uid":"0d1d","allowed":true,"warnings":["a","b"],"auditAnnotations":{"reason":"HasRoom"}}}'
    )


def test_a_refusal() -> None:
    assert encode_response("0d1d", allowed=False, status=REFUSED, audit_annotations={"verdict": "full"}) == (
        ENVELOPE + b'{"uid":"0d1d","allowed":false,"status":{"status":"Failure",'
        b'"message":"[NoGPUCapacity] \\"none\\"","reason":"Forbidden","details":{"name":"p","kind":"pods","causes":'
        b'[{"reason":"NoGPUCapacity","message":"all taken","field":"spec.containers[0]"}]},"code":403},'
        b'"auditAnnotations":{"verdict":"full"}}}'
    )


uids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


@given(
    uid=uids,
    allowed=st.booleans(),
    warnings=st.lists(st.text(st.characters(codec="utf-8"))),
    annotations=st.dictionaries(st.text("az-"), st.text("é{")),
)
def test_what_goes_out_is_json_that_says_the_same(
    *,
    uid: str,
    allowed: bool,
    warnings: list[str],
    annotations: dict[str, str],
) -> None:
    answer = json.loads(encode_response(uid, allowed=allowed, warnings=tuple(warnings), audit_annotations=annotations))
    assert answer.keys() == {"apiVersion", "kind", "response"}
    response = answer["response"]
    assert response.pop("uid") == uid
    assert response.pop("allowed") is allowed
    assert response.pop("warnings", []) == warnings
    assert response.pop("auditAnnotations", {}) == annotations
    assert response == {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
PARTS = ("kind", "resource", "operation", "namespace", "name", "subResource", "dryRun", "userInfo", "object")


@given(uids, st.dictionaries(st.sampled_from(PARTS), json_values))
def test_whatever_is_posted_beside_a_uid_the_uid_comes_back(uid: str, parts: dict[str, object]) -> None:
    for decode in (decode_review, decode_workload_review):
        request = decode(review(**{**parts, "uid": uid}))
        assert request.uid == uid
        assert "\n" not in request.problem


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_answered_or_refused_in_one_line(body: bytes) -> None:
    with pytest.raises(BadReview) as caught:
        decode_review(body)
    assert caught.value.text.isprintable()
