"""What selectors see of a slice's devices comes back as it was written, and takes little room until then."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dra.selector import Shape
from app.dra.shapes import entries, packed, unpacked

GPU = "gpu.example.com"

written = st.tuples(st.binary(max_size=40), st.binary(max_size=40), st.booleans())


@given(st.lists(written, max_size=20))
def test_what_is_packed_comes_back_byte_by_byte(devices: list[tuple[bytes, bytes, bool]]) -> None:
    shapes = unpacked(packed(devices), GPU)
    assert shapes == tuple(Shape(GPU, *each) for each in devices)


def test_devices_that_differ_in_their_identifiers_take_a_fraction_of_the_room() -> None:
    same = {"brand": {"string": "Nvidia"}, "driverVersion": {"version": "570.86.15"}, "type": {"string": "gpu"}}
    devices = [
        (json.dumps(same | {"uuid": {"string": f"GPU-{uuid.uuid4()}"}}).encode(), b'{"memory":{"value":"80Gi"}}', False)
        for _ in range(8)
    ]
    assert len(packed(devices)) < sum(len(attributes) + len(capacity) for attributes, capacity, _ in devices) / 3


NO_ENTRIES = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[1]",
    "a number larger than any": b'{"memory":{"value":1e999}}',
    "a text that is not UTF-8": b'{"model":{"string":"\xff"}}',
    "lists too deep to be read": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("case", NO_ENTRIES)
def test_what_cannot_be_read_has_no_entries(case: str) -> None:
    assert entries(NO_ENTRIES[case]) == {}
