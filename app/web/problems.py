"""What is wrong with a request, as JSON: problem details by RFC 9457.

A client decodes it with the same struct, so nothing that only a server needs comes in here.
"""

from typing import Final

import msgspec

MEDIA_TYPE: Final = "application/problem+json"

TITLES: Final = {
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
"""By status code, as RFC 9110 calls them; Python's own names for some differ from version to version."""


class Problem(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    type: str
    """`about:blank`: the status code says what kind of problem it is."""
    title: str
    status: int
    detail: str
    """What was found and what was expected, for the person who asked."""


def problem(status: int, detail: str) -> Problem:
    """A problem of a known kind."""
    return Problem("about:blank", TITLES[status], status, detail)
