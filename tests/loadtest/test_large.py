"""The API server that stands in for a large cluster's, and what is called a wrong answer of who follows it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from loadtest import large_reviews, latency
from loadtest.large import Standin, wait_until_counted
from loadtest.large_reviews import (
    FAILED,
    LATE,
    NOT_JUDGED,
    RIGHT,
    ROOM,
    TAKEN,
    UNKNOWN,
    WRONG,
    Tide,
    at_once,
    judged,
    target,
    with_claims,
)
from loadtest.latency import Latency, Sample
from loadtest.servers import Running
from loadtest.soak import hourly_growth
from tests.controlplane.waiting import until


def test_vacancy_knows_what_the_stand_in_says_and_what_changes_there(tmp_path: Path) -> None:
    with Standin(tmp_path, "small") as standin, standin.followed() as server:
        wait_until_counted(server)
        until("the class of all devices is counted", lambda: verdict(server, "every") == ROOM)
        assert not response(server, "refused")["allowed"]
        assert verdict(server, "nothing") == NOT_JUDGED
        assert response(server, "claim")["auditAnnotations"]["reason"] == "ClaimAllocated"
        assert verdict(server, "tide") == TAKEN
        assert not standin.tell(tide=1)
        until("the tide is low", lambda: verdict(server, "tide") == ROOM)
        standin.tell(rate=1000, slice=1, **{"class": 1})
        assert standin.tell(tide=1)
        until("the tide is high", lambda: verdict(server, "tide") == TAKEN)
        until("the changed class is counted", lambda: verdict(server, "every") == ROOM)
        turned = Tide([(0.0, ROOM), (time.time(), TAKEN)])
        found = latency.measure([target(server, "tide")], 20, 1, server.ca, warm_up_requests=0)
        assert judged(found, turned) == {RIGHT: 20}, "the times of the answers are those of the clock"


def response(server: Running, kind: str) -> Any:  # noqa: ANN401 - JSON
    asked = target(server, kind)
    return json.loads(server.answer(asked.url.removeprefix(server.url("")), asked.body))["response"]


def verdict(server: Running, kind: str) -> str:
    return large_reviews.verdict(response(server, kind))


def answer(kind: str, said: str, *, allowed: bool = True, at: float = 0.0, code: int = 200) -> Sample:
    content = {"response": {"allowed": allowed, "auditAnnotations": {"verdict": said}}}
    text = json.dumps(content, separators=(",", ":")).encode()
    return Sample(at, 0.0, 0.01, code, f"https://localhost/validate?{kind}", text)


@pytest.mark.parametrize(
    ("sample", "became"),
    [
        pytest.param(answer("free", ROOM), RIGHT, id="room where there is room"),
        pytest.param(answer("free", UNKNOWN), UNKNOWN, id="it is not known whether there is room"),
        pytest.param(answer("free", TAKEN), WRONG, id="full where there is room"),
        pytest.param(answer("free", UNKNOWN, allowed=False), WRONG, id="refused without a reason"),
        pytest.param(answer("taken", TAKEN), RIGHT, id="full where all is taken, with a warning"),
        pytest.param(answer("refused", TAKEN, allowed=False), RIGHT, id="full where all is taken, refused"),
        pytest.param(answer("taken", ROOM), WRONG, id="room where all is taken"),
        pytest.param(answer("claim", UNKNOWN), RIGHT, id="a claim that has its device is not judged"),
        pytest.param(answer("nothing", NOT_JUDGED, code=500), FAILED, id="no answer"),
    ],
)
def test_a_review_becomes(sample: Sample, became: str) -> None:
    assert judged(Latency((sample,)), Tide()) == {became: 1}


@pytest.mark.parametrize(
    ("at", "said", "became"),
    [
        pytest.param(99.0, TAKEN, RIGHT, id="before the tide turned"),
        pytest.param(100.1, TAKEN, RIGHT, id="a moment after it turned, the old"),
        pytest.param(100.1, ROOM, RIGHT, id="a moment after it turned, the new"),
        pytest.param(101.0, TAKEN, LATE, id="when everybody should know"),
        pytest.param(101.0, ROOM, RIGHT, id="when everybody knows"),
        pytest.param(111.0, TAKEN, WRONG, id="long after"),
    ],
)
def test_an_answer_may_be_a_moment_behind_the_tide(at: float, said: str, became: str) -> None:
    tide = Tide([(0.0, TAKEN), (1100.0, ROOM)])
    assert judged(Latency((answer("tide", said, at=at),), began=1000.0), tide) == {became: 1}


def test_who_waits_on_purpose_is_told_apart() -> None:
    prompt, refused, claim = answer("free", ROOM), answer("refused", TAKEN, allowed=False), answer("claim", UNKNOWN)
    latency = Latency((prompt, refused, claim))
    assert (at_once(latency).samples, with_claims(latency).samples) == ((prompt,), (claim,))


def test_growth_is_told_by_the_hour() -> None:
    assert hourly_growth([(0.0, 100.0), (600.0, 101.0), (1200.0, 102.0)]) == pytest.approx(6.0)
