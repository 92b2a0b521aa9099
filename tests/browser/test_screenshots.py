"""The pictures of the documentation; `make screenshots` writes them anew. Nothing in them depends on when that is."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.cluster.manifests import Manifests, feed, read_manifests
from app.dra.capacity import capacity
from app.dra.judgement import Policy, World
from app.dra.witness import Witness
from app.listeners import Listener, bound_socket
from app.settings import Address
from app.version import version
from app.web.history import MINUTES, History
from tests.browser.browser import NARROW, WIDE, Visitor
from tests.browser.files import EXAMPLE, ROOT
from tests.controlplane.waiting import until
from tests.web.example import NOW, example

PICTURES = ROOT / "docs" / "img"
MAX_BYTES = 300_000

SHOTS = {
    "page-light.png": ("light", WIDE, 960),
    "page-dark.png": ("dark", WIDE, 960),
    "page-phone.png": ("light", NARROW, 960),
}


def the_hour() -> History:
    """What a server would have noted that has watched the example, as its objects say when they were made."""
    manifests, history = read_manifests(EXAMPLE), History()
    for minute in range(MINUTES):
        now = NOW - 60 * (MINUTES - 1 - minute)
        witness = Witness(now)
        snapshot = feed(at(manifests, now), witness, now)
        history.note(capacity(World(witness, snapshot, Policy()), now).classes)
    return history


def at(manifests: Manifests, now: float) -> Manifests:
    """What there was at that time; the pool statuses are of one moment, and of no other."""
    heard = {
        kind: {name: entry for name, entry in entries.items() if entry.created is None or entry.created <= now}
        for kind, entries in manifests.heard.items()
    }
    return replace(manifests, heard=heard, pool_status_requests=())


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server of the example that has watched it for an hour."""
    with bound_socket(Address("127.0.0.1", 0)) as socket:
        listener = Listener(example(history=the_hour(), version=version()), socket)
        thread = threading.Thread(target=asyncio.run, args=(listener.run_until_stopped(),))
        thread.start()
        until("listening", listener.listening.is_set)
        yield f"http://{listener.address}"
        listener.stop(at_once=True)
        thread.join()


@pytest.mark.parametrize("name", SHOTS)
def test_the_documentation_has_a_picture_of_the_page(
    visitor: Visitor, server: str, request: pytest.FixtureRequest, name: str
) -> None:
    scheme, width, height = SHOTS[name]
    tab = visitor.opens(server, color_scheme=scheme, viewport={"width": width, "height": height})
    picture = tab.screenshot()
    assert len(picture) < MAX_BYTES
    if request.config.getoption("--update-screenshots"):
        (PICTURES / name).write_bytes(picture)
    assert size((PICTURES / name).read_bytes()) == size(picture)


def size(picture: bytes) -> tuple[int, int]:
    """Width and height of a PNG: the first two numbers of its first chunk."""
    return int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])
