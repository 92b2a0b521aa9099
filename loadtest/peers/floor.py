"""The floor: uvicorn as lean as ours, and an application that reads the body and gives always the same answer.

`python -m loadtest.peers.floor ADDRESS FOLDER`
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

ANSWER = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"4e13cd7f-f2c8-58e2-a884-de42085c2'
    b'61a","allowed":true,"auditAnnotations":{"verdict":"room","reason":"HasRoom","snapshot-age-seconds":"20","resolved"'
    b':"{\\"example.com/free\\":{\\"count\\":1,\\"class\\":\\"gpu-free\\",\\"drivers\\":[\\"free.example.com\\"],\\"pool'
    b's\\":500,\\"devices\\":4000,\\"memory\\":[\\"80Gi\\",\\"80Gi\\"]}}"}}}'
)
"""Ours of a pod that asks for a free device."""

_HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]


async def hello(
    _scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer one request."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": ANSWER})


if __name__ == "__main__":
    address, folder = sys.argv[1:3]
    host, _, port = address.partition(":")
    uvicorn.run(
        hello,
        host=host,
        port=int(port),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        date_header=False,
        server_header=False,
        timeout_keep_alive=120,
        ssl_certfile=f"{folder}/tls.crt",
        ssl_keyfile=f"{folder}/tls.key",
    )
