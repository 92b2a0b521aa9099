"""Shared counters of one pool: what is left of each counter, and which devices still fit.

KEP-4815: devices carved out of one card name what they consume of the card's counters; an allocated device takes its
share away from all others. Counting follows the allocator: only devices of the pool as it is published now consume.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.dra.objects import CounterSet, DeviceCounterConsumption
from app.dra.quantity import parse_quantity

Consumption = tuple[tuple[tuple[str, str], int], ...]
"""What a device takes: ((counter set, counter), amount in 1e-9 units), …"""


def consumption(consumes: Sequence[DeviceCounterConsumption] | None) -> Consumption:
    """What a device consumes; an amount that cannot be read counts as nothing, which can only admit."""
    if not consumes:
        return ()  # nearly always
    return tuple(
        ((entry.counter_set, counter), amount)
        for entry in consumes
        for counter, value in entry.counters.items()
        if (amount := _nano(value.value)) is not None
    )


def _nano(amount: str | float) -> int | None:
    try:
        return parse_quantity(amount).nano
    except ValueError:
        return None


@dataclass(slots=True, eq=False)
class Counters:
    """What is left of the shared counters of one pool."""

    left: dict[tuple[str, str], int] = field(default_factory=dict)
    """A counter that is not here, undeclared or unreadable, bounds nothing: its devices fit, which can only admit."""

    @classmethod
    def of(cls, sets: Iterable[CounterSet]) -> "Counters":
        """All of every counter, before anything is taken."""
        return cls(
            {
                (counter_set.name, name): total
                for counter_set in sets
                for name, counter in counter_set.counters.items()
                if (total := _nano(counter.value)) is not None
            }
        )

    def copy(self) -> "Counters":
        """To take from without taking."""
        return Counters(dict(self.left))

    def take(self, consumed: Consumption) -> None:
        """A device was allocated."""
        self._change(consumed, -1)

    def give_back(self, consumed: Consumption) -> None:
        """A device was freed."""
        self._change(consumed, 1)

    def fit(self, consumed: Consumption) -> bool:
        """Whether a device that is not allocated could still be."""
        return all(amount <= self.left[counter] for counter, amount in consumed if counter in self.left)

    def _change(self, consumed: Consumption, sign: int) -> None:
        for counter, amount in consumed:
            if counter in self.left:
                self.left[counter] += sign * amount


NO_COUNTERS = Counters()
"""Of a pool that declares none; it never changes."""
