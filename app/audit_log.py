"""Lines of an API server's audit log: a file, a compressed one, or standard input, read once and piece by piece."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from app.unanswered import Unusable

MAX_LINE_BYTES = 8 * 1024 * 1024
"""An event holds at most a request and its answer, 3 MiB each; of a log that is none nothing more is kept at once."""

_GZIP = b"\x1f\x8b"


def obstacle(path: Path) -> str:
    """What is wrong with a file before it is opened; empty: nothing, or it is seen later. A pipe opens once only."""
    if str(path) == "-":
        return ""
    if not path.exists():
        return f"{path}: no such file"
    return f"{path}: a folder, expected a file" if path.is_dir() else ""


def lines(path: Path) -> Iterator[bytes | None]:
    """The lines of a log, `-` for standard input; None stands for one that is too long. Raises Unusable."""
    is_stdin = str(path) == "-"
    name = "stdin" if is_stdin else path
    try:
        with open(0, "rb", closefd=False) if is_stdin else path.open("rb") as stream:
            yield from _lines(_unpacked(stream))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Unusable(f"{name}: damaged gzip: {error}; what can be read: gzip -dc FILE | vacancy ledger -") from error
    except OSError as error:
        raise Unusable(f"{name}: {error.strerror}") from error


def _unpacked(stream: io.BufferedReader) -> io.BufferedReader | gzip.GzipFile:
    """What the bytes at the start say, not the name: rotated logs are called anything."""
    return gzip.GzipFile(fileobj=stream) if stream.peek(2).startswith(_GZIP) else stream


def _lines(stream: io.BufferedReader | gzip.GzipFile) -> Iterator[bytes | None]:
    while line := stream.readline(MAX_LINE_BYTES):
        if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        while rest := stream.readline(MAX_LINE_BYTES):
            if rest.endswith(b"\n"):
                break
        yield None
