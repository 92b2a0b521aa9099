"""Who holds which device, and who is about to let go."""

from collections import Counter
from collections.abc import Iterable

import pytest

from app.dra.holders import Holders, PodRecord
from app.dra.objects import ResourceClaim
from app.dra.pools import DeviceId
from tests.builders import decoded, pod_record, resource_claim, timestamp

T0 = 1_790_000_000.0


class Ledger:
    """Holders, and what they say of devices. Counts never go below zero."""

    def __init__(self, *, pods_known: bool = True) -> None:
        self.holders = Holders(self.change)
        self.held: Counter[DeviceId] = Counter()
        self.changes: list[tuple[str, int, float]] = []
        if pods_known:
            self.holders.pods_synced(T0)

    def change(self, device: DeviceId, delta: int, when: float, _is_share: bool) -> None:  # noqa: FBT001 - as it is called
        self.held[device] += delta
        self.changes.append((device[2], delta, when))
        assert self.held[device] >= 0

    def claim(self, claim: ResourceClaim, at: float = 0, *, files: bool = False) -> "Ledger":
        self.holders.apply_claim(claim, T0 + at, unreserved_lasts=files)
        return self

    def pods(self, *uids: str, at: float = 0) -> "Ledger":
        for uid in uids:
            self.holders.apply_pod(pod_record(uid), T0 + at)
        return self

    def devices(self, at: float | None = None) -> list[str]:
        """Devices held at a moment."""
        if at is not None:
            self.holders.advance(T0 + at)
        return sorted(device[2] for device in self.held.elements())


def held_by(*consumers: str, name: str = "c1", device: str = "gpu-0") -> ResourceClaim:
    return resource_claim(device, name=name, consumers=consumers)


# --- Who holds --------------------------------------------------------------------------------------------------------


def test_a_claim_of_a_living_pod_holds_its_devices() -> None:
    ledger = Ledger().pods("p1").claim(resource_claim("gpu-0", "gpu-1", consumers=["p1"]))
    assert ledger.devices() == ["gpu-0", "gpu-1"]
    assert ledger.devices(at=1e9) == ["gpu-0", "gpu-1"]
    assert ledger.holders.allocated(("default", "c1"))
    assert not ledger.holders.allocated(("other", "c1"))


def test_a_claim_without_allocation_holds_nothing() -> None:
    ledger = Ledger().claim(resource_claim(allocated=False))
    assert ledger.devices() == []
    assert not ledger.holders.allocated(("default", "c1"))


def test_an_allocation_without_results_is_one_and_holds_nothing() -> None:
    """Row 110: 1.37.2 stores it like this."""
    ledger = Ledger().claim(resource_claim(allocated=True))
    assert ledger.devices() == []
    assert ledger.holders.allocated(("default", "c1"))


def test_admin_access_takes_nothing_from_anybody() -> None:
    assert Ledger().pods("p1").claim(resource_claim("gpu-0", consumers=["p1"], admin_access=True)).devices() == []


def test_a_claim_that_is_gone_or_deallocated_lets_go() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1"))
    ledger.holders.remove_claim(("default", "c1"), T0)
    ledger.holders.remove_claim(("default", "c1"), T0)
    assert ledger.devices() == []
    ledger.claim(held_by("p1"))
    assert ledger.devices() == ["gpu-0"]
    ledger.claim(resource_claim(allocated=False, consumers=["p1"]))
    assert ledger.devices() == []


def test_an_allocation_that_changes_moves_the_hold() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1")).claim(held_by("p1", device="gpu-1"))
    assert ledger.devices() == ["gpu-1"]
    assert [change[:2] for change in ledger.changes] == [("gpu-0", 1), ("gpu-0", -1), ("gpu-1", 1)]


def test_a_claim_of_the_same_name_with_another_uid_is_another_claim() -> None:
    ledger = Ledger().claim(resource_claim("gpu-0", uid="old"), at=0)
    ledger.claim(resource_claim("gpu-0", uid="new"), at=50)
    assert ledger.devices(at=100) == []  # the new one was first seen without consumers 50 seconds ago
    assert ledger.devices(at=111) == ["gpu-0"]


def test_a_device_in_two_claims_is_held_until_both_let_go() -> None:
    ledger = Ledger().pods("p1", "p2").claim(held_by("p1")).claim(held_by("p2", name="c2"))
    ledger.holders.remove_pod(("default", "p1"), T0)
    assert ledger.devices() == ["gpu-0"]
    ledger.holders.remove_pod(("default", "p2"), T0)
    assert ledger.devices() == []


def test_a_device_twice_in_one_claim_is_let_go_whole() -> None:
    """Shares of one device are results of their own."""
    ledger = Ledger().pods("p1").claim(resource_claim("gpu-0", "gpu-0", consumers=["p1"]))
    assert ledger.devices() == ["gpu-0", "gpu-0"]
    ledger.holders.remove_pod(("default", "p1"), T0)
    assert ledger.devices() == []


def test_a_list_that_says_the_same_again_changes_nothing() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1"), at=0)
    before = list(ledger.changes)
    for at in (10, 20):
        ledger.claim(held_by("p1"), at=at).pods("p1", at=at)
    assert ledger.changes == before


# --- When devices were taken ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "taken_at"),
    [
        pytest.param(timestamp(T0 - 30), T0 - 30, id="as the allocation says"),
        pytest.param(None, T0, id="when it was first seen, if it does not say"),
        pytest.param(timestamp(T0 + 3_600), T0, id="not in our future: a clock ahead must not outdate every count"),
        pytest.param("yesterday", T0, id="not by a time nobody can read"),
        pytest.param("2026-01-01T00:00:00", T0, id="nor by one without a zone"),
        pytest.param("", T0, id="nor by an empty one"),
    ],
)
def test_a_device_is_taken_when_it_was_allocated(stamp: str | None, taken_at: float) -> None:
    status = {
        "allocation": {
            "devices": {"results": [{"driver": "d", "pool": "n1", "device": "g"}]},
            "allocationTimestamp": stamp,
        },
        "reservedFor": [{"resource": "pods", "uid": "p1"}],
    }
    ledger = Ledger().pods("p1").claim(decoded({"metadata": {"name": "c1"}, "status": status}, ResourceClaim))
    assert ledger.changes == [("g", 1, taken_at)]


def test_a_holder_that_holds_again_took_its_device_long_ago() -> None:
    ledger = Ledger().claim(resource_claim("gpu-0", at=T0 - 500))
    assert ledger.devices(at=61) == ["gpu-0"]
    assert ledger.changes[-1] == ("gpu-0", 1, T0 - 500)


# --- Letting go -------------------------------------------------------------------------------------------------------


def test_row_111_the_pod_is_gone() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1"))
    ledger.holders.remove_pod(("default", "p1"), T0 + 5)
    assert ledger.devices(at=1e9) == []


def test_row_125_the_pod_was_gone_before_we_started() -> None:
    ledger = Ledger(pods_known=False).claim(held_by("p1"))
    assert ledger.devices() == ["gpu-0"]  # nothing proves it yet
    ledger.holders.pods_synced(T0)
    assert ledger.devices() == []


def test_row_126_a_pod_of_that_name_with_another_uid_is_another_pod() -> None:
    ledger = Ledger().pods("uid-1").claim(held_by("uid-1"))
    ledger.holders.apply_pod(PodRecord("uid-2", "default", "uid-1"), T0)  # its deletion was not heard
    assert ledger.devices() == []
    ledger.holders.remove_pod(("default", "uid-1"), T0)
    ledger.claim(held_by("uid-2"))
    assert ledger.devices() == []


def test_row_123_the_pod_has_ended() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1"))
    ledger.holders.end_pod(pod_record("p1"), T0)
    assert ledger.devices(at=1e9) == []
    ledger.pods("p1")  # the other watch is late
    assert ledger.devices(at=1e9) == []


@pytest.mark.parametrize(
    ("deadline", "at", "held"),
    [
        pytest.param(40, 0, False, id="row 143: a deadline in 40 seconds"),
        pytest.param(40, 100, False, id="60 seconds past, to the second"),
        pytest.param(40, 100.001, True, id="a moment later"),
        pytest.param(-600, 0, True, id="row 142: 10 minutes past, a dead kubelet"),
        pytest.param(-60, 0, False, id="60 seconds past at first sight"),
    ],
)
def test_a_pod_being_deleted_lets_go_until_a_minute_after_its_deadline(
    deadline: float,
    at: float,
    held: bool,  # noqa: FBT001
) -> None:
    ledger = Ledger().claim(held_by("p1"))
    ledger.holders.apply_pod(pod_record("p1", deadline=T0 + deadline), T0)
    assert bool(ledger.devices(at=at)) is held


def test_a_deadline_that_moves_counts_as_it_is_now() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1"))
    ledger.holders.apply_pod(pod_record("p1", deadline=T0 + 600), T0)
    ledger.holders.apply_pod(pod_record("p1", deadline=T0), T0 + 1)
    assert ledger.devices(at=60) == []
    assert ledger.devices(at=61) == ["gpu-0"]
    ledger.holders.apply_pod(pod_record("p1", deadline=T0 + 100), T0 + 70)
    assert ledger.devices(at=160) == []
    assert ledger.devices(at=161) == ["gpu-0"]


@pytest.mark.parametrize(
    ("gone", "held"),
    [
        pytest.param(["p1"], True, id="one of two consumers"),
        pytest.param(["p1", "p2"], False, id="both"),
    ],
)
def test_every_consumer_must_be_about_to_let_go(gone: Iterable[str], held: bool) -> None:  # noqa: FBT001
    ledger = Ledger().pods("p1", "p2").claim(held_by("p1", "p2"))
    for uid in gone:
        ledger.holders.remove_pod(("default", uid), T0)
    assert bool(ledger.devices()) is held


@pytest.mark.parametrize(
    "reference", [{"resource": "jobs", "apiGroup": "batch"}, {"resource": "pods", "apiGroup": "x.io"}]
)
def test_a_consumer_that_is_no_pod_holds(reference: dict[str, str]) -> None:
    status = {
        "allocation": {"devices": {"results": [{"driver": "d", "pool": "n1", "device": "g"}]}},
        "reservedFor": [{**reference, "name": "j", "uid": "u"}, {"resource": "pods", "name": "p", "uid": "gone"}],
    }
    ledger = Ledger().claim(decoded({"metadata": {"name": "c1"}, "status": status}, ResourceClaim))
    assert ledger.devices(at=1e9) == ["g"]


def test_a_consumer_without_a_uid_is_no_pod_we_know() -> None:
    status = {
        "allocation": {"devices": {"results": [{"driver": "d", "pool": "n1", "device": "g"}]}},
        "reservedFor": [{"resource": "pods", "name": "p1"}],
    }
    ledger = Ledger().pods("p1").claim(decoded({"metadata": {"name": "c1"}, "status": status}, ResourceClaim))
    assert ledger.devices() == []  # it can only admit


def test_rows_116_and_117_a_claim_without_consumers_lets_go_for_a_minute() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1"), at=0)
    assert ledger.devices() == ["gpu-0"]
    ledger.claim(held_by(), at=100)  # first seen without one
    assert ledger.devices(at=160) == []
    assert ledger.devices(at=160.5) == ["gpu-0"]


def test_a_list_without_consumers_again_does_not_start_the_minute_anew() -> None:
    ledger = Ledger()
    for at in (0, 30, 59):
        ledger.claim(held_by(), at=at)
    assert ledger.devices(at=61) == ["gpu-0"]
    ledger.claim(held_by(), at=70)
    assert ledger.devices(at=70) == ["gpu-0"]


def test_a_consumer_in_between_does_start_it_anew() -> None:
    ledger = Ledger().pods("p1").claim(held_by(), at=0).claim(held_by("p1"), at=30)
    assert ledger.devices(at=40) == ["gpu-0"]
    ledger.claim(held_by(), at=50)
    assert ledger.devices(at=110) == []
    assert ledger.devices(at=111) == ["gpu-0"]


def test_in_files_a_claim_without_consumers_lets_go_for_ever() -> None:
    assert Ledger().claim(held_by(), files=True).devices(at=1e9) == []


# --- Two watches of pods, in any order --------------------------------------------------------------------------------


def test_an_end_may_be_heard_before_the_pod_exists_for_us() -> None:
    ledger = Ledger().claim(held_by("p1"))
    ledger.holders.end_pod(pod_record("p1"), T0)
    ledger.pods("p1")
    assert ledger.devices() == []


def test_an_end_is_heard_of_only_through_the_pod_while_it_exists() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1"))
    ledger.holders.end_pod(pod_record("p1"), T0)
    ledger.holders.forget_end(("default", "p1"), T0)  # the watch of ended pods was faster
    assert ledger.devices() == []
    ledger.holders.remove_pod(("default", "p1"), T0)
    assert ledger.devices() == []


def test_the_next_pod_of_the_name_has_not_ended() -> None:
    ledger = Ledger()
    for uid in ("uid-1", "uid-2"):
        ledger.holders.apply_pod(PodRecord(uid, "default", "job-0"), T0)
        ledger.claim(held_by(uid))
        assert ledger.devices() == ["gpu-0"]
        ledger.holders.end_pod(PodRecord(uid, "default", "job-0"), T0)
        assert ledger.devices() == []


@pytest.mark.parametrize("late", ["the deletion", "the end"])
def test_pods_that_come_and_go_leave_nothing_behind(late: str) -> None:
    holders = Ledger().holders
    for number in range(50):
        pod = PodRecord(f"uid-{number}", "default", f"job-{number % 2}")
        holders.apply_pod(pod, T0)
        name = (pod.namespace, pod.name)
        if late == "the end":
            holders.remove_pod(name, T0)
        holders.end_pod(pod, T0)
        holders.forget_end(name, T0)
        if late == "the deletion":
            holders.remove_pod(name, T0)
    kept = (holders._ended, holders._ended_uids, holders._pods, holders._pod_uids)  # noqa: SLF001
    assert [len(each) for each in kept] == [0, 0, 0, 0]


def test_the_next_end_of_a_name_takes_the_place_of_one_whose_deletion_was_not_heard() -> None:
    holders = Ledger().pods("p1").holders
    holders.end_pod(pod_record("p1"), T0)
    holders.remove_pod(("default", "p1"), T0)
    holders.end_pod(PodRecord("uid-2", "default", "p1"), T0)
    assert holders._ended == {"uid-2"}  # noqa: SLF001


def test_an_end_outlives_a_list_of_ended_pods_without_it_while_the_pod_exists() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1"))
    ledger.holders.end_pod(pod_record("p1"), T0)
    for name in list(ledger.holders.ended_names()):
        ledger.holders.forget_end(name, T0)
    assert ledger.devices() == []
    assert list(ledger.holders.ended_names()) == []


# --- Time and memory --------------------------------------------------------------------------------------------------


def test_events_that_repeat_put_nothing_on_the_heap() -> None:
    ledger = Ledger()
    ledger.holders.apply_pod(pod_record("p1", deadline=T0 + 3_600), T0)
    for at in range(100):
        ledger.claim(held_by("p1"), at=at).claim(held_by(name="c2"), at=at)
    assert len(ledger.holders._due) == 2  # noqa: SLF001  # memory is not to be seen from outside
    assert ledger.devices(at=4_000) == ["gpu-0", "gpu-0"]
    assert ledger.holders._due == []  # noqa: SLF001


def test_time_that_goes_back_breaks_nothing() -> None:
    ledger = Ledger().claim(held_by(), at=0)
    assert ledger.devices(at=61) == ["gpu-0"]
    assert ledger.devices(at=-500) == ["gpu-0"]
    ledger.claim(held_by(), at=-500)
    assert ledger.devices(at=60) == []
    assert ledger.devices(at=61) == ["gpu-0"]


def test_names_are_those_of_what_is_known() -> None:
    ledger = Ledger().pods("p1").claim(held_by("p1")).claim(resource_claim(name="c2"))
    assert list(ledger.holders.claim_names()) == [("default", "c1")]
    assert list(ledger.holders.pod_names()) == [("default", "p1")]
    nameless = decoded({"metadata": {}, "status": {"allocation": {}}}, ResourceClaim)
    assert ("", "") in ledger.claim(nameless).holders.claim_names()
