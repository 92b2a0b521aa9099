"""Laws of the live view: however it came to know what it knows, it is what a list would tell it now."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.dra.demand import Ask
from app.dra.holders import PodRecord
from app.dra.objects import Toleration
from app.dra.tally import Blocks
from app.dra.witness import Heard, Kind, Witness
from tests.builders import GPU, NOON
from tests.dra.small_clusters import MODEL_A, Key, current, key_of, quick, some_objects, some_pods, told
from tests.dra.watched import KINDS

TOLERATES = Toleration("example.com/broken", "Exists", "", "NoSchedule")
ASKS = (
    Ask("gpu"),
    Ask("any"),
    Ask("model-a"),
    Ask("gpu", (MODEL_A,)),
    Ask("gpu", (), (TOLERATES,)),
    Ask("any", ('device.driver != "gpu.example.com"',), (Toleration("", "Exists"),)),
)


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
        list(self.witness.prune(kind, names, NOON))
        self.witness.synced(kind, NOON)


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
    cluster.witness.tallies.devices_at_once = 1  # as in a cluster too large to be counted at once
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
                cluster.witness.tallies.work(subject)
        for tally in cluster.witness.tallies._kept.values():  # noqa: SLF001  # what is remembered may be asked for at any time
            assert tally.standing() == tally._stands(tally._free_blocks)  # noqa: SLF001  # the same, worked out
    return cluster


def picture(witness: Witness, now: float, pod_tolerations: tuple[Toleration, ...] = ()) -> list[object]:
    """Everything a verdict could rest on, without identities."""
    witness.advance(now)
    seen: list[object] = []
    for ask in ASKS:
        tally = witness.tally(ask)
        while witness.tallies.work(1):
            pass
        standing = witness.standing(tally, pod_tolerations, (("zone", "a"),), now)
        seen.append(
            (
                ask,
                standing,
                sorted(device.id for device in tally.free),
                sorted((pool.driver, pool.name, count) for pool, count in tally.pools.items()),
                sorted((pool.driver, pool.name, reason) for pool, reason in tally.blocking.items()),
                (tally.total, tally.shareable, tally.certain(), tally.summary().memory, tally.summary().drivers),
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
    for kept in (witness._pools, witness._holds, witness._slice_pools, witness._settling, holders._claims):  # noqa: SLF001
        assert not kept
    for left in (holders._by_consumer, holders._pods, holders._ended, holders._ended_uids, holders._due):  # noqa: SLF001
        assert not left
    assert witness.drivers() == ()


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
