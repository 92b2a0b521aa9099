"""What tenants may do, tried by impersonating them on a real API server."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.chart.installed import installed, known
from tests.controlplane.client import Json
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

NAMESPACE = "chart-tenants"
RELEASE = "tenants-vacancy"
OUR_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"

VALUES = {
    "tenantGroups": ["developers"],
    "tenantRequests": {
        "enabled": True,
        "groups": ["developers"],
        "maxLimit": 50,
        "drivers": ["gpu.example.com", "nic.example.com"],
    },
}
# Neither webhooks, which would be in the way of everybody, nor pods.
KINDS = {
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "Role",
    "RoleBinding",
    "Service",
    "ServiceAccount",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


@pytest.fixture(scope="module")
def tenancy(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A plane with the chart's rights and bounds; the policy is in force."""
    plane.add_namespace(NAMESPACE)
    items = [item for item in known(VALUES, NAMESPACE, release=RELEASE) if item["kind"] in KINDS]
    with installed(plane, items):
        until("bounds in force", lambda: "name must be u.probe" in tried(plane, "probe", "create", request("other")))
        yield plane


def request(name: str, limit: int | None = 50, driver: str = "gpu.example.com", **metadata: object) -> Json:
    spec: Json = {"driver": driver} | ({} if limit is None else {"limit": limit})
    return {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": name} | metadata,
        "spec": spec,
    }


def run(
    plane: ControlPlane, user: str, *arguments: str, groups: tuple[str, ...] = ("developers",), body: Json | None = None
) -> subprocess.CompletedProcess[str]:
    who = [f"--as={user}", "--as-group=system:authenticated", *(f"--as-group={group}" for group in groups)]
    return plane.kubectl(*arguments, *who, input=None if body is None else json.dumps(body))


def tried(plane: ControlPlane, user: str, verb: str, item: Json, *, groups: tuple[str, ...] = ("developers",)) -> str:
    """What was said against it; empty: it was done."""
    if verb == "create":
        done = run(plane, user, "create", "-f", "-", body=item, groups=groups)
    else:
        done = run(plane, user, "delete", "resourcepoolstatusrequest", item["metadata"]["name"], groups=groups)
    return done.stderr if done.returncode else ""


# --- Requests of their own --------------------------------------------------------------------------------------------

OWN_NAMES = {
    "bob": "u.bob",
    "Bob@Example.com": "u.bob.at.example.com",
    "oidc:bob": "u.oidc.bob",
    "system:serviceaccount:team:ci": "u.system.serviceaccount.team.ci",
}


@pytest.mark.parametrize(("user", "name"), OWN_NAMES.items())
def test_one_request_at_a_time_called_after_its_user(tenancy: ControlPlane, user: str, name: str) -> None:
    assert tried(tenancy, user, "create", request(name)) == ""
    assert "already exists" in tried(tenancy, user, "create", request(name))
    assert tried(tenancy, user, "delete", request(name)) == ""
    assert tried(tenancy, user, "create", request(name)) == ""
    assert tried(tenancy, user, "delete", request(name)) == ""


OUT_OF_BOUNDS = {
    "another name": (request("mine"), "name must be u.eve"),
    "a made-up name": (request("", generateName="u.eve"), "name must be u.eve"),
    "too many pools": (request("u.eve", limit=51), "spec.limit must be at most 50"),
    "as many as there are by default": (request("u.eve", limit=None), "spec.limit must be at most 50"),
    "another driver": (request("u.eve", driver="fpga.example.com"), "spec.driver must be one of gpu.example.com,nic"),
}


@pytest.mark.parametrize(("item", "sentence"), OUT_OF_BOUNDS.values(), ids=OUT_OF_BOUNDS)
def test_what_is_out_of_bounds_is_refused(tenancy: ControlPlane, item: Json, sentence: str) -> None:
    assert sentence in tried(tenancy, "eve", "create", item)


def test_nobody_deletes_what_is_another_s(tenancy: ControlPlane) -> None:
    assert tried(tenancy, "ann", "create", request("u.ann")) == ""
    assert "name must be u.eve" in tried(tenancy, "eve", "delete", request("u.ann"))
    assert tried(tenancy, "ann", "delete", request("u.ann")) == ""


def test_who_is_in_no_group_has_no_right(tenancy: ControlPlane) -> None:
    assert "cannot create resource" in tried(tenancy, "zoe", "create", request("u.zoe"), groups=("visitors",))


EXEMPT = {
    "our server": (OUR_ACCOUNT, ()),
    "an administrator": ("root", ("system:masters",)),
}


@pytest.mark.parametrize(("user", "groups"), EXEMPT.values(), ids=EXEMPT)
def test_bounds_do_not_bind(tenancy: ControlPlane, user: str, groups: tuple[str, ...]) -> None:
    item = request(f"any-{user.rpartition(':')[2]}", limit=1000, driver="fpga.example.com")
    assert tried(tenancy, user, "create", item, groups=groups) == ""
    assert tried(tenancy, user, "delete", item, groups=groups) == ""


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        (f"system:serviceaccount:{NAMESPACE}:{RELEASE}-cleanup", ()),
        (
            "system:serviceaccount:kube-system:generic-garbage-collector",
            ("system:serviceaccounts", "system:serviceaccounts:kube-system"),
        ),
    ],
)
def test_who_cleans_up_may_delete_anybody_s(tenancy: ControlPlane, user: str, groups: tuple[str, ...]) -> None:
    assert tried(tenancy, "ann", "create", request("u.ann")) == ""
    assert tried(tenancy, user, "delete", request("u.ann"), groups=groups) == ""


# --- Asking beforehand ------------------------------------------------------------------------------------------------

PROXY = f"/api/v1/namespaces/{NAMESPACE}/services/{{}}/proxy/"


@pytest.mark.parametrize("service", [f"http:{RELEASE}:http", f"{RELEASE}:http"])
def test_tenants_may_read_the_page_and_post_a_check(tenancy: ControlPlane, service: str) -> None:
    """The rights suffice; there are no pods, so more can't be had here."""
    nobody = "no endpoints available for service"
    assert nobody in run(tenancy, "bob", "get", "--raw", PROXY.format(service)).stderr
    path = PROXY.format(service) + "api/v1/check"
    assert nobody in run(tenancy, "bob", "create", "--raw", path, "-f", "-", body={}).stderr


@pytest.mark.parametrize("service", [f"https:{RELEASE}:https", f"{RELEASE}:https", RELEASE, f"https:{RELEASE}:443"])
def test_tenants_may_not_post_reviews(tenancy: ControlPlane, service: str) -> None:
    done = run(tenancy, "bob", "create", "--raw", PROXY.format(service) + "validate", "-f", "-", body={})
    assert "forbidden" in done.stderr.lower()


def test_strangers_reach_nothing(tenancy: ControlPlane) -> None:
    path = PROXY.format(f"http:{RELEASE}:http")
    assert "forbidden" in run(tenancy, "zoe", "get", "--raw", path, groups=()).stderr.lower()
