"""HTML of the web listener: server-rendered, one script of our own that nothing depends on, no asset from elsewhere."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.dra.reasons import Reason
from app.dra.words import PHRASES

PIECES_AT_ONCE = 300
"""Of text between two variables: under 1 ms of work (measured)."""

REFRESH_SECONDS = 15
"""The page is fetched again; half of what a reader takes for alive."""

SCRIPT = "page.js"


class Pages:
    """The templates, compiled when they are first needed."""

    def __init__(self) -> None:
        folder = Path(__file__).with_name("templates")
        style = _smaller((folder / "style.css").read_text("utf-8"))
        self.script = (folder / SCRIPT).read_bytes()
        """What keeps an open page current."""
        integrity = _hash(self.script)
        self._templates = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(
            counts=("total", "allocated", "available", "unavailable"),
            style=style,
            script=SCRIPT,
            integrity=integrity,
            refresh_seconds=REFRESH_SECONDS,
            words=lambda reason: PHRASES[Reason(reason)],
        )
        self.headers = {
            "content-security-policy": (
                f"default-src 'none'; style-src '{_hash(style.encode())}'; script-src '{integrity}'; "
                "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
            ),
            "referrer-policy": "no-referrer",
        }
        """Nothing may be loaded or run but the style sheet in the page and the one script, known by their hashes."""

    def compile(self) -> None:
        """Compile all templates: 25 ms and 1 MB (measured). May be called in a thread."""
        for name in self._templates.list_templates(["html"]):
            self._templates.get_template(name)

    def capacity(self, **context: object) -> Iterator[str]:
        """The capacity page, some lines at a time."""
        page = self._templates.get_template("capacity.html").stream(context)
        page.enable_buffering(PIECES_AT_ONCE)
        return page

    def operations(self, version: str, operations: Iterable[Mapping[str, str]]) -> str:
        """The list of what can be requested."""
        return self._templates.get_template("docs.html").render(version=version, operations=list(operations))


def _hash(content: bytes) -> str:
    """As a policy and an integrity attribute name it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}"


def _smaller(style: str) -> str:
    """A style sheet without the space that nobody needs: it is part of every page."""
    return re.sub(r"\s*([{};,>])\s*|(:)\s+", r"\1\2", style.strip()).replace(";}", "}")
