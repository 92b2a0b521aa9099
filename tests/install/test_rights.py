"""Every right that the chart grants is used, and nothing is tried that it does not grant."""

import base64
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from certs.serving import throwaway_pair
from tests.controlplane.client import Json
from tests.controlplane.helm import Helm
from tests.controlplane.kubelet import Kubelet
from tests.controlplane.waiting import until
from tests.install.inventory import leave_behind
from tests.install.release import Release
from tests.install.rights import granted, used
from tests.live.owners import Owner
from tests.live.scene import DRA, Scene

UNWOKEN = {"wake": {"enabled": False}}

COMBINATIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "counts alone": UNWOKEN | {"rights": {"witness": False}},
    "source pool-status": UNWOKEN | {"source": "pool-status"},
    "source witness": UNWOKEN | {"source": "witness", "tenantRequests": {"enabled": True}},
    "the live view alone": UNWOKEN | {"rights": {"poolStatus": False}},
    "no claims": UNWOKEN | {"rights": {"claims": False}},
    "no nodes, no taint rules": UNWOKEN | {"rights": {"nodes": False, "taintRules": False}},
    "a pair that is brought along": UNWOKEN | {"tls": {"mode": "existing-secret", "existingSecret": "pair"}},
    "bounds for everyone else": UNWOKEN | {"tenantRequests": {"enabled": True}, "workloads": {"enabled": False}},
}

UNSEEN = "bypass-bounds"
"""A verb that a policy asks for; it is no verb of a request."""

WOKEN = ("ReplicaSet", "StatefulSet", "ReplicationController", "Job")

ATTEMPTS = {"Job": 3}
"""Of a controller before the next is seconds away, as a Job's after 0, 1 and 3 s; most make ten within 3 s."""


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_what_is_granted_is_what_is_used(
    kubelet: Kubelet, helm4: Helm, scene: Scene, tmp_path: Path, combination: str
) -> None:
    values = COMBINATIONS[combination]
    with Release(kubelet, helm4, tmp_path) as release:
        if "tls" in values:
            values = values | {"tls": values["tls"] | {"caBundle": bring_along(release, tmp_path)}}
        release.install(replicas=1, refreshSeconds=1, **values)
        rights = {right for right in granted(release.objects()) if right.verb != UNSEEN}
        of_server = {right for right in rights if right.account == release.name}
        pods = pods_with_claims(scene)
        if "wake" not in values:
            refuse_and_let_in(release, scene)

        def server_has_used_all() -> bool:
            for pod in pods:
                scene.apply(pod, "--dry-run=server")
            return of_server <= used(kubelet.plane.audit(release.name), rights)[0]

        with suppress(TimeoutError):  # what is missing is said below
            until("every right used", server_has_used_all, seconds=20)
        release.test()
        events = kubelet.plane.audit(release.name)  # after this the server ends, and has no rights any more
        leave_behind(scene.client, scene.driver)
        release.uninstall()
        events += [each for each in kubelet.plane.audit(release.name) if each["user"]["username"].endswith("-cleanup")]
    done, refused = used(events, rights)
    assert set(map(str, rights - done)) == set()
    assert set(map(str, done - rights)) == set()
    assert set(map(str, refused)) == set()


def pods_with_claims(scene: Scene) -> list[Json]:
    """A pod that names a claim, and one that names a template."""
    request = {"name": "gpu", "exactly": {"deviceClassName": scene.name}}
    claim = {"metadata": {"name": "claim"}, "spec": {"devices": {"requests": [request]}}}
    scene.client.post(f"{DRA}/namespaces/{scene.name}/resourceclaims", claim)
    by_template = scene.pod("by-template", template=scene.add_template("template", request))
    by_claim = scene.pod("by-claim", template="template")
    by_claim["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "claim"}]
    return [by_claim, by_template]


def refuse_and_let_in(release: Release, scene: Scene) -> None:
    """Have a pod of each kind of owner refused until its controller rests, then free devices for all."""
    release.wait_for_full(scene.name)
    owners = [Owner.make(scene, kind) for kind in WOKEN]
    for owner in owners:
        until(f"{owner.kind} rests", lambda owner=owner: owner.refusals() >= ATTEMPTS.get(owner.kind, 9))  # type: ignore[misc]
    for number in range(len(owners)):
        scene.free(f"holder-{number}")


def bring_along(release: Release, folder: Path) -> str:
    """Make the Secret `pair`; who has signed what is in it, in PEM."""
    throwaway_pair([f"{release.name}.{release.name}.svc"], [], time.time()).write(folder)
    data = {name: base64.b64encode((folder / name).read_bytes()).decode() for name in ("tls.crt", "tls.key")}
    release.client.post(f"/api/v1/namespaces/{release.name}/secrets", {"metadata": {"name": "pair"}, "data": data})
    return (folder / "ca.crt").read_text()
