"""Addresses for pods and Services: all of them this machine's own, so that nothing sent to them ever leaves it.

The API server takes no loopback address for an endpoint. 198.18.0.0/15 is set aside for tests of network devices
(RFC 2544): no host of the real world is hidden.
"""

import atexit
import ipaddress
import subprocess
import threading

_TEST_NETWORKS = ipaddress.ip_network("198.18.0.0/15")
_PREFIX = 22  # a thousand addresses each: none is used twice


class NoNetwork(Exception):
    """There are no addresses. The message is that of `ip`."""


class Network:
    """A network that is ours until `close`, or until this interpreter exits. Needs root. Raises `NoNetwork`."""

    def __init__(self) -> None:
        self._network = _claimed()
        self._free = self._network.hosts()
        self._lock = threading.Lock()
        atexit.register(self.close)

    def address(self) -> str:
        """An address that nobody has had before."""
        with self._lock:
            return str(next(self._free))

    def close(self) -> None:
        """Give all addresses back; a second call does nothing."""
        _ip_route("del", self._network)
        atexit.unregister(self.close)


def _claimed() -> ipaddress.IPv4Network:
    """One route makes every address of a network local; that it can't be made twice tells other test runs apart."""
    problem = "all in use"
    for network in _TEST_NETWORKS.subnets(new_prefix=_PREFIX):
        problem = _ip_route("add", network)
        if not problem:
            assert isinstance(network, ipaddress.IPv4Network)
            return network
        if "File exists" not in problem:
            break
    raise NoNetwork(f"ip route add local in {_TEST_NETWORKS}: {problem}")


def _ip_route(verb: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    """What went wrong; empty: nothing."""
    command = ["ip", "route", verb, "local", str(network), "dev", "lo"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr.strip()
