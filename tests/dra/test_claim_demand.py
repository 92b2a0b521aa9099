"""From the claims of a pod to its needs."""

from typing import Any

import pytest
from msgspec import Raw

from app.dra.demand import Ask, ClaimReferences, Lookup, Lookups, Need, claim_references
from app.dra.objects import ObjectMeta, Pod, ResourceClaim, Toleration
from app.dra.reasons import Reason
from tests.dra.known_cluster import (
    BY_NAME,
    BY_TEMPLATE,
    CLAIM_FIELD,
    CLUSTER,
    NOTHING_READ,
    KnownCluster,
    claim,
    demand,
    exactly,
    pod,
    requests,
    template,
)

# --- Device requests of a claim -----------------------------------------------------------------------------------


def need(*asks: Ask, count: int = 1, name: str = "g/r") -> Need:
    return Need(name, CLAIM_FIELD, count, asks)


def unjudged(reason: Reason, detail: str = "", name: str = "g/r") -> Need:
    return Need(name, CLAIM_FIELD, unjudged=reason, detail=detail)


SELECTORS = [{"cel": {"expression": "a"}}, {"cel": {"expression": "b"}}]
TOLERATION = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}

REQUESTS: dict[str, tuple[Any, tuple[Need, ...]]] = {
    "one device": (requests(exactly()), (need(Ask("gpu")),)),
    "more requests than a claim may hold": (
        requests(*[exactly()] * 33),
        (unjudged(Reason.UnknownField, name="g"),),
    ),
    "as the API server defaults it": (
        requests(exactly(allocationMode="ExactCount", count=1)),
        (need(Ask("gpu")),),
    ),
    "three devices": (requests(exactly(count=3)), (need(Ask("gpu"), count=3),)),
    "all of a node are at least one": (requests(exactly(allocationMode="All")), (need(Ask("gpu")),)),
    "a mode nobody knows": (
        requests(exactly(allocationMode="Some")),
        (unjudged(Reason.UnknownField),),
    ),
    "a count of zero": (requests(exactly(count=0)), (unjudged(Reason.UnknownField),)),
    "selectors in their order": (
        requests(exactly(selectors=SELECTORS)),
        (need(Ask("gpu", selectors=("a", "b"))),),
    ),
    "a selector that is not CEL": (
        requests(exactly(selectors=[*SELECTORS, {"sql": {}}])),
        (unjudged(Reason.UnknownField),),
    ),
    "a toleration": (
        requests(exactly(tolerations=[TOLERATION, {"operator": "Exists"}])),
        (need(Ask("gpu", tolerations=(Toleration("k", "Equal", "v", "NoSchedule"), Toleration(operator="Exists")))),),
    ),
    "tolerationSeconds is ignored": (
        requests(exactly(tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 0}])),
        (need(Ask("gpu", tolerations=(Toleration("k", "Exists"),))),),
    ),
    "a toleration with an operator nobody knows": (
        requests(exactly(tolerations=[{"key": "k", "operator": "Gt", "value": "5"}])),
        (unjudged(Reason.UnknownField),),
    ),
    "a toleration of an effect nobody knows": (
        requests(exactly(tolerations=[{"operator": "Exists", "effect": "Slow"}])),
        (unjudged(Reason.UnknownField),),
    ),
    "a toleration with a field nobody knows": (
        requests(exactly(tolerations=[{"operator": "Exists", "until": "noon"}])),
        (unjudged(Reason.UnknownField),),
    ),
    "capacity and derived attributes only narrow": (
        requests(exactly(capacity={"requests": {"memory": "40Gi"}}, derivedAttributes=[{}])),
        (need(Ask("gpu")),),
    ),
    "constraints and config do not help": (
        {**requests(exactly()), "devices": {**requests(exactly())["devices"], "constraints": [{}], "config": [{}]}},
        (need(Ask("gpu")),),
    ),
    "admin access": (requests(exactly(adminAccess=True)), (unjudged(Reason.AdminAccess),)),
    "no admin access": (requests(exactly(adminAccess=False)), (need(Ask("gpu")),)),
    "a class that does not exist": (
        requests(exactly("nosuch")),
        (unjudged(Reason.ClassMissing, "nosuch"),),
    ),
    "alternatives": (
        requests(
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "a", "deviceClassName": "gpu", "count": 4, "selectors": SELECTORS},
                    {"name": "b", "deviceClassName": "nic", "count": 2, "tolerations": [TOLERATION]},
                ],
            }
        ),
        (
            need(
                Ask("gpu", selectors=("a", "b")),
                Ask("nic", tolerations=(Toleration("k", "Equal", "v", "NoSchedule"),)),
                count=2,
            ),
        ),
    ),
    "one alternative of a missing class blocks the request": (
        requests(
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "a", "deviceClassName": "gpu"},
                    {"name": "b", "deviceClassName": "nosuch"},
                ],
            }
        ),
        (unjudged(Reason.ClassMissing, "nosuch"),),
    ),
    "an alternative with a field nobody knows": (
        requests({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu", "adminAccess": True}]}),
        (unjudged(Reason.UnknownField),),
    ),
    "no alternative in the list": (
        requests({"name": "r", "firstAvailable": []}),
        (unjudged(Reason.UnknownField),),
    ),
    "neither exactly nor firstAvailable": (requests({"name": "r"}), (unjudged(Reason.UnknownField),)),
    "both": (
        requests({**exactly(), "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}),
        (unjudged(Reason.UnknownField),),
    ),
    "an odd request spoils only itself": (
        requests(exactly(name="odd", newField=1), exactly("nic", name="nic"), 7),
        (
            unjudged(Reason.UnknownField, name="g/odd"),
            need(Ask("nic"), name="g/nic"),
            unjudged(Reason.UnknownField, name="g/"),
        ),
    ),
    "no request": (requests(), ()),
    "no devices": ({"devices": {}}, ()),
    "an empty spec": ({}, ()),
    "a field of the claim nobody knows": (
        {**requests(exactly()), "priority": 1},
        (unjudged(Reason.UnknownField, name="g"),),
    ),
    "a field of its devices nobody knows": (
        {"devices": {**requests(exactly())["devices"], "minimum": 1}},
        (unjudged(Reason.UnknownField, name="g"),),
    ),
    "a spec that is none": ("spec", (unjudged(Reason.UnknownField, name="g"),)),
}


@pytest.mark.parametrize("sentence", REQUESTS)
def test_requests_of_a_template(sentence: str) -> None:
    spec, want = REQUESTS[sentence]
    assert demand(BY_TEMPLATE, Lookups({}, {"t1": template(spec)})).needs == want


@pytest.mark.parametrize("sentence", REQUESTS)
def test_requests_of_a_named_claim(sentence: str) -> None:
    spec, want = REQUESTS[sentence]
    assert demand(BY_NAME, Lookups({"c1": claim(spec)}, {})).needs == want


# --- From an entry to its claim -----------------------------------------------------------------------------------

ASKS_ONE = requests(exactly())
ALLOCATED = {"allocation": {"devices": {"results": [{"driver": "d", "pool": "p", "device": "g0"}]}}}

CLAIMS: dict[str, tuple[Pod, Lookups, KnownCluster, Need]] = {
    "claim not allocated": (
        BY_NAME,
        Lookups({"c1": claim(ASKS_ONE, {})}, {}),
        CLUSTER,
        need(Ask("gpu")),
    ),
    "claim too deep to be read": (
        BY_NAME,
        Lookups({"c1": ResourceClaim(ObjectMeta(), Raw(b'{"devices":{"config":' + b"[" * 100_000))}, {}),
        CLUSTER,
        unjudged(Reason.UnknownField, name="g"),
    ),
    "claim allocated": (
        BY_NAME,
        Lookups({"c1": claim(ASKS_ONE, ALLOCATED)}, {}),
        CLUSTER,
        unjudged(Reason.ClaimAllocated, "c1", "g"),
    ),
    "claim allocated without results": (
        BY_NAME,
        Lookups({"c1": claim(ASKS_ONE, {"allocation": {"devices": {}}})}, {}),
        CLUSTER,
        unjudged(Reason.ClaimAllocated, "c1", "g"),
    ),
    "claim allocated since it was read": (
        BY_NAME,
        Lookups({"c1": claim(ASKS_ONE)}, {}),
        KnownCluster(allocated=(("lab", "c1"),)),
        unjudged(Reason.ClaimAllocated, "c1", "g"),
    ),
    "a claim of that name allocated in another namespace": (
        BY_NAME,
        Lookups({"c1": claim(ASKS_ONE)}, {}),
        KnownCluster(allocated=(("elsewhere", "c1"),)),
        need(Ask("gpu")),
    ),
    "claim being deleted": (
        BY_NAME,
        Lookups({"c1": claim(ASKS_ONE, deletionTimestamp="2026-11-29T21:56:55Z")}, {}),
        CLUSTER,
        unjudged(Reason.ClaimMissing, "c1, being deleted", "g"),
    ),
    "claim missing": (
        BY_NAME,
        Lookups({"c1": Lookup.MISSING}, {}),
        CLUSTER,
        unjudged(Reason.ClaimMissing, "c1", "g"),
    ),
    "claim could not be read": (
        BY_NAME,
        Lookups({"c1": Lookup.FAILED}, {}),
        CLUSTER,
        unjudged(Reason.LookupFailed, "c1", "g"),
    ),
    "claim never looked up": (
        BY_NAME,
        Lookups({}, {"c1": template(ASKS_ONE)}),
        CLUSTER,
        unjudged(Reason.LookupFailed, "c1", "g"),
    ),
    "template missing": (
        BY_TEMPLATE,
        Lookups({}, {"t1": Lookup.MISSING}),
        CLUSTER,
        unjudged(Reason.TemplateMissing, "t1", "g"),
    ),
    "template could not be read": (
        BY_TEMPLATE,
        Lookups({}, {"t1": Lookup.FAILED}),
        CLUSTER,
        unjudged(Reason.LookupFailed, "t1", "g"),
    ),
    "template never looked up": (BY_TEMPLATE, NOTHING_READ, CLUSTER, unjudged(Reason.LookupFailed, "t1", "g")),
}


@pytest.mark.parametrize("sentence", CLAIMS)
def test_claims(sentence: str) -> None:
    given, lookups, cluster, want = CLAIMS[sentence]
    assert demand(given, lookups, cluster).needs == (want,)


ODD_ENTRIES: dict[str, tuple[Any, str]] = {
    "neither claim nor template": ({"name": "g"}, "g"),
    "both claim and template": ({"name": "g", "resourceClaimName": "c1", "resourceClaimTemplateName": "t1"}, "g"),
    "empty names": ({"name": "g", "resourceClaimName": "", "resourceClaimTemplateName": ""}, "g"),
    "a cluster template (KEP-5978)": ({"name": "g", "clusterResourceClaimTemplateName": "x"}, "g"),
    "a claim and a key nobody knows": ({"name": "g", "resourceClaimName": "c1", "share": True}, "g"),
    "the old source field": ({"name": "g", "source": {"resourceClaimName": "c1"}}, "g"),
    "a name that is none": ({"name": 7, "resourceClaimName": "c1"}, ""),
    "no object": ("c1", ""),
    "null": (None, ""),
}


@pytest.mark.parametrize("sentence", ODD_ENTRIES)
def test_an_entry_we_do_not_understand_is_neither_read_nor_judged(sentence: str) -> None:
    entry, name = ODD_ENTRIES[sentence]
    given = pod(claims=[entry])
    assert claim_references(given) == ClaimReferences()
    everything = Lookups({"c1": claim(ASKS_ONE)}, {"t1": template(ASKS_ONE)})
    assert demand(given, everything).needs == (unjudged(Reason.UnknownField, name=name),)


def test_each_object_is_read_once() -> None:
    given = pod(
        claims=[
            {"name": "a", "resourceClaimName": "c2"},
            {"name": "b", "resourceClaimTemplateName": "t1"},
            {"name": "c", "resourceClaimName": "c1"},
            {"name": "d", "resourceClaimName": "c2"},
            {"name": "e", "resourceClaimTemplateName": "t1"},
        ]
    )
    assert claim_references(given) == ClaimReferences(claims=("c2", "c1"), templates=("t1",))
