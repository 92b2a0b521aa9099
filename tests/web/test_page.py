"""The capacity page: what it says of classes, pools and drivers, and what it must not say."""

import base64
import hashlib
import re

import pytest

from app.dra.judgement import Source
from app.dra.witness import Heard, Kind
from tests.builders import (
    GPU,
    IMPLICIT_GPU,
    NOON,
    device,
    device_class,
    node,
    pool_counts,
    pool_status,
    resource_claim,
    resource_slice,
)
from tests.web.reader import Reader, words

GPU_CLASS = device_class("gpu", declares=GPU, created=NOON - 3_600)
TWO_TAKEN = resource_claim("gpu-0", "gpu-1", consumers=["p1"])
ALL_TAKEN = resource_claim(*(f"gpu-{i}" for i in range(4)), consumers=["p1"])
HALF = resource_slice(2, slices=2)
"""A pool of which one slice of two is published."""


# --- The numbers of a class -------------------------------------------------------------------------------------------


def test_a_card_says_how_many_are_free_and_what_became_of_the_others() -> None:
    page = Reader(GPU_CLASS, resource_slice(4), TWO_TAKEN)
    assert words(re.findall("<p class=big>.*?</p>", page.card())[0]) == "2 of 4 free"
    assert "2 allocated" in page.card_words()
    assert "data-vacancy=free>" in page.card()
    assert re.search(r"<p class=state>\s*free", page.card())


def test_a_count_says_its_age_its_exact_time_and_where_it_is_from() -> None:
    page = Reader(GPU_CLASS, resource_slice(4), ALL_TAKEN, pool_status(pool_counts(), at=NOON - 37))
    card = page.card()
    assert '<time datetime="2026-01-01T11:59:23Z" title="2026-01-01T11:59:23Z">counted 37s ago</time>' in card
    assert "<span class=source>both</span>" in card
    assert "0 of 4 free" in page.card_words()


def test_what_is_seen_live_says_so_and_names_no_time() -> None:
    card = Reader(GPU_CLASS, resource_slice(4)).card()
    assert "<span class=age>seen live</span> <span class=source>witness</span>" in card
    assert "<time" not in card


UNKNOWN: dict[str, tuple[list[Heard], Source, str]] = {
    "a pool half published": ([HALF], Source.AUTO, "a pool is not completely published"),
    "no count": ([resource_slice(4)], Source.POOL_STATUS, "there is no current count of the devices"),
    "devices that can be shared": (
        [resource_slice([device(shareable=True, taints=[{"key": "k", "effect": "NoSchedule"}])])],
        Source.WITNESS,
        "devices can be shared",
    ),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_unknown_is_written_unknown_with_its_reason_and_never_zero(case: str) -> None:
    objects, source, why = UNKNOWN[case]
    page = Reader(GPU_CLASS, *objects, source=source)
    card, said = page.card(), page.card_words()
    assert "data-vacancy=unknown>" in card
    assert words(re.findall("<p class=big>.*?</p>", card)[0]) == "unknown"
    assert said.count(why) == 1
    assert set(re.findall(r"<td data-count=available>(\w+)", card)) == {"unknown"}
    assert not re.search(r"\b0 (of|free|available)", said)


def test_some_are_free_and_nobody_knows_how_many() -> None:
    """A pool status counts a pool, and of this pool the class is but a part."""
    small = device_class("gpu", selectors=['device.attributes["gpu.example.com"].kind == "a"'])
    kinds = [device(f"gpu-{i}", attributes={"kind": kind}) for i, kind in enumerate("aab")]
    counted = pool_status(pool_counts(total=3, allocated=1))
    page = Reader(small, resource_slice(kinds), counted, source=Source.POOL_STATUS)
    assert "data-vacancy=free>" in page.card()
    assert "unknown 2 in total some are free, how many is not known counted 0s ago" in page.card_words()


def test_of_a_pool_beside_the_free_ones_nothing_is_known() -> None:
    page = Reader(GPU_CLASS, resource_slice(3), resource_slice(1, pool="n2", slices=2))
    assert "3 free there may be more of which nothing is known" in page.card_words()
    assert "2 pools: 1 free, 1 unknown" in page.card_words()


def test_a_class_without_a_device_is_empty_and_says_why() -> None:
    said = Reader(GPU_CLASS).card_words()
    assert "empty" in said
    assert "no device matches at present" in said


@pytest.mark.parametrize("listed", [0, 1, 2])
def test_devices_that_are_listed_and_do_not_count_are_mentioned(listed: int) -> None:
    half = device_class("gpu", selectors=['device.attributes["gpu.example.com"].kind == "a"'])
    kinds = [device(f"gpu-{i}", attributes={"kind": "a" if i == 0 else "b"}) for i in range(1 + listed)]
    counted = pool_status(pool_counts(total=1 + listed, allocated=1), at=NOON + 1)
    objects = (half, resource_slice(kinds), resource_claim("gpu-0", consumers=["p1"]), counted)
    said = Reader(*objects, later=1).card_words()
    lists = re.findall(r"the pool status lists (.*?) not count", said)
    assert lists == {0: [], 1: ["1 more as available that does"], 2: ["2 more as available that do"]}[listed]


# --- Names ------------------------------------------------------------------------------------------------------------

OLD = device_class("old", driver="old.example.com", declares=GPU, created=NOON - 7_200)


def test_names_that_lead_to_a_class_are_explicit_or_implicit() -> None:
    page = Reader(GPU_CLASS, resource_slice(1))
    assert re.findall(r"<li><code>(.*?)</code> (\w+)", page.card()) == [(GPU, "explicit"), (IMPLICIT_GPU, "implicit")]


def test_a_class_that_lost_its_name_is_flagged_on_its_card_and_on_the_winners() -> None:
    page = Reader(GPU_CLASS, OLD, resource_slice(1))
    assert f"{GPU} explicit, shadowed by gpu" in page.card_words("old")
    assert "<b class=flag>shadowed</b>" in page.card("old")
    assert f"{GPU} explicit; also claimed by old, shadowed deviceclass" in page.card_words("gpu")


def test_the_class_that_holds_refusals_back_is_named() -> None:
    taken = resource_claim("gpu-0", consumers=["p1"])
    page = Reader(GPU_CLASS, OLD, resource_slice(1), resource_slice(1, driver="old.example.com", pool="n2"), taken)
    assert "refusals are held back by old" in page.card_words("gpu")


def test_a_class_whose_pool_is_never_used_holds_no_refusal_back() -> None:
    unusable = resource_slice(1, driver="old.example.com", pool="n2", node="n2", slices=2)
    page = Reader(GPU_CLASS, OLD, resource_slice(1), unusable, resource_claim("gpu-0", consumers=["p1"]), later=600.0)
    assert "unknown" in page.card_words("old")
    assert "held back" not in page.card_words("gpu")


@pytest.mark.parametrize(("hide_names", "said"), [(False, "node n7 may serve"), (True, "a node may serve")])
def test_a_node_that_switches_refusals_off_is_named_unless_hidden(hide_names: bool, said: str) -> None:  # noqa: FBT001 - a row
    page = Reader(GPU_CLASS, resource_slice(1), node("n7", plugin={GPU: "1"}), hide_names=hide_names)
    assert f"{GPU} explicit; never refused: {said} it by device plugin" in page.card_words()


FULL_GPU: list[Heard] = [GPU_CLASS, resource_slice(1), resource_claim("gpu-0", consumers=["p1"])]


@pytest.mark.parametrize("name", ["gpu", "gpu.example.com"])
@pytest.mark.parametrize("setting", ["autoscaled", "dynamic"])
def test_a_class_of_which_nobody_is_refused_says_so_once(setting: str, name: str) -> None:
    bound = device_class("gpu", driver="gpu.example.com", declares=GPU, created=NOON - 3_600)
    page = Reader(bound, *FULL_GPU[1:], **{setting: name})
    assert "data-vacancy=full>" in page.card()
    assert re.findall("<p class=why>(.*)", page.card()) == [f"never refused: {setting}"]
    assert page.card_words().count("never refused") == 1
    assert "class is called so" not in page.words()


def test_a_name_of_which_nobody_is_refused_says_so_where_its_class_is_refused() -> None:
    page = Reader(*FULL_GPU, OLD, autoscaled="old")
    assert (
        f"{GPU} explicit; also claimed by old, shadowed; never refused: autoscaled {IMPLICIT_GPU}" in page.card_words()
    )
    assert "<p class=why>" not in page.card()


def test_what_settings_list_and_nothing_is_called_is_on_the_page_and_once_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    page = Reader(*FULL_GPU, autoscaled="gpu.exmaple.com")
    assert "autoscaled=gpu.exmaple.com: no driver or device class is called so at present" in page.words()
    page.tell(OLD)
    page.text()
    page.tell(device_class("late", driver="gpu.exmaple.com"))
    assert "called so" not in page.words()
    page.watched.gone(device_class("late"))
    page.tell()
    page.text()
    assert [(each.getMessage(), vars(each)["facts"]) for each in caplog.records] == [
        ("settings name no driver or class", {"entries": "autoscaled=gpu.exmaple.com"})
    ] * 2


def test_while_classes_are_not_known_no_entry_is_called_unknown(caplog: pytest.LogCaptureFixture) -> None:
    page = Reader(GPU_CLASS, kinds=set(Kind) - {Kind.DEVICE_CLASSES}, autoscaled="gpu.exmaple.com")
    assert "called so" not in page.words()
    assert caplog.records == []


# --- What "1" means ---------------------------------------------------------------------------------------------------


def test_the_box_tells_model_memory_and_profile_and_that_devices_are_unequal() -> None:
    unequal = [
        device("gpu-0", memory="80Gi", attributes={"model": "A100", "profile": "3g.40gb", "uuid": "GPU-0"}),
        device("gpu-1", memory="40Gi", attributes={"model": "A100", "profile": "3g.40gb", "uuid": "GPU-1"}),
    ]
    page = Reader(GPU_CLASS, resource_slice(unequal))
    said = page.card_words()
    assert "What does 1 mean? unequal devices" in said
    assert "One of 2 devices in 1 pool of gpu.example.com" in said
    assert "model A100 profile 3g.40gb memory 40Gi (1) to 80Gi (1)" in said
    assert "GPU-0" not in said


BEHIND: dict[str, tuple[list[Heard], str]] = {
    "an incomplete pool": ([HALF], "One of an unknown number of devices in 1 pool of gpu.example.com"),
    "one device": ([resource_slice(1)], "The only device in 1 pool of gpu.example.com"),
    "eleven": ([resource_slice(11)], "One of 11 devices in 1 pool of gpu.example.com"),
    "none": ([], "No device at present"),
}


@pytest.mark.parametrize("case", BEHIND)
def test_the_box_tells_what_is_behind(case: str) -> None:
    objects, said = BEHIND[case]
    assert f"What does 1 mean? {said}" in Reader(GPU_CLASS, *objects).card_words()


@pytest.mark.parametrize("attributes", [{"index": 0}, {"resource.kubernetes.io/pcieRoot": "pci0000:00"}, {}])
def test_devices_that_differ_in_their_place_alone_are_equal(attributes: dict[str, str | int]) -> None:
    other = {name: f"{value}1" for name, value in attributes.items()}
    devices = [
        device(f"gpu-{i}", memory="40Gi", attributes={"model": "L4", **(other if i % 2 else attributes)})
        for i in range(4)
    ]
    assert "unequal" not in Reader(GPU_CLASS, resource_slice(devices)).card_words()


def test_many_values_are_summed_up() -> None:
    memory = ("16Gi", "24Gi", "40Gi", "80Gi", "141Gi", "192Gi")
    said = Reader(GPU_CLASS, resource_slice([device(each, memory=each) for each in memory])).card_words()
    assert "memory 16Gi to 192Gi: 16Gi (1), 24Gi (1), 40Gi (1), 80Gi (1) and 2 more" in said


# --- Pools, partitions, shares ----------------------------------------------------------------------------------------


def test_a_pool_has_its_four_counts() -> None:
    broken = [device(f"gpu-{i}", taints=[{"key": "k", "effect": "NoSchedule"}] if i == 3 else []) for i in range(4)]
    page = Reader(GPU_CLASS, resource_slice(broken), TWO_TAKEN)
    row = re.findall(r'<tr data-driver="gpu.example.com" data-pool="n1">.*', page.card())[0]
    counts = re.findall(r"<td data-count=(\w+)>(\w+)", row)
    assert counts == [("total", "4"), ("allocated", "2"), ("available", "1"), ("unavailable", "1")]
    assert "1 pool: 1 free" in page.card_words()


@pytest.mark.parametrize(("pools", "folded"), [(4, False), (5, True)])
def test_many_pools_are_folded(pools: int, folded: bool) -> None:  # noqa: FBT001 - a row
    page = Reader(GPU_CLASS, *(resource_slice(1, pool=f"n{i}") for i in range(pools)))
    assert ("<details class=pools>" in page.card()) is folded
    assert page.card().count("<tr data-driver=") == pools


def test_more_pools_than_a_page_can_bear_are_a_link_away() -> None:
    page = Reader(GPU_CLASS, *(resource_slice(1, pool=f"n{i}") for i in range(300)))
    assert "<tr data-driver=" not in page.card()
    (address,) = re.findall(r'<p class=pools><a href="(.*?)">300 pools: 300 free</a>', page.card())
    assert page.card(path="/" + address.replace("&amp;", "&")).count("<tr data-driver=") == 300


PARTITIONS = [{"attribute": "a/profile", "type": "3g.40gb", "total": 4, "allocatable": 1}]
SHARES = {
    "fullyAvailableDevices": 1,
    "partiallyAvailableDevices": 1,
    "capacity": [{"name": "memory", "total": "96Gi", "consumed": "66Gi", "available": "30Gi"}],
}


def test_partitions_by_type_and_shareable_capacity_are_summed_over_pools() -> None:
    counts = [pool_counts(pool, partitionSummary=PARTITIONS, shareableSummary=SHARES) for pool in ("n1", "n2")]
    slices = [resource_slice(4, pool=pool) for pool in ("n1", "n2")]
    said = Reader(GPU_CLASS, *slices, pool_status(*counts), source=Source.POOL_STATUS).card_words()
    assert "3g.40gb 2 of 8 still fit" in said
    assert "memory 60Gi of 192Gi left to share" in said


def test_partitions_are_counted_live_where_that_is_what_counts() -> None:
    halves = [device(f"{i}", attributes={"profile": "3g.40gb"}, consumes={"card": {"memory": "40Gi"}}) for i in (0, 1)]
    cards = resource_slice(halves, counters={"card": {"memory": "80Gi"}})
    page = Reader(GPU_CLASS, cards, resource_claim("0", consumers=["p1"]))
    assert "3g.40gb 1 of 2 still fit" in page.card_words()


def test_parts_that_were_counted_too_long_ago_are_not_shown() -> None:
    stale = pool_status(pool_counts(partitionSummary=PARTITIONS, shareableSummary=SHARES), at=NOON - 91)
    said = Reader(GPU_CLASS, resource_slice(4), stale, source=Source.POOL_STATUS).card_words()
    assert "fit" not in said
    assert "share" not in said


# --- Drivers ----------------------------------------------------------------------------------------------------------

TROUBLE: dict[str, tuple[list[Heard], Source, str]] = {
    "silent": (
        [resource_slice(4)],
        Source.POOL_STATUS,
        "gpu.example.com is silent : its devices have not been counted yet; all its devices are unknown.",
    ),
    "stale": (
        [resource_slice(4), pool_status(pool_counts(), at=NOON - 300)],
        Source.BOTH,
        "gpu.example.com is stale : counted 5m ago, and a count is believed for 90s; all its devices are unknown.",
    ),
    "incomplete": (
        [HALF],
        Source.WITNESS,
        "gpu.example.com is incomplete : pool n1 has published 1 of 2 slices; what is in it is unknown.",
    ),
}


@pytest.mark.parametrize("case", TROUBLE)
def test_a_driver_of_which_something_is_unknown_is_named_with_the_reason(case: str) -> None:
    objects, source, said = TROUBLE[case]
    page = Reader(GPU_CLASS, *objects, source=source)
    assert '<li data-driver="gpu.example.com">' in page.text()
    assert said in page.words()


@pytest.mark.parametrize("source", [Source.AUTO, Source.WITNESS])
def test_a_driver_that_is_seen_live_is_not_unknown_for_want_of_a_count(source: Source) -> None:
    page = Reader(GPU_CLASS, resource_slice(4), source=source)
    assert "<li data-driver=" not in page.text()
    assert "In use: witness (gpu.example.com)." in page.words()


# --- Hostile, empty ---------------------------------------------------------------------------------------------------

HOSTILE = '<script>alert("1")</script>'


def test_whatever_things_are_called_is_text() -> None:
    page = Reader(
        device_class(HOSTILE, declares=f"example.com/{HOSTILE}"),
        resource_slice(
            [device(f"{i}", attributes={"model": HOSTILE, "type": f"{HOSTILE}{i % 2}"}) for i in range(4)],
            pool=HOSTILE,
            node=f"{HOSTILE}'",
        ),
        resource_slice(1, pool=f"{HOSTILE}2", driver=HOSTILE, slices=2),
        notice=HOSTILE,
    )
    text = page.text(f"/?state={HOSTILE}&sort={HOSTILE}")
    assert re.findall("<script[^>]*>", text) == re.findall('<script src="page.js" integrity="[^"]*" defer>', text)
    assert words(text).count(HOSTILE) > 10
    assert HOSTILE not in text


def test_the_page_loads_and_runs_nothing_that_its_policy_does_not_know_by_its_hash() -> None:
    page = Reader(GPU_CLASS, resource_slice(1))
    answered = page.get()
    policy = dict(part.split(" ", 1) for part in answered.headers["content-security-policy"].split("; "))
    style = re.findall("<style>(.*?)</style>", answered.text, re.DOTALL)[0]
    assert policy["style-src"] == f"'{digest(style.encode())}'"
    assert policy["script-src"] == f"'{digest(page.get('/page.js').content)}'"
    assert f'integrity="{policy["script-src"][1:-1]}"' in answered.text
    assert policy["default-src"] == "'none'"
    assert not re.search(r"\sstyle=|\son\w+=|//", answered.text.partition("<body")[2])
    assert set(re.findall(r'\ssrc="(.*?)"', answered.text)) == {"page.js"}


def digest(content: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}"


def test_the_page_ends_with_what_is_used_of_the_rights_that_can_be_withheld() -> None:
    assert "Vacancy 1.2.3. Uses pool statuses: on, wake: off." in Reader(GPU_CLASS).words()


def test_a_notice_stands_on_the_page() -> None:
    text = Reader(GPU_CLASS, notice="cluster.yaml:1: not YAML").text()
    assert "<p class=notice role=status>cluster.yaml:1: not YAML</p>" in text


def test_a_cluster_without_a_class_is_told_what_to_do() -> None:
    page = Reader(resource_slice(1))
    assert page.names() == []
    assert "There is no device class" in page.words()
    assert "kubectl get deviceclasses,resourceslices" in page.words()


def test_before_anything_was_read_the_page_says_so_and_not_that_there_is_nothing() -> None:
    page = Reader(kinds=())
    assert "Nothing is known yet" in page.words()
    assert "readyz?verbose" in page.words()
    assert "no device class" not in page.words()


def test_of_classes_that_are_not_current_nothing_is_known() -> None:
    page = Reader(GPU_CLASS, resource_slice(4), kinds=set(Kind) - {Kind.RESOURCE_SLICES})
    assert "data-vacancy=unknown>" in page.card()
    assert "no source" in page.card_words()
