"""No block of the documents is left out: each is run, or it is said why not."""

import ast
import re
from collections import Counter

import pytest

from tests.docs.blocks import BLOCKS, Block
from tests.docs.table import ELSEWHERE, IN_CHECKOUT, IN_CLUSTER, NOT_RUN
from tests.test_docs import PAGES, ROOT

COMMANDS = {command.text for block in BLOCKS.values() if block.language == "sh" for command in block.commands()}


def not_run(block: Block) -> bool:
    """Whether it is a shell's, and nothing in it can be run."""
    return block.language == "sh" and all(command.text in NOT_RUN for command in block.commands())


def test_every_block_has_one_who_runs_it_or_a_reason_why_nobody_does() -> None:
    excused = [name for name, block in BLOCKS.items() if name in NOT_RUN or not_run(block)]
    found = Counter([*IN_CHECKOUT, *IN_CLUSTER, *ELSEWHERE, *excused])
    assert found == Counter(BLOCKS.keys())


def test_what_is_excused_is_there() -> None:
    assert COMMANDS | BLOCKS.keys() >= NOT_RUN.keys()


def test_every_command_is_in_a_block_of_a_shell() -> None:
    typed = re.compile(
        r"^ *(?:\$ )?(?:curl|helm|kubectl|make|podman|python|vacancy|\.venv/bin/\w+) [a-z-].*$", re.MULTILINE
    )
    others = {name: typed.findall(block.text) for name, block in BLOCKS.items() if not block.language}
    assert not any(others.values()), others
    for page in PAGES:
        outside = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert [line for line in typed.findall(outside) if line.startswith("    ")] == [], page.name


@pytest.mark.parametrize("name", ELSEWHERE)
def test_who_runs_it_elsewhere_is_a_test(name: str) -> None:
    file, _, test = ELSEWHERE[name].partition("::")
    found = {
        each.name
        for each in ast.parse((ROOT / "tests" / file).read_text("utf-8")).body
        if isinstance(each, ast.FunctionDef)
    }
    assert test in found


def test_make_can_make_what_the_documents_name() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    makes = re.compile(r"(?:`|^)make ([a-z-]+)(?=`|$|\s+#)", re.MULTILINE)
    named = {name for page in PAGES for name in makes.findall(page.read_text("utf-8"))}
    assert "run" in named
    assert named <= targets
