"""A table as text: columns two blanks apart, without lines around them, and no blank at the end of a line."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.table import Table


class Columns(Table):
    """The table. rich fills lines up to the width of all columns, and a terminal that is narrower breaks them."""

    def __init__(self) -> None:
        super().__init__(box=None, pad_edge=False, padding=(0, 2, 0, 0))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """See rich."""
        segments = (each for each in super().__rich_console__(console, options) if isinstance(each, Segment))
        for line in Segment.split_lines(segments):
            while line and not line[-1].text.rstrip():
                line.pop()
            if line:
                *others, last = line
                yield from (*others, Segment(last.text.rstrip(), last.style))
            yield Segment.line()
