"""Values that are good each but contradict each other are refused with a sentence that says what to do."""

import json

import pytest

from tests.chart.rendering import CHART, HELMS, Json, Refused, rendered, rendering

CONTRADICTIONS: dict[str, Json] = {
    "nothing would be left to judge by": {"rights": {"witness": False, "poolStatus": False}},
    "source both needs rights.witness": {"source": "both", "rights": {"witness": False}},
    "source witness needs rights.witness": {"source": "witness", "rights": {"witness": False}},
    "source both needs rights.poolStatus": {"source": "both", "rights": {"poolStatus": False}},
    "source pool-status needs rights.poolStatus": {"source": "pool-status", "rights": {"poolStatus": False}},
    "maxAge 60 must be more than refreshSeconds 60": {"maxAge": 60},
    "need two ports": {"listen": "0.0.0.0:8080"},
    "needs tls.existingSecret": {"tls": {"mode": "existing-secret"}},
    "needs tls.caBundle, or webhook.annotations": {
        "tls": {"mode": "existing-secret", "existingSecret": "pair"},
        "webhook": {"annotations": {"admissions.enforcer/disabled": "true"}},
    },
    "are for tls.mode existing-secret, found self-managed": {"tls": {"existingSecret": "pair"}},
    "can't reach a server at webhook.url": {
        "tls": {"mode": "cert-manager"},
        "webhook": {"url": "https://vacancy.example.com"},
    },
    "with webhook.url there are none": {"tenantGroups": ["a"], "webhook": {"url": "https://vacancy.example.com"}},
    "every metric would be scraped twice": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
    "names VacancyLow, which is no alert of the chart": {"prometheusRule": {"overrides": {"VacancyLow": {}}}},
}


@pytest.mark.parametrize("program", HELMS)
@pytest.mark.parametrize(("sentence", "values"), CONTRADICTIONS.items(), ids=CONTRADICTIONS)
def test_a_contradiction_is_refused(sentence: str, values: Json, program: str) -> None:
    with pytest.raises(Refused) as refusal:
        rendering(values, program=program)
    assert sentence in str(refusal.value)


NO_CONTRADICTION: list[Json] = [
    {"source": "witness", "rights": {"poolStatus": False}},
    {"source": "pool-status", "rights": {"witness": False}},
    {"maxAge": 60.5},
    {
        "tls": {"mode": "existing-secret", "existingSecret": "pair"},
        "webhook": {"annotations": {"cert-manager.io/inject-ca-from": "a/b"}},
    },
    {"tls": {"mode": "existing-secret"}, "webhook": {"url": "https://vacancy.example.com"}},
    {"prometheusRule": {"overrides": {"VacancyClassLow": {}}}},
]


@pytest.mark.parametrize("values", NO_CONTRADICTION, ids=json.dumps)
def test_what_stands_just_beside_a_contradiction_is_rendered(values: Json) -> None:
    assert rendered(values)


def test_every_guard_is_tried() -> None:
    guards = (CHART / "templates" / "guards.yaml").read_text()
    assert guards.count("{{- fail ") == len(CONTRADICTIONS) - 2  # two sentences come in two shapes
