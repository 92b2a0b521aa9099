"""A cluster of a given size, and what happens in it, as lines: `python -m loadtest.growth_lines SLICES`.

A line is the number of a collection, a tab and a line of its watch. Four parts end with `END`: what there is, events of
claims, new versions of slices, and the pool status of each driver.
"""

import sys

from app.cluster.collection import COLLECTIONS
from loadtest.standin import answered
from loadtest.standin_cluster import ENDED, Cluster, Size, Write

COUNTS, END = b"counts\t", b"end\n"

DRIVERS, CLASSES, CLAIMS_A_SLICE = 10, 50, 5
CLAIM_EVENTS, SLICE_EVENTS = 4_000, 200

_NUMBERS = {ENDED if each.field_selector else each.path: number for number, each in enumerate(COLLECTIONS)}


class _Lines:
    """Prints what happens."""

    def __init__(self) -> None:
        self._version = 0

    def put(self, collection: str, name: str, write: Write) -> None:  # noqa: ARG002 - its name is in it
        self._print(collection, b"MODIFIED", write)

    def remove(self, collection: str, name: str, write: Write) -> None:  # noqa: ARG002 - as above
        self._print(collection, b"DELETED", write)

    def _print(self, collection: str, kind: bytes, write: Write) -> None:
        self._version += 1
        head = b'%d\t{"type":"%b","object":' % (_NUMBERS[collection], kind)
        sys.stdout.buffer.write(head + write(self._version) + b"}\n")


def main(slices: int) -> None:
    """All four parts."""
    lines, out = _Lines(), sys.stdout.buffer
    size = Size(DRIVERS, slices // DRIVERS, slices * CLAIMS_A_SLICE, CLASSES)
    cluster = Cluster(size, lines.put, lines.remove)
    out.write(END)
    for _ in range(CLAIM_EVENTS):
        cluster.next_claim_event()
    out.write(END)
    for _ in range(SLICE_EVENTS):
        cluster.change_slice()
    out.write(END)
    for driver in cluster.pools:
        out.write(COUNTS + answered(cluster, "counted", driver) + b"\n")
    out.write(END)


if __name__ == "__main__":
    main(int(sys.argv[1]))
