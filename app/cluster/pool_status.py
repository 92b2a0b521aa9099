"""The question to the controller manager: how many devices there are in the pools of a driver, and how many are taken.

A ResourcePoolStatusRequest (KEP-5677) is an object that the controller manager answers by writing its status, once. It
is created, read until it is answered, and deleted, whatever happens in between. That it could be created proves
nothing: an API server whose feature gate is off stores it too (seen on 1.37.2), and one incomplete pool of the driver,
or one of generation 0, is reason enough never to answer.
"""

import asyncio
import enum
import itertools
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from app.cluster.client import (
    ApiClient,
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerFault,
    TooManyRequests,
    Unreachable,
)
from app.dra.objects import ObjectMeta, View
from app.dra.vacancy import ResourcePoolStatusRequest
from app.times import epoch_seconds

PATH = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"

MANAGED_BY = "app.kubernetes.io/managed-by", "vacancy"
"""The label of all requests of ours, by which those left behind are found."""

NAME_PREFIX = "vacancy-"

POOLS_AT_MOST = 1000
"""`spec.limit`, as high as the API allows. Where there are more pools, `poolCount` tells."""

ANSWER_SECONDS = 5.0
"""The controller manager answers within 0.1 s, or gives up after 0.2 s (measured on 1.37.2); the rest is for a busy
one, which answers 20 a second."""

LEFTOVER_SECONDS = 120.0
"""Nobody waits that long: a request of this age was left behind."""

WITHDRAWAL_SECONDS = 2.0
"""For taking a request back when its caller is cancelled: a process that is told to stop has no more time than that."""

_CALL_SECONDS = 5.0
_PAGE = 100
_PAUSES_SECONDS = 0.05, 0.1, 0.2, 0.4, 0.8
"""Before the first looks at a request; then 1 s each."""


class Unanswered(enum.StrEnum):
    """Why there is no answer; also a metric label."""

    SILENT = "silent"
    """The request was stored, and nobody answered in time."""
    NOT_SERVED = "not-served"
    """The API server does not know the kind."""
    FORBIDDEN = "forbidden"
    THROTTLED = "throttled"
    UNREACHABLE = "unreachable"
    REPLACED = "replaced"
    """Another object stands under the name of ours, or none."""
    REFUSED = "refused"
    """The API server said something else, or something that cannot be read."""


OUTCOMES = ("complete", "failed", *(each.value for each in Unanswered))
"""What may come of a request: `Reply.outcome`, a metric label."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one request."""

    answer: ResourcePoolStatusRequest | Unanswered
    """With a condition `Complete` or `Failed`, or none."""
    withdrawn: bool
    """Whether certainly nothing of it is left in the cluster."""

    @property
    def outcome(self) -> str:
        """One word for a metric: complete, failed, or an `Unanswered`."""
        return self.answer.value if isinstance(self.answer, Unanswered) else _finished_as(self.answer)


async def ask(
    client: ApiClient, driver: str, pool: str | None = None, *, timeout_seconds: float = ANSWER_SECONDS
) -> Reply:
    """Ask for the counts of all pools of a driver, or of one. What the API server does is an answer, never an error.

    The request is deleted in any case: who is cancelled, at whatever point, waits `WITHDRAWAL_SECONDS` for that.
    """
    creation = asyncio.create_task(_create(client, driver, pool, timeout_seconds))
    withdrawal: asyncio.Task[bool] | None = None
    try:
        answer = await _answer(client, creation, timeout_seconds)
        withdrawal = asyncio.create_task(_withdrawn(client, creation))
        return Reply(answer, await asyncio.shield(withdrawal))
    except BaseException:
        with suppress(TimeoutError):
            await asyncio.wait_for(withdrawal or _withdrawn(client, creation), WITHDRAWAL_SECONDS)
        raise


async def sweep(client: ApiClient, now: float) -> bool:
    """Delete requests of ours, of whichever replica, that were left behind; whether none at all is left.

    `now`: epoch seconds. A clock that is 2 min fast takes away what another replica waits for; it asks again a minute
    later. Whatever the API server does, nothing is raised.
    """
    none_left = True
    try:
        async for ours in _listed(client):
            gone = _age(ours, now) >= LEFTOVER_SECONDS and await _deleted(client, ours)
            none_left = none_left and gone
    except ApiError:
        return False
    return none_left


async def remove_all(client: ApiClient) -> int:
    """Delete all requests of ours, also those that somebody waits for; how many could not be. Raises ApiError."""
    return sum([not await _deleted(client, ours) async for ours in _listed(client)])


async def _listed(client: ApiClient) -> AsyncIterator[ObjectMeta]:
    """All requests of ours, page by page. Raises ApiError."""
    query = [("labelSelector", "=".join(MANAGED_BY)), ("limit", str(_PAGE))]
    token: list[tuple[str, str]] = []
    while True:
        listed = await client.request("GET", PATH, query=query + token, timeout_seconds=_CALL_SECONDS)
        try:
            page = _pages.decode(listed)
        except msgspec.MsgspecError as error:
            raise ServerFault(f"GET {PATH}: expected a list") from error
        for each in page.items:
            if _ours(each.metadata):
                yield each.metadata
        if not page.metadata.token:
            return
        token = [("continue", page.metadata.token)]


class _Made(View, frozen=True):
    metadata: ObjectMeta


class _ListMeta(View, frozen=True):
    token: str = msgspec.field(name="continue", default="")


class _Page(View, frozen=True):
    metadata: _ListMeta
    items: tuple[_Made, ...]


_made = msgspec.json.Decoder(_Made)
_pages = msgspec.json.Decoder(_Page)
_requests = msgspec.json.Decoder(ResourcePoolStatusRequest)


async def _create(client: ApiClient, driver: str, pool: str | None, timeout_seconds: float) -> ObjectMeta:
    key, value = MANAGED_BY
    spec: dict[str, str | int] = {"driver": driver, "limit": POOLS_AT_MOST}
    request = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"generateName": NAME_PREFIX, "labels": {key: value}},
        "spec": spec if pool is None else spec | {"poolName": pool},
    }
    body = msgspec.json.encode(request)
    return _made.decode(await client.request("POST", PATH, body=body, timeout_seconds=timeout_seconds)).metadata


async def _answer(
    client: ApiClient, creation: asyncio.Task[ObjectMeta], timeout_seconds: float
) -> ResourcePoolStatusRequest | Unanswered:
    try:
        async with asyncio.timeout(timeout_seconds):
            # Shielded: whoever cuts a creation off does not learn the name of what may have been created.
            return await _status(client, await asyncio.shield(creation))
    except TimeoutError:
        return Unanswered.SILENT if creation.done() else Unanswered.UNREACHABLE
    except msgspec.MsgspecError:
        return Unanswered.REFUSED
    except ApiError as error:
        return _meaning(error)


async def _status(client: ApiClient, ours: ObjectMeta) -> ResourcePoolStatusRequest | Unanswered:
    """Look again and again; the caller sets the end. Raises ApiError where looking again would not help."""
    pauses = itertools.chain(_PAUSES_SECONDS, itertools.repeat(1.0))
    while True:
        await asyncio.sleep(next(pauses))
        try:
            found = _requests.decode(await client.request("GET", f"{PATH}/{ours.name}", timeout_seconds=_CALL_SECONDS))
        except NotFound:
            return Unanswered.REPLACED
        except (TooManyRequests, ServerFault, Unreachable):
            continue
        if found.metadata.uid != ours.uid:
            return Unanswered.REPLACED
        if _finished_as(found):
            return found


def _finished_as(request: ResourcePoolStatusRequest) -> str:
    """Complete or failed; empty while the controller manager is not done with it."""
    conditions = request.status.conditions if request.status else None
    return next((c.type.lower() for c in conditions or () if c.type in ("Complete", "Failed")), "")


def _meaning(error: ApiError) -> Unanswered:
    match error:
        case NotFound():
            return Unanswered.NOT_SERVED
        case Forbidden():
            return Unanswered.FORBIDDEN
        case TooManyRequests():
            return Unanswered.THROTTLED
        case Unreachable() | ServerFault():
            return Unanswered.UNREACHABLE
        case _:
            return Unanswered.REFUSED


async def _withdrawn(client: ApiClient, creation: asyncio.Task[ObjectMeta]) -> bool:
    try:
        ours = await creation
    except (Unreachable, ServerFault, msgspec.MsgspecError):
        return False  # perhaps it was created
    except ApiError:
        return True
    return await _deleted(client, ours)


async def _deleted(client: ApiClient, ours: ObjectMeta) -> bool:
    """Delete this very object; whether it is gone."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": ours.uid}}
    body = msgspec.json.encode(options)
    try:
        await client.request("DELETE", f"{PATH}/{ours.name}", body=body, timeout_seconds=_CALL_SECONDS)
    except (NotFound, Conflict):
        return True  # gone before; what has its name now is not ours
    except ApiError:
        return False
    return True


def _ours(metadata: ObjectMeta) -> bool:
    """Asked of the API server, and yet looked at: what is deleted here must not be anybody else's."""
    key, value = MANAGED_BY
    return metadata.name.startswith(NAME_PREFIX) and (metadata.labels or {}).get(key) == value


def _age(metadata: ObjectMeta, now: float) -> float:
    """Seconds; of a creation time that cannot be read 0, for such a request is left alone."""
    try:
        return now - epoch_seconds(metadata.creation_timestamp or "")
    except ValueError:
        return 0.0
