"""Two replicas renew their certificates in a real cluster while it asks both about every pod: no call is lost."""

import base64
import contextlib
import http.client
import json
import os
import signal
import ssl
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.cluster.rights import ROLES
from app.cluster.webhooks import PATH as CONFIGURATIONS
from tests.controlplane.client import Json
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Server, free_port
from tests.controlplane.waiting import until
from tests.live.scene import Scene
from tests.live.serving import account
from tests.tls.handshake import shown, trusting

HOSTS = ("127.0.0.1", "localhost")
KEYS = {"ca.crt", "ca.key", "tls.crt", "tls.key"}


class Replica:
    """One process, and the configuration that sends to it by one name of this machine."""

    def __init__(self, life: "Life", name: str, host: str, folder: Path, kubeconfig: Path) -> None:
        self.name, self.host, self.port, self._web = name, host, free_port(), free_port()
        self.hook = f"{self.name}.pods.gpu-vacancy.dev"
        self._client, self._label, self.log = life.client, life.label, folder / name
        flags = {
            "--kubeconfig": str(kubeconfig),
            "--source": "witness",
            "--tls-secret": f"default/{life.name}",
            "--webhooks": ",".join(life.names),
            "--listen": f"127.0.0.1:{self.port}",
            "--web-listen": f"127.0.0.1:{self._web}",
        }
        words = [word for flag in flags.items() for word in flag]
        self.server = Server([sys.executable, "-m", "tests.live.short_lived", f"{life.seconds:g}", *words], self.log)

    def stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):  # the second one skips the draining
            os.kill(self.server.pid, number)
        self.server.stop()

    def register(self) -> None:
        webhook = {
            "name": self.hook,
            "clientConfig": {"url": f"https://{self.host}:{self.port}/validate/enforce"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": self._label},
            "failurePolicy": "Ignore",
            "timeoutSeconds": 10,  # a busy machine must not fail open
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        self._client.post(CONFIGURATIONS, {"metadata": {"name": self.name}, "webhooks": [webhook]})

    def get(self, path: str) -> tuple[int, str]:
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self._web, timeout=30)) as connection:
                connection.request("GET", path)
                answered = connection.getresponse()
                return answered.status, answered.read().decode()
        except ConnectionRefusedError:
            return 0, ""

    def is_ready(self) -> bool:
        return self.get("/readyz")[0] == http.HTTPStatus.OK

    def sample(self, name: str) -> float:
        lines = self.get("/metrics")[1].splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.partition(" ")[0] == name)

    def bundle(self) -> bytes:
        [webhook] = self._client.get(f"{CONFIGURATIONS}/{self.name}")["webhooks"]
        return base64.b64decode(webhook["clientConfig"].get("caBundle", ""))

    def failed_open(self) -> float:
        """How often the API server let a pod through because a call to this one came to nothing."""
        metrics = self._client.http.get("/metrics").text.splitlines()
        found = [each for each in metrics if each.startswith("apiserver_admission_webhook_fail_open_count{")]
        return sum(float(each.rpartition(" ")[2]) for each in found if f'name="{self.hook}"' in each)


class Life:
    """Two replicas, and pods that both must refuse."""

    def __init__(self, plane: ControlPlane, folder: Path, name: str, seconds: float) -> None:
        """`name`: of the service account and the Secret; `seconds`: how long a certificate lives."""
        self.plane, self.client, self.name, self.seconds = plane, plane.client(), name, seconds
        self.names, self.label = (f"{name}-0", f"{name}-1"), {"certificates": name}
        kubeconfig = account(plane, name, ROLES)
        applied = plane.kubectl("apply", "-f", "-", input=json.dumps(rights(name, self.names)))
        assert applied.returncode == 0, applied.stderr
        self.client.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": name}})
        made = zip(self.names, HOSTS, strict=True)
        self.replicas = [Replica(self, each, host, folder, kubeconfig) for each, host in made]
        self.scene = Scene(plane, self.label)

    def close(self) -> None:
        for replica in self.replicas:
            replica.stop()
            self.client.http.delete(f"{CONFIGURATIONS}/{replica.name}")
        self.scene.close()

    @property
    def data(self) -> dict[str, str]:
        data: dict[str, str] = self.client.get(f"/api/v1/namespaces/default/secrets/{self.name}").get("data", {})
        return data

    def is_in_step(self) -> bool:
        """Whether the Secret is whole, and everybody shows and trusts what it holds."""
        data = self.data
        return data.keys() >= KEYS and "AAAA" not in data.values() and all(map(self._is_in_step, self.replicas))

    def _is_in_step(self, replica: "Replica") -> bool:
        anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
        der = ssl.PEM_cert_to_DER_cert(base64.b64decode(self.data["tls.crt"]).decode())
        return replica.sample("vacancy_ca_bundle_in_step") == 1 and shown(anybody, replica.port) == der

    def spoil(self, data: Json) -> None:
        self.client.patch(f"/api/v1/namespaces/default/secrets/{self.name}", {"data": data})

    def changes(self) -> dict[str, float]:
        outcomes = ("created", "repaired", "authority-announced", "renewed", "authority-retired", "conflict", "failed")
        name = "vacancy_certificate_rotations_total"
        return {
            outcome: sum(each.sample(f'{name}{{outcome="{outcome}"}}') for each in self.replicas)
            for outcome in outcomes
        }

    @contextlib.contextmanager
    def flow(self) -> Iterator["Flow"]:
        """Reviews and handshakes as long as this lasts; none of them may fail."""
        flow = Flow(self)
        before = [each.failed_open() for each in self.replicas]
        try:
            yield flow
        finally:
            flow.stop()
        assert flow.problems == []
        assert [each.failed_open() for each in self.replicas] == before
        assert min(flow.reviews, flow.handshakes) > 20


class Flow:
    """Pods that are asked for through the API server, and a client that shakes hands with both replicas."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self.problems: list[str] = []
        self.reviews = self.handshakes = 0
        self._done = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._ask, self._ask, self._shake)]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._done.set()
        for each in self._threads:
            each.join()

    def _ask(self) -> None:
        scene = self._life.scene
        while not self._done.wait(0.05):
            answered = scene.client.http.post(f"{scene.pods}?dryRun=All", json=scene.pod("late"))
            self.reviews += 1
            if answered.status_code != http.HTTPStatus.FORBIDDEN or "[NoGPUCapacity]" not in answered.text:
                self.problems.append(answered.text[:500])

    def _shake(self) -> None:
        while not self._done.wait(0.01):
            for replica in self._life.replicas:
                trusted = replica.bundle()
                try:
                    shown(trusting(trusted), replica.port, replica.host)
                except (OSError, ValueError) as error:
                    if replica.bundle() == trusted:  # else it was an old one: the API server would know
                        self.problems.append(f"{replica.name}: {error}")
                self.handshakes += 1


def rights(name: str, configurations: Sequence[str]) -> Json:
    """What a service account needs beside the ClusterRoles, as the chart gives it."""
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]
    items = []
    for scope, group, resource, names in (
        ("", "", "secrets", [name]),
        ("Cluster", "admissionregistration.k8s.io", "validatingwebhookconfigurations", list(configurations)),
    ):
        rule = {"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": ["get", "patch"]}
        metadata = {"name": f"{name}-certificates", "namespace": "default"}
        api = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}
        items.append(api | {"kind": f"{scope}Role", "rules": [rule]})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{scope}Role", "name": metadata["name"]}
        items.append(api | {"kind": f"{scope}RoleBinding", "roleRef": reference, "subjects": subjects})
    return {"apiVersion": "v1", "kind": "List", "items": items}


@contextlib.contextmanager
def living(plane: ControlPlane, folder: Path, name: str, seconds: float) -> Iterator[Life]:
    """Both start before there is a configuration, as with Helm 4, which makes those last."""
    life = Life(plane, folder, name, seconds)
    waiting = f"[-]certificate failed: none yet: no ValidatingWebhookConfiguration {', '.join(life.names)}"
    try:
        for replica in life.replicas:
            until("it says what it waits for", lambda replica=replica: waiting in replica.get("/readyz?verbose")[1])
        for replica in life.replicas:
            replica.register()
        for replica in life.replicas:
            until("ready", replica.is_ready)
        life.scene.fill_up()
        until("full for both", lambda: refused_by(life) == {each.hook for each in life.replicas})
        yield life
    finally:
        life.close()


@pytest.fixture
def short(plane: ControlPlane, tmp_path: Path) -> Iterator[Life]:
    """A certificate lives for 30 s: renewed after 20 s, a new authority after 60 s."""
    with living(plane, tmp_path, "short-lived", 30) as life:
        yield life


@pytest.fixture(scope="module")
def life(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """Nothing ends of itself while these tests run, however busy the machine is."""
    with living(plane, tmp_path_factory.mktemp("long-lived"), "long-lived", 3600) as life:
        yield life


def refused_by(life: Life) -> set[str]:
    """Who refuses a pod; the API server asks all at once, and names one of those that refuse."""
    scene = life.scene
    answers = [scene.client.http.post(f"{scene.pods}?dryRun=All", json=scene.pod("late")).text for _ in range(10)]
    return {each.hook for each in life.replicas if any(each.hook in answer for answer in answers)}


def test_three_certificates_and_an_authority_go_by_and_no_call_is_lost(
    short: Life, capsys: pytest.CaptureFixture[str]
) -> None:
    until("in step", short.is_in_step)
    before = short.changes()
    certificates, authorities = set(), set()

    def gone_by() -> bool:
        data = short.data
        certificates.add(data["tls.crt"])
        authorities.add(data["ca.crt"])
        changed = {outcome: count - before[outcome] for outcome, count in short.changes().items()}
        return changed["renewed"] >= 3 and changed["authority-announced"] == changed["authority-retired"] >= 1

    began = time.monotonic()
    with short.flow() as flow:
        until("three certificates and an authority", gone_by)
    told = f"{flow.reviews} pods and {flow.handshakes} handshakes in {time.monotonic() - began:.0f} s"
    assert len(certificates) >= 4
    assert len(authorities) >= 2
    after = short.changes()
    assert (after["failed"], after["repaired"]) == (before["failed"], before["repaired"])
    with capsys.disabled():
        print(f"\n{told}, {len(certificates)} certificates, {len(authorities)} authorities")  # noqa: T201 - to be kept


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param(dict.fromkeys(KEYS), id="emptied"),
        pytest.param(dict.fromkeys(KEYS, "AAAA"), id="garbage"),
        pytest.param({"tls.crt": None}, id="half a pair"),
        pytest.param({"ca.key": None}, id="an authority without its key"),
    ],
)
def test_a_secret_that_somebody_spoils_is_mended_and_no_call_is_lost(life: Life, spoilt: Json) -> None:
    until("in step", life.is_in_step)
    served = life.data["tls.crt"]
    with life.flow() as flow:
        life.spoil(spoilt)
        until("mended", lambda: life.is_in_step() and life.data["tls.crt"] != served)
        enough = flow.handshakes + 40
        until("more handshakes", lambda: flow.handshakes > enough)


def test_a_bundle_that_somebody_empties_is_there_again(life: Life) -> None:
    until("in step", life.is_in_step)
    replica = life.replicas[0]
    patch = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
    life.plane.kubectl(
        "patch", "validatingwebhookconfiguration", replica.name, "--type=json", f"--patch={json.dumps(patch)}"
    )
    until("a bundle", replica.bundle)
    with life.flow() as flow:
        until("some reviews", lambda: min(flow.reviews, flow.handshakes) > 20)


def test_nothing_of_a_key_is_on_a_disk_or_in_a_log(life: Life) -> None:
    until("in step", life.is_in_step)
    keys = [base64.b64decode(life.data[key]).split(b"\n")[1] for key in ("ca.key", "tls.key")]
    for replica in life.replicas:
        assert not [key for key in keys if key in replica.log.read_bytes()]
        descriptors = Path(f"/proc/{replica.server.pid}/fd")
        assert not [each for each in descriptors.iterdir() if "memfd:pem" in str(each.readlink())]
