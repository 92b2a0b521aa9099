"""Times as Kubernetes writes them."""

import pytest

from app.times import epoch_seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("2026-01-01T12:00:00Z", 1767268800.0), ("0001-01-01T00:00:00Z", -62135596800.0)]
)
def test_a_time_is_in_seconds_since_1970(text: str, seconds: float) -> None:
    assert epoch_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-00:01",
        "9999-12-31T23:59:59.999999Z",
        "2026-01-01T12:00:00",
        "",
    ],
)
def test_what_cannot_be_written_in_utc_is_no_time(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the interpreter words it
        epoch_seconds(text)
