"""AdmissionReview v1 as bytes: a request comes in, an answer goes out.

Two rules hold whatever is posted. Without a uid nothing can be answered, so the door says 400. With a uid there is
always an answer that carries it: a request that cannot be read further is one with a `problem`, and is admitted.
"""

import re
from itertools import islice
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from app.dra.objects import Pod, Value, View

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""The API server reads requests of up to 3 MiB, and the review of a CREATE holds one object. That of an UPDATE holds
two, each of which has to fit into etcd's 1.5 MiB. The rest is for the envelope."""

CONTENT_TYPE: Final = "application/json"
"""The only type the API server sends."""

_API_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"


class BadReview(Exception):
    """A body that cannot be answered, because it tells no uid. `str()` is the one sentence the door answers with."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


# --- In -------------------------------------------------------------------------------------------------------------


class _GroupVersionKind(View, frozen=True):
    kind: str = ""


class _GroupVersionResource(View, frozen=True):
    group: str = ""
    resource: str = ""


class _UserInfo(View, frozen=True):
    username: str = ""


class _RequestHead(View, frozen=True):
    uid: str = ""


class _Request(_RequestHead, frozen=True):
    operation: str = ""
    kind: _GroupVersionKind = _GroupVersionKind()
    resource: _GroupVersionResource = _GroupVersionResource()
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool | None = None
    user_info: _UserInfo = _UserInfo()


_AnyRequest = TypeVar("_AnyRequest", bound=_RequestHead)


class _PodRequest(_Request, frozen=True):
    object: Pod | None = None


class _WorkloadRequest(_Request, frozen=True):
    object: Raw = Raw(b"null")
    old_object: Raw = Raw(b"null")


class _Envelope(View, frozen=True):
    api_version: str = ""
    kind: str = ""


class _HeadReview(_Envelope, frozen=True):
    request: _RequestHead | None = None


class _PodReview(_Envelope, frozen=True):
    request: _PodRequest | None = None


class _WorkloadReview(_Envelope, frozen=True):
    request: _WorkloadRequest | None = None


_head_review = msgspec.json.Decoder(_HeadReview)
_pod_review = msgspec.json.Decoder(_PodReview)
_workload_review = msgspec.json.Decoder(_WorkloadReview)


class AdmissionRequest(Value, frozen=True):
    """What the API server asks about. Only `uid` is certain; with a `problem` nothing else is."""

    uid: str
    problem: str = ""
    """Why the rest could not be read, in one line; empty: it could."""
    operation: str = ""
    kind: str = ""
    resource: str = ""
    """As Kubernetes writes a resource and its group: `pods`, `deployments.apps`."""
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    username: str = ""
    pod: Pod | None = None
    """The object, of a request about pods."""
    workload: Raw | None = None
    """The object as it came, of a request about workloads."""
    workload_before: Raw | None = None
    """The object as it was until now, of an update."""


def decode_review(body: bytes) -> AdmissionRequest:
    """The request of a review of pods. Raises BadReview when there is no uid to answer.

    The whole body is read in one typed pass; only one that fails costs a second.
    """
    try:
        review = _pod_review.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        return _unreadable(body, error)
    request = _answerable(review, review.request)
    return _admission_request(request, pod=request.object)


def decode_workload_review(body: bytes) -> AdmissionRequest:
    """The same for a review of workload objects, whose kinds differ in shape: the object stays as it came."""
    try:
        review = _workload_review.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        return _unreadable(body, error)
    request = _answerable(review, review.request)
    before = None if bytes(request.old_object) == b"null" else request.old_object
    return _admission_request(request, workload=request.object, before=before)


def _admission_request(
    request: _Request, *, pod: Pod | None = None, workload: Raw | None = None, before: Raw | None = None
) -> AdmissionRequest:
    group, resource = request.resource.group, request.resource.resource
    return AdmissionRequest(
        uid=request.uid,
        operation=request.operation,
        kind=request.kind.kind,
        resource=f"{resource}.{group}" if group else resource,
        sub_resource=request.sub_resource,
        namespace=request.namespace,
        name=request.name,
        dry_run=request.dry_run is True,
        username=request.user_info.username,
        pod=pod,
        workload=workload,
        workload_before=before,
    )


def _unreadable(body: bytes, error: Exception) -> AdmissionRequest:
    """A second pass that wants nothing but the uid, so that the one odd field does not cost the answer."""
    try:
        review = _head(body)
    except msgspec.DecodeError as again:
        raise BadReview(400, f"the body is not an AdmissionReview in JSON: {_one_line(again)}") from again
    request = _answerable(review, review.request)
    problem = "nested too deeply" if isinstance(error, RecursionError) else _one_line(error)
    return AdmissionRequest(uid=request.uid, problem=problem)


def _head(body: bytes) -> _HeadReview:
    """The review as far as its uid; what is nested too deeply for the decoder does not hide it."""
    try:
        return _head_review.decode(body)
    except RecursionError:
        pass
    try:
        return _head_review.decode(_shallow(body))
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadReview(400, "the body is nested too deeply") from error


# A string, or a bracket. Possessive, with an end that may be missing: it never reads a byte twice.
_TOKENS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[][{}]', re.DOTALL)
_TOKENS_AT_MOST: Final = 50_000  # some 10 ms
_DEEPEST: Final = 50  # a uid is at depth 2, the fields of a pod that are read above 10


def _shallow(body: bytes) -> bytes:
    """The body with null in the place of what is nested too deeply; if there is too much to look at, not of all."""
    kept, start, depth = [], 0, 0
    for token in islice(_TOKENS.finditer(body), _TOKENS_AT_MOST):
        if token[0] in b"[{":
            depth += 1
            if depth == _DEEPEST:
                kept.append(body[start : token.start()])
                start = len(body)
        elif token[0] in b"]}":
            if depth == _DEEPEST:
                kept.append(b"null")
                start = token.end()
            depth -= 1
    return b"".join((*kept, body[start:]))


def _answerable(review: _Envelope, request: _AnyRequest | None) -> _AnyRequest:
    """The request, if it is one of ours and has a uid. Raises BadReview."""
    if review.kind != _KIND or review.api_version != _API_VERSION:
        found = f"kind {review.kind[:60]!a} of {review.api_version[:60]!a}"
        raise BadReview(400, f"expected kind '{_KIND}' of '{_API_VERSION}', found {found}")
    if request is None or not request.uid:
        raise BadReview(400, "the AdmissionReview has no request.uid")
    return request


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


# --- Out ------------------------------------------------------------------------------------------------------------


class StatusCause(Struct, frozen=True):
    """One entry of `status.details.causes`."""

    reason: str
    message: str
    field: str


class StatusDetails(Struct, frozen=True, omit_defaults=True):
    """`status.details`; without `retryAfterSeconds`, which makes clients repeat the request in silence."""

    name: str = ""
    kind: str = ""
    causes: tuple[StatusCause, ...] = ()


class Status(Struct, frozen=True):
    """`status` of a refusal. The API server turns a code below 400 into 400 and passes everything else on."""

    status: str
    message: str
    reason: str
    details: StatusDetails
    code: int


class _Response(Struct, frozen=True, omit_defaults=True, rename="camel"):
    uid: str
    allowed: bool  # without a default, thus always written: the API server refuses when it is missing
    status: Status | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: dict[str, str] = {}


class _ResponseReview(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    response: _Response


_encoder = msgspec.json.Encoder()
_ALLOWED_START: Final = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":'
_ALLOWED_END: Final = b',"allowed":true}}'


def encode_response(
    uid: str,
    *,
    allowed: bool,
    status: Status | None = None,
    warnings: tuple[str, ...] = (),
    audit_annotations: dict[str, str] | None = None,
) -> bytes:
    """The answer's bytes. A plain admission, which nearly all are, is put together around the uid."""
    if allowed and not warnings and not audit_annotations:
        return _ALLOWED_START + _encoder.encode(uid) + _ALLOWED_END
    response = _Response(uid, allowed, status, warnings, audit_annotations or {})
    return _encoder.encode(_ResponseReview(_API_VERSION, _KIND, response))
