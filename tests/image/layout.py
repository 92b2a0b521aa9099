"""An image as it is pushed: an OCI layout, read without any container tool."""

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Layout:
    """A folder that holds one image, whose first layer is the base's."""

    home: Path

    def digest(self) -> str:
        """The manifest's, by which a registry knows the image."""
        return str(self._json(self.home / "index.json")["manifests"][0]["digest"])

    def config(self) -> dict[str, Any]:
        """How it is run, and its labels."""
        return dict(self._json(self._blob(self._manifest()["config"]))["config"])

    def own_bytes(self) -> int:
        """What pulling it costs where the base is there already: its compressed layers."""
        return sum(layer["size"] for layer in self._own_layers())

    def own_files(self) -> dict[str, tarfile.TarInfo]:
        """What it adds to the base, by path without the leading slash."""
        found: dict[str, tarfile.TarInfo] = {}
        for layer in self._own_layers():
            with tarfile.open(self._blob(layer)) as archive:
                found |= {member.name.rstrip("/"): member for member in archive}
        return found

    def text(self, path: str) -> str:
        """The content of a file that it adds to the base."""
        for layer in reversed(self._own_layers()):
            with tarfile.open(self._blob(layer)) as archive:
                for member in archive:
                    if member.name == path and (file := archive.extractfile(member)):
                        return file.read().decode()
        raise FileNotFoundError(path)

    def _own_layers(self) -> list[dict[str, Any]]:
        return list(self._manifest()["layers"][1:])

    def _manifest(self) -> dict[str, Any]:
        return self._json(self.home / "blobs" / self.digest().replace(":", "/"))

    def _blob(self, descriptor: dict[str, Any]) -> Path:
        return self.home / "blobs" / str(descriptor["digest"]).replace(":", "/")

    @staticmethod
    def _json(path: Path) -> dict[str, Any]:
        return dict(json.loads(path.read_text("utf-8")))
