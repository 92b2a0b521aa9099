"""A check costs little, whatever is posted: reviews are answered by the same process."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.types import ASGIApp, Message

from app.dra.demand import ClaimReferences, Lookup, Lookups
from app.dra.explain import Audience
from app.dra.judgement import Policy
from app.dra.objects import Pod
from app.embedded import Embedded
from app.presubmit import asked as presubmit_asked
from app.presubmit.asked import Asked
from app.presubmit.report import Check
from app.server import LONGEST
from app.web import application, check, table
from app.web.check import (
    AT_ONCE,
    MAX_ANSWER_BYTES,
    MAX_CLAIM_BYTES,
    MAX_NAMES,
    MAX_PODS,
    WAITING_AT_MOST,
    Checker,
)
from tests.web.example import CLUSTER, NOW, asked, example

PATH = "/api/v1/check"
WORDS = {"content-type": "application/json"}

Json = dict[str, Any]
Rest = Callable[[], Coroutine[Any, Any, Message]]


def pod(name: str = "p", **spec: Any) -> Json:  # noqa: ANN401 - as the API has it
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{}], **spec}}


def posted(app: ASGIApp, *objects: Json, namespace: str = "default") -> tuple[int, Json]:
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    answered = asked(app, "POST", f"{PATH}?namespace={namespace}", content=content, headers=WORDS)
    return answered.status_code, answered.json()


def claim(name: str) -> Json:
    return {"name": "c", "resourceClaimName": name}


# --- What a text may ask ----------------------------------------------------------------------------------------------


def test_no_more_pods_are_made_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Pod] = []
    usual = presubmit_asked.as_admitted

    def counted(pod: Pod) -> Pod:
        made.append(pod)
        return usual(pod)

    monkeypatch.setattr(presubmit_asked, "as_admitted", counted)
    status, problem = posted(example(), *[pod()] * (4 * MAX_PODS))
    assert (status, problem["detail"]) == (400, "more than 500 pods")
    assert len(made) == MAX_PODS + 1


@pytest.mark.parametrize("inherited", ["tolerations", "nodeSelector", "podMetadata"])
def test_what_every_template_inherits_is_counted_for_every_template(inherited: str) -> None:
    much = {f"k{number}": "v" for number in range(3000)}
    given = {
        "tolerations": [{"key": key} for key in much],
        "nodeSelector": much,
        "podMetadata": {"annotations": much},
    }[inherited]
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}}
    spec = {inherited: given, "templates": [{"container": {"image": "i"}}] * 100}
    status, problem = posted(example(), {**workflow, "spec": spec})
    assert (status, problem["detail"]) == (400, "the pods of its templates are more than 2097152 bytes")
    status, _ = posted(example(), {**workflow, "spec": spec | {"templates": spec["templates"][:2]}})
    assert status == 200


def test_all_pods_together_ask_for_a_limited_number() -> None:
    claims = [claim("c")] * 32
    status, problem = posted(example(), *[pod(resourceClaims=claims)] * 22)
    assert (status, problem["detail"]) == (400, "its pods ask for more than 22000 resources and devices")
    for few in ([pod(resourceClaims=[claim("c")])] * MAX_PODS, [pod(resourceClaims=claims)] * 20):
        assert posted(example(), *few)[0] == 200


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_claim_is_no_longer_than_a_person_would_write_it(kind: str) -> None:
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "spec": {"spec": {}}}
    assert posted(example(), {**claim, "metadata": {"name": "c"}})[0] == 200
    status, problem = posted(example(), {**claim, "metadata": {"name": "c" * MAX_CLAIM_BYTES}})
    assert (status, problem["detail"]) == (400, "a claim or claim template is more than 65536 bytes")


def test_what_a_text_is_the_first_to_ask_for_is_answered_once_it_is_counted() -> None:
    world = Embedded(CLUSTER, Policy(), lambda: NOW).latest.get
    witness = world().witness
    witness.tallies.devices_at_once = 0  # a cluster too large to be counted at once

    def now() -> float:
        witness.tallies.work(1000)  # of what was asked for before
        return NOW

    app = example(check=Checker(world=world, reader=Reading(), now=now, audience=Audience()))
    full = pod(containers=[{"resources": {"limits": {"example.com/gpu": "1"}}}])
    assert [each["reason"] for each in posted(app, full)[1]["checks"]] == ["NoGPUCapacity"]


# --- What is read for it ----------------------------------------------------------------------------------------------


class Reading:
    """Finds nothing, and remembers who asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ClaimReferences]] = []

    async def lookups(self, namespace: str, references: ClaimReferences) -> Lookups:
        self.asked.append((namespace, references))
        return Lookups(
            dict.fromkeys(references.claims, Lookup.MISSING), dict.fromkeys(references.templates, Lookup.MISSING)
        )


def with_reader(reader: Reading) -> ASGIApp:
    world = Embedded(CLUSTER, Policy(), lambda: NOW).latest.get
    return example(check=Checker(world=world, reader=reader, now=lambda: NOW, audience=Audience()))


def test_a_name_is_read_once_however_many_pods_have_it() -> None:
    reader = Reading()
    pods = [pod(resourceClaims=[claim("a"), claim("b")]), pod(resourceClaims=[claim("b")]), pod()]
    elsewhere = pod(resourceClaims=[claim("a"), {"name": "c", "resourceClaimTemplateName": "t"}])
    elsewhere["metadata"]["namespace"] = "other"
    status, report = posted(with_reader(reader), *pods, elsewhere, *pods)
    assert status == 200
    assert [each["reason"] for each in report["checks"][:3]] == ["ClaimMissing", "ClaimMissing", "NoDeviceRequested"]
    assert reader.asked == [
        ("default", ClaimReferences(("a", "b"), ())),
        ("other", ClaimReferences(("a",), ("t",))),
    ]


@pytest.mark.parametrize(("names", "status"), [(MAX_NAMES, 200), (MAX_NAMES + 1, 400)])
def test_a_text_names_a_limited_number_of_claims(names: int, status: int) -> None:
    reader = Reading()
    pods = [pod(resourceClaims=[claim(f"c{number}")]) for number in range(names)]
    found, told = posted(with_reader(reader), *pods)
    assert found == status
    assert bool(reader.asked) == (status == 200)
    assert told.get("detail", "") in {"", "its pods name more than 256 claims and claim templates"}


# --- Its answer -------------------------------------------------------------------------------------------------------


def test_one_text_is_judged_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "WORK_SECONDS", 0.0)  # a pause after every pod
    judged: list[str] = []
    usual = check.answer

    def noted(pod: Asked, *others: Any) -> Check:  # noqa: ANN401 - as `answer` takes them
        judged.append(pod.namespace)
        return usual(pod, *others)

    monkeypatch.setattr(check, "answer", noted)
    checker = Checker(
        world=Embedded(CLUSTER, Policy(), lambda: NOW).latest.get,
        reader=Reading(),
        now=lambda: NOW,
        audience=Audience(),
    )
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod()] * 5}).encode()

    async def both() -> None:
        await asyncio.gather(checker(text, "a"), checker(text, "b"))

    asyncio.run(both())
    assert judged in (["a"] * 5 + ["b"] * 5, ["b"] * 5 + ["a"] * 5)


def test_an_answer_is_sent_in_pieces_of_one_pod() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod()] * 50}).encode()
    sent = run(Client(example(), text))
    pieces = [message["body"] for message in sent if message["type"] == "http.response.body"]
    assert len(json.loads(b"".join(pieces))["checks"]) == 50
    assert max(map(len, pieces)) < 1000


def test_an_answer_is_no_longer_than_a_client_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_ANSWER_BYTES <= LONGEST
    monkeypatch.setattr(check, "MAX_ANSWER_BYTES", 1000)
    assert posted(example(), pod())[0] == 200
    status, problem = posted(example(), *[pod()] * 10)
    assert (status, problem["detail"]) == (400, "the answer would be longer than 1000 bytes, send fewer pods")


# --- How it comes -----------------------------------------------------------------------------------------------------


class Client:
    """Posts a text, whose rest comes when `rest` says so."""

    def __init__(self, app: ASGIApp, *parts: bytes, rest: Rest | None = None) -> None:
        self._app, self._parts, self._rest = app, list(parts), rest
        self.was_read = False
        self.sent: list[Message] = []

    async def post(self) -> list[Message]:
        scope = {
            "type": "http",
            "method": "POST",
            "path": PATH,
            "query_string": b"",
            "headers": [],
            "asgi": {"version": "3.0", "spec_version": "2.4"},
        }
        await self._app(scope, self._receive, self._send)
        return self.sent

    async def _receive(self) -> Message:
        self.was_read = True
        if self._parts:
            more = len(self._parts) > 1 or self._rest is not None
            return {"type": "http.request", "body": self._parts.pop(0), "more_body": more}
        if self._rest:
            return await self._rest()
        await asyncio.Event().wait()
        raise AssertionError

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])


def run(client: Client) -> list[Message]:
    return asyncio.run(client.post())


def test_a_text_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "BODY_SECONDS", 0.01)

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    client = Client(example(), b"kind: ", rest=never)
    run(client)
    assert client.status == 408
    assert client.headers[b"connection"] == b"close"
    assert client.headers[b"content-type"] == b"application/problem+json"
    assert json.loads(client.sent[1]["body"])["detail"] == "expected all of the text within 0.01 s"


def test_who_goes_away_within_the_text_is_no_mistake(caplog: pytest.LogCaptureFixture) -> None:
    async def gone() -> Message:
        return {"type": "http.disconnect"}

    run(Client(example(), b"kind: ", rest=gone))
    assert caplog.records == []


def test_few_texts_are_received_at_once_and_few_wait() -> None:
    app = example()

    async def story() -> None:
        go_on = asyncio.Event()

        async def rest() -> Message:
            await go_on.wait()
            return {"type": "http.request", "body": json.dumps(pod()).encode(), "more_body": False}

        clients = [Client(app, b"", rest=rest) for _ in range(AT_ONCE + WAITING_AT_MOST)]
        posting = [asyncio.create_task(client.post()) for client in clients]
        while sum(client.was_read for client in clients) < AT_ONCE:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0.001)
        late = Client(app, json.dumps(pod()).encode())
        await late.post()
        assert (late.status, late.headers[b"retry-after"], late.was_read) == (503, b"5", False)
        assert sum(client.was_read for client in clients) == AT_ONCE
        go_on.set()
        await asyncio.gather(*posting)
        assert {client.status for client in clients} == {200}
        again = Client(app, json.dumps(pod()).encode())
        await again.post()
        assert again.status == 200

    asyncio.run(story())


# --- The description --------------------------------------------------------------------------------------------------


def test_the_description_is_made_once_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[threading.Thread] = []
    usual = application.description

    def noted(app: FastAPI) -> Json:
        made.append(threading.current_thread())
        return usual(app)

    monkeypatch.setattr(application, "description", noted)
    app = example()
    for path in ("/openapi.json", "/docs", "/openapi.json"):
        assert asked(app, "GET", path).status_code == 200
    (thread,) = made
    assert thread is not threading.main_thread()
