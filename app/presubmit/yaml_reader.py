"""YAML as kubectl reads it: `on` is a boolean, a time is text, a key is text, a key given twice is a mistake.

PyYAML parses; the values are built here from its events, with the line of every mapping, without recursion, and with
nesting and aliases counted before they cost anything: the text may come from anybody.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

MAX_DEPTH = 64
"""Collections in one another. A pod needs about 12, the schema of a custom resource about 40."""
MAX_ALIASED = 1024 * 1024
"""Characters that aliases may add to one text: ten lines of aliases to aliases would be a gigabyte of JSON."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Only its parser is used: libyaml's, ten times as fast, where PyYAML was built with it."""

_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_OLD_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "map", "seq"))
_TEXT_TAGS = frozenset(("!", "tag:yaml.org,2002:str"))
_MERGE = "<<"


class YamlError(Exception):
    """A text that cannot be read, or not within the limits: what is wrong, in one line, and the line it is on."""

    def __init__(self, line: int, problem: str) -> None:
        """`line` counts from 1."""
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


class YamlMapping(dict[str, object]):
    """A mapping that knows the line it starts on."""

    __slots__ = ("line",)
    line: int


def read_yaml(text: str) -> Iterator[tuple[int, object]]:
    """Line and value of each document that holds something. Raises YamlError."""
    reader = _Reader()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            reader.take(event)
            if isinstance(event, yaml.DocumentEndEvent) and reader.document is not None:
                yield reader.document_line, reader.document
    except yaml.reader.ReaderError as error:
        raise YamlError(text.encode().count(b"\n", 0, error.position) + 1, error.reason) from error
    except yaml.MarkedYAMLError as error:
        line = 0 if error.problem_mark is None else min(error.problem_mark.line, text.count("\n"))  # or beyond the end
        raise YamlError(line + 1, str(error.problem or error.context)) from error


@dataclass(slots=True, eq=False)
class _Open:
    """A collection whose end has not come yet."""

    value: YamlMapping | list[object]
    line: int
    anchor: str | None
    size_before: int
    key: str | None = None
    """Of a mapping: the key whose value comes next."""
    at_merge: bool = False
    """Whether that key is a merge key."""
    merged: list[object] = field(default_factory=list)
    """Of a mapping: what its merge keys bring."""


class _Reader:
    """What is known between two events."""

    def __init__(self) -> None:
        self.document: object = None
        self.document_line = 1
        self._line = 1
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._size = 0  # characters, with aliases written out; a collection counts one
        self._aliased = 0

    def take(self, event: yaml.Event) -> None:
        """Go on with the next event."""
        self._line = event.start_mark.line + 1 if event.start_mark else self._line
        match event:
            case yaml.ScalarEvent() if self._at_key():
                self._key(event)
            case yaml.ScalarEvent():
                self._size += len(event.value) + 1
                self._put(self._scalar(event), self._line, event.anchor, len(event.value) + 1)
            case yaml.CollectionStartEvent():
                self._start(event)
            case yaml.CollectionEndEvent():
                self._end()
            case yaml.AliasEvent():
                self._alias(event.anchor)
            case yaml.DocumentStartEvent():
                self.document = None
                self._anchors.clear()

    def _at_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, YamlMapping) and self._open[-1].key is None

    def _key(self, event: yaml.ScalarEvent) -> None:
        top = self._open[-1]
        if event.value in top.value:
            raise YamlError(self._line, f"key {event.value[:40]!a} is given twice")
        self._size += len(event.value)
        top.key = event.value
        top.at_merge = event.value == _MERGE and event.implicit[0]

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        if event.tag in _TEXT_TAGS or (event.tag is None and not event.implicit[0]):
            return event.value
        self._check_tag(event.tag)
        return _plain(event.value)

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        if self._at_key():
            raise YamlError(self._line, "a key must be text")
        if len(self._open) == MAX_DEPTH:
            raise YamlError(self._line, f"nested more than {MAX_DEPTH} deep")
        self._check_tag(event.tag)
        value: YamlMapping | list[object] = []
        if isinstance(event, yaml.MappingStartEvent):
            value = YamlMapping()
            value.line = self._line
        self._open.append(_Open(value, self._line, event.anchor, self._size))
        self._size += 1

    def _end(self) -> None:
        done = self._open.pop()
        for source in done.merged:
            if not isinstance(source, YamlMapping) or not isinstance(done.value, YamlMapping):
                raise YamlError(done.line, "only a mapping can be merged")
            for key, value in source.items():
                done.value.setdefault(key, value)  # what is written out, or was merged before, wins
        self._put(done.value, done.line, done.anchor, self._size - done.size_before)

    def _alias(self, anchor: str | None) -> None:
        if self._at_key():
            raise YamlError(self._line, "a key must be text")
        if anchor is None or anchor not in self._anchors:
            raise YamlError(self._line, "an alias must come after what it stands for")
        value, size = self._anchors[anchor]
        self._size += size
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise YamlError(self._line, f"aliases add more than {MAX_ALIASED} characters")
        self._put(value, self._line, None, size)

    def _put(self, value: object, line: int, anchor: str | None, size: int) -> None:
        """Give a finished value its place."""
        if anchor is not None:
            self._anchors[anchor] = value, size
        if not self._open:
            self.document, self.document_line = value, line
            return
        top = self._open[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.at_merge:
            top.merged.extend(value if isinstance(value, list) else (value,))
        elif top.key is not None:
            top.value[top.key] = value
        top.key = None

    def _check_tag(self, tag: str | None) -> None:
        if tag is not None and tag not in _TAGS:
            raise YamlError(self._line, f"tag {tag[:40]!a} is not understood")


def _plain(text: str) -> object:
    """The value of a scalar without quotes: text unless YAML 1.1 says otherwise. No times, no base-60 numbers."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or not text.isascii():
        return text
    for read in (_integer, float):
        try:
            number = read(text)
        except ValueError:
            continue
        return text if number in (math.inf, -math.inf) else number  # JSON has no infinity
    return text


def _integer(text: str) -> int:
    return int(text, 8 if _OLD_OCTAL.fullmatch(text) else 0)
