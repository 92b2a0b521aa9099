"""One `helm install` puts the webhook in the way of pods, over a certificate of its own."""

import base64
import socket
import ssl

from tests.install.release import Release
from tests.live.scene import Scene, sentence
from tests.live.serving import WEBHOOK


def test_one_pod_too_many_is_refused_with_the_whole_sentence(release: Release, scene: Scene) -> None:
    release.wait_for_full(scene.name)
    applied = scene.apply(scene.pod("late"))
    assert applied.returncode == 1, applied.stdout
    start = f'Error from server (Forbidden): error when creating "STDIN": admission webhook "{WEBHOOK}" denied the '
    assert applied.stderr.startswith(start)
    said = applied.stderr.removeprefix(f"{start}request: ").rstrip("\n")
    assert sentence(scene.resource, f"all 4 devices of class {scene.name} are taken in 1 pool").fullmatch(said)


def test_the_namespace_chooses_the_mode(release: Release, scene: Scene) -> None:
    release.wait_for_full(scene.name)
    for mode, warned in (("warn", True), ("audit", False), ("off", False)):
        scene.client.patch(f"/api/v1/namespaces/{scene.name}", {"metadata": {"labels": {"gpu-vacancy.dev/mode": mode}}})
        applied = scene.apply(scene.pod(mode), "--dry-run=server")
        assert applied.stdout == f"pod/{mode} created (server dry run)\n"
        assert ("Warning: [NoGPUCapacity]" in applied.stderr) is warned


def test_whoever_applies_a_deployment_is_warned(release: Release, scene: Scene) -> None:
    release.wait_for_full(scene.name)
    labels = {"app": "late"}
    template = {"metadata": {"labels": labels}, "spec": scene.pod("late")["spec"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "late", "namespace": scene.name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    applied = scene.apply(deployment, "--dry-run=server")
    assert applied.stdout == "deployment.apps/late created (server dry run)\n"
    assert "Warning: " in applied.stderr


def test_the_self_test_passes(release: Release) -> None:
    release.test()


def test_both_replicas_show_what_the_one_authority_vouches_for(release: Release) -> None:
    bundles = {webhook["clientConfig"]["caBundle"] for each in release.configurations() for webhook in each["webhooks"]}
    [bundle] = [base64.b64decode(each).decode() for each in bundles]
    assert bundle.count("BEGIN CERTIFICATE") == 1
    context = ssl.create_default_context(cadata=bundle)
    addresses = [each["status"]["podIP"] for each in release.replicas()]
    assert len(addresses) == 2
    for address in addresses:
        with (
            socket.create_connection((address, 8443)) as connection,
            context.wrap_socket(connection, server_hostname=f"{release.name}.{release.name}.svc") as secure,
        ):
            assert secure.version() == "TLSv1.3"
