"""What is measured is measured on the server that answers, and a wrong answer is no figure."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from loadtest import latency, saturation
from loadtest.payloads import KINDS, Review, body
from loadtest.servers import FLOOR, MINIMAL, OURS, Running

NOWHERE = Review(replace(KINDS[0], path="/nowhere"), body(KINDS[0]))


def test_answers_that_are_not_200_are_no_figure_of_cpu(servers: Mapping[str, Running]) -> None:
    with pytest.raises(AssertionError, match="refused"):
        saturation.cost(servers[OURS], [NOWHERE], 1)


def test_answers_that_are_not_200_are_errors_of_a_latency(servers: Mapping[str, Running]) -> None:
    ours = servers[OURS]
    wanted = [latency.Target(ours.url(path), NOWHERE.body) for path in ("/nowhere", "/validate")]
    found = latency.measure(wanted, 100, 1, ours.ca)
    assert (len(found.samples), found.errors) == (100, 50)
    assert {sample.code for sample in found.samples} == {200, 404}


def test_work_is_counted_of_the_server_that_did_it(servers: Mapping[str, Running]) -> None:
    before = {name: server.cpu_seconds() for name, server in servers.items()}
    saturation.cost(servers[FLOOR], [Review(KINDS[0], body(KINDS[0]))], 1)
    used = {name: server.cpu_seconds() - before[name] for name, server in servers.items()}
    assert used[FLOOR] > 10 * used[MINIMAL]


def test_memory_is_that_of_a_process(servers: Mapping[str, Running]) -> None:
    assert 5 < servers[MINIMAL].resident_mb() < servers[OURS].resident_mb() < 500
