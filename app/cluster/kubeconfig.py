"""What a kubeconfig says: which API server, and how to log in to it, read as kubectl reads it.

By hand, for commands that ask once: the `kubernetes` package takes 0.5 s of CPU to import (measured, 37.0.2).
"""

import base64
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml
from msgspec import field

from app.cluster.credentials import BadConfig, one_line

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Part(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of a kubeconfig; what no code reads is skipped."""


class Cluster(_Part, frozen=True):
    """Where the API server is, and how to know it."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class Variable(_Part, frozen=True):
    """One of `exec.env`."""

    name: str
    value: str = ""


class Plugin(msgspec.Struct, frozen=True, rename="camel"):
    """`exec`: a command that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[Variable] | None = None
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False
    install_hint: str = ""


class User(_Part, frozen=True):
    """How to log in."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: Plugin | None = None
    auth_provider: dict[str, object] | None = None
    as_user: str = field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None


class Context(_Part, frozen=True):
    """A cluster, a user, and the namespace of what names none."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Part, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class _NamedUser(_Part, frozen=True):
    name: str
    user: User = User()


class _NamedContext(_Part, frozen=True):
    name: str
    context: Context = Context()


class _File(_Part, frozen=True):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What a context stands for."""

    context: str
    """Its name; empty: that of a pod's service account."""
    cluster: Cluster
    cluster_folder: Path
    """Paths of the cluster are relative to it."""
    user: User
    user_folder: Path
    namespace: str
    """Of objects that name none; empty: the context does not say."""


def current(files: str, context: str | None) -> Found:
    """What the context stands for; of several files the first that knows a name wins. Raises BadConfig."""
    clusters: dict[str, tuple[Cluster, Path]] = {}
    users: dict[str, tuple[User, Path]] = {}
    contexts: dict[str, Context] = {}
    chosen = context or ""
    for path in map(Path, files.split(os.pathsep)):
        found = _read(path)
        for cluster in found.clusters or ():
            clusters.setdefault(cluster.name, (cluster.cluster, path.parent))
        for user in found.users or ():
            users.setdefault(user.name, (user.user, path.parent))
        for each in found.contexts or ():
            contexts.setdefault(each.name, each.context)
        chosen = chosen or found.current_context
    if not chosen:
        raise BadConfig(f"{files}: no current context; choose one by kubectl config use-context, or by --context")
    if chosen not in contexts:
        raise BadConfig(f"{files}: no context {chosen!a}")
    named = contexts[chosen]
    if named.cluster not in clusters:
        raise BadConfig(f"{files}: no cluster {named.cluster!a}, which context {chosen!a} names")
    if named.user and named.user not in users:
        raise BadConfig(f"{files}: no user {named.user!a}, whom context {chosen!a} names")
    return Found(chosen, *clusters[named.cluster], *users.get(named.user, (User(), Path())), named.namespace)


def pem(data: str, path: str, folder: Path) -> bytes:
    """What a pair of fields holds: base64, which wins, or the name of a file. Raises OSError, ValueError."""
    return base64.b64decode(data) if data else (folder / path).read_bytes() if path else b""


def _read(path: Path) -> _File:
    try:
        with path.open("rb") as file:
            content = yaml.load(file, _LOADER)  # noqa: S506 - both are safe
        return msgspec.convert({} if content is None else content, _File)
    except yaml.YAMLError as error:  # its own text may show the line, and so a token
        mark = getattr(error, "problem_mark", None)
        raise BadConfig(f"{path}:{mark.line + 1 if mark else 1}: not YAML") from error
    except (OSError, ValueError) as error:  # of msgspec too; it names the field and not the value
        raise BadConfig(f"{path}: {one_line(error)}") from error
