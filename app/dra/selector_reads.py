"""What a selector can see of a device, and what it costs to look: read off the tree, without running it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.dra.selector_syntax import Form, Node


@dataclass(frozen=True, slots=True, order=True)
class Read:
    """An entry of `device.attributes` or `device.capacity`."""

    field: str
    domain: str
    name: str


FIELDS = ("attributes", "capacity")
TRANSFORMS = (
    "map",
    "filter",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "sortBy",
)  # macros that make a list
ACCESS = (Form.FIELD, Form.OPTIONAL_FIELD, Form.INDEX, Form.OPTIONAL_INDEX)


def device_map(node: Node) -> str | None:
    """`attributes` for the node `device.attributes`, `capacity` for `device.capacity`."""
    named = node.form is Form.FIELD and node.text in FIELDS and is_device(node.parts[0])
    return node.text if named else None


def is_device(node: Node) -> bool:
    """Whether the node is the variable `device` (or another variable of that name)."""
    return node.form is Form.NAME and node.text == "device"


def key(node: Node) -> str | None:
    """The key of a node in ACCESS, when it is a literal."""
    if node.form in (Form.FIELD, Form.OPTIONAL_FIELD):
        return node.text
    return node.parts[1].text if node.parts[1].form is Form.STRING else None


def domain_maps(root: Node) -> Iterator[Node]:
    """The nodes `device.attributes` and `device.capacity` of which one domain is taken."""
    for node in root.walk():
        if node.form in ACCESS and device_map(node.parts[0]):
            yield node.parts[0]


class _Unbounded(Exception):
    """Some use of the device may depend on all of it."""


def reads(root: Node) -> frozenset[Read] | None:
    """The entries the outcome can depend on beside driver and existing domains; None if they cannot be told."""
    try:
        return frozenset(_reads(root, {}))
    except _Unbounded:
        return None


_Place = tuple[str, str]  # (`attributes`, `gpu.example.com`) for the node `device.attributes["gpu.example.com"]`


def _reads(node: Node, bound: Mapping[str, _Place]) -> Iterator[Read]:
    """The entries read; `bound` are the variables that `cel.bind` gave a domain."""
    children = list(node.parts)
    if node.form in ACCESS and (place := _place(node.parts[0], bound)) and (name := key(node)) is not None:
        yield Read(*place, name)
        return
    if node.form is Form.OPERATOR and node.text == "in":
        element, container = node.parts
        if device_map(container):
            children = [element]
        elif element.form is Form.STRING and (place := _place(container, bound)):
            yield Read(*place, element.text)
            return
    elif node.form is Form.METHOD and node.text == "bind" and (place := _place(node.parts[2], bound)):
        _, variable, _, *children = node.parts
        bound = {**bound, variable.text: place}
    elif _is_plain_field(node):
        return
    elif is_device(node) or _place(node, bound) or device_map(node):
        raise _Unbounded
    for child in children:
        yield from _reads(child, bound)


def _place(node: Node, bound: Mapping[str, _Place]) -> _Place | None:
    """The domain that the node is."""
    if node.form is Form.NAME:
        return bound.get(node.text)
    if node.form not in ACCESS or (field := device_map(node.parts[0])) is None or (name := key(node)) is None:
        return None
    return field, name


def _is_plain_field(node: Node) -> bool:
    return node.form is Form.FIELD and is_device(node.parts[0]) and node.text not in FIELDS


def fails_without_fields(node: Node) -> bool:
    """Whether every use of `device` is an error when the field it uses is missing.

    Then an expression that is false with the driver alone is false whatever the other fields are: CEL lets an error
    pass for a bool only where the bool does not matter.
    """
    if node.form is Form.FIELD and is_device(node.parts[0]):
        return True
    tests_a_field = node.form is Form.CALL and node.text == "has" and any(map(is_device, node.parts[0].parts))
    return not (tests_a_field or is_device(node)) and all(map(fails_without_fields, node.parts))


# ── What it costs ────────────────────────────────────────────────────────────────────────────────────────────────────

_LONGEST_RANGE = 1000
_MOST_SUMS = _MOST_BINDINGS = 4


def is_bounded(root: Node) -> bool:
    """Whether an evaluation needs no more than some megabytes.

    Kubernetes has a cost limit, the engine only one for iterations: `lists.range(50000000)` took 1.5 GB. What copies
    text may not be repeated, what binds a value (and so may double it) only a few times. Real selectors do neither.
    """
    counts = Counter(node.text for node in root.walk() if node.form in (Form.METHOD, Form.OPERATOR))
    copies = sum(counts[name] for name in ("replace", "join", "format"))
    sums = counts["+"]
    bindings = sum(counts[name] for name in ("bind", "optMap", "optFlatMap", *TRANSFORMS))
    ranges = [node.parts[-1] for node in root.walk() if node.form is Form.METHOD and node.text == "range"]
    return (
        sums <= _MOST_SUMS
        and bindings <= _MOST_BINDINGS
        and (copies == 0 or (copies == 1 and sums + bindings == 0))
        and all(length.text.isdigit() and int(length.text) <= _LONGEST_RANGE for length in ranges)
    )
