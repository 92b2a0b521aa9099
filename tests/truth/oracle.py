"""An oracle as a process that is asked line by line."""

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from queue import Queue
from threading import Thread
from types import TracebackType
from typing import Self, TypeVar

from tests.controlplane.client import Json
from tests.truth.build import oracles

T = TypeVar("T")


class Oracle:
    """One of the Go programs of this folder, running until it is closed. Raises `CannotBuild`."""

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen([oracles() / program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it; it ends by itself when nothing more can be asked."""
        self._process.communicate()

    def ask(self, question: Json) -> str:
        """Its answer to one question, a line."""
        self._write(question)
        return self._read()

    def ask_all(self, questions: Iterable[T], form: Callable[[T], Json]) -> Iterator[tuple[T, str]]:
        """Each of these, put into a form, with its answer; the oracle works on one while the last is looked at."""
        asked: Queue[T | None] = Queue()

        def feed() -> None:
            for each in questions:
                self._write(form(each))
                asked.put(each)
            asked.put(None)

        Thread(target=feed, daemon=True).start()
        while (each := asked.get()) is not None:
            yield each, self._read()

    def _write(self, question: Json) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout
        answer = self._process.stdout.readline().decode().strip()
        assert answer, "the oracle has ended"
        return answer
