"""From the fields of a pod to its needs: extended resources, and the pod as a whole."""

import pytest

from app.dra.demand import Ask, ClaimReferences, Lookup, Lookups, Need, PodDemand, claim_references, undeclared
from app.dra.objects import Toleration
from app.dra.reasons import Reason
from tests.dra.known_cluster import (
    CLUSTER,
    GPU,
    GPU_FIELD,
    IMPLICIT,
    IMPLICIT_FIELD,
    NOW,
    KnownCluster,
    demand,
    exactly,
    pod,
    requests,
    template,
)

# --- Extended resources -------------------------------------------------------------------------------------------

RESOURCES: dict[str, tuple[dict[str, str], KnownCluster, tuple[Need, ...]]] = {
    "no device": ({"cpu": "2", "memory": "1Gi"}, CLUSTER, ()),
    "a claimed name: every class that may be meant, the winner first": (
        {GPU: "2"},
        CLUSTER,
        (Need(GPU, GPU_FIELD, 2, (Ask("gpu"), Ask("old")), claimed_name=True),),
    ),
    "an implicit name means its class and no other": (
        {IMPLICIT: "1"},
        CLUSTER,
        (Need(IMPLICIT, IMPLICIT_FIELD, 1, (Ask("gpu"),)),),
    ),
    "both names of one class are two needs": (
        {GPU: "1", IMPLICIT: "1"},
        CLUSTER,
        (
            Need(GPU, GPU_FIELD, 1, (Ask("gpu"), Ask("old")), claimed_name=True),
            Need(IMPLICIT, IMPLICIT_FIELD, 1, (Ask("gpu"),)),
        ),
    ),
    "a name no class declares is not DRA's": ({"other.com/fpga": "1"}, CLUSTER, ()),
    "nor is it when nothing can be judged": ({"other.com/fpga": "1"}, KnownCluster(judges=False), ()),
    "nor when its amount is odd": ({"other.com/fpga": "abc"}, CLUSTER, ()),
    "an implicit name of no class": (
        {"deviceclass.resource.kubernetes.io/nosuch": "1"},
        CLUSTER,
        (
            Need(
                "deviceclass.resource.kubernetes.io/nosuch",
                "spec.containers[0].resources.requests[deviceclass.resource.kubernetes.io/nosuch]",
                1,
                unjudged=Reason.ClassMissing,
                detail="nosuch",
            ),
        ),
    ),
    "zero": ({GPU: "0"}, CLUSTER, ()),
    "half a device": (
        {IMPLICIT: "500m"},
        CLUSTER,
        (Need(IMPLICIT, IMPLICIT_FIELD, unjudged=Reason.FractionalQuantity),),
    ),
    "no amount at all": (
        {GPU: "-1"},
        CLUSTER,
        (Need(GPU, GPU_FIELD, claimed_name=True, unjudged=Reason.UnknownField),),
    ),
    "nodes are not known": (
        {GPU: "1"},
        KnownCluster(judges=False),
        (Need(GPU, GPU_FIELD, 1, claimed_name=True, unjudged=Reason.NoSource),),
    ),
    "nodes are not known, implicit name": (
        {IMPLICIT: "1"},
        KnownCluster(judges=False),
        (Need(IMPLICIT, IMPLICIT_FIELD, 1, unjudged=Reason.NoSource),),
    ),
    "a node with a device plugin": (
        {GPU: "1"},
        KnownCluster(plugin="n3"),
        (Need(GPU, GPU_FIELD, 1, claimed_name=True, unjudged=Reason.DevicePlugin, detail="n3"),),
    ),
    "a node that has the implicit name in allocatable": (
        {IMPLICIT: "1"},
        KnownCluster(plugin="n3"),
        (Need(IMPLICIT, IMPLICIT_FIELD, 1, unjudged=Reason.DevicePlugin, detail="n3"),),
    ),
}


@pytest.mark.parametrize("sentence", RESOURCES)
def test_extended_resources(sentence: str) -> None:
    amounts, cluster, want = RESOURCES[sentence]
    assert demand(pod(amounts), cluster=cluster).needs == want


# --- The pod as a whole ----------------------------------------------------------------------------------------------


def test_an_unjudged_need_hides_no_other() -> None:
    given = pod(
        {GPU: "1", IMPLICIT: "500m"},
        [{"name": "a", "resourceClaimName": "gone"}, {"name": "b", "resourceClaimTemplateName": "t1"}],
    )
    found = demand(given, Lookups({"gone": Lookup.MISSING}, {"t1": template(requests(exactly()))}))
    assert found.needs == (
        Need(GPU, GPU_FIELD, 1, (Ask("gpu"), Ask("old")), claimed_name=True),
        Need(IMPLICIT, IMPLICIT_FIELD, unjudged=Reason.FractionalQuantity),
        Need("a", "spec.resourceClaims[0]", unjudged=Reason.ClaimMissing, detail="gone"),
        Need("b/r", "spec.resourceClaims[1]", 1, (Ask("gpu"),)),
    )


def test_what_decides_where_the_pod_can_go() -> None:
    given = pod(
        {GPU: "1"},
        tolerations=[{"key": "team", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        nodeSelector={"zone": "a", "arch": "amd64"},
    )
    found = demand(given)
    assert found.tolerations == (Toleration("team", "Exists", "", "NoExecute"),)
    assert found.node_selector == (("arch", "amd64"), ("zone", "a"))


UNDECLARED: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "a name with a slip": ({"example.com/gpus": "1"}, ("example.com/gpus",)),
    "several, in the pod's order": ({"b.io/x": "1", GPU: "1", "a.io/x": "1"}, ("b.io/x", "a.io/x")),
    "a fraction of one": ({"example.com/gpus": "500m"}, ("example.com/gpus",)),
    "a name that a class declares": ({GPU: "1"}, ()),
    "a class by its name": ({IMPLICIT: "1"}, ()),
    "none of it": ({"example.com/gpus": "0"}, ()),
    "what every node has": ({"cpu": "1", "hugepages-2Mi": "2Mi"}, ()),
}


@pytest.mark.parametrize("case", UNDECLARED)
def test_names_that_no_class_declares(case: str) -> None:
    amounts, names = UNDECLARED[case]
    assert undeclared(pod(amounts), CLUSTER, NOW) == names


def test_a_name_that_a_node_serves_needs_no_class() -> None:
    assert undeclared(pod({GPU: "1"}), KnownCluster(claimed=()), NOW) == (GPU,)
    assert undeclared(pod({GPU: "1"}), KnownCluster(claimed=(), plugin="n1"), NOW) == ()


def test_a_pod_that_asks_for_nothing() -> None:
    assert demand(pod()) == PodDemand()
    assert claim_references(pod()) == ClaimReferences()
