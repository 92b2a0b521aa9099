"""Which webhook is called for which namespace and object, as the configurations say it."""

import json
from typing import Any

import pytest
from cel_expr_python import cel  # type: ignore[import-untyped] # has stubs and, up to 0.1.3, no py.typed

from tests.chart.calls import PODS, WORKLOADS
from tests.chart.rendering import Json, rendered

PODS_KIND = "ValidatingWebhookConfiguration/vacancy"
WORKLOADS_KIND = "ValidatingWebhookConfiguration/vacancy-workloads"


def webhooks(values: Json | None = None, name: str = PODS_KIND) -> dict[str, Json]:
    return {webhook["name"]: webhook for webhook in rendered(values)[name]["webhooks"]}


def matches(selector: Json, labels: dict[str, str]) -> bool:
    """A label selector of expressions, as the API documents it: NotIn matches what has no such label."""

    def holds(expression: Json) -> bool:
        found = labels.get(expression["key"])
        is_in = found in expression["values"]
        return is_in if expression["operator"] == "In" else not is_in

    assert {expression["operator"] for expression in selector["matchExpressions"]} <= {"In", "NotIn"}
    return all(map(holds, selector["matchExpressions"]))


# --- Namespaces -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("default", ["enforce", "warn", "audit"])
@pytest.mark.parametrize("label", ["enforce", "warn", "audit", "off", None, "", "Enforce", "nonsense"])
def test_one_mode_is_asked_for_a_namespace(default: str, label: str | None) -> None:
    """That of its label, and the default one where the label is absent or means nothing; none if it is `off`."""
    means = label if label in {"enforce", "warn", "audit", "off"} else default
    labels = {"kubernetes.io/metadata.name": "team"} | ({} if label is None else {"gpu-vacancy.dev/mode": label})
    asked = [
        webhook["clientConfig"]["service"]["path"]
        for webhook in webhooks({"mode": default}).values()
        if matches(webhook["namespaceSelector"], labels)
    ]
    assert asked == ([] if means == "off" else [f"/validate/{means}"])
    [workloads] = webhooks({"mode": default}, WORKLOADS_KIND).values()
    assert matches(workloads["namespaceSelector"], labels) is (means in {"enforce", "warn"})


@pytest.mark.parametrize("namespace", ["kube-system", "kube-node-lease", "kube-public", "vacancy", "monitoring"])
@pytest.mark.parametrize("label", ["enforce", "warn", "audit", None])
def test_some_namespaces_are_never_judged(namespace: str, label: str | None) -> None:
    labels = {"kubernetes.io/metadata.name": namespace} | ({"gpu-vacancy.dev/mode": label} if label else {})
    values = {"webhook": {"excludedNamespaces": ["monitoring"]}}
    both = [*webhooks(values).values(), *webhooks(values, WORKLOADS_KIND).values()]
    assert not any(matches(webhook["namespaceSelector"], labels) for webhook in both)


# --- Conditions -------------------------------------------------------------------------------------------------------


def condition(expression: str, request: Json) -> bool:
    """What the condition says. An error is a failure: with failurePolicy Fail it would refuse the pod."""
    environment = cel.NewEnv(
        config=cel.NewEnvConfigFromYaml("extensions:\n- name: optional\n"),
        variables=dict.fromkeys(("object", "oldObject", "request"), cel.Type.DYN),
    )
    result = environment.compile(expression).eval(data=request)
    assert result.type() == cel.Type.BOOL, f"{expression}: {result.value()}"
    value: bool = result.value()
    return value


def is_called(webhook: Json, request: Json) -> bool:
    return all(condition(each["expression"], request) for each in webhook["matchConditions"])


@pytest.mark.parametrize(("pod", "called"), PODS.values(), ids=PODS)
def test_pods_that_leave_the_api_server(pod: Json, called: bool) -> None:  # noqa: FBT001 - a row
    for webhook in webhooks().values():
        assert is_called(webhook, {"object": pod}) is called


@pytest.mark.parametrize(("workload", "called"), WORKLOADS.values(), ids=WORKLOADS)
def test_workloads_that_leave_the_api_server(workload: Json, called: bool) -> None:  # noqa: FBT001 - a row
    [webhook] = webhooks(name=WORKLOADS_KIND).values()
    assert is_called(webhook, {"object": workload, "request": {"operation": "CREATE"}}) is called
    changed = workload | {"spec": workload["spec"] | {"paused": True}}
    for old, differs in ((workload, False), (workload | {"metadata": {"name": "a"}}, False), (changed, True)):
        update = {"object": workload, "oldObject": old, "request": {"operation": "UPDATE"}}
        assert is_called(webhook, update) is (called and differs)


@pytest.mark.parametrize(
    ("schedulers", "name", "called"),
    [
        (["default-scheduler"], "batch", False),
        (["default-scheduler", "batch"], "batch", True),
        (["batch"], "default-scheduler", False),
    ],
)
def test_the_condition_follows_the_schedulers(schedulers: list[str], name: str, called: bool) -> None:  # noqa: FBT001 - a row
    pod, _ = PODS["an extended resource"]
    pod = pod | {"spec": pod["spec"] | {"schedulerName": name}}
    for webhook in webhooks({"schedulers": schedulers}).values():
        assert is_called(webhook, {"object": pod}) is called


def test_further_conditions_come_after_ours() -> None:
    further = {"name": "not-now", "expression": "false"}
    ours = webhooks()["enforce.pods.gpu-vacancy.dev"]["matchConditions"]
    for webhook in webhooks({"webhook": {"matchConditions": [further]}}).values():
        assert webhook["matchConditions"] == [*ours, further]


# --- The rest ---------------------------------------------------------------------------------------------------------


def test_what_is_asked_about_pods() -> None:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
        "scope": "Namespaced",
    }
    assert list(webhooks()) == [f"{mode}.pods.gpu-vacancy.dev" for mode in ("enforce", "warn", "audit")]
    for webhook in webhooks().values():
        assert {key: webhook[key] for key in webhook if key not in _CHOSEN} == _FORM | {"failurePolicy": "Ignore"}
        assert webhook["rules"] == [rule]


def test_what_is_asked_about_workloads() -> None:
    [webhook] = webhooks(name=WORKLOADS_KIND).values()
    assert webhook["name"] == "workloads.gpu-vacancy.dev"
    assert webhook["clientConfig"]["service"]["path"] == "/validate-workload"
    assert {key: webhook[key] for key in webhook if key not in _CHOSEN} == _FORM | {"failurePolicy": "Ignore"}
    assert {(rule["apiGroups"][0], kind) for rule in webhook["rules"] for kind in rule["resources"]} == {
        ("", "replicationcontrollers"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("batch", "jobs"),
        ("batch", "cronjobs"),
    }
    assert {tuple(rule["operations"]) for rule in webhook["rules"]} == {("CREATE", "UPDATE")}


# What the tests above compare each for itself.
_CHOSEN = {"name", "clientConfig", "rules", "namespaceSelector", "matchConditions"}
_FORM: dict[str, Any] = {
    "timeoutSeconds": 1,
    "sideEffects": "None",
    "matchPolicy": "Equivalent",
    "admissionReviewVersions": ["v1"],
}


def test_a_warning_is_no_reason_to_stop_anybody() -> None:
    values = {"webhook": {"failurePolicy": "Fail", "timeoutSeconds": 30}}
    assert {webhook["failurePolicy"] for webhook in webhooks(values).values()} == {"Fail"}
    [workloads] = webhooks(values, WORKLOADS_KIND).values()
    assert (workloads["failurePolicy"], workloads["timeoutSeconds"]) == ("Ignore", 30)


def test_a_server_outside_is_named_by_url() -> None:
    values = {"webhook": {"url": "https://vacancy.example.com/a"}}
    configs = [webhook["clientConfig"] for webhook in webhooks(values).values()]
    assert configs == [
        {"url": f"https://vacancy.example.com/a/validate/{mode}"} for mode in ("enforce", "warn", "audit")
    ]
    [workloads] = webhooks(values, WORKLOADS_KIND).values()
    assert workloads["clientConfig"] == {"url": "https://vacancy.example.com/a/validate-workload"}


PEM = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"
BASE64 = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCllRPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="


@pytest.mark.parametrize(
    ("tls", "ca_bundle"),
    [
        ({"mode": "self-managed"}, None),
        ({"mode": "cert-manager"}, None),
        ({"mode": "existing-secret", "existingSecret": "pair", "caBundle": PEM}, BASE64),
    ],
    ids=json.dumps,
)
def test_the_ca_bundle_has_one_writer(tls: Json, ca_bundle: str | None) -> None:
    """Even an empty one would make it a field of Helm's, and the next upgrade a conflict."""
    for name in (PODS_KIND, WORKLOADS_KIND):
        for webhook in webhooks({"tls": tls}, name).values():
            assert webhook["clientConfig"].get("caBundle") == ca_bundle
