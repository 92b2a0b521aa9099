"""A reader of the capacity page of a cluster that was told object by object."""

import asyncio
import html
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import httpx

from app.dra.capacity import class_capacities
from app.dra.explain import Audience
from app.dra.judgement import Policy, Source, World
from app.dra.meaning import meaning_in_steps
from app.dra.snapshot import build_snapshot
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.witness import Heard, Kind
from app.web.application import Answers, create_application
from app.web.check import Checker
from app.web.history import History
from app.web.probes import Probes
from app.web.table import CapacityTable
from tests.builders import pod_record
from tests.dra.watched import Watched


class _NoClaims:
    async def lookups(self, *_: object) -> Any:  # noqa: ANN401 - never asked
        raise AssertionError("the page reads no claim")


class Reader:
    """The page, and what stands in it."""

    def __init__(
        self,
        *objects: Heard | ResourcePoolStatusRequest,
        source: Source = Source.AUTO,
        hide_names: bool = False,
        notice: str = "",
        kinds: Iterable[Kind] = Kind,
        later: float = 0.0,
        **listed: str,
    ) -> None:
        """`later`: seconds after the objects came; `listed`: a name in `autoscaled` or `dynamic`."""
        statuses = [each for each in objects if isinstance(each, ResourcePoolStatusRequest)]
        heard = [each for each in objects if not isinstance(each, ResourcePoolStatusRequest)]
        # Who holds a claim exists.
        self.watched = Watched(*heard, pod_record("p1"), kinds=kinds).later(later)
        snapshot = build_snapshot(statuses, received_at=self.watched.now)
        policy = Policy(source, **{setting: frozenset([name]) for setting, name in listed.items()})
        self._world = World(self.watched.witness, snapshot, policy)
        self.history = History()
        self.world = lambda: self._world
        self.table = CapacityTable(
            class_capacities, world=self.world, now=lambda: self.watched.now, hide_names=hide_names
        )
        answers = Answers(
            table=self.table,
            meaning=lambda name: meaning_in_steps(name, self._world, self.watched.now),
            check=Checker(world=self.world, reader=_NoClaims(), now=lambda: self.watched.now, audience=Audience()),
            metrics=lambda _classes, _pools: b"",
            notice=lambda: notice,
            switches=lambda: {"pool statuses": "on", "wake": "off"},
            probes=Probes(),
            hide_names=hide_names,
            version="1.2.3",
            history=self.history,
        )
        self._app = create_application(answers)

    def tell(self, *objects: Heard) -> None:
        """Something has changed; the table is made anew for it."""
        self.watched.tell(*objects)
        self._world = replace(self._world)

    def get(self, path: str = "/", **headers: str) -> httpx.Response:
        """An answer, with these request headers (`if_none_match`)."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://vacancy") as client:
                return await client.get(path, headers={name.replace("_", "-"): text for name, text in headers.items()})

        return asyncio.run(ask())

    def text(self, path: str = "/") -> str:
        """The page as it is sent."""
        answered = self.get(path)
        assert answered.status_code == 200, answered.text
        return answered.text

    def words(self, path: str = "/") -> str:
        """What can be read on it."""
        return words(self.text(path).partition("<body")[2])

    def names(self, path: str = "/") -> list[str]:
        """The classes on it, from top to bottom."""
        return re.findall(r'<article class=card id="([^"]*)"', self.text(path))

    def card(self, name: str = "gpu", path: str = "/") -> str:
        """The card of one class, as it is sent."""
        _, _, rest = self.text(path).partition(f'<article class=card id="{html.escape(name)}"')
        assert rest, f"no card of {name}"
        return rest.partition("</article>")[0]

    def card_words(self, name: str = "gpu", path: str = "/") -> str:
        """What can be read on it."""
        return words(self.card(name, path))


def words(text: str) -> str:
    """The text between the tags of HTML."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
