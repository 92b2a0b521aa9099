"""What a platform team says in its own words: one line, with fields that are filled in for whoever reads it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PAGE: Final = "page"
"""The field with the address of the capacity page."""

LENGTHS: Final[Mapping[str, int]] = {"namespace": 63, "name": 50, "class": 50, "count": 7, "total": 7}
"""The other fields, and the most characters each takes; sentences shorten what is longer."""

LIMIT: Final = 300
"""Characters of an advice and its link with the longest values: half of a sentence, the other is for the facts. Where
these take more, as each of their names has 50 characters and more, the advice is cut."""

_TOKEN: Final = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]")
_BRACES: Final = ("{{", "}}")


class Faults(ValueError):
    """All that is wrong with a text, a sentence each."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(*sentences)
        self.sentences = sentences


@dataclass(frozen=True, slots=True)
class Wording:
    """A text with fields."""

    text: str
    fields: frozenset[str]

    def filled(self, values: Mapping[str, str]) -> str:
        """The text for one reader."""
        return self.text.format_map(values)

    def longest(self, page: str) -> str:
        """The text with the longest values, and the link."""
        filled = self.filled({PAGE: page} | {field: "x" * most for field, most in LENGTHS.items()})
        return f"{filled} {link(page, filled)}".strip()


Texts = tuple[tuple[str, Wording], ...]
"""By the namespaces they are for, with `*` for any text; the first that matches counts."""


def wording(text: str) -> Wording:
    """The text, parsed. Raises Faults."""
    tokens = [token for token in _TOKEN.findall(text) if token not in _BRACES]
    fields = {token[1:-1] for token in tokens if len(token) > 1}
    faults = [] if text.isascii() and text.isprintable() else ["expected one line of printable ASCII"]
    if "{" in tokens or "}" in tokens:
        faults.append("found a brace without the other one, expected {{ or }} where it is to be seen")
    if unknown := sorted(fields - {*LENGTHS, PAGE}):
        known = ", ".join(f"{{{field}}}" for field in (*LENGTHS, PAGE))
        faults += (f"found {f'{{{field[:30]}}}'!r}, expected one of {known}" for field in unknown)
    if faults:
        raise Faults(*faults)
    return Wording(text, frozenset(fields))


def link(page: str, said: str = "") -> str:
    """`Capacity: https://…`; empty without a page, and where it, or a place on it, has been said."""
    is_said = re.search(rf"{re.escape(page)}(?![\w/-])", said)
    return f"Capacity: {page}" if page and not is_said else ""


def by_namespace(text: str) -> Texts:
    """Lines of NAMESPACE=TEXT. Raises Faults."""
    found: list[tuple[str, Wording]] = []
    faults: list[str] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        namespace, equals, said = (part.strip() for part in line.partition("="))
        if not (equals and re.fullmatch(r"[a-z0-9*-]{1,63}", namespace)):
            faults.append(f"found {line[:60]!r}, expected NAMESPACE=TEXT")
            continue
        try:
            found.append((namespace, wording(said)))
        except Faults as error:
            faults += (f"{namespace}: {sentence}" for sentence in error.sentences)
    if faults:
        raise Faults(*faults)
    # The one that says most of the name comes first, whatever the order in which a chart's values are written.
    return tuple(sorted(found, key=lambda each: (-len(each[0].replace("*", "")), each[0].count("*"))))
