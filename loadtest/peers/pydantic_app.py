"""The webhook as FastAPI's tutorial would have it: models in, models out. The access log is off, a generous setting.

`python -m loadtest.peers.pydantic_app ADDRESS FOLDER NAME=FREE...`
"""

import sys
from collections import Counter

import fastapi
import uvicorn
from pydantic import BaseModel


class Resources(BaseModel):
    """Of one container."""

    requests: dict[str, str] = {}


class Container(BaseModel):
    """What counts of it."""

    resources: Resources = Resources()


class Spec(BaseModel):
    """What counts of it."""

    containers: list[Container]
    initContainers: list[Container] = []  # noqa: N815 - the API's name


class Pod(BaseModel):
    """What counts of it."""

    spec: Spec


class Request(BaseModel):
    """What counts of it."""

    uid: str
    object: Pod


class Status(BaseModel):
    """Why not."""

    message: str
    code: int = 403
    reason: str = "Forbidden"


class Response(BaseModel):
    """The answer."""

    uid: str
    allowed: bool
    status: Status | None = None


class Review(BaseModel):
    """Both ways."""

    apiVersion: str  # noqa: N815 - the API's name
    kind: str
    request: Request | None = None
    response: Response | None = None


app = fastapi.FastAPI()
free: dict[str, int] = {}


@app.post("/validate", response_model_exclude_none=True)
@app.post("/validate/warn", response_model_exclude_none=True)
async def validate(review: Review) -> Review:
    """Answer one review."""
    assert review.request
    spec = review.request.object.spec
    asked = sum((_asked(each) for each in spec.containers), Counter[str]())
    for each in spec.initContainers:
        asked |= _asked(each)
    status = next((Status(message=_sentence(*ask)) for ask in asked.items() if free.get(ask[0]) == 0), None)
    response = Response(uid=review.request.uid, allowed=status is None, status=status)
    return Review(apiVersion=review.apiVersion, kind=review.kind, response=response)


def _asked(container: Container) -> Counter[str]:
    return Counter({name: int(count) for name, count in container.resources.requests.items() if "/" in name})


def _sentence(name: str, count: int) -> str:
    found = f"all {4000} devices of class {'gpu-full'} are taken in {500} pools, as of {'21:49 UTC'}"
    options = "Try again later, wait in the queue with label gpu-vacancy.dev/queue=true, or run on CPU."
    return f"[NoGPUCapacity] no free device for {name} ({count} asked): {found}. {options}"


if __name__ == "__main__":
    address, folder = sys.argv[1:3]
    free |= {name: int(count) for name, count in (argument.split("=") for argument in sys.argv[3:])}
    host, _, port = address.partition(":")
    pair = {"ssl_certfile": f"{folder}/tls.crt", "ssl_keyfile": f"{folder}/tls.key"}
    uvicorn.run(app, host=host, port=int(port), access_log=False, **pair)  # type: ignore[arg-type]  # all are text
