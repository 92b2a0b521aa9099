"""Folders of manifests."""

import os
from collections.abc import Iterator
from pathlib import Path

from app.presubmit.manifest import ManifestError

SUFFIXES = (".yaml", ".yml", ".json")


def files_of(path: Path) -> list[Path]:
    """The path itself, or the manifests below it, in the order of their names. Raises ManifestError if none is there.

    Hidden entries are left out: a mounted ConfigMap keeps its files twice, once below `..data`.
    """
    if not path.is_dir():
        return [path]
    found = sorted(_manifests_below(path))
    if not found:
        raise ManifestError(f"{path}: no {', '.join(f'*{suffix}' for suffix in SUFFIXES)} below this directory")
    return found


def _manifests_below(path: Path) -> Iterator[Path]:
    for directory, subdirectories, names in os.walk(path):
        subdirectories[:] = [name for name in subdirectories if not name.startswith(".")]
        yield from (Path(directory, name) for name in names if name.endswith(SUFFIXES) and not name.startswith("."))
