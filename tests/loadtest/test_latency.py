"""Vegeta's results become times from when each request was due."""

import base64

import pytest

from loadtest.latency import Latency, Sample, samples

MILLISECOND = 1_000_000


def row(number: int, began: int, took: int, code: int = 200, answer: bytes = b"{}") -> list[str]:
    """A line of vegeta's CSV; times in ns."""
    encoded = base64.b64encode(answer).decode()
    return [str(began), str(code), str(took), "0", "0", "", encoded, "", str(number), "POST", "https://localhost/", ""]


def test_a_request_that_the_client_sent_late_counts_from_when_it_was_due() -> None:
    rows = [row(0, 50 * MILLISECOND, MILLISECOND), row(1, 55 * MILLISECOND, MILLISECOND)]
    first, second = samples(rows, rate=1000, warm_up=0)
    assert (first.late, first.seconds) == (0.0, 0.001)
    assert (second.intended, second.late, second.seconds) == (0.001, 0.004, 0.005)


def test_a_late_first_request_does_not_make_the_others_early() -> None:
    rows = [row(0, 3 * MILLISECOND, MILLISECOND), row(1, 1 * MILLISECOND, MILLISECOND)]
    first, second = samples(rows, rate=1000, warm_up=0)
    assert (first.late, second.late) == (0.003, 0.0)


def test_what_warms_up_is_not_told() -> None:
    rows = [row(number, number * MILLISECOND, MILLISECOND) for number in range(1500)]
    told = list(samples(rows, rate=1000, warm_up=1))
    assert len(told) == 500
    assert told[0].intended == 0.0


def test_the_answer_is_kept() -> None:
    (told,) = samples([row(0, 0, 1, answer=b'{"a":1}')], rate=1, warm_up=0)
    assert (told.url, told.answer) == ("https://localhost/", b'{"a":1}')


@pytest.mark.parametrize(("share", "seconds"), [(0.5, 50.0), (0.99, 99.0), (0.999, 100.0), (1.0, 100.0)])
def test_a_quantile_is_a_time_that_was_measured(share: float, seconds: float) -> None:
    assert of(*range(100, 0, -1)).quantile(share) == seconds


def test_what_is_not_answered_with_200_is_an_error() -> None:
    rows = [row(0, 0, 1), row(1, 1, 1, code=500), row(2, 2, 1, code=0)]
    assert Latency(tuple(samples(rows, rate=1000, warm_up=0))).errors == 2


def of(*seconds: float) -> Latency:
    return Latency(tuple(Sample(0.0, 0.0, each, 200, "", b"") for each in seconds))
