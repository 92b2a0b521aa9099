"""DeviceTaintRules: taints an administrator puts on devices from outside their slice."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from msgspec import UnsetType

from app.dra.objects import DeviceTaintRule, DeviceTaintSelector, Taint
from app.dra.pools import BLOCKING_EFFECTS, DeviceId

_selector_decoder = msgspec.json.Decoder(DeviceTaintSelector)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule that taints something."""

    selector: DeviceTaintSelector
    taint: Taint

    def matches(self, device: DeviceId) -> bool:
        """Whether all fields given are equal; a selector without fields matches every device."""
        wanted = (self.selector.driver, self.selector.pool, self.selector.device)
        return all(want is None or want == have for want, have in zip(wanted, device, strict=True))


def _rule(obj: DeviceTaintRule) -> Rule | None:
    """The rule; None when it taints nothing: no selector, one we cannot read whole, or an effect that is none."""
    selector = obj.spec.device_selector
    if isinstance(selector, UnsetType) or bytes(selector) == b"null" or obj.spec.taint.effect not in BLOCKING_EFFECTS:
        return None
    try:
        return Rule(_selector_decoder.decode(selector), obj.spec.taint)
    except msgspec.MsgspecError:
        return None


class TaintRules:
    """All rules. Every change returns the rules whose devices it concerns."""

    def __init__(self) -> None:
        """No rules, and the list of them is not known."""
        self._rules: dict[str, Rule | None] = {}
        self._current = False

    def names(self) -> Iterable[str]:
        """All rules that exist."""
        return self._rules.keys()

    def apply(self, obj: DeviceTaintRule) -> list[Rule]:
        """A rule is new or changed."""
        name, new = obj.metadata.name, _rule(obj)
        old, self._rules[name] = self._rules.get(name), new
        return _concerned([] if old == new else [old, new])

    def remove(self, name: str) -> list[Rule]:
        """A rule is gone."""
        return _concerned([self._rules.pop(name, None)])

    def trust(self, *, current: bool) -> list[Rule]:
        """The list of rules is current from now on or not; while it is not, no rule taints anything."""
        changed, self._current = current != self._current, current
        return _concerned(self._rules.values() if changed else [])

    def taints(self, device: DeviceId) -> tuple[Taint, ...]:
        """Taints that rules put on a device."""
        if not self._current:
            return ()
        return tuple(rule.taint for rule in self._rules.values() if rule is not None and rule.matches(device))


def _concerned(rules: Iterable[Rule | None]) -> list[Rule]:
    return [rule for rule in rules if rule is not None]
