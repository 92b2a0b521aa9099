"""What selectors see of a slice's devices comes back as it was written, and takes little room until then."""

import json
import uuid

from hypothesis import given
from hypothesis import strategies as st

from app.dra.selector import Shape
from app.dra.shapes import packed, unpacked

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
