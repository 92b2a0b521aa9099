"""Pods run; a release with the chart's defaults is there for all tests of a file."""

from collections.abc import Iterator

import pytest

from tests.controlplane.helm import Helm
from tests.controlplane.kubelet import Kubelet
from tests.controlplane.plane import ControlPlane
from tests.install.release import VACANCY, Release
from tests.live.scene import Scene


@pytest.fixture(scope="session")
def kubelet(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    """There is a node, and pods of the chart really run."""
    plane.add_node("install")
    with Kubelet(plane, tmp_path_factory.mktemp("install") / "pods", {"vacancy": VACANCY}) as kubelet:
        yield kubelet
    plane.client().delete("/api/v1/nodes/install")


@pytest.fixture(scope="module")
def release(kubelet: Kubelet, helm4: Helm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """Installed with nothing but defaults."""
    with Release(kubelet, helm4, tmp_path_factory.mktemp("release")) as release:
        release.install()
        yield release


@pytest.fixture
def scene(kubelet: Kubelet) -> Iterator[Scene]:
    """Four devices and a class, which is named after the scene; all are taken."""
    scene = Scene(kubelet.plane)
    scene.add_class()
    scene.publish(4)
    scene.fill(4)
    yield scene
    scene.close()
