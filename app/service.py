"""The way to a Vacancy server in the cluster: the API server's proxy to its Service, with the caller's kubeconfig.

So it needs neither an ingress nor a port to forward, and who may ask is a matter of RBAC.
"""

import base64
import contextlib
import http.client
import urllib.parse
from pathlib import Path
from typing import Literal

import msgspec

from app.cluster.credentials import BadConfig, one_line
from app.cluster.login import Login, login
from app.cluster.names import is_name
from app.cluster.proxies import without_login
from app.cluster.user import LoginFailed
from app.dra.words import cut, printable
from app.server import LONGEST, TIMEOUT_SECONDS
from app.settings import BadSettings
from app.unanswered import NoAnswer, Unusable

PORT = "http"
"""Of the chart's Service: that of page and API. The right of tenants is for this name alone."""

_OTHERWISE = "or ask elsewhere: --kubeconfig, --server, --manifests"


class _Status(msgspec.Struct, frozen=True):
    """What the API server says when nobody behind it has answered."""

    kind: Literal["Status"]
    message: str = ""


class Service:
    """See `server.Way`."""

    def __init__(self, service: str, kubeconfig: Path | None, context: str) -> None:
        """`service`: `NAMESPACE/NAME`. Raises BadSettings, Unusable, NoAnswer."""
        place, _, name = service.partition("/")
        if not (is_name(place) and is_name(name)):
            raise BadSettings((f"--service={service!a}: expected NAMESPACE/NAME",))
        try:
            self._login = login(kubeconfig, context or None)
        except BadConfig as error:
            raise Unusable(f"no cluster to ask: {error} ({_OTHERWISE})") from error
        except LoginFailed as error:
            raise NoAnswer(f"not logged in: {error}") from error
        self.name, self.namespace = f"Service {service}", self._login.namespace
        self._place, self._target = place, f"http:{name}:{PORT}"

    def send(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        """See `Way`."""
        server = self._login.server
        proxied = f"/api/v1/namespaces/{self._place}/services/{self._target}/proxy{path}"
        try:
            with contextlib.closing(_connection(self._login)) as connection:
                connection.putrequest("GET" if body is None else "POST", server.path.rstrip("/") + proxied)
                for name, value in (*self._login.headers, *_HEADERS, ("Content-Length", str(len(body or b"")))):
                    connection.putheader(name, value.encode())  # as kubectl: names are UTF-8
                connection.endheaders(body)
                response = connection.getresponse()
                content = response.read(LONGEST + 1)
        except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: what cannot be sent
            raise NoAnswer(f"{without_login(server.netloc)}: {one_line(error)}") from error
        if response.status >= http.HTTPStatus.BAD_REQUEST and (status := _status(content)):
            raise NoAnswer(f"{self.name}: {self._meaning(response.status, status)}")
        return response.status, content

    def _meaning(self, code: int, status: _Status) -> str:
        """What to do about it, and what the API server says."""
        match code:
            case 401:
                advice = "your credentials are not taken; log in again"
            case 403:
                advice = (
                    f"you need get and create on services/proxy {self._target} in namespace {self._place}, "
                    "which the platform team gives to groups by the value tenantGroups of its chart"
                )
            case 404 | 503:  # for a Service that is not there too: 1.37 looks at its endpoints alone
                advice = (
                    f"expected a Service with ready pods behind its port {PORT} in namespace {self._place}; if Vacancy "
                    "is elsewhere, name it by --service NAMESPACE/NAME, or judge without it by --direct"
                )
            case _:
                advice = "try again"
        return f"{advice}: {code}, {cut(printable(status.message), 200)}"


_HEADERS = (("Accept", "application/json"), ("Content-Type", "application/json"), ("User-Agent", "vacancy"))


def _connection(login: Login) -> http.client.HTTPConnection:
    server, proxy = login.server, login.proxy
    host = server.hostname or ""
    if server.scheme == "http":
        return http.client.HTTPConnection(host, server.port, timeout=TIMEOUT_SECONDS)
    if proxy is None:
        return http.client.HTTPSConnection(host, server.port, timeout=TIMEOUT_SECONDS, context=login.tls)
    connection = http.client.HTTPSConnection(
        proxy.hostname or "", proxy.port or 80, timeout=TIMEOUT_SECONDS, context=login.tls
    )
    basic = urllib.parse.unquote(proxy.netloc.rpartition("@")[0])
    headers = {"Proxy-Authorization": f"Basic {base64.b64encode(basic.encode()).decode()}"} if basic else {}
    connection.set_tunnel(host, server.port or 443, headers)
    return connection


def _status(content: bytes) -> _Status | None:
    try:
        return msgspec.json.decode(content, type=_Status)
    except msgspec.DecodeError:
        return None
