"""The webhook's door: paths and modes, bad requests by exact bytes, and what happens when we break."""

import asyncio
import json
import logging
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Never

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.admission.admit import Mode, Rules
from app.admission.review import MAX_BODY_BYTES, AdmissionRequest
from app.dra.demand import ClaimReferences, Lookups
from app.dra.judgement import World
from app.dra.tallies import COUNTED_SOON
from app.dra.wake import WakeQueue
from app.metrics import DoorCounts
from app.web.admit import AdmissionDoor
from app.web.probes import Probes
from tests.web.reviews import UID, Answered, deployment, pod, post, review
from tests.web.tiny_cluster import CLUSTER, NOW, cluster

REFUSAL = (
    "[NoGPUCapacity] no free device for example.com/full (1 asked): the only device of class full is taken in 1 pool, "
    "seen live. Try again later, wait in the queue with label gpu-vacancy.dev/queue=true, or run on CPU."
)

CLAIMING = pod("cpu", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-full"}])


class Door:
    """A door to the tiny cluster, and what it counts."""

    def __init__(self, folder: Path, rules: Rules | None = None, *, second_look_seconds: float = 0.0) -> None:
        self.embedded = cluster(folder)
        self.wake = WakeQueue()
        self.counts, self.probes = DoorCounts(), Probes()
        self.world = self.embedded.latest.get
        self.app = AdmissionDoor(
            rules=rules or Rules(),
            world=lambda: self.world(),  # noqa: PLW0108 - a test may replace it
            reader=self.embedded,
            now=lambda: NOW,
            counts=self.counts,
            probes=self.probes,
            wake=self.wake,
            second_look_seconds=second_look_seconds,
        )

    def post(self, *arguments: Any, **options: Any) -> Answered:  # noqa: ANN401 - those of `reviews.post`
        answered = post(self.app, *arguments, **options)
        assert answered is not None
        return answered


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


def too_large_to_be_counted_at_once(folder: Path, second_look_seconds: float) -> Door:
    door = Door(folder, second_look_seconds=second_look_seconds)
    door.world().witness.tallies.devices_at_once = 0
    return door


# --- Verdicts ---------------------------------------------------------------------------------------------------------


def test_a_pod_that_gets_no_device_is_refused_with_the_whole_sentence(door: Door) -> None:
    answered = door.post(review(pod()))
    assert answered.status == 200
    assert answered.headers["content-type"] == "application/json"
    assert answered.response["uid"] == UID
    assert answered.response["allowed"] is False
    assert answered.response["status"]["message"] == REFUSAL
    assert door.counts.decisions == {("deny", "enforce"): 1}
    assert door.counts.verdicts == {("full", "NoGPUCapacity"): 1}


def test_a_pod_that_gets_one_is_admitted(door: Door) -> None:
    assert door.post(review(pod("example.com/roomy"))).response["allowed"] is True
    assert door.counts.verdicts == {("room", "HasRoom"): 1}


def test_a_pod_without_devices_gets_the_plain_answer_byte_for_byte(door: Door) -> None:
    answered = door.post(review(pod("cpu")))
    assert answered.body == (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"%s","allowed":true}}'
        % UID.encode()
    )
    assert answered.headers["content-length"] == str(len(answered.body))


def test_claims_a_pod_names_are_read_in_its_namespace(door: Door) -> None:
    assert door.post(review(CLAIMING)).response["allowed"] is False
    assert door.post(review(CLAIMING, namespace="other")).response["allowed"] is True


def test_room_that_was_on_its_way_when_the_question_came_is_seen_before_a_refusal(tmp_path: Path) -> None:
    door = Door(tmp_path, second_look_seconds=0.01)
    full, looks = door.world, []

    def world() -> World:
        looks.append(None)
        if len(looks) == 2:
            (tmp_path / "cluster.yaml").write_text(CLUSTER.replace("device: gpu-0", "device: gone"), "utf-8")
            door.embedded.look()
        return full()

    door.world = world
    assert door.post(review(pod())).response["allowed"] is True
    assert door.counts.verdicts == {("room", "HasRoom"): 1}


@pytest.mark.parametrize(("looks", "allowed"), [(1000, False), (0, True)], ids=["counted meanwhile", "still not"])
def test_what_a_claim_is_the_first_to_ask_for_is_looked_at_again_once_it_may_be_counted(
    tmp_path: Path, looks: int, *, allowed: bool
) -> None:
    door = too_large_to_be_counted_at_once(tmp_path, second_look_seconds=0.01)

    async def answer() -> bytes:
        later = at_once(door, review(CLAIMING))
        assert isinstance(later, Coroutine)
        answering = asyncio.create_task(later)
        await asyncio.sleep(0)
        door.world().witness.tallies.work(looks)
        return await answering

    assert json.loads(asyncio.run(answer()))["response"]["allowed"] is allowed
    assert door.counts.verdicts.total() == 1


def test_a_workload_too_waits_for_what_its_claim_is_the_first_to_ask_for(tmp_path: Path) -> None:
    door = too_large_to_be_counted_at_once(tmp_path, second_look_seconds=0.01)
    template = {"spec": CLAIMING["spec"]}
    body = review(deployment() | {"spec": {"template": template}}, kind="Deployment", group="apps")

    async def warnings() -> bytes:
        answering = asyncio.create_task(door.app._answered(body, Rules(), of_pods=False))  # noqa: SLF001
        await asyncio.sleep(0)
        door.world().witness.tallies.work(1000)
        return await answering

    assert "no free device" in json.loads(asyncio.run(warnings()))["response"]["warnings"][0]


def test_what_takes_longer_to_be_counted_or_is_counted_before_it_is_asked_for_is_not_waited_for(tmp_path: Path) -> None:
    door = too_large_to_be_counted_at_once(tmp_path, second_look_seconds=60.0)
    assert isinstance(at_once(door, review(pod())), bytes)
    door.world().witness.tallies._worked += COUNTED_SOON  # noqa: SLF001
    assert door.post(review(CLAIMING)).response["allowed"] is True


def test_a_refusal_that_is_looked_at_twice_is_counted_once(tmp_path: Path) -> None:
    door = Door(tmp_path, second_look_seconds=0.01)
    assert door.post(review(pod())).response["status"]["message"] == REFUSAL
    assert door.counts.verdicts == {("full", "NoGPUCapacity"): 1}


MODES = {
    "/validate/enforce": (False, False),
    "/validate/warn": (True, True),
    "/validate/audit": (True, False),
}


@pytest.mark.parametrize("path", MODES)
def test_the_path_says_the_mode(door: Door, path: str) -> None:
    allowed, warned = MODES[path]
    response = door.post(review(pod()), path).response
    assert (response["allowed"], "warnings" in response) == (allowed, warned)
    assert response["auditAnnotations"]["verdict"] == "full"


def test_validate_without_a_mode_follows_the_setting(tmp_path: Path) -> None:
    assert Door(tmp_path, Rules(mode=Mode.AUDIT)).post(review(pod())).response["allowed"] is True


AT_ONCE: dict[str, tuple[bytes, dict[str, Any]]] = {
    "refused": (review(pod()), {}),
    "free": (review(pod("example.com/free")), {}),
    "no device": (review(pod("cpu")), {}),
    "refused, warned about": (review(pod()), {"path": "/validate/warn"}),
    "not a creation": (review(pod(), operation="DELETE"), {}),
    "not understood": (review({"spec": []}), {}),
}
LATER: dict[str, tuple[bytes, dict[str, Any]]] = {
    "refused, looked at twice": (review(pod()), {}),
    "claims to be read": (review(pod("cpu", resourceClaims=[{"name": "c", "resourceClaimName": "c"}])), {}),
}
NOT_AT_ONCE: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a workload": (review(deployment(), kind="Deployment", group="apps"), {"path": "/validate-workload"}),
    "another path": (review(pod()), {"path": "/validat"}),
    "another method": (review(pod()), {"method": "GET"}),
    "another type": (review(pod()), {"content_type": "text/plain"}),
    "no type": (review(pod()), {"content_type": None}),
    "no review": (b"{}", {}),
}


def at_once(  # noqa: PLR0913 - the defaults are those of `reviews.post`
    door: Door,
    body: bytes,
    path: str = "/validate",
    method: str = "POST",
    content_type: str | None = "application/json",
    *,
    ago: float = 0.0,
) -> bytes | Coroutine[Any, Any, bytes] | None:
    fields = [] if content_type is None else [(b"content-type", content_type.encode())]
    answer = door.app.at_once(method, path, fields)
    return None if answer is None else answer(body, time.perf_counter() - ago)


def assert_same(short: Door, long: Door) -> None:
    """Both counted one review, and the same of it."""
    assert [short.counts.decisions, short.counts.verdicts] == [long.counts.decisions, long.counts.verdicts]
    assert short.counts.decisions.total() == 1
    assert len(short.wake) == len(long.wake)


@pytest.mark.parametrize("case", AT_ONCE)
def test_what_needs_no_waiting_is_answered_at_once_as_it_is_otherwise_and_counted_alike(
    tmp_path: Path, case: str
) -> None:
    body, options = AT_ONCE[case]
    long, short = Door(tmp_path), Door(tmp_path)
    assert at_once(short, body, **options) == long.post(body, **options).body
    assert_same(short, long)


@pytest.mark.parametrize("case", LATER)
def test_what_has_to_wait_is_answered_later_as_it_is_otherwise(tmp_path: Path, case: str) -> None:
    body, options = LATER[case]
    long, short = (Door(tmp_path, second_look_seconds=0.001) for _ in range(2))
    later = at_once(short, body, **options)
    assert isinstance(later, Coroutine)
    assert not short.counts.verdicts
    assert asyncio.run(later) == long.post(body, **options).body
    assert_same(short, long)
    assert short.counts.open == 0


@pytest.mark.parametrize("case", NOT_AT_ONCE)
def test_everything_else_goes_the_long_way_and_is_counted_there(door: Door, case: str) -> None:
    body, options = NOT_AT_ONCE[case]
    assert at_once(door, body, **options) is None
    assert not door.counts.decisions
    assert not door.counts.bad_requests


def test_only_what_is_refused_is_looked_at_twice(tmp_path: Path) -> None:
    door = Door(tmp_path, second_look_seconds=60.0)
    assert isinstance(at_once(door, review(pod("example.com/free"))), bytes)
    assert isinstance(at_once(door, review(pod()), "/validate/warn"), bytes)
    only_warned = Door(tmp_path, Rules(warn_only_for=("*",)), second_look_seconds=60.0)
    assert isinstance(at_once(only_warned, review(pod())), bytes)


def test_what_had_to_wait_for_others_is_counted_with_the_time_it_waited(tmp_path: Path) -> None:
    door = Door(tmp_path, second_look_seconds=0.001)
    at_once(door, review(pod("example.com/free")), ago=100.0)
    asyncio.run(at_once(door, review(pod()), ago=200.0))  # type: ignore[arg-type]  # it is looked at twice
    assert door.counts.times["allow"].seconds > 100
    assert door.counts.times["deny"].seconds > 200


def test_nothing_is_answered_at_once_while_draining(door: Door) -> None:
    door.probes.draining = True
    assert at_once(door, review(pod())) is None


def test_a_bug_of_ours_admits_at_once_as_well(door: Door) -> None:
    door.world = lambda: (_ for _ in ()).throw(RuntimeError)
    content = at_once(door, review(pod()))
    assert content == door.post(review(pod())).body
    assert b'"allowed":true' in content
    assert door.counts.panics == 2


def test_a_workload_is_only_warned_about(door: Door) -> None:
    body = review(deployment(), kind="Deployment", group="apps", resource="deployments")
    response = door.post(body, "/validate-workload").response
    assert response["allowed"] is True
    assert response["warnings"][0].startswith("[NoGPUCapacity] no free device for example.com/full")


def test_a_workload_that_a_controller_made_is_not_warned_about(door: Door) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "App", "name": "a", "uid": "u", "controller": True}
    body = review(deployment(ownerReferences=[owner]), kind="Deployment", group="apps", resource="deployments")
    assert "warnings" not in door.post(body, "/validate-workload").response


def test_a_workload_of_which_nothing_changes_for_its_pods_is_not_warned_about(door: Door) -> None:
    whole = {"kind": "Deployment", "group": "apps", "resource": "deployments", "operation": "UPDATE"}
    unchanged = review(deployment(labels={"a": "b"}), oldObject=deployment(), **whole)
    assert "warnings" not in door.post(unchanged, "/validate-workload").response
    changed = review(deployment(), oldObject=deployment("example.com/roomy"), **whole)
    (_, _, rest) = door.post(changed, "/validate-workload").response["warnings"]
    assert rest == "0 of 1 pod fits now; it starts by itself when devices are free"


def test_a_workload_of_a_shape_we_cannot_read_is_admitted_and_said_so(door: Door) -> None:
    broken = {"apiVersion": "apps/v1", "spec": {"template": 5}}
    body = review(broken, kind="Deployment", group="apps", resource="deployments")
    response = door.post(body, "/validate-workload").response
    assert response["allowed"] is True
    assert response["warnings"][0].startswith("GPU capacity not checked: UnknownField")


# --- Requests that are no review --------------------------------------------------------------------------------------

BAD = {
    "another path": (
        404,
        {"path": "/validate/"},
        b"reviews are posted to /validate, /validate/MODE and /validate-workload\n",
    ),
    "no path": (404, {"path": "/"}, b"reviews are posted to /validate, /validate/MODE and /validate-workload\n"),
    "another method": (405, {"method": "GET"}, b"expected POST, found GET\n"),
    "another content type": (415, {"content_type": "text/plain"}, b"expected content type application/json\n"),
    "no content type": (415, {"content_type": None}, b"expected content type application/json\n"),
    "nothing": (400, {"body": b""}, None),
    "half a review": (400, {"body": review(pod())[:300]}, None),
    "not JSON": (400, {"body": b"uid: 1"}, None),
    "a list": (400, {"body": b"[]"}, None),
    "another kind": (
        400,
        {"body": b'{"kind":"Pod","apiVersion":"v1","request":{"uid":"1"}}'},
        b"expected kind 'AdmissionReview' of 'admission.k8s.io/v1', found kind 'Pod' of 'v1'\n",
    ),
    "no uid": (400, {"body": review(pod(), uid="")}, b"the AdmissionReview has no request.uid\n"),
    "deep nesting": (400, {"body": b'{"kind":' + b"[" * 200_000}, None),
    "one byte too many": (413, {"body": b" " * (MAX_BODY_BYTES + 1)}, b"expected at most 4194304 bytes\n"),
    "too many bytes in pieces": (413, {"body": [b" " * 1024 * 1024] * 5}, b"expected at most 4194304 bytes\n"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_request_that_is_no_review_is_answered_in_one_plain_sentence(door: Door, case: str) -> None:
    status, options, sentence = BAD[case]
    answered = door.post(**({"body": review(pod())} | options))
    assert answered.status == status
    assert answered.headers["content-type"] == "text/plain; charset=utf-8"
    assert answered.body.count(b"\n") == 1
    assert sentence is None or answered.body == sentence
    assert door.counts.bad_requests == {status: 1}
    assert not door.counts.decisions


def test_405_names_the_method_that_works(door: Door) -> None:
    assert door.post(b"", method="PUT").headers["allow"] == "POST"


def test_parameters_of_the_content_type_do_not_matter(door: Door) -> None:
    assert door.post(review(pod()), content_type="Application/JSON; charset=utf-8").status == 200


def test_a_body_of_exactly_the_limit_is_read(door: Door) -> None:
    assert door.post(review(pod()).ljust(MAX_BODY_BYTES)).status == 200


def test_a_body_may_come_in_pieces(door: Door) -> None:
    body = review(pod())
    assert door.post([body[:10], b"", body[10:]]).response["allowed"] is False


def test_a_client_that_goes_away_is_not_answered(door: Door) -> None:
    assert post(door.app, [review(pod())[:10], b""], hang_up=True) is None
    assert not door.counts.bad_requests


# --- When something is wrong with the rest, or with us ----------------------------------------------------------------


def test_a_review_with_a_uid_that_cannot_be_read_further_is_admitted_and_said_so(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    body = review({"spec": {"containers": 7}})
    response = door.post(body).response
    door.post(body)
    assert (response["uid"], response["allowed"]) == (UID, True)
    assert response["warnings"][0].startswith("GPU capacity not checked: UnknownField, Expected `array`, got `int`")
    assert door.counts.verdicts == {("unknown", "UnknownField"): 2}
    assert len(caplog.records) == 1


def test_a_bug_of_ours_admits_counts_and_is_logged_once_without_its_message(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Never:
        raise KeyError("secret-of-the-pod")

    door.world = broken
    with caplog.at_level(logging.INFO):
        response = door.post(review(pod())).response
        door.post(review(pod()))
    assert (response["uid"], response["allowed"]) == (UID, True)
    assert response["warnings"] == ["GPU capacity not checked: InternalError, an error in Vacancy itself"]
    assert door.counts.panics == 2
    assert door.counts.verdicts == {("unknown", "InternalError"): 2}
    assert [record.facts["problem"].split(",")[0] for record in caplog.records] == ["KeyError in test_admit.broken"]
    assert "secret-of-the-pod" not in caplog.text


def test_a_bug_of_ours_before_the_uid_is_known_is_400(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: bytes) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("app.web.admit.decode_review", broken)
    door = Door(tmp_path)
    assert door.post(review(pod())).status == 400
    assert (door.counts.panics, door.counts.bad_requests) == (1, {400: 1})


def test_a_read_that_fails_in_an_unforeseen_way_admits_too(door: Door) -> None:
    async def lookups(namespace: str, references: ClaimReferences) -> Lookups:
        raise OSError(namespace, references)

    door.embedded.lookups = lookups
    assert door.post(review(CLAIMING)).response["allowed"] is True


def owned(name: str = "rs", resource: str = "example.com/full", **metadata: object) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-of-{name}", "controller": True}
    made = pod(resource)
    made["metadata"] |= {"ownerReferences": [owner], **metadata}
    return made


REFUSED = {
    "a bare pod": (pod(), "", "p"),
    "a pod of an owner": (owned(), "ReplicaSet/rs", "p"),
    "a pod that has no name yet": (pod() | {"metadata": {"generateName": "p-"}}, "", "p-"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_logged_by_names_and_the_beginning_of_its_sentence(
    door: Door, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    refused, owner, name = REFUSED[case]
    with caplog.at_level(logging.INFO):
        door.post(review(refused))
    (record,) = caplog.records
    assert record.getMessage() == "refused"
    assert record.facts == {
        "uid": UID,
        "namespace": "team",
        "owner": owner,
        "name": name,
        "reason": "NoGPUCapacity",
        "message": REFUSAL[:100],
    }


def test_an_owner_that_tries_again_and_again_is_one_line_of_the_log(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for name in ("rs", "rs", "rs", "other"):
            door.post(review(owned(name)))
        door.post(review(pod()))
        door.post(review(pod()))
    assert [record.facts["owner"] for record in caplog.records] == ["ReplicaSet/rs", "ReplicaSet/other", "", ""]
    assert door.counts.refusals == {"new": 4, "repeated": 2}
    assert door.counts.decisions == {("deny", "enforce"): 6}


# --- Who will be woken ------------------------------------------------------------------------------------------------


def test_the_owner_of_a_refused_pod_is_remembered_until_one_of_its_pods_is_admitted(door: Door) -> None:
    door.post(review(owned()))
    door.post(review(owned()))
    assert len(door.wake) == 1
    door.post(review(owned(resource="example.com/roomy")))
    assert len(door.wake) == 0


NOT_REMEMBERED = {
    "a dry run": review(owned(), dryRun=True),
    "a bare pod": review(pod()),
    "a pod that is admitted": review(owned(resource="example.com/roomy")),
    "a pod that waits in the queue": review(owned(labels={"gpu-vacancy.dev/queue": "true"})),
}


@pytest.mark.parametrize("case", NOT_REMEMBERED)
def test_others_are_not_remembered(door: Door, case: str) -> None:
    door.post(NOT_REMEMBERED[case])
    assert len(door.wake) == 0


def test_what_a_pod_that_waits_in_the_queue_asks_for_is_annotated_whoever_is_in_the_line(door: Door) -> None:
    door.post(review(owned()))
    response = door.post(review(owned("other", labels={"gpu-vacancy.dev/queue": "true"}))).response
    assert (response["allowed"], response.get("warnings")) == (True, None)
    assert response["auditAnnotations"] == {
        "verdict": "unknown",
        "reason": "OptedOut",
        "resolved": (
            '{"example.com/full":{"count":1,"class":"full","drivers":["gpu.example.com"],"pools":1,"devices":1}}'
        ),
    }


def test_a_dry_run_takes_nobody_out_of_the_line(door: Door) -> None:
    door.post(review(owned()))
    door.post(review(owned(resource="example.com/roomy"), dryRun=True))
    assert len(door.wake) == 1


def test_whom_the_line_lets_through_is_warned_instead_of_refused(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WakeQueue, "refused", lambda *_: True)
    response = door.post(review(owned())).response
    assert response["allowed"] is True
    assert response["warnings"][0].startswith("[NoGPUCapacity] no free device")
    assert door.counts.decisions == {("allow", "warn"): 1}


def test_a_line_of_the_log_is_short_and_one_line_whatever_was_posted(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    long = "\x1b[2J\n" + "é" * 100_000
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": long, "uid": "u", "controller": True}
    refused = pod()
    refused["metadata"] |= {"ownerReferences": [owner], "name": long}
    with caplog.at_level(logging.INFO):
        answered = door.post(review(refused, uid=long))
    assert answered.response["uid"] == long
    (record,) = caplog.records
    for fact in record.facts.values():
        assert len(fact) < 4000
        assert fact.isascii()
        assert fact.isprintable()


def test_mistakes_of_clients_leave_room_in_the_log_for_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(body: bytes) -> AdmissionRequest:
        if body == b"a bug":
            raise ZeroDivisionError
        return AdmissionRequest(uid=UID, problem=body.decode())

    monkeypatch.setattr("app.web.admit.decode_review", odd)
    door = Door(tmp_path)
    for number in range(150):
        door.post(b"mistake %d" % number)
    door.post(b"a bug")
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 100 + ["ERROR"]


@pytest.mark.parametrize("body", [review(pod()), b"", review({"spec": {"containers": 7}})])
def test_while_draining_every_answer_closes_the_connection(door: Door, body: bytes) -> None:
    assert "connection" not in door.post(body).headers
    door.probes.draining = True
    assert door.post(body).headers["connection"] == "close"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
QUANTITIES = st.sampled_from(["1e30", "-1", "500m", "0", "", "1.5", "0x1", "9" * 400, 1, -3, 2.5, True, None])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(
    obj=JSON
    | st.fixed_dictionaries({"spec": JSON, "metadata": JSON})
    | QUANTITIES.map(lambda quantity: pod(count=quantity))
    | JSON.map(lambda claims: pod(resourceClaims=claims)),
    path=st.sampled_from(["/validate", "/validate/warn", "/validate/audit", "/validate-workload"]),
    kind=st.sampled_from(["Pod", "Deployment", "Job"]),
)
def test_whatever_object_is_posted_with_a_uid_the_answer_is_200_with_that_uid(
    door: Door, obj: object, path: str, kind: str
) -> None:
    answered = door.post(review(obj, kind=kind), path)
    assert answered.status == 200
    assert answered.response["uid"] == UID
    assert isinstance(answered.response["allowed"], bool)
    assert door.counts.panics == 0


def test_invalid_utf8_behind_the_uid_is_admitted(door: Door) -> None:
    body = review(pod()).replace(b"alice", b"\xff\xfe")
    answered = door.post(body)
    assert (answered.status, answered.response["allowed"]) == (200, True)
