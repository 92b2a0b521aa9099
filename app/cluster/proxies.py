"""Addresses: that of an API server, and the proxy on the way to it, as kubectl chooses it."""

import contextlib
import ipaddress
import urllib.parse
import urllib.request
from collections.abc import Iterator

from app.cluster.credentials import BadConfig


def address(text: str) -> urllib.parse.SplitResult | None:
    """An http or https address, taken apart; None: it is none."""
    with contextlib.suppress(ValueError):  # no port, no IPv6 address, no host of the DNS, no path of ASCII
        found = urllib.parse.urlsplit(text)
        if found.scheme in {"http", "https"} and found.hostname and found.port != 0:
            found.hostname.encode("idna"), found.path.encode("ascii")
            return found
    return None


def without_login(text: str) -> str:
    """An address as messages may show it: without name and password."""
    return text.rpartition("@")[2]


def proxy(server: urllib.parse.SplitResult, configured: str) -> urllib.parse.SplitResult | None:
    """That of the kubeconfig (`configured`), else that of the environment; None: none. Raises BadConfig."""
    if server.scheme == "http":  # `kubectl proxy`
        return None
    text = configured or ("" if _is_near(server.hostname or "") else urllib.request.getproxies().get("https", ""))
    if not text:
        return None
    found = address(text if "://" in text else f"http://{text}")
    if found is None or found.scheme != "http":
        raise BadConfig(f"proxy {without_login(text)!a}: expected http://HOST:PORT")
    return found


def _is_near(host: str) -> bool:
    """Whether the environment's proxy is not for this host; `no_proxy` may hold networks too."""
    if host == "localhost" or urllib.request.proxy_bypass(host):
        return True
    without = urllib.request.getproxies().get("no", "")
    with contextlib.suppress(ValueError):  # a name
        address = ipaddress.ip_address(host)
        return address.is_loopback or any(address in network for network in _networks(without))
    return False


def _networks(text: str) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for each in text.split(","):
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(each.strip(), strict=False)
