"""The fenced blocks of the documents, and the commands in them, cut where a shell would."""

import re
import subprocess
from collections import Counter
from dataclasses import dataclass

from tests.test_docs import PAGES, ROOT

_FENCE = re.compile(r"( *)(```|~~~)(\S*)")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences."""

    language: str
    text: str

    def commands(self) -> list["Command"]:
        """What a shell would run, one after the other. Raises an AssertionError if the last has no end."""
        found: list[Command] = []
        pending = ""
        for line in self.text.splitlines():
            pending += line
            if not line.endswith("\\") and _is_whole(pending):
                found.append(Command(pending))
                pending = ""
            else:
                pending += "\n"
        assert not pending, f"{pending!r} does not end"
        return found


@dataclass(frozen=True, slots=True)
class Command:
    """One command, with the comment behind it."""

    written: str

    @property
    def text(self) -> str:
        """It, without its comment."""
        return re.sub(r"\s+# .*$", "", self.written)

    @property
    def comment(self) -> str:
        """Without its mark."""
        return self.written[len(self.text) :].lstrip(" #")

    @property
    def exit_code(self) -> int:
        """The one that the comment names, as in `exit 1`; 0 if it names none."""
        code = re.search(r"\bexit (\d)", self.comment)
        return int(code[1]) if code else 0

    @property
    def says(self) -> str:
        """What it prints, as the comment tells: `must say "..."`."""
        words = re.search(r'must say "(.*?)"', self.comment)
        return words[1] if words else ""


def blocks() -> dict[str, Block]:
    """Every block of every page, by page and heading; a second below one heading has a number."""
    found: dict[str, Block] = {}
    counts: Counter[str] = Counter()
    for page in PAGES:
        heading, fence, lines = "", None, []
        for line in page.read_text("utf-8").splitlines():
            mark = _FENCE.match(line)
            if fence is None and mark:
                fence, lines = mark, []
            elif fence is not None and line.strip() == fence[2]:
                name = f"{page.relative_to(ROOT)}: {heading}"
                counts[name] += 1
                number = f" ({counts[name]})" * (counts[name] > 1)
                found[name + number] = Block(fence[3], "".join(lines))
                fence = None
            elif fence is not None:
                lines.append(line.removeprefix(fence[1]) + "\n")
            elif line.startswith("#"):
                heading = line.lstrip("# ")
        assert fence is None, f"{page.name}: a fence below {heading!r} is not closed"
    return found


BLOCKS = blocks()


def _is_whole(text: str) -> bool:
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0
