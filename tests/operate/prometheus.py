"""A real Prometheus on loopback that scrapes what it is told to, once a second."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Server, free_port

Json = dict[str, Any]


class Prometheus:
    """One process, running from its making until `stop`."""

    def __init__(self, folder: Path, jobs: Mapping[str, Json], rules: Path) -> None:
        """`jobs`: scrape configurations by name. All its files are in `folder`."""
        folder.mkdir()
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": name, **job} for name, job in jobs.items()],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        address = f"127.0.0.1:{free_port()}"
        self._http = httpx.Client(base_url=f"http://{address}", trust_env=False)
        command = [
            "prometheus",
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
        ]
        self._server = Server([*command, f"--web.listen-address={address}"], folder / "log")
        self._server.wait(self._is_ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._http.close()

    def answer(self, query: str) -> list[Json]:
        """The series of an instant query that have a value."""
        return [each for each in self._asked("query", query=query)["result"] if each["value"][1] != "NaN"]

    def labels(self, metric: str) -> set[str]:
        """The labels of a metric, without those that a scrape adds."""
        series: list[dict[str, str]] = self._asked("series", **{"match[]": metric})
        return {label for each in series for label in each} - {"__name__", "job", "instance"}

    def values(self, metric: str, label: str) -> list[str]:
        """What Grafana's `label_values` offers."""
        found: list[str] = self._asked(f"label/{label}/values", **{"match[]": metric})
        return found

    def rules(self) -> list[Json]:
        """The alerts with their state and health."""
        return [rule for group in self._asked("rules")["groups"] for rule in group["rules"]]

    def _asked(self, path: str, **query: str) -> Any:  # noqa: ANN401 - JSON is any
        answered = self._http.get(f"/api/v1/{path}", params=query).json()
        assert answered["status"] == "success", answered
        return answered["data"]

    def _is_ready(self) -> bool:
        try:
            return self._http.get("/-/ready").is_success
        except httpx.TransportError:
            return False


def plain(address: str) -> Json:
    """Scrape /metrics of `host:port` over plain HTTP."""
    return {"static_configs": [{"targets": [address]}]}


def api_server(plane: ControlPlane) -> Json:
    """Scrape the API server as the administrator."""
    kubeconfig = yaml.safe_load(plane.kubeconfig.read_text())
    cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
    tls = {
        "ca_file": cluster["certificate-authority"],
        "cert_file": user["client-certificate"],
        "key_file": user["client-key"],
    }
    return plain(plane.server.removeprefix("https://")) | {"scheme": "https", "tls_config": tls}
