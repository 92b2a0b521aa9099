"""The whole program: real processes, real TLS on loopback, real signals."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvloop

from app import serve
from app.admission.review import MAX_BODY_BYTES
from app.dra.demand import ClaimReferences, Lookup, Lookups
from app.listeners import GRACE_SECONDS, MAX_HEAD_BYTES, MAX_WEB_HEAD_BYTES
from app.settings import BadSettings, Settings, read_settings, settings_reading
from app.tls import reload
from certs.serving import throwaway_pair
from tests.apiserver import ApiServer
from tests.web.reviews import UID, pod, review
from tests.web.tiny_cluster import CLUSTER

TIMEOUT = 30.0  # seconds; only a hang reaches it
CLOCK = "2026-01-01T00:00:00Z"
ANYWHERE = ("--listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0")


CLAIMING = {"containers": [{}], "resourceClaims": [{"name": "a", "resourceClaimName": "c"}]}


@dataclass(frozen=True, slots=True)
class Running:
    """A server: its addresses, and the authority to trust."""

    webhook: str
    web: str
    ca: Path
    hint: tuple[str, str] = ("", "")
    """What it says to a person: the page, and a command that posts a review."""

    def tls(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection(self.webhook, timeout=TIMEOUT, context=context)

    def review(self, body: bytes, path: str = "/validate?timeout=1s") -> tuple[int, bytes]:
        with contextlib.closing(self.tls()) as connection:
            connection.request("POST", path, body, {"content-type": "application/json"})
            answered = connection.getresponse()
            return answered.status, answered.read()

    def allowed(self, resource: str) -> bool:
        status, body = self.review(review(pod(resource)))
        assert status == 200
        return json.loads(body)["response"]["allowed"]

    def get(self, path: str) -> tuple[int, str]:
        with contextlib.closing(http.client.HTTPConnection(self.web, timeout=TIMEOUT)) as connection:
            connection.request("GET", path)
            answered = connection.getresponse()
            return answered.status, answered.read().decode()


def manifests(folder: Path) -> Path:
    (folder / "cluster.yaml").write_text(CLUSTER, "utf-8")
    return folder


def started(folder: Path) -> tuple[subprocess.Popen[str], Running, list[dict[str, object]]]:
    """`vacancy serve` in a process of its own, once it says that it is ready; with the log so far."""
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "serve", "--manifests", str(manifests(folder)), "--now", CLOCK, *ANYWHERE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    log = []
    for line in process.stdout:
        log.append(json.loads(line))
        if log[-1]["msg"] == "ready":
            break
    facts = {name: str(value) for line in log for name, value in line.items()}
    assert process.stderr is not None
    hint = (process.stderr.readline(), process.stderr.readline())
    return process, Running(facts["webhook"], facts["web"], Path(facts["ca"]), hint), log


def ended(process: subprocess.Popen[str], timeout: float = TIMEOUT) -> int:
    with process:
        try:
            return process.wait(timeout)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    process, server, _ = started(tmp_path_factory.mktemp("manifests"))
    yield server
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == 0


# --- Answers over the wire --------------------------------------------------------------------------------------------


def test_one_pod_is_refused_and_one_admitted_over_tls(running: Running) -> None:
    assert running.allowed("example.com/full") is False
    assert running.allowed("example.com/roomy") is True


def test_a_connection_is_kept_from_review_to_review(running: Running) -> None:
    with contextlib.closing(running.tls()) as connection:
        for _ in range(3):
            connection.request("POST", "/validate", review(pod()), {"content-type": "application/json"})
            answered = connection.getresponse()
            assert json.loads(answered.read())["response"]["uid"] == UID
            assert answered.getheader("connection") is None
            assert answered.getheader("server") is None


def test_it_is_ready_and_has_a_page(running: Running) -> None:
    assert running.get("/readyz") == (200, "ok")
    assert "example.com/full" in running.get("/")[1]


def test_it_speaks_tls_1_3_only(running: Running) -> None:
    context = ssl.create_default_context(cafile=running.ca)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        http.client.HTTPSConnection(running.webhook, context=context).connect()


HEAD = b"POST /validate HTTP/1.1\r\nhost: v\r\ncontent-type: application/json\r\n"
TOO_LARGE = 5 * 1024 * 1024
CHUNK = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

WIRE: dict[str, tuple[bytes, bytes, bytes]] = {
    "5 MB with a length": (
        HEAD + b"content-length: %d\r\n\r\n" % TOO_LARGE + b" " * TOO_LARGE,
        b"413",
        b"4194304 bytes\n",
    ),
    "5 MB in chunks": (
        HEAD + b"transfer-encoding: chunked\r\n\r\n" + CHUNK * (TOO_LARGE // 0x10000) + b"0\r\n\r\n",
        b"413",
        b"4194304 bytes\n",
    ),
    "the largest body": (
        HEAD + b"content-length: %d\r\n\r\n" % MAX_BODY_BYTES + review(pod()).ljust(MAX_BODY_BYTES),
        b"200",
        b'"code":403}',
    ),
    "an empty body": (HEAD + b"content-length: 0\r\n\r\n", b"400", b"\n"),
    "GET": (b"GET /validate HTTP/1.1\r\nhost: v\r\n\r\n", b"405", b"expected POST, found GET\n"),
    "another path": (b"GET /metrics HTTP/1.1\r\nhost: v\r\n\r\n", b"404", b"/validate-workload\n"),
    "text": (
        b"POST /validate HTTP/1.1\r\nhost: v\r\ncontent-length: 1\r\n\r\n1",
        b"415",
        b"expected content type application/json\n",
    ),
    "an endless head": (HEAD + b"x: ".ljust(MAX_HEAD_BYTES, b"x"), b"431", b"connection: close\r\n\r\n"),
    "no HTTP": (b"\x16\x03\x01\x00\xff\r\n\r\n", b"400", b"Invalid HTTP request received."),
}


@pytest.mark.parametrize("case", WIRE)
def test_bytes_on_the_wire_are_answered(running: Running, case: str) -> None:
    sent, status, said = WIRE[case]
    host, port = running.webhook.split(":")
    context = ssl.create_default_context(cafile=running.ca)
    with (
        socket.create_connection((host, int(port)), TIMEOUT) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        connection.sendall(sent)
        received = b""
        while said not in received and (some := connection.recv(65536)):
            received += some
    assert received.startswith(b"HTTP/1.1 " + status)
    assert said in received


def test_a_long_head_is_refused_where_anybody_may_ask(running: Running) -> None:
    host, port = running.web.split(":")
    with socket.create_connection((host, int(port)), TIMEOUT) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nx: ".ljust(MAX_WEB_HEAD_BYTES, b"x"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 431")


def test_garbage_instead_of_a_handshake_leaves_others_alone(running: Running) -> None:
    host, port = running.webhook.split(":")
    with socket.create_connection((host, int(port)), TIMEOUT) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            plain.recv(1024)
    assert running.allowed("example.com/roomy") is True


def test_what_it_prints_to_try_is_refused(running: Running) -> None:
    assert running.hint[0] == f"page:   http://{running.web}/\n"
    command = shlex.split(running.hint[1].removeprefix("review: "))
    *_, body, url = command
    assert command[:3] == ["curl", "--cacert", str(running.ca)]
    assert url == f"https://{running.webhook}/validate"
    assert json.loads(running.review(body.encode())[1])["response"]["allowed"] is False


# --- Stopping ---------------------------------------------------------------------------------------------------------


def test_sigterm_drains_and_a_second_one_ends_at_once(tmp_path: Path) -> None:
    process, server, log = started(tmp_path)
    assert [line["msg"] for line in log] == ["made a throw-away certificate", "ready"]
    with contextlib.closing(server.tls()) as connection:
        connection.connect()
        process.send_signal(signal.SIGTERM)
        while server.get("/readyz")[0] == 200:
            time.sleep(0.01)  # until the signal has arrived
        connection.request("POST", "/validate", review(pod()), {"content-type": "application/json"})
        answered = connection.getresponse()
        assert json.loads(answered.read())["response"]["allowed"] is False
        assert answered.getheader("connection") == "close"
    with contextlib.closing(server.tls()) as connection:
        connection.putrequest("POST", "/validate")
        connection.putheader("content-type", "application/json")
        connection.putheader("content-length", "1000")
        connection.endheaders(b"a body that never ends")
        process.send_signal(signal.SIGTERM)
        assert ended(process, GRACE_SECONDS / 2) == 0
    assert not server.ca.parent.exists()  # the throw-away key has been thrown away


class Caller(threading.Thread):
    """Posts reviews over one connection, as the API server does, until it is asked to leave it."""

    def __init__(self, server: Running) -> None:
        super().__init__()
        self.server, self.answers, self.lost = server, 0, ""

    def run(self) -> None:
        try:
            with contextlib.closing(self.server.tls()) as connection:
                connection.connect()
                while connection.sock is not None:  # http.client drops it when it reads `Connection: close`
                    connection.request("POST", "/validate", review(pod()), {"content-type": "application/json"})
                    assert json.loads(connection.getresponse().read())["response"]["uid"] == UID
                    self.answers += 1
        except (OSError, http.client.HTTPException) as error:
            self.lost = repr(error)


def settings_for(folder: Path, **flags: str) -> Settings:
    given = {"manifests": str(manifests(folder)), "now": CLOCK, "listen": "127.0.0.1:0", "web-listen": "127.0.0.1:0"}
    return read_settings(given | {name.replace("_", "-"): text for name, text in flags.items()}, {})


def tls_dir(folder: Path) -> Path:
    throwaway_pair([], ["127.0.0.1"], time.time()).write(folder)
    return folder


def while_serving(settings: Settings, drain_seconds: float, story: Callable[[serve.Server, Running], None]) -> None:
    """Tell a story to a server in this process."""

    async def main() -> None:
        with contextlib.ExitStack() as stack:
            cluster = await serve.open_cluster(settings, [])
            server = serve.Server(settings, cluster, stack, drain_seconds=drain_seconds)
            running = asyncio.create_task(server.run())
            await server.webhook.listening.wait()
            await server.web.listening.wait()
            addresses = Running(server.webhook.address, server.web.address, settings.tls_dir / "ca.crt")
            try:
                await asyncio.to_thread(story, server, addresses)
            finally:
                server.stop()
                await running

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_no_call_is_lost_when_the_server_stops(tmp_path: Path) -> None:
    def story(server: serve.Server, running: Running) -> None:
        callers = [Caller(running) for _ in range(4)]
        for caller in callers:
            caller.start()
        while not all(caller.answers > 5 for caller in callers):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        for caller in callers:
            caller.join()
        assert server.probes.draining
        assert [caller.lost for caller in callers] == [""] * 4
        assert running.get("/readyz")[0] == 503

    while_serving(settings_for(tmp_path, tls_dir=str(tls_dir(tmp_path / "tls"))), TIMEOUT, story)


# --- Changes while it runs --------------------------------------------------------------------------------------------


def until(condition: Callable[[], bool]) -> None:
    """Wait for what a timer of the server does."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_changed_manifests_are_read_and_unreadable_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "MANIFEST_SECONDS", 0.02)
    file = tmp_path / "cluster.yaml"

    def story(_: serve.Server, running: Running) -> None:
        assert not running.allowed("example.com/full")
        file.write_text(CLUSTER.replace("device: gpu-0", "device: gone"), "utf-8")
        until(lambda: running.allowed("example.com/full"))
        file.write_text("kind: [", "utf-8")
        until(lambda: "cluster.yaml:1:" in running.get("/")[1])
        assert running.allowed("example.com/full")
        file.write_text(CLUSTER, "utf-8")
        until(lambda: not running.allowed("example.com/full"))
        assert "cluster.yaml:1:" not in running.get("/")[1]

    while_serving(settings_for(tmp_path, tls_dir=str(tls_dir(tmp_path / ".tls"))), 0.0, story)


def test_a_new_certificate_is_shown_to_new_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reload, "LOOK_SECONDS", 0.02)
    folder = tls_dir(tmp_path / "tls")

    def trusted(running: Running) -> bool:
        try:
            return running.allowed("example.com/roomy")
        except ssl.SSLCertVerificationError:
            return False

    def story(_: serve.Server, running: Running) -> None:
        assert trusted(running)
        (folder / "tls.key").write_text("half a key", "utf-8")
        until(lambda: "certificate kept" in caplog.text)
        assert trusted(running)
        tls_dir(folder)
        until(lambda: trusted(running))

    while_serving(settings_for(tmp_path, tls_dir=str(folder)), 0.0, story)


def start(settings: Settings, stack: contextlib.ExitStack) -> None:
    problems: list[str] = []
    cluster = asyncio.run(serve.open_cluster(settings, problems))
    serve.Server(settings, cluster, stack, problems=problems)


class Claims:
    """Finds none, and remembers what was asked for."""

    def __init__(self) -> None:
        self.asked: list[ClaimReferences] = []

    async def lookups(self, _: str, references: ClaimReferences) -> Lookups:
        self.asked.append(references)
        return Lookups(dict.fromkeys(references.claims, Lookup.MISSING), {})


def test_checks_have_a_reader_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {"tls-dir": str(tls_dir(tmp_path)), "listen": "127.0.0.1:0", "web-listen": "127.0.0.1:0"}
    claims = Claims()

    async def ask() -> None:
        async with ApiServer() as cluster:
            settings = read_settings(flags | {"kubeconfig": str(cluster.kubeconfig(tmp_path))}, {})
            with contextlib.ExitStack() as stack:
                live = await serve.open_cluster(settings, [])
                assert live is not None
                monkeypatch.setattr(live, "claims_of_checks", claims, raising=False)
                app = serve.Server(settings, live, stack).web.config.app
                text = {"apiVersion": "v1", "kind": "Pod", "spec": CLAIMING}
                async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://v") as client:
                    assert (await client.post("/api/v1/check", content=json.dumps(text))).is_success
                await live.close()

    asyncio.run(ask())
    assert claims.asked == [ClaimReferences(("c",), ())]


# --- Not starting -----------------------------------------------------------------------------------------------------


def test_everything_that_keeps_it_from_starting_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("kind: [", "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        flags = {"manifests": str(tmp_path), "listen": address, "tls-dir": str(tmp_path / "nothing")}
        with contextlib.ExitStack() as stack, pytest.raises(BadSettings) as caught:
            start(read_settings(flags | {"web-listen": "127.0.0.1:0"}, {}), stack)
    manifest, listen, certificate = caught.value.problems
    assert listen.startswith(f"--listen={address}: ")
    assert certificate.startswith(f"--tls-dir: can't read {tmp_path / 'nothing'}/tls.crt: No such file")
    assert manifest.startswith(f"{tmp_path}/broken.yaml:1: ")


def test_without_files_and_without_a_cluster_there_is_nothing_to_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with contextlib.ExitStack() as stack, pytest.raises(BadSettings) as caught:
        start(read_settings({"listen": "127.0.0.1:0", "web-listen": "127.0.0.1:0"}, {}), stack)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["no cluster", "--tls-dir"]


def test_files_keep_no_secret(tmp_path: Path) -> None:
    flags = {"manifests": str(manifests(tmp_path)), "tls-secret": "gpu/tls", "webhooks": "vacancy"}
    with contextlib.ExitStack() as stack, pytest.raises(BadSettings) as caught:
        start(read_settings(flags | {"listen": "127.0.0.1:0", "web-listen": "127.0.0.1:0"}, {}), stack)
    assert caught.value.problems == ("--tls-secret=gpu/tls with --manifests: expected --tls-dir, files keep no Secret",)


def test_what_settings_say_wrong_is_told_with_what_is_wrong_outside(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("kind: [", "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        flags = {"manifests": str(tmp_path), "mode": "odd", "listen": "x", "web-listen": address, "tls-dir": "/nothing"}
        with pytest.raises(BadSettings) as caught:
            serve.run(settings_reading(flags, {}))
    assert [re.split(r"[=:]", problem)[0] for problem in caught.value.problems] == [
        "--mode",
        "--listen",
        f"{tmp_path}/broken.yaml",
        "--web-listen",
        "--tls-dir",
    ]
