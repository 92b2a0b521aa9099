"""The capacity table of a large cluster, as one with several kinds of GPU has it."""

from dataclasses import replace

from app.dra.capacity import Capacity, ClassCapacity, Counts, PoolCapacity
from app.dra.names import Name
from app.dra.reasons import Reason
from app.dra.spreads import Spread
from app.dra.vacancy import Vacancy
from app.web.capacity import capacity_report
from app.web.history import MINUTES, History
from app.web.page import CapacityPage
from app.web.pages import Pages
from app.web.table import Table
from tests.builders import NOON


def many_classes(count: int, pools: int) -> tuple[ClassCapacity, ...]:
    """So many classes, each with so many pools of its own."""
    return tuple(_a_class(number, pools) for number in range(count))


def _a_class(number: int, pools: int) -> ClassCapacity:
    name = f"gpu-a100-80gb-{number:02}"
    total, free = 8 * pools, number % (8 * pools)
    rows = tuple(
        PoolCapacity("gpu.example.com", pool, pool, Counts(8, 5, 3, 0), Vacancy.FREE, Reason.HasRoom)
        for pool in (f"gpu-node-{number:03}-{index:02}" for index in range(pools))
    )
    names = (
        Name(f"example.com/a100-80gb-{number:02}", explicit=True, claimants=(name,), plugin_node=""),
        Name(f"deviceclass.resource.kubernetes.io/{name}", explicit=False, claimants=(name,), plugin_node=""),
    )
    memory = (("40Gi", 4), ("80Gi", total - 4)) if number % 2 else (("80Gi", total),)
    spreads = (
        Spread("gpu.example.com/memory", memory, capacity=True),
        Spread("gpu.example.com/productName", (("NVIDIA A100-SXM4-80GB", total),)),
        Spread("gpu.example.com/architecture", (("Ampere", total),)),
    )
    return ClassCapacity(
        name=name,
        extended_resource_name=names[0].text,
        counts=Counts(total, total - free, free, 0),
        listed=0,
        vacancy=Vacancy.FREE if free else Vacancy.FULL,
        judged=Vacancy.FREE if free else Vacancy.FULL,
        reason=Reason.HasRoom if free else Reason.NoGPUCapacity,
        age_seconds=37.0,
        source="both",
        pools=rows,
        names=names,
        spreads=spreads,
    )


def a_table(classes: tuple[ClassCapacity, ...]) -> Table:
    """The table of these."""
    return Table(NOON, capacity_report(Capacity(NOON, classes), hide_names=False), classes, {})


def a_page(classes: tuple[ClassCapacity, ...]) -> CapacityPage:
    """A page with a line in which every sixth minute something changed."""
    history = History()
    for minute in range(MINUTES):
        moved = (replace(each, counts=replace(each.counts, available=minute // 6)) for each in classes)
        history.note(moved)
    return CapacityPage(Pages(), history, version="1.2.3", hide_names=False)
