"""One container: a process at a time, probed, and started again where the pod's policy says so."""

import datetime
import time
from collections.abc import Callable, Mapping

from tests.controlplane.client import Json
from tests.controlplane.probe import Probe
from tests.controlplane.process import Server

RESTART_SECONDS = 1.0
"""Between an end and the next start. The kubelet begins with 10 s and doubles it."""

_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


class Container:
    """Running from its making on. All that changes changes in `look`."""

    def __init__(self, spec: Json, restart_policy: str, address: str, start: Callable[[], Server]) -> None:
        self._spec, self._restart_policy, self._address, self._start = spec, restart_policy, address, start
        self._restarts = 0
        self._start_again_at: float | None = None
        self._last: Json = {}
        self.exit_code: int | None = None
        """Of the last process, once no other follows."""
        self._run()

    def look(self) -> None:
        """Notice an end; start it again if it is time; else ask its probes."""
        if self._start_again_at is not None:
            if time.monotonic() >= self._start_again_at:
                self._restarts += 1
                self._run()
        elif self._server.exit_code is not None:
            self._ended()
        else:
            self._probe()

    def terminate(self) -> None:
        """SIGTERM, and no start any more."""
        self._restart_policy, self._start_again_at = "Never", None
        self._server.terminate()

    def kill(self) -> None:
        """SIGKILL."""
        self._server.kill()

    @property
    def ready(self) -> bool:
        """Running, and its readiness probe says so."""
        return self._started and self._succeeded("readinessProbe")

    @property
    def status(self) -> Json:
        """As the pod's status shows it."""
        return {
            "name": self._spec["name"],
            "image": self._spec["image"],
            "imageID": self._spec["image"],
            "ready": self.ready,
            "started": self._started,
            "restartCount": self._restarts,
            "state": self._state,
            "lastState": self._last,
        }

    def _run(self) -> None:
        self._server = self._start()
        self._started_at = rfc3339_now()
        self._start_again_at = None
        self._state: Json = {"running": {"startedAt": self._started_at}}
        ports = {port["name"]: port["containerPort"] for port in self._spec.get("ports", ()) if "name" in port}
        now = time.monotonic()
        self._probes: Mapping[str, Probe] = {
            name: Probe(self._spec[name], self._address, ports, now) for name in _PROBES if name in self._spec
        }

    def _probe(self) -> None:
        names = _PROBES[1:] if self._started else _PROBES[:1]
        for name in names:
            if probe := self._probes.get(name):
                probe.ask(time.monotonic())
                if probe.failed and name != "readinessProbe":
                    self._server.stop()

    def _ended(self) -> None:
        code = self._server.exit_code
        if "running" in self._state:
            reason = "Error" if code else "Completed"
            times = {"startedAt": self._started_at, "finishedAt": rfc3339_now()}
            self._state = {"terminated": {"exitCode": code, "reason": reason, **times}}
        if self._restart_policy == "Always" or (self._restart_policy == "OnFailure" and code):
            self._last, self._state = self._state, {"waiting": {"reason": "CrashLoopBackOff"}}
            self._start_again_at = time.monotonic() + RESTART_SECONDS
        else:
            self.exit_code = code

    @property
    def _started(self) -> bool:
        return "running" in self._state and self._succeeded("startupProbe")

    def _succeeded(self, name: str) -> bool:
        return name not in self._probes or self._probes[name].succeeded


def rfc3339_now() -> str:
    """Now, in whole seconds, as the API writes times."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
