"""The pods: hardened, spread, replaced one by one, and named as everything else is."""

import json
from pathlib import Path

import pytest

from tests.chart.rendering import CHART, VALUE_SETS, Json, copied_chart, objects, rendered, rendering, value_set

COMPONENT = "app.kubernetes.io/component"


def deployment(values: Json | None = None) -> Json:
    return rendered(values)["Deployment/vacancy"]


def pod_specs(found: dict[str, Json]) -> dict[str, Json]:
    """Every pod's spec: of the Deployment and of the hooks."""
    return {
        name: item["spec"] if item["kind"] == "Pod" else item["spec"]["template"]["spec"]
        for name, item in found.items()
        if item["kind"] in {"Deployment", "Job", "Pod"}
    }


def test_every_pod_is_restricted_as_pod_security_says() -> None:
    specs = pod_specs(rendered())
    assert set(specs) == {"Deployment/vacancy", "Job/vacancy-cleanup", "Pod/vacancy-selftest"}
    for spec in specs.values():
        assert spec["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        [container] = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"hostNetwork", "hostPID", "hostIPC", "volumes"}.isdisjoint(spec)
        assert spec["enableServiceLinks"] is False


@pytest.mark.parametrize("values", VALUE_SETS, ids=lambda path: path.stem)
def test_nothing_in_a_pod_can_be_written_to(values: Path) -> None:
    for spec in pod_specs(rendered(None, f"--values={values}")).values():
        assert all(mount["readOnly"] for container in spec["containers"] for mount in container.get("volumeMounts", ()))


def test_memory_has_a_limit_and_cpu_has_none() -> None:
    for spec in pod_specs(rendered()).values():
        assert list(spec["containers"][0]["resources"]["limits"]) == ["memory"]


def test_probes_ask_the_web_port() -> None:
    [container] = deployment()["spec"]["template"]["spec"]["containers"]
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probes == {
        "startupProbe": {"path": "/livez", "port": "web"},
        "livenessProbe": {"path": "/livez", "port": "web"},
        "readinessProbe": {"path": "/readyz", "port": "web"},
    }


def test_ports_follow_the_addresses() -> None:
    values = {"listen": "[::]:9443", "webListen": ":9080"}
    [container] = deployment(values)["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "webhook", "containerPort": 9443}, {"name": "web", "containerPort": 9080}]
    ports = rendered(values)["Service/vacancy"]["spec"]["ports"]
    assert ports == [
        {"name": "https", "port": 443, "targetPort": "webhook"},
        {"name": "http", "port": 80, "targetPort": "web"},
    ]


def test_replicas_are_replaced_one_by_one_and_answer_on() -> None:
    spec = deployment()["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 30


@pytest.mark.parametrize(
    ("values", "budget"),
    [
        ({}, {"maxUnavailable": 1}),
        ({"replicas": 3, "podDisruptionBudget": {"maxUnavailable": "50%"}}, {"maxUnavailable": "50%"}),
        ({"replicas": 1}, None),
        ({"replicas": 0}, None),
        ({"podDisruptionBudget": {"enabled": False}}, None),
    ],
    ids=json.dumps,
)
def test_more_replicas_than_one_have_a_disruption_budget(values: Json, budget: Json | None) -> None:
    found = rendered(values).get("PodDisruptionBudget/vacancy")
    assert (found and {"maxUnavailable": found["spec"]["maxUnavailable"]}) == budget
    assert found is None or found["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_every_selector_selects_the_pods_that_answer_and_no_pod_of_a_hook() -> None:
    found = rendered(value_set("everything") | {"fullnameOverride": ""})
    labels = found["Deployment/vacancy"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        found["Deployment/vacancy"]["spec"]["selector"]["matchLabels"],
        found["Service/vacancy"]["spec"]["selector"],
        found["PodDisruptionBudget/vacancy"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy/vacancy"]["spec"]["podSelector"]["matchLabels"],
        found["NetworkPolicy/vacancy-hooks"]["spec"]["egress"][1]["to"][0]["podSelector"]["matchLabels"],
        *(
            each["labelSelector"]["matchLabels"]
            for each in deployment()["spec"]["template"]["spec"]["topologySpreadConstraints"]
        ),
    ]
    hooks = [
        found["Job/vacancy-cleanup"]["spec"]["template"]["metadata"]["labels"],
        found["Pod/vacancy-selftest"]["metadata"]["labels"],
    ]
    assert len(selectors) == 7
    for selector in selectors:
        assert selector.items() <= labels.items()
        assert not any(selector.items() <= hook.items() for hook in hooks)


def test_the_policy_of_the_hooks_is_for_their_pods_alone() -> None:
    found = rendered({"networkPolicy": {"enabled": True}})
    selector = found["NetworkPolicy/vacancy-hooks"]["spec"]["podSelector"]
    [expression] = selector["matchExpressions"]
    assert expression == {"key": COMPONENT, "operator": "In", "values": ["selftest", "cleanup"]}
    for name, item in found.items():
        if name.startswith(("Pod/", "Job/")):
            labels = (item if item["kind"] == "Pod" else item["spec"]["template"])["metadata"]["labels"]
            assert selector["matchLabels"].items() <= labels.items()
            assert labels[COMPONENT] in expression["values"]


def test_every_constraint_counts_our_pods_and_a_selector_of_its_own_narrows_that() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
    narrower = constraint | {"labelSelector": {"matchLabels": {"a": "b"}}}
    spec = deployment({"topologySpreadConstraints": [constraint, narrower]})["spec"]
    found = [each["labelSelector"]["matchLabels"] for each in spec["template"]["spec"]["topologySpreadConstraints"]]
    ours = spec["selector"]["matchLabels"]
    assert found == [ours, ours | {"a": "b"}]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ({}, "vacancy:0.1.0"),
        ({"tag": "1.2"}, "vacancy:1.2"),
        ({"registry": "registry.example.com:5000/mirror"}, "registry.example.com:5000/mirror/vacancy:0.1.0"),
        ({"repository": "gpu/vacancy", "tag": "1", "digest": "sha256:" + "0" * 64}, "gpu/vacancy@sha256:" + "0" * 64),
    ],
    ids=json.dumps,
)
def test_pods_and_hooks_have_one_image(image: Json, name: str) -> None:
    found = {spec["containers"][0]["image"] for spec in pod_specs(rendered({"image": image})).values()}
    assert found == {name}


@pytest.mark.parametrize(
    ("release", "values", "name"),
    [
        ("vacancy", {}, "vacancy"),
        ("gpu-vacancy-eu", {}, "gpu-vacancy-eu"),
        ("platform", {}, "platform-vacancy"),
        ("platform", {"fullnameOverride": "capacity"}, "capacity"),
        ("vacancy.eu", {}, "vacancy-eu"),
        ("a" * 53, {}, "a" * 50),
    ],
)
def test_everything_is_named_after_the_release(release: str, values: Json, name: str) -> None:
    found = rendered(values, release=release)
    assert f"Deployment/{name}" in found
    assert all(item["metadata"]["name"].startswith(name) for item in found.values())


def test_a_server_outside_leaves_nothing_that_runs_but_the_hooks() -> None:
    found = rendered(value_set("outside"))
    kinds = {item["kind"] for item in found.values() if "helm.sh/hook" not in item["metadata"].get("annotations", {})}
    assert kinds == {
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Secret",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }


def test_the_secret_is_empty_and_so_has_one_writer() -> None:
    secret = rendered()["Secret/vacancy-tls"]
    assert (secret["type"], {"data", "stringData"} & set(secret)) == ("Opaque", set())


@pytest.mark.parametrize("name", ["cert-manager", "existing-secret"])
def test_a_pair_of_others_is_mounted(name: str) -> None:
    found = rendered(value_set(name))
    spec = found["Deployment/vacancy"]["spec"]["template"]["spec"]
    secret = {"cert-manager": "vacancy-cert", "existing-secret": "vacancy-serving"}[name]
    assert spec["volumes"] == [{"name": "tls", "secret": {"secretName": secret}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "tls", "mountPath": "/tls", "readOnly": True}]
    assert {"name": "VACANCY_TLS_DIR", "value": "/tls"} in spec["containers"][0]["env"]
    assert "Secret/vacancy-tls" not in found


def test_cert_manager_makes_the_pair_for_the_service_and_injects_its_authority() -> None:
    found = rendered(value_set("cert-manager"))
    certificate = found["Certificate/vacancy"]["spec"]
    assert certificate["dnsNames"] == ["vacancy.vacancy.svc"]
    assert certificate["issuerRef"]["name"] == "vacancy-ca"
    assert (
        found["Issuer/vacancy-ca"]["spec"]["ca"]["secretName"] == found["Certificate/vacancy-ca"]["spec"]["secretName"]
    )
    assert found["Certificate/vacancy-ca"]["spec"]["privateKey"]["rotationPolicy"] == "Never"
    for name in ("vacancy", "vacancy-workloads"):
        annotations = found[f"ValidatingWebhookConfiguration/{name}"]["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": "vacancy/vacancy"}


def test_an_issuer_that_exists_is_used() -> None:
    found = rendered(value_set("issuer"))
    assert found["Certificate/vacancy"]["spec"]["issuerRef"] == value_set("issuer")["tls"]["certManager"]["issuerRef"]
    assert [name for name in found if name.startswith("Issuer/")] == []


# --- Hooks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("command", "hook", "runs"), [("selftest", "test", "Pod"), ("cleanup", "pre-delete", "Job")])
def test_a_command_of_a_hook_comes_after_its_rights_and_leaves_nothing(command: str, hook: str, runs: str) -> None:
    found = {name: item for name, item in rendered().items() if name.endswith(f"/vacancy-{command}")}
    annotations = {item["kind"]: item["metadata"]["annotations"] for item in found.values()}
    assert {each["helm.sh/hook"] for each in annotations.values()} == {hook}
    assert {each["helm.sh/hook-delete-policy"] for each in annotations.values()} == {
        "before-hook-creation,hook-succeeded"
    }
    order = sorted(annotations, key=lambda kind: int(annotations[kind]["helm.sh/hook-weight"]))
    assert order == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", runs]
    spec = pod_specs(found)[f"{runs}/vacancy-{command}"]
    assert spec["serviceAccountName"] == f"vacancy-{command}"
    assert spec["containers"][0]["args"] == [command]
    assert spec["containers"][0]["env"] == [{"name": "VACANCY_WEBHOOKS", "value": "vacancy,vacancy-workloads"}]


def test_the_clean_up_can_be_left_out() -> None:
    assert not [name for name in rendered({"cleanup": {"enabled": False}}) if name.endswith("-cleanup")]


# --- Content for Prometheus and Grafana -------------------------------------------------------------------------------


def test_alerts_and_dashboards_of_the_chart_come_before_one_s_own(tmp_path: Path) -> None:
    chart = copied_chart(tmp_path)
    (chart / "files" / "alerts.yaml").write_text("groups: [{name: ours, rules: []}]")
    (chart / "files" / "dashboards").mkdir(exist_ok=True)
    (chart / "files" / "dashboards" / "capacity.json").write_text('{"title": "{{ not a template }}"}')
    values = {
        "prometheusRule": {"enabled": True, "additionalGroups": [{"name": "yours", "rules": []}]},
        "dashboards": {"enabled": True, "additional": {"yours": "{}"}},
    }
    found = objects(rendering(values, chart=chart))
    assert [group["name"] for group in found["PrometheusRule/vacancy"]["spec"]["groups"]] == ["ours", "yours"]
    assert found["ConfigMap/vacancy-dashboard-capacity"]["data"] == {
        "capacity.json": '{"title": "{{ not a template }}"}'
    }
    assert found["ConfigMap/vacancy-dashboard-yours"]["data"] == {"yours.json": "{}"}
    assert found["ConfigMap/vacancy-dashboard-yours"]["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_labels_of_every_object_yield_to_those_of_one() -> None:
    found = rendered(value_set("issuer"))
    own = {"ServiceMonitor/vacancy": "monitoring"}
    assert {name: item["metadata"]["labels"]["team"] for name, item in found.items()} == {
        name: own.get(name, "platform") for name in found
    }


def test_there_is_no_stray_file_in_the_chart() -> None:
    folders = {path.relative_to(CHART).parts[0] for path in CHART.iterdir()}
    assert folders == {
        ".helmignore",
        "Chart.yaml",
        "README.md",
        "ci",
        "files",
        "templates",
        "values.schema.json",
        "values.yaml",
    }
