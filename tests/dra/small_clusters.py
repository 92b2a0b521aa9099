"""Small random clusters for the laws: slices, claims, pods, rules, nodes and classes that get in each other's way.

Names are few on purpose: slices change pools, devices change slices, two claims hold one device, pods come back.
"""

from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st

from app.dra.holders import PodRecord
from app.dra.witness import Heard, Kind, Witness
from tests.builders import (
    GPU,
    NOON,
    device,
    device_class,
    node,
    resource_claim,
    resource_slice,
    taint,
    taint_rule,
)
from tests.dra.watched import KINDS

quick = settings(max_examples=100, deadline=None)

DRIVERS = ("gpu.example.com", "nic.example.com")
POOLS, NODES, DEVICES, PODS = ("n1", "n2"), ("n1", "n2", ""), ("g0", "g1", "g2"), ("p1", "p2", "p3")
MODEL_A = 'device.attributes["gpu.example.com"].model == "a"'
"""An error, and so a doubt, for a device without the attribute."""

some_taints = st.lists(st.sampled_from(["NoSchedule", "NoExecute", "None"]).map(taint), max_size=1)
some_devices = st.builds(
    device,
    st.sampled_from(DEVICES),
    attributes=st.sampled_from([None, {"model": "a"}, {"model": "b"}]),
    taints=some_taints,
    consumes=st.sampled_from([None, None, {"card": {"memory": "1"}}, {"card": {"memory": "2"}}]),
    shareable=st.sampled_from([False, False, False, True]),
    memory=st.sampled_from(["", "1Gi", "2Gi"]),
)
some_slices = st.builds(
    resource_slice,
    st.lists(some_devices, max_size=3),
    name=st.sampled_from(["s1", "s2", "s3"]),
    pool=st.sampled_from(POOLS),
    driver=st.sampled_from([*DRIVERS[:1] * 2, *DRIVERS[1:]]),
    node=st.sampled_from(NODES),
    generation=st.sampled_from([1, 1, 1, 2]),
    slices=st.sampled_from([1, 1, 2]),
    counters=st.sampled_from([None, *({"card": {"memory": memory}} for memory in "123")]),
)
some_claims = st.builds(
    lambda held, **rest: resource_claim(*held, **rest),
    st.lists(st.sampled_from(DEVICES), max_size=2),
    name=st.sampled_from(["c1", "c2", "c3"]),
    pool=st.sampled_from(POOLS),
    consumers=st.lists(
        st.sampled_from([f"{name}-{life}" for name in PODS for life in (1, 2)]), max_size=2, unique=True
    ),
    admin_access=st.sampled_from([False, False, True]),
)
some_pods = st.builds(
    PodRecord,
    uid=st.just(""),
    namespace=st.just("default"),
    name=st.sampled_from(PODS),
    deletion_deadline=st.sampled_from([None, None, NOON - 500, NOON + 30]),
).flatmap(
    lambda pod: st.sampled_from([1, 2]).map(
        lambda life: PodRecord(f"{pod.name}-{life}", pod.namespace, pod.name, pod.deletion_deadline)
    )
)
some_rules = st.builds(
    taint_rule,
    st.sampled_from([None, {}, {"pool": "n1"}, {"driver": DRIVERS[0], "device": "g0"}, {"unknown": "x"}]),
    name=st.sampled_from(["r1", "r2"]),
    effect=st.sampled_from(["NoSchedule", "NoExecute", "None"]),
)
some_nodes = st.builds(
    node,
    st.sampled_from(NODES[:2]),
    cordoned=st.booleans(),
    labels=st.sampled_from([None, {"zone": "a"}]),
    taints=some_taints,
    plugin=st.sampled_from([None, None, {GPU: "0"}]),
)
some_classes = st.one_of(
    st.builds(device_class, st.just("gpu"), declares=st.sampled_from([GPU, GPU, None])),
    st.builds(device_class, st.just("any"), selectors=st.just([]), declares=st.sampled_from([None, GPU])),
    st.builds(device_class, st.just("model-a"), selectors=st.just([MODEL_A])),
)
some_objects: st.SearchStrategy[Heard] = st.one_of(
    some_slices, some_slices, some_slices, some_claims, some_claims, some_pods, some_rules, some_nodes, some_classes
)

Key = tuple[Kind, str, str]


def key_of(obj: Heard) -> Key:
    kind = KINDS[type(obj)]
    if isinstance(obj, PodRecord):
        return kind, obj.namespace, obj.name
    return kind, obj.metadata.namespace, obj.metadata.name


def current(witness: Witness) -> Witness:
    for kind in Kind:
        witness.synced(kind, NOON)
    return witness


def told(objects: Iterable[Heard], ended: Iterable[PodRecord] = ()) -> Witness:
    """A witness that has just listed these."""
    witness = Witness(NOON)
    for obj in objects:
        witness.apply(KINDS[type(obj)], obj, NOON)
    for record in ended:
        witness.apply(Kind.ENDED_PODS, record, NOON)
    return current(witness)
