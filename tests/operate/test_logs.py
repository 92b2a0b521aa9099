"""The log: every message is documented, each event is one line in both forms, and a state is told when it changes."""

import ast
import asyncio
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cluster.client import Unreachable
from app.dra.judgement import Policy
from app.live import Live
from app.logs import configure_logging
from tests.test_docs import column
from tests.web.reviews import UID, pod, review
from tests.web.test_admit import Door

ROOT = Path(__file__).parents[2]
OPERATE = ROOT / "docs" / "operate.md"


def messages() -> Iterator[str]:
    """What the code logs, word by word."""
    for path in (ROOT / "app").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and re.fullmatch(r"_log\.\w+|self\._log_once", ast.unparse(call.func)):
                yield from (word.value for word in call.args if isinstance(word, ast.Constant))


def test_every_message_is_documented_and_no_other() -> None:
    found = set(messages())
    assert len(found) > 20
    assert set(column(OPERATE, "Logs")) == found


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    handlers = logging.getLogger().handlers[:]
    yield capsys
    logging.getLogger().handlers[:] = handlers


FACTS = {"driver": "gpu.example.com", "problem": 'first\nsecond "quoted" a=b', "count": 3, "owner": ""}


def test_a_line_of_json_holds_time_level_message_and_facts(out: pytest.CaptureFixture[str]) -> None:
    configure_logging(as_json=True, level="info")
    logging.getLogger("x").warning("watch lost", extra={"facts": FACTS})
    [line] = out.readouterr().out.splitlines()
    read = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", read.pop("ts"))
    assert read == {"level": "warning", "msg": "watch lost", **FACTS}


def test_a_line_of_text_stays_one_line_whatever_its_facts_hold(out: pytest.CaptureFixture[str]) -> None:
    configure_logging(as_json=False, level="info")
    logging.getLogger("x").warning("watch lost", extra={"facts": FACTS})
    [line] = out.readouterr().out.splitlines()
    _, _, facts = line.partition(" warning watch lost ")
    assert facts == r'driver=gpu.example.com problem="first\nsecond \"quoted\" a=b" count=3 owner='


def owned(uid: str) -> dict[str, object]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid, "controller": True}
    return pod() | {"metadata": {"name": "p", "namespace": "team", "ownerReferences": [owner]}}


def test_a_refusal_is_one_line_that_says_whose_pod_it_was_and_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    door = Door(tmp_path)
    for uid in ("first", "first", "second", "first"):
        door.post(review(owned(uid)))
    message = "[NoGPUCapacity] no free device for example.com/full (1 asked): the only device of class full is take"
    facts = {"uid": UID, "namespace": "team", "owner": "Job/train", "name": "p"}
    facts |= {"reason": "NoGPUCapacity", "message": message}
    assert [(each.getMessage(), vars(each)["facts"]) for each in caplog.records] == [("refused", facts)] * 2


def test_what_admits_is_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    door = Door(tmp_path)
    door.post(review(pod("example.com/roomy")))
    door.post(review(pod()), path="/validate/audit")
    assert caplog.records == []


class _Away:
    """An API server that is down, and then down in another way."""

    def __init__(self) -> None:
        self.problems = iter(("refused", "refused", "timed out", "timed out"))
        self.enough = asyncio.Event()

    async def server_minor(self) -> int:
        for problem in self.problems:
            raise Unreachable(problem)
        self.enough.set()
        return await asyncio.Future()


def test_an_api_server_that_stays_away_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("app.live.VERSION_SECONDS", (0.0, 0.0))

    async def follow() -> None:
        client = _Away()
        task = asyncio.create_task(Live(client, Policy(), lambda: 0.0, 60.0).follow())  # type: ignore[arg-type]
        await client.enough.wait()
        task.cancel()

    asyncio.run(follow())
    assert [vars(each)["facts"]["problem"] for each in caplog.records] == ["refused", "timed out"]
