"""Probes of a container: HTTP only, at the times and with the thresholds that Kubernetes documents."""

import contextlib
import http.client
import ssl

from tests.controlplane.client import Json


class Probe:
    """One probe of one running container, asked in turn. Seconds are of the monotonic clock."""

    def __init__(self, spec: Json, host: str, ports: dict[str, int], started: float) -> None:
        """`ports`: the container's, by name."""
        get = spec["httpGet"]
        self._path, self._secure = get.get("path", "/"), get.get("scheme") == "HTTPS"
        self._host = host
        self._port: int = ports[get["port"]] if isinstance(get["port"], str) else get["port"]
        self._period: float = spec.get("periodSeconds", 10)
        self._timeout: float = spec.get("timeoutSeconds", 1)
        self._tolerated: int = spec.get("failureThreshold", 3)
        self._due: float = started + spec.get("initialDelaySeconds", 0)
        self.failures = 0
        """One after the other, without a success between."""
        self.succeeded = False
        """It has, and has not failed too often since."""

    @property
    def failed(self) -> bool:
        """More failures than are tolerated."""
        return self.failures >= self._tolerated

    def ask(self, now: float) -> None:
        """Ask if it is time."""
        if now < self._due:
            return
        self._due = now + self._period
        if self._answers():
            self.failures, self.succeeded = 0, True
            return
        self.failures += 1
        if self.failed:
            self.succeeded = False

    def _answers(self) -> bool:
        # The kubelet trusts any certificate.
        context = ssl._create_unverified_context() if self._secure else None  # noqa: S323, SLF001
        connection = (
            http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
            if self._secure
            else http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        )
        with contextlib.closing(connection):
            try:
                connection.request("GET", self._path)
                return http.HTTPStatus.OK <= connection.getresponse().status < http.HTTPStatus.BAD_REQUEST
            except (OSError, http.client.HTTPException):
                return False
