"""Laws of the live view and of the judgement, held against small random clusters.

Names are few on purpose: slices change pools, devices change slices, two claims hold one device, pods come back.
"""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.dra.demand import Ask, Lookups
from app.dra.holders import PodRecord
from app.dra.judgement import Policy, Source, World, judge
from app.dra.objects import Pod, ResourceClaim, Toleration
from app.dra.snapshot import Problem, Snapshot, build_snapshot
from app.dra.tally import Blocks
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.verdict import Outcome
from app.dra.witness import Heard, Kind, Witness
from tests.builders import (
    GPU,
    NOON,
    Json,
    by_template,
    claim_template,
    decoded,
    device,
    device_class,
    device_request,
    node,
    pod,
    pool_counts,
    resource_claim,
    resource_slice,
    taint,
    taint_rule,
    timestamp,
)
from tests.dra.watched import KINDS

quick = settings(max_examples=100, deadline=None)

DRIVERS = ("gpu.example.com", "nic.example.com")
POOLS, NODES, DEVICES, PODS = ("n1", "n2"), ("n1", "n2", ""), ("g0", "g1", "g2"), ("p1", "p2", "p3")
MODEL_A = 'device.attributes["gpu.example.com"].model == "a"'
"""An error, and so a doubt, for a device without the attribute."""

TOLERATES = Toleration("example.com/broken", "Exists", "", "NoSchedule")
ASKS = (
    Ask("gpu"),
    Ask("any"),
    Ask("model-a"),
    Ask("gpu", (MODEL_A,)),
    Ask("gpu", (), (TOLERATES,)),
    Ask("any", ('device.driver != "gpu.example.com"',), (Toleration("", "Exists"),)),
)

# --- Small clusters ---------------------------------------------------------------------------------------------------

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
    counters=st.sampled_from([None, {"card": {"memory": "2"}}]),
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


@dataclass
class Cluster:
    """What the API server has, and a witness that hears of every change."""

    witness: Witness
    objects: dict[Key, Heard] = field(default_factory=dict)
    ended: dict[Key, PodRecord] = field(default_factory=dict)

    def put(self, obj: Heard) -> None:
        key = key_of(obj)
        before = self.objects.get(key)
        if isinstance(obj, PodRecord) and isinstance(before, PodRecord) and before.uid != obj.uid:
            self.forget_end(key)
        self.objects[key] = obj
        self.witness.apply(key[0], obj, NOON)

    def end(self, key: Key) -> None:
        pod = self.objects.get(key)
        if isinstance(pod, PodRecord):
            self.ended[key] = pod
            self.witness.apply(Kind.ENDED_PODS, pod, NOON)

    def forget_end(self, key: Key) -> None:
        if self.ended.pop(key, None):
            self.witness.remove(Kind.ENDED_PODS, key[1], key[2], NOON)

    def delete(self, key: Key, *, end_first: bool = False) -> None:
        if end_first:
            self.forget_end(key)
        if self.objects.pop(key, None):
            self.witness.remove(*key, NOON)
        self.forget_end(key)

    def listed_again(self, kind: Kind) -> None:
        """The watch broke; what is gone was removed meanwhile, everything is told once more."""
        self.witness.lost(kind)
        names = set()
        for key, obj in self.objects.items():
            if key[0] is kind:
                names.add(key[1:])
                self.witness.apply(kind, obj, NOON)
        self.witness.prune(kind, names, NOON)
        self.witness.synced(kind, NOON)


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


events = st.lists(
    st.one_of(
        some_objects.map(lambda obj: ("put", obj)),
        some_objects.map(lambda obj: ("put", obj)),
        some_objects.map(lambda obj: ("delete", key_of(obj))),
        some_pods.map(lambda obj: ("end", key_of(obj))),
        st.sampled_from(Kind).map(lambda kind: ("list", kind)),
        st.sampled_from(ASKS).map(lambda ask: ("ask", ask)),
        st.just(("work", 1)),
    ),
    max_size=25,
)


def cluster_after(history: Iterable[tuple[str, Any]]) -> Cluster:
    """A cluster in which new asks are counted step by step while everything changes."""
    cluster = Cluster(current(Witness(NOON)))
    cluster.witness._tallies.devices_at_once = 1  # noqa: SLF001  # as in a cluster too large to be counted at once
    for number, (what, subject) in enumerate(history):
        match what:
            case "put":
                cluster.put(subject)
            case "delete":
                cluster.delete(subject, end_first=number % 2 == 0)
            case "end":
                cluster.end(subject)
            case "list" if subject is not Kind.ENDED_PODS:
                cluster.listed_again(subject)
            case "ask":
                cluster.witness.tally(subject)
            case "work":
                cluster.witness.work(subject)
    return cluster


def picture(witness: Witness, now: float, pod_tolerations: tuple[Toleration, ...] = ()) -> list[object]:
    """Everything a verdict could rest on, without identities."""
    witness.advance(now)
    seen: list[object] = []
    for ask in ASKS:
        tally = witness.tally(ask)
        while witness.work(1):
            pass
        standing = witness.standing(tally, pod_tolerations, (("zone", "a"),), now)
        seen.append(
            (
                ask,
                standing,
                sorted(device.id for device in tally.free),
                sorted((pool.driver, pool.name, count) for pool, count in tally.pools.items()),
                sorted((pool.driver, pool.name, reason) for pool, reason in tally.blocking.items()),
                (tally.total, tally.shareable, tally.certain(), tally.memory(), tally.drivers()),
                sorted((pool.driver, pool.name) for pool in tally.candidates()),
            )
        )
    pools = ((p.driver, p.name, p.condition.name, p.generation, p.size, p.plain, p.node()) for p in witness.pools())
    return [*seen, sorted(pools)]


@quick
@given(history=events)
def test_a_witness_that_heard_every_change_knows_what_one_that_lists_now_knows(history: list[tuple[str, Any]]) -> None:
    cluster = cluster_after(history)
    fresh = told(cluster.objects.values(), cluster.ended.values())
    for later in (0.0, 61.0, 91.0, 301.0, 1_000.0):
        assert picture(cluster.witness, NOON + later) == picture(fresh, NOON + later)


@quick
@given(history=events, data=st.data())
def test_the_order_in_which_objects_are_listed_does_not_matter(
    history: list[tuple[str, Any]], data: st.DataObject
) -> None:
    cluster = cluster_after(history)
    objects = list(cluster.objects.values())
    ends = [(Kind.ENDED_PODS, pod) for pod in cluster.ended.values()]
    shuffled = data.draw(st.permutations([*((KINDS[type(obj)], obj) for obj in objects), *ends]))
    witness = Witness(NOON)
    for kind, obj in shuffled:
        witness.apply(kind, obj, NOON)
    current(witness)
    ordered = told(objects, cluster.ended.values())
    assert picture(witness, NOON + 400) == picture(ordered, NOON + 400)
    assert witness.claimants(GPU) == ordered.claimants(GPU)


@quick
@given(history=events)
def test_a_witness_forgets_what_is_gone(history: list[tuple[str, Any]]) -> None:
    cluster = cluster_after(history)
    for key in list(cluster.objects):
        cluster.delete(key)
    witness = cluster.witness
    witness.advance(NOON + 10_000)
    holders = witness._holders  # noqa: SLF001  # memory is not to be seen from outside
    for kept in (witness._devices, witness._holds, witness._slice_pools, witness._settling, holders._claims):  # noqa: SLF001
        assert not kept
    for left in (holders._by_consumer, holders._pods, holders._ended, holders._ended_uids, holders._due):  # noqa: SLF001
        assert not left
    assert witness.drivers() == ()


# --- Verdicts ---------------------------------------------------------------------------------------------------------


def full(world: World, now: float = NOON) -> list[bool]:
    """Which of some pods would be refused."""
    return [judge(asking, "default", lookups, world, now).outcome is Outcome.FULL for asking, lookups in ASKING]


def by_request(*requests: Json) -> tuple[Pod, Lookups]:
    return pod(claims=[by_template()]), Lookups({}, {"t1": claim_template(*requests)})


ASKING = (
    (pod(), Lookups({}, {})),
    by_request(device_request("any")),
    by_request(device_request("gpu", selectors=[{"cel": {"expression": MODEL_A}}])),
    by_request(device_request("gpu", tolerations=[{"key": "example.com/broken", "operator": "Exists"}])),
)

plain_slices = st.builds(
    resource_slice,
    st.lists(
        st.builds(
            device, st.sampled_from(DEVICES), attributes=st.sampled_from([None, {"model": "a"}]), taints=some_taints
        ),
        max_size=2,
        unique_by=lambda made: made["name"],
    ),
    name=st.sampled_from(["s1", "s2", "s3"]),
    pool=st.sampled_from(POOLS),
    node=st.sampled_from(NODES),
)
every_device = [(pool, name) for pool in POOLS for name in DEVICES]
crowded = st.builds(
    lambda slices, free, since, others: [
        device_class("gpu", declares=GPU),
        device_class("any", selectors=[]),
        *(PodRecord(f"{name}-1", "default", name) for name in PODS),
        *slices,
        *(
            resource_claim(name, name=f"{pool}-{name}", pool=pool, consumers=["p1-1"], at=NOON - since)
            for pool, name in every_device
            if (pool, name) not in free
        ),
        *others,
    ],
    st.lists(plain_slices, min_size=1, max_size=3, unique_by=lambda made: made.metadata.name),
    st.lists(st.sampled_from(every_device), max_size=1),
    st.sampled_from([5, 100]),
    st.lists(st.one_of(some_slices, some_claims, some_pods, some_rules), max_size=1),
)
"""Objects of a cluster that is mostly taken."""

some_flaws = st.sampled_from(["", "", "", "", "freed", "rolled out", "dropped", "cut", "unset", "wrong"])
some_ages = st.sampled_from([0, 10, 60, 91])


def status_of(objects: Iterable[Heard], flaw: str, age: int) -> Json:
    """What the controller-manager would have counted so long ago, with a flaw."""
    pools = []
    for pool in told(objects).pools(DRIVERS[0]):
        published = list(pool.published())
        held = sum(device.holders > 0 for device in pool.devices())
        tainted = sum(bool(device.taints) for device in pool.devices())
        pools.append(
            pool_counts(
                pool.name, total=len(published), allocated=held, unavailable=tainted, generation=pool.generation
            )
        )
    more = 0
    if pools and flaw == "freed" and pools[0]["allocatedDevices"]:
        pools[0] |= {"allocatedDevices": pools[0]["allocatedDevices"] - 1}
        pools[0] |= {"availableDevices": max(0, pools[0]["totalDevices"] - pools[0]["allocatedDevices"])}
    elif pools and flaw == "rolled out":
        pools[0] |= {"generation": pools[0]["generation"] + 1}
    elif flaw == "dropped":
        pools = pools[1:]
    elif flaw == "cut":
        pools, more = pools[1:], min(1, len(pools))
    elif pools and flaw == "unset":
        del pools[0]["allocatedDevices"]
    elif pools and flaw == "wrong":
        pools[0] |= {"availableDevices": 3}
    return {
        "metadata": {"name": "x"},
        "spec": {"driver": DRIVERS[0]},
        "status": {
            "poolCount": len(pools) + more,
            "pools": pools,
            "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": timestamp(NOON - age)}],
        },
    }


def snapshot_of(status: Json) -> Snapshot:
    return build_snapshot([decoded(status, ResourcePoolStatusRequest)], received_at=NOON)


@dataclass(frozen=True)
class Counted:
    """A crowded cluster and the status of its first driver."""

    objects: list[Heard]
    status: Json

    def world(self, source: Source, objects: Iterable[Heard] | None = None) -> World:
        known = told(self.objects if objects is None else objects)
        return World(known, snapshot_of(self.status), Policy(source=source))


counted = st.tuples(crowded, some_flaws, some_ages).map(lambda made: Counted(made[0], status_of(*made)))


def never_more(before: list[bool], after: list[bool]) -> bool:
    """No pod that was admitted is refused now."""
    return not any(now and not then for then, now in zip(before, after, strict=True))


sources = st.sampled_from(Source)


@quick
@given(cluster=counted, source=sources, data=st.data())
def test_freeing_a_device_never_turns_a_pod_away(cluster: Counted, source: Source, data: st.DataObject) -> None:
    freed = data.draw(st.sampled_from([obj for obj in cluster.objects if isinstance(obj, ResourceClaim)]))
    fewer = [obj for obj in cluster.objects if key_of(obj) != key_of(freed)]
    assert never_more(full(cluster.world(source)), full(cluster.world(source, fewer)))


@quick
@given(cluster=counted, source=sources)
def test_a_new_device_never_turns_a_pod_away(cluster: Counted, source: Source) -> None:
    new = resource_slice([device("new", attributes={"model": "a"})], pool="new", name="new", node="n1")
    after = cluster.world(source, [*cluster.objects, new])
    assume(any(free.id[2] == "new" for free in after.witness.tally(Ask("any")).free))  # no rule taints every device
    assert never_more(full(cluster.world(source)), full(after))


@quick
@given(cluster=counted, source=sources, kind=st.sampled_from(Kind))
def test_losing_a_kind_never_turns_a_pod_away(cluster: Counted, source: Source, kind: Kind) -> None:
    world = cluster.world(source)
    before = full(world)
    world.witness.lost(kind)
    assert never_more(before, full(world))


@quick
@given(cluster=counted)
def test_a_status_can_only_keep_the_witness_from_refusing(cluster: Counted) -> None:
    alone, auto, both = (full(cluster.world(source)) for source in (Source.WITNESS, Source.AUTO, Source.BOTH))
    assert never_more(alone, auto)
    assert never_more(auto, both)


def losses(value: Any, path: tuple[Any, ...] = ("status",)) -> Iterator[Json]:  # noqa: ANN401
    """Copies of a request, each without one part of its status."""
    inner = value
    for step in path:
        inner = inner[step]
    for key in inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ():
        lost = copy.deepcopy(value)
        part = lost
        for step in path:
            part = part[step]
        del part[key]
        yield lost
        yield from losses(value, (*path, key))


@quick
@given(cluster=counted, source=st.sampled_from([Source.POOL_STATUS, Source.BOTH]))
def test_losing_a_part_of_a_status_never_turns_a_pod_away(cluster: Counted, source: Source) -> None:
    """Two sources promise it. By contract `auto` goes on without a status, and a list that is cut, which is what a lost
    pool looks like beside its `poolCount`, neither proves nor vetoes for `both`. Of an answer that cannot be, the
    contradiction itself may get lost.
    """
    whole = cluster.world(source)
    assume(whole.snapshot.statuses[DRIVERS[0]].problem is not Problem.MALFORMED)
    before = full(whole)
    nothing = World(whole.witness, Snapshot({}), whole.policy)
    assert never_more(before, full(nothing))
    for lost in losses(cluster.status):
        world = World(whole.witness, snapshot_of(lost), whole.policy)
        if source is Source.BOTH and world.snapshot.statuses[DRIVERS[0]].truncated:
            continue
        assert never_more(before, full(world))


@quick
@given(cluster=counted, source=sources, data=st.data())
def test_the_order_of_slices_classes_and_claims_does_not_matter_to_a_verdict(
    cluster: Counted, source: Source, data: st.DataObject
) -> None:
    unique = list({key_of(obj): obj for obj in cluster.objects}.values())
    shuffled = data.draw(st.permutations(unique))
    worlds = (cluster.world(source, order) for order in (unique, shuffled))
    one, other = ([judge(asking, "default", lookups, world, NOON) for asking, lookups in ASKING] for world in worlds)
    assert one == other


# --- Numbers ----------------------------------------------------------------------------------------------------------


@quick
@given(st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=12), st.data())
def test_blocks_that_come_and_go_are_those_that_are_there(nodes: list[str], data: st.DataObject) -> None:
    blocks, here = Blocks(), list[str]()
    for node_name in nodes:
        if node_name in here and data.draw(st.booleans()):
            here.remove(node_name)
            blocks.discard(node_name)
        else:
            here.append(node_name)
            blocks.add(node_name)
        most = max((here.count(each) for each in set(here) - {""}), default=0)
        assert blocks.largest == most + here.count("")


def test_the_clusters_are_worth_it() -> None:
    """A law that only ever saw clusters where nothing is refused would prove nothing."""
    refused: set[tuple[Source, int]] = set()

    @settings(max_examples=150, deadline=None, database=None)
    @given(cluster=counted, source=sources)
    def look(cluster: Counted, source: Source) -> None:
        refused.update((source, number) for number, said in enumerate(full(cluster.world(source))) if said)

    look()
    assert {source for source, _ in refused} == set(Source)
    assert {number for _, number in refused} == set(range(len(ASKING)))
