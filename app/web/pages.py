"""HTML of the web listener: server-rendered, no script, no asset from elsewhere."""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.dra.reasons import Reason
from app.dra.words import PHRASES
from app.presubmit.report import timestamp
from app.web.capacity import counted
from app.web.table import Table

PIECES_AT_ONCE = 1000
"""Of text between two variables: about 1 ms of work, 10 kB."""

REFRESH_SECONDS = 30
"""The page reloads itself: half of the usual minute between two counts."""


class Pages:
    """The templates, compiled once."""

    def __init__(self) -> None:
        folder = Path(__file__).with_name("templates")
        style = (folder / "style.css").read_text("utf-8")
        self._templates = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(style=style, counted=counted, words=lambda reason: PHRASES[Reason(reason)])
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self.headers = {
            "content-security-policy": (
                f"default-src 'none'; style-src 'sha256-{digest}'; "
                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
            "referrer-policy": "no-referrer",
        }
        """Nothing may be loaded or run but the one style sheet in the page, known by its hash."""

    def capacity(
        self, table: Table, *, notice: str, switches: Mapping[str, str], version: str, hide_names: bool
    ) -> Iterator[str]:
        """The capacity page, some lines at a time."""
        page = self._templates.get_template("capacity.html").stream(
            time=timestamp(table.made_at),
            snapshot_time=table.report.snapshot_time,
            classes=table.report.classes,
            notice=notice,
            switches=switches,
            version=version,
            hide_names=hide_names,
            refresh_seconds=REFRESH_SECONDS,
        )
        page.enable_buffering(PIECES_AT_ONCE)
        return page

    def operations(self, version: str, operations: Iterable[Mapping[str, str]]) -> str:
        """The list of what can be requested."""
        return self._templates.get_template("docs.html").render(version=version, operations=list(operations))
