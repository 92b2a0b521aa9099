"""The web listener over ASGI: page, API, probes, metrics, and what is said about them."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from app.dra.capacity import class_capacities
from app.dra.explain import Audience
from app.dra.meaning import meaning_in_steps
from app.embedded import Embedded
from app.metrics import CertificateCounts, DoorCounts, Metrics
from app.web.application import Answers, create_application
from app.web.check import MAX_ASKS, MAX_BYTES, MAX_PODS, Checker
from app.web.probes import Probes
from app.web.table import CapacityTable
from tests.web.tiny_cluster import NOW, cluster

POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, resources: {limits: {example.com/full: 1}}}]}
"""


@dataclass
class Web:
    """The application over the tiny cluster."""

    embedded: Embedded
    hide_names: bool = False
    probes: Probes = field(default_factory=Probes)
    counts: DoorCounts = field(default_factory=DoorCounts)

    def ask(self, method: str, path: str, **options: object) -> httpx.Response:
        world = self.embedded.latest.get
        metrics = Metrics(
            version="1.2.3",
            counts=self.counts,
            world=world,
            now=lambda: NOW,
            certificates=lambda: CertificateCounts({"serving": NOW + 60.0}),
        )
        app = create_application(
            Answers(
                table=CapacityTable(class_capacities, world=world, now=lambda: NOW, hide_names=self.hide_names),
                meaning=lambda name: meaning_in_steps(name, world(), NOW),
                check=Checker(
                    world=world, reader=self.embedded, now=lambda: NOW, audience=Audience(hide_names=self.hide_names)
                ),
                metrics=metrics.text,
                notice=lambda: self.embedded.problem,
                switches=lambda: {"pool statuses": "on", "wake": "off"},
                probes=self.probes,
                hide_names=self.hide_names,
                version="1.2.3",
            )
        )

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://vacancy") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())

    def get(self, path: str) -> httpx.Response:
        return self.ask("GET", path)


@pytest.fixture
def web(tmp_path: Path) -> Web:
    return Web(cluster(tmp_path))


# --- Capacity ---------------------------------------------------------------------------------------------------------


def test_the_capacity_as_json_has_every_class_and_pool(web: Web) -> None:
    report = web.get("/api/v1/capacity").json()
    full, roomy = report["classes"]
    assert report["snapshotTime"] is None
    assert full == {
        "total": 1,
        "allocated": 1,
        "available": 0,
        "unavailable": 0,
        "listedNotCounted": 0,
        "neverRefused": "",
        "shadowedBy": "",
        "name": "full",
        "extendedResourceName": "example.com/full",
        "vacancy": "full",
        "reason": "NoGPUCapacity",
        "ageSeconds": None,
        "source": "witness",
        "pools": [
            {
                "total": 1,
                "allocated": 1,
                "available": 0,
                "unavailable": 0,
                "driver": "gpu.example.com",
                "pool": "n1",
                "node": "n1",
                "vacancy": "full",
                "reason": "NoGPUCapacity",
            }
        ],
    }
    assert (roomy["name"], roomy["vacancy"], roomy["available"]) == ("roomy", "free", 1)


def test_the_page_says_when_the_files_it_shows_are_not_the_newest(web: Web, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("kind: [", "utf-8")
    web.embedded.look()
    page = web.get("/").text
    assert "<p class=notice role=status>" in page
    assert "cluster.yaml:1:" in page
    assert "example.com/full" in page


def test_files_that_did_not_change_are_not_read_again(web: Web) -> None:
    before = web.embedded.latest.get()
    web.embedded.look()
    assert web.embedded.latest.get() is before


def test_names_of_pools_and_nodes_can_be_hidden(web: Web) -> None:
    web.hide_names = True
    pool = web.get("/api/v1/capacity").json()["classes"][0]["pools"][0]
    assert (pool["driver"], pool["pool"], pool["node"]) == ("gpu.example.com", "", "")
    assert "n1" not in web.get("/").text


def test_the_node_that_switches_refusals_off_is_named_unless_hidden(web: Web, tmp_path: Path) -> None:
    node = 'status: {allocatable: {example.com/full: "1"}}'
    text = (tmp_path / "cluster.yaml").read_text("utf-8").replace("kind: Node\n", f"kind: Node\n{node}\n")
    (tmp_path / "cluster.yaml").write_text(text, "utf-8")
    web.embedded.look()
    assert web.get("/api/v1/explain/example.com/full").json()["pluginNode"] == "n1"
    web.hide_names = True
    assert web.get("/api/v1/explain/example.com/full").json()["pluginNode"] == "a node"


# --- Check and explain ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [POD, json.dumps({"apiVersion": "v1", "kind": "List", "items": []})])
def test_a_manifest_may_be_yaml_or_json(web: Web, text: str) -> None:
    assert web.ask("POST", "/api/v1/check", content=text).status_code == 200


def test_a_check_answers_for_each_pod_in_the_namespace_asked_for(web: Web) -> None:
    answered = web.ask("POST", "/api/v1/check?namespace=team", content=POD)
    (check,) = answered.json()["checks"]
    assert (check["namespace"], check["name"], check["verdict"], check["reason"]) == (
        "team",
        "p",
        "full",
        "NoGPUCapacity",
    )


NOTHING_ASKED = {
    "nothing": ({"cpu": "1"}, "."),
    "a name with a slip": ({"example.com/fulls": "1"}, ": no device class declares example.com/fulls."),
    "several": ({"a.io/x": "1", "b.io/x": 1, "c.io/x": 1}, ": no device class declares a.io/x, nor 2 more names."),
    "a long one": (
        {f"{'a.' * 100}example.com/gpu": 1},
        ": no device class declares a.a.a.a.a.a.a.a.a.a.a.a....a.a.a.a.example.com/gpu.",
    ),
}


@pytest.mark.parametrize("case", NOTHING_ASKED)
def test_a_pod_that_asks_for_no_device_is_told_which_names_are_none(web: Web, case: str) -> None:
    amounts, rest = NOTHING_ASKED[case]
    asking = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"resources": {"limits": amounts}}]}}
    (check,) = web.ask("POST", "/api/v1/check", content=json.dumps(asking)).json()["checks"]
    assert (check["verdict"], check["reason"], check["asks"]) == ("room", "NoDeviceRequested", [])
    assert check["message"] == f"[NoDeviceRequested] the pod asks for no device{rest}"


BAD_TEXTS: dict[str, tuple[bytes, int, str]] = {
    "not YAML": (b"kind: [", 400, "manifest:1: "),
    "not UTF-8": (b"\xff", 400, "manifest:1: not UTF-8"),
    "too large": (b"#" * (MAX_BYTES + 1), 413, "expected at most 1048576 bytes"),
    "too large a pod": (
        json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{}] * (MAX_ASKS + 1)}}).encode(),
        400,
        "a pod asks for up to 1101 resources and devices, more than the limit of 1100",
    ),
    "too many claims in a pod": (
        json.dumps(
            {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [], "resourceClaims": [{"name": "a"}] * 35}}
        ).encode(),
        400,
        "a pod asks for up to 1120 resources and devices, more than the limit of 1100",
    ),
    "too many pods": (b"---".join([POD.encode()] * (MAX_PODS + 1)), 400, "more than 500 pods"),
}


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_a_text_that_is_no_manifest_is_answered_in_one_sentence(web: Web, case: str) -> None:
    body, status, sentence = BAD_TEXTS[case]
    answered = web.ask("POST", "/api/v1/check", content=body)
    assert answered.status_code == status
    assert answered.json()["detail"].startswith(sentence)


def test_a_bug_of_ours_in_a_check_is_unknown(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("app.web.question.judge", broken)
    (check,) = web.ask("POST", "/api/v1/check", content=POD).json()["checks"]
    assert (check["verdict"], check["reason"]) == ("unknown", "InternalError")


def test_explain_takes_a_resource_name_with_its_slash(web: Web) -> None:
    found = web.get("/api/v1/explain/example.com/full").json()
    assert (found["name"], found["winner"], found["devices"]) == ("example.com/full", "full", 1)


def test_explain_of_a_name_nobody_knows_is_404(web: Web) -> None:
    answered = web.get("/api/v1/explain/example.com/other")
    assert (answered.status_code, answered.json()["claimants"]) == (404, [])


# --- Probes, metrics, description -------------------------------------------------------------------------------------


def missing(why: str) -> Callable[[], str]:
    return lambda: why


def test_ready_is_one_word_unless_more_is_asked_for(web: Web) -> None:
    web.probes.checks = {"listener": missing("")}
    assert web.get("/readyz").text == "ok"
    assert web.get("/readyz?verbose").text == "[+]listener ok\n[+]draining ok\nreadyz check passed\n"


def test_not_ready_says_what_is_missing(web: Web) -> None:
    web.probes.checks = {"certificate": missing("expired"), "listener": missing("")}
    answered = web.get("/readyz")
    assert answered.status_code == 503
    assert answered.text == "[-]certificate failed: expired\n[+]listener ok\n[+]draining ok\nreadyz check failed\n"


def test_draining_is_alive_not_ready_and_closes_connections(web: Web) -> None:
    web.probes.draining = True
    assert web.get("/readyz").status_code == 503
    assert web.get("/livez").status_code == 200
    assert web.get("/livez").headers["connection"] == "close"


def test_metrics_count_what_the_doors_did_and_what_the_cluster_has(web: Web) -> None:
    web.counts.answered("deny", "enforce", 0.0002)
    web.counts.judged("full", "NoGPUCapacity")
    lines = web.get("/metrics").text.splitlines()
    assert {
        'vacancy_decisions_total{decision="deny",mode="enforce"} 1.0',
        'vacancy_decisions_total{decision="allow",mode="audit"} 0.0',
        'vacancy_verdicts_total{reason="NoGPUCapacity",verdict="full"} 1.0',
        "vacancy_panics_total 0.0",
        'vacancy_bad_requests_total{code="413"} 0.0',
        'vacancy_admit_seconds_bucket{decision="deny",le="0.0001"} 0.0',
        'vacancy_admit_seconds_bucket{decision="deny",le="0.00025"} 1.0',
        'vacancy_admit_seconds_bucket{decision="deny",le="+Inf"} 1.0',
        'vacancy_admit_seconds_count{decision="deny"} 1.0',
        'vacancy_admit_seconds_count{decision="allow"} 0.0',
        'vacancy_class_devices{class="full",state="allocated"} 1.0',
        'vacancy_class_vacancy{class="roomy",source="witness",vacancy="free"} 1.0',
        'vacancy_pools{driver="gpu.example.com",vacancy="free"} 1.0',
        'vacancy_build_info{version="1.2.3"} 1.0',
        'vacancy_certificate_expiry_timestamp_seconds{kind="serving"} 1.76722566e+09',
    } - set(lines) == set()


def test_every_operation_is_described_and_its_answer_has_a_schema(web: Web) -> None:
    document = web.get("/openapi.json").json()
    assert sorted(document["paths"]) == [
        "/",
        "/api/v1/capacity",
        "/api/v1/check",
        "/api/v1/explain/{name}",
        "/docs",
        "/livez",
        "/metrics",
        "/readyz",
    ]
    references = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document))
    assert {"CapacityReport", "MeaningReport", "Report"} <= set(references) <= set(document["components"]["schemas"])


def test_the_list_of_operations_for_people_loads_nothing_from_elsewhere(web: Web) -> None:
    page = web.get("/docs").text
    assert "POST /api/v1/check" in page
    assert "http://" not in page
    assert "https://" not in page
