"""Whether the engine can be trusted with a selector.

Quantity, Semver, IP and CIDR travel through the engine as bytes (`selector_library.py`). The engine would order,
measure and compare those bytes where Kubernetes has a run-time error. So every expression is followed here by kind: one
that uses a carrier for anything but the functions made for it is Untrusted. So is every use of the maps of domains that
would tell an absent domain from an empty one (Kubernetes does not, `stringInterfaceMapWithDefault`).

Types that the API server checks before it stores a selector are not checked again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from app.dra.quantity import parse_quantity
from app.dra.selector_library import is_usual
from app.dra.selector_reads import FIELDS, TRANSFORMS, Read, device_map, is_device, key
from app.dra.selector_syntax import Form, Node


class Untrusted(Exception):
    """The engine's answer need not be Kubernetes' answer."""


class Kind(Enum):
    """What a value is, as far as carriers go."""

    PLAIN = auto()  # no carrier in it; or an error
    ERROR = auto()  # an error for certain: an entry the device does not have
    SEMVER = auto()
    QUANTITY = auto()  # equal carriers exactly when the quantities are equal
    UNUSUAL_QUANTITY = auto()
    IP = auto()
    CIDR = auto()
    SEMVERS = auto()  # a list of them
    UNORDERED = auto()  # a list of plain values in the order of a map, which Go does not promise
    NESTED = auto()  # a list of UNORDERED
    MIXED = auto()  # possibly a carrier, possibly with one in it


@dataclass(frozen=True, slots=True)
class Domain:
    """The kind of `device.attributes[name]`; None is a name not known here."""

    field: str
    name: str | None


_Kind = Kind | Domain

_MAKERS = {"quantity": Kind.QUANTITY, "semver": Kind.SEMVER, "ip": Kind.IP, "cidr": Kind.CIDR}
_CARRIERS = (*_MAKERS.values(), Kind.UNUSUAL_QUANTITY)
# Methods that look at the tag of a carrier, so that any value may meet them; and what they return.
_COMPARING = ("compareTo", "isLessThan", "isGreaterThan", "sign", "isInteger", "asInteger", "asApproximateFloat")
_NUMBERING = ("major", "minor", "patch", "family", "prefixLength", "containsIP", "containsCIDR")
_CLASSIFYING = ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast")
_METHODS: dict[str, Kind] = {
    **dict.fromkeys(_COMPARING + _NUMBERING + _CLASSIFYING, Kind.PLAIN),
    "add": Kind.UNUSUAL_QUANTITY,
    "sub": Kind.UNUSUAL_QUANTITY,
    "masked": Kind.CIDR,
    "ip": Kind.IP,
}
_TESTS = ("all", "exists", "exists_one", "existsOne")
_ENDING_EARLY = ("all", "exists")
_BINDING = ("bind", "optMap", "optFlatMap", "sortBy")
_ELEMENTS = {Kind.SEMVERS: Kind.SEMVER, Kind.UNORDERED: Kind.PLAIN, Kind.NESTED: Kind.UNORDERED}
_NAMESPACES = ("cel", "optional", "sets", "lists", "strings", "ip")

_Scope = Mapping[str, _Kind]


def is_trusted(root: Node, contents: Mapping[Read, Kind]) -> bool:
    """Whether the engine's bool for a device with these contents is Kubernetes' bool."""
    nodes = list(root.walk())
    fields = sum(node.form in (Form.FIELD, Form.OPTIONAL_FIELD) and is_device(node.parts[0]) for node in nodes)
    if 0 < fields < sum(map(is_device, nodes)):
        return False  # the device as a whole, or a variable of its name beside it
    try:
        _Check(contents).kind(root, {})
    except (Untrusted, ValueError, IndexError):  # the last two: a macro with other arguments than it has
        return False
    return True


def mixes_up_variables(root: Node) -> bool:
    """Whether a loop that ends early may leave its variable where the engine takes it for that of a later `cel.bind`.

    `[1, 2].exists(k, true) && cel.bind(x, 5, x == 5)` is false in cel-expr-python 0.1.3. Only if one stands in the body
    of the other they have places of their own.
    """
    methods = [node for node in root.walk() if node.form is Form.METHOD]
    loops = [node for node in methods if node.text in _ENDING_EARLY]
    bindings = [node for node in methods if node.text in _BINDING]
    return any(not _in_body(binding, loop) and not _in_body(loop, binding) for loop in loops for binding in bindings)


def _in_body(node: Node, of: Node) -> bool:
    return any(node is each for each in of.parts[-1].walk())


@dataclass(frozen=True, slots=True)
class _Check:
    contents: Mapping[Read, Kind]

    def kind(self, node: Node, scope: _Scope) -> _Kind:
        match node.form:
            case Form.NAME:
                if node.text == "device" and node.text not in scope:
                    raise Untrusted("the device as a whole")
                kind = scope.get(node.text, Kind.PLAIN)
            case Form.FIELD | Form.OPTIONAL_FIELD | Form.INDEX | Form.OPTIONAL_INDEX:
                kind = self._access(node, scope)
            case Form.CALL:
                kind = self._call(node, scope)
            case Form.METHOD:
                kind = self._method(node, scope)
            case Form.OPERATOR:
                kind = self._operator(node, scope)
            case Form.COLLECTION:
                kinds = {self.kind(part, scope) for part in node.parts}
                kind = Kind.PLAIN if kinds <= {Kind.PLAIN, Kind.ERROR} else Kind.MIXED
            case _:
                kind = Kind.PLAIN
        return kind

    def _plain(self, nodes: tuple[Node, ...], scope: _Scope) -> Kind:
        for node in nodes:
            if self.kind(node, scope) not in (Kind.PLAIN, Kind.ERROR):
                raise Untrusted("a carrier where Kubernetes may have an error")
        return Kind.PLAIN

    def _access(self, node: Node, scope: _Scope) -> _Kind:
        operand = node.parts[0]
        if is_device(operand):
            if node.text in FIELDS:
                raise Untrusted("a map of domains as a whole")
            return Kind.PLAIN
        self._plain(node.parts[1:], scope)
        if (field := device_map(operand)) is not None:
            if node.form is Form.OPTIONAL_INDEX and key(node) is None:
                raise Untrusted("an absent domain has a value in Kubernetes")
            return Domain(field, key(node))
        kind = self.kind(operand, scope)
        if isinstance(kind, Domain):
            kind = self._entries(kind, key(node))
        elif kind is Kind.SEMVERS:
            kind = Kind.SEMVER
        elif kind in (Kind.UNORDERED, Kind.NESTED):
            raise Untrusted("a place in the order of a map")
        return kind if node.form in (Form.FIELD, Form.INDEX) else _optional(kind)

    def _entries(self, domain: Domain, name: str | None) -> _Kind:
        kinds = {
            kind
            for read, kind in self.contents.items()
            if read.field == domain.field and domain.name in (None, read.domain) and name in (None, read.name)
        }
        if not kinds and None not in (domain.name, name):
            return Kind.ERROR
        return _join(*kinds) if kinds else Kind.PLAIN

    def _call(self, node: Node, scope: _Scope) -> _Kind:
        arguments = node.parts
        if node.text == "has" and arguments:
            tested = arguments[0]
            if tested.parts and device_map(tested.parts[0]):
                raise Untrusted("whether an absent domain exists")
            if not device_map(tested):
                self.kind(tested, scope)
            return Kind.PLAIN
        if node.text == "size" and arguments:
            return self._size(arguments[0], scope)
        if node.text == "dyn" and arguments:
            return self.kind(arguments[0], scope)
        self._plain(arguments, scope)
        if node.text == "quantity" and not _is_usual_literal(arguments):
            return Kind.UNUSUAL_QUANTITY
        return _MAKERS.get(node.text, Kind.PLAIN)

    def _size(self, node: Node, scope: _Scope) -> Kind:
        if device_map(node) is None:
            kind = self.kind(node, scope)
            if kind in _CARRIERS or kind is Kind.MIXED:
                raise Untrusted("the size of a carrier")
        return Kind.PLAIN

    def _method(self, node: Node, scope: _Scope) -> _Kind:
        target, *arguments = node.parts
        if target.form is Form.NAME and target.text in _NAMESPACES and target.text not in scope:
            return self._namespaced(f"{target.text}.{node.text}", tuple(arguments), scope)
        if node.text in _TESTS + TRANSFORMS:
            return self._comprehension(node, scope)
        if node.text == "size":
            return self._size(target, scope)
        # At distinct() of no list and flatten() to a depth that is no int cel-go panics, which nothing absorbs.
        panicking = {"distinct": target.form is not Form.COLLECTION, "flatten": bool(arguments)}
        if panicking.get(node.text, False):
            raise Untrusted("a list that may be none")
        kind = self.kind(target, scope)
        if node.text in ("optMap", "optFlatMap"):
            variable, body = arguments
            return _optional(self.kind(body, {**scope, variable.text: kind}))
        return _result(node.text, kind, [self.kind(argument, scope) for argument in arguments])

    def _namespaced(self, name: str, arguments: tuple[Node, ...], scope: _Scope) -> _Kind:
        if name == "cel.bind":
            variable, value, body = arguments
            return self.kind(body, {**scope, variable.text: self.kind(value, scope)})
        if name == "optional.of":
            (value,) = arguments
            return _optional(self.kind(value, scope))
        return self._plain(arguments, scope)

    def _comprehension(self, node: Node, scope: _Scope) -> _Kind:
        target, *arguments = node.parts
        pairs = node.text.startswith("transform") or (node.text in _TESTS and len(arguments[:-1]) > 1)
        field = device_map(target)
        source = Domain(field, None) if field else self.kind(target, scope)
        if pairs and source in (Kind.UNORDERED, Kind.NESTED):
            raise Untrusted("places in the order of a map")
        if not isinstance(source, Domain):
            element: _Kind = _ELEMENTS.get(source, source)
        elif pairs:
            element = source if field else self._entries(source, None)
        else:
            element = Kind.PLAIN  # a key
        variables, bodies = arguments[: 1 + pairs], arguments[1 + pairs :]
        names = [variable.text for variable in variables]
        inner = {**scope, **dict(zip(names, (Kind.PLAIN, element)[1 - pairs :], strict=False))}
        kinds = {self.kind(body, inner) for body in bodies}
        if node.text in _TESTS:
            return Kind.PLAIN
        if source is Kind.ERROR:
            return Kind.ERROR
        if node.text == "filter" and not isinstance(source, Domain):
            return source
        ordered = source is Kind.PLAIN
        if kinds == {Kind.PLAIN} and (ordered or source is Kind.UNORDERED or isinstance(source, Domain)):
            return Kind.PLAIN if ordered else Kind.UNORDERED
        return Kind.NESTED if kinds == {Kind.UNORDERED} else Kind.MIXED

    def _operator(self, node: Node, scope: _Scope) -> _Kind:
        if node.text == "in" and device_map(node.parts[1]):
            return self._plain(node.parts[:1], scope)
        kinds = [self.kind(part, scope) for part in node.parts]
        if node.text == "?:":
            return _join(*kinds[1:])
        if node.text in ("&&", "||"):
            return Kind.PLAIN
        if node.text in ("==", "!="):
            kinds = [self._entries(kind, None) if isinstance(kind, Domain) and kind.name else kind for kind in kinds]
        if Kind.ERROR in kinds:
            return Kind.ERROR
        left, right = kinds[0], kinds[-1]
        if node.text in ("==", "!="):
            # A carrier on the left of another type is an error in Kubernetes; on the right it is just not equal.
            trusted = right in _MAKERS.values() and left in (Kind.PLAIN, right)
        elif node.text == "in":
            trusted = (left is Kind.PLAIN and (isinstance(right, Domain) or right is Kind.UNORDERED)) or (
                left is Kind.SEMVER and right is Kind.SEMVERS
            )
        else:
            trusted = False
        if not trusted and set(kinds) != {Kind.PLAIN}:
            raise Untrusted(f"a carrier as an operand of {node.text}")
        return Kind.PLAIN


def _result(method: str, target: _Kind, arguments: list[_Kind]) -> _Kind:
    """The kind of what a method returns."""
    if method in ("value", "or", "orValue"):
        return _join(target, *arguments)
    if Kind.ERROR in (target, *arguments):
        return Kind.ERROR
    if method in _METHODS and target in (*_CARRIERS, Kind.PLAIN, Kind.MIXED):
        return _METHODS[method]
    if method == "flatten" and target is Kind.NESTED:
        return Kind.UNORDERED
    if method == "includes" and target in (Kind.SEMVERS, Kind.SEMVER):
        target, arguments = Kind.PLAIN, [kind for kind in arguments if kind is not Kind.SEMVER]
    if method != "hasValue" and {target, *arguments} != {Kind.PLAIN}:
        raise Untrusted("a carrier where Kubernetes may have an error")
    return Kind.PLAIN


def _join(*kinds: _Kind) -> _Kind:
    """The kind of a value that is of one of these kinds; an error is no value."""
    values = set(kinds) - {Kind.ERROR} or {Kind.ERROR}
    return values.pop() if len(values) == 1 else Kind.MIXED


def _optional(kind: _Kind) -> _Kind:
    """The kind of an optional value: it is no carrier, but has one in it."""
    if kind is Kind.ERROR:
        return Kind.PLAIN  # nothing in it
    return Kind.MIXED if kind in _CARRIERS else kind


def _is_usual_literal(arguments: tuple[Node, ...]) -> bool:
    try:
        return is_usual(parse_quantity(arguments[0].text)) if arguments[0].form is Form.STRING else False
    except ValueError:
        return True  # an error, in Kubernetes too
