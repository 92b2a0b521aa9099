"""A Secret and webhook configurations in a real cluster, beside Helm, which has written them before and will again."""

import asyncio
import base64
import itertools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from app.cluster.certificate_secret import CertificateSecret, HeldData
from app.cluster.client import ApiClient, Conflict, NotFound
from app.cluster.webhooks import PATH as CONFIGURATIONS
from tests.apiserver import ApiServer
from tests.controlplane.client import Json
from tests.controlplane.helm import Helm
from tests.controlplane.plane import ControlPlane

T = TypeVar("T")
SECRETS = "/api/v1/namespaces/default/secrets"
BUNDLE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEYS = ("ca.crt", "tls.key")

_numbers = itertools.count()


def on(plane: ControlPlane, name: str, story: Callable[[CertificateSecret], Awaitable[T]], *others: str) -> T:
    """Tell a story of the Secret and the configuration of that name; `others`: more configurations."""

    async def main() -> T:
        async with await ApiClient.connect(plane.kubeconfig, None) as client:
            return await story(CertificateSecret(client, "default", name, (name, *others)))

    return asyncio.run(main())


async def published(secret: CertificateSecret) -> None:
    for configuration in await secret.configurations():
        await secret.publish(configuration, BUNDLE)


@pytest.fixture
def name() -> str:
    return f"certificate-secret-{next(_numbers)}"


def webhook(name: str, client_config: Json) -> Json:
    return {
        "name": f"{name}.pods.gpu-vacancy.dev",
        "clientConfig": client_config,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"nobody": "at-all"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


SERVICE = {"name": "vacancy", "namespace": "gpu", "path": "/validate"}


def configuration(name: str) -> Json:
    webhooks = [webhook("enforce", {"service": SERVICE}), webhook("warn", {"service": SERVICE})]
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return kind | {"metadata": {"name": name}, "webhooks": webhooks}


def without_bookkeeping(found: Json) -> Json:
    meta = {key: value for key, value in found["metadata"].items() if key in {"name", "uid", "labels"}}
    return found | {"metadata": meta}


# --- The Secret -------------------------------------------------------------------------------------------------------


def test_what_is_written_replaces_what_was_read_and_nothing_else(plane: ControlPlane, name: str) -> None:
    client = plane.client()
    other = base64.b64encode(b"other").decode()
    client.post(SECRETS, {"metadata": {"name": name, "labels": {"a": "b"}}, "data": {"tls.key": other, "more": other}})
    before = client.get(f"{SECRETS}/{name}")

    async def story(secret: CertificateSecret) -> HeldData:
        await secret.write(await secret.read(KEYS), {"ca.crt": b"\x00new"})
        return await secret.read(KEYS)

    assert on(plane, name, story).data == {"ca.crt": b"\x00new"}
    after = client.get(f"{SECRETS}/{name}")
    data = {"ca.crt": base64.b64encode(b"\x00new").decode(), "more": other}
    assert without_bookkeeping(after) == without_bookkeeping(before) | {"data": data}


def test_who_was_second_is_told(plane: ControlPlane, name: str) -> None:
    plane.client().post(SECRETS, {"metadata": {"name": name}})

    async def story(secret: CertificateSecret) -> HeldData:
        both_read = await secret.read(KEYS)
        assert both_read.data == {}
        await secret.write(both_read, {"ca.crt": b"first"})
        with pytest.raises(Conflict):
            await secret.write(both_read, {"ca.crt": b"second"})
        return await secret.read(KEYS)

    assert on(plane, name, story).data == {"ca.crt": b"first"}


def test_a_secret_that_is_not_there_is_not_made(plane: ControlPlane, name: str) -> None:
    async def story(secret: CertificateSecret) -> None:
        with pytest.raises(NotFound):
            await secret.read(KEYS)
        with pytest.raises(NotFound):
            await secret.write(HeldData("1", {}), {"ca.crt": b"new"})

    on(plane, name, story)


# --- The configurations -----------------------------------------------------------------------------------------------


def test_a_configuration_says_by_which_names_it_calls_us(plane: ControlPlane, name: str) -> None:
    urls = ["https://GPU.example.com:9443/validate", "https://[2001:db8::1]/validate", "https://10.0.0.1:8443/"]
    webhooks = [webhook("service", {"service": SERVICE})]
    webhooks += [webhook(f"url{number}", {"url": url}) for number, url in enumerate(urls)]
    plane.client().post(CONFIGURATIONS, {"metadata": {"name": name}, "webhooks": webhooks})

    async def story(secret: CertificateSecret) -> None:
        [found] = await secret.configurations()  # and the other one is not there yet
        assert found.servers == ("vacancy.gpu.svc", "gpu.example.com", "2001:db8::1", "10.0.0.1")
        assert list(found.bundles.values()) == [b""] * 4

    on(plane, name, story, "not-there-yet")


@pytest.mark.parametrize("url", ["https://[::1/validate", "https://[x]/validate", "validate", ""])
def test_a_url_that_is_none_names_no_server_and_hides_no_other(tmp_path: Path, url: str) -> None:
    async def main() -> tuple[str, ...]:
        async with ApiServer() as server:
            webhooks = [webhook("bad", {"url": url}), webhook("service", {"service": SERVICE})]
            server.put(CONFIGURATIONS, {"metadata": {"name": "vacancy"}, "webhooks": webhooks})
            async with await ApiClient.connect(server.kubeconfig(tmp_path), None) as client:
                [found] = await CertificateSecret(client, "default", "vacancy", ("vacancy",)).configurations()
                return found.servers

    assert asyncio.run(main()) == ("vacancy.gpu.svc",)


def test_nothing_of_a_configuration_is_written_but_its_bundles(plane: ControlPlane, name: str) -> None:
    client = plane.client()
    before = client.post(CONFIGURATIONS, configuration(name))
    on(plane, name, published)
    after = client.get(f"{CONFIGURATIONS}/{name}")
    for each in before["webhooks"]:
        each["clientConfig"]["caBundle"] = base64.b64encode(BUNDLE).decode()
    assert after["webhooks"] == before["webhooks"]
    [ours] = [each for each in after["metadata"]["managedFields"] if each["manager"] == "vacancy-certificates"]
    assert ours["operation"] == "Update"
    of_each = [owned for key, owned in ours["fieldsV1"]["f:webhooks"].items()]
    assert of_each == [{"f:clientConfig": {"f:caBundle": {}}}] * 2


def test_a_bundle_is_not_written_over_a_change_that_was_not_seen(plane: ControlPlane, name: str) -> None:
    plane.client().post(CONFIGURATIONS, configuration(name))

    async def story(secret: CertificateSecret) -> None:
        [before] = await secret.configurations()
        await secret.publish(before, BUNDLE)
        with pytest.raises(Conflict):
            await secret.publish(before, b"older")
        [after] = await secret.configurations()
        assert set(after.bundles.values()) == {BUNDLE}

    on(plane, name, story)


def test_who_applies_the_same_object_as_before_sees_no_difference_and_no_conflict(
    plane: ControlPlane, name: str
) -> None:
    manifest = json.dumps(configuration(name))
    as_helm = ("--server-side", "--field-manager=helm", "-f", "-")
    assert plane.kubectl("apply", *as_helm, input=manifest).returncode == 0
    on(plane, name, published)
    compared = plane.kubectl("diff", *as_helm, input=manifest)
    assert (compared.returncode, compared.stdout, compared.stderr) == (0, "", "")
    assert plane.kubectl("apply", *as_helm, input=manifest).returncode == 0
    assert bundles(plane, name) == {"enforce": BUNDLE, "warn": BUNDLE}


def bundles(plane: ControlPlane, name: str) -> dict[str, bytes]:
    webhooks = plane.client().get(f"{CONFIGURATIONS}/{name}")["webhooks"]
    return {
        each["name"].partition(".")[0]: base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in webhooks
    }


# --- Helm -------------------------------------------------------------------------------------------------------------


def chart(folder: Path, name: str, *modes: str, path: str = "/validate") -> Path:
    """A chart of one configuration with a webhook for each mode, and of an empty Secret."""
    (folder / "templates").mkdir(exist_ok=True)
    (folder / "Chart.yaml").write_text(json.dumps({"apiVersion": "v2", "name": "chart", "version": "0.1.0"}))
    webhooks = [webhook(mode, {"service": SERVICE | {"path": path}}) for mode in modes]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque"}
    (folder / "templates" / "both.yaml").write_text(
        f"{json.dumps(configuration(name) | {'webhooks': webhooks})}\n---\n{json.dumps(secret)}\n"
    )
    return folder


@pytest.mark.parametrize("version", ["helm4", "helm3"])
def test_helm_upgrades_what_we_have_written_and_keeps_it(
    plane: ControlPlane, name: str, version: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    anywhere: Helm = request.getfixturevalue(version)
    helm = anywhere.towards(plane.kubeconfig)
    helm("install", name, chart(tmp_path, name, "enforce", "warn", "audit"))

    async def first(secret: CertificateSecret) -> None:
        await secret.write(await secret.read(KEYS), {"ca.crt": b"ours"})
        await published(secret)

    on(plane, name, first)
    helm("upgrade", name, chart(tmp_path, name, "enforce", "warn", "audit"))
    helm("upgrade", name, chart(tmp_path, name, "enforce", "warn", "audit", path="/elsewhere"))
    assert bundles(plane, name) == dict.fromkeys(("enforce", "warn", "audit"), BUNDLE)
    # An item that we had applied, and not updated, could not be taken out any more by Helm 4.
    helm("upgrade", name, chart(tmp_path, name, "audit", "enforce"))
    assert bundles(plane, name) == {"audit": BUNDLE, "enforce": BUNDLE}
    helm("upgrade", name, chart(tmp_path, name, "enforce", "warn"))
    assert bundles(plane, name) == {"enforce": BUNDLE, "warn": b""}
    assert on(plane, name, lambda secret: secret.read(KEYS)).data == {"ca.crt": b"ours"}
    helm("uninstall", name)
    assert on(plane, name, lambda secret: secret.configurations()) == []
