"""The live river: one kind is listed in pages, then watched, and every object is told to the witness as it comes.

What matters is to know when the view is *not* current. A kind becomes current when a list is complete and the watch
that goes on from it has caught up, and stays current while something is heard. When a watch breaks or cannot go on,
the kind is lost at once, and with it everything it feeds. A watch that ends in an orderly way, as each does after some
minutes, or that falls silent, gets a successor first, which has a moment to catch up.
"""

import asyncio
import enum
import logging
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import msgspec
from msgspec import Raw

from app.cluster.client import (
    ApiClient,
    ApiError,
    Forbidden,
    Gone,
    NotFound,
    ServerFault,
    Stream,
    TooManyRequests,
    Unreachable,
)
from app.cluster.collection import COLLECTIONS, FEWER_LOOK_FULLER, Collection, heard, name_of, outlines
from app.cluster.pace import Pace
from app.dra.objects import View
from app.dra.witness import Kind, Witness

PAGE = 100
"""Objects a page. A hundred slices with 8 devices each are 0.6 MB and 1.5 ms of decoding (measured)."""

WATCH_SECONDS = (300, 600)
"""How long a watch may last, chosen anew each time, as client-go does, so that watches move to a new API server."""

DENIALS_DOUBTED = 4
"""In a row, over some 7 s, for a kind that was readable before: an API server that has just started forbids what it
allows a moment later (seen on 1.37.2), and to believe it would mean a minute without the kind."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a watch waits for what, in seconds."""

    silence: float = 72.0
    """For an event or a bookmark, which comes every 60 s; then the watch gets a successor. With `succession` it makes
    the 75 s after which a kind that was not heard of is unknown. Silence is no proof of a fault: a kind that has not
    changed since the API server started gets no bookmarks (seen on 1.37.2, typically taint rules)."""
    quiet: float = 0.2
    """For an event that was there when the watch opened; those come first, and without a pause."""
    succession: float = 3.0
    """For the successor of a watch that ended in an orderly way, or fell silent, to catch up."""
    apart: float = 1.0
    """Between the openings of two watches, if a server ends them at once."""
    shortest_pause: float = 0.5
    """After a first failure."""
    longest_pause: float = 10.0
    """After many failures. Two unlucky rounds at the end of a long outage must not last for a tick."""
    denied: float = 60.0
    """At most until a kind that may not be read is tried again; at first it is sooner."""


class State(enum.StrEnum):
    """Where a watch stands; also a metric label."""

    STARTING = "starting"
    CURRENT = "current"
    LOST = "lost"
    """It was current, or could not become it; it is being tried again."""
    DENIED = "denied"
    """The kind may not be read, or is not served."""


@dataclass(frozen=True, slots=True)
class Health:
    """What page, metrics and log say of one kind."""

    kind: Kind
    state: State
    problem: str
    """Why it is not current; empty if it is."""
    objects: int
    unreadable: int
    """Objects among them that we cannot read."""
    interruptions: int
    """How often it was lost since the start."""


# --- On the wire ------------------------------------------------------------------------------------------------------


class _ListMeta(View, frozen=True):
    resource_version: str
    continue_: str = msgspec.field(name="continue", default="")


class _Page(View, frozen=True):
    metadata: _ListMeta
    items: list[Raw] | None


class _Event(View, frozen=True):
    type: str
    object: Raw


class _Status(View, frozen=True):
    """The object of an ERROR event."""

    code: int = 0
    reason: str = ""


_pages = msgspec.json.Decoder(_Page)
_events = msgspec.json.Decoder(_Event)
_statuses = msgspec.json.Decoder(_Status)


# --- One watch --------------------------------------------------------------------------------------------------------


class Watch:
    """Keeps the witness informed of one kind, for ever."""

    def __init__(  # noqa: PLR0913 - parts are handed in
        self,
        collection: Collection,
        *,
        client: ApiClient,
        witness: Witness,
        now: Callable[[], float],
        pace: Pace,
        patience: Patience = Patience(),
    ) -> None:
        """`now`: epoch seconds. `pace`: shared by all watches of the process."""
        self.collection = collection
        self._client, self._witness, self._now, self._pace, self._patience = client, witness, now, pace, patience
        self._decoder = msgspec.json.Decoder(collection.view)
        self._version = ""
        """From which version a watch goes on; empty: only a list helps."""
        self._caught_up = False
        self._unreadable: set[tuple[str, str]] = set()
        self._unreadable_logged = False
        self._end_of_succession: asyncio.TimerHandle | None = None
        self._failures = self._denials = 0
        self._state, self._problem = State.STARTING, ""
        self._objects = self._interruptions = 0

    @property
    def health(self) -> Health:
        """How it stands now."""
        return Health(
            self.collection.kind,
            self._state,
            self._problem,
            self._objects,
            len(self._unreadable),
            self._interruptions,
        )

    async def run(self) -> NoReturn:
        """List and watch until cancelled; nothing else ends it."""
        try:
            while True:
                pause = await self._once()
                await asyncio.sleep(pause)
        finally:
            self._stop_succession()

    async def _once(self) -> float:
        """List if need be, and watch for as long as it goes well; returns after how many seconds to go on."""
        loop = asyncio.get_running_loop()
        try:
            if not self._version:
                await self._list()
            opened_at = loop.time()
            await self._follow()
        except ApiError as error:
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 - a mistake of ours makes a kind unknown, and does not end the server
            return self._failed(ServerFault(f"{type(error).__name__} while reading"))  # its message may quote an object
        self._end_of_succession = loop.call_later(self._patience.succession, self._lose, "no watch took over")
        return max(0.0, opened_at + self._patience.apart - loop.time())

    # --- Listing and watching -----------------------------------------------------------------------------------------

    def _query(self, *more: tuple[str, str]) -> list[tuple[str, str]]:
        selector = self.collection.field_selector
        return [*more, ("fieldSelector", selector)] if selector else list(more)

    async def _page(self, limit: int, more: str = "") -> _Page:
        """A page of a list that shows what is true now, or goes on from `more`."""
        query = self._query(("limit", str(limit)), *([("continue", more)] if more else []))
        body = await self._client.request(
            "GET", self.collection.path, query=query, accept=self.collection.accept(listing=True)
        )
        await self._pace.turn()
        try:
            page = _pages.decode(body)
        except msgspec.MsgspecError as error:
            raise ServerFault(f"GET {self.collection.path}: expected a list") from error
        if not page.metadata.resource_version:
            raise ServerFault(f"GET {self.collection.path}: expected a list with a version")
        return page

    async def _list(self) -> None:
        """Tell the witness of everything there is, and that there is nothing else."""
        seen: set[tuple[str, str]] = set()
        self._unreadable.clear()
        more = ""
        while True:
            page = await self._page(PAGE, more)
            for raw in page.items or ():
                await self._pace.turn()
                seen.add(self._tell(raw))
            more = page.metadata.continue_
            if not more:
                break
        self._objects = len(seen)
        for _ in self._witness.prune(self.collection.kind, seen, self._now()):
            await self._pace.turn()
        self._version = page.metadata.resource_version  # of all pages: that of the moment the list began

    async def _follow(self) -> None:
        """Watch from the version that is known, until the watch ends in an orderly way or falls silent; else raises."""
        query = self._query(
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self._version),
            ("timeoutSeconds", str(random.randint(*WATCH_SECONDS))),  # noqa: S311 - no secret
        )
        what = f"watch of {self.collection.path}"
        async with self._client.stream(
            self.collection.path, query=query, accept=self.collection.accept(listing=False)
        ) as stream:
            await self._catch_up(stream, what)
            with suppress(TimeoutError):
                while (line := await stream.line(self._patience.silence)) is not None:
                    await self._hear(line)

    async def _catch_up(self, stream: Stream, what: str) -> None:
        """Read all that had happened when the watch opened.

        The version of the whole cluster, asked for after the opening, is the mark. A kind that changes often passes it
        soon; one that does not is quiet, and what was waiting when it opened comes without a pause.
        """
        mark = int((await self._page(1)).metadata.resource_version)
        while int(self._version) < mark:  # versions are decimal numbers that grow (KEP-5504)
            try:
                line = await stream.line(self._patience.quiet)
            except TimeoutError:
                break
            if line is None:
                raise Unreachable(f"{what}: ended before it had caught up")
            await self._hear(line)
        self._caught_up, self._failures, self._denials = True, 0, 0
        self._stop_succession()
        self._settle()

    async def _hear(self, line: bytes) -> None:
        """One line of a watch."""
        await self._pace.turn()
        try:
            event = _events.decode(line)
            if event.type == "ERROR":
                raise _said(_statuses.decode(event.object), self.collection.path)
            outline = outlines.decode(event.object).metadata
        except msgspec.MsgspecError as error:
            raise ServerFault(f"watch of {self.collection.path}: expected an event") from error
        match event.type:
            case "ADDED" | "MODIFIED":
                self._objects += event.type == "ADDED"
                self._tell(event.object)
            case "DELETED":
                self._objects -= 1
                self._unreadable.discard((outline.namespace, outline.name))
                self._witness.remove(self.collection.kind, outline.namespace, outline.name, self._now())
            case "BOOKMARK":
                pass
            case _:
                raise ServerFault(f"watch of {self.collection.path}: expected another type of event")
        self._version = outline.resource_version or self._version
        self._settle()

    def _tell(self, raw: Raw) -> tuple[str, str]:
        """Tell the witness of an object; returns its namespace and name. What cannot be read is as good as gone."""
        kind, now = self.collection.kind, self._now()
        try:
            obj = self._decoder.decode(raw)
            name = (obj.metadata.namespace, obj.metadata.name)
            self._witness.apply(kind, heard(obj), now)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others must not suffer
            name = name_of(raw)
            self._unreadable.add(name)
            self._witness.remove(kind, *name, now)
            if not self._unreadable_logged:
                self._unreadable_logged = True
                facts = {"kind": kind.value, "namespace": name[0], "name": name[1], "problem": type(error).__name__}
                _log.warning("object cannot be read", extra={"facts": facts})
        else:
            self._unreadable.discard(name)
        return name

    # --- Current or not -----------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Say whether the kind is current, if that has changed."""
        if not self._caught_up:
            return
        hidden = self._unreadable if self.collection.kind in FEWER_LOOK_FULLER else ()
        if hidden and self._state is not State.LOST:
            self._turn(State.LOST, f"{len(hidden)} objects cannot be read")
        elif not hidden and self._state is not State.CURRENT:
            self._turn(State.CURRENT)

    def _lose(self, problem: str, state: State = State.LOST) -> None:
        self._stop_succession()
        self._caught_up = False
        self._turn(state, problem)

    def _failed(self, error: ApiError) -> float:
        """Note that it did not go on; returns after how many seconds to try again."""
        if isinstance(error, Forbidden | NotFound):
            self._version = ""
            believed = self._state in (State.STARTING, State.DENIED) or self._denials >= DENIALS_DOUBTED
            self._lose(str(error), State.DENIED if believed else State.LOST)
            self._denials = min(self._denials + 1, 10)
            return self._pause(self._denials, self._patience.denied)
        self._lose(str(error))
        if not isinstance(error, Unreachable | TooManyRequests):
            self._version = ""  # whatever the server has against it, a list starts anew
        self._failures = min(self._failures + 1, 10)
        asked = error.retry_after if isinstance(error, TooManyRequests) else None
        return max(self._pause(self._failures, self._patience.longest_pause), asked or 0.0)

    def _pause(self, failures: int, longest: float) -> float:
        """Seconds after so many failures in a row, with jitter."""
        most = min(longest, self._patience.shortest_pause * 2.0**failures)
        return random.uniform(self._patience.shortest_pause, most)  # noqa: S311 - no secret

    def _turn(self, state: State, problem: str = "") -> None:
        """Tell witness and log of a change."""
        before, self._state, self._problem = self._state, state, problem
        if state is before:
            return
        kind = self.collection.kind
        if state is State.CURRENT:
            self._witness.synced(kind, self._now())
            _log.info("watch is current", extra={"facts": {"kind": kind.value, "objects": self._objects}})
            return
        self._interruptions += before is State.CURRENT
        if state is State.DENIED:
            self._witness.deny(kind)
            _log.warning("kind may not be read", extra={"facts": {"kind": kind.value, "problem": problem}})
        else:
            self._witness.lost(kind)
            _log.warning("watch lost", extra={"facts": {"kind": kind.value, "problem": problem}})

    def _stop_succession(self) -> None:
        if self._end_of_succession is not None:
            self._end_of_succession.cancel()
            self._end_of_succession = None


def _said(status: _Status, path: str) -> ApiError:
    """What an ERROR event means."""
    text = f"watch of {path}: {status.code} {status.reason}"
    return Gone(text) if status.code == 410 else ServerFault(text)  # noqa: PLR2004 - the status code is its own name


def watches(
    client: ApiClient,
    witness: Witness,
    now: Callable[[], float],
    collections: Iterable[Collection] = COLLECTIONS,
    patience: Patience = Patience(),
) -> tuple[Watch, ...]:
    """One watch a kind, with one pace; each has to be `run`."""
    pace = Pace()
    return tuple(
        Watch(collection, client=client, witness=witness, now=now, pace=pace, patience=patience)
        for collection in collections
    )
