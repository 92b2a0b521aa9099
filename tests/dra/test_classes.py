"""Which classes an extended resource name may mean."""

import pytest

from app.dra.classes import IMPLICIT_PREFIX, ClassIndex, selectors_of
from app.dra.objects import CELDeviceSelector, DeviceClass, DeviceSelector
from app.dra.selector import Match, Shape
from tests.builders import decoded, device_class

STARTED = 1_000.0
X, Y = "example.com/x", "example.com/y"
NAMES = {"X": X, "Y": Y, "-": None}


def index_after(*events: str, started_at: float = 0.0) -> ClassIndex:
    """`b@200 X`: class b, created at 200, declares X (`-`: nothing). `gone b`: it is deleted."""
    index = ClassIndex(started_at)
    generations: dict[str, int] = {}
    for event in events:
        subject, declares = event.split()
        if subject == "gone":
            index.remove(declares)
            continue
        name, created = subject.split("@")
        generations[name] = generations.get(name, 0) + 1
        index.apply(device_class(name, declares=NAMES[declares], created=float(created), generation=generations[name]))
    return index


def winner(index: ClassIndex, name: str) -> str:
    """The class the rule resolves a name to; `I(a)` is the implicit name of class a."""
    full = IMPLICIT_PREFIX + name[2:-1] if name.startswith("I(") else NAMES[name]
    assert full is not None
    return next(iter(index.claimants(full)), "none")


V3 = ("a@100 X", "b@200 X")
V4 = ("b@200 X", "a@100 X")


@pytest.mark.parametrize(
    ("events", "want"),
    [
        pytest.param(("a@100 X",), {"X": "a", "I(a)": "a"}, id="V1 one class"),
        pytest.param(("a@100 -",), {"X": "none", "I(a)": "a"}, id="V2 a class without a name"),
        pytest.param(V3, {"X": "b", "I(a)": "a", "I(b)": "b"}, id="V3 the newest wins"),
        pytest.param(V4, {"X": "b", "I(a)": "a", "I(b)": "b"}, id="V4 in whatever order they are listed"),
        pytest.param(("a@100 X", "b@100 X"), {"X": "a", "I(b)": "b"}, id="V5 of one second the smallest name"),
        pytest.param(("b@100 X", "a@100 X"), {"X": "a", "I(b)": "b"}, id="V6 in whatever order"),
        pytest.param(("a-10@100 X", "a-9@100 X"), {"X": "a-10"}, id="V7 names are compared byte by byte"),
        pytest.param((*V3, "gone b"), {"X": "a"}, id="V8 the winner is deleted"),
        pytest.param((*V3, "gone a"), {"X": "b"}, id="V9 the loser is deleted"),
        pytest.param((*V4, "gone a"), {"X": "b"}, id="V10 the loser is deleted, listed the other way"),
        pytest.param((*V3, "b@200 -"), {"X": "a", "I(b)": "b"}, id="V11 the winner clears its name"),
        pytest.param((*V3, "b@200 Y"), {"X": "a", "Y": "b"}, id="V12 the winner takes another name"),
        pytest.param((*V3, "a@100 Y"), {"X": "b", "Y": "a"}, id="V13 the loser takes another name"),
        pytest.param((*V3, "c@300 Y", "b@200 Y"), {"X": "a", "Y": "c"}, id="V14 the winner takes a taken name"),
        pytest.param(("b@200 X", "c@300 Y", "b@200 Y"), {"X": "none", "Y": "c"}, id="V15 nobody declares it any more"),
        pytest.param(("a@100 X", "a@100 X"), {"X": "a", "I(a)": "a"}, id="V16 an update that changes nothing"),
        pytest.param(("a@100 -", "a@100 X"), {"X": "a"}, id="V17 a name is set later"),
        pytest.param((*V3, "a@100 -"), {"X": "b", "I(a)": "a"}, id="V18 the loser clears its name"),
        pytest.param(("a@100 X", "gone a", "a@400 X"), {"X": "a"}, id="V20 deleted and created again"),
        pytest.param(("a@100 X", "gone a"), {"X": "none", "I(a)": "none"}, id="V21 deleted"),
        pytest.param(("a@100 X", "b@200 X", "c@150 X"), {"X": "b", "I(c)": "c"}, id="V22 three classes"),
        pytest.param(("b@200 X", "a@100 -", "a@100 X"), {"X": "b", "I(a)": "a"}, id="V23 an old class sets a name"),
    ],
)
def test_the_rule_names_the_winner(events: tuple[str, ...], want: dict[str, str]) -> None:
    index = index_after(*events)
    assert {name: winner(index, name) for name in want} == want


def test_a_class_that_is_being_deleted_still_declares_its_name() -> None:
    """V24: a finalizer holds it."""
    held = decoded(
        {
            "metadata": {
                "name": "a",
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"extendedResourceName": X},
        },
        DeviceClass,
    )
    index = ClassIndex(0.0)
    index.apply(held)
    assert index.claimants(X) == ("a",)


@pytest.mark.parametrize(
    ("events", "want"),
    [
        pytest.param(V3, ("b", "a"), id="both declare it"),
        pytest.param((*V3, "b@200 Y"), ("a", "b"), id="a class that has taken another name"),
        pytest.param((*V3, "b@200 -"), ("a", "b"), id="a class that has cleared its name"),
        pytest.param(("b@200 X", "c@300 Y", "b@200 Y"), (), id="nobody declares it: memory makes no claimant"),
        pytest.param((*V3, "b@200 -", "gone b"), ("a",), id="a class that is gone"),
        pytest.param(
            (*V3, "b@200 -", "gone b", "b@900 -"), ("a", "b"), id="created again without it: by name, not UID"
        ),
        pytest.param(
            ("a@100 X", "c@300 Y", "b@200 X", "b@200 -", "c@300 X", "c@300 -"), ("a", "b", "c"), id="several memories"
        ),
    ],
)
def test_a_class_seen_declaring_a_name_stays_a_claimant(events: tuple[str, ...], want: tuple[str, ...]) -> None:
    assert index_after(*events).claimants(X) == want


@pytest.mark.parametrize(
    ("generation", "declares", "created", "lingers"),
    [
        pytest.param(1, Y, 50, False, id="never edited"),
        pytest.param(None, Y, 50, False, id="no generation counts as never edited"),
        pytest.param(2, Y, 50, True, id="edited once, declares another name: it may have had this one"),
        pytest.param(2, None, 50, False, id="edited once, declares none: no alias is left"),
        pytest.param(3, None, 50, True, id="edited twice"),
        pytest.param(7, Y, 50, True, id="edited often"),
        pytest.param(7, Y, STARTED - 1, True, id="created a second before our start"),
        pytest.param(7, Y, STARTED + 9, True, id="created after our start, and first seen when it had been edited"),
        pytest.param(3, None, None, True, id="of unknown age"),
    ],
)
def test_a_class_edited_before_our_start_may_be_a_forgotten_alias(
    generation: int | None,
    declares: str | None,
    created: float | None,
    lingers: bool,  # noqa: FBT001
) -> None:
    index = ClassIndex(STARTED)
    index.apply(device_class("gpu", declares=X, created=STARTED + 1))
    index.apply(device_class("old", declares=declares, created=created, generation=generation))
    assert index.claimants(X) == (("gpu", "old") if lingers else ("gpu",))
    assert index.claimants("example.com/nobody") == ()


@pytest.mark.parametrize("created", [STARTED, STARTED + 9], ids=["at our start", "after our start"])
def test_a_class_all_of_whose_edits_were_seen_leaves_no_other_alias(created: float) -> None:
    index = ClassIndex(STARTED)
    index.apply(device_class("gpu", declares=X, created=STARTED + 1))
    for generation in (1, 2, 3):
        index.apply(device_class("other", declares=Y, created=created, generation=generation))
    assert index.claimants(X) == ("gpu",)


def test_a_class_of_which_an_edit_was_missed_may_have_declared_any_name() -> None:
    index = ClassIndex(STARTED)
    index.apply(device_class("gpu", declares=X, created=STARTED + 1))
    for generation in (1, 3):
        index.apply(device_class("other", declares=Y, created=STARTED + 1, generation=generation))
    assert index.claimants(X) == ("gpu", "other")


def test_a_creation_time_nobody_can_read_is_an_unknown_age_and_stops_nothing() -> None:
    odd = decoded(
        {"metadata": {"name": "odd", "creationTimestamp": "yesterday", "generation": 3}, "spec": {}}, DeviceClass
    )
    index = ClassIndex(STARTED)
    index.apply(device_class("gpu", declares=X, created=STARTED + 1))
    index.apply(odd)
    assert index.claimants(X) == ("gpu", "odd")


def test_an_implicit_name_means_its_class_alone() -> None:
    index = index_after(*V3, "c@900 -")
    assert index.claimants(IMPLICIT_PREFIX + "a") == ("a",)
    assert index.claimants(IMPLICIT_PREFIX + "nosuch") == ()
    assert index.claimants(IMPLICIT_PREFIX) == ()


def test_names_that_pods_make_up_are_not_remembered() -> None:
    index = index_after("a@100 X")
    before = len(index._claimants)  # noqa: SLF001  # memory is not to be seen from outside
    for number in range(100):
        index.claimants(f"example.com/{number}")
        index.claimants(f"{IMPLICIT_PREFIX}{number}")
    assert len(index._claimants) == before  # noqa: SLF001


def test_answers_given_before_do_not_outlive_a_change() -> None:
    index = index_after("a@100 X")
    assert index.claimants(X) == ("a",)
    index.apply(device_class("b", declares=X, created=200.0))
    assert index.claimants(X) == ("b", "a")
    index.remove("a")
    assert index.claimants(X) == ("b",)
    assert [known.name for known in index] == ["b"]
    assert index.get("a") is None


def test_a_selector_of_an_unknown_kind_may_match() -> None:
    always, unknown = selectors_of([DeviceSelector(CELDeviceSelector("true")), DeviceSelector()])
    shape = Shape("gpu.example.com", b"", b"", allow_multiple=False)
    assert (always.match(shape), unknown.match(shape)) == (Match.YES, Match.UNKNOWN)
    assert selectors_of(None) == ()
