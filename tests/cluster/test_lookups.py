"""What a review reads: in parallel, within its budget, and with an answer for whatever happens."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from app.cluster import lookups
from app.cluster.client import ApiClient
from app.cluster.lookups import ClaimReader
from app.dra.demand import ClaimReferences, Lookup
from app.dra.objects import ResourceClaim, ResourceClaimTemplate
from tests.apiserver import ApiServer
from tests.apiserver_parts import CLAIMS, TEMPLATES, Fault
from tests.builders import Json, claim_spec

Story = Callable[[ApiServer, ClaimReader], Awaitable[None]]

PATIENT = 30.0
"""A budget that only a fault of ours uses up."""


def play(folder: Path, story: Story, budget_seconds: float = PATIENT) -> None:
    """Run a story with claim c1 and template t1 in namespace team."""

    async def run() -> None:
        async with ApiServer() as server:
            server.put(CLAIMS, {"metadata": name("c1"), "spec": claim_spec()})
            server.put(TEMPLATES, {"metadata": name("t1"), "spec": {"spec": claim_spec()}})
            async with await ApiClient.connect(server.kubeconfig(folder), None) as client:
                await story(server, ClaimReader(client, budget_seconds))

    asyncio.run(run())


def name(name: str) -> Json:
    return {"name": name, "namespace": "team"}


def path(name: str, plural: str = "resourceclaims") -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/team/{plural}/{name}"


def test_claims_and_templates_are_read_where_the_pod_is(tmp_path: Path) -> None:
    async def story(server: ApiServer, reader: ClaimReader) -> None:
        server.put(CLAIMS, {"metadata": {"name": "elsewhere", "namespace": "other"}, "spec": claim_spec()})
        found = await reader.lookups("team", ClaimReferences(("c1", "none", "elsewhere"), ("t1", "none")))
        assert isinstance(found.claims["c1"], ResourceClaim)
        assert found.claims["c1"].metadata.name == "c1"
        assert isinstance(found.templates["t1"], ResourceClaimTemplate)
        assert found.claims["none"] is found.claims["elsewhere"] is found.templates["none"] is Lookup.MISSING
        assert {asked.path for asked in server.asked} == {
            *(path(each) for each in ("c1", "none", "elsewhere")),
            *(path(each, "resourceclaimtemplates") for each in ("t1", "none")),
        }

    play(tmp_path, story)


def test_a_pod_that_names_nothing_costs_no_call(tmp_path: Path) -> None:
    async def story(server: ApiServer, reader: ClaimReader) -> None:
        found = await reader.lookups("team", ClaimReferences())
        assert (found.claims, found.templates, server.asked) == ({}, {}, [])

    play(tmp_path, story)


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault(status=status) for status in (401, 403, 409, 410, 422, 429, 500, 503)),
        Fault(cut=True),
        Fault(status=200, body=b""),
        Fault(status=200, body=b"{"),
        Fault(status=200, body=b'{"metadata": 5}'),
    ],
    ids=lambda fault: f"{fault.status} {fault.body}",
)
def test_whatever_goes_wrong_with_one_is_said_of_that_one_alone(tmp_path: Path, fault: Fault) -> None:
    async def story(server: ApiServer, reader: ClaimReader) -> None:
        server.fault(fault, path=path("c1"), times=None)
        found = await reader.lookups("team", ClaimReferences(("c1",), ("t1",)))
        assert found.claims == {"c1": Lookup.FAILED}
        assert isinstance(found.templates["t1"], ResourceClaimTemplate)

    play(tmp_path, story)


@pytest.mark.parametrize("fault", [Fault(silent=True), Fault(delay_seconds=60.0)], ids=["silent", "slow"])
def test_what_does_not_come_within_the_budget_is_not_waited_for(tmp_path: Path, fault: Fault) -> None:
    async def story(server: ApiServer, reader: ClaimReader) -> None:
        names = tuple(f"c{number}" for number in range(10))
        for each in names[1:]:
            server.fault(fault, path=path(each))
        began = time.monotonic()
        found = await reader.lookups("team", ClaimReferences(("c1", *names), ("t1",)))
        assert time.monotonic() - began < 5.0  # one budget for all, not one for each
        assert set(found.claims.values()) == {Lookup.FAILED, Lookup.MISSING}
        assert found.claims["c0"] is Lookup.MISSING
        assert isinstance(found.templates["t1"], ResourceClaimTemplate)

    play(tmp_path, story, budget_seconds=1.0)


def test_of_very_many_names_the_first_are_read(tmp_path: Path) -> None:
    async def story(server: ApiServer, reader: ClaimReader) -> None:
        names = ("c1", "c1", *(f"n{number}" for number in range(40)))
        found = await reader.lookups("team", ClaimReferences(names))
        assert len(server.asked) == 32
        assert isinstance(found.claims["c1"], ResourceClaim)
        assert found.claims["n30"] is Lookup.MISSING
        assert found.claims["n31"] is found.claims["n39"] is Lookup.FAILED

    play(tmp_path, story)


def test_of_a_check_all_names_are_read_few_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ClaimReferences(tuple(f"n{number}" for number in range(40)))

    async def story(server: ApiServer, _: ClaimReader) -> None:
        async with await ApiClient.connect(server.kubeconfig(tmp_path), None) as client:
            found = await ClaimReader.of_checks(client).lookups("team", names)
            assert set(found.claims.values()) == {Lookup.MISSING}
            server.asked.clear()
            server.fault(Fault(silent=True), times=None)
            monkeypatch.setattr(lookups, "CHECK_BUDGET_SECONDS", 1.0)
            reading = asyncio.create_task(ClaimReader.of_checks(client).lookups("team", names))
            await asyncio.sleep(0.3)
            assert len(server.asked) == lookups.CHECK_READS_AT_ONCE
            assert set((await reading).claims.values()) == {Lookup.FAILED}

    play(tmp_path, story)


@pytest.mark.parametrize(
    "odd", ["", "..", ".", "a/b", "../../secrets/s", "%2e%2e", "a?watch=1", "a#b", "A", "a\n", "é", "a" * 254, "-a"]
)
def test_what_can_be_no_name_is_missing_and_never_part_of_a_url(tmp_path: Path, odd: str) -> None:
    async def story(server: ApiServer, reader: ClaimReader) -> None:
        assert (await reader.lookups("team", ClaimReferences((odd,)))).claims == {odd: Lookup.MISSING}
        assert (await reader.lookups(odd, ClaimReferences((), ("t1",)))).templates == {"t1": Lookup.MISSING}
        assert server.asked == []

    play(tmp_path, story)


def test_the_longest_name_is_a_name(tmp_path: Path) -> None:
    longest = "a" * 126 + "." + "b" * 126

    async def story(server: ApiServer, reader: ClaimReader) -> None:
        server.put(CLAIMS, {"metadata": name(longest), "spec": claim_spec()})
        found = await reader.lookups("team", ClaimReferences((longest,)))
        assert isinstance(found.claims[longest], ResourceClaim)

    play(tmp_path, story)
