"""The words sentences are made of: every reason in a few words, and names, numbers and ages in bounded ones.

All of it is one line of printable ASCII. What comes from an object may be of any length and may hold any character.
"""

import re
from collections.abc import Sequence
from typing import Final

from app.dra.reasons import Reason
from app.dra.scope import QUEUE_LABEL

PHRASES: Final = {
    Reason.NoGPUCapacity: "no free device",
    Reason.NeverFits: "no node has enough devices",
    Reason.HasRoom: "room",
    Reason.FewerThanAsked: "fewer free devices than needed",
    Reason.NoDeviceRequested: "the pod asks for no device",
    Reason.OptedOut: f"the pod chose to wait in the queue by label {QUEUE_LABEL}=true",
    Reason.MirrorPod: "the pod mirrors a static pod",
    Reason.NodeNameSet: "the pod names its node itself",
    Reason.SchedulingGated: "the pod is held back by a scheduling gate",
    Reason.SchedulingGroup: "the pod is scheduled with its group",
    Reason.OtherScheduler: "another scheduler places the pod",
    Reason.DaemonSetPod: "the pod belongs to a DaemonSet",
    Reason.QueueManaged: "a job queue decides when the pod starts",
    Reason.MayPreempt: "the pod may take devices from pods of lower priority",
    Reason.DevicePlugin: "a node may serve it by device plugin",
    Reason.ClaimAllocated: "the claim has its devices already",
    Reason.ClaimMissing: "the resource claim does not exist",
    Reason.TemplateMissing: "the resource claim template does not exist",
    Reason.ClassMissing: "the device class does not exist",
    Reason.AdminAccess: "admin access takes no device away",
    Reason.UnknownField: "something in it cannot be interpreted",
    Reason.FractionalQuantity: "the quantity is not a whole number",
    Reason.Autoscaled: "a new node may bring devices, the pod may wait for it",
    Reason.Dynamic: "devices are made on demand",
    Reason.LookupFailed: "a claim or template could not be read in time",
    Reason.NoMatchingDevice: "no device matches at present",
    Reason.PoolIncomplete: "a pool is not completely published",
    Reason.PoolInvalid: "a pool contradicts itself",
    Reason.OutOfReach: "the only devices are on nodes out of reach",
    Reason.SelectorUnknown: "a selector could not be evaluated, or not yet",
    Reason.Shareable: "devices can be shared",
    Reason.StaleSnapshot: "the last count is too old, or contradicts what is seen now",
    Reason.NoSource: "there is no current count of the devices",
    Reason.InternalError: "an error in Vacancy itself",
}
"""What stands beside the name of a reason wherever a person reads it."""

NEVER_REFUSED: Final = {
    Reason.DevicePlugin: "device plugin",
    Reason.Autoscaled: "autoscaled",
    Reason.Dynamic: "dynamic",
    Reason.NoSource: "names are judged from Kubernetes 1.37 on, where nodes are known",
}
"""Why nobody is refused, however full it is, in a word or two."""

SHOWN_AT_MOST: Final = 4
"""Of others that are named in a line; the rest is counted."""

_NAMES_NODE_OR_POOL: Final = frozenset(
    {Reason.DevicePlugin, Reason.PoolIncomplete, Reason.PoolInvalid, Reason.OutOfReach},
)
"""Reasons whose detail the platform team may want to keep to itself."""

DETAIL_LIMIT: Final = 50
"""Characters of a class, a node or a detail: longer than nearly all names, short enough for a sentence with several."""

_LARGEST_NUMBER: Final = 999_999
"""Above every real count; a quantity can have any number of digits."""

_SHORTEST_CUT: Final = 20
"""With less room than this a cut text says nothing."""

_LONGEST_WORD: Final = 20
"""What is longer is no word but a name or an address, and a part of it is better than nothing."""

_UNPRINTABLE: Final = re.compile(r"[^ -~]")


def reason_in_words(reason: Reason, detail: str = "", *, hide_names: bool = False) -> str:
    """A reason and what it is about: `a pool is not completely published (n5)`."""
    if not detail or (hide_names and reason in _NAMES_NODE_OR_POOL):
        return PHRASES[reason]
    return f"{PHRASES[reason]} ({shortened(detail, DETAIL_LIMIT)})"


def number(value: int) -> str:
    """A count, at most seven characters long."""
    return str(value) if value <= _LARGEST_NUMBER else f"{_LARGEST_NUMBER}+"


def counted_noun(value: int, noun: str) -> str:
    """`1 pool`, `2 pools`."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"


def some(names: Sequence[str]) -> str:
    """`gpu-a, gpu-b and 5 more`."""
    shown, more = names[:SHOWN_AT_MOST], len(names) - SHOWN_AT_MOST
    return f"{', '.join(shown)} and {number(more)} more" if more > 0 else ", ".join(shown)


def behind(devices: int | None, pools: int, drivers: Sequence[str]) -> str:
    """What stands behind a class: `8 devices in 2 pools of gpu.example.com`. None: how many is not known."""
    if devices == 0:
        return "no device at present"
    many = "an unknown number of devices" if devices is None else counted_noun(devices, "device")
    return f"{many} in {counted_noun(pools, 'pool')} of {some(drivers)}" if drivers else many


def age(seconds: float) -> str:
    """`37s`, from two minutes on `5m`, from two hours on `3h`; a time in the future is `0s` old."""
    whole = max(0, int(seconds))
    if whole < 2 * 60:
        return f"{whole}s"
    if whole < 2 * 3600:
        return f"{whole // 60}m"
    return f"{number(whole // 3600)}h"


def as_sentence(ways_out: tuple[str, ...]) -> str:
    """`Try again later, or run on CPU.` as one of several ways out."""
    *others, last = ways_out
    text = f"{', '.join(others)}{',' if len(others) > 1 else ''} or {last}" if others else last
    stop = "" if text.endswith((".", "!", "?")) else "."
    return f"{text[:1].upper()}{text[1:]}{stop}"


def printable(text: str) -> str:
    """One line of ASCII; any other character becomes a question mark."""
    return _UNPRINTABLE.sub("?", " ".join(text.split()))


def shortened(name: str, room: int) -> str:
    """A name within `room` characters (7 or more); its middle gives way, as both ends tell names apart."""
    text = printable(name)
    if len(text) <= room:
        return text
    tail = (room - 3) // 2
    return f"{text[: room - 3 - tail]}...{text[-tail:]}"


def cut(text: str, room: int) -> str:
    """A printable text within `room` characters, ended after a whole word; empty where that would say nothing."""
    if len(text) <= room:
        return text
    if room < _SHORTEST_CUT:
        return ""
    kept = text[: room - 3]
    whole, _, begun = kept.rpartition(" ")
    return f"{(whole if len(begun) < _LONGEST_WORD else kept).rstrip(' ,.;:')}..."
