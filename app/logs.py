"""The process log: one line an event, on stdout, as JSON or as text.

State changes and refusals are logged; bodies, objects and tokens never are. Facts about an event are passed as
`extra={"facts": {…}}`, so that both forms show them and nothing has to be parsed out of a message.
"""

import json
import logging
import sys
from datetime import UTC, datetime


def configure_logging(*, as_json: bool, level: str) -> None:
    """Send everything that is logged in this process to stdout."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Json() if as_json else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # What clients send wrong is counted by us; a log that anybody can fill is none. asyncio reports broken handshakes.
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).setLevel(logging.ERROR)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"ts": _time(record), "level": record.levelname.lower(), "msg": record.getMessage(), **_facts(record)}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = "".join(f" {name}={_word(value)}" for name, value in _facts(record).items())
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{_time(record)} {record.levelname.lower():7} {record.getMessage()}{facts}{trace}"


def _facts(record: logging.LogRecord) -> dict[str, object]:
    facts: dict[str, object] = getattr(record, "facts", {})
    return facts


def _word(value: object) -> str:
    """As it is, or in quotes where it would not look like one word, or not stay on its line."""
    text = str(value)
    plain = text.isascii() and text.isprintable() and not {" ", '"', "="} & set(text)
    return text if plain else json.dumps(text)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
