"""The rights Vacancy asks for: what is shipped is what is listed, and nothing on the list is more than it needs."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

from app.cluster.rights import CORE, ROLES, WAKE, WITNESS, Role
from app.dra.wake import WAKEABLE

SHIPPED = Path(__file__).parents[2] / "charts/vacancy/files/clusterroles.yaml"


def test_what_the_chart_ships_is_what_the_command_prints() -> None:
    printed = subprocess.run([sys.executable, "-m", "app.cluster.rights"], check=True, capture_output=True, text=True)
    assert SHIPPED.read_text() == printed.stdout, "repair: python -m app.cluster.rights > FILE"


def test_the_manifest_says_what_the_list_says() -> None:
    items = yaml.safe_load(SHIPPED.read_text())["items"]
    assert [item["kind"] for item in items] == ["ClusterRole"] * len(ROLES)
    assert {item["metadata"]["name"]: item["rules"] for item in items} == {role.name: rules(role) for role in ROLES}


def test_every_right_says_what_it_buys_in_a_sentence_a_comment_can_hold() -> None:
    sentences = [role.buys for role in ROLES] + [right.buys for role in ROLES for right in role.rights]
    assert [text for text in sentences if not re.fullmatch(r"[A-Z][ -~]+\.", text)] == []


def test_only_requests_of_our_own_kind_are_written() -> None:
    written = {
        (right.resources, verb)
        for role in (CORE, WITNESS)
        for right in role.rights
        for verb in right.verbs
        if verb not in ("get", "list", "watch")
    }
    assert written == {(("resourcepoolstatusrequests",), "create"), (("resourcepoolstatusrequests",), "delete")}


def test_no_right_is_a_wildcard_a_subresource_but_a_status_or_a_secret() -> None:
    words = {word for role in ROLES for right in role.rights for word in (right.group, *right.resources, *right.verbs)}
    assert [word for word in words if "*" in word or word == "secrets"] == []
    assert [word for word in words if "/" in word and not word.endswith("/status")] == []


def test_the_status_of_those_that_can_be_woken_may_be_patched_and_nothing_else_of_them() -> None:
    named = {(right.group, resource) for right in WAKE.rights for resource in right.resources}
    assert named == {(version.rpartition("/")[0], f"{name}/status") for (version, _), name in WAKEABLE.items()}
    assert {verb for right in WAKE.rights for verb in right.verbs} == {"patch"}


def test_claims_and_pods_are_listed_by_the_role_that_can_be_withheld() -> None:
    def listed(role: Role) -> set[str]:
        return {resource for right in role.rights if "list" in right.verbs for resource in right.resources}

    assert listed(WITNESS) == {"resourceclaims", "pods"}
    assert listed(WITNESS).isdisjoint(listed(CORE))


def rules(role: Role) -> list[dict[str, list[str]]]:
    return [
        {"apiGroups": [right.group], "resources": list(right.resources), "verbs": list(right.verbs)}
        for right in role.rights
    ]
