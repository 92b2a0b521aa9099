"""The report's JSON, byte by byte, and the exit code."""

import json

import msgspec
import pytest
from msgspec.structs import replace

from app.dra.explain import Audience, options, sentence
from app.dra.objects import Container, Pod, PodSpec
from app.dra.reasons import Reason
from app.dra.verdict import NeedVerdict, Outcome, Verdict
from app.presubmit.asked import Asked
from app.presubmit.report import Report, check, exit_code
from app.wording import wording
from tests.dra.verdicts import FULL_NEED

POD = Pod(spec=PodSpec(containers=[Container()]))
COUNTED_AT = 1767268763.0  # 2026-01-01T11:59:23Z
FULL = Verdict(
    Outcome.FULL,
    Reason.NoGPUCapacity,
    (replace(FULL_NEED, largest_free_block=0),),
    source="both",
    snapshot_time=COUNTED_AT,
)


def written(asked: Asked, verdict: Verdict, now: float) -> dict[str, object]:
    (found,) = json.loads(msgspec.json.encode(Report((check(asked, verdict, Audience(), now),))))["checks"]
    return found


def test_a_full_pod_is_reported_with_every_field_of_the_contract() -> None:
    report = Report((check(Asked("p", "team", "Pod", POD), FULL, Audience(), COUNTED_AT + 37.0),))
    message = sentence(FULL, Audience(), COUNTED_AT + 37.0)
    assert "counted 37s ago" in message
    assert msgspec.json.encode(report) == (
        b'{"checks":[{"name":"p","namespace":"team","kind":"Pod","template":"",'
        b'"verdict":"full","reason":"NoGPUCapacity","message":'
        + json.dumps(message).encode()
        + b',"asks":[{"name":"example.com/gpu","class":"gpu.example.com","count":1,'
        b'"field":"spec.containers[0].resources.requests[example.com/gpu]","free":0,"total":8,"pools":2,'
        b'"largestFreeBlock":0,"reason":"NoGPUCapacity"}],"source":"both","snapshotTime":"2026-01-01T11:59:23Z",'
        b'"ageSeconds":37.0,"options":' + msgspec.json.encode(options(FULL, Audience())) + b"}]}"
    )


def test_unknown_counts_and_times_are_null_never_zero() -> None:
    need = NeedVerdict("example.com/fpga", "f", 1, Outcome.UNKNOWN, Reason.DevicePlugin)
    found = written(Asked("p", "n", "Pod", POD), Verdict(Outcome.UNKNOWN, Reason.DevicePlugin, (need,)), COUNTED_AT)
    assert [found["asks"][0][key] for key in ("free", "total", "pools", "largestFreeBlock")] == [None] * 4
    assert (found["snapshotTime"], found["ageSeconds"], found["source"]) == (None, None, "")


def test_the_advice_is_that_for_the_namespace_of_the_pod() -> None:
    audience = Audience(advice=(("team", wording("Ask {namespace}.")),))
    found = check(Asked("p", "team", "Pod", POD), FULL, audience, COUNTED_AT)
    assert found.options == ("Ask team.",)
    assert found.message.endswith(" Ask team.")


def test_a_workload_says_whom_the_answer_is_for() -> None:
    found = written(Asked("d", "n", "Deployment", POD, "each of 3 replicas alone"), FULL, COUNTED_AT)
    assert found["message"] == f"{sentence(FULL, Audience(), COUNTED_AT)} This is for each of 3 replicas alone."


def test_a_custom_resource_says_which_of_its_templates_the_answer_is_for() -> None:
    found = written(Asked("r", "n", "RayCluster", POD, "", "spec.headGroupSpec.template"), FULL, COUNTED_AT)
    assert (found["kind"], found["template"]) == ("RayCluster", "spec.headGroupSpec.template")


def test_a_count_from_a_clock_ahead_of_ours_is_of_age_zero() -> None:
    assert written(Asked("p", "n", "Pod", POD), FULL, COUNTED_AT - 2.0)["ageSeconds"] == 0.0


CODES = {
    "nothing asked": ([], False, 0),
    "room": ([Outcome.ROOM], False, 0),
    "unknown admits": ([Outcome.UNKNOWN], False, 0),
    "unknown, strictly": ([Outcome.ROOM, Outcome.UNKNOWN], True, 5),
    "room, strictly": ([Outcome.ROOM], True, 0),
    "full": ([Outcome.ROOM, Outcome.FULL], False, 1),
    "never": ([Outcome.NEVER, Outcome.ROOM], False, 4),
    "full comes before never, whatever the order": ([Outcome.NEVER, Outcome.FULL], False, 1),
    "never comes before unknown, strictly": ([Outcome.UNKNOWN, Outcome.NEVER], True, 4),
}


@pytest.mark.parametrize(("outcomes", "strict", "code"), CODES.values(), ids=CODES)
def test_the_worst_outcome_decides_the_exit_code(outcomes: list[Outcome], strict: bool, code: int) -> None:  # noqa: FBT001
    assert exit_code(outcomes, strict=strict) == code
