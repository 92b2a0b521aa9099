"""The webhook configurations that send to us, and a call to one of their webhooks as the API server makes it.

The API server trusts what is in `caBundle` and nothing else, takes each certificate there for a root, compares names
with the certificate's alternative names alone, follows no redirect and takes 200 alone for an answer (measured on
1.37.2). Where a `caBundle` is empty, it trusts the authorities of its system (API doc of WebhookClientConfig). So does
`call`.
"""

import asyncio
import ssl
import urllib.parse
from dataclasses import dataclass

import aiohttp
import msgspec

from app.cluster.client import ApiClient, ApiError, ServerFault, Unreachable
from app.dra.objects import View

PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

CALL_SECONDS = 10.0
"""For any answer. The API server waits a tenth of it for us, but that one is late tells more than that none came."""


class Service(View, frozen=True):
    """ServiceReference."""

    namespace: str
    name: str
    port: int = 443
    path: str = ""

    @property
    def host(self) -> str:
        """By which the API server calls it, and which its certificate has to name."""
        return f"{self.name}.{self.namespace}.svc"


class ClientConfig(View, frozen=True):
    """WebhookClientConfig."""

    url: str | None = None
    service: Service | None = None
    ca_bundle: bytes = b""


class Rule(View, frozen=True):
    """RuleWithOperations."""

    resources: tuple[str, ...] = ()


class StoredWebhook(View, frozen=True):
    """ValidatingWebhook."""

    name: str
    client_config: ClientConfig
    timeout_seconds: int = 10
    rules: tuple[Rule, ...] = ()


class Meta(View, frozen=True):
    """ObjectMeta, for who writes only what has not changed since it was read."""

    resource_version: str


class StoredConfiguration(View, frozen=True):
    """ValidatingWebhookConfiguration."""

    metadata: Meta
    webhooks: tuple[StoredWebhook, ...] | None = None


_configurations = msgspec.json.Decoder(StoredConfiguration)


class Untrusted(ApiError):
    """The server does not show a certificate that `caBundle` vouches for."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a configuration, as it stands in the cluster now."""

    name: str
    url: str
    """Where its reviews are posted, with the query the API server adds."""
    authorities: bytes
    """Its `caBundle`, PEM; empty if nobody has written it."""
    is_service: bool
    """Whether it is called by the name of a Service, for which no public authority vouches."""
    resources: frozenset[str]
    """Of what it is asked about: `pods`, `deployments`, …"""


async def stored(client: ApiClient, configuration: str) -> StoredConfiguration:
    """A ValidatingWebhookConfiguration. Raises ApiError."""
    content = await client.request("GET", f"{PATH}/{configuration}", timeout_seconds=CALL_SECONDS)
    try:
        return _configurations.decode(content)
    except msgspec.MsgspecError as error:
        raise ServerFault(f"GET {PATH}/{configuration}: expected a ValidatingWebhookConfiguration") from error


async def read(client: ApiClient, configuration: str) -> tuple[Webhook, ...]:
    """The webhooks of a ValidatingWebhookConfiguration. Raises ApiError."""
    found = await stored(client, configuration)
    return tuple(map(_webhook, found.webhooks or ()))


async def delete(client: ApiClient, configuration: str) -> None:
    """Delete a ValidatingWebhookConfiguration; nothing is sent to us by it any more. Raises ApiError."""
    await client.request("DELETE", f"{PATH}/{configuration}", timeout_seconds=CALL_SECONDS)


async def call(webhook: Webhook, review: bytes) -> bytes:
    """The body of the answer to a review. Raises Untrusted, Unreachable, and ServerFault for any status but 200."""
    connector = aiohttp.TCPConnector(ssl=_trust_in(webhook.authorities))
    try:
        async with (
            asyncio.timeout(CALL_SECONDS),
            aiohttp.ClientSession(connector=connector) as session,
            session.post(
                webhook.url,
                data=review,
                headers={"Content-Type": "application/json", "Accept": "application/json, */*"},
                allow_redirects=False,
            ) as response,
        ):
            if response.status != 200:  # noqa: PLR2004 - the status code is its own name
                raise ServerFault(f"expected HTTP 200, found {response.status}")
            return await response.read()
    except aiohttp.ClientConnectorCertificateError as error:
        raise Untrusted(getattr(error.certificate_error, "verify_message", str(error))) from error
    except TimeoutError as error:
        raise Unreachable(f"no answer within {CALL_SECONDS:g} s") from error
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(error.os_error.strerror or str(error.os_error)) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(str(error) or "the connection broke") from error


def _webhook(found: StoredWebhook) -> Webhook:
    where = found.client_config
    url = where.url or (where.service and _url(where.service)) or ""
    resources = frozenset(resource for rule in found.rules for resource in rule.resources)
    url = f"{url}?timeout={found.timeout_seconds}s"
    return Webhook(found.name, url, where.ca_bundle, where.service is not None, resources)


def _url(service: Service) -> str:
    path = urllib.parse.quote(service.path.lstrip("/"))
    return f"https://{service.host}:{service.port}/{path}"


def _trust_in(authorities: bytes) -> ssl.SSLContext:
    """In these (PEM), or where there are none in those of the system. Raises Untrusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if authorities else ssl.create_default_context()
    context.hostname_checks_common_name = False
    if not authorities:
        return context
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # any certificate of the bundle is a root
    try:
        context.load_verify_locations(cadata=authorities.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise Untrusted("the caBundle is not PEM") from error
    return context
