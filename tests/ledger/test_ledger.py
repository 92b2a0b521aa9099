"""Adding up: each review once, and never more rows than there is room for."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger import ledger as room
from app.ledger.events import NotAnEvent
from app.ledger.ledger import Ledger
from app.ledger.report import COLUMNS, report, rows
from tests.dra.small_clusters import quick
from tests.ledger.auditing import ENFORCE, GPU, Json, event, line, meant, refused


def ledger(*events: Json) -> Ledger:
    known = Ledger()
    for each in events:
        known.add(line(each))
    return known


def written(*events: Json) -> Json:
    found: Json = json.loads(msgspec.json.encode(report(ledger(*events))))
    return found


def test_two_teams_asked_for_one_each_and_got_unequal_devices() -> None:
    found = written(
        event("team-a", resolved={GPU: meant(of="old", memory=("40Gi", "40Gi"))}),
        event("team-b", resolved={GPU: meant(of="new", memory=("80Gi", "80Gi"))}),
    )
    assert found["names"] == [
        {
            "name": GPU,
            "memory": ["40Gi", "80Gi"],
            "meanings": [
                {"class": "old", "memory": ["40Gi", "40Gi"], "pods": 1, "count": 1, "namespaces": ["team-a"]},
                {"class": "new", "memory": ["80Gi", "80Gi"], "pods": 1, "count": 1, "namespaces": ["team-b"]},
            ],
        }
    ]


def test_the_report_has_every_field() -> None:
    first, *_, last = events = [
        event(resolved={GPU: meant(2)}),
        event(resolved={GPU: meant(1, devices=12)}),
        event(resolved={GPU: meant(1, devices=10)}),
        refused(resolved={GPU: meant(4, devices=9)}),
        event(found="unknown OptedOut", resolved={}),
    ]
    assert written(*events) == {
        "since": first["stageTimestamp"],
        "until": last["stageTimestamp"],
        "namespaces": [
            {
                "namespace": "team-a",
                "pods": [
                    {"outcome": "admitted", "reason": "HasRoom", "pods": 3},
                    {"outcome": "admitted", "reason": "OptedOut", "pods": 1},
                    {"outcome": "refused", "reason": "NoGPUCapacity", "pods": 1},
                ],
                "asks": [
                    {
                        "name": GPU,
                        "class": "gpu",
                        "drivers": ["gpu.example.com"],
                        "memory": ["40Gi", "40Gi"],
                        "devices": [8, 12],
                        "pods": [
                            {"outcome": "admitted", "reason": "HasRoom", "pods": 3, "count": 4},
                            {"outcome": "refused", "reason": "NoGPUCapacity", "pods": 1, "count": 4},
                        ],
                    }
                ],
            }
        ],
        "names": [
            {
                "name": GPU,
                "memory": ["40Gi", "40Gi"],
                "meanings": [
                    {"class": "gpu", "memory": ["40Gi", "40Gi"], "pods": 3, "count": 4, "namespaces": ["team-a"]}
                ],
            }
        ],
        "leftOut": {"dryRuns": 0, "duplicates": 0, "unreadable": 0, "beyondLimit": 0},
    }


def test_what_is_not_known_is_null_and_never_zero() -> None:
    found = written(event(resolved={"gpu/one": {"count": 1, "class": "gpu"}}))
    (ask,) = found["namespaces"][0]["asks"]
    assert [ask[key] for key in ("name", "memory", "devices")] == [None, None, None]
    (name,) = found["names"]
    assert (name["name"], name["memory"]) == (None, None)
    by_plugin = written(event(found="unknown DevicePlugin", resolved={GPU: {"count": 1}}))
    assert by_plugin["namespaces"][0]["asks"][0]["class"] is None
    assert by_plugin["names"][0]["meanings"][0]["class"] is None
    assert (written()["since"], written()["until"]) == (None, None)


def test_a_row_for_a_spreadsheet_is_what_became_of_pods_that_asked_alike() -> None:
    both = {GPU: meant(2), "gpu/one": meant(memory=None)}
    plugin = event("team-c", found="unknown DevicePlugin", resolved={GPU: {"count": 2}})
    opted_out = event("team-c", found="unknown OptedOut", resolved={})
    known = ledger(event(resolved=both), refused("team-b"), plugin, opted_out)
    admitted, refusal = ("admitted", "HasRoom"), ("refused", "NoGPUCapacity")
    table = list(rows(known))
    assert table == [
        ("team-a", GPU, "gpu", "gpu.example.com", "40Gi", "40Gi", 8, 8, *admitted, 1, 2),
        ("team-a", "", "gpu", "gpu.example.com", "", "", 8, 8, *admitted, 1, 1),
        ("team-b", GPU, "gpu", "gpu.example.com", "40Gi", "40Gi", 8, 8, *refusal, 1, 1),
        ("team-c", GPU, "", "", "", "", "", "", "admitted", "DevicePlugin", 1, 2),
        ("team-c", "", "", "", "", "", "", "", "admitted", "OptedOut", 1, ""),
    ]
    assert {len(row) for row in table} == {len(COLUMNS)}


def test_smaller_memory_comes_first_by_amount_and_not_by_letters() -> None:
    sizes = ("80Gi", "8Gi", "141Gi")
    found = written(*(event(resolved={GPU: meant(memory=(size, size))}) for size in sizes))
    assert [ask["memory"][0] for ask in found["namespaces"][0]["asks"]] == ["8Gi", "80Gi", "141Gi"]
    assert found["names"][0]["memory"] == ["8Gi", "141Gi"]


# --- Each review once -------------------------------------------------------------------------------------------------


def test_an_event_written_twice_counts_once() -> None:
    one = event()
    known = ledger(one, event(), one)
    assert (known.pods.total(), known.left_out.duplicates) == (2, 1)


def test_a_client_that_chooses_one_audit_id_for_all_its_requests_hides_none() -> None:
    known = ledger(event(auditID="mine"), event(auditID="mine"))
    assert (known.pods.total(), known.left_out.duplicates) == (2, 0)


def test_stages_of_one_request_count_once() -> None:
    last = event()
    first = last | {"stage": "RequestReceived", "responseStatus": None}
    assert ledger(first, last).pods.total() == 1


def test_a_dry_run_creates_nothing_and_is_left_out() -> None:
    known = ledger(event(requestURI="/api/v1/namespaces/team-a/pods?dryRun=All"))
    assert (known.pods.total(), known.left_out.dry_runs) == (0, 1)


def test_the_memory_for_events_written_twice_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "REMEMBERED", 3)
    oldest, *_, old, third, second, last = events = [event() for _ in range(10)]
    known = ledger(*events, last, second, third, old)
    assert known.left_out.duplicates == 4
    known.add(line(oldest))
    assert known.left_out.duplicates == 4
    assert len(known._seen) + len(known._seen_before) <= 6  # noqa: SLF001 - what is bounded


def test_the_table_is_bounded_and_what_does_not_fit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_ROWS", 5)
    known = ledger(*(event(f"team-{number}") for number in range(5)), event("team-0"))
    assert len(known.pods) + len(known.asks) == 4
    assert (known.pods.total(), known.left_out.beyond_limit) == (3, 3)


# --- Whatever a log holds ---------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=8) | st.sampled_from(["team-a", GPU, "gpu/one", "40Gi", "-1", "1e4096", "9" * 400, "=1+1"])
COUNTS = st.integers(-1, 3) | st.sampled_from([10**12, 10**30])
RESOLVED = st.dictionaries(
    TEXTS,
    st.fixed_dictionaries(
        {"count": COUNTS, "class": TEXTS},
        optional={"devices": COUNTS, "memory": st.tuples(TEXTS, TEXTS), "drivers": st.lists(TEXTS, max_size=2)},
    ),
    max_size=3,
).map(json.dumps)
LINES = st.builds(
    lambda namespace, resolved, uri, time: line(
        event(namespace, resolved=resolved, requestURI=uri, stageTimestamp=time)
    ),
    TEXTS,
    RESOLVED | TEXTS,
    TEXTS,
    TEXTS,
)


@quick
@given(st.lists(LINES | st.binary(max_size=50), max_size=8))
def test_whatever_a_log_holds_the_books_are_closed_and_balance(log: list[bytes]) -> None:
    known, unusable = Ledger(), 0
    for each in log:
        try:
            known.add(each)
        except NotAnEvent:
            unusable += 1
    found = json.loads(msgspec.json.encode(report(known)))
    assert known.events + unusable == len(log)
    assert sum(row["pods"] for each in found["namespaces"] for row in each["pods"]) == known.pods.total()
    assert known.creations == known.pods.total() + known.left_out.dry_runs + known.left_out.duplicates
    for row in rows(known):
        assert len(row) == len(COLUMNS)


def test_the_prefix_of_every_mode_is_understood() -> None:
    webhooks = (ENFORCE, "warn.pods.gpu-vacancy.dev", "audit.pods.gpu-vacancy.dev", "gpu.corp.example.com")
    assert ledger(*(event(webhook=each) for each in webhooks)).pods.total() == 4
