"""What dashboard, alerts and documentation ask is answered by a real Prometheus that scrapes a real run.

The run: a class that is full, a pod and an owner that were refused, one pod that was admitted, and webhooks of our name
that the API server can't reach.
"""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial

import pytest

from app.cluster.pool_status import OUTCOMES
from tests.controlplane.client import Json, Refused
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import free_port
from tests.controlplane.waiting import until
from tests.live.scene import Scene
from tests.live.serving import Vacancy
from tests.operate.alerts import promtool, written
from tests.operate.prometheus import Prometheus, api_server, plain
from tests.operate.queries import OPERATE, metrics, of_alerts, of_dashboard, of_documentation, of_variables
from tests.test_docs import table

SOON = 20.0
"""Seconds; a scrape comes every second."""

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def unreachable(label: dict[str, str]) -> Json:
    """Nobody listens there: one fails open, one fails closed, one isn't even called."""
    common = {
        "clientConfig": {"url": f"https://127.0.0.1:{free_port()}/validate"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": label},
        "timeoutSeconds": 1,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    condition = {"name": "no-such-field", "expression": "object.spec.nodeSelector['none'] == ''"}
    return {
        "metadata": {"name": "unreachable"},
        "webhooks": [
            {"name": "open.pods.gpu-vacancy.dev", "failurePolicy": "Ignore", **common},
            {"name": "closed.pods.gpu-vacancy.dev", "failurePolicy": "Fail", **common},
            {"name": "odd.pods.gpu-vacancy.dev", "failurePolicy": "Ignore", "matchConditions": [condition], **common},
        ],
    }


@pytest.fixture(scope="module")
def prometheus(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("operate")
    with ExitStack() as stack:
        vacancy = stack.enter_context(Vacancy(plane, folder / "operate", "auto"))
        vacancy.register(plane)
        scene, broken = Scene(plane, vacancy.label), Scene(plane, {"operate": "unreachable"})
        stack.callback(scene.close)
        stack.callback(broken.close)
        scene.fill_up()
        until("full", partial(vacancy.refuses, scene.pod("late"), scene.name))
        broken.make(CONFIGURATIONS, unreachable({"operate": "unreachable"}))
        jobs = {"vacancy": plain(vacancy.url.removeprefix("http://")), "apiserver": api_server(plane)}
        prometheus = stack.enter_context(Prometheus(folder / "prometheus", jobs, written(folder)))

        def happens() -> bool:
            for each in (scene, broken):
                with suppress(Refused):
                    each.client.post(each.pods, each.pod("late"))
            return bool(prometheus.answer("increase(apiserver_admission_webhook_fail_open_count[10s]) > 0"))

        until("counted, and counted again", happens)
        assert promtool("check", "metrics", input=vacancy.get("/metrics")[1].encode()) == ""
        yield prometheus


@pytest.mark.parametrize("query", of_dashboard())
def test_every_query_of_the_dashboard_has_an_answer(prometheus: Prometheus, query: str) -> None:
    assert until(query, partial(prometheus.answer, of_dashboard()[query]), seconds=SOON)


@pytest.mark.parametrize("variable", ["class", "driver"])
def test_every_variable_of_the_dashboard_has_something_to_choose(prometheus: Prometheus, variable: str) -> None:
    assert prometheus.values(*of_variables()[variable])


@pytest.mark.parametrize("question", of_documentation())
def test_every_query_of_the_documentation_has_an_answer(prometheus: Prometheus, question: str) -> None:
    assert until(question, partial(prometheus.answer, of_documentation()[question]), seconds=SOON)


def test_every_outcome_is_there_before_it_first_happens(prometheus: Prometheus) -> None:
    assert prometheus.values("vacancy_pool_status_requests_total", "outcome") == sorted(OUTCOMES)


@pytest.mark.parametrize("alert", of_alerts())
def test_every_metric_of_an_alert_exists(prometheus: Prometheus, alert: str) -> None:
    for metric in metrics(of_alerts()[alert]):
        assert prometheus.answer(metric), metric


def test_every_alert_can_be_evaluated_and_none_fires_so_soon(prometheus: Prometheus) -> None:
    rules = until("evaluated", lambda: [rule for rule in prometheus.rules() if rule["health"] != "unknown"])
    assert {rule["name"]: (rule["health"], rule.get("lastError", "")) for rule in rules} == dict.fromkeys(
        of_alerts(), ("ok", "")
    )
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


def test_metrics_of_the_api_server_have_the_labels_that_are_documented(prometheus: Prometheus) -> None:
    documented = {name: set(labels.split(", ")) for name, labels, _ in table(OPERATE, "What the API server shows")}
    found = {}
    for name in documented:
        suffix = "_count" if name.endswith("_seconds") else ""
        until(name, partial(prometheus.answer, name + suffix))
        found[name] = prometheus.labels(name + suffix)
    assert found == documented
