"""One way in, by every form of a kubeconfig: what is shown to the API server, whom we trust, and which way we go."""

import base64
import json
import os
import socket
import ssl
import stat
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from app.cluster import login as login_module
from app.cluster import user as user_module
from app.cluster.client import BadConfig
from app.cluster.login import Login, login, namespace
from app.cluster.user import LoginFailed
from tests.controlplane.credentials import new_credentials

SERVER = "https://127.0.0.1:6443"
PLUGIN_API = "client.authentication.k8s.io/v1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's own way to a cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def kubeconfig(path: Path, user: Mapping[str, Any], cluster: Mapping[str, Any] | None = None, **context: str) -> Path:
    content = {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": SERVER} | dict(cluster or {})}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **context}}],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def shown(path: Path) -> dict[str, list[str]]:
    """The headers of a request."""
    found: dict[str, list[str]] = {}
    for name, value in login(path, None).headers:
        found.setdefault(name, []).append(value)
    return found


def script(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def plugin(path: Path, status: Mapping[str, str], before: str = "") -> dict[str, Any]:
    """`exec` of a kubeconfig: a script that prints these credentials."""
    credential = {"apiVersion": PLUGIN_API, "kind": "ExecCredential", "status": status}
    return {"apiVersion": PLUGIN_API, "command": script(path, f"{before}\nprint({json.dumps(credential)!r})")}


# --- What is shown ----------------------------------------------------------------------------------------------------

BASIC = f"Basic {base64.b64encode(b'bob:secret').decode()}"
USERS: dict[str, tuple[dict[str, Any], dict[str, list[str]]]] = {
    "a token": ({"token": "t"}, {"Authorization": ["Bearer t"]}),
    "a token in a file beside the kubeconfig, which wins": (
        {"tokenFile": "token", "token": "old"},
        {"Authorization": ["Bearer of-file"]},
    ),
    "name and password": ({"username": "bob", "password": "secret"}, {"Authorization": [BASIC]}),
    "a token wins over a plugin": (
        {"token": "t", "exec": {"apiVersion": PLUGIN_API, "command": "/nowhere"}},
        {"Authorization": ["Bearer t"]},
    ),
    "nothing": ({}, {}),
    "somebody else, with groups": (
        {
            "token": "t",
            "as": "ann",
            "as-uid": "7",
            "as-groups": ["a", "b"],
            "as-user-extra": {"example.com/team": ["x"]},
        },
        {
            "Authorization": ["Bearer t"],
            "Impersonate-User": ["ann"],
            "Impersonate-Uid": ["7"],
            "Impersonate-Group": ["a", "b"],
            "Impersonate-Extra-example.com%2Fteam": ["x"],
        },
    ),
}


@pytest.mark.parametrize(("user", "headers"), USERS.values(), ids=USERS)
def test_a_user_is_shown_as_kubectl_does(tmp_path: Path, user: dict[str, Any], headers: dict[str, list[str]]) -> None:
    (tmp_path / "token").write_text("of-file\n")
    assert shown(kubeconfig(tmp_path / "config", user)) == headers


@pytest.fixture
def manifest_on_stdin() -> Iterator[None]:
    """As with `vacancy check -f -`."""
    ours, (theirs, end) = os.dup(0), os.pipe()
    os.write(end, b"kind: Pod")
    os.close(end)
    os.dup2(theirs, 0)
    yield
    os.dup2(ours, 0)
    os.close(ours)
    os.close(theirs)


@pytest.mark.usefixtures("manifest_on_stdin")
def test_a_plugin_logs_in_and_is_told_what_it_asks_for(tmp_path: Path) -> None:
    told = tmp_path / "told"
    before = (
        f"import os, sys\nopen({str(told)!r}, 'w').write("
        "os.environ['KUBERNETES_EXEC_INFO'] + chr(10) + os.environ['TEAM'] + sys.argv[1] + sys.stdin.read())"
    )
    user = plugin(tmp_path / "plugin", {"token": "of-plugin"}, before)
    user |= {"env": [{"name": "TEAM", "value": "ml"}], "args": ["get"], "provideClusterInfo": True}
    cluster = {"certificate-authority-data": base64.b64encode(b"# none").decode(), "insecure-skip-tls-verify": True}
    assert shown(kubeconfig(tmp_path / "config", {"exec": user}, cluster)) == {"Authorization": ["Bearer of-plugin"]}
    info, rest = told.read_text().splitlines()
    assert rest == "mlget", "and nothing of our stdin"
    assert json.loads(info)["spec"]["cluster"]["server"] == SERVER
    assert json.loads(info)["spec"]["interactive"] is False


def test_a_plugin_may_be_beside_the_kubeconfig_or_have_no_arguments(tmp_path: Path) -> None:
    user = plugin(tmp_path / "plugin", {"token": "t"}) | {"command": "./plugin", "args": None, "env": None}
    assert shown(kubeconfig(tmp_path / "config", {"exec": user})) == {"Authorization": ["Bearer t"]}


FAILING_PLUGINS = {
    "that is not installed": ("", "/nowhere/plugin: No such file or directory; install it"),
    "that fails": ("import sys; sys.exit(7)", "plugin: ended with exit code 7; log in again"),
    "that prints something else": ("print('secret')", "plugin: expected an ExecCredential on its stdout"),
    "that brings nothing": (
        """print('{"status": {}}')""",
        "plugin: expected a token or a certificate in its ExecCredential",
    ),
    "that takes too long": ("import time; time.sleep(60)", "plugin: no credentials within 0.5 s"),
    "whose token is no token": (
        """print(r'{"status": {"token": "secret\\nX: y"}}')""",
        "the token is not one line of ASCII",
    ),
}


@pytest.mark.parametrize(("text", "said"), FAILING_PLUGINS.values(), ids=FAILING_PLUGINS)
def test_a_plugin_that_fails_is_named_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(user_module, "PLUGIN_SECONDS", 0.5 if "sleep" in text else 60.0)
    command = script(tmp_path / "plugin", text) if text else "/nowhere/plugin"
    user = {"apiVersion": PLUGIN_API, "command": command, "installHint": "install\nit"}
    with pytest.raises(LoginFailed) as caught:
        login(kubeconfig(tmp_path / "config", {"exec": user}), None)
    assert str(caught.value).removeprefix(f"{tmp_path}/") == said


def test_a_provider_of_old_still_brings_its_token(tmp_path: Path) -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(time.time()) + 3600}).encode()).decode().rstrip("=")
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": f"h.{claims}.s"}}}
    found = shown(kubeconfig(tmp_path / "config", user))
    assert found == {"Authorization": [f"Bearer h.{claims}.s"]}


UNUSABLE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no address": ({}, {"server": "127.0.0.1"}, "server '127.0.0.1': expected an http or https address"),
    "a port that is none": ({}, {"server": "https://a:99999"}, "server 'https://a:99999': expected an http or https a"),
    "a host that is none": ({}, {"server": "https://a..b"}, "server 'https://a..b': expected an http or https address"),
    "a path that is no ASCII": ({}, {"server": "https://h/ü"}, r"server 'https://h/\xfc': expected an http or https "),
    "an address of another kind": (
        {},
        {"server": "ftp://me:secret@h"},
        "server 'h': expected an http or https address",
    ),
    "brackets that stay open": ({}, {"server": "https://[::1"}, "server 'https://[::1': expected an http or https add"),
    "a token's file that is not there": ({"tokenFile": "none"}, {}, "credentials or certificates cannot be used: "),
    "an authority a plugin is to be told of": (
        {"exec": {"apiVersion": PLUGIN_API, "command": "x", "provideClusterInfo": True}},
        {"certificate-authority": "none"},
        "credentials or certificates cannot be used: ",
    ),
    "a certificate that is no base64": (
        {"client-certificate-data": "x"},
        {},
        "credentials or certificates cannot be used: ",
    ),
    "a certificate that is none": (
        {"client-certificate-data": "bm9uZQ=="},
        {},
        "credentials or certificates cannot be used: ",
    ),
    "an authority that is none": (
        {},
        {"certificate-authority-data": "bm9uZQ=="},
        "credentials or certificates cannot be used: ",
    ),
    "an authority that is not there": (
        {},
        {"certificate-authority": "none"},
        "credentials or certificates cannot be used: ",
    ),
    "a name no certificate can have": (
        {},
        {"tls-server-name": "a..b"},
        "credentials or certificates cannot be used: ",
    ),
    "a proxy of another kind": (
        {},
        {"proxy-url": "socks5://me:secret@p:1"},
        "proxy 'p:1': expected http://HOST:PORT",
    ),
    "a proxy that is none": ({}, {"proxy-url": "http://a..b:1"}, "proxy 'http://a..b:1': expected http://HOST:PORT"),
    "somebody of two lines": (
        {"as": "ann\nX: y"},
        {},
        r"Impersonate-User 'ann\nX: y': expected a text without control ",
    ),
    "a group of two lines": ({"as": "ann", "as-groups": ["a\rb"]}, {}, r"Impersonate-Group 'a\rb': expected a text "),
}


@pytest.mark.parametrize(("user", "cluster", "said"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_used_is_named(tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], said: str) -> None:
    with pytest.raises(BadConfig) as caught:
        login(kubeconfig(tmp_path / "config", user, cluster), None)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


# --- Which context ----------------------------------------------------------------------------------------------------


def test_of_several_files_the_first_that_knows_a_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig(tmp_path / "one" / "config", {"tokenFile": "token"}, namespace="team")
    kubeconfig(tmp_path / "two" / "config", {"token": "second"}, {"server": "https://second"}, namespace="other")
    (tmp_path / "one" / "token").write_text("first")
    files = [str(tmp_path / name / "config") for name in ("none", "one", "two")]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(files))
    found = login(None, None)
    assert (found.server.geturl(), found.namespace, dict(found.headers)) == (
        SERVER,
        "team",
        {"Authorization": "Bearer first"},
    )
    assert namespace(None, None) == "team"


def test_a_context_is_chosen_by_name(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", {"token": "t"})
    content = json.loads(path.read_text())
    content["contexts"].append({"name": "there", "context": {"cluster": "c", "namespace": "there"}})
    path.write_text(json.dumps(content))
    found = login(path, "there")
    assert (found.namespace, found.headers) == ("there", ())
    assert login(path, None).namespace == "default"


BROKEN = {
    "no YAML": ("{\nusers: [{name: u, user: {token: s3cret", "config:3: not YAML"),
    "a list": ("[s3cret]", "config: Expected `object`, got `array`"),
    "empty": ("", "config: no current context; choose one by kubectl config use-context, or by --context"),
    "a token that is a number": (
        "users: [{name: u, user: {token: 5}}]",
        "config: Expected `str`, got `int` - at `$.users[0].user.token`",
    ),
    "a context nobody knows": ("current-context: x", "config: no context 'x'"),
    "a cluster nobody knows": (
        "{current-context: x, contexts: [{name: x, context: {cluster: c}}]}",
        "config: no cluster 'c', which context 'x' names",
    ),
    "a user nobody knows": (
        "{current-context: x, clusters: [{name: c}], contexts: [{name: x, context: {cluster: c, user: u}}]}",
        "config: no user 'u', whom context 'x' names",
    ),
}


@pytest.mark.parametrize(("text", "said"), BROKEN.values(), ids=BROKEN)
def test_a_kubeconfig_that_is_none_is_said_in_one_line_without_what_it_holds(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(BadConfig) as caught:
        login(tmp_path / "config", None)
    assert str(caught.value) == f"{tmp_path}/{said}"


def test_a_pod_logs_in_with_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_credentials(tmp_path)  # ca.crt among others
    (tmp_path / "token").write_text("of-pod\n")
    (tmp_path / "namespace").write_text("team\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    origin = login_module.credentials(None, None, os.environ, tmp_path)
    monkeypatch.setattr(login_module, "credentials", lambda *_: origin)
    found = login(None, None)
    assert (found.server.geturl(), found.namespace) == ("https://[fd00::1]:6443", "team")
    assert dict(found.headers) == {"Authorization": "Bearer of-pod"}


# --- Whom we trust, and who we are by certificate ---------------------------------------------------------------------


class Handshakes:
    """A listener that wants a client's certificate and notes whose came."""

    def __init__(self, folder: Path) -> None:
        credentials = new_credentials(folder)
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(credentials.authority))
        self._tls.load_cert_chain(*credentials.serving)
        self._tls.verify_mode = ssl.CERT_REQUIRED
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"

    def of(self, found: Login) -> str:
        """Whose certificate a client with this login shows. Raises ssl.SSLError where it does not trust us."""
        names: list[str] = []

        def accept() -> None:
            connection, _ = self._listener.accept()
            try:
                with connection, self._tls.wrap_socket(connection, server_side=True) as secure:
                    subject = dict(part[0] for part in secure.getpeercert()["subject"])  # type: ignore[index]
                    names.append(subject["commonName"])
                    secure.sendall(b"x")
            except OSError:
                names.append("")

        thread = threading.Thread(target=accept)
        thread.start()
        host, port = found.server.hostname, found.server.port
        try:
            with (
                socket.create_connection(("127.0.0.1", port or 0)) as connection,
                found.tls.wrap_socket(connection, server_hostname=host) as secure,
            ):
                secure.recv(1)
        finally:
            thread.join()
        return names[0]

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def handshakes(tmp_path: Path) -> Iterator[Handshakes]:
    found = Handshakes(tmp_path / "credentials")
    yield found
    found.close()


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize("written", ["as data", "as files beside the kubeconfig"])
def test_a_client_s_certificate_is_shown_and_leaves_nothing_behind(
    tmp_path: Path, handshakes: Handshakes, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    folder = tmp_path / "credentials"
    if written == "as data":
        user = {"client-certificate-data": data(folder / "admin.crt"), "client-key-data": data(folder / "admin.key")}
        cluster = {"server": handshakes.url, "certificate-authority-data": data(folder / "ca.crt")}
    else:
        user = {"client-certificate": "admin.crt", "client-key": "admin.key"}
        cluster = {"server": handshakes.url, "certificate-authority": "ca.crt"}
    found = login(kubeconfig(folder / "config", user, cluster), None)
    assert handshakes.of(found) == "admin"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_plugin_may_bring_a_certificate(tmp_path: Path, handshakes: Handshakes) -> None:
    folder = tmp_path / "credentials"
    status = {
        "clientCertificateData": (folder / "admin.crt").read_text(),
        "clientKeyData": (folder / "admin.key").read_text(),
    }
    cluster = {"server": handshakes.url, "certificate-authority": "ca.crt"}
    found = login(kubeconfig(folder / "config", {"exec": plugin(tmp_path / "plugin", status)}, cluster), None)
    assert handshakes.of(found) == "admin"


TRUST: dict[str, tuple[dict[str, Any], bool]] = {
    "the cluster's own authority": ({"certificate-authority": "ca.crt"}, True),
    "no authority: those of this machine": ({}, False),
    "nobody": ({"insecure-skip-tls-verify": True}, True),
    "a name in place of that of the address": (
        {"certificate-authority": "ca.crt", "tls-server-name": "localhost"},
        True,
    ),
    "another name": ({"certificate-authority": "ca.crt", "tls-server-name": "example.com"}, False),
}


@pytest.mark.parametrize(("cluster", "is_trusted"), TRUST.values(), ids=TRUST)
def test_whom_we_trust(tmp_path: Path, handshakes: Handshakes, cluster: dict[str, Any], is_trusted: bool) -> None:  # noqa: FBT001
    folder = tmp_path / "credentials"
    user = {"client-certificate": "admin.crt", "client-key": "admin.key"}
    found = login(kubeconfig(folder / "config", user, cluster | {"server": handshakes.url}), None)
    if is_trusted:
        assert handshakes.of(found) == "admin"
    else:
        with pytest.raises(ssl.SSLCertVerificationError):
            handshakes.of(found)


# --- Which way we go --------------------------------------------------------------------------------------------------

FROM_HERE = "http://proxy:3128"
WAYS: dict[str, tuple[str, dict[str, str], dict[str, str], str]] = {
    "straight": ("https://10.1.2.3", {}, {}, ""),
    "by the environment's proxy": ("https://k8s.example.com", {}, {"HTTPS_PROXY": FROM_HERE}, FROM_HERE),
    "by one without a scheme": ("https://k8s.example.com", {}, {"HTTPS_PROXY": "proxy:3128"}, FROM_HERE),
    "by the kubeconfig's own": (
        "https://k8s.example.com",
        {"proxy-url": "http://own:1"},
        {"HTTPS_PROXY": FROM_HERE, "NO_PROXY": "example.com"},
        "http://own:1",
    ),
    "straight to a domain that is near": (
        "https://k8s.example.com",
        {},
        {"HTTPS_PROXY": FROM_HERE, "NO_PROXY": "a.com, example.com"},
        "",
    ),
    "straight to a network that is near": (
        "https://10.1.2.3",
        {},
        {"HTTPS_PROXY": FROM_HERE, "NO_PROXY": "a.com, 10.0.0.0/8"},
        "",
    ),
    "by a proxy to another network": (
        "https://11.1.2.3",
        {},
        {"HTTPS_PROXY": FROM_HERE, "NO_PROXY": "a.com, 10.0.0.0/8"},
        FROM_HERE,
    ),
    "straight to this machine": ("https://127.0.0.1:6443", {}, {"HTTPS_PROXY": FROM_HERE}, ""),
    "straight to kubectl proxy": ("http://localhost:8001", {}, {"HTTPS_PROXY": FROM_HERE}, ""),
}


@pytest.mark.parametrize("way", WAYS)
def test_which_way_we_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    server, cluster, variables, proxy = WAYS[way]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = login(kubeconfig(tmp_path / "config", {}, cluster | {"server": server}), None)
    assert (found.proxy.geturl() if found.proxy else "") == proxy
