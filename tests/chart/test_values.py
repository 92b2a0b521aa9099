"""values.yaml, its schema, the program's settings and docs/install.md tell of the same values."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import SETTINGS
from app.version import version
from tests.chart.knobs import SCHEMA, is_closed, knobs, nested, resolved, schema_knobs
from tests.chart.rendering import CHART, VALUE_SETS, Json, Refused, default_values, rendered, rendering

INSTALL = CHART.parents[1] / "docs" / "install.md"
DEFAULTS = dict(knobs(default_values()))

# What a server in a cluster has no use for: it follows its own cluster, by its own clock.
OF_A_WORKSTATION = {"kubeconfig", "context", "manifests", "now"}
# What the chart knows better than anybody.
WORKED_OUT = {"tls-dir", "tls-secret", "webhooks", "withheld"}


def value_of(setting: str) -> str:
    """The chart's value for a setting."""
    first, *others = setting.split("-")
    name = first + "".join(map(str.capitalize, others))
    return {"wake": "wake.enabled"}.get(name, name)


# --- The schema -------------------------------------------------------------------------------------------------------


def test_the_schema_knows_the_values_there_are_and_no_others() -> None:
    assert {name for name, _ in schema_knobs()} - {"global"} == set(DEFAULTS)


def parts(schema: Json = SCHEMA) -> Iterator[Json]:
    yield schema
    below = [schema[key].values() for key in ("properties", "patternProperties") if key in schema]
    below = [*itertools.chain(*below), *schema.get("anyOf", [])]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            below.append(schema[key])
    for each in below:
        yield from parts(resolved(each))


def test_what_the_schema_leaves_open_is_checked_by_kubernetes_or_chosen_by_the_user() -> None:
    """Every map names its keys, says what any key holds, or says whose business it is."""
    maps = [part for part in parts() if part.get("type") == "object"]
    assert [part for part in maps if not ("additionalProperties" in part or "$comment" in part)] == []
    assert any(map(is_closed, maps))


# A value of the wrong kind for each kind there is.
WRONG: dict[str, Any] = {"boolean": "yes", "string": 1, "integer": 1.5, "number": "1", "array": "a", "object": "a"}


@pytest.mark.parametrize("name", [name for name, _ in schema_knobs()])
def test_a_value_of_the_wrong_kind_is_refused(name: str) -> None:
    own = dict(schema_knobs())[name]
    wrong = "no such word" if "enum" in own else WRONG.get(own.get("type", ""), False)
    with pytest.raises(Refused, match=re.escape(name.rpartition(".")[2])):
        rendering(nested(name, wrong))


TYPOS = [
    {"failurePolicy": "Ignore"},
    {"replicaCount": 2},
    {"webhook": {"timeoutSecond": 1}},
    {"tls": {"certManager": {"issuer": "x"}}},
    {"tls": {"certManager": {"issuerRef": {"names": "x"}}}},
    {"webhook": {"matchConditions": [{"name": "a", "expression": "true", "reason": "x"}]}},
    {"rights": {"witnesses": False}},
    {"image": {"name": "x"}},
    {"imagePullSecrets": [{"nam": "x"}]},
    {"tenantRequests": {"limit": 1}},
    {"prometheusRule": {"thresholds": {"freeDevices": 1}}},
    {"prometheusRule": {"overrides": {"VacancyDown": {"after": "1h"}}}},
]


@pytest.mark.parametrize("values", TYPOS, ids=json.dumps)
@pytest.mark.parametrize("program", ["helm4", "helm3"])
def test_a_misspelt_value_is_refused(values: Json, program: str) -> None:
    with pytest.raises(Refused, match=r"additional propert|Additional property"):
        rendering(values, program=program)


OUT_OF_RANGE: dict[str, list[Any]] = {
    "mode": ["off", "Enforce", ""],
    "source": ["claims"],
    "neverFits": ["deny"],
    "ownerPolicy": [{"job": "warn"}, {"Job": "deny"}, {"Job.batch/v1": "warn"}],
    "autoscaled": [["a,b"], ["gpu_x"], ["a", "a"], [""]],
    "schedulers": [[], ["it's"]],
    "quotaWordsFor": [["a,b"], ["a b"]],
    "warnOnlyFor": [["a,b"], ["a b"]],
    "optionsText": ["zwei\nZeilen", "später", "{who}", "{name", "name}", "{name}}"],
    "optionsTextFor": [{"a": "{who}"}, {"A": "x"}, {"a b": "x"}, {"a": 1}],
    "pageUrl": ["capacity.example.com", "ftp://example.com", "https://example.com/a b"],
    "refreshSeconds": [0, -1],
    "maxAge": [0],
    "listen": ["8443", "0.0.0.0:", "::1:8443", ":65536", ":99999", ":0", ":08443"],
    "webListen": [":65536"],
    "webhook.failurePolicy": ["Nope", "ignore"],
    "webhook.timeoutSeconds": [0, 31, 60],
    "webhook.url": [
        "http://example.com",
        "https://example.com/",
        "https://example.com?a=b",
        "https://",
        "https://user@example.com",
        "https://user:password@example.com:8443/a",
    ],
    "webhook.matchConditions": [[{"name": "a"}], [{"name": "", "expression": "true"}]],
    "tls.mode": ["helm", "none"],
    "tls.caBundle": ["LS0tLS1CRUdJTg=="],
    "tls.certManager.duration": ["90d", "", "1"],
    "tenantRequests.maxLimit": [0, 1001],
    "replicas": [-1],
    "image.tag": ["a:b"],
    "image.digest": ["sha256:abc", "md5:0"],
    "image.repository": ["Vacancy", "vacancy:1"],
    "image.registry": ["example.com/"],
    "image.pullPolicy": ["Sometimes"],
    "networkPolicy.egressPorts": [[], [0], [65536]],
    "podDisruptionBudget.maxUnavailable": [0, "half"],
    "commonLabels": [{"app.kubernetes.io/name": "other"}, {"a": "b" * 64}],
    "podLabels": [{"app.kubernetes.io/component": "other"}],
    "fullnameOverride": ["A", "a.b", "1a"],
    "serviceMonitor.interval": ["often"],
    "prometheusRule.runbookUrl": ["", "a b"],
    "prometheusRule.thresholds.freePercent": [-1, 101],
    "prometheusRule.thresholds.slowSeconds": [0],
    "prometheusRule.overrides": [{"vacancyDown": {}}, {"VacancyDown": {"for": "long"}}],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in OUT_OF_RANGE.items() for value in values]
)
def test_a_value_out_of_range_is_refused(name: str, value: object) -> None:
    # Helm 4.3 says of a name that may not be only which it is.
    with pytest.raises(Refused, match=rf"{name.rpartition('.')[2]}|propertyName"):
        rendering(nested(name, value))


def test_what_helm_hands_to_subcharts_is_no_typo() -> None:
    assert rendered({"global": {"anything": True}})


# --- The program's settings -------------------------------------------------------------------------------------------


def test_every_setting_of_a_server_in_a_cluster_is_a_value_with_the_same_default() -> None:
    known = {row.name: row for row in SETTINGS if row.name not in OF_A_WORKSTATION | WORKED_OUT}
    assert {name: text(DEFAULTS[value_of(name)]) for name in known} == {
        name: row.default for name, row in known.items()
    }


def text(value: object) -> str:
    """A value as one would write it for a setting."""
    if isinstance(value, dict):
        return ",".join(f"{key}={mode}" for key, mode in value.items())
    return ",".join(value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else str(value)


def environment(objects: dict[str, Json]) -> dict[str, str]:
    [deployment] = (item for item in objects.values() if item["kind"] == "Deployment")
    return {
        entry["name"]: entry.get("value", "")
        for entry in deployment["spec"]["template"]["spec"]["containers"][0]["env"]
        if entry["name"].startswith("VACANCY_")
    }


@pytest.mark.parametrize("values", VALUE_SETS, ids=lambda path: path.stem)
def test_the_program_can_read_what_the_chart_sets(values: Path) -> None:
    objects = rendered(None, f"--values={values}")
    if "Deployment" not in {item["kind"] for item in objects.values()}:
        return
    found = environment(objects)
    of = {row.variable: row for row in SETTINGS}
    assert set(found) <= set(of)
    for name, value in found.items():
        of[name].form.parse(value)


OTHERS: dict[str, tuple[object, str]] = {
    "mode": ("audit", "audit"),
    "autoscaled": (["a.example.com", "b"], "a.example.com,b"),
    "dynamic": (["c"], "c"),
    "ownerPolicy": ({"Job": "warn", "*": "off"}, "*=off,Job=warn"),
    "neverFits": ("refuse", "refuse"),
    "allowQueueLabel": (False, "false"),
    "schedulers": (["a", "b"], "a,b"),
    "quotaWordsFor": ([], ""),
    "warnOnlyFor": (["a"], "a"),
    "optionsText": ('say "no": it\'s #1', 'say "no": it\'s #1'),
    "optionsTextFor": ({"team-*": "Ask {namespace}: {{now}}!", "b": "x"}, "b=x\nteam-*=Ask {namespace}: {{now}}!"),
    "pageUrl": ("https://example.com/", "https://example.com/"),
    "hideNames": (True, "true"),
    "source": ("witness", "witness"),
    "refreshSeconds": (30.5, "30.5"),
    "maxAge": (1000000, "1e+06"),
    "wake.enabled": (False, "false"),
    "logFormat": ("text", "text"),
    "logLevel": ("debug", "debug"),
    "listen": ("[::]:9443", "[::]:9443"),
    "webListen": (":9080", ":9080"),
}
"""Another value than the default for every setting, and what the program reads."""


def test_each_setting_follows_its_value() -> None:
    """A value that is changed changes its own variable, and no other."""
    defaults = environment(rendered())
    assert set(OTHERS) == {value_of(row.name) for row in SETTINGS if row.name not in OF_A_WORKSTATION | WORKED_OUT}
    of = {value_of(row.name): row.variable for row in SETTINGS}
    for name, (value, expected) in OTHERS.items():
        changed = dict(set(environment(rendered(nested(name, value))).items()) - set(defaults.items()))
        side_effect = {"VACANCY_OWNER_POLICY"} if name == "wake.enabled" else set()
        assert changed[of[name]] == expected
        assert set(changed) - side_effect == {of[name]}


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({}, "ReplicaSet=warn,StatefulSet=warn"),
        ({"Job": "audit"}, "Job=audit,ReplicaSet=warn,StatefulSet=warn"),
        ({"ReplicaSet": "enforce"}, "ReplicaSet=enforce,StatefulSet=warn"),
        ({"ReplicaSet.apps": "enforce"}, "ReplicaSet=warn,ReplicaSet.apps=enforce,StatefulSet=warn"),
    ],
)
def test_who_is_not_woken_is_only_warned(given: dict[str, str], policy: str) -> None:
    found = environment(rendered({"wake": {"enabled": False}, "ownerPolicy": given}))
    assert (found["VACANCY_WAKE"], found["VACANCY_OWNER_POLICY"]) == ("false", policy)


@pytest.mark.parametrize(
    ("rights", "source", "withheld"),
    [
        ({"witness": False}, "pool-status", ""),
        ({"poolStatus": False}, "witness", ""),
        ({"nodes": False}, "auto", "nodes"),
        ({"claims": False, "taintRules": False}, "auto", "claims,taint-rules"),
    ],
)
def test_what_may_not_be_read_is_not_asked_for(rights: dict[str, bool], source: str, withheld: str) -> None:
    found = environment(rendered({"rights": rights}))
    assert (found["VACANCY_SOURCE"], found["VACANCY_WITHHELD"]) == (source, withheld)


# --- The documentation, and the value sets ----------------------------------------------------------------------------


def documented() -> dict[str, str]:
    """The values of docs/install.md, with the text of their defaults."""
    _, _, below = INSTALL.read_text("utf-8").partition("## Values\n")
    rows = re.findall(r"^\| `([^`]+)` \|(.*?)\|", below, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a value is there twice"
    return {name: default.strip() for name, default in rows}


def test_the_documentation_names_the_values_there_are_and_no_others() -> None:
    assert set(documented()) == set(DEFAULTS)


def test_the_documentation_says_the_default_of_each() -> None:
    long = "in `values.yaml`"
    told = {name: default for name, default in documented().items() if default != long}
    assert told == {name: f"`{written(DEFAULTS[name])}`" if written(DEFAULTS[name]) else "" for name in told}
    assert all(isinstance(DEFAULTS[name], dict | list) for name in documented() if name not in told)


def written(value: object) -> str:
    """A default as the documentation writes it: nothing for what is empty."""
    if isinstance(value, dict | list):
        return json.dumps(value).replace('"', "") if value else ""
    return text(value)


def test_every_value_has_a_comment_of_one_or_two_lines() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r"[a-zA-Z]+:", line)]
    bare = [lines[number] for number in keys if not re.match(r"# |[a-zA-Z]+: ", lines[number - 1])]
    long = [
        lines[number] for number in keys if lines[number - 3].startswith("# ") and lines[number - 2].startswith("# ")
    ]
    assert (bare, long) == ([], [])


def test_some_value_set_changes_each_value() -> None:
    changed = {
        name
        for path in VALUE_SETS
        for name, value in knobs(yaml.safe_load(path.read_text()) or {})
        if value != DEFAULTS[name]
    }
    assert set(DEFAULTS) - changed == set()


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version(), version())
    [image] = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    assert image["image"] == f"{DEFAULTS['image.repository']}:{version()}"
