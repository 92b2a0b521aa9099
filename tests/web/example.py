"""The web listener over the example cluster, at the example's time."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from app.dra.capacity import class_capacities
from app.dra.explain import Audience
from app.dra.judgement import Policy
from app.dra.meaning import meaning_in_steps
from app.embedded import Embedded
from app.web.application import Answers, create_application
from app.web.check import Checker
from app.web.probes import Probes
from app.web.table import CapacityTable

CLUSTER = Path(__file__).resolve().parents[2] / "examples" / "cluster"
NOW = 1767268800.0
"""2026-01-01T12:00:00Z."""


def example(**other: Any) -> ASGIApp:  # noqa: ANN401 - as `Answers` takes them
    """The application; `other`: answers in the place of the usual ones."""
    embedded = Embedded(CLUSTER, Policy(), lambda: NOW, count_ahead=True)
    world = embedded.latest.get
    answers = Answers(
        table=CapacityTable(class_capacities, world=world, now=lambda: NOW, hide_names=False),
        meaning=lambda name: meaning_in_steps(name, world(), NOW),
        check=Checker(world=world, reader=embedded, now=lambda: NOW, audience=Audience()),
        metrics=lambda _classes, _pools: b"",
        notice=lambda: "",
        switches=dict,
        probes=Probes(),
        hide_names=False,
        version="0",
    )
    return create_application(replace(answers, **other))


def asked(app: ASGIApp, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401 - as httpx takes them
    """What it answers, also where it breaks."""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://vacancy") as client:
            return await client.request(method, path, **options)

    return asyncio.run(ask())
