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
    """Also where there are so many that the page is no page any more."""
    not_understood: tuple[str, ...] = ()
    """What is in the address and means nothing; it is as if it were not there."""

    def named(self, classes: Iterable[ClassReport]) -> list[ClassReport]:
        """The classes with the text in their name, in order, whatever their state."""
        text = self.text.lower()
        found = (row for row in classes if text in row.name.lower() or text in row.extended_resource_name.lower())
        return sorted(found, key=SORTS[self.sort])

    def address(self, state: str) -> str:
        """The same with another state, relative to the page."""
        asked = {"class": self.text, "state": state, "sort": "" if self.sort == "name" else self.sort}
        return "?" + urlencode({name: value for name, value in asked.items() if value})


def view_of(text: str, state: str, sort: str, pools: str) -> View:
    """What the words in an address ask for."""
    wrong = [word for word, known in ((state, STATES), (sort, SORTS)) if word and word not in known]
    return View(
        text=text.strip()[: LONGEST_NAME + 1],
        state=state if state in STATES else "",
        sort=sort if sort in SORTS else "name",
        all_pools=pools == "all",
        not_understood=tuple(word[:LONGEST_NAME] for word in wrong),
    )
