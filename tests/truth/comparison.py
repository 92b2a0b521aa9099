"""What a verdict is worth, held against the oracle's answer."""

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.dra.reasons import Reason
from app.dra.verdict import Outcome, Verdict
from tests.controlplane.client import Json
from tests.truth.stories import Story, claimants, seconds

FRESH_SECONDS = 120.0
IMPLICIT = "deviceclass.resource.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Said:
    """What the product says of a pod."""

    refused: bool
    reason: str
    """Of the whole verdict."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Of each need, as far as they are told."""
    watched: bool = True
    """It has seen the history of the classes."""
    counts: bool = False
    """It looks at pool statuses, which are older than the latest changes."""

    @classmethod
    def of(cls, verdict: Verdict, *, watched: bool) -> "Said":
        """What a verdict says."""
        reasons = {need.name: str(need.reason) for need in verdict.needs}
        return cls(verdict.outcome is Outcome.FULL, str(verdict.reason), reasons, watched)

    def about(self, asks: Iterable[Json]) -> str:
        """What it says of the first of these asks."""
        return next((self.reasons.get(ask["name"], self.reason) for ask in asks), self.reason)


class Worth(enum.StrEnum):
    """Of one verdict."""

    WRONG = "wrong"
    """Refused, though the scheduler would bind the pod."""
    RIGHT = "right"
    """Refused, and the scheduler would not."""
    ROOM = "room"
    """Admitted, and the scheduler would bind it."""
    OTHER = "other"
    """Admitted, and not bound for want of something else than any one device."""
    ON_PURPOSE = "on purpose"
    """Admitted, though every device is taken: the contract wants it so."""
    MISS = "miss"
    """Admitted, though every device is taken."""


@dataclass(slots=True)
class Figures:
    """What came out of a run: how often what was said for which reason."""

    said: Counter[tuple[Worth, str]] = field(default_factory=Counter)

    def note(self, worth: Worth, reason: str) -> int:
        """One verdict more; how many of its kind there are now."""
        self.said[worth, reason] += 1
        return self.said[worth, reason]

    def reasons(self, worth: Worth) -> dict[str, int]:
        """How often each reason was given for what is worth that."""
        return {reason: count for (each, reason), count in self.said.most_common() if each is worth}

    def count(self, worth: Worth) -> int:
        """How many there are of it."""
        return sum(self.reasons(worth).values())

    @property
    def recall(self) -> float:
        """How many of the pods that should be refused are."""
        right, missed = self.count(Worth.RIGHT), self.count(Worth.MISS)
        return right / max(1, right + missed)

    def lines(self) -> str:
        """All of it, for a person."""
        counts = ", ".join(f"{self.count(worth)} {worth}" for worth in Worth)
        details = [
            f"  {worth}: " + ", ".join(f"{reason} {count}" for reason, count in self.reasons(worth).items())
            for worth in (Worth.WRONG, Worth.MISS, Worth.ON_PURPOSE)
            if self.count(worth)
        ]
        return "\n".join([f"{counts}; recall {self.recall:.2%}", *details])


def worth(story: Story, said: Said, answer: Json) -> tuple[Worth, str]:
    """What it is worth, and the reason it gives. `answer` is the oracle's."""
    if answer["nodes"]:
        return (Worth.WRONG if said.refused else Worth.ROOM), said.reason
    if said.refused:
        return Worth.RIGHT, said.reason
    known = claimants(story, watched=said.watched)
    full = [ask for ask in answer["asks"] if _full(ask, known)]
    if not full:
        return Worth.OTHER, said.reason
    excused = all(_on_purpose(story, ask, said) for ask in full)
    return (Worth.ON_PURPOSE if excused else Worth.MISS), said.about(full)


def _full(ask: Json, known: Mapping[str, list[str]]) -> bool:
    """Not one device could be had, though there are some; then the contract wants a refusal.

    A name that no class declares now is none of DRA's. An alternative that matches nothing is neutral among the
    claimants of a name, and a doubt in a claim.
    """
    by_name = "." in ask["name"].split("/")[0]
    options = ask["alternatives"]
    if by_name and not ask["name"].startswith(IMPLICIT):
        options = [option for option in options if option["class"] in known.get(ask["name"], ())]
    empty = [option for option in options if option["matching"] == 0]
    if any(option["matching"] < 0 or option["reached"] for option in options) or len(empty) == len(options):
        return False
    return by_name or not empty


def _on_purpose(story: Story, ask: Json, said: Said) -> bool:
    """Whether the story has what the reason speaks of."""
    options = ask["alternatives"]
    shown: dict[str, bool] = {
        Reason.DevicePlugin: ask["name"] in _plugins(story) | story.served,
        Reason.AdminAccess: any(option.get("admin") for option in options),
        Reason.PoolIncomplete: not _whole(story),
        Reason.PoolInvalid: not _whole(story),
        Reason.Shareable: any(device.get("allowMultipleAllocations") for device in _devices(story)),
        Reason.OutOfReach: _unreached(options),
    }
    by_reach = _unreached(options) and not _settled(story)
    late = said.counts and story.fresh
    other: dict[str, bool] = {
        Reason.HasRoom: by_reach,
        Reason.FewerThanAsked: by_reach,
        Reason.NeverFits: _unreached(options) or late,
        Reason.PoolIncomplete: not _whole(story) or late,
        Reason.StaleSnapshot: late,
        Reason.NoSource: late,
        Reason.LookupFailed: story.fresh,
    }
    reason = said.about([ask])
    if said.reasons or reason in other:
        return other.get(reason, shown.get(reason, False))
    return by_reach or late or any(shown.values())  # the reason told is the verdict's, perhaps that of another ask


def _plugins(story: Story) -> set[str]:
    """Names that nodes show: capacity holds what allocatable does, and perhaps more."""
    return {name for node in story.of("Node") for name in node["status"].get("capacity", {})}


def _devices(story: Story) -> Iterator[Json]:
    return (device for part in story.of("ResourceSlice") for device in part["spec"].get("devices", ()))


def _unreached(options: list[Json]) -> bool:
    """A device is free, where the pod cannot go."""
    return any(option["anywhere"] for option in options)


def _settled(story: Story) -> bool:
    """Whether all that decides about reach is as it has been for a while, and every device is tied to a node."""
    tied = all(
        part["spec"].get("nodeName") or device.get("nodeName")
        for part in story.of("ResourceSlice")
        for device in part["spec"].get("devices", ())
    )
    made = [each["metadata"]["creationTimestamp"] for kind in ("Node", "ResourceSlice") for each in story.of(kind)]
    return tied and not story.fresh and all(story.now - seconds(each) >= FRESH_SECONDS for each in made)


def _whole(story: Story) -> bool:
    """Whether every pool has one generation, complete and without contradiction."""
    pools: dict[tuple[str, str], list[Json]] = {}
    for part in story.of("ResourceSlice"):
        pools.setdefault((part["spec"]["driver"], part["spec"]["pool"]["name"]), []).append(part)
    for parts in pools.values():
        described = {(p["spec"]["pool"]["generation"], p["spec"]["pool"]["resourceSliceCount"]) for p in parts}
        names = [device["name"] for part in parts for device in part["spec"].get("devices", ())]
        if len(described) > 1 or next(iter(described))[1] != len(parts) or len(names) > len(set(names)):
            return False
    return True
