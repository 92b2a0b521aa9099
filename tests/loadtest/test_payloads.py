"""Bodies have the size they are said to have, and each asks for what its kind says."""

import json
from collections import Counter

import pytest

from loadtest.payloads import KINDS, SIZES, Kind, body, mix


@pytest.mark.parametrize("size", SIZES)
def test_a_hundred_reviews_have_the_size_and_the_shares(size: int) -> None:
    reviews = mix(size)
    assert {len(each.body) for each in reviews} == {size}
    assert Counter(each.kind.name for each in reviews) == {kind.name: kind.share for kind in KINDS}
    assert len({json.loads(each.body)["request"]["uid"] for each in reviews}) == 100


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_pod_has_no_more_than_a_real_one(kind: Kind) -> None:
    pod = json.loads(body(kind))["request"]["object"]
    (container,) = pod["spec"]["containers"]
    (managed,) = pod["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:containers"].values()
    names = [variable["name"] for variable in container["env"]]
    assert [f'k:{{"name":"{name}"}}' for name in names] == list(managed["f:env"])[1:]
    assert max(len(variable["value"]) for variable in container["env"]) < 300
