"""Words: every reason has some, and what comes from an object is bounded."""

import pytest

from app.dra.reasons import Reason
from app.dra.words import PHRASES, age, cut, printable, reason_in_words, shortened


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_words_of_its_own(reason: Reason) -> None:
    assert printable(PHRASES[reason]) == PHRASES[reason] != ""
    assert list(PHRASES.values()).count(PHRASES[reason]) == 1
    assert set(PHRASES) == set(Reason)
    assert reason_in_words(reason, "x") == f"{PHRASES[reason]} (x)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0.9, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (1e10, "999999+h")],
)
def test_age(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_names_and_texts_within_their_room() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcd...ijk"
    assert printable("a\r\nb\tc\u2028d\x00\u00e9\U0001f600") == "a b c d???"
    assert cut("a text of several words, and more", 26) == "a text of several..."
    assert cut("a text of several words", 19) == ""
    assert cut("x" * 30, 25) == "x" * 22 + "..."
