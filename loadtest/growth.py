"""What grows with the cluster and what must not: the cost of an event, a review, a device, and of the first lists.

The functions of the server are called one after the other in a process of their own, `python -m loadtest.growth`,
which reads a cluster from its standard input: of its memory nothing belongs to who makes the cluster up.
"""

import gc
import json
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

import msgspec

from app.admission.admit import Rules, admit
from app.admission.review import decode_review, encode_response
from app.cluster.collection import COLLECTIONS, heard, outlines
from app.dra.demand import Ask, Lookups
from app.dra.judgement import Policy, World, judge
from app.dra.snapshot import Snapshot, driver_status
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.witness import Kind, Witness
from loadtest.growth_lines import COUNTS, END
from loadtest.large_reviews import target
from loadtest.servers import SERVER_CORE, Running, pinned
from loadtest.targets import Figure, Run

SIZES = (1_000, 10_000, 50_000)
"""Slices of eight devices; see `growth_lines` for the rest."""

REVIEWS = 2_000

_UNITS = {
    "first lists": "s",
    "classes counted": "s",
    "an event of a claim": "us",
    "an event of a slice": "us",
    "a review that asks for nothing": "us",
    "a review, free": "us",
    "a review, full": "us",
    "a review, full, the first after new counts": "us",
    "memory of a device": "bytes",
    "memory of a claim and its pod": "bytes",
}


def growth(run: Run) -> Iterator[Figure]:
    """Each figure at each size."""
    for slices in SIZES:
        lines = [sys.executable, "-m", "loadtest.growth_lines", str(slices)]
        measuring = pinned(SERVER_CORE, [sys.executable, "-m", "loadtest.growth"])
        with subprocess.Popen(lines, stdout=subprocess.PIPE) as made:  # noqa: S603 - our own command
            output = subprocess.run(measuring, stdin=made.stdout, stdout=subprocess.PIPE, check=True).stdout  # noqa: S603 - the same
        found = json.loads(output)
        run.record({"part": "growth", "slices": slices} | found)
        for what, unit in _UNITS.items():
            yield Figure(f"{slices:,} slices: {what}", found[what], unit)


# --- In the process that measures -------------------------------------------------------------------------------------


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_events = msgspec.json.Decoder(_Event)
_decoders = [msgspec.json.Decoder(each.view) for each in COLLECTIONS]


class _Follower:
    """Does with each line what `Watch` does, and notes how long that takes."""

    def __init__(self) -> None:
        self.witness = Witness(time.time())
        self.seconds: defaultdict[Kind, list[float]] = defaultdict(list)

    def hear(self, line: bytes) -> Kind:
        """A line of `growth_lines`: the number of a collection, and a line of its watch."""
        number, _, said = line.partition(b"\t")
        collection = COLLECTIONS[int(number)]
        now, began = time.time(), time.thread_time()
        event = _events.decode(said)
        name = outlines.decode(event.object).metadata
        if event.type == "DELETED":
            self.witness.remove(collection.kind, name.namespace, name.name, now)
        else:
            self.witness.apply(collection.kind, heard(_decoders[int(number)].decode(event.object)), now)
        self.seconds[collection.kind].append(time.thread_time() - began)
        return collection.kind


def _measure(lines: BinaryIO) -> dict[str, float]:
    """Everything in the order of `growth_lines`: what there is, events of claims, events of slices, counts."""
    follower, witness, found = _Follower(), None, {}
    witness = follower.witness
    before, devices_mb = _resident(), 0.0
    for number, line in enumerate(_until_end(lines)):
        if number % 1000 == 0:
            gc.freeze()  # as `Live` does while it reads
        if follower.hear(line) is Kind.PODS and not devices_mb:
            devices_mb = _resident()
    slices, claims = (len(follower.seconds[kind]) for kind in (Kind.RESOURCE_SLICES, Kind.RESOURCE_CLAIMS))
    found["memory of a device"] = (devices_mb - before) / slices / 8
    found["memory of a claim and its pod"] = (_resident() - devices_mb) / claims
    found["first lists"] = sum(map(sum, follower.seconds.values()))
    for kind in Kind:
        witness.synced(kind, time.time())
    gc.freeze()
    found["classes counted"] = _seconds(lambda: _count(witness))
    for name, kind in (("a claim", Kind.RESOURCE_CLAIMS), ("a slice", Kind.RESOURCE_SLICES)):
        follower.seconds.clear()
        for line in _until_end(lines):
            follower.hear(line)
        found[f"an event of {name}"] = statistics.median(follower.seconds[kind]) * 1e6
    return found | _reviews(witness, list(_until_end(lines)))


def _reviews(witness: Witness, counts: list[bytes]) -> dict[str, float]:
    def counted() -> Snapshot:
        requests = [msgspec.json.decode(line.removeprefix(COUNTS), type=ResourcePoolStatusRequest) for line in counts]
        statuses = [driver_status([request], received_at=time.time()) for request in requests]
        return Snapshot({status.driver: status for status in statuses})

    nowhere, found = Running("", "", Path(), 0), {}
    for what, kind in (("that asks for nothing", "nothing"), ("free", "free"), ("full", "taken")):
        body, name = target(nowhere, kind).body, f"a review{' ' if kind == 'nothing' else ', '}{what}"
        world = World(witness, counted(), Policy())
        first = _seconds(lambda body=body, world=world: _review(body, world))
        times = [_seconds(lambda body=body, world=world: _review(body, world)) for _ in range(REVIEWS)]
        found[name] = statistics.median(times) * 1e6
    return found | {"a review, full, the first after new counts": first * 1e6}


def _review(body: bytes, world: World) -> None:
    """From bytes to bytes, as behind the door."""
    now = time.time()
    request = decode_review(body)
    assert request.pod is not None
    verdict = judge(request.pod, request.namespace, Lookups({}, {}), world, now)
    decision = admit(request, verdict, Rules(), now)
    encode_response(
        request.uid,
        allowed=decision.allowed,
        status=decision.status,
        warnings=decision.warnings,
        audit_annotations=decision.audit_annotations,
    )


def _count(witness: Witness) -> None:
    """As `Live` does it for every class."""
    for known in list(witness.classes):
        witness.tally(Ask(known.name))
    while witness.tallies.work(200):
        pass


def _until_end(lines: BinaryIO) -> Iterator[bytes]:
    return takewhile(lambda line: line != END, iter(lines.readline, b""))


def _seconds(work: Callable[[], None]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def _resident() -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found
    return int(found[1]) * 1024.0


if __name__ == "__main__":
    print(json.dumps(_measure(sys.stdin.buffer)))
