"""docs/install.md shows objects that Kubernetes takes and that fit what the chart installs."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART, rendered
from tests.chart.test_rendering import KUBERNETES_VALIDATE

PAGE = (CHART.parents[1] / "docs" / "install.md").read_text("utf-8")
SHOWN: dict[str, dict[str, Any]] = {
    found["kind"]: found for found in map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
}


@pytest.mark.parametrize("kind", SHOWN)
def test_kubernetes_1_37_takes_what_is_shown(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "shown.yaml"
    file.write_text(yaml.safe_dump(SHOWN[kind]))
    command = [str(KUBERNETES_VALIDATE), "--kubernetes-version=1.37", "--strict", str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "passed" in run.stdout + run.stderr


def test_the_ingress_leads_to_the_web_port_of_the_service() -> None:
    ingress, service = SHOWN["Ingress"], rendered()["Service/vacancy"]
    (rule,) = ingress["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    asked = path["backend"]["service"]
    assert (ingress["metadata"]["namespace"], asked["name"]) == ("vacancy", service["metadata"]["name"])
    (port,) = [port for port in service["spec"]["ports"] if port["name"] == asked["port"]["name"]]
    assert (port["port"], port["targetPort"]) == (80, "web")
    assert f"pageUrl: https://{rule['host']}/" in PAGE


def test_the_lasting_token_is_of_the_account_of_an_outside_server() -> None:
    account = rendered({"webhook": {"url": "https://vacancy.example.com"}})["ServiceAccount/vacancy"]["metadata"]
    secret = SHOWN["Secret"]["metadata"]
    assert secret["annotations"] == {"kubernetes.io/service-account.name": account["name"]}
    assert secret["namespace"] == account["namespace"]
