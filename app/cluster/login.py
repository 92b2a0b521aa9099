"""One way in to the API server that kubectl would talk to, for commands that ask once.

It knows every form of a kubeconfig. What changes while a process lives, such as a token that expires, is the business
of `credentials` and `client`, which cost 0.5 s of CPU more (measured).
"""

import os
import ssl
import tempfile
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.cluster.credentials import BadConfig, Credentials, credentials, one_line
from app.cluster.kubeconfig import Cluster, Found, User, current, pem
from app.cluster.proxies import address, proxy, without_login
from app.cluster.user import Shown, authorization, impersonation, shown


@dataclass(frozen=True, slots=True)
class Login:
    """All that a request needs."""

    server: urllib.parse.SplitResult
    """Address of the API server."""
    tls: ssl.SSLContext
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    """Who asks. Not for anybody's eyes."""
    proxy: urllib.parse.SplitResult | None
    namespace: str
    """Of objects that name none."""


def login(kubeconfig: Path | None, context: str | None) -> Login:
    """The way in. Runs the exec plugin, if there is one. Raises BadConfig, LoginFailed."""
    origin = credentials(kubeconfig, context)
    found = _found(origin)
    server = address(found.cluster.server)
    if server is None:
        raise BadConfig(f"server {without_login(found.cluster.server)!a}: expected an http or https address")
    try:
        what = shown(found, origin)
        tls = _tls(found, what)
    except (OSError, ValueError) as error:  # files that are not there, no base64, no certificate, no name of one
        raise BadConfig(f"credentials or certificates cannot be used: {one_line(error)}") from error
    headers = (*authorization(what), *impersonation(found.user))
    return Login(server, tls, headers, proxy(server, found.cluster.proxy_url), found.namespace or "default")


def namespace(kubeconfig: Path | None, context: str | None) -> str:
    """The namespace of objects that name none. Raises BadConfig."""
    return _found(credentials(kubeconfig, context)).namespace or "default"


def _found(origin: Credentials) -> Found:
    return current(origin.files, origin.context) if origin.files else _of_service_account(origin.service_account)


def _of_service_account(folder: Path) -> Found:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    namespace = folder / "namespace"
    return Found(
        "",
        Cluster(server=server, certificate_authority="ca.crt"),
        folder,
        User(token_file="token"),  # noqa: S106 - the name of a file
        folder,
        namespace.read_text("utf-8").strip() if namespace.is_file() else "",
    )


class _Tls(ssl.SSLContext):
    """Trust in the cluster's own authority. Python's default asks for more of a certificate than kubectl does."""

    server_name = ""
    """Expected in its certificate in place of the name in the address."""

    def wrap_socket(self, *arguments: Any, **named: Any) -> ssl.SSLSocket:  # noqa: ANN401 - whatever http.client passes
        if self.server_name:
            named["server_hostname"] = self.server_name
        return super().wrap_socket(*arguments, **named)


def _tls(found: Found, shown: Shown) -> ssl.SSLContext:
    cluster, tls = found.cluster, _Tls(ssl.PROTOCOL_TLS_CLIENT)
    cluster.tls_server_name.encode("idna")  # here, for the handshake would leave its socket open
    tls.server_name = cluster.tls_server_name
    if cluster.insecure_skip_tls_verify:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    elif authority := pem(cluster.certificate_authority_data, cluster.certificate_authority, found.cluster_folder):
        tls.load_verify_locations(cadata=authority.decode("ascii", "ignore"))  # remarks may hold anything
    else:
        tls.load_default_certs()
    if shown.client_certificate_data:
        with tempfile.NamedTemporaryFile() as file:  # for our eyes only, and for this moment
            file.write(f"{shown.client_certificate_data}\n{shown.client_key_data}".encode())
            file.flush()
            tls.load_cert_chain(file.name, password="")
    return tls
