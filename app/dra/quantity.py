"""Kubernetes quantities (`resource.Quantity`), exactly: "80Gi", "1500m", "1e3".

The grammar and the rounding are those of k8s.io/apimachinery `pkg/api/resource/quantity.go`, oddities included: CEL
selectors can see them. Values are integers of 1e-9, because Go rounds there too; no float takes part.
"""

import re
from dataclasses import dataclass

_NANO = 10**9
_NANO_SCALE = -9  # the finest scale of Go's int64 form
_INT64_MAX = 2**63 - 1
# Go multiplies by any power of ten that fits in 32 bits; a number of a gigabyte is not worth reading.
_MAX_EXPONENT = 4096  # together with the digits before it: what is summed up has to be written, too
_MAX_LENGTH = 4096  # of the text; neither int() nor str() takes more than 4,300 digits

_SYNTAX = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?(?:([eE][+-]?[0-9]+)|([numkMGTPE]?)|([KMGTPE])i)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}


class OversizedQuantity(ValueError):
    """A quantity that Go would read and that is too large to be meant."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact number."""

    nano: int
    """The value in units of 1e-9."""
    integer: bool
    """What CEL calls an integer: Go holds an int64 with a scale of zero or more. "1000m", "1.0" and "1Pi" are none."""

    def __str__(self) -> str:
        """The shortest exact text: `80Gi`, `1500m`."""
        whole, rest = divmod(self.nano, _NANO)
        if rest:
            exponent = next(e for e in (-3, -6, -9) if self.nano % 10 ** (e + 9) == 0)
            suffix = next(name for name, power in _DECIMAL.items() if power == exponent)
            return f"{self.nano // 10 ** (exponent + 9)}{suffix}"
        texts = [f"{whole >> power}{name}i" for name, power in _BINARY.items() if whole and not whole % (1 << power)]
        texts += [
            f"{whole // 10**power}{name}" for name, power in _DECIMAL.items() if power >= 0 and not whole % 10**power
        ]
        return min(texts, key=len)


def parse_quantity(text: str | float) -> Quantity:
    """The quantity that Go's `ParseQuantity` makes of a JSON string or number.

    ValueError when it makes none, OversizedQuantity (a ValueError) when we will not.
    """
    source = str(text)
    if len(source) > _MAX_LENGTH:
        raise OversizedQuantity(f"quantity of {len(source)} characters, at most {_MAX_LENGTH} are read")
    syntax = _SYNTAX.fullmatch(source)
    if syntax is None or not source or isinstance(text, bool):
        raise ValueError(f"not a quantity: {source[:64]!r}")
    sign, zeros, digits, decimals, exponent_text, decimal, binary = syntax.groups(default="")
    digits = digits or "0"
    power = _BINARY.get(binary, 0)
    exponent = int(exponent_text[1:]) if exponent_text else _DECIMAL.get(decimal, 0)
    if len(digits) + abs(exponent) > _MAX_EXPONENT:
        raise OversizedQuantity(f"quantity of {len(digits)} digits and the exponent {exponent}, too large to be read")
    scale = exponent - len(decimals)
    unscaled = int(digits + decimals) << power
    if sign == "-":
        unscaled = -unscaled

    # Go's fast form, an int64 and a scale, is taken when the digits are sure to fit. Only it can be a CEL integer.
    # The binary estimate is Go's: 15 digits less those of the text and about three for every Ki.
    room = 14 - len(digits) - power * 3 // 10 if binary else 18 - len(digits) - len(decimals)
    if room >= 0 and scale >= _NANO_SCALE and not (binary and decimals):
        value = unscaled * 10 ** max(scale, 0)
        fits = -_INT64_MAX - 1 <= value <= _INT64_MAX
        return Quantity(unscaled * 10 ** (scale - _NANO_SCALE), integer=scale >= 0 and fits)

    if not (zeros or syntax[3] or decimals):
        raise ValueError(f"quantity without a digit: {source!r}")
    nano = abs(unscaled) * 10 ** max(scale - _NANO_SCALE, 0)
    nano = -(-nano // 10 ** max(_NANO_SCALE - scale, 0))  # away from zero: who asks for something gets something
    if binary:
        nano = min(nano, _INT64_MAX * _NANO)
    return Quantity(-nano if sign == "-" else nano, integer=False)


def whole_devices(value: str | float) -> int | None:
    """How many devices an extended resource asks for; None for a fraction ("500m"), ValueError for less than none."""
    if type(value) is str and value.isdigit() and value.isascii() and len(value) < _MAX_LENGTH:  # on the request path
        return int(value)
    nano = parse_quantity(value).nano
    if nano < 0:
        raise ValueError(f"negative number of devices: {str(value)[:64]!r}")
    devices, fraction = divmod(nano, _NANO)
    return None if fraction else devices
