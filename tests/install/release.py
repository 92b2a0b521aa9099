"""One release of the chart in a real cluster, its pods really running."""

import itertools
import json
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.controlplane.client import Json
from tests.controlplane.helm import Helm
from tests.controlplane.kubelet import Kubelet
from tests.controlplane.pod import Program
from tests.controlplane.waiting import until

CHART = Path(__file__).parents[2] / "charts" / "vacancy"

KUBERNETES = "1.37.2"
"""Helm 3.17 thinks of 1.32 unless it asks a cluster."""

VACANCY = Program([sys.executable, "-m", "app"], {"VACANCY_LISTEN": "{ip}:8443", "VACANCY_WEB_LISTEN": "{ip}:8080"})
"""What runs in the place of the image `vacancy`."""

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

_numbers = itertools.count()


class Release:
    """A release called `vacancy-N` in a namespace of that name, which is made and deleted with it."""

    def __init__(self, kubelet: Kubelet, helm: Helm, folder: Path) -> None:
        """Files with values are written to `folder`."""
        self.name = f"vacancy-{next(_numbers)}"
        self.plane, self.client = kubelet.plane, kubelet.plane.client()
        self._kubelet, self._helm, self._folder = kubelet, helm.towards(kubelet.plane.kubeconfig), folder
        self.values: Json = {}
        self.plane.add_namespace(self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def install(self, **values: Any) -> None:  # noqa: ANN401 - as YAML has them
        """`helm install`, and wait until everything is ready. Values are those of the chart."""
        self._run("install", values, "--wait", "--timeout=5m")

    def upgrade(self, **values: Any) -> None:  # noqa: ANN401
        """`helm upgrade` to these values in addition to those that were given before."""
        self._run("upgrade", values, "--wait", "--timeout=5m")

    def test(self) -> None:
        """`helm test`."""
        self.helm("test", "--timeout=5m")

    def uninstall(self) -> None:
        """`helm uninstall`; what it deletes may still be ending."""
        self.helm("uninstall", "--timeout=5m")

    def close(self) -> None:
        """End everything at once, whatever has become of it."""
        self.helm("uninstall", "--ignore-not-found", "--no-hooks")
        self.client.delete(f"/api/v1/namespaces/{self.name}/pods", gracePeriodSeconds=0)
        until("no pod left", lambda: not self.pods())
        self.client.delete(f"/api/v1/namespaces/{self.name}")

    def render(self, *flags: str) -> str:
        """What `helm template` prints for the values of the release."""
        return self.helm("template", CHART, f"--kube-version={KUBERNETES}", *flags, *self._values({}))

    def helm(self, verb: str, *arguments: str | Path) -> str:
        """Run Helm for this release."""
        try:
            return self._helm(*verb.split(), self.name, *arguments, f"--namespace={self.name}")
        except AssertionError as failure:
            failure.add_note(self._kubelet.log(self.name))
            raise

    def objects(self) -> list[Json]:
        """Everything the release consists of, hooks included, as Helm has sent it."""
        return [each for each in yaml.safe_load_all(self.helm("get manifest") + self.helm("get hooks")) if each]

    # --- What is in the cluster ---------------------------------------------------------------------------------------

    def pods(self) -> list[Json]:
        """All pods of its namespace."""
        found: list[Json] = self.client.get(f"/api/v1/namespaces/{self.name}/pods")["items"]
        return found

    def replicas(self) -> list[Json]:
        """The pods that answer reviews, without those that are ending."""
        component = "app.kubernetes.io/component"
        servers = [each for each in self.pods() if each["metadata"]["labels"].get(component) == "server"]
        return [each for each in servers if "deletionTimestamp" not in each["metadata"]]

    def ready_replicas(self) -> list[Json]:
        """Those that reviews are sent to."""

        def is_ready(replica: Json) -> bool:
            conditions = replica["status"].get("conditions", ())
            return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

        return [each for each in self.replicas() if is_ready(each)]

    def page(self, replica: Json, path: str) -> str:
        """A page of this replica, through the API server's proxy; empty: it does not answer."""
        name = replica["metadata"]["name"]
        answer = self.client.http.get(f"/api/v1/namespaces/{self.name}/pods/http:{name}:8080/proxy/{path}")
        return answer.text if answer.is_success else ""

    def wait_for_full(self, class_name: str) -> None:
        """Return when every replica knows that no device of the class is free."""

        def is_full(replica: Json) -> bool:
            classes = json.loads(self.page(replica, "api/v1/capacity") or '{"classes": []}')["classes"]
            return any((each["name"], each["vacancy"]) == (class_name, "full") for each in classes)

        until(f"{class_name} full", lambda: all(map(is_full, self.replicas())))

    def configurations(self) -> list[Json]:
        """The webhook configurations of the release."""
        selector = f"app.kubernetes.io/instance={self.name}"
        found: list[Json] = self.client.get(CONFIGURATIONS, labelSelector=selector)["items"]
        return found

    def trusted(self) -> list[str]:
        """The caBundle of every webhook, as the API has it; empty: nobody has written it."""
        webhooks = [webhook for each in self.configurations() for webhook in each["webhooks"]]
        return [webhook["clientConfig"].get("caBundle", "") for webhook in webhooks]

    def _run(self, verb: str, values: Json, *flags: str) -> None:
        self.helm(verb, CHART, *self._values(values), *flags)

    def _values(self, more: Json) -> list[str]:
        """Flags for the values given so far and these."""
        self.values |= more
        path = self._folder / f"{self.name}.json"
        path.write_text(json.dumps(self.values))
        return [f"--values={path}"]
