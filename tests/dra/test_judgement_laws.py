"""Laws of the judgement: what may turn a pod away, and what never does."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.dra.demand import Ask, Lookups
from app.dra.holders import PodRecord
from app.dra.judgement import Policy, Source, World, judge
from app.dra.objects import Pod, ResourceClaim
from app.dra.snapshot import Problem, Snapshot, build_snapshot
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.verdict import Outcome
from app.dra.witness import Heard, Kind
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
    pod,
    pool_counts,
    resource_claim,
    resource_slice,
    timestamp,
)
from tests.dra.small_clusters import (
    DEVICES,
    DRIVERS,
    MODEL_A,
    NODES,
    PODS,
    POOLS,
    key_of,
    quick,
    some_claims,
    some_pods,
    some_rules,
    some_slices,
    some_taints,
    told,
)


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
