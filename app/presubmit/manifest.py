"""Manifests as people write them: cut into objects that know where they were written.

Everything becomes JSON here, so that files and the API server's answers are decoded by the same structs afterwards.
What is wrong with a text is said in one line that names file and line.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from app.dra.objects import View
from app.dra.words import DETAIL_LIMIT, shortened
from app.presubmit.yaml_reader import YamlError, YamlMapping, read_yaml

MAX_BYTES = 4 * 1024 * 1024
"""Of one submitted text. The API server takes 3 MiB for an object; people submit a few objects."""

T = TypeVar("T")


class ManifestError(Exception):
    """Manifests that cannot be used; every problem is a line that starts with `file:line:`."""


@dataclass(frozen=True, slots=True)
class Document:
    """One API object of a manifest."""

    kind: str
    api_version: str
    namespace: str
    """As written; empty where the object has none."""
    name: str
    """`metadata.name`, else `metadata.generateName`."""
    source: str
    """Where it starts: `file:line`."""
    json: bytes


def parse(data: bytes, file: str, max_bytes: int = MAX_BYTES) -> tuple[Document, ...]:
    """The objects of a YAML or JSON text: documents in their order, lists (`List`, `PodList`, …) item by item.

    `file` is what messages call the text. Raises ManifestError.
    """
    if len(data) > max_bytes:
        raise ManifestError(f"{file}:1: {len(data)} bytes are more than the limit of {max_bytes}")
    data = data.removeprefix(BOM_UTF8)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ManifestError(f"{file}:{line}: not UTF-8") from error
    if text.lstrip().startswith("{"):  # JSON is YAML too, but takes thirty times as long as such
        try:
            return tuple(_json_objects(data, file, 1))
        except (msgspec.DecodeError, RecursionError):
            pass  # a mistake, several documents, YAML in braces: the YAML reader knows, and knows the line
    try:
        return tuple(found for line, value in read_yaml(text) for found in _yaml_objects(value, file, line))
    except YamlError as error:
        raise ManifestError(f"{file}:{error.line}: {error.problem}") from error


def decode(document: Document, view: type[T]) -> T:
    """The object as a struct. Raises ManifestError if a field is missing or of another type than in the API."""
    try:
        return msgspec.json.decode(document.json, type=view)
    except (msgspec.DecodeError, RecursionError) as error:
        raise unreadable(document, error) from error


def unreadable(document: Document, error: Exception) -> ManifestError:
    """That the object is not as its kind has it. Anybody may have written the kind, also to steer a terminal."""
    return ManifestError(f"{document.source}: {shortened(document.kind, DETAIL_LIMIT)}: {error}")


class _Metadata(View, frozen=True):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None


class _Header(View, frozen=True):
    """What tells an object's kind and name. `items` stays raw: other kinds may use the word as they like."""

    kind: str | None = None
    api_version: str | None = None
    metadata: _Metadata | None = None
    items: msgspec.Raw = msgspec.Raw()

    def typed(self, kind: str, version: str) -> tuple[str, str, bool]:
        """Kind, version, and whether it is a list; the arguments are what a list around it says of its items."""
        kind, version = self.kind or kind, self.api_version or version
        return kind, version, kind.endswith("List") and bytes(self.items).startswith((b"[", b"null"))


_header = msgspec.json.Decoder(_Header)
_items = msgspec.json.Decoder(list[msgspec.Raw] | None)


def _json_objects(json: bytes, file: str, line: int, kind: str = "", version: str = "") -> Iterator[Document]:
    """The object in a JSON text that starts on `line`, or the objects in it if it is a list."""
    header = _header.decode(json)
    kind, version, is_list = header.typed(kind, version)
    if not is_list:
        yield _document(header, kind, version, f"{file}:{line}", json)
        return
    end = 0
    for item in map(bytes, _items.decode(header.items) or ()):
        start = json.index(item, end)
        line += json.count(b"\n", end, start)
        yield from _json_objects(item, file, line, *_item_type(kind, version))
        end = start + len(item)
        line += json.count(b"\n", start, end)


def _yaml_objects(value: object, file: str, line: int, kind: str = "", version: str = "") -> Iterator[Document]:
    """The object in a YAML value, or the objects in it if it is a list. `line` for values that know none."""
    if not isinstance(value, YamlMapping):
        raise ManifestError(f"{file}:{line}: expected an object, found a {type(value).__name__}")
    source = f"{file}:{value.line}"
    try:
        json = msgspec.json.encode(value)
        header = _header.decode(json)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ManifestError(f"{source}: {error}") from error
    except ValueError as error:  # more digits than Python writes, half of a surrogate pair
        raise ManifestError(f"{source}: a number or a text that cannot be written as JSON") from error
    kind, version, is_list = header.typed(kind, version)
    if not is_list:
        yield _document(header, kind, version, source, json)
        return
    items = value["items"]
    for item in items if isinstance(items, list) else ():
        yield from _yaml_objects(item, file, value.line, *_item_type(kind, version))


def _item_type(kind: str, version: str) -> tuple[str, str]:
    """The API server leaves both out of the items of a `PodList`; a `List` says nothing of its items."""
    return ("", "") if kind == "List" else (kind.removesuffix("List"), version)


def _document(header: _Header, kind: str, version: str, source: str, json: bytes) -> Document:
    if not kind or not version:
        raise ManifestError(f"{source}: object without {'apiVersion' if kind else 'kind'}")
    metadata = header.metadata or _Metadata()
    name = metadata.name or metadata.generate_name or ""
    return Document(kind, version, metadata.namespace or "", name, source, json)
