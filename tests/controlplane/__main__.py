"""`python -m tests.controlplane [FOLDER]`: a playground, a real control plane filled with the example until Ctrl-C."""

# ruff: noqa: T201  # a command prints

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.controlplane.build import CannotBuild
from tests.controlplane.client import Refused
from tests.controlplane.fill import NotTaken, fill
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import NotReady

_EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster"
_HINTS = """\
There is no kubelet: a pod that has got its node stays Pending, and keeps its devices until it is deleted with
  kubectl delete pod NAME --grace-period=0 --force
Ctrl-C ends everything."""


def main() -> int:
    """Run a plane until it is interrupted. Return 0, or 1 after a message on stderr that says what went wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.controlplane", description="Run a control plane to play with."
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", default=_EXAMPLE, help="manifests to fill it with (the example)"
    )
    folder = parser.parse_args().folder
    for end in (signal.SIGINT, signal.SIGTERM):  # both, also where a shell started us with SIGINT ignored
        signal.signal(end, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="vacancy-cluster-") as directory:
            started = time.monotonic()
            with ControlPlane(Path(directory)) as plane:
                fill(plane, folder)
                print(f"Ready in {time.monotonic() - started:.0f} s, with {folder}. Logs are in {directory}.")
                print(f"export KUBECONFIG={plane.kubeconfig}", _HINTS, sep="\n", flush=True)
                while True:
                    signal.pause()
    except KeyboardInterrupt:
        return 0
    except (CannotBuild, NotReady, NotTaken, Refused, TimeoutError) as problem:
        print(f"controlplane: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
