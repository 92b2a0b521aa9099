"""The client of `loadtest.burst`, a process of its own: `python -m loadtest.burst_client ADDRESS CA COUNT SECONDS`.

All reviews are there at one moment, each opens a connection of its own and keeps it, as an API server does that has no
idle ones. It prints a line of JSON for each: seconds since that moment, and what came of it.
"""

import asyncio
import json
import ssl
import sys
import time

import uvloop

from loadtest.payloads import Review, mix


async def _post(review: Review, address: str, context: ssl.SSLContext) -> bool:
    """Whether it is allowed. Raises what went wrong."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        head = f"POST {review.kind.path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(review.body)}\r\n\r\n".encode() + review.body)
        status, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
        if " 200 " not in status:
            raise ConnectionError(status)
        (length,) = [int(field.partition(":")[2]) for field in fields if field.lower().startswith("content-length:")]
        answer = json.loads(await reader.readexactly(length))
    finally:
        writer.transport.abort()
    return bool(answer["response"]["allowed"])


async def _timed(review: Review, address: str, context: ssl.SSLContext, seconds: float, began: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            allowed = await _post(review, address, context)
        outcome = "right" if allowed is review.kind.allowed else "wrong"
    except (OSError, EOFError) as problem:  # a time-out is an OSError
        outcome = f"{type(problem).__name__}: {problem}"
    return json.dumps({"seconds": time.perf_counter() - began, "outcome": outcome})


async def _burst(address: str, ca: str, count: int, seconds: float) -> list[str]:
    context = ssl.create_default_context(cafile=ca)
    reviews = [mix()[number % len(mix())] for number in range(count)]
    began = time.perf_counter()
    return await asyncio.gather(*(_timed(each, address, context, seconds, began) for each in reviews))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print("\n".join(runner.run(_burst(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))))
