"""What a reader of the capacity page asked to see, as it stands in the address: `/?class=gpu&state=full&sort=free`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from app.dra.vacancy import Vacancy
from app.web.capacity import ClassReport

LONGEST_NAME = 253
"""Of a class: a longer text is in none."""

STATES = tuple(state.value for state in Vacancy)

_Key = Callable[[ClassReport], tuple[int, str]]

SORTS: Mapping[str, _Key] = {
    "name": lambda row: (0, row.name),
    "free": lambda row: (1 if row.available is None else -row.available, row.name),
    "state": lambda row: (STATES.index(row.vacancy), row.name),
}
"""By name; the most free devices first and unknown last; by state."""


@dataclass(frozen=True, slots=True)
class View:
    """A choice of classes and their order."""

    text: str = ""
    """Part of a class's name or of the extended resource name it declares."""
    state: str = ""
    """Empty: any."""
    sort: str = "name"
    all_pools: bool = False
    """Of the class with this very name, also where they are so many that the page is no page any more."""
    misunderstood: bool = False
    """The address asks for a state or an order that there is not; what it said is not kept."""

    def named(self, classes: Iterable[ClassReport]) -> list[ClassReport]:
        """The classes with the text in their name, in order, whatever their state."""
        text = self.text.lower()
        found = (row for row in classes if text in row.name.lower() or text in row.extended_resource_name.lower())
        return sorted(found, key=SORTS[self.sort])

    def all_pools_of(self, row: ClassReport) -> bool:
        """Whether they are asked for, however many the class has."""
        return self.all_pools and self.text == row.name

    def address(self, state: str) -> str:
        """The same with another state, relative to the page."""
        asked = {"class": self.text, "state": state, "sort": "" if self.sort == "name" else self.sort}
        return "?" + urlencode({name: value for name, value in asked.items() if value})


PLAIN = View()
"""The page without a word in its address."""


def view_of(text: str, state: str, sort: str, pools: str) -> View:
    """What the words in an address ask for; the plain view if one of them means nothing."""
    if state not in ("", *STATES) or sort not in ("", *SORTS):
        return View(misunderstood=True)
    text = text.strip()[: LONGEST_NAME + 1]
    return View(text, state, sort or "name", all_pools=pools == "all" and bool(text))
