"""All tallies: one for every ask that was made, made when it is asked for the first time and then kept current.

A new tally has to look at every device once. Up to a bound that is done at once; in a larger cluster it is spread over
steps, so that no review waits for another one's new selector. Until then the tally is not complete and says unknown.

Work is counted in looks: one is what a usual selector needs for one device, about 5 us (measured).
"""

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from types import TracebackType

from app.dra.demand import Ask
from app.dra.pools import Count, DeviceState, PoolState, SliceState
from app.dra.selector import EVALUATION, Match, Selector, Shape, evaluations
from app.dra.tally import Tally

TALLIES_AT_MOST = 2000
"""Asks kept at once; the one not asked for longest goes. A cluster has tens of classes and few selectors of claims."""

COUNTED_AT_MOST = 1_000_000
"""Devices in all tallies together, about 90 bytes each (measured): selectors of tenants must not fill the memory."""

DEVICES_AT_ONCE = 250
"""Looks a review may have to wait for: about 2 ms, counting included."""

COUNTED_SOON = 5_000
"""Looks in the background within which a new ask may be waited for: about 25 ms of work in 100 ms."""

NEW_ASKS_AT_ONCE = 8
"""New asks of one review: a pod with claims asks for one to four things, a template of a tenant for 32 x 8 at most."""

LOOKS_IN_A_ROW = 100
"""At which a step ends within a slice."""

LOOKS_UNWEIGHED = 10_000
"""Between two looks at how much is kept: each look counts one device more at most."""


class Tallies:
    """Tallies by ask. `pools` gives all pools.

    As a context they are those of one review: while it lasts, all new ones together take no more looks at once than a
    single one. What is asked for the first time is counted later; of asks beyond `new_asks_at_once` nothing is kept, so
    that no review can push out what all others ask for.
    """

    def __init__(self, pools: Callable[[], Iterable[PoolState]]) -> None:
        """No asks yet."""
        self._pools = pools
        self._kept: OrderedDict[Ask, Tally] = OrderedDict()
        self._unfinished: dict[Tally, tuple[Selector, ...]] = {}
        """Those for which not every device has been looked at."""
        self._pass: Iterator[int] | None = None
        """What goes on in the background: all devices are looked at, for all of these that there were at its start."""
        self._worked = self._soon_until = 0.0
        """Looks taken by `work`, and up to how many of them the newest ask may be waited for."""
        self._unweighed = 0.0
        self._dropped: set[Tally] = set()
        self._sweep: Iterator[int] = iter(())
        self.devices_at_once: float = DEVICES_AT_ONCE
        """How many looks a new tally takes before its first answer."""
        self.new_asks_at_once: float = NEW_ASKS_AT_ONCE
        self._looks_left: float | None = None
        """What is left to the review that is going on; None: there is none, every ask is counted by itself."""
        self._asks_left: float = 0
        self._last: tuple[Count, ...] = ()
        """What `_shared` gave out last."""

    def count_at_once(self) -> None:
        """From now on, however long it takes: there are no reviews that would have to wait."""
        self.devices_at_once = self.new_asks_at_once = float("inf")

    def __enter__(self) -> None:
        """A review begins."""
        self._looks_left, self._asks_left = self.devices_at_once, self.new_asks_at_once

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """A review has ended."""
        self._looks_left = None

    def get(self, ask: Ask, selectors: Callable[[Ask], tuple[Selector, ...]]) -> Tally:
        """The tally of an ask; `selectors` gives those of class and request when it is new."""
        tally = self._kept.get(ask)
        if tally is not None:
            self._kept.move_to_end(ask)
            return tally
        reviewing = self._looks_left is not None
        if reviewing and self._asks_left <= 0:
            return Tally(ask, ())  # never complete
        chosen = selectors(ask)
        tally = self._kept[ask] = Tally(ask, chosen)
        self._unfinished[tally] = chosen
        self._soon_until = self._worked + COUNTED_SOON
        looks = self.devices_at_once if self._looks_left is None else self._looks_left
        left = _taken(self._fill({tally: chosen}), looks)
        if reviewing:
            self._looks_left, self._asks_left = left, self._asks_left - 1
        self._forget()
        return tally

    def counts_soon(self) -> bool:
        """Whether what was asked for the first time a moment ago is still being counted."""
        return bool(self._unfinished) and self._worked < self._soon_until

    def work(self, looks: int) -> bool:
        """Go on with what is not complete, for about so many looks, and let go; whether there is more to do."""
        self._worked += looks
        if self._unfinished:
            steps = self._pass or self._fill(dict(self._unfinished))
            self._pass = None if _taken(steps, looks) > 0 else steps
            self._unweighed += looks
            if self._pass is None or self._unweighed >= LOOKS_UNWEIGHED:
                self._forget()
        else:
            self._pass = None
        self._let_go(looks)
        return bool(self._unfinished or self._dropped)

    def add(self, device: DeviceState) -> None:
        """A device counts from now on."""
        driver = device.pool.driver
        tallies = [tally for tally in self._kept.values() if not tally.excludes(driver)]
        if tallies:
            shape = device.shape
            device.tallies = self._shared(tuple([each for each in tallies if _included(each, device, shape)]))

    def block(self, pool: PoolState) -> None:
        """The condition of a pool has changed."""
        for tally in self._kept.values():
            if not tally.excludes(pool.driver):
                tally.block(pool)

    def drop_class(self, name: str) -> None:
        """A class is gone, or selects others: what was counted for it is of no use."""
        for ask in [ask for ask in self._kept if ask.class_name == name]:
            self._drop(ask)

    def _forget(self) -> None:
        """Drop what was not asked for longest, until the bounds hold or only the newest is left."""
        self._unweighed = 0.0
        counted = sum(tally.size for tally in self._kept.values())
        while len(self._kept) > 1 and (counted > COUNTED_AT_MOST or len(self._kept) > TALLIES_AT_MOST):
            oldest, tally = next(iter(self._kept.items()))
            counted -= tally.size
            self._drop(oldest)

    def _fill(self, tallies: Mapping[Tally, tuple[Selector, ...]]) -> Iterator[int]:
        """Look at all devices there are, for these; yields how many looks that took since the last time.

        A slice is unpacked, and a device's attributes are read, once for all of them.
        """
        looks = yield from _bundled(_compiled(tallies.values()), 0)
        asked: dict[str, list[tuple[Tally, int]]] = {}
        for pool in list(self._pools()):
            if pool.driver not in asked:
                asked[pool.driver] = []
                looks = yield from _bundled(_concerned(tallies, pool.driver, asked[pool.driver]), looks)
            for tally, _ in asked[pool.driver]:
                tally.block(pool)
            for part in list(pool.active.values()) if asked[pool.driver] else ():
                yield from self._look_at(part, pool, asked[pool.driver], looks)
                looks = 0
        for tally in tallies:
            if self._unfinished.pop(tally, None) is not None:
                tally.finish()

    def _look_at(
        self, part: SliceState, pool: PoolState, asked: Iterable[tuple[Tally, int]], looks: int
    ) -> Iterator[int]:
        """The devices of a slice, each for all that is asked, what a look costs beside it."""
        devices = part.devices  # none where it was replaced meanwhile; nothing stands still between two steps
        for device, shape in zip(devices, part.shapes() if devices else (), strict=True):
            found = []
            for tally, cost in asked:
                if looks >= LOOKS_IN_A_ROW:
                    yield looks
                    looks = 0
                before = evaluations()
                if (match := tally.match(shape)) is not Match.NO:
                    found.append((tally, match))
                looks += cost * (1 + EVALUATION * (evaluations() - before))
            if pool.active.get(part.name) is not part:
                break
            self._include(device, found)
        yield looks

    def _include(self, device: DeviceState, found: Iterable[tuple[Tally, Match]]) -> None:
        """The device counts for these from now on, if it does not already and they are still wanted."""
        new = [(each, match) for each, match in found if each in self._unfinished and each not in device.tallies]
        for tally, match in new:
            tally.add(device, match)
        if new:
            device.tallies = self._shared((*device.tallies, *(tally for tally, _ in new)))

    def _drop(self, ask: Ask) -> None:
        """Count for an ask no more. Its devices are not gone through now: there may be a million."""
        tally = self._kept.pop(ask)
        self._unfinished.pop(tally, None)
        self._dropped.add(tally)
        if self.devices_at_once == float("inf"):
            self._let_go(self.devices_at_once)  # nobody calls `work`

    def _let_go(self, devices: float) -> None:
        """Go on taking dropped tallies off their devices, for about so many devices."""
        while self._dropped and devices > 0:
            done = next(self._sweep, None)
            if done is None:
                self._sweep = self._swept(frozenset(self._dropped))
            else:
                devices -= max(done, 1)

    def _swept(self, dropped: frozenset[Tally]) -> Iterator[int]:
        """Take these off all devices; a device that comes meanwhile never had them."""
        for pool in list(self._pools()):
            for part in list(pool.active.values()):
                for device in part.devices:
                    if not dropped.isdisjoint(device.tallies):
                        device.tallies = self._shared(tuple(each for each in device.tallies if each not in dropped))
                yield len(part.devices)
        self._dropped -= dropped
        self._last = ()

    def _shared(self, tallies: tuple[Count, ...]) -> tuple[Count, ...]:
        """The tuple given out last, if it is equal: devices next to each other are mostly counted by the same."""
        if tallies != self._last:
            self._last = tallies
        return self._last


def _compiled(all_selectors: Iterable[tuple[Selector, ...]]) -> Iterator[int]:
    """Compile them one by one."""
    for selectors in all_selectors:
        for each in selectors:
            looks = each.compilation
            each.program  # noqa: B018 - the first look would do it
            yield looks


def _concerned(
    tallies: Mapping[Tally, tuple[Selector, ...]], driver: str, found: list[tuple[Tally, int]]
) -> Iterator[int]:
    """Note those that may count devices of the driver, with what a look costs."""
    for tally, selectors in tallies.items():
        if not tally.excludes(driver):
            found.append((tally, sum(each.cost for each in selectors) or 1))
        yield EVALUATION


def _bundled(steps: Iterable[int], looks: int) -> Generator[int, None, int]:
    """Small steps as larger ones; returns the looks that are left over. `looks`: those there are already."""
    for each in steps:
        looks += each
        if looks >= LOOKS_IN_A_ROW:
            yield looks
            looks = 0
    return looks


def _taken(steps: Iterator[int], looks: float) -> float:
    """Take steps of about so many looks; how many are left, more than none only if there is nothing left to do."""
    while looks > 0:
        done = next(steps, None)
        if done is None:
            return looks
        looks -= max(done, 1)
    return 0


def _included(tally: Tally, device: DeviceState, shape: Shape) -> bool:
    """Whether the device counts for the tally, which now counts it."""
    match = tally.match(shape)
    if match is Match.NO:
        return False
    tally.add(device, match)
    return True
