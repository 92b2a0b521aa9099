"""Which cluster, and as whom: a kubeconfig, or the service account of the pod this runs in."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from kubernetes.aio.client.configuration import Configuration

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts a pod's token and the cluster's CA."""


class BadConfig(Exception):
    """There is no way to know the cluster or to log in to it; one line for a person."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where to look. `load` may be called again and again: tokens expire, and files are replaced."""

    files: str
    """Kubeconfigs as $KUBECONFIG lists them; empty: the service account."""
    context: str | None
    service_account: Path

    async def load(self) -> "Configuration":
        """Server, certificates and credentials as they are now. Runs exec plugins. Raises BadConfig.

        The package reads a service account's token again once a minute by itself; everything else is read now.
        """
        # Half a second of CPU (measured), which commands that ask once do without: see `login`.
        from kubernetes.aio import config as kubernetes_config  # noqa: PLC0415
        from kubernetes.aio.client.configuration import Configuration  # noqa: PLC0415

        found = Configuration()
        try:
            if self.files:
                # A kubeconfig is the person's: what a login brings is kept in memory.
                await kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
                    self.files, self.context, found, persist_config=False
                )
            else:
                kubernetes_config.incluster_config.InClusterConfigLoader(  # type: ignore[no-untyped-call]
                    token_filename=str(self.service_account / "token"),
                    cert_filename=str(self.service_account / "ca.crt"),
                ).load_and_set(found)
        except (
            kubernetes_config.ConfigException,
            yaml.YAMLError,
            OSError,
            ValueError,
            TypeError,  # both for a kubeconfig that is YAML, but no kubeconfig
            AttributeError,
        ) as error:
            raise BadConfig(f"{self.files or 'service account'}: {one_line(error)}") from error
        return found


def credentials(
    kubeconfig: Path | None,
    context: str | None,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Credentials:
    """As kubectl looks for them: the file that is given, else $KUBECONFIG or ~/.kube/config, else the service account.

    Raises BadConfig if there is nothing of it.
    """
    files = str(kubeconfig or environment.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    found = [part for part in files.split(os.pathsep) if Path(part).is_file()]
    if found:
        return Credentials(os.pathsep.join(found), context or None, service_account)
    if kubeconfig or context or "KUBERNETES_SERVICE_HOST" not in environment:
        raise BadConfig(f"{files}: no such kubeconfig")
    return Credentials("", None, service_account)


def one_line(error: BaseException) -> str:
    """What an error says of itself, on one line; of an address in it neither name nor password."""
    return re.sub(r"//[^\s/]*@", "//", " ".join(str(error).split()))[:200] or type(error).__name__
