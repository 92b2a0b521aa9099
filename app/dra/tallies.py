"""All tallies: one for every ask that was made, made when it is asked for the first time and then kept current.

A new tally has to look at every device once. Up to a bound that is done at once; in a larger cluster it is spread over
steps, so that no review waits for another one's new selector. Until then the tally is not complete and says unknown.

Work is counted in looks: one is what a usual selector needs for one device, about 5 us (measured).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

from app.dra.demand import Ask
from app.dra.pools import Count, DeviceState, PoolState
from app.dra.selector import Match, Selector, Shape
from app.dra.tally import Tally

TALLIES_AT_MOST = 2000
"""Asks kept at once; the one not asked for longest goes. A cluster has tens of classes and few selectors of claims."""

COUNTED_AT_MOST = 1_000_000
"""Devices in all tallies together, about 90 bytes each (measured): selectors of tenants must not fill the memory."""

DEVICES_AT_ONCE = 500
"""Looks a review may have to wait for: about 2 ms."""

NEW_ASKS_AT_ONCE = 8
"""New asks of one review: a pod with claims asks for one to four things, a template of a tenant for 32 x 8 at most."""

LOOKS_IN_A_ROW = 100
"""At which a step ends within a slice."""


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
        self._unfinished: dict[Tally, Iterator[int]] = {}
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
        self._unfinished[tally] = self._fill(tally, chosen)
        left = self._go_on(tally, self.devices_at_once if self._looks_left is None else self._looks_left)
        if reviewing:
            self._looks_left, self._asks_left = left, self._asks_left - 1
        self._forget()
        return tally

    def work(self, looks: int) -> bool:
        """Go on with what is not complete, for about so many looks, and let go; whether there is more to do."""
        tally = next(iter(self._unfinished), None)
        if tally is not None:
            self._go_on(tally, looks)
            self._forget()
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
        counted = sum(tally.size for tally in self._kept.values())
        while len(self._kept) > 1 and (counted > COUNTED_AT_MOST or len(self._kept) > TALLIES_AT_MOST):
            oldest, tally = next(iter(self._kept.items()))
            counted -= tally.size
            self._drop(oldest)

    def _fill(self, tally: Tally, selectors: tuple[Selector, ...]) -> Iterator[int]:
        """Look at all devices there are; yields how many looks that took since the last time."""
        looks = cost = 0
        for each in selectors:
            looks += each.compilation
            cost += each.cost
            if looks >= LOOKS_IN_A_ROW:
                yield looks
                looks = 0
        for pool in list(self._pools()):
            if not tally.excludes(pool.driver):
                tally.block(pool)
                for name, part in list(pool.active.items()):
                    for device, shape in zip(part.devices, part.shapes(), strict=True):
                        if looks >= LOOKS_IN_A_ROW:
                            yield looks
                            looks = 0
                        if pool.active.get(name) is not part:  # nothing stands still between two steps
                            break
                        if tally not in device.tallies and _included(tally, device, shape):
                            device.tallies = self._shared((*device.tallies, tally))
                        looks += cost or 1
                    yield looks
                    looks = 0

    def _go_on(self, tally: Tally, looks: float) -> float:
        """Count on; how many looks are left."""
        steps = self._unfinished[tally]
        while looks > 0:
            done = next(steps, None)
            if done is None:
                del self._unfinished[tally]
                tally.complete = True
                return looks
            looks -= max(done, 1)
        return 0

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


def _included(tally: Tally, device: DeviceState, shape: Shape) -> bool:
    """Whether the device counts for the tally, which now counts it."""
    match = tally.match(shape)
    if match is Match.NO:
        return False
    tally.add(device, match)
    return True
