"""Replicas that keep their own certificates in a cluster of three values, on clocks that a test turns."""

import functools
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.cluster.certificate_secret import Configuration, HeldData
from app.cluster.client import ApiError, Conflict
from app.self_managed import SelfManaged, Timing
from app.tls.serving import ServingCertificate
from tests.certs.oracle import refusal

SERVER = "vacancy.vacancy.svc"
NOON = 1767268800.0  # 2026-01-01T12:00:00Z
TIMING = Timing()


@dataclass
class Cluster:
    """A Secret, webhook configurations and the time. It stores and returns; only versions are its own.

    It stands in for `CertificateSecret`, each call of which is a call of the API.
    """

    names: tuple[str, ...] = ("vacancy", "vacancy-workloads")
    now: float = NOON
    data: dict[str, bytes] = field(default_factory=dict)
    bundles: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """By configuration and webhook."""
    fault: ApiError | None = None
    """What every call comes to, if there is one."""
    unwritable: frozenset[str] = frozenset()
    """Configurations that may not be written."""
    stale: HeldData | None = None
    """What the next one reads of the Secret: it was there just now."""
    writes: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    """How often each object has been written, by whomever."""

    def add(self, name: str, bundle: bytes = b"") -> None:
        """A configuration with two webhooks, as Helm makes it."""
        self.touch(name)
        self.bundles[name] = {f"{mode}.{name}": bundle for mode in ("enforce", "warn")}

    def touch(self, name: str) -> None:
        self.versions[name] = self.versions.get(name, 0) + 1

    async def read(self, keys: Iterable[str]) -> HeldData:
        self._suffer()
        if self.stale is not None:
            stale, self.stale = self.stale, None
            return stale
        return HeldData(self._version("secret"), {key: self.data[key] for key in keys if key in self.data})

    async def write(self, held: HeldData, data: Mapping[str, bytes]) -> None:
        self._suffer()
        self._expect("secret", held.version)
        self.data = dict(data)
        self.writes += 1

    async def configurations(self) -> list[Configuration]:
        self._suffer()
        return [
            Configuration(name, self._version(name), (SERVER,), dict(self.bundles[name]))
            for name in self.names
            if name in self.bundles
        ]

    async def publish(self, configuration: Configuration, bundle: bytes) -> None:
        self._suffer()
        if configuration.name in self.unwritable:
            raise ApiError("403 Forbidden")
        self._expect(configuration.name, configuration.version)
        self.bundles[configuration.name] = dict.fromkeys(configuration.bundles, bundle)

    def _version(self, name: str) -> str:
        return str(self.versions.get(name, 0))

    def _expect(self, name: str, version: str) -> None:
        if version != self._version(name):
            raise Conflict("409 Conflict")
        self.touch(name)

    def _suffer(self) -> None:
        if self.fault is not None:
            raise self.fault


def replica(cluster: Cluster, skew: float = 0.0) -> SelfManaged:
    """One more, whose clock is ahead by `skew` seconds."""
    return SelfManaged(cluster, TIMING, lambda: cluster.now + skew)  # type: ignore[arg-type]  # it stands in


def look(*replicas: SelfManaged) -> None:
    """Have each look once. Nothing of this cluster takes time, so no event loop is needed."""
    for each in replicas:
        try:
            each.look().send(None)
        except StopIteration:
            continue
        raise AssertionError("it waits for something")


def shown(replica: SelfManaged) -> bytes:
    """The certificate (PEM) that a new connection is shown."""
    return _handed_over(replica.serving, replica.serving.not_after)


@functools.cache
def _handed_over(serving: ServingCertificate, _until: float) -> bytes:
    """By a handshake in memory, one for each certificate: no two end at the same time."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname, client_context.verify_mode = False, ssl.CERT_NONE
    server = serving.server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=SERVER)
    for side in (client, server, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = client.getpeercert(binary_form=True)
    assert found is not None
    return ssl.DER_cert_to_PEM_cert(found).encode()


def refusals(cluster: Cluster, replicas: Iterable[SelfManaged]) -> list[str]:
    """What every webhook, by the cluster's clock, has against every replica; empty: every call gets through."""
    bundles = {bundle for each in cluster.bundles.values() for bundle in each.values()}
    certificates = {shown(each) for each in replicas}
    found = [refusal(each, bundle, SERVER, cluster.now) for each in certificates for bundle in bundles]
    return [why for why in found if why]
