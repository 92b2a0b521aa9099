"""Manifests as people write them: cut into objects that know where they were written, and the pods among them.

Everything becomes JSON here, so that files and the API server's answers are decoded by the same structs afterwards.
What is wrong with a text is said in one line that names file and line.
"""

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from app.dra.demand import Lookup, Lookups
from app.dra.objects import Pod, ResourceClaim, ResourceClaimTemplate, View
from app.dra.workloads import as_admitted, pod_of_workload
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
        raise ManifestError(f"{document.source}: {document.kind}: {error}") from error


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


# --- What is asked of them --------------------------------------------------------------------------------------------

CLAIM_VERSIONS = frozenset({"resource.k8s.io/v1", "resource.k8s.io/v1beta2"})
"""Of one shape. In v1beta1 a device request is flat; such a claim counts as missing, which is never refused."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One pod of a submitted text, or the pod of a workload's template."""

    name: str
    namespace: str
    kind: str
    pod: Pod
    note: str = ""
    """What of a workload the answer is for: `each of 3 replicas alone`; empty for a pod."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """Claims and templates of a submitted text, by namespace and name."""

    claims: Mapping[tuple[str, str], ResourceClaim]
    templates: Mapping[tuple[str, str], ResourceClaimTemplate]

    def over(self, namespace: str, found: Lookups) -> Lookups:
        """What there will be once the text is applied: what exists stays (a spec is immutable), the rest is added.

        A claim that could not be read may exist and be allocated, so that stays unknown; a template has no state.
        """
        return Lookups(
            claims={
                name: self.claims.get((namespace, name), known) if known is Lookup.MISSING else known
                for name, known in found.claims.items()
            },
            templates={
                name: self.templates.get((namespace, name), known) if isinstance(known, Lookup) else known
                for name, known in found.templates.items()
            },
        )


def asked(documents: Iterable[Document], namespace: str) -> tuple[Asked, ...]:
    """The pods and workloads among the documents; `namespace` for those that name none. Raises ManifestError."""
    return tuple(found for document in documents if (found := _asked(document, namespace)) is not None)


def overlay(documents: Iterable[Document], namespace: str) -> Overlay:
    """The claims and templates among the documents. Raises ManifestError."""
    claims, templates = {}, {}
    for document in documents:
        key = (document.namespace or namespace, document.name)
        if document.api_version in CLAIM_VERSIONS and document.kind == "ResourceClaim":
            claims[key] = decode(document, ResourceClaim)
        elif document.api_version in CLAIM_VERSIONS and document.kind == "ResourceClaimTemplate":
            templates[key] = decode(document, ResourceClaimTemplate)
    return Overlay(claims, templates)


def _asked(document: Document, namespace: str) -> Asked | None:
    namespace = document.namespace or namespace
    if document.kind == "Pod" and document.api_version == "v1":
        return Asked(document.name, namespace, document.kind, as_admitted(decode(document, Pod)))
    try:
        workload = pod_of_workload(document.kind, document.json)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ManifestError(f"{document.source}: {document.kind}: {error}") from error
    if workload is None:
        return None
    return Asked(document.name, namespace, document.kind, workload.pod, _note(workload.replicas))


def _note(replicas: int) -> str:
    if replicas == 1:
        return ""
    return f"each of {replicas} replicas alone" if replicas else "a replica, although it is scaled to zero"
