"""One bound pod: its volumes as folders, its containers as processes in a mount namespace of their own, its status.

A process sees the machine's folders, with three changes: `/run` is empty, `/etc/hosts` names the Services, and the
volumes are mounted at folders that exist, in `/`, or below `/run`. It has the pod's address, but the machine's network:
two pods that listen on all addresses would be in each other's way. Init containers, hooks of containers and everything
about security are left out.
"""

import dataclasses
import os
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from tests.controlplane.client import Client, Json, Refused
from tests.controlplane.container import Container, rfc3339_now
from tests.controlplane.process import Server
from tests.controlplane.volumes import field, fill_volume

_LOOK_SECONDS = 0.05
_RETRY_SECONDS = 0.5

# Folders may be made in the root of a pod without making them on this machine.
_NEW_ROOT = """\
set -e
mount -t tmpfs tmpfs /run
for each in /*; do
  if [ -L "$each" ]; then cp -P "$each" "/run$each"
  elif [ -d "$each" ]; then mkdir "/run$each"; [ "$each" = /run ] || mount --rbind "$each" "/run$each"
  fi
done"""


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """What runs in the place of an image."""

    command: Sequence[str]
    """Its entry point. `{ip}` stands for the pod's address, on which alone it may listen."""
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Wins over the pod's; `{ip}` here, too."""


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What all pods share."""

    client: Client
    programs: Mapping[str, Program]
    """By image, without tag and digest."""
    hosts: Path
    environment: Mapping[str, str]
    """Of every container, as Kubernetes sets it."""


class PodWorker:
    """Runs one pod in a thread of its own, until the pod has ended or is to be deleted."""

    def __init__(self, around: Surroundings, pod: Json, address: str, folder: Path) -> None:
        meta = pod["metadata"]
        self._around, self._pod, self._address, self._folder = around, pod, address, folder
        self._path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        self._containers: list[Container] = []
        self._said: Json = {}
        self._started_at = rfc3339_now()
        self._became_ready_at = ""
        self._grace_seconds = 0.0
        self._deleted: Literal["", "gracefully", "already", "never mind"] = ""
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self._path)
        self._thread.start()

    def follow(self, pod: Json) -> None:
        """The pod as it is now. If it is being deleted, end it in its grace period, and let it go."""
        if "deletionTimestamp" in pod["metadata"] and not self._deleted:
            self._end("gracefully", pod["metadata"].get("deletionGracePeriodSeconds", 0))

    def gone(self) -> None:
        """The pod does not exist any more. Return when its processes don't either."""
        self._end("already", 0)
        self._thread.join()

    def stop(self) -> None:
        """The plane is about to end: kill the processes, and tell nobody. Return when they are gone."""
        self._end("never mind", 0)
        self._thread.join()

    def _end(self, how: Literal["gracefully", "already", "never mind"], grace_seconds: float) -> None:
        self._grace_seconds, self._deleted = grace_seconds, how
        self._wake.set()

    # --- In the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._deleted and not self._start():
            self._wake.wait(_RETRY_SECONDS)
        while not self._deleted and self._phase == "Running":
            for container in self._containers:
                container.look()
            self._say()
            self._wake.wait(_LOOK_SECONDS)
        self._wake.wait()  # what has ended stays until somebody deletes it
        self._end_processes()
        if self._deleted == "gracefully":
            self._say()
            with suppress(Refused):  # somebody was faster
                self._around.client.delete(self._path, gracePeriodSeconds=0)

    def _start(self) -> bool:
        """Whether the volumes could be filled, and the containers started."""
        volumes = self._folder / "volumes"
        try:
            for volume in self._pod["spec"].get("volumes", ()):
                fill_volume(self._around.client, self._pod, volume, volumes / volume["name"])
        except Refused:  # a Secret that is still to come
            return False
        policy = self._pod["spec"]["restartPolicy"]
        for spec in self._pod["spec"]["containers"]:
            log = self._folder / f"{spec['name']}.log"
            start = partial(Server, self._command(spec), log, self._environment(spec))
            self._containers.append(Container(spec, policy, self._address, start))
        return True

    def _command(self, spec: Json) -> list[str]:
        """The process, once the volumes are mounted in its own mount namespace."""
        script = [_NEW_ROOT, f"mount --bind {self._around.hosts} /run/etc/hosts"]
        for each in spec.get("volumeMounts", ()):
            source, target = self._folder / "volumes" / each["name"], shlex.quote(each["mountPath"])
            script.append(f"target=/run$(chroot /run realpath -m {target})")  # /var/run is a link
            script.append(f'mkdir -p "$target"; mount --bind {source} "$target"')
        script.append('exec chroot /run "$@"')
        program = self._around.programs[image_name(spec["image"])]
        entry_point = spec.get("command") or [word.format(ip=self._address) for word in program.command]
        command = [*entry_point, *spec.get("args", ())]
        return ["unshare", "--mount", "sh", "-c", "\n".join(script), "sh", *command]

    def _environment(self, spec: Json) -> dict[str, str]:
        given = {"PATH": os.environ["PATH"], "HOME": "/", "HOSTNAME": self._pod["metadata"]["name"]}
        given |= self._around.environment
        for each in spec.get("env", ()):
            given[each["name"]] = (
                field(self._pod, each["valueFrom"]["fieldRef"]["fieldPath"], self._address)
                if "valueFrom" in each
                else each.get("value", "")
            )
        program = self._around.programs[image_name(spec["image"])]
        return given | {name: value.format(ip=self._address) for name, value in program.environment.items()}

    def _end_processes(self) -> None:
        for container in self._containers:
            container.terminate()
        began = time.monotonic()
        while self._phase == "Running" and time.monotonic() < began + self._grace_seconds:
            time.sleep(_LOOK_SECONDS)
            for container in self._containers:
                container.look()
            self._say()
        for container in self._containers:
            container.kill()
            container.look()

    # --- The status ---------------------------------------------------------------------------------------------------

    @property
    def _phase(self) -> str:
        codes = [each.exit_code for each in self._containers]
        if None in codes:
            return "Running"
        return "Failed" if any(codes) else "Succeeded"

    def _say(self) -> None:
        """Write the status where it has changed."""
        ready = self._phase == "Running" and all(each.ready for each in self._containers)
        if ready != bool(self._became_ready_at):
            self._became_ready_at = rfc3339_now() if ready else ""
        since = {"lastTransitionTime": self._became_ready_at or self._started_at}
        status = {
            "phase": self._phase,
            "startTime": self._started_at,
            "hostIP": self._address,
            "podIP": self._address,
            "podIPs": [{"ip": self._address}],
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": self._started_at},
                {"type": "Initialized", "status": "True", "lastTransitionTime": self._started_at},
                {"type": "ContainersReady", "status": str(ready), **since},
                {"type": "Ready", "status": str(ready), **since},
            ],
            "containerStatuses": [each.status for each in self._containers],
        }
        if status != self._said:
            identity = {"uid": self._pod["metadata"]["uid"]}  # not another pod of the same name
            with suppress(Refused):  # gone, which `gone` will say
                self._around.client.patch(f"{self._path}/status", {"metadata": identity, "status": status})
            self._said = status


def image_name(image: str) -> str:
    """An image without its tag and digest."""
    path, slash, name = image.partition("@")[0].rpartition("/")
    return path + slash + name.partition(":")[0]
