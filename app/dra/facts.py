"""The numbers behind one need in words: parts of the sentences that `explain` makes."""

from typing import Final

from app.dra.verdict import NeedVerdict, Unreachable
from app.dra.words import DETAIL_LIMIT, counted_noun, number, shortened

_SECOND_LIMIT: Final = 28
"""Characters of what names further classes in a sentence that speaks of one: with all remarks, both must fit."""


def deciding(need: NeedVerdict) -> NeedVerdict:
    """The need with the numbers the answer rests on: those of the winner, or of another claimant."""
    return need.claimant or need


def all_taken(need: NeedVerdict) -> str:
    """`all 8 devices of class gpu.example.com are taken in 2 pools`.

    The numbers are those of the first alternative of a `firstAvailable`; `detail` names the classes of the others.
    """
    if need.claimant:
        winner = shortened(need.class_name, _SECOND_LIMIT)
        return f"class {winner} has the name but no device, and {all_taken(need.claimant)}"
    state = "taken or out of reach" if need.unreachable else "taken"
    pools = f" in {counted_noun(need.pools, 'pool')}" if need.pools else ""
    others = f", and so are those of class {shortened(need.detail, _SECOND_LIMIT)}" if need.detail else ""
    if need.total == 1:
        return f"the only {_devices(need, 1)} is {state}{pools}{others}"
    if need.total:
        return f"all {number(need.total)} {_devices(need, need.total)} are {state}{pools}{others}"
    return f"every {_devices(need, 1)} is {state}{pools}{others}"


def remarks(need: NeedVerdict, *, hide_names: bool) -> str:
    """In brackets, devices that seem to be free and do not count."""
    of_class = deciding(need)
    said = [_out_of_reach(of_class.unreachable, hide_names=hide_names)] if of_class.unreachable else []
    if listed := of_class.listed:
        do = "does" if listed == 1 else "do"
        said.append(f"the pool status lists {number(listed)} as available that {do} not count")
    return f" ({'; '.join(said)})" if said else ""


def _out_of_reach(places: tuple[Unreachable, ...], *, hide_names: bool) -> str:
    """`1 free on n2, which is cordoned`; of several nodes the first is named, the others are summed up."""
    first, *others = places
    node = "a node" if hide_names else shortened(first.node, DETAIL_LIMIT)
    said = f"{number(first.devices)} free on {node}, which {shortened(first.why, DETAIL_LIMIT)}"
    if others:
        said += f", and {number(sum(place.devices for place in others))} on {counted_noun(len(others), 'more node')}"
    return said


def shortage(need: NeedVerdict) -> str:
    """`at most 8 devices of class gpu.example.com are on one node`."""
    of_class, most = deciding(need), deciding(need).largest_block
    claims = f", {_may_claim(need)}," if need.claimant else ""
    if not most:
        return f"fewer {_devices(of_class, need.count)}{claims} are on any node"
    return f"at most {number(most)} {_devices(of_class, most)}{claims} {'is' if most == 1 else 'are'} on one node"


def free(need: NeedVerdict) -> str:
    """`3 of 8 devices of class gpu.example.com in 2 pools are free`."""
    if need.claimant:
        return _free_for_claimant(need, need.claimant)
    if need.free is None or need.total is None:
        return f"a {_devices(need, 1)} is free"
    pools = f" in {counted_noun(need.pools, 'pool')}" if need.pools else ""
    are_free = f"{'is' if need.free == 1 else 'are'} free{largest_free_block(need)}"
    return f"{number(need.free)} of {number(need.total)} {_devices(need, need.total)}{pools} {are_free}"


def _free_for_claimant(winner: NeedVerdict, other: NeedVerdict) -> str:
    """`class gpu-old, which may still claim the name instead of gpu, has 2 of 4 devices free`."""
    said = f"{_class(other)}, {_may_claim(winner)}, has"
    if other.free is None or other.total is None:
        return f"{said} a device free"
    return f"{said} {number(other.free)} of {number(other.total)} devices free{largest_free_block(other)}"


def largest_free_block(need: NeedVerdict) -> str:
    """` (at most 2 on one node)`, where that is fewer than are free."""
    if need.free is None or need.largest_free_block is None or need.largest_free_block >= need.free:
        return ""
    return f" (at most {number(need.largest_free_block)} on one node)"


def for_claimant(need: NeedVerdict) -> str:
    """What class the numbers are of, where it is not the winner."""
    return f", for {_class(need.claimant)}, {_may_claim(need)}" if need.claimant else ""


def _may_claim(winner: NeedVerdict) -> str:
    """How a class that is not the winner comes to be spoken of."""
    return f"which may still claim the name instead of {shortened(winner.class_name, _SECOND_LIMIT)}"


def _class(need: NeedVerdict) -> str:
    return f"class {shortened(need.class_name, DETAIL_LIMIT)}"


def _devices(need: NeedVerdict, count: int) -> str:
    """`devices of class gpu.example.com`; for a claim `matching devices`, as its selectors may leave others out."""
    noun = "matching device" if need.field.startswith("spec.resourceClaims") else "device"
    of_class = f" of class {shortened(need.class_name, DETAIL_LIMIT)}" if need.class_name else ""
    return f"{noun}{'' if count == 1 else 's'}{of_class}"
