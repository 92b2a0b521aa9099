"""What a selector can see of a device, and what it costs to look: read off the tree, without running it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from math import prod
from typing import NamedTuple

from app.dra.selector_syntax import Form, Node


class Read(NamedTuple):
    """An entry of `device.attributes` or `device.capacity`. A tuple, since it is hashed with every look at a device."""

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
_MOST_STEPS = 100_000
# Values of an attribute (ResourceSliceMaxAttributeValuesPerDevice: 48), names of a domain (32), characters (64).
_LONGEST_OF_A_DEVICE = 64
_STEPS_OF_A_CALL = 10
_ELEMENTS_OF_A_STEP = 8

_TESTS = ("all", "exists", "exists_one", "existsOne")
_COPIES = ("replace", "join", "format")
_SAME_ELEMENTS = ("filter", "sortBy")
_LOOKS_AT_NO_ELEMENT = ("bind", "optMap", "optFlatMap", "has", "size", "flatten")


def is_bounded(root: Node) -> bool:
    """Whether an evaluation needs no more than some megabytes and some 10 ms.

    Kubernetes has a cost limit, the engine only one for iterations: `lists.range(50000000)` took 1.5 GB, a search in a
    long text done a thousand times 1.4 s. What copies text may not be repeated, what binds a value (and so may double
    it) only a few times. Real selectors do neither.
    """
    counts = Counter(node.text for node in root.walk() if node.form in (Form.METHOD, Form.OPERATOR))
    copies = sum(counts[name] for name in _COPIES)
    sums = counts["+"]
    bindings = sum(counts[name] for name in ("bind", "optMap", "optFlatMap", *TRANSFORMS))
    ranges = [node.parts[-1] for node in root.walk() if node.form is Form.METHOD and node.text == "range"]
    return (
        sums <= _MOST_SUMS
        and bindings <= _MOST_BINDINGS
        and (copies == 0 or (copies == 1 and sums + bindings == 0))
        and all(length.text.isdigit() and int(length.text) <= _LONGEST_RANGE for length in ranges)
        and steps(root) <= _MOST_STEPS
    )


_Lengths = tuple[int, ...]  # of a list, of the lists in it, …; a text counts as the list of its characters
_Lists = Mapping[str, _Lengths]  # variables


def steps(node: Node, variables: _Lists | None = None) -> int:
    """How long an evaluation takes at most, in steps of 0.1 to 1 us: loops in loops, and what functions go through."""
    inside = _inside(node, variables or {})
    parts = [steps(part, inside) for part in node.parts]
    if _is_loop(node):
        length = _loop_length(node, inside)
        copied = length // _ELEMENTS_OF_A_STEP if node.text in TRANSFORMS else 0  # for every element the list so far
        return parts[0] + length * (1 + copied + sum(parts[1:]))
    if node.form not in (Form.CALL, Form.METHOD) or node.text in _LOOKS_AT_NO_ELEMENT:
        return 1 + sum(parts)
    sizes = [max(1, prod(_lengths(part, inside))) for part in (*node.parts, node)]
    return _STEPS_OF_A_CALL + sum(parts) + (sum(sizes) + prod(sizes[:-1])) // _ELEMENTS_OF_A_STEP


def _is_loop(node: Node) -> bool:
    return node.form is Form.METHOD and node.text in _TESTS + TRANSFORMS


def _loop_length(node: Node, variables: _Lists) -> int:
    return next(iter(_lengths(node.parts[0], variables)), _LONGEST_OF_A_DEVICE)


def _inside(node: Node, variables: _Lists) -> _Lists:
    """The variables for the parts of a node; one of a loop is an element or a key."""
    if _is_loop(node):
        names, lengths = node.parts[1:3], _lengths(node.parts[0], variables)[1:]
    elif node.form is Form.METHOD and node.text == "bind":
        names, lengths = node.parts[1:2], _lengths(node.parts[2], variables)
    elif node.form is Form.METHOD and node.text in ("optMap", "optFlatMap"):
        names, lengths = node.parts[1:2], _lengths(node.parts[0], variables)
    else:
        return variables
    named = [part.text for part in names if part.form is Form.NAME]  # of two names the second may be the body: no harm
    return {**variables, **{name: _longest(lengths, variables.get(name, ())) for name in named}}


def _lengths(node: Node, variables: _Lists) -> _Lengths:
    """How long the list is that a node may be, with one length more for every list in it."""
    if not node.parts:
        return variables.get(node.text, ()) if node.form is Form.NAME else (len(node.text),)
    if node.form in ACCESS:
        return _lengths_of_a_place(node, variables)
    if node.form is Form.METHOD and node.text in _TESTS:
        return ()
    inside = _inside(node, variables)
    parts = [_lengths(part, inside) for part in node.parts]
    if node.form is Form.COLLECTION:
        return (len(parts), *_longest(*parts))
    if node.form is Form.METHOD:
        return _lengths_of_a_result(node, parts, inside)
    longest = _longest(*parts)
    return (sum(part[0] for part in parts if part), *longest[1:]) if node.text == "+" else longest


def _lengths_of_a_place(node: Node, variables: _Lists) -> _Lengths:
    root, depth = node, 0
    while root.form in ACCESS:
        root, depth = root.parts[0], depth + 1
    if not is_device(root):
        return _lengths(root, variables)
    is_map = device_map(node) or depth == 2  # noqa: PLR2004 - `device.attributes["a.example.com"]`
    return (_LONGEST_OF_A_DEVICE,) * (2 if is_map else 1)


def _lengths_of_a_result(node: Node, parts: list[_Lengths], variables: _Lists) -> _Lengths:
    target = parts[0]
    if node.text == "range":
        return (int(node.parts[-1].text),)
    if node.text in TRANSFORMS and node.text not in _SAME_ELEMENTS:
        return (_loop_length(node, variables), *parts[-1])
    if node.text == "flatten":
        return (prod(target[:2]), *target[2:])
    if node.text in _COPIES:
        return (prod(max(1, prod(part)) for part in parts),)
    return _longest(*parts)


def _longest(*lengths: _Lengths) -> _Lengths:
    return tuple(map(max, zip_longest(*lengths, fillvalue=0)))
