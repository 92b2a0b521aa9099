"""What a user of a kubeconfig shows to the API server: certificate, token, password, and whom they act as."""

import base64
import os
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator

import msgspec

from app.cluster.credentials import BadConfig, Credentials
from app.cluster.kubeconfig import Found, Plugin, User, pem

PLUGIN_SECONDS = 60.0
"""For an exec plugin: it may ask a person or another server."""


class LoginFailed(Exception):
    """It is known how to log in, but that came to nothing; one line for a person, without a secret."""


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """What one logs in with: `status` of an ExecCredential, and the same of other users."""

    token: str = ""
    client_certificate_data: str = ""
    """Both in PEM."""
    client_key_data: str = ""
    basic: str = ""
    """Name and password as base64."""


class _ExecCredential(msgspec.Struct, frozen=True):
    status: Shown


def shown(found: Found, origin: Credentials) -> Shown:
    """What there is, chosen as client-go does: a token that is written down wins over a plugin.

    Raises BadConfig, LoginFailed and, for what cannot be read, OSError and ValueError.
    """
    user, folder = found.user, found.user_folder
    token = (folder / user.token_file).read_bytes() if user.token_file else user.token.encode()
    if user.exec and not token:
        return _of_plugin(user.exec, found)
    if user.auth_provider and not token:
        token = _of_provider(origin)
    basic = base64.b64encode(f"{user.username}:{user.password}".encode()).decode() if user.username else ""
    certificate = pem(user.client_certificate_data, user.client_certificate, folder)
    key = pem(user.client_key_data, user.client_key, folder)
    return Shown(token.decode("ascii", "replace"), certificate.decode(), key.decode(), basic)


def _of_plugin(plugin: Plugin, found: Found) -> Shown:
    """Run it. What it says to people goes to our stderr; it may ask only where stdin is not what we are to read."""
    command = plugin.command
    if os.sep in command:
        command = str(found.user_folder / command)
    may_ask = sys.stdin.isatty() and plugin.interactive_mode != "Never"
    info = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": may_ask, **({"cluster": _told(found)} if plugin.provide_cluster_info else {})},
    }
    variables = {each.name: each.value for each in plugin.env or ()}
    try:
        done = subprocess.run(  # noqa: S603 - the kubeconfig is the person's own
            [command, *(plugin.args or ())],
            env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()},
            stdin=None if may_ask else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=PLUGIN_SECONDS,
            check=True,
        )
        given = msgspec.json.decode(done.stdout, type=_ExecCredential).status
    except OSError as error:
        hint = f"; {' '.join(plugin.install_hint.split())}" if plugin.install_hint else ""
        raise LoginFailed(f"{command}: {error.strerror}{hint}") from error
    except subprocess.TimeoutExpired as error:
        raise LoginFailed(f"{command}: no credentials within {PLUGIN_SECONDS:g} s") from error
    except subprocess.CalledProcessError as error:
        raise LoginFailed(f"{command}: ended with exit code {error.returncode}; log in again") from error
    except msgspec.DecodeError as error:
        raise LoginFailed(f"{command}: expected an ExecCredential on its stdout") from error
    if not (given.token or given.client_certificate_data):
        raise LoginFailed(f"{command}: expected a token or a certificate in its ExecCredential")
    return given


def _told(found: Found) -> dict[str, object]:
    """What a plugin is told of the cluster."""
    cluster = found.cluster
    authority = pem(cluster.certificate_authority_data, cluster.certificate_authority, found.cluster_folder)
    return {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
    }


def _of_provider(origin: Credentials) -> bytes:
    """The token of an `auth-provider`, a form that Kubernetes has given up but for OIDC; the package knows it."""
    import asyncio  # noqa: PLC0415 - as the package: much time that nearly nobody needs

    try:
        found = asyncio.run(asyncio.wait_for(origin.load(), PLUGIN_SECONDS))
    except TimeoutError as error:
        raise LoginFailed(f"no token within {PLUGIN_SECONDS:g} s") from error
    return str(found.api_key.get("BearerToken", "")).removeprefix("Bearer ").encode()


def authorization(shown: Shown) -> Iterator[tuple[str, str]]:
    """The header that says who asks. Raises LoginFailed."""
    token = shown.token.strip()
    if not (token.isascii() and token.isprintable()):
        raise LoginFailed("the token is not one line of ASCII")
    if token:
        yield "Authorization", f"Bearer {token}"
    elif shown.basic:
        yield "Authorization", f"Basic {shown.basic}"


def impersonation(user: User) -> Iterator[tuple[str, str]]:
    """Whom the request acts as; to leave it out would be to ask with other rights. Raises BadConfig."""
    named = {"Impersonate-User": [user.as_user], "Impersonate-Uid": [user.as_uid]}
    named["Impersonate-Group"] = user.as_groups or []
    for key, values in (user.as_user_extra or {}).items():
        named[f"Impersonate-Extra-{urllib.parse.quote(key, safe='')}"] = values
    for name, value in ((name, value) for name, values in named.items() for value in values if value):
        if re.search(r"[\0-\x1f\x7f]", value):
            raise BadConfig(f"{name} {value[:40]!a}: expected a text without control characters")
        yield name, value
