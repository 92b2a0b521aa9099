"""One pool status: the decision table of KEP-5677's counts, row by row, and the laws behind it."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dra.reasons import Reason
from app.dra.vacancy import PoolStatus, Vacancy, device_counts, pool_vacancy, why_unknown

FREE, FULL, EMPTY, UNKNOWN = Vacancy.FREE, Vacancy.FULL, Vacancy.EMPTY, Vacancy.UNKNOWN

Json = dict[str, Any]


def pool(total: int, allocated: int, unavailable: int = 0, **fields: object) -> Json:
    """A pool status as the controller of 1.37 writes it."""
    return {
        "driver": "gpu.example.com",
        "poolName": "n1",
        "nodeName": "n1",
        "generation": 1,
        "resourceSliceCount": 1,
        "totalDevices": total,
        "allocatedDevices": allocated,
        "availableDevices": max(0, total - allocated - unavailable),
        "unavailableDevices": unavailable,
        **fields,
    }


def without(status: Json, *fields: str) -> Json:
    return {key: value for key, value in status.items() if key not in fields}


def parts(**types: tuple[int, int]) -> list[Json]:
    """A partition summary: (total, allocatable) by type."""
    return [
        {"attribute": "example.com/profile", "type": name, "total": total, "allocatable": fits}
        for name, (total, fits) in types.items()
    ]


def shares(fully: int, partially: int, *capacity: tuple[object, object, object]) -> Json:
    """A shareable summary: (total, consumed, available) by capacity."""
    return {
        "fullyAvailableDevices": fully,
        "partiallyAvailableDevices": partially,
        "capacity": [
            {"name": f"c{i}", "total": total, "consumed": consumed, "available": available}
            for i, (total, consumed, available) in enumerate(capacity)
        ],
    }


def vacancy(status: Json, *, tolerates: bool) -> Vacancy:
    return pool_vacancy(msgspec.convert(status, PoolStatus), tolerates=tolerates)


USED_UP = ("80Gi", "80Gi", "0")
MISMATCH = 'PartitionCostMismatch: devices of partition type "half" in pool d/n1 consume different counters'
MISSING = "PartitionTypeMissing: pool d/n1 declares partitionTypeAttribute but publishes no sharedCounters"
OVER_CAP = "PartitionSummaryOverCap: pool d/n1 has 33 partition types, exceeding the maximum of 32"
SHARE_OVER_CAP = "ShareableSummaryOverCap: pool d/n1 has 33 shareable capacity keys, exceeding the maximum of 32"
INCOMPLETE = "PoolIncomplete: pool d/n1 is incomplete: observed 1/2 slices at generation 2"

# P4 (node constraints) and 5.5 (stale claims) are the caller's: a pool status knows neither pods nor device names.
TABLE: dict[str, tuple[Json, Vacancy, Vacancy]] = {
    # sentence: pool, vacancy without tolerations, vacancy with
    "P1 no counts at all": (without(pool(0, 0), *(k for k in pool(0, 0) if k.endswith("Devices"))), UNKNOWN, UNKNOWN),
    "P1 total unset": (without(pool(4, 4), "totalDevices"), UNKNOWN, UNKNOWN),
    "P1 allocated unset": (without(pool(4, 4), "allocatedDevices"), UNKNOWN, UNKNOWN),
    "P1 available unset": (without(pool(4, 4), "availableDevices"), UNKNOWN, UNKNOWN),
    "P1 unavailable unset": (without(pool(4, 4), "unavailableDevices"), UNKNOWN, UNKNOWN),
    "P1 a count that is null": (pool(4, 4) | {"unavailableDevices": None}, UNKNOWN, UNKNOWN),
    "P1 incomplete, as a later version may write it": (
        {"driver": "d", "poolName": "n1", "generation": 2, "validationError": INCOMPLETE},
        UNKNOWN,
        UNKNOWN,
    ),
    "P2 unknown error, something available": (pool(4, 3, validationError="New: thing"), FREE, FREE),
    "P2 unknown error, every name taken": (pool(4, 4, validationError="New: thing"), UNKNOWN, UNKNOWN),
    "P2 unknown error, all tainted": (pool(4, 0, 4, validationError="New: thing"), UNKNOWN, FREE),
    "P2 unknown error, no devices, is not neutral": (pool(0, 0, validationError="New: thing"), UNKNOWN, UNKNOWN),
    "P2 an empty error is an error": (pool(4, 4, validationError=""), UNKNOWN, UNKNOWN),
    "P3 no devices": (pool(0, 0), EMPTY, EMPTY),
    "P3 no devices, one still held": (pool(0, 1), EMPTY, EMPTY),
    "P5 all tainted, some allocated too": (pool(4, 2, 4), FULL, FREE),
    "P5 all tainted shareable devices": (
        pool(2, 0, 2, shareableSummary=shares(2, 0, ("80Gi", "0", "80Gi"))),
        FULL,
        FREE,
    ),
    "P5 all tainted partitions": (pool(3, 0, 3, partitionSummary=parts(Full=(1, 1), Half=(2, 2))), FULL, FREE),
    "P5 not with an error beside it": (pool(4, 0, 4, validationError=MISSING), UNKNOWN, FREE),
    "P6 a shareable device nobody uses": (pool(2, 2, shareableSummary=shares(1, 1, USED_UP)), FREE, FREE),
    "P7 shareable devices without capacity never fill": (pool(1, 1, shareableSummary=shares(0, 1)), FREE, FREE),
    "P7 capacity absent": (pool(1, 1, shareableSummary=without(shares(0, 1), "capacity")), FREE, FREE),
    "P8 all shareable devices in use, 60Gi left": (
        pool(2, 2, shareableSummary=shares(0, 2, ("80Gi", "20Gi", "60Gi"))),
        FREE,
        FREE,
    ),
    "P8 one of two capacities left": (pool(2, 2, shareableSummary=shares(0, 2, USED_UP, ("9", "8", "1"))), FREE, FREE),
    "P9 more consumed than there is": (
        pool(2, 1, shareableSummary=shares(0, 1, ("40Gi", "80Gi", "0"))),
        UNKNOWN,
        UNKNOWN,
    ),
    "P10 used up is not proof, another limit may not be published": (
        pool(2, 2, shareableSummary=shares(0, 2, USED_UP)),
        UNKNOWN,
        UNKNOWN,
    ),
    "P10 used up, an exclusive device left": (pool(3, 2, shareableSummary=shares(0, 2, USED_UP)), FREE, FREE),
    "P10 used up, the rest tainted": (pool(3, 2, 1, shareableSummary=shares(0, 2, USED_UP)), UNKNOWN, UNKNOWN),
    "P11 shareable, but too many kinds to sum up, every name taken": (
        pool(4, 4, validationError=SHARE_OVER_CAP),
        UNKNOWN,
        UNKNOWN,
    ),
    "P11 the same, something available": (pool(4, 3, validationError=SHARE_OVER_CAP), FREE, FREE),
    "P12 a partition fits": (pool(3, 1, partitionSummary=parts(Full=(1, 0), Half=(2, 1))), FREE, FREE),
    "P12 a partition fits although nothing is called available": (
        pool(3, 3, partitionSummary=parts(Full=(1, 0), Half=(2, 1))),
        FREE,
        FREE,
    ),
    "P13 counters exhausted although 2 are called available": (
        pool(3, 1, partitionSummary=parts(Full=(1, 0), Half=(2, 0))),
        FULL,
        FULL,
    ),
    "P14 devices outside the summary": (pool(4, 2, partitionSummary=parts(Full=(1, 0), Half=(2, 0))), UNKNOWN, UNKNOWN),
    "P14 devices outside the summary, every name taken": (
        pool(4, 4, partitionSummary=parts(Full=(1, 0), Half=(2, 0))),
        UNKNOWN,
        UNKNOWN,
    ),
    "P15 shareable partitions in use have room nobody counts": (
        pool(3, 3, partitionSummary=parts(Full=(1, 0), Half=(2, 0)), shareableSummary=shares(0, 3, USED_UP)),
        UNKNOWN,
        UNKNOWN,
    ),
    "P16 cost mismatch, something available": (pool(6, 2, validationError=MISMATCH), FREE, FREE),
    "P16 cost mismatch, every name taken": (pool(6, 6, validationError=MISMATCH), UNKNOWN, UNKNOWN),
    "P16 type missing, every name taken": (pool(6, 6, validationError=MISSING), UNKNOWN, UNKNOWN),
    "P16 too many types, tainted leftovers": (pool(6, 4, 2, validationError=OVER_CAP), UNKNOWN, FREE),
    "P16 an error beside a shareable device nobody uses": (
        pool(2, 2, validationError=MISMATCH, shareableSummary=shares(1, 1, USED_UP)),
        FREE,
        FREE,
    ),
    "P17 one available": (pool(4, 3), FREE, FREE),
    "P17 nothing allocated": (pool(4, 0), FREE, FREE),
    "P17 one available beside a tainted one": (pool(4, 2, 1), FREE, FREE),
    "P18 more claims than devices": (pool(4, 5), UNKNOWN, UNKNOWN),
    "P19 every device allocated": (pool(4, 4), FULL, FULL),
    "P19 every device allocated, one tainted as well": (pool(4, 4, 1), FULL, FULL),
    "P20 P21 one allocated, one tainted: two devices or one?": (pool(2, 1, 1), UNKNOWN, FREE),
    "P21 tainted and allocated overlap": (pool(8, 7, 2), UNKNOWN, FREE),
    "P22 all tainted, none allocated": (pool(4, 0, 4), FULL, FREE),
    "P23 P24 nothing available, nothing to explain it": (pool(4, 2) | {"availableDevices": 0}, UNKNOWN, UNKNOWN),
    "P24 more available than there can be": (pool(4, 4) | {"availableDevices": 1}, UNKNOWN, UNKNOWN),
    "P24 no device, yet one available": (pool(0, 0) | {"availableDevices": 1}, UNKNOWN, UNKNOWN),
    "malformed: more tainted than devices": (pool(4, 4, 5), UNKNOWN, UNKNOWN),
    "malformed: negative total": (pool(-4, -4), UNKNOWN, UNKNOWN),
    "malformed: negative allocated": (pool(4, -4, 4) | {"availableDevices": 4}, UNKNOWN, UNKNOWN),
    "malformed: negative available": (pool(4, 4) | {"availableDevices": -1}, UNKNOWN, UNKNOWN),
    "malformed: negative unavailable": (pool(4, 5, -1), UNKNOWN, UNKNOWN),
    "malformed: a quantity that is none": (
        pool(2, 1, 1, shareableSummary=shares(0, 1, ("?", "0", "0"))),
        UNKNOWN,
        UNKNOWN,
    ),
    "malformed: all tainted, a quantity that is none": (
        pool(2, 0, 2, shareableSummary=shares(0, 2, ("80Gi", "0", "lots"))),
        UNKNOWN,
        UNKNOWN,
    ),
    "malformed: a negative quantity": (
        pool(2, 0, 2, shareableSummary=shares(0, 2, ("1", "2", "-1"))),
        UNKNOWN,
        UNKNOWN,
    ),
    "malformed: more shareable devices than devices": (
        pool(2, 0, 2, shareableSummary=shares(2, 1, USED_UP)),
        UNKNOWN,
        UNKNOWN,
    ),
    "malformed: negative allocatable": (pool(1, 1, partitionSummary=parts(Full=(1, -1))), UNKNOWN, UNKNOWN),
    "malformed: more partitions fit than exist": (pool(1, 1, partitionSummary=parts(Full=(1, 2))), UNKNOWN, UNKNOWN),
    "malformed: more partitions than devices": (pool(2, 1, partitionSummary=parts(Full=(3, 0))), UNKNOWN, UNKNOWN),
    "malformed: a partition type twice": (pool(2, 1, partitionSummary=parts(Full=(1, 0)) * 2), UNKNOWN, UNKNOWN),
    "malformed: a partition type without a name": (
        pool(2, 1, partitionSummary=parts(Full=(1, 0), **{"": (1, 0)})),
        UNKNOWN,
        UNKNOWN,
    ),
}


@pytest.mark.parametrize(("status", "plain", "tolerating"), TABLE.values(), ids=TABLE.keys())
def test_a_pool_status_proves(status: Json, plain: Vacancy, tolerating: Vacancy) -> None:
    assert vacancy(status, tolerates=False) is plain
    assert vacancy(status, tolerates=True) is tolerating


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param(without(pool(4, 4), "totalDevices"), Reason.PoolIncomplete, id="counts are unset"),
        pytest.param(pool(4, 4) | {"availableDevices": 1}, Reason.PoolInvalid, id="counts contradict each other"),
        pytest.param(pool(2, 2, shareableSummary=shares(0, 2, USED_UP)), Reason.Shareable, id="devices are shared"),
        pytest.param(pool(2, 1, 1), Reason.NoSource, id="counts cannot tell"),
    ],
)
def test_an_unknown_pool_has_a_reason(status: Json, reason: Reason) -> None:
    assert why_unknown(msgspec.convert(status, PoolStatus)) is reason


def test_a_vacancy_is_no_truth_value() -> None:
    with pytest.raises(TypeError, match="compare it"):
        bool(Vacancy.FULL)


# --- Laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerates", [False, True], ids=["without tolerations", "with tolerations"])
def test_no_plain_pool_with_room_is_called_full(tolerates: bool) -> None:  # noqa: FBT001  # filled in by pytest
    full = 0
    for size in range(5):
        for devices in itertools.product(itertools.product((False, True), repeat=2), repeat=size):
            allocated = sum(taken for taken, _ in devices)
            tainted = sum(taint for _, taint in devices)
            room = any(not taken and (tolerates or not taint) for taken, taint in devices)
            found = vacancy(pool(size, allocated, tainted), tolerates=tolerates)
            assert not (found is FULL and room), devices
            assert not (found is FREE and not room and tolerates), devices
            full += found is FULL
    assert full > 4  # the law is not kept by never saying full


def test_no_partitioned_pool_with_room_is_called_full() -> None:
    cost = {"full": 8, "half-0": 4, "half-1": 4}
    seen = set()
    for used in itertools.chain.from_iterable(itertools.combinations(cost, n) for n in range(4)):
        left = 8 - sum(cost[name] for name in used)
        if left < 0:
            continue
        fits = {kind: min(left // size, sum(n.startswith(kind) for n in cost if n not in used)) for kind, size in
                (("full", 8), ("half", 4))}  # fmt: skip
        status = pool(3, len(used), partitionSummary=parts(full=(1, fits["full"]), half=(2, fits["half"])))
        found = vacancy(status, tolerates=False)
        assert found is (FREE if left else FULL), used
        seen.add(found)
    assert seen == {FREE, FULL}


counts = st.integers(-1, 4) | st.none()
quantities = st.sampled_from(["0", "20Gi", "80Gi", 0, 1.5])  # a malformed one, lost, leaves a well-formed summary
summaries = st.fixed_dictionaries(
    {
        "fullyAvailableDevices": st.integers(0, 2),
        "partiallyAvailableDevices": st.integers(0, 2),
        "capacity": st.lists(
            st.fixed_dictionaries({"total": quantities, "consumed": quantities, "available": quantities}), max_size=2
        ),
    }
)
partitions = st.lists(
    st.fixed_dictionaries(
        {
            "attribute": st.just("example.com/profile"),
            "type": st.sampled_from(["Full", "Half"]),
            "total": st.integers(0, 3),
            "allocatable": st.integers(-1, 2),
        }
    ),
    max_size=2,
)
sensible = st.builds(pool, st.integers(0, 4), st.integers(0, 5), st.integers(0, 4))
odd = st.fixed_dictionaries(
    {f"{name}Devices": counts for name in ("total", "allocated", "available", "unavailable")}
).map(lambda four: pool(0, 0) | four)
extras = st.fixed_dictionaries(
    {},
    optional={
        "partitionSummary": partitions,
        "shareableSummary": summaries,
        "validationError": st.sampled_from([MISMATCH, "New: thing"]),
    },
)
pools = st.builds(lambda status, extra: status | extra, sensible | odd, extras)

# A lost summary or error leaves a plain pool behind, as the API has it: absent means there is none.
VOICES = {"partitionSummary", "shareableSummary", "validationError"}


def fields(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every field, at any depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if isinstance(value, dict):
            yield (*path, key)
        yield from fields(inner, (*path, key))


def unset(status: Json, path: tuple[str | int, ...]) -> Json:
    """A copy without the field at `path`."""
    changed = copy.deepcopy(status)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return changed


@given(status=pools, tolerates=st.booleans())
def test_losing_a_field_never_makes_a_pool_full(status: Json, *, tolerates: bool) -> None:
    if vacancy(status, tolerates=tolerates) is FULL:
        return
    for path in fields(status):
        if path[-1] not in VOICES:
            assert vacancy(unset(status, path), tolerates=tolerates) is not FULL, path


@given(status=pools, voice=st.sampled_from(sorted(VOICES)), tolerates=st.booleans())
def test_a_lost_summary_or_error_is_missed_only_where_the_counts_say_full(
    status: Json, voice: str, *, tolerates: bool
) -> None:
    left = without(status, voice)
    if vacancy(status, tolerates=tolerates) is FULL or vacancy(left, tolerates=tolerates) is not FULL:
        return
    found = device_counts(msgspec.convert(left, PoolStatus))
    assert found is not None
    exhausted = "partitionSummary" in left  # the API sends no summary beside an error
    assert exhausted or found.allocated == found.total or (found.unavailable == found.total and not tolerates)


@given(status=pools)
def test_tolerations_never_make_a_pool_full(status: Json) -> None:
    if vacancy(status, tolerates=True) is FULL:
        assert vacancy(status, tolerates=False) is FULL
