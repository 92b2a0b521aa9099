"""The CEL environment of a device selector: the standard language plus the functions Kubernetes adds to it.

With `selector.py` the only home of the CEL engine (cel-cpp by way of cel-expr-python). The engine has no value types of
our making, so a Quantity, a Semver, an IP and a CIDR travel through it as tagged bytes, *carriers*. They are made and
read here; that no expression looks at them as bytes is `selector_kinds.py`'s business.

Left out, so that a selector using them is unknown: URLs, named formats, `indexOf` of lists. A function raises
ValueError where that of Kubernetes has an error at run time and wherever it is not sure: `&&` and `||` treat both the
same.
"""

import functools
import ipaddress
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped] # has stubs and, up to 0.1.3, no py.typed

from app.dra.quantity import OversizedQuantity, Quantity, parse_quantity

_BOOL, _INT, _UINT, _DOUBLE = cel.Type.BOOL, cel.Type.INT, cel.Type.UINT, cel.Type.DOUBLE
_STRING, _BYTES, _LIST, _DYN = cel.Type.STRING, cel.Type.BYTES, cel.Type.LIST, cel.Type.DYN

# Base environment of Kubernetes 1.37 and dynamic-resource-allocation/cel.
_EXTENSIONS = """
extensions:
- name: cel.lib.ext.bindings
- name: optional
- name: cel.lib.ext.strings
  version: 2
- name: cel.lib.ext.sets
- name: cel.lib.ext.lists
- name: cel.lib.ext.comprev2
variables:
- name: device
  type_name: dyn
"""
_NANO = 10**9
_INT64 = 2**63


def _content(carrier: bytes, tags: str) -> tuple[str, str]:
    text = carrier.decode()
    if not text or text[0] not in tags:
        raise ValueError("no such overload")
    return text[0], text[1:]


# ── Quantity ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_usual(quantity: Quantity) -> bool:
    """Whether its value tells that it is a CEL integer. Carriers of usual quantities are equal when the values are."""
    whole, fraction = divmod(quantity.nano, _NANO)
    return quantity.integer == (not fraction and -_INT64 <= whole < _INT64)


def quantity_carrier(quantity: Quantity) -> bytes:
    """A Quantity for the engine."""
    return f"Q{quantity.nano}{'' if is_usual(quantity) else '~'}".encode()


def _quantity(carrier: bytes) -> Quantity:
    _, text = _content(carrier, "Q")
    nano = int(text.removesuffix("~"))
    plain = Quantity(nano, integer=True)
    return Quantity(nano, integer=is_usual(plain) != text.endswith("~"))


def _as_integer(carrier: bytes) -> int:
    quantity = _quantity(carrier)
    if not quantity.integer:
        raise ValueError("cannot convert value to integer")
    return quantity.nano // _NANO


def _as_float(carrier: bytes) -> float:
    quantity = _quantity(carrier)
    if not quantity.integer or abs(quantity.nano) > 2**53 * _NANO:
        raise ValueError("Go's rounding depends on how the quantity was written")
    return float(quantity.nano // _NANO)


def _sum(a: Quantity, b: Quantity) -> bytes:
    if not (a.nano and b.nano) and not (a.integer and b.integer):
        raise ValueError("Go's form of a sum with zero depends on how the zero was written")
    nano = a.nano + b.nano
    return quantity_carrier(Quantity(nano, integer=a.integer and b.integer and -_INT64 <= nano // _NANO < _INT64))


def _add(a: bytes, b: bytes | int) -> bytes:
    return _sum(_quantity(a), Quantity(b * _NANO, integer=True) if isinstance(b, int) else _quantity(b))


def _subtract(a: bytes, b: bytes | int) -> bytes:
    other = Quantity(b * _NANO, integer=True) if isinstance(b, int) else _quantity(b)
    return _sum(_quantity(a), Quantity(-other.nano, integer=other.integer))


# ── Semver (github.com/blang/semver/v4) ──────────────────────────────────────────────────────────────────────────────

_NUMBER = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+", re.ASCII)


def _uint64(text: str) -> int:
    if not _NUMBER.fullmatch(text) or len(text) > len(str(2**64)) or int(text) >= 2**64:
        raise ValueError(f"not a number of a semantic version: {text[:64]!r}")
    return int(text)


def semver_carrier(text: str) -> bytes:
    """A semantic version for the engine, without build metadata, which nothing can see; ValueError if it is none."""
    core, plus, build = text.partition("+")
    core, dash, prerelease = core.partition("-")
    identifiers = (build.split(".") if plus else []) + (prerelease.split(".") if dash else [])
    if not all(_IDENTIFIER.fullmatch(identifier) for identifier in identifiers):
        raise ValueError("invalid prerelease or build metadata")
    carrier = f"V{core}{dash}{prerelease}".encode()
    _semver(carrier)  # or an error
    return carrier


def _normalized_semver(text: str, normalize: bool) -> bytes:  # noqa: FBT001 - CEL passes arguments by position
    if not normalize:
        return semver_carrier(text)
    major, *others = text.removeprefix("v").split(".", 2)
    parts = [_without_leading_zeros(part) if part[1:] else part for part in (major, *others)]
    missing = 2 - len(others)
    if missing and re.search("[+-]", parts[-1]):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return semver_carrier(".".join(parts) + ".0" * missing)


def _without_leading_zeros(part: str) -> str:
    part = part.lstrip("0")
    return part if part[:1].isdigit() and part[:1].isascii() else "0" + part


_Order = tuple[int, int, int, bool, tuple[tuple[int, str], ...]]


def _semver(carrier: bytes) -> _Order:
    """The version in its order: a pre-release before the release, its numbers before its words."""
    _, text = _content(carrier, "V")
    core, dash, prerelease = text.partition("-")
    major, minor, patch = map(_uint64, core.split("."))
    identifiers = prerelease.split(".") if dash else []
    words = tuple((_uint64(word), "") if word.isdigit() else (2**64, word) for word in identifiers)
    return major, minor, patch, not dash, words


def _compare(a: bytes, b: bytes) -> int:
    tag, _ = _content(a, "QV")
    left: Any = _quantity(a).nano if tag == "Q" else _semver(a)
    right: Any = _quantity(b).nano if tag == "Q" else _semver(b)
    return int(left > right) - int(left < right)


def _signed(number: int) -> int:
    """Go converts the uint64 of a version to CEL's int64 by wrapping around."""
    return (number + _INT64) % 2**64 - _INT64


# ── IP and CIDR (net/netip, stricter as in k8s.io/apiserver) ─────────────────────────────────────────────────────────

_IP = ipaddress.IPv4Address | ipaddress.IPv6Address
_BROADCAST = "255.255.255.255"
_LINK_LOCAL_MULTICAST = ("224.0.0.0/24", "ff02::/16")
_NETWORK = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def _address(text: str) -> _IP:
    address = ipaddress.ip_address(text)
    if "%" in text or getattr(address, "ipv4_mapped", None):
        raise ValueError("zones and IPv4-mapped IPv6 addresses are not allowed")
    return address


def _ip_carrier(text: str) -> bytes:
    return f"I{_address(text)}".encode()


def _cidr_carrier(text: str) -> bytes:
    address, _, bits = text.partition("/")
    if not _NUMBER.fullmatch(bits):
        raise ValueError("not a prefix length")
    return f"C{ipaddress.ip_interface(f'{_address(address)}/{bits}')}".encode()


def _ip(carrier: bytes | str) -> _IP:
    return _address(carrier if isinstance(carrier, str) else _content(carrier, "I")[1])


def _cidr(carrier: bytes | str) -> _NETWORK:
    text = _cidr_carrier(carrier) if isinstance(carrier, str) else carrier
    return ipaddress.ip_interface(_content(text, "C")[1])


def _is_global_unicast(carrier: bytes) -> bool:
    ip = _ip(carrier)
    return not (ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local or str(ip) == _BROADCAST)


def _contains_cidr(outer: bytes, inner: bytes | str) -> bool:
    network, other = _cidr(outer).network, _cidr(inner)
    return other.ip in network and other.network.prefixlen >= network.prefixlen


# ── Lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _same(a: object, b: object) -> bool:
    """CEL's `==`: numbers compare across their types, and a bool is no number."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def _includes(target: object, element: object) -> bool:
    """A list attribute by its elements, anything else as a list of one (KEP-5491)."""
    elements = target if isinstance(target, list) else [target]
    if any(isinstance(value, list | dict) for value in elements):
        raise ValueError("elements that are not scalars")
    return any(_same(value, element) for value in elements)


def _ordered(values: list[Any]) -> list[Any]:
    """The list if all of it is int or all of it is string; order and sum of anything else is left to Kubernetes."""
    if {type(value) for value in values} not in ({int}, {str}):
        raise ValueError("not a list of ints or of strings")
    return values


def _is_sorted(values: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(_ordered(values)))


# ── Regular expressions ──────────────────────────────────────────────────────────────────────────────────────────────

# Only the engine has RE2. Its extension differs from Go's for groups and for empty matches; both are left unknown.
_NEVER_EMPTY = re.compile(r"(?:(?:\[\^?[^\[\]\\]+\]|\\[dws]|[A-Za-z0-9 _:/-])\+?)+", re.ASCII)
_REGEX = """
extensions:
- name: optional
- name: cel.lib.ext.regex
variables:
- name: text
  type_name: string
- name: pattern
  type_name: string
"""


@functools.cache
def _regex(expression: str) -> cel.Expression:
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_REGEX)).compile(expression)


def _matched(expression: str, text: str, pattern: str) -> cel.Value:
    result = _regex(expression).eval(data={"text": text, "pattern": pattern})
    if result.type() == cel.Type.ERROR:
        raise ValueError("invalid regular expression")
    return result


def _find(text: str, pattern: str) -> str:
    if "(" in pattern:
        raise ValueError("a group")
    return str(_matched('regex.extract(text, pattern).orValue("")', text, pattern).value())


def _find_all(text: str, pattern: str) -> list[str]:
    if not _NEVER_EMPTY.fullmatch(pattern):
        raise ValueError("possibly an empty match")
    return list(_matched("regex.extractAll(text, pattern)", text, pattern).plain_value())


# ── The environment ──────────────────────────────────────────────────────────────────────────────────────────────────


def _valid(parse: Callable[..., object]) -> Callable[..., bool]:
    def is_valid(*arguments: object) -> bool:
        try:
            parse(*arguments)
        except OversizedQuantity:
            raise
        except ValueError:
            return False
        return True

    return is_valid


_Overload = tuple[Sequence[cel.Type], cel.Type, Callable[..., Any]]


def _declaration(name: str, functions: Sequence[_Overload], methods: Sequence[_Overload]) -> cel.FunctionDecl:
    overloads = [(False, *overload) for overload in functions] + [(True, *overload) for overload in methods]
    return cel.FunctionDecl(
        name,
        [
            cel.Overload(
                f"vacancy_{name}_{number}",
                return_type=result,
                parameters=parameters,
                is_member=is_member,
                impl=implementation,
            )
            for number, (is_member, parameters, result, implementation) in enumerate(overloads)
        ],
    )


@functools.cache
def environment() -> cel.Env:
    """The environment with the variable `device`; made at the first selector, as it costs about a millisecond."""
    carrier, two_carriers, scalars = [_BYTES], [_BYTES, _BYTES], [_BOOL, _INT, _UINT, _DOUBLE, _STRING, _BYTES]
    functions: dict[str, list[_Overload]] = {
        "quantity": [([_STRING], _BYTES, lambda text: quantity_carrier(parse_quantity(text)))],
        "isQuantity": [([_STRING], _BOOL, _valid(parse_quantity))],
        "semver": [([_STRING], _BYTES, semver_carrier), ([_STRING, _BOOL], _BYTES, _normalized_semver)],
        "isSemver": [([_STRING], _BOOL, _valid(semver_carrier)), ([_STRING, _BOOL], _BOOL, _valid(_normalized_semver))],
        "ip": [([_STRING], _BYTES, _ip_carrier)],
        "isIP": [([_STRING], _BOOL, _valid(_ip_carrier))],
        "ip.isCanonical": [([_STRING], _BOOL, lambda text: str(_address(text)) == text)],
        "cidr": [([_STRING], _BYTES, _cidr_carrier)],
        "isCIDR": [([_STRING], _BOOL, _valid(_cidr_carrier))],
    }
    methods: dict[str, list[_Overload]] = {
        "isInteger": [(carrier, _BOOL, lambda q: _quantity(q).integer)],
        "asInteger": [(carrier, _INT, _as_integer)],
        "asApproximateFloat": [(carrier, _DOUBLE, _as_float)],
        "sign": [(carrier, _INT, lambda q: _compare(q, b"Q0"))],
        "add": [(two_carriers, _BYTES, _add), ([_BYTES, _INT], _BYTES, _add)],
        "sub": [(two_carriers, _BYTES, _subtract), ([_BYTES, _INT], _BYTES, _subtract)],
        "compareTo": [(two_carriers, _INT, _compare)],
        "isLessThan": [(two_carriers, _BOOL, lambda a, b: _compare(a, b) < 0)],
        "isGreaterThan": [(two_carriers, _BOOL, lambda a, b: _compare(a, b) > 0)],
        "major": [(carrier, _INT, lambda v: _signed(_semver(v)[0]))],
        "minor": [(carrier, _INT, lambda v: _signed(_semver(v)[1]))],
        "patch": [(carrier, _INT, lambda v: _signed(_semver(v)[2]))],
        "family": [(carrier, _INT, lambda ip: _ip(ip).version)],
        "isUnspecified": [(carrier, _BOOL, lambda ip: _ip(ip).is_unspecified)],
        "isLoopback": [(carrier, _BOOL, lambda ip: _ip(ip).is_loopback)],
        "isLinkLocalMulticast": [
            (carrier, _BOOL, lambda ip: any(_ip(ip) in ipaddress.ip_network(net) for net in _LINK_LOCAL_MULTICAST))
        ],
        "isLinkLocalUnicast": [(carrier, _BOOL, lambda ip: _ip(ip).is_link_local)],
        "isGlobalUnicast": [(carrier, _BOOL, _is_global_unicast)],
        "containsIP": [
            (parameters, _BOOL, lambda network, ip: _ip(ip) in _cidr(network).network)
            for parameters in (two_carriers, [_BYTES, _STRING])
        ],
        "containsCIDR": [(parameters, _BOOL, _contains_cidr) for parameters in (two_carriers, [_BYTES, _STRING])],
        "prefixLength": [(carrier, _INT, lambda network: _cidr(network).network.prefixlen)],
        "masked": [(carrier, _BYTES, lambda network: f"C{_cidr(network).network}".encode())],
        "ip": [(carrier, _BYTES, lambda network: f"I{_cidr(network).ip}".encode())],
        "find": [([_STRING, _STRING], _STRING, _find)],
        "findAll": [([_STRING, _STRING], cel.Type.List(_STRING), _find_all)],
        "includes": [([target, element], _BOOL, _includes) for target in [_LIST, *scalars] for element in scalars],
        "sum": [([_LIST], _INT, lambda values: sum(_ordered(values)))],
        "min": [([_LIST], _DYN, lambda values: min(_ordered(values)))],
        "max": [([_LIST], _DYN, lambda values: max(_ordered(values)))],
        "isSorted": [([_LIST], _BOOL, _is_sorted)],
    }
    names = [*functions, *(name for name in methods if name not in functions)]
    declarations = [_declaration(name, functions.get(name, ()), methods.get(name, ())) for name in names]
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_EXTENSIONS), functions=declarations)
