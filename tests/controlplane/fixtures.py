"""What all tests of a run share: the control plane, and Helm.

In the plane each makes its own driver names, device classes and namespaces.
"""

import signal
from collections.abc import Iterator

import pytest

from tests.controlplane.helm import Helm
from tests.controlplane.plane import ControlPlane


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with the scheduler and with pool statuses, built before the first test that asks for it."""
    # A time limit ends a run with SIGTERM, which would leave the servers behind: end it as Ctrl-C does, orderly.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ControlPlane(tmp_path_factory.mktemp("controlplane")) as plane:
            yield plane
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def helm4(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """The newest Helm, which applies on the server side. It knows no cluster."""
    return Helm("helm4", tmp_path_factory.mktemp("helm4"))


@pytest.fixture(scope="session")
def helm3(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm 3.17, which thinks that Kubernetes is at 1.32: `--kube-version` tells it better. It knows no cluster."""
    return Helm("helm3", tmp_path_factory.mktemp("helm3"))
