"""Services for pods, as kube-proxy and the cluster's DNS make them: a name, and an address that leads to an endpoint.

The API server needs none of it: it sends to endpoints directly (`--enable-aggregator-routing`).
"""

import contextlib
import dataclasses
import random
import selectors
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.controlplane.client import Json
from tests.controlplane.network import Network

_BLOCK_BYTES = 65_536
_CONNECT_SECONDS = 5.0

_Endpoint = tuple[str, int]


@dataclasses.dataclass(slots=True)
class _Service:
    address: str
    endpoints: dict[int, list[_Endpoint]] = dataclasses.field(default_factory=dict)
    """The ready ones, by the Service's port."""
    doors: dict[int, "_Door"] = dataclasses.field(default_factory=dict)
    """What listens, by port."""


class ServiceProxy:
    """Follows Services as it is told of them. Its hosts file names them for every process that mounts it."""

    def __init__(self, network: Network, hosts: Path) -> None:
        self.hosts = hosts
        self._network = network
        self._services: dict[str, _Service] = {}
        self._write_hosts()

    def follow(self, services: Iterable[Json], slices: Iterable[Json]) -> None:
        """These Services are there now, and these EndpointSlices; no others."""
        found = {f"{each['metadata']['name']}.{each['metadata']['namespace']}": each for each in services}
        for name in self._services.keys() - found:
            self._close(self._services.pop(name))
        for name in found.keys() - self._services:
            self._services[name] = _Service(self._network.address())
        for name, service in self._services.items():
            ports = {port.get("name", ""): port["port"] for port in found[name]["spec"].get("ports", ())}
            service.endpoints = {port: [] for port in ports.values()}
            for port_name, endpoint in _ready(found[name], slices):
                if port_name in ports:
                    service.endpoints[ports[port_name]].append(endpoint)
            for port in service.endpoints.keys() - service.doors:
                service.doors[port] = _Door((service.address, port), _pick(service, port))
        self._write_hosts()

    def close(self) -> None:
        """Stop listening."""
        for service in self._services.values():
            self._close(service)

    def _write_hosts(self) -> None:
        """In place: whoever has mounted the file sees it change."""
        lines = ["127.0.0.1 localhost"]
        for name, service in sorted(self._services.items()):
            lines.append(f"{service.address} {name}.svc {name}.svc.cluster.local {name}")
        content = "".join(f"{line}\n" for line in lines)
        if not self.hosts.exists() or self.hosts.read_text() != content:
            self.hosts.write_text(content)

    @staticmethod
    def _close(service: _Service) -> None:
        for door in service.doors.values():
            door.close()


def _ready(service: Json, slices: Iterable[Json]) -> Iterable[tuple[str, _Endpoint]]:
    """Every ready endpoint of the Service, with the name of its port."""
    for each in slices:
        meta = each["metadata"]
        owner = meta.get("labels", {}).get("kubernetes.io/service-name")
        if (meta["namespace"], owner) != (service["metadata"]["namespace"], service["metadata"]["name"]):
            continue
        for endpoint in each.get("endpoints") or ():
            if endpoint.get("conditions", {}).get("ready"):
                for port in each.get("ports") or ():
                    yield port.get("name", ""), (endpoint["addresses"][0], port["port"])


def _pick(service: _Service, port: int) -> Callable[[], _Endpoint | None]:
    def pick() -> _Endpoint | None:
        ready = service.endpoints.get(port)
        return random.choice(ready) if ready else None  # noqa: S311 - no secret

    return pick


class _Door(socketserver.ThreadingTCPServer):
    """One port of one Service. Each connection goes to an endpoint of its own, or is closed if there is none."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: _Endpoint, pick: Callable[[], _Endpoint | None]) -> None:
        self.pick = pick
        super().__init__(address, _Connection)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Connection(socketserver.BaseRequestHandler):
    server: _Door

    def handle(self) -> None:
        endpoint = self.server.pick()
        if endpoint is None:
            return
        with contextlib.suppress(OSError), socket.create_connection(endpoint, _CONNECT_SECONDS) as other:
            _copy_both_ways(self.request, other)


def _copy_both_ways(one: socket.socket, other: socket.socket) -> None:
    """Until either side ends."""
    with selectors.DefaultSelector() as selector:
        selector.register(one, selectors.EVENT_READ, other)
        selector.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in selector.select():
                source = key.fileobj
                assert isinstance(source, socket.socket)
                block = source.recv(_BLOCK_BYTES)
                if not block:
                    return
                key.data.sendall(block)
