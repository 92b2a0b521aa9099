"""The client over real HTTP on loopback: bytes, errors by meaning, credentials, time-outs, streams."""
# ruff: noqa: S105, S106 - tokens of a server that lives as long as a test

import asyncio
import json
import os
import ssl
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from app.cluster.client import (
    ApiClient,
    ApiError,
    BadConfig,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from app.cluster.credentials import credentials
from tests.apiserver import ApiServer, eventually
from tests.apiserver_parts import CLASSES, POOL_STATUS_REQUESTS, SLICES, Fault

Story = Callable[[ApiServer, ApiClient], Awaitable[None]]

SOON = 0.05


def play(folder: Path, story: Story, **user: object) -> None:
    """Run a story with a server and a client of it."""

    async def run() -> None:
        async with (
            ApiServer() as server,
            await ApiClient.connect(server.kubeconfig(folder, **user), None) as client,
        ):
            await story(server, client)

    asyncio.run(run())


async def error_of(call: Awaitable[object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await call
    return caught.value


# --- Answers and errors -----------------------------------------------------------------------------------------------


def test_what_is_sent_arrives_and_the_answer_comes_as_bytes(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        body = json.dumps({"metadata": {"generateName": "vacancy-"}, "spec": {"driver": "d"}}).encode()
        made = json.loads(await client.request("POST", POOL_STATUS_REQUESTS, body=body))
        listed = await client.request("GET", POOL_STATUS_REQUESTS, query=[("limit", "5"), ("labelSelector", "")])
        assert json.loads(listed)["items"] == [made]
        path = f"{POOL_STATUS_REQUESTS}/{made['metadata']['name']}"
        await client.request(
            "DELETE", path, body=b'{"preconditions": {"uid": "%s"}}' % made["metadata"]["uid"].encode()
        )
        assert server.objects(POOL_STATUS_REQUESTS) == []
        assert server.asked[1].query["limit"] == "5"
        assert await client.server_minor() == 37

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (400, Invalid),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (405, Invalid),
        (409, Conflict),
        (410, Gone),
        (422, Invalid),
        (429, TooManyRequests),
        (500, ServerFault),
        (503, ServerFault),
        (504, ServerFault),
    ],
)
def test_every_status_code_has_a_meaning(tmp_path: Path, status: int, meaning: type[ApiError]) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        server.fault(Fault(status=status, body=b"the body\nwith a secret"), times=None)
        error = await error_of(client.request("GET", SLICES))
        assert type(error) is meaning
        assert str(error).startswith(f"GET {SLICES}: {status} ")
        assert "secret" not in str(error)
        assert "\n" not in str(error)
        assert "s3cret" not in str(error)

    play(tmp_path, story, token="s3cret")


@pytest.mark.parametrize(
    ("said", "understood"), [("7", 7.0), ("", None), ("Fri, 31 Dec 1999 23:59:59 GMT", None), ("86400", 60.0)]
)
def test_429_says_when_to_come_back_and_no_server_may_say_tomorrow(
    tmp_path: Path, said: str, understood: float | None
) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        server.fault(Fault(status=429, headers={"Retry-After": said}))
        error = await error_of(client.request("GET", SLICES))
        assert isinstance(error, TooManyRequests)
        assert error.retry_after == understood

    play(tmp_path, story)


@pytest.mark.parametrize(
    "fault",
    [Fault(silent=True), Fault(cut=True), Fault(delay_seconds=30.0)],
    ids=["never answered", "cut before the answer", "answered too late"],
)
def test_no_answer_is_unreachable(tmp_path: Path, fault: Fault) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        server.fault(fault, times=2)  # a connection that is cut is tried once more below us
        error = await error_of(client.request("GET", SLICES, timeout_seconds=SOON))
        assert isinstance(error, Unreachable)
        server.heal()
        assert json.loads(await client.request("GET", SLICES))["items"] == []  # and the next call is a new one

    play(tmp_path, story)


def test_no_server_is_unreachable(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        await server.stop()
        error = await error_of(client.request("GET", SLICES))
        assert isinstance(error, Unreachable)
        assert "127.0.0.1" in str(error)
        await server.start()
        await client.request("GET", SLICES)

    play(tmp_path, story)


# --- Credentials ------------------------------------------------------------------------------------------------------


def test_a_rotated_token_file_is_read_again_after_a_401_once_for_all_calls(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")

    async def story(server: ApiServer, client: ApiClient) -> None:
        server.token = "first"
        await client.request("GET", SLICES)
        server.token = "second"
        token.write_text("second")
        await asyncio.gather(*(client.request("GET", SLICES) for _ in range(5)))
        assert {asked.headers["Authorization"] for asked in server.asked[-5:]} == {"Bearer second"}

    play(tmp_path, story, tokenFile=str(token))


def test_a_token_that_stays_wrong_is_looked_up_once_and_not_with_every_call(tmp_path: Path) -> None:
    runs = tmp_path / "runs"

    async def story(server: ApiServer, client: ApiClient) -> None:
        server.token = "other"
        for _ in range(3):
            assert isinstance(await error_of(client.request("GET", SLICES)), Unauthorized)
        assert runs.read_text() == "xx"

    play(tmp_path, story, exec=plugin(tmp_path, f"open({str(runs)!r}, 'a').write('x')", "wrong"))


def test_an_exec_plugin_logs_in_and_logs_in_again(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    answer.write_text("first")

    async def story(server: ApiServer, client: ApiClient) -> None:
        server.token = "first"
        await client.request("GET", SLICES)
        server.token = "second"
        answer.write_text("second")
        await client.request("GET", SLICES)

    play(tmp_path, story, exec=plugin(tmp_path, "", f"'+open({str(answer)!r}).read()+'"))


def test_whom_a_kubeconfig_acts_as_is_told_with_every_call(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        await client.request("GET", SLICES)
        async with client.stream(SLICES, query=[("watch", "1"), ("resourceVersion", "0")]):
            pass
        for asked in server.asked:
            told = [(name, value) for name, value in asked.headers.items() if name.startswith("Impersonate-")]
            assert told == [("Impersonate-User", "ann"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]

    play(tmp_path, story, **{"as": "ann", "as-groups": ["a", "b"]})


def test_of_several_kubeconfigs_the_first_chooses_the_context(tmp_path: Path) -> None:
    async def run() -> None:
        async with ApiServer() as server:
            first, second = tmp_path / "first", tmp_path / "second"
            first.mkdir()
            second.mkdir()
            here = server.kubeconfig(first)
            elsewhere = server.kubeconfig(second, token="another")
            elsewhere.write_text(elsewhere.read_text().replace('"here"', '"elsewhere"').replace('"me"', '"you"'))
            origin = credentials(None, None, {"KUBECONFIG": f"{here}{os.pathsep}{elsewhere}"})
            async with await ApiClient.log_in(origin) as client:
                await client.request("GET", SLICES)
            assert "Authorization" not in server.asked[0].headers

    asyncio.run(run())


def plugin(folder: Path, before: str, token: str) -> dict[str, object]:
    """A credential plugin: a script that prints a token."""
    version = "client.authentication.k8s.io/v1"
    path = folder / "plugin"
    path.write_text(
        f"#!{sys.executable}\n{before}\n"
        f'print(\'{{"apiVersion":"{version}","kind":"ExecCredential","status":{{"token":"{token}"}}}}\')\n'
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"apiVersion": version, "command": str(path), "interactiveMode": "Never"}


CONTEXT = "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
NO_CERTIFICATE = (
    f"{CONTEXT}clusters: [{{name: c, cluster: {{server: https://127.0.0.1, certificate-authority-data: bm9uZQ==}}}}]\n"
)


@pytest.mark.parametrize(
    ("content", "context"),
    [
        (None, None),
        ("{", None),
        ("[]", None),
        ("5", None),
        ("", None),
        ("current-context: x\ncontexts: []\nclusters: []\n", None),
        (CONTEXT, None),
        (NO_CERTIFICATE, None),
        (NO_CERTIFICATE, "another"),
    ],
    ids=[
        "no file",
        "no YAML",
        "a list",
        "a number",
        "empty",
        "no context",
        "no cluster",
        "no certificate where one should be",
        "another context",
    ],
)
def test_a_kubeconfig_that_is_none_is_said_in_one_line(
    tmp_path: Path, content: str | None, context: str | None
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadConfig) as caught:
        asyncio.run(ApiClient.connect(path, context))
    assert "\n" not in str(caught.value)


def test_credentials_are_looked_for_as_kubectl_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    given, home, other = tmp_path / "given", tmp_path / ".kube" / "config", tmp_path / "other"
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    with pytest.raises(BadConfig):
        credentials(None, None, {})
    with pytest.raises(BadConfig):
        credentials(given, None, pod)
    with pytest.raises(BadConfig):
        credentials(None, "a-context", pod)
    assert credentials(None, None, pod).files == ""
    home.parent.mkdir()
    home.touch()
    other.touch()
    given.touch()
    assert credentials(None, None, pod).files == str(home)
    assert credentials(None, None, pod | {"KUBECONFIG": f"{other}{os.pathsep}{tmp_path}/no"}).files == str(other)
    assert credentials(given, "", pod | {"KUBECONFIG": str(other)}).files == str(given)


def test_a_service_account_without_a_token_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    origin = credentials(None, None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, service_account=tmp_path)
    with pytest.raises(BadConfig, match=r"^service account: "):
        asyncio.run(ApiClient.log_in(origin))


def test_a_pod_logs_in_with_its_service_account_and_reads_a_rotated_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "certs", "--dir", tmp_path, "--ip", "127.0.0.1"], check=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    token = tmp_path / "token"
    token.write_text("first")

    async def run() -> None:
        async with ApiServer(tls=tls) as server:
            server.token = "first"
            host, port = server.url.removeprefix("https://").split(":")
            for name, value in (("HOME", str(tmp_path)), ("KUBERNETES_SERVICE_HOST", host)):
                monkeypatch.setenv(name, value)
            monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
            async with await ApiClient.log_in(credentials(None, None, service_account=tmp_path)) as client:
                await client.request("GET", SLICES)
                server.token = "second"
                token.write_text("second")
                await client.request("GET", SLICES)
                assert len(server.asked) == 3
                token.unlink()
                server.token = "third"
                assert isinstance(await error_of(client.request("GET", SLICES)), Unauthorized)

    asyncio.run(run())


# --- Streams ----------------------------------------------------------------------------------------------------------

WATCH = [("watch", "1"), ("resourceVersion", "1000")]


def test_a_stream_gives_whole_lines_however_they_come(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        async with client.stream(SLICES, query=WATCH) as stream:
            await eventually("watch opened", lambda: server.watches(SLICES))
            (watcher,) = server.watches(SLICES)
            for piece in (b"on", b"e\ntwo\n\nthr", b"ee", b"\n"):
                server.say(watcher, piece)
            server.say(watcher, b"x" * 5_000_000 + b"\n")
            server.end(watcher)
            lines = [await stream.line(30.0) for _ in range(6)]
        assert lines == [b"one", b"two", b"", b"three", b"x" * 5_000_000, None]

    play(tmp_path, story)


def test_to_wait_for_a_line_in_vain_loses_nothing(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        async with client.stream(SLICES, query=WATCH) as stream:
            await eventually("watch opened", lambda: server.watches(SLICES))
            (watcher,) = server.watches(SLICES)
            server.say(watcher, b"begun ")
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await stream.line(SOON)
            server.say(watcher, b"and ended\n")
            assert await stream.line(30.0) == b"begun and ended"

    play(tmp_path, story)


@pytest.mark.parametrize("begun", [b"", b"half a li"], ids=["between lines", "within a line"])
def test_a_stream_that_is_cut_is_unreachable(tmp_path: Path, begun: bytes) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        async with client.stream(SLICES, query=WATCH) as stream:
            await eventually("watch opened", lambda: server.watches(SLICES))
            (watcher,) = server.watches(SLICES)
            server.say(watcher, b"one\n" + begun)
            assert await stream.line(30.0) == b"one"
            server.cut(watcher)
            assert isinstance(await error_of(stream.line(30.0)), Unreachable)

    play(tmp_path, story)


def test_a_stream_that_ends_within_a_line_is_unreachable(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        async with client.stream(SLICES, query=WATCH) as stream:
            await eventually("watch opened", lambda: server.watches(SLICES))
            (watcher,) = server.watches(SLICES)
            server.say(watcher, b"half a li")
            server.end(watcher)
            assert isinstance(await error_of(stream.line(30.0)), Unreachable)

    play(tmp_path, story)


def test_a_stream_that_is_refused_has_a_meaning_too(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        server.refused[CLASSES] = 403
        with pytest.raises(Forbidden):
            async with client.stream(CLASSES, query=WATCH):
                pytest.fail("opened")

    play(tmp_path, story)


def test_a_closed_stream_is_closed_for_the_server(tmp_path: Path) -> None:
    async def story(server: ApiServer, client: ApiClient) -> None:
        async with client.stream(SLICES, query=WATCH):
            await eventually("watch opened", lambda: server.watches(SLICES))
        await eventually("watch closed", lambda: not server.watches(SLICES))

    play(tmp_path, story)
