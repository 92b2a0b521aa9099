"""Who may do what: each switch takes away its own rules, and nothing in a namespace is granted but by name."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.cluster.rights import ROLES, Right
from tests.chart.rendering import VALUE_SETS, Json, copied_chart, objects, rendered, rendering, value_set

# The rules a switch takes away, by resource and verb.
SWITCHED = {
    "witness": {("resourceclaims", "list"), ("resourceclaims", "watch"), ("pods", "list"), ("pods", "watch")},
    "poolStatus": {("resourcepoolstatusrequests", verb) for verb in ("create", "get", "list", "delete")},
    "claims": {("resourceclaims", "get"), ("resourceclaimtemplates", "get")},
    "taintRules": {("devicetaintrules", "list"), ("devicetaintrules", "watch")},
    "nodes": {("nodes", "list"), ("nodes", "watch")},
}

Grant = tuple[str, str, str, tuple[str, ...], str]
"""Where it holds (`*` or a namespace), API group, resource, names if only these, verb."""


def grants(found: dict[str, Json], account: str = "vacancy") -> set[Grant]:
    """What a service account, or the group `group:NAME`, may do by the roles bound to it."""
    return set(_grants(found, account))


def _grants(found: dict[str, Json], account: str) -> Iterator[Grant]:
    for binding in found.values():
        if not binding["kind"].endswith("Binding") or "subjects" not in binding:
            continue
        subjects = [
            f"group:{each['name']}" if each["kind"] == "Group" else each["name"] for each in binding["subjects"]
        ]
        if account not in subjects:
            continue
        role = found[f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}"]
        where = binding["metadata"].get("namespace", "*")
        for rule in role["rules"]:
            for group, resource, verb in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"]):
                yield where, group, resource, tuple(rule.get("resourceNames", ())), verb


def pairs(rights: tuple[Right, ...]) -> set[tuple[str, str]]:
    return {(resource, verb) for right in rights for resource in right.resources for verb in right.verbs}


def cluster_wide(found: dict[str, Json]) -> set[tuple[str, str]]:
    """The rules about all found of a kind: those of the list of rights."""
    return {(resource, verb) for where, _, resource, names, verb in grants(found) if where == "*" and not names}


ALL = {pair for role in ROLES for pair in pairs(role.rights)}
WAKE = {pair for role in ROLES if role.name == "vacancy-wake" for pair in pairs(role.rights)}


def test_everything_on_the_list_is_granted_by_default_and_no_more() -> None:
    assert cluster_wide(rendered()) == ALL


@pytest.mark.parametrize("off", [off for count in range(1, 6) for off in itertools.combinations(SWITCHED, count)])
def test_every_combination_of_switches_takes_away_its_own_rules(off: tuple[str, ...]) -> None:
    if {"witness", "poolStatus"} <= set(off):
        return  # nothing would be left to judge by: test_guards.py
    found = rendered({"rights": dict.fromkeys(off, False)})
    assert cluster_wide(found) == ALL - set().union(*(SWITCHED[name] for name in off))


@pytest.mark.parametrize(("source", "unused"), [("pool-status", "witness"), ("witness", "poolStatus")])
def test_what_the_source_does_not_use_is_not_granted(source: str, unused: str) -> None:
    assert cluster_wide(rendered({"source": source})) == ALL - SWITCHED[unused]
    assert cluster_wide(rendered({"source": "both"})) == ALL


def test_every_switch_takes_something_away() -> None:
    assert set().union(*SWITCHED.values()) <= ALL
    assert ALL - WAKE - set().union(*SWITCHED.values()) == {
        (resource, verb) for resource in ("deviceclasses", "resourceslices") for verb in ("list", "watch")
    }


def test_who_is_not_woken_needs_no_right_to_it() -> None:
    assert cluster_wide(rendered({"wake": {"enabled": False}})) == ALL - WAKE
    assert WAKE


def test_a_role_that_is_on_the_list_alone_is_not_granted_by_accident(tmp_path: Path) -> None:
    """Whoever adds a role gives it a switch."""
    chart = copied_chart(tmp_path)
    file = chart / "files" / "clusterroles.yaml"
    roles = yaml.safe_load(file.read_text())
    roles["items"].append(roles["items"][0] | {"metadata": {"name": "vacancy-more"}})
    file.write_text(yaml.safe_dump(roles))
    assert "ClusterRole/vacancy-more" not in objects(rendering(chart=chart))


def test_certificates_of_its_own_need_one_secret_and_two_configurations() -> None:
    granted = {grant for grant in grants(rendered()) if grant[3]}
    assert granted == {
        ("vacancy", "", "secrets", ("vacancy-tls",), "get"),
        ("vacancy", "", "secrets", ("vacancy-tls",), "patch"),
        (
            "*",
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
            ("vacancy", "vacancy-workloads"),
            "get",
        ),
        (
            "*",
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
            ("vacancy", "vacancy-workloads"),
            "patch",
        ),
    }


@pytest.mark.parametrize("name", ["cert-manager", "existing-secret"])
def test_certificates_of_others_need_no_right(name: str) -> None:
    assert not {grant for grant in grants(rendered(value_set(name))) if grant[3]}


def test_without_workloads_only_one_configuration_may_be_patched() -> None:
    granted = grants(rendered({"workloads": {"enabled": False}}))
    assert {names for _, _, kind, names, _ in granted if kind == "validatingwebhookconfigurations"} == {("vacancy",)}


@pytest.mark.parametrize("values", VALUE_SETS, ids=lambda path: path.stem)
def test_no_role_says_more_than_it_must(values: Path) -> None:
    """No wildcard, no right to create Secrets, no kind of a namespace without names, no role that nobody has."""
    found = rendered(None, f"--values={values}")
    roles = [item for item in found.values() if item["kind"] in {"Role", "ClusterRole"}]
    for role in roles:
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert role["kind"] == "ClusterRole" or rule["resourceNames"]
            assert "secrets" not in rule["resources"] or (role["kind"] == "Role" and "create" not in rule["verbs"])
    bound = [
        item["roleRef"]["name"] for item in found.values() if item["kind"] in {"RoleBinding", "ClusterRoleBinding"}
    ]
    assert sorted(bound) == sorted(role["metadata"]["name"] for role in roles)


@pytest.mark.parametrize("values", VALUE_SETS, ids=lambda path: path.stem)
def test_every_subject_is_an_account_of_the_chart_or_a_group_of_the_values(values: Path) -> None:
    found = rendered(None, f"--values={values}")
    for binding in found.values():
        for subject in binding.get("subjects", ()):
            if subject["kind"] == "ServiceAccount":
                assert found[f"ServiceAccount/{subject['name']}"]["metadata"]["namespace"] == subject["namespace"]


# --- Hooks and tenants ------------------------------------------------------------------------------------------------

CONFIGURATIONS = ("vacancy", "vacancy-workloads")
KIND = ("admissionregistration.k8s.io", "validatingwebhookconfigurations")


def test_the_commands_of_the_hooks_may_do_only_what_they_do() -> None:
    found = rendered()
    assert grants(found, "vacancy-selftest") == {("*", *KIND, CONFIGURATIONS, "get")}
    assert grants(found, "vacancy-cleanup") == {
        ("*", *KIND, CONFIGURATIONS, "delete"),
        ("*", "resource.k8s.io", "resourcepoolstatusrequests", (), "list"),
        ("*", "resource.k8s.io", "resourcepoolstatusrequests", (), "delete"),
    }


def test_tenants_reach_the_web_port_and_no_other() -> None:
    found = rendered({"tenantGroups": ["developers"]})
    names = ("vacancy:http", "http:vacancy:http")
    assert grants(found, "group:developers") == {
        ("vacancy", "", "services/proxy", names, verb) for verb in ("get", "create")
    }


def test_nobody_is_a_tenant_by_default() -> None:
    assert not [
        item for item in rendered().values() if any(each["kind"] == "Group" for each in item.get("subjects", ()))
    ]


def test_bounds_on_requests_don_t_bind_us() -> None:
    found = rendered({"tenantRequests": {"enabled": True, "groups": ["developers"]}})
    bypass = ("*", "resource.k8s.io", "resourcepoolstatusrequests", (), "bypass-bounds")
    assert bypass in grants(found)
    assert bypass in grants(found, "vacancy-cleanup")
    assert grants(found, "group:developers") == {(*bypass[:-1], verb) for verb in ("create", "get", "delete")}


@pytest.mark.parametrize("values", [{"source": "witness"}, {"rights": {"poolStatus": False}}], ids=str)
def test_who_makes_no_requests_is_not_exempt_from_their_bounds(values: Json) -> None:
    found = rendered(values | {"tenantRequests": {"enabled": True}})
    assert "ValidatingAdmissionPolicy/vacancy-tenant-requests" in found
    assert "bypass-bounds" not in {verb for *_, verb in grants(found)}
    assert "ClusterRole/vacancy-bypass-bounds" not in found
