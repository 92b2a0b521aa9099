"""What the kubelet asks: does the process live, may it get traffic."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Check = Callable[[], str]
"""Returns what is missing, or nothing."""


@dataclass(slots=True)
class Probes:
    """Readiness, check by check. One writer: the composition root.

    Liveness is no more than an answer: it must never depend on the API server, or an outage of that restarts us too.
    """

    checks: Mapping[str, Check] = field(default_factory=dict)
    draining: bool = False
    """The process was told to stop: no new connections, please."""

    def problems(self) -> dict[str, str]:
        """Check by name, with what is missing; empty text where nothing is."""
        draining = "told to stop" if self.draining else ""
        return {name: check() for name, check in self.checks.items()} | {"draining": draining}

    def readiness(self, *, verbose: bool) -> tuple[int, str]:
        """Status code and text of `/readyz`, in the form of kube-apiserver's."""
        problems = self.problems()
        ready = not any(problems.values())
        if ready and not verbose:
            return 200, "ok"
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in problems.items()]
        lines.append("readyz check passed" if ready else "readyz check failed")
        return (200 if ready else 503), "\n".join(lines) + "\n"
