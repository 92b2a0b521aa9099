"""All tallies: one for every ask that was made, made when it is asked for the first time and then kept current.

A new tally has to look at every device once. Up to a bound that is done at once; in a larger cluster it is spread over
steps, so that no review waits for another one's new selector. Until then the tally is not complete and says unknown.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from app.dra.demand import Ask
from app.dra.pools import DeviceState, PoolState
from app.dra.selector import Match, Selector
from app.dra.tally import Tally

TALLIES_AT_MOST = 2000
"""Asks kept at once; the one not asked for longest goes. A cluster has tens of classes and few selectors of claims."""

COUNTED_AT_MOST = 1_000_000
"""Devices in all tallies together, about 130 bytes each (measured): selectors of tenants must not fill the memory."""

DEVICES_AT_ONCE = 500
"""Devices a review may have to wait for: about 2 ms (5 us each, measured)."""


class Tallies:
    """Tallies by ask. `pools` gives all pools."""

    def __init__(self, pools: Callable[[], Iterable[PoolState]]) -> None:
        """No asks yet."""
        self._pools = pools
        self._kept: OrderedDict[Ask, Tally] = OrderedDict()
        self._unfinished: dict[Tally, Iterator[int]] = {}
        self.devices_at_once: float = DEVICES_AT_ONCE
        """How many devices a new tally looks at before its first answer."""

    def get(self, ask: Ask, selectors: Callable[[Ask], tuple[Selector, ...]]) -> Tally:
        """The tally of an ask; `selectors` gives those of class and request when it is new."""
        tally = self._kept.get(ask)
        if tally is not None:
            self._kept.move_to_end(ask)
            return tally
        tally = self._kept[ask] = Tally(ask, selectors(ask))
        self._unfinished[tally] = self._fill(tally)
        self._go_on(tally, self.devices_at_once)
        self._forget()
        return tally

    def work(self, devices: int) -> bool:
        """Go on with what is not complete, for about so many devices; whether there is more to do."""
        tally = next(iter(self._unfinished), None)
        if tally is not None:
            self._go_on(tally, devices)
            self._forget()
        return bool(self._unfinished)

    def add(self, device: DeviceState) -> None:
        """A device counts from now on."""
        for tally in self._kept.values():
            if not tally.excludes(device.id[0]):
                _include(tally, device)

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

    def _fill(self, tally: Tally) -> Iterator[int]:
        """Look at all devices there are; yields how many were looked at since the last time."""
        for pool in list(self._pools()):
            if not tally.excludes(pool.driver):
                tally.block(pool)
                for name, part in list(pool.active.items()):
                    if pool.active.get(name) is part:  # nothing stands still between two steps
                        for device in part.devices:
                            if tally not in device.tallies:
                                _include(tally, device)
                        yield len(part.devices)

    def _go_on(self, tally: Tally, devices: float) -> None:
        steps = self._unfinished[tally]
        while devices > 0:
            done = next(steps, None)
            if done is None:
                del self._unfinished[tally]
                tally.complete = True
                return
            devices -= max(done, 1)

    def _drop(self, ask: Ask) -> None:
        tally = self._kept.pop(ask)
        self._unfinished.pop(tally, None)
        for pool in self._pools():
            if not tally.excludes(pool.driver):
                for device in pool.devices():
                    device.tallies = tuple(t for t in device.tallies if t is not tally)


def _include(tally: Tally, device: DeviceState) -> None:
    match = tally.match(device)
    if match is not Match.NO:
        device.tallies += (tally,)
        tally.add(device, match)
