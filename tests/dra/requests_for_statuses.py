"""Pool status requests and their answers, as the API server stores them, and what a driver's answers conclude."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from app.dra.reasons import Reason
from app.dra.snapshot import DriverStatus, driver_status, status_vacancy
from app.dra.vacancy import ResourcePoolStatusRequest, Vacancy

FREE, FULL, UNKNOWN = Vacancy.FREE, Vacancy.FULL, Vacancy.UNKNOWN
GPU = "gpu.example.com"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
MAX_AGE = 90.0

Json = dict[str, Any]


def pool(name: str, *, free: int = 0, generation: int | None = 1, driver: str = GPU, **fields: object) -> Json:
    """Four devices, `free` of them available."""
    counts = {"totalDevices": 4, "allocatedDevices": 4 - free, "availableDevices": free, "unavailableDevices": 0}
    return {"driver": driver, "poolName": name, "generation": generation} | counts | fields


def unset_counts(name: str) -> Json:
    return {"driver": GPU, "poolName": name, "generation": 1, "validationError": "PoolIncomplete: 1/2 slices"}


def condition(kind: str = "Complete", at: float = NOON, status: str = "True") -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": datetime.fromtimestamp(at, UTC).isoformat()}


def request(*conditions: Json, status: Json | None = None, driver: str = GPU, only: str | None = None) -> Json:
    spec = {"driver": driver, "limit": 1000} | ({} if only is None else {"poolName": only})
    whole = {"metadata": {"name": "vacancy-1"}, "spec": spec}
    return whole if status is None else whole | {"status": status | {"conditions": list(conditions)}}


def answered(*pools: Json, count: int | None = None, at: float = NOON, only: str | None = None) -> Json:
    """A request with `Complete`, counted at `at`."""
    count = len(pools) if count is None else count
    return request(condition(at=at), status={"poolCount": count, "pools": list(pools)}, only=only)


def decoded(*requests: Json) -> list[ResourcePoolStatusRequest]:
    return msgspec.convert(list(requests), list[ResourcePoolStatusRequest])


def status_of(*requests: Json, received_at: float = NOON) -> DriverStatus:
    return driver_status(decoded(*requests), received_at=received_at)


def conclusion(status: DriverStatus | None, now: float = NOON, **pools: int) -> tuple[Vacancy, Reason]:
    return status_vacancy(status, pools, tolerates=False, now=now, max_age_seconds=MAX_AGE)


UNANSWERED = request()
BOTH_FULL = answered(pool("n1"), pool("n2"))
