"""Which refusals are news."""

from app.admission.repeats import OWNERS_AT_MOST, UID_AT_MOST, Repeats

MINUTE = 60.0


def test_an_owner_is_news_once_a_minute() -> None:
    repeats = Repeats()
    attempts = [0.0, 0.01, 0.03, 5.1, 59.9, 60.0, 61.0, 119.9, 1000.0]
    assert [at for at in attempts if not repeats.is_repeat("a", at)] == [0.0, 60.0, 1000.0]


def test_each_owner_is_news() -> None:
    repeats = Repeats()
    assert [repeats.is_repeat(uid, MINUTE) for uid in ("a", "b", "a", "b", "c")] == [False, False, True, True, False]


def test_owners_that_nobody_could_count_do_not_fill_the_memory() -> None:
    repeats = Repeats()
    for number in range(OWNERS_AT_MOST):
        assert not repeats.is_repeat(str(number), MINUTE)
    assert not repeats.is_repeat("0", MINUTE)
    assert repeats.is_repeat("0", MINUTE)
    long = "x" * 1_000_000
    repeats.is_repeat(long, MINUTE)
    assert repeats.is_repeat(long[:UID_AT_MOST], MINUTE)
