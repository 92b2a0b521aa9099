"""Names the scheduler looks at, and how a pod's containers add up."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dra.containers import ResourceTotal, is_extended_resource, resource_totals
from app.dra.objects import PodSpec
from app.dra.reasons import Reason

GPU = "example.com/gpu"

NAMES: dict[str, bool] = {
    "example.com/gpu": True,
    "nvidia.com/mig-1g.5gb": True,
    "example.com/My_Res": True,
    "gpu": False,
    "cpu": False,
    "memory": False,
    "hugepages-2Mi": False,
    "kubernetes.io/foo": False,
    "node.kubernetes.io/x": False,
    "mykubernetes.io/gpu": False,
    "requests.example.com/gpu": False,
    "Example.com/gpu": False,
    "example.com/a/b": False,
    "deviceclass.resource.kubernetes.io/gpu": True,
    "x.deviceclass.resource.kubernetes.io/gpu": False,
    "deviceclass.resource.k8s.io/gpu": True,
    "a" * 244 + "/g": True,
    "a" * 245 + "/g": False,
    "example.com/" + "g" * 63: True,
    "example.com/" + "g" * 64: False,
    "deviceclass.resource.kubernetes.io/" + "g" * 253: True,
    "deviceclass.resource.kubernetes.io/" + "g" * 254: False,
    "example.com/": False,
    "/gpu": False,
    "example.com/-gpu": False,
    "example.com/gpu_": False,
    "example..com/gpu": False,
    "example.com/gpu\n": False,
    "example.com\n/gpu": False,
    "exämple.com/gpu": False,
    "example.com/gpü": False,
    "": False,
}


@pytest.mark.parametrize("name", NAMES)
def test_names_the_scheduler_looks_at(name: str) -> None:
    assert is_extended_resource(name) is NAMES[name]


def spec_of(init: list[dict[str, Any]], *containers: dict[str, Any]) -> PodSpec:
    return msgspec.json.decode(json.dumps({"initContainers": init, "containers": containers}), type=PodSpec)


def asks(amount: object, name: str = GPU, **rest: object) -> dict[str, Any]:
    return {"resources": {"requests": {name: amount, "cpu": "2"}, "limits": {name: amount, "memory": "1Gi"}}, **rest}


def sidecar(amount: object) -> dict[str, Any]:
    return asks(amount, restartPolicy="Always")


def devices(spec: PodSpec) -> dict[str, int]:
    return {total.name: total.devices for total in resource_totals(spec)}


SUMS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], int]] = {
    "app 1": ([], [asks("1")], 1),
    "app 1 + app 1": ([], [asks("1"), asks("1")], 2),
    "init 1, app 1": ([asks("1")], [asks("1")], 1),
    "init 2, app 1": ([asks("2")], [asks("1")], 2),
    "init 1, app 0": ([asks("1")], [asks("0")], 1),
    "init 1, init 3, app 2": ([asks("1"), asks("3")], [asks("2")], 3),
    "sidecar 1, app 1": ([sidecar("1")], [asks("1")], 2),
    "sidecar 1, init 2, app 1": ([sidecar("1"), asks("2")], [asks("1")], 3),
    "init 2, sidecar 1, app 1": ([asks("2"), sidecar("1")], [asks("1")], 2),
    "init 3, sidecar 1, app 1": ([asks("3"), sidecar("1")], [asks("1")], 3),
    "init 2, app 1 + app 1": ([asks("2")], [asks("1"), asks("1")], 2),
    "app 0": ([], [asks("0")], 0),
    # Old schedulers asked for 5 here (kubernetes#134880).
    "init 1, sidecar 1, init 2, app 1": ([asks("1"), sidecar("1"), asks("2")], [asks("1")], 3),
    "an init container that restarts on failure still ends": ([asks("1", restartPolicy="OnFailure")], [asks("1")], 1),
    "33 devices, more than a claim can hold": ([], [asks("33")], 33),
    "1e30": ([], [asks("1e30")], 10**30),
    "a thousand thousandths": ([], [asks("1000m")], 1),
    "a bare number, as in YAML": ([], [asks(2)], 2),
    "a bare number with a point": ([], [asks(2.0)], 2),
}


@pytest.mark.parametrize("sentence", SUMS)
def test_devices_needed(sentence: str) -> None:
    init, containers, want = SUMS[sentence]
    assert devices(spec_of(init, *containers)) == ({GPU: want} if want else {})


def test_names_are_summed_apart_before_anybody_maps_them_to_a_driver() -> None:
    """Two names of one driver: ten devices, not the larger of both (kueue#14156)."""
    spec = spec_of([asks("5", "vendor.com/a")], asks("5", "vendor.com/b"))
    assert devices(spec) == {"vendor.com/a": 5, "vendor.com/b": 5}


def test_overhead_and_pod_level_resources_make_no_device_request() -> None:
    amounts = {GPU: "1"}
    document = {"containers": [{}], "overhead": amounts, "resources": {"requests": amounts, "limits": amounts}}
    assert devices(msgspec.json.decode(json.dumps(document), type=PodSpec)) == {}


REQUESTS_AND_LIMITS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "requests count, not limits": ({"requests": {GPU: "1"}, "limits": {GPU: "2"}}, {GPU: 1}),
    "requests without a limit": ({"requests": {GPU: "1"}}, {GPU: 1}),
    "limits where requests lack the key": ({"requests": {"cpu": "1"}, "limits": {GPU: "2"}}, {GPU: 2}),
    "limits alone": ({"limits": {GPU: "2"}}, {GPU: 2}),
    "a request of zero is a request": ({"requests": {GPU: "0"}, "limits": {GPU: "1"}}, {}),
    "a limit of zero": ({"limits": {GPU: "0"}}, {}),
    "native names": ({"requests": {"mykubernetes.io/gpu": "1", "cpu": "1"}}, {}),
    "nothing": ({}, {}),
    "null": ({"requests": None, "limits": None}, {}),
}


@pytest.mark.parametrize("sentence", REQUESTS_AND_LIMITS)
def test_requests_and_limits(sentence: str) -> None:
    resources, want = REQUESTS_AND_LIMITS[sentence]
    assert devices(spec_of([], {"resources": resources})) == want


FIELDS: dict[str, tuple[PodSpec, str]] = {
    "the first container that asks": (
        spec_of([], {}, asks("1"), asks("1")),
        "spec.containers[1].resources.requests[example.com/gpu]",
    ),
    "zero does not ask": (
        spec_of([], asks("0"), asks("1")),
        "spec.containers[1].resources.requests[example.com/gpu]",
    ),
    "limits alone": (
        spec_of([], {"resources": {"limits": {GPU: "1"}}}),
        "spec.containers[0].resources.limits[example.com/gpu]",
    ),
    "an init container alone": (
        spec_of([{}, asks("1")], {}),
        "spec.initContainers[1].resources.requests[example.com/gpu]",
    ),
    "a container before an init container, which people write for it": (
        spec_of([asks("1")], asks("1")),
        "spec.containers[0].resources.requests[example.com/gpu]",
    ),
}


@pytest.mark.parametrize("sentence", FIELDS)
def test_field(sentence: str) -> None:
    spec, want = FIELDS[sentence]
    assert [total.field for total in resource_totals(spec)] == [want]


UNCOUNTABLE: dict[str, tuple[object, Reason]] = {
    "half a device": ("500m", Reason.FractionalQuantity),
    "one and a half": ("1500m", Reason.FractionalQuantity),
    "a billionth": ("1n", Reason.FractionalQuantity),
    "half a device, as a number": (0.5, Reason.FractionalQuantity),
    "negative": ("-1", Reason.UnknownField),
    "negative, as a number": (-1, Reason.UnknownField),
    "a word": ("abc", Reason.UnknownField),
    "empty": ("", Reason.UnknownField),
    "a suffix nobody knows": ("1Q", Reason.UnknownField),
}


@pytest.mark.parametrize("sentence", UNCOUNTABLE)
def test_one_amount_that_cannot_be_counted_spoils_its_name_only(sentence: str) -> None:
    amount, reason = UNCOUNTABLE[sentence]
    other = "example.com/nic"
    spec = spec_of([asks(amount)], asks("1"), asks("2", other))
    assert resource_totals(spec) == (
        ResourceTotal(GPU, f"spec.initContainers[0].resources.requests[{GPU}]", unjudged=reason),
        ResourceTotal(other, f"spec.containers[1].resources.requests[{other}]", 2),
    )


def test_the_first_of_several_bad_amounts_is_named() -> None:
    (total,) = resource_totals(spec_of([asks("-1")], asks("1"), asks("500m"), asks("abc")))
    assert total.unjudged is Reason.FractionalQuantity
    assert total.field == f"spec.containers[1].resources.requests[{GPU}]"


@given(
    init=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=6),
    containers=st.lists(st.integers(0, 5), min_size=1, max_size=4),
)
def test_the_sum_is_the_schedulers(init: list[tuple[int, bool]], containers: list[int]) -> None:
    """The sharing rule word by word: a short-lived init container may use what long-lived ones after it have."""
    everybody = [*init, *((amount, True) for amount in containers)]
    long_lived_from = [sum(amount for amount, lasts in everybody[i:] if lasts) for i in range(len(everybody))]
    extra = [max(0, amount - long_lived_from[i]) for i, (amount, lasts) in enumerate(everybody) if not lasts]
    want = long_lived_from[0] + max(extra, default=0)
    spec = spec_of([sidecar(n) if lasts else asks(n) for n, lasts in init], *(asks(n) for n in containers))
    assert devices(spec).get(GPU, 0) == want
