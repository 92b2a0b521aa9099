"""An uninstallation leaves the cluster as it was."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.helm import Helm
from tests.controlplane.kubelet import Kubelet
from tests.controlplane.waiting import until
from tests.install.inventory import inventory, leave_behind
from tests.install.release import Release
from tests.live.scene import Scene

EVERY_KIND = {
    "tenantGroups": ["developers"],
    "tenantRequests": {"enabled": True, "groups": ["developers"]},
    "networkPolicy": {"enabled": True},
}


@pytest.mark.parametrize(
    ("program", "values"),
    [
        pytest.param("helm4", {}, id="Helm 4, defaults"),
        pytest.param("helm3", EVERY_KIND, id="Helm 3, objects of every kind"),
    ],
)
def test_nothing_is_left(  # noqa: PLR0913, PLR0917 - parametrized, and with many parts
    kubelet: Kubelet,
    scene: Scene,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    program: str,
    values: dict[str, Any],
) -> None:
    with Release(kubelet, Helm(program, tmp_path), tmp_path) as release:
        before = inventory(scene.client)
        began = time.monotonic()
        release.install(**values)
        installed = time.monotonic() - began
        release.test()
        leave_behind(scene.client, scene.driver)
        assert any("clusterroles" in each for each in inventory(scene.client) - before)
        began = time.monotonic()
        release.uninstall()
        uninstalled = time.monotonic() - began

        left: set[str] = set()

        def none_is_left() -> bool:
            nonlocal left
            left = inventory(scene.client) - before
            return not left

        with suppress(TimeoutError):
            until("nothing left", none_is_left, seconds=60)
        assert left == set()
    with capsys.disabled():
        print(  # noqa: T201 - to be written down
            f"\n{program}: ready in {installed:.1f} s, uninstalled in {uninstalled:.1f} s,"
            f" without a trace in {time.monotonic() - began:.1f} s"
        )
