"""Tables as text."""

import io
import re

import pytest
from rich.console import Console

from app.columns import Columns


@pytest.mark.parametrize("is_terminal", [False, True])
def test_no_line_of_a_table_ends_in_a_blank_in_colour_or_without(is_terminal: bool) -> None:  # noqa: FBT001 - a row
    table = Columns()
    for heading in ("NAME", "SAID"):
        table.add_column(heading)
    table.add_row("gpu", "much more than the other", style="bold")
    table.add_row("nic", "")
    table.add_row("fpga", "less", style="red")
    out = io.StringIO()
    Console(file=out, width=80, force_terminal=is_terminal).print(table)
    lines = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()).splitlines()
    assert lines == ["NAME  SAID", "gpu   much more than the other", "nic", "fpga  less"]
    assert ("\x1b[" in out.getvalue()) is is_terminal
