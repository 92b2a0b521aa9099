"""Times as text."""

from datetime import UTC, datetime


def epoch_seconds(text: str) -> float:
    """Seconds since 1970 of a Kubernetes timestamp (RFC 3339). Raises ValueError on anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        message = f"timestamp without a time zone: {text[:40]!r}"
        raise ValueError(message)
    seconds = moment.timestamp()
    datetime.fromtimestamp(seconds, UTC)  # ValueError for what is no time in UTC, as `0001-01-01T00:00:00+23:59`
    return seconds
