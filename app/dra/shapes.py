"""What selectors can see of the devices of one slice, packed.

Attributes and capacity are most of what a cluster publishes, and a selector that nobody has asked for yet may read any
of them. The devices of a slice are nearly alike, so that together they pack well: 8 GPUs with a UUID each to 61 bytes a
device instead of 388 (measured).
"""

import functools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from app.dra.selector import Shape

_LEVEL, _WINDOW_BITS, _MEMORY_LEVEL = 1, 13, 5
"""Of zlib, the quickest: 1 us a device. Higher levels take twice that for a tenth of the bytes; more memory than these
50 kB gains nothing, also with 128 devices, and has to be cleared for every slice (measured)."""

Written = tuple[bytes, bytes, bool]
"""Of one device `attributes`, `capacity` and `allowMultipleAllocations`, the first two as JSON."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Written])


def packed(devices: Sequence[Written]) -> bytes:
    """What selectors see of a slice's devices, in their order."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    return packer.compress(_encoder.encode(devices)) + packer.flush()


@functools.lru_cache(maxsize=1)
def unpacked(packed: bytes, driver: str) -> tuple[Shape, ...]:
    """What was packed. Devices are looked at slice by slice: to remember the last one is to unpack each once."""
    return tuple([Shape(driver, *written) for written in _decoder.decode(zlib.decompress(packed))])


def entries(written: bytes) -> Mapping[str, Any]:
    """Attributes or capacity of a device, by name; none where they cannot be read, of which selectors know nothing.

    That they are JSON is known, and no more: numbers may be too large, a text no UTF-8, lists too deep.
    """
    try:
        found = msgspec.json.decode(written) if written else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
