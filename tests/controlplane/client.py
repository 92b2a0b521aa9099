"""A small synchronous Kubernetes client for tests: JSON in, JSON out, every refusal an exception.

It shares no code with the client under test.
"""

import json
import ssl
from collections.abc import Mapping
from typing import Any

import httpx

Json = dict[str, Any]

_TIMEOUT_SECONDS = 30.0


class Refused(Exception):
    """The API server said no: its HTTP status code and its own sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Client:
    """One API server, as one user. Paths are absolute: `/api/v1/nodes`."""

    def __init__(self, server: str, context: ssl.SSLContext, headers: Mapping[str, str] | None = None) -> None:
        self.http = httpx.Client(
            base_url=server, verify=context, headers=headers, timeout=_TIMEOUT_SECONDS, trust_env=False
        )
        """The layer below, for what needs the whole response, such as its `Warning` headers."""

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def get(self, path: str, **query: str | int) -> Json:
        """Read an object or a list."""
        return _content(self.http.get(path, params=query))

    def post(self, path: str, body: Json) -> Json:
        """Create an object."""
        return _content(self.http.post(path, json=body))

    def patch(self, path: str, body: Json) -> Json:
        """Change an object with a JSON merge patch (RFC 7396). A status is patched at `PATH/status`."""
        headers = {"Content-Type": "application/merge-patch+json"}
        return _content(self.http.patch(path, content=json.dumps(body), headers=headers))

    def delete(self, path: str, **query: str | int) -> Json:
        """Delete an object or a collection. A bound pod goes only with `gracePeriodSeconds=0`: there is no kubelet."""
        return _content(self.http.delete(path, params=query))


def _content(response: httpx.Response) -> Json:
    if response.is_error:
        try:
            message = response.json()["message"]
        except ValueError:  # what has no handler answers in plain text
            message = response.text
        raise Refused(response.status_code, message)
    content: Json = response.json()
    return content
