"""What "1" of a name means now, as JSON: `GET /api/v1/explain/NAME` and `vacancy explain NAME -o json`."""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:  # a client reads these structs, and what judges would cost it 0.1 s (measured)
    from app.dra.meaning import Meaning


class ClaimantReport(msgspec.Struct, frozen=True, rename="camel"):
    """A device class the scheduler may resolve the name to."""

    name: str
    declares: bool
    why: str
    vacancy: str
    reason: str
    total: int | None
    free: int | None


class ValueReport(msgspec.Struct, frozen=True, rename="camel"):
    """How many devices have one value of an attribute."""

    value: str
    devices: int


class SpreadReport(msgspec.Struct, frozen=True, rename="camel"):
    """An attribute or capacity the devices differ in."""

    attribute: str
    values: tuple[ValueReport, ...]


class MeaningReport(msgspec.Struct, frozen=True, rename="camel"):
    """The answer. Claimants: the winner by the rule first; none for a name nobody knows; a refusal needs all full."""

    name: str
    winner: str
    claimants: tuple[ClaimantReport, ...]
    held_back_by: str
    """A class that is not the winner and keeps refusals back; empty for none."""
    plugin_node: str
    """A node that may serve the name by a device plugin, which keeps refusals back too; empty for none."""
    never_refused: str
    """Why nobody who asks by the name is refused, free or not: a reason; empty: they may be."""
    drivers: tuple[str, ...]
    pools: int
    """Those with matching devices, and those that may have some."""
    devices: int | None
    """Null: how many there are is not known."""
    unequal: bool
    """Whether two devices behind the name differ in more than their place."""
    spreads: tuple[SpreadReport, ...]


def meaning_report(meaning: "Meaning", *, hide_names: bool) -> MeaningReport:
    """The meaning in its wire form."""
    hidden = hide_names and meaning.plugin_node
    return MeaningReport(
        name=meaning.name,
        winner=meaning.winner,
        claimants=tuple(
            ClaimantReport(each.name, each.declares, each.why, each.vacancy, each.reason, each.total, each.free)
            for each in meaning.claimants
        ),
        held_back_by=meaning.held_back_by,
        plugin_node="a node" if hidden else meaning.plugin_node,
        never_refused=meaning.never_refused or "",
        drivers=meaning.drivers,
        pools=meaning.pools,
        devices=meaning.devices,
        unequal=meaning.unequal,
        spreads=tuple(
            SpreadReport(spread.attribute, tuple(ValueReport(*value) for value in spread.values))
            for spread in meaning.spreads
            if not (hide_names and spread.private)
        ),
    )
