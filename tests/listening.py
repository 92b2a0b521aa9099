"""A listener in a thread of its own, in front of an application that reads the body and says that it is there."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvloop
from starlette.types import Receive, Scope, Send

from app.listeners import BoundedHead, Listener, bound_socket
from app.settings import Address

TIMEOUT = 30.0  # seconds; only a hang reaches it


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the body and say that it is there; at `/slow` some time later."""
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        await asyncio.sleep(0.1)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


@contextmanager
def listening(http: Callable[..., BoundedHead]) -> Iterator[Listener]:
    """It listens, until the end or until it is told to stop."""
    listener = Listener(answer, bound_socket(Address("127.0.0.1", 0)), http=http)

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(listener.run_until_stopped())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield listener
    finally:
        listener.stop(at_once=True)
        thread.join()
