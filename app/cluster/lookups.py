"""The claims and templates that pods name, read for a review or a check: the only calls that a review waits for."""

import asyncio
import sys
from collections.abc import Iterable
from typing import Self, TypeVar

import msgspec

from app.cluster.client import ApiClient, ApiError, NotFound
from app.cluster.names import is_name
from app.dra.demand import ClaimReferences, Lookup, Lookups
from app.dra.objects import ResourceClaim, ResourceClaimTemplate

BUDGET_SECONDS = 0.3
"""For everything a pod names, read in parallel; the webhook as a whole has a second."""

NAMES_AT_MOST = 32
"""Claims, and templates, of one pod that are read; the rest counts as not read."""

READS_AT_ONCE = 32
"""Of all reviews together: they must not take the connections that the slow river lives on."""

CHECK_BUDGET_SECONDS = 3.0
"""For everything the pods of one text name; whoever posted it waits for 10 s."""

CHECK_READS_AT_ONCE = 4
"""Of all checks together: they must not take the connections that reviews need."""

_PATH = "/apis/resource.k8s.io/v1/namespaces"

Read = TypeVar("Read", ResourceClaim, ResourceClaimTemplate)

_claims = msgspec.json.Decoder(ResourceClaim)
_templates = msgspec.json.Decoder(ResourceClaimTemplate)


class Withheld:
    """Reads nothing: what may not be read may exist."""

    async def lookups(self, _namespace: str, references: ClaimReferences) -> Lookups:
        """The names, none of which was read."""
        unread = dict.fromkeys((*references.claims, *references.templates), Lookup.FAILED)
        return Lookups(unread, unread)


class ClaimReader:
    """Reads what pods name."""

    def __init__(
        self,
        client: ApiClient,
        budget_seconds: float = BUDGET_SECONDS,
        *,
        names_at_most: int = NAMES_AT_MOST,
        reads_at_once: int = READS_AT_ONCE,
    ) -> None:
        self._client, self._budget_seconds, self._names_at_most = client, budget_seconds, names_at_most
        self._at_once = asyncio.Semaphore(reads_at_once)

    @classmethod
    def of_checks(cls, client: ApiClient) -> Self:
        """For texts of many pods, whose names are counted before they are read."""
        return cls(client, CHECK_BUDGET_SECONDS, names_at_most=sys.maxsize, reads_at_once=CHECK_READS_AT_ONCE)

    async def lookups(self, namespace: str, references: ClaimReferences) -> Lookups:
        """The claims and templates of that namespace, within the budget; what cannot be read says so in the answer."""
        claims, templates = await asyncio.gather(
            self._read_all(namespace, "resourceclaims", references.claims, _claims),
            self._read_all(namespace, "resourceclaimtemplates", references.templates, _templates),
        )
        return Lookups(claims, templates)

    async def _read_all(
        self, namespace: str, plural: str, names: Iterable[str], decoder: msgspec.json.Decoder[Read]
    ) -> dict[str, Read | Lookup]:
        distinct = list(dict.fromkeys(names))
        read = await asyncio.gather(
            *(self._read(namespace, plural, name, decoder) for name in distinct[: self._names_at_most])
        )
        return dict.fromkeys(distinct, Lookup.FAILED) | dict(zip(distinct, read, strict=False))

    async def _read(self, namespace: str, plural: str, name: str, decoder: msgspec.json.Decoder[Read]) -> Read | Lookup:
        if not (is_name(namespace) and is_name(name)):
            return Lookup.MISSING
        path = f"{_PATH}/{namespace}/{plural}/{name}"
        try:
            async with asyncio.timeout(self._budget_seconds), self._at_once:
                return decoder.decode(await self._client.request("GET", path))
        except NotFound:
            return Lookup.MISSING
        except (ApiError, TimeoutError, msgspec.MsgspecError):
            return Lookup.FAILED
