"""What pools and nodes are called, to tell whether a text of a driver's names one: names may be hidden."""

from collections.abc import Generator, Iterable, Iterator

from app.dra.pools import PoolState

NAMES_AT_ONCE = 200
"""Between two moments in which others may work: about 0.2 ms (measured)."""

LONGEST_VALUE = 64
"""Characters of an attribute, says the API. What is longer is taken for a name without a look."""


class Places:
    """The names, in lower case, and what stands in them before the first dot."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._lengths: set[int] = set()

    def add(self, name: str) -> None:
        """A pool or node is called so."""
        whole = name.lower()
        first = whole.partition(".")[0]
        # Of an address it is a number that stands in many a text.
        for form in {whole} if first.isdigit() else {whole, first}:
            if form:
                self._names.add(form)
                self._lengths.add(len(form))

    def is_one(self, text: str) -> bool:
        """Whether the text is a name, or the first part of it is."""
        whole = text.lower()
        return whole in self._names or whole.partition(".")[0] in self._names

    def named_in(self, text: str) -> bool:
        """Whether a name stands anywhere in the text."""
        whole = text.lower()
        return len(whole) > LONGEST_VALUE or any(
            whole[start : start + length] in self._names
            for length in self._lengths
            for start in range(len(whole) - length + 1)
        )


def places(pools: Iterable[PoolState], nodes: Iterable[str]) -> Generator[None, None, Places]:
    """Those of all pools, of the nodes their slices are for and of these nodes, with moments for others."""
    found = Places()
    for number, name in enumerate(_names(pools, nodes), 1):
        found.add(name)
        if number % NAMES_AT_ONCE == 0:
            yield
    return found


def _names(pools: Iterable[PoolState], nodes: Iterable[str]) -> Iterator[str]:
    """What is iterated over may change meanwhile."""
    for pool in list(pools):
        yield pool.name
        for part in pool.slices.values():
            yield from {name for kind, name in part.reach if kind == "node"} or {d.node for d in part.devices}
    yield from list(nodes)
