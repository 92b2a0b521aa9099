"""Forms of settings: what may be written as a value, what it then means, and how an error says what was expected."""

import dataclasses
import math
import re
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from app.times import epoch_seconds
from app.wording import Wording, by_namespace, wording

MODES = ("enforce", "warn", "audit")


@dataclasses.dataclass(frozen=True, slots=True)
class Address:
    """Where a listener listens. Port 0: any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclasses.dataclass(frozen=True, slots=True)
class Namespaced:
    """The name of an object in a namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """What may be written as a setting's value."""

    placeholder: str
    """Stands for the value in help texts."""
    expects: str
    """How an error message goes on after "expected"."""
    parse: Callable[[str], object]
    """Text to value; raises ValueError."""


# --- Parsers ----------------------------------------------------------------------------------------------------------


def _text(text: str) -> str:
    return text


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _word(text: str, words: tuple[str, ...]) -> str:
    if text not in words:
        raise ValueError(text)
    return text


def _words(text: str, words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_word(name, words) for name in _names(text))


def _truth(text: str) -> bool:
    return _word(text.lower(), ("true", "false")) == "true"


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(text)
    return seconds


def _time(text: str) -> float | None:
    return epoch_seconds(text) if text else None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _set(text: str) -> frozenset[str]:
    return frozenset(_names(text))


def _drivers_or_classes(text: str) -> frozenset[str]:
    names = _set(text)
    if any("/" in name for name in names):
        raise ValueError(text)
    return names


def _some(text: str) -> frozenset[str]:
    names = _set(text)
    if not names:
        raise ValueError(text)
    return names


def _objects(text: str) -> tuple[str, ...]:
    names = _names(text)
    for name in names:
        _object_name(name)
    return names


def _namespaced(text: str) -> Namespaced | None:
    if not text:
        return None
    namespace, _, name = text.partition("/")
    return Namespaced(_object_name(namespace), _object_name(name))


def _object_name(text: str) -> str:
    label = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"  # RFC 1123, as the API server wants it; so it can stand in a path as it is
    longest = 253
    if len(text) > longest or not re.fullmatch(rf"{label}(\.{label})*", text):
        raise ValueError(text)
    return text


def _owner_policy(text: str) -> dict[str, str]:
    given = {}
    for entry in _names(text):
        owner, _, mode = entry.partition("=")
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]*(\.[a-z0-9.-]+)?|\*", owner):
            raise ValueError(entry)
        given[owner] = _word(mode, (*MODES, "off"))
    return given


def _one_line(text: str) -> str:
    if not (text.isascii() and (text.isprintable() or not text)):
        raise ValueError(text)
    return text


def _advice(text: str) -> Wording | None:
    return wording(text) if text else None


def _url(text: str) -> str:
    if text:
        url = urllib.parse.urlsplit(_one_line(text))
        if url.scheme not in {"http", "https"} or not url.hostname or " " in text:
            raise ValueError(text)
    return text


def _address(text: str) -> Address:
    match = re.fullmatch(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]\s]*)):(?P<port>[0-9]{1,5})", text)
    highest_port = 65535
    if not match or int(match["port"]) > highest_port:
        raise ValueError(text)
    return Address(match["v6"] or match["name"] or "0.0.0.0", int(match["port"]))  # noqa: S104 - ":8443" means all, as in Go


# --- Forms ------------------------------------------------------------------------------------------------------------


def one_of(*words: str) -> Form:
    """One of these words."""
    return Form("|".join(words), f"one of {', '.join(words)}", lambda text: _word(text, words))


def some_of(*words: str) -> Form:
    """Any of these words."""
    return Form("|".join(words) + ",…", f"{', '.join(words)}, separated by commas", lambda text: _words(text, words))


TRUTH = Form("true|false", "true or false", _truth)
PATH = Form("PATH", "a path", _path)
TEXT = Form("TEXT", "a text", _text)
ADVICE = Form("TEXT", "one line of printable ASCII", _advice)
ADVICE_BY_NAMESPACE = Form("NAMESPACE=TEXT", "lines of NAMESPACE=TEXT", by_namespace)
SECONDS = Form("SECONDS", "a number of seconds above 0", _seconds)
TIME = Form("TIME", "a time like 2026-01-01T00:00:00Z", _time)
URL = Form("URL", "an http or https address", _url)
ADDRESS = Form("HOST:PORT", "HOST:PORT, :PORT or [IPV6]:PORT", _address)
DRIVERS_OR_CLASSES = Form(
    "NAME,…",
    "names of drivers or device classes separated by commas, not of resources like example.com/gpu",
    _drivers_or_classes,
)
ONE_NAME_OR_MORE = Form("NAME,…", "one name or more, separated by commas", _some)
PATTERNS = Form("NAME,…", "user names separated by commas, * for any text", _names)
SECRET = Form("NAMESPACE/NAME", "NAMESPACE/NAME", _namespaced)
OBJECTS = Form("NAME,…", "names of objects separated by commas", _objects)
OWNER_MODES = Form(
    "OWNER=MODE,…",
    "OWNER=MODE separated by commas, OWNER a kind like Job or Job.batch, Pod or *, MODE enforce, warn, audit or off",
    _owner_policy,
)
