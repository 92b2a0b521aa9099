"""A cluster as a watch tells it, with a clock of its own."""

from collections.abc import Iterable

from app.dra.demand import Ask
from app.dra.holders import PodRecord
from app.dra.objects import DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice, Toleration
from app.dra.pools import PoolState
from app.dra.tally import Standing
from app.dra.vacancy import Vacancy
from app.dra.witness import Heard, Kind, Witness
from tests.builders import NOON

KINDS: dict[type[Heard], Kind] = {
    DeviceClass: Kind.DEVICE_CLASSES,
    ResourceSlice: Kind.RESOURCE_SLICES,
    ResourceClaim: Kind.RESOURCE_CLAIMS,
    DeviceTaintRule: Kind.DEVICE_TAINT_RULES,
    Node: Kind.NODES,
    PodRecord: Kind.PODS,
}

GPU_ASK = Ask("gpu")


class Watched:
    """A witness that knows these objects, and that there are no others."""

    def __init__(
        self,
        *objects: Heard,
        started_at: float = NOON,
        kinds: Iterable[Kind] = Kind,
        devices_at_once: float = float("inf"),
    ) -> None:
        """`devices_at_once`: all, or what is counted would depend on what others left in the memory of answers."""
        self.now = NOON
        self.witness = Witness(started_at)
        self.witness.tallies.devices_at_once = devices_at_once
        self.tell(*objects)
        for kind in kinds:
            self.witness.synced(kind, self.now)

    def tell(self, *objects: Heard) -> "Watched":
        for obj in objects:
            self.witness.apply(KINDS[type(obj)], obj, self.now)
        return self

    def gone(self, *objects: Heard) -> "Watched":
        for obj in objects:
            namespace, name = (
                (obj.namespace, obj.name) if isinstance(obj, PodRecord) else (obj.metadata.namespace, obj.metadata.name)
            )
            self.witness.remove(KINDS[type(obj)], namespace, name, self.now)
        return self

    def ended(self, pod: PodRecord) -> "Watched":
        self.witness.apply(Kind.ENDED_PODS, pod, self.now)
        return self

    def later(self, seconds: float) -> "Watched":
        self.now += seconds
        self.witness.advance(self.now)
        return self

    def pool(self, name: str = "n1") -> PoolState:
        return next(pool for pool in self.witness.pools() if pool.name == name)

    def standing(
        self, ask: Ask = GPU_ASK, tolerations: tuple[Toleration, ...] = (), selector: tuple[tuple[str, str], ...] = ()
    ) -> Standing:
        return self.witness.standing(self.witness.tally(ask), tolerations, selector, self.now)

    def vacancy(self, ask: Ask = GPU_ASK) -> Vacancy:
        return self.standing(ask).vacancy

    def free(self, ask: Ask = GPU_ASK) -> list[str]:
        """Free devices as pool/device, whether or not a pod gets to them."""
        return sorted("/".join(device.id[1:]) for device in self.witness.tally(ask).free)
