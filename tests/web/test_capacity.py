"""The capacity table on the wire: what the pool statuses list and what does not count."""

import json

import msgspec
import pytest

from app.dra.capacity import Capacity, ClassCapacity, Counts
from app.dra.reasons import Reason
from app.dra.vacancy import Vacancy
from app.web.capacity import capacity_report


@pytest.mark.parametrize("listed", [0, 1, 2])
def test_devices_that_are_listed_and_do_not_count_have_a_number_of_their_own(listed: int) -> None:
    row = ClassCapacity(
        name="gpu",
        extended_resource_name="",
        counts=Counts(4, 4, 0, 0),
        listed=listed,
        vacancy=Vacancy.FULL,
        judged=Vacancy.FULL,
        reason=Reason.NoGPUCapacity,
        age_seconds=9.0,
        source="both",
        pools=(),
    )
    report = capacity_report(Capacity(None, (row,)), hide_names=True)
    (written,) = json.loads(msgspec.json.encode(report))["classes"]
    assert (written["listedNotCounted"], written["available"]) == (listed, 0)
