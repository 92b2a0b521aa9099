"""Too many pods at once for a real control plane with Vacancy in its way.

A StatefulSet first that wants five times the devices there are, and whose controller makes pods in the order in which
its own limits let it. Then, when nothing is free, a user who creates as many pods at one moment. Nothing frees a
device: every refusal before the last one was given out is wrong, and so is every admission after it.
"""

import asyncio
import json
import re
import ssl
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import aiohttp

from loadtest.targets import Figure, Run
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.live.owners import Owner
from tests.live.scene import DRA, Scene
from tests.live.serving import WEBHOOK, Vacancy

PODS, DEVICES = 500, 100

_QUIET_SECONDS = 10.0
"""Without another pod: it is settled. The controller tries again less and less often, up to every 1000 s."""

_LOOK_SECONDS = 0.02

_CREATED, _DENIED, _TOO_MANY = 201, 403, 429
"""There is no quota and nobody without rights: only Vacancy denies."""

_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

Facts = Mapping[str, tuple[float, str]]
"""Figures with their units."""


def replicas(run: Run) -> Iterator[Figure]:
    """One row for each fact."""
    with tempfile.TemporaryDirectory(prefix="vacancy-burst-") as directory:
        folder = Path(directory)
        with ControlPlane(folder / "plane") as plane, Vacancy(plane, folder / "burst", "auto") as vacancy:
            vacancy.register(plane)
            _be_as_impatient_as_the_chart(plane, vacancy)
            scene = Scene(plane, vacancy.label)
            scene.add_class()
            scene.publish(DEVICES)
            until("room", lambda: vacancy.reason(scene.pod("first"), scene.name) == "HasRoom")
            found = {
                f"StatefulSet of {PODS}, {DEVICES} devices": _stateful_set(plane, scene),
                f"{PODS} pods at once, none free": _crowd(plane, scene, folder / "plane" / "credentials" / "ca.crt"),
            }
    for what, facts in found.items():
        run.record({"part": what} | {name: value for name, (value, _) in facts.items()})
        for name, (value, unit) in facts.items():
            yield Figure(f"{what}: {name}", value, unit)


def _stateful_set(plane: ControlPlane, scene: Scene) -> Facts:
    before, began = Calls(plane), time.time()
    with _watched(scene) as free:
        owner = Owner.make(scene, "StatefulSet", "burst", replicas=PODS, podManagementPolicy="Parallel")
        owner.until_bound(DEVICES)
        bound = time.time() - began
        admitted = _settled(owner)
        settled = time.time() - began - _QUIET_SECONDS
    calls = Calls(plane).since(before)
    scene.client.delete(owner.path, propagationPolicy="Orphan")  # it would go on trying
    refusals = list(_refused_at(plane, scene.name))
    return {
        "bound": (len(owner.bound()), ""),
        "admitted": (admitted, ""),
        "refused attempts": (len(refusals), ""),
        "refused while a device was free": (sum(each < free[-1] for each in refusals), ""),
        "until all devices were given out": (bound, "s"),
        "until no pod was created any more": (settled, "s"),
        **calls,
    }


def _crowd(plane: ControlPlane, scene: Scene, authority: Path) -> Facts:
    """By a user like any other: of too many requests at a time the API server sends some back for a second."""
    edit = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": scene.name}
    binding = {"metadata": {"name": "crowd"}, "roleRef": edit, "subjects": [subject]}
    scene.client.post(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{scene.name}/rolebindings", binding)
    user = {"Authorization": f"Bearer {plane.service_account_token(scene.name, 'default')}"}

    async def create(session: aiohttp.ClientSession, number: int) -> int:
        while True:
            async with session.post(scene.pods, json=scene.pod(f"crowd-{number}")) as answer:
                await answer.read()
            if answer.status != _TOO_MANY:
                return answer.status
            await asyncio.sleep(int(answer.headers["Retry-After"]))

    async def create_all() -> Counter[int]:
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=authority), limit=0)
        async with aiohttp.ClientSession(plane.server, connector=connector, headers=user) as session:
            return Counter(await asyncio.gather(*(create(session, number) for number in range(PODS))))

    before, began = Calls(plane), time.time()
    codes = asyncio.run(create_all())
    seconds = time.time() - began
    return {
        "refused": (codes[_DENIED], ""),
        "admitted": (codes[_CREATED], ""),
        "any other answer": (PODS - codes[_DENIED] - codes[_CREATED], ""),
        "until all were answered": (seconds, "s"),
        **Calls(plane).since(before),
    }


class Calls:
    """What the API server has counted of the webhook so far."""

    def __init__(self, plane: ControlPlane) -> None:
        self._text = plane.client().http.get("/metrics").text
        name = "apiserver_admission_webhook_admission_duration_seconds"
        self.failed_open = self._sum("apiserver_admission_webhook_fail_open_count")
        self.count, self.seconds = self._sum(f"{name}_count"), self._sum(f"{name}_sum")
        self.quick = {limit: self._sum(f"{name}_bucket", f'le="{limit}"') for limit in ("0.1", "0.5")}

    def since(self, before: "Calls") -> Facts:
        """What has been added."""
        count = self.count - before.count
        return {
            "failed open": (self.failed_open - before.failed_open, ""),
            "calls of the webhook": (count, ""),
            "mean of a call, by the API server": ((self.seconds - before.seconds) / count * 1e3, "ms"),
            **{
                f"calls of more than {limit} s": (count - quick + before.quick[limit], "")
                for limit, quick in self.quick.items()
            },
        }

    def _sum(self, metric: str, label: str = "") -> float:
        lines = re.findall(rf"^{metric}\{{(.*)\}} (\S+)$", self._text, re.MULTILINE)
        return sum(float(value) for labels, value in lines if f'name="{WEBHOOK}"' in labels and label in labels)


@contextmanager
def _watched(scene: Scene) -> Iterator[list[float]]:
    """When a device was last seen free (epoch seconds): the moments before each look that found one."""
    free: list[float] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            now = time.time()
            claims = scene.client.get(f"{DRA}/namespaces/{scene.name}/resourceclaims")["items"]
            if sum("allocation" in each.get("status", {}) for each in claims) < DEVICES:
                free.append(now)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield free
    finally:
        ended.set()
        thread.join()


def _settled(owner: Owner) -> int:
    """How many pods there are when none has been created for a while."""
    count, since = 0, time.monotonic()
    while time.monotonic() < since + _QUIET_SECONDS:
        if (now := len(owner.pods())) != count:
            count, since = now, time.monotonic()
        time.sleep(0.2)
    return count


def _refused_at(plane: ControlPlane, namespace: str) -> Iterator[float]:
    """When pods of the namespace were refused, by the API server's own audit log; epoch seconds."""
    of_pods = {"resource": "pods", "namespace": namespace}
    for event in map(json.loads, plane.audit_log.read_text(encoding="utf-8").splitlines()):
        is_creation = event["verb"] == "create" and event["stage"] == "ResponseComplete"
        if is_creation and event["objectRef"].items() >= of_pods.items() and event["responseStatus"]["code"] == _DENIED:
            yield datetime.fromisoformat(event["stageTimestamp"]).timestamp()


def _be_as_impatient_as_the_chart(plane: ControlPlane, vacancy: Vacancy) -> None:
    path = f"{_CONFIGURATIONS}/{vacancy.name}"
    (webhook,) = plane.client().get(path)["webhooks"]
    plane.client().patch(path, {"webhooks": [webhook | {"timeoutSeconds": 1}]})
