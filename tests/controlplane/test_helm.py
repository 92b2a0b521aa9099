"""Helm is there in the versions that the chart is for, and knows a cluster only when told."""

from pathlib import Path

import pytest

from tests.controlplane.helm import Helm


def test_both_versions_run(helm4: Helm, helm3: Helm) -> None:
    assert helm4("version", "--template={{.Version}}") == "v4.3.1"
    assert helm3("version", "--template={{.Version}}") == "v3.17.2"


def test_without_a_kubeconfig_there_is_no_cluster(helm4: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "of-a-person")
    assert "cluster unreachable" in helm4.run("list").stderr


def test_what_goes_wrong_is_said(helm4: Helm, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"(?s)helm template x .*Chart.yaml: no such file"):
        helm4("template", "x", tmp_path)
