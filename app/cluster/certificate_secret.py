"""The Secret that holds our own certificates, and the webhook configurations that say whom to trust.

Of the Secret nothing but our keys is written, of a configuration nothing but the `caBundle` of its webhooks, each by a
patch that fails if the object has changed since it was read. The patches are strategic and merging ones, not
server-side applies: who *applies* a field of a webhook owns the list item that it is in, and Helm 4 could then no
longer remove that webhook (measured: its upgrade fails with `clientConfig: Required value`).
"""

import base64
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.cluster.client import ApiClient, NotFound, ServerFault
from app.cluster.webhooks import CALL_SECONDS, PATH, ClientConfig, Meta, stored
from app.dra.objects import View

FIELD_MANAGER = (("fieldManager", "vacancy-certificates"),)


class _Secret(View, frozen=True):
    metadata: Meta
    data: dict[str, bytes] | None = None


@dataclass(frozen=True, slots=True)
class HeldData:
    """What a Secret holds, and the version that this was."""

    version: str
    data: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a webhook configuration says of us, and the version in which it does."""

    name: str
    version: str
    servers: tuple[str, ...]
    """DNS names and IP addresses by which its webhooks call us."""
    bundles: Mapping[str, bytes]
    """The `caBundle` of each webhook, PEM; empty: none."""


class CertificateSecret:
    """One Secret and some configurations. What goes wrong is an ApiError, by meaning; Conflict: it has changed."""

    def __init__(self, client: ApiClient, namespace: str, name: str, configurations: Sequence[str]) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        self.names = configurations

    async def read(self, keys: Sequence[str]) -> HeldData:
        """What it holds under these keys."""
        answer = await self._client.request("GET", self._path, timeout_seconds=CALL_SECONDS)
        try:
            secret = msgspec.json.decode(answer, type=_Secret)
        except msgspec.MsgspecError as error:
            raise ServerFault(f"GET {self._path}: {error}") from error
        data = secret.data or {}
        return HeldData(secret.metadata.resource_version, {key: data[key] for key in keys if key in data})

    async def write(self, held: HeldData, data: Mapping[str, bytes]) -> None:
        """Put `data` in the place of what was read."""
        patch = {key: None if key not in data else base64.b64encode(data[key]).decode() for key in {*held.data, *data}}
        body = {"metadata": {"resourceVersion": held.version}, "data": patch}
        await self._patch(self._path, body, "application/merge-patch+json")

    async def configurations(self) -> list[Configuration]:
        """The configurations that exist: Helm 4 makes them last."""
        found = []
        for name in self.names:
            try:
                read = await stored(self._client, name)
            except NotFound:
                continue
            webhooks = read.webhooks or ()
            servers = tuple(dict.fromkeys(filter(None, (_server(webhook.client_config) for webhook in webhooks))))
            bundles = {webhook.name: webhook.client_config.ca_bundle for webhook in webhooks}
            found.append(Configuration(name, read.metadata.resource_version, servers, bundles))
        return found

    async def publish(self, configuration: Configuration, bundle: bytes) -> None:
        """Have all its webhooks trust this bundle (PEM)."""
        text = base64.b64encode(bundle).decode()
        webhooks = [
            {"name": name, "clientConfig": {"caBundle": text}}
            for name, trusted in configuration.bundles.items()
            if trusted != bundle
        ]
        body = {"metadata": {"resourceVersion": configuration.version}, "webhooks": webhooks}
        await self._patch(f"{PATH}/{configuration.name}", body, "application/strategic-merge-patch+json")

    async def _patch(self, path: str, body: object, content_type: str) -> None:
        await self._client.request(
            "PATCH",
            path,
            query=FIELD_MANAGER,
            body=msgspec.json.encode(body),
            content_type=content_type,
            timeout_seconds=CALL_SECONDS,
        )


def _server(config: ClientConfig) -> str:
    """The name the API server expects in our certificate; empty: none, as of a URL that is none."""
    if config.service is not None:
        return config.service.host
    try:
        return urllib.parse.urlsplit(config.url or "").hostname or ""
    except ValueError:
        return ""
