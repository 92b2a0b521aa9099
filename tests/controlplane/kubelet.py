"""A stand-in for the kubelet of every node: pods of known images really run, as processes of this machine.

It follows bound pods from their start over probes and restarts to their end, and gives Services to them as kube-proxy
and the cluster's DNS would. Pods of any other image are left alone: they stay Pending, as without it. Needs root.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.controlplane.network import Network
from tests.controlplane.plane import ControlPlane
from tests.controlplane.pod import PodWorker, Program, Surroundings, image_name
from tests.controlplane.service_proxy import ServiceProxy

_LOOK_SECONDS = 0.05


class Kubelet:
    """Runs pods from its making until `stop`. All its files are in `directory`. Raises `NoNetwork`."""

    def __init__(self, plane: ControlPlane, directory: Path, programs: Mapping[str, Program]) -> None:
        """`programs`: what runs in the place of an image, by its name without tag and digest."""
        directory.mkdir()
        self.plane = plane
        self._client, self._directory = plane.client(), directory
        self._network = Network()
        self._services = ServiceProxy(self._network, directory / "hosts")
        server = urlsplit(plane.server)
        self._around = Surroundings(
            plane.client(),
            programs,
            self._services.hosts,
            {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)},
        )
        self._workers: dict[str, PodWorker] = {}
        self._told_to_stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill every pod's processes, and give back the addresses."""
        self._told_to_stop.set()
        self._thread.join()
        for worker in self._workers.values():
            worker.stop()
        self._services.close()
        self._network.close()

    def log(self, namespace: str, pod: str = "*") -> str:
        """What the containers of a pod, or of all pods, have printed, also after their end."""
        return "".join(path.read_text() for path in sorted(self._directory.glob(f"{namespace}_{pod}_*/*.log")))

    def _run(self) -> None:
        while not self._told_to_stop.wait(_LOOK_SECONDS):
            # Services first: a pod may ask for one as soon as it starts.
            self._services.follow(
                self._client.get("/api/v1/services")["items"],
                self._client.get("/apis/discovery.k8s.io/v1/endpointslices")["items"],
            )
            self._follow_pods()

    def _follow_pods(self) -> None:
        bound = self._client.get("/api/v1/pods", fieldSelector="spec.nodeName!=")["items"]
        found = {pod["metadata"]["uid"]: pod for pod in bound}
        for uid in self._workers.keys() - found:
            self._workers.pop(uid).gone()
        for uid, pod in found.items():
            if worker := self._workers.get(uid):
                worker.follow(pod)
            elif all(image_name(each["image"]) in self._around.programs for each in pod["spec"]["containers"]):
                folder = self._directory / "{namespace}_{name}_{uid}".format_map(pod["metadata"])
                self._workers[uid] = PodWorker(self._around, pod, self._network.address(), folder)
