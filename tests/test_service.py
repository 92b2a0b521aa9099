"""The commands through the API server's service proxy: what is asked, what is answered, what errors mean.

Against the real API server: tests/live/test_service.py.
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from tests.canned import Canned, canned
from tests.test_cli import FULL, OTHER, POD, ROOM, process
from tests.web.tiny_cluster import CLUSTER

FILES = ("--now", "2026-01-01T00:00:00Z", "--manifests")


@pytest.fixture
def server() -> Iterator[Canned]:
    """An API server."""
    with canned() as server:
        yield server


@pytest.fixture
def kubeconfig(tmp_path: Path, server: Canned) -> Path:
    return written(tmp_path / "kubeconfig", f"{server.url}/k8s/clusters/c1/")


def written(path: Path, address: str, **cluster: str) -> Path:
    content = {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": address, **cluster}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
    }
    path.write_text(json.dumps(content))
    return path


def vacancy(kubeconfig: Path, *arguments: str, text: str = "", **environment: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--kubeconfig", str(kubeconfig)], input=text, env=environment)


def of_files(tmp_path: Path, *arguments: str, text: str = "") -> str:
    """The answer in JSON as the tiny cluster's files give it."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER, "utf-8")
    files = [*FILES, str(tmp_path / "cluster.yaml")]
    return CliRunner().invoke(app, [*arguments, "-o", "json", *files], input=text).stdout


PROXY = "/k8s/clusters/c1/api/v1/namespaces/vacancy/services/http:vacancy:http/proxy"


def test_without_a_source_the_chart_s_service_is_asked_as_the_caller(
    tmp_path: Path, kubeconfig: Path, server: Canned
) -> None:
    answer = of_files(tmp_path, "check", "-f", "-", "-n", "team", text=FULL)
    server.answer = (200, answer.encode())
    found = vacancy(kubeconfig, "check", "-f", "-", "-o", "json", text=f"{FULL}---\n{OTHER}")
    assert (found.exit_code, found.stdout) == (1, answer)
    ((method, path, headers, body),) = server.asked
    assert (method, path) == ("POST", f"{PROXY}/api/v1/check?namespace=team"), "the namespace of the context"
    assert headers["Authorization"] == "Bearer t0ken"
    assert [item["kind"] for item in json.loads(body)["items"]] == ["Pod"], "what holds no pod is not sent"


@pytest.mark.parametrize("arguments", [("capacity",), ("explain", "example.com/full")], ids=lambda words: words[0])
def test_the_other_commands_get_theirs(
    tmp_path: Path, kubeconfig: Path, server: Canned, arguments: tuple[str, ...]
) -> None:
    answer = of_files(tmp_path, *arguments)
    server.answer = (200, answer.encode())
    found = vacancy(kubeconfig, *arguments, "--service", "gpu/ours", "-o", "json")
    assert (found.exit_code, found.stdout) == (0, answer)
    ((method, path, _, _),) = server.asked
    words = "/".join(arguments)
    assert (method, path) == (
        "GET",
        f"/k8s/clusters/c1/api/v1/namespaces/gpu/services/http:ours:http/proxy/api/v1/{words}",
    )


def test_a_service_named_by_a_flag_wins_over_files_named_by_a_variable(
    tmp_path: Path, kubeconfig: Path, server: Canned
) -> None:
    server.answer = (200, of_files(tmp_path, "capacity").encode())
    found = vacancy(kubeconfig, "capacity", "--service", "vacancy/vacancy", VACANCY_MANIFESTS="/nowhere")
    assert found.exit_code == 0


def test_the_namespace_that_is_given_wins(tmp_path: Path, kubeconfig: Path, server: Canned) -> None:
    server.answer = (200, of_files(tmp_path, "check", "-f", "-", text=ROOM).encode())
    vacancy(kubeconfig, "check", "-f", "-", "-n", "other", text=ROOM)
    assert server.asked[0].path.endswith("?namespace=other")


def test_a_name_nobody_knows_is_an_answer(tmp_path: Path, kubeconfig: Path, server: Canned) -> None:
    server.answer = (404, of_files(tmp_path, "explain", "example.com/other").encode())
    found = vacancy(kubeconfig, "explain", "example.com/other")
    assert (found.exit_code, found.stdout) == (1, "example.com/other: no device class has or declares this name\n")


def test_names_of_every_script_are_sent_as_kubectl_does(tmp_path: Path, server: Canned) -> None:
    path = written(tmp_path / "kubeconfig", server.url)
    content = json.loads(path.read_text())
    content["users"][0]["user"] |= {"as": "Žofie", "as-groups": ["команда"]}
    path.write_text(json.dumps(content))
    vacancy(path, "capacity")
    headers = server.asked[0].headers
    sent = [headers[name].encode("latin-1").decode() for name in ("Impersonate-User", "Impersonate-Group")]
    assert sent == ["Žofie", "команда"]


def test_a_context_nobody_knows_is_bad_usage(kubeconfig: Path, server: Canned) -> None:
    found = vacancy(kubeconfig, "capacity", "--context", "there")
    assert (found.exit_code, server.asked) == (2, [])
    assert found.stderr.startswith(f"vacancy: no cluster to ask: {kubeconfig}: no context 'there' (or ask elsewhere: ")


def status(code: int, message: str) -> tuple[int, bytes]:
    """As the API server says it."""
    return code, json.dumps({"kind": "Status", "apiVersion": "v1", "code": code, "message": message}).encode()


RIGHT = (
    "you need get and create on services/proxy http:vacancy:http in namespace vacancy, "
    "which the platform team gives to groups by the value tenantGroups of its chart"
)
PODS = (
    "expected a Service with ready pods behind its port http in namespace vacancy; if Vacancy is elsewhere, "
    "name it by --service NAMESPACE/NAME, or judge without it by --direct"
)
ERRORS = {
    "a token that has expired": (status(401, "Unauthorized"), "your credentials are not taken; log in again: 401, "),
    "a right that is missing": (status(403, 'services "http:vacancy:http" is forbidden'), f"{RIGHT}: 403, services "),
    "a Service that is not there": (status(404, "no"), f"{PODS}: 404, no"),
    "no pod behind it": (status(503, "no endpoints available"), f"{PODS}: 503, no endpoints available"),
    "an API server in trouble": (status(500, "etcd"), "try again: 500, etcd"),
    "a message that would steer the terminal": (status(500, "\x1b[2J\nx" * 999), "try again: 500, ?[2J x?[2J"),
    "another program": ((200, b"<html>"), "not an answer of Vacancy: "),
    "another program that fails": ((502, b"<html>"), "HTTP 502"),
    "another program elsewhere": ((302, b""), "HTTP 302"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_said_in_one_line_that_says_what_to_do(kubeconfig: Path, server: Canned, case: str) -> None:
    server.answer, said = ERRORS[case]
    found = vacancy(kubeconfig, "capacity", "-o", "json")
    assert (found.exit_code, found.stdout) == (3, "")
    assert found.stderr.startswith(f"vacancy: no answer: Service vacancy/vacancy: {said}")
    assert found.stderr.count("\n") == 1
    assert found.stderr.isascii()
    assert len(found.stderr) < 500
    assert len(server.asked) == 1, "and nobody else is shown the token"


def test_a_text_the_server_does_not_take_is_bad_input(kubeconfig: Path, server: Canned) -> None:
    problem = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "501 pods"}
    server.answer = (400, json.dumps(problem).encode())
    found = vacancy(kubeconfig, "check", "-f", "-", text=ROOM)
    assert (found.exit_code, found.stderr) == (2, "vacancy: 501 pods\n")


def test_an_api_server_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    found = vacancy(written(tmp_path / "kubeconfig", "https://127.0.0.1:1"), "capacity")
    assert (found.exit_code, found.stdout) == (3, "")
    assert found.stderr == "vacancy: no answer: 127.0.0.1:1: [Errno 111] Connection refused\n"


def test_a_proxy_whose_login_is_no_text_is_no_answer(tmp_path: Path) -> None:
    path = written(tmp_path / "kubeconfig", "https://k8s.invalid")
    found = vacancy(path, "capacity", https_proxy="http://\udcff@127.0.0.1:1", NO_PROXY="", no_proxy="")
    assert (found.exit_code, found.stdout, found.stderr.count("\n")) == (3, "", 1)
    assert found.stderr.startswith("vacancy: no answer: k8s.invalid: 'utf-8' codec can't encode ")


@pytest.mark.parametrize("how", [(), ("--direct",)], ids=["through the proxy", "directly"])
def test_a_password_in_an_address_stays_unsaid(tmp_path: Path, how: tuple[str, ...]) -> None:
    path = written(tmp_path / "kubeconfig", "ftp://me:s3cret@h")
    found = process("-m", "app", "capacity", "--kubeconfig", str(path), *how)
    assert found.returncode in {2, 3}
    assert "s3cret" not in found.stderr
    assert "//h/" in found.stderr or "'h'" in found.stderr


def test_who_cannot_log_in_gets_no_answer(tmp_path: Path) -> None:
    path = written(tmp_path / "kubeconfig", "https://127.0.0.1:1")
    content = json.loads(path.read_text())
    content["users"][0]["user"] = {"exec": {"apiVersion": "v1", "command": "/nowhere/login", "installHint": "ask us"}}
    path.write_text(json.dumps(content))
    found = vacancy(path, "capacity")
    said = "vacancy: no answer: not logged in: /nowhere/login: No such file or directory; ask us\n"
    assert (found.exit_code, found.stderr) == (3, said)


@pytest.mark.parametrize("name", ["vacancy", "a/b/c", "a/B", "/x", "a/../b"])
def test_a_service_is_named_with_its_namespace(kubeconfig: Path, server: Canned, name: str) -> None:
    found = vacancy(kubeconfig, "capacity", "--service", name)
    assert (found.exit_code, server.asked) == (2, [])
    assert f"--service='{name}': expected NAMESPACE/NAME" in found.stderr


def test_a_proxy_is_asked_for_a_tunnel_and_not_shown_the_token(tmp_path: Path, server: Canned) -> None:
    server.answer = (403, b"")
    proxy = f"http://me:s%20cret@127.0.0.1:{server.server_port}"
    found = vacancy(written(tmp_path / "kubeconfig", "https://k8s.example.com", **{"proxy-url": proxy}), "capacity")
    assert found.exit_code == 3
    ((method, path, headers, _),) = server.asked
    assert (method, path) == ("CONNECT", "k8s.example.com:443")
    assert headers["Proxy-Authorization"] == f"Basic {base64.b64encode(b'me:s cret').decode()}"
    assert "Authorization" not in headers
    assert found.stderr == "vacancy: no answer: k8s.example.com: Tunnel connection failed: 403 Forbidden\n"


def test_a_check_loads_nothing_that_judges_serves_or_follows_a_cluster(
    tmp_path: Path, kubeconfig: Path, server: Canned
) -> None:
    server.answer = (200, of_files(tmp_path, "check", "-f", "-", text=ROOM).encode())
    code = (
        "import sys; from app.cli import app; "
        f"app(['check', '-f', '-', '--kubeconfig', {str(kubeconfig)!r}], standalone_mode=False); "
        "print(sorted({'aiohttp', 'asyncio', 'cel_expr_python', 'fastapi', 'kubernetes'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(
        command, input=POD % ("p", "a/b", 1), text=True, capture_output=True, check=True, env=os.environ
    )
    assert found.stdout.splitlines()[-1] == "[]"
