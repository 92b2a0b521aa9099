"""What an installation says: first what may hurt, then a warning for each value that takes something away."""

import functools
import re
import shlex
from pathlib import Path

import pytest

from tests.chart.knobs import nested
from tests.chart.rendering import HELMS, Json, copied_chart, helm, merged, objects, rendered
from tests.chart.test_values import OTHERS, environment

MODERN = ("--kube-version=1.37.0", "--api-versions=resource.k8s.io/v1alpha3/ResourcePoolStatusRequest")


def notes(folder: Path, values: Json, *cluster: str, program: str = "helm4") -> str:
    """The notes. `helm template` leaves them out, so they are rendered as an object of a copy of the chart."""
    chart = copied_chart(folder)
    templates = chart / "templates"
    (chart / "files" / "notes").write_text((templates / "NOTES.txt").read_text())
    (templates / "notes.yaml").write_text(
        '{kind: Notes, metadata: {name: notes}, text: {{ tpl (.Files.Get "files/notes") . | toJson }}}'
    )
    arguments = ("template", "vacancy", str(chart), "--namespace=gpus", *(cluster or MODERN))
    text: str = objects(helm(program, *arguments, values=values))["Notes/notes"]["text"]
    return text.strip()


@pytest.mark.parametrize("program", HELMS)
def test_who_may_lose_pods_to_the_autoscaler_reads_it_first(tmp_path: Path, program: str) -> None:
    text = notes(tmp_path, {}, program=program)
    assert text.startswith("READ THIS FIRST.")
    assert "--set 'autoscaled={" in text
    assert "--set mode=warn" in text
    assert "WARNING" not in text


def test_who_has_named_them_reads_which(tmp_path: Path) -> None:
    text = notes(tmp_path, {"autoscaled": ["a.example.com", "b"]})
    assert text.startswith("Pods that can't get a device are refused from now on.")
    assert "a.example.com, b" in text


def test_who_starts_softly_reads_what_to_do_before_enforcing(tmp_path: Path) -> None:
    text = notes(tmp_path, {"mode": "audit"})
    assert text.startswith("Nobody is refused by default: mode audit.")
    assert "autoscaled" in text


def test_everybody_reads_how_the_command_finds_the_service(tmp_path: Path) -> None:
    assert "\n  kubectl vacancy capacity --service gpus/vacancy " in notes(tmp_path, {})
    (tmp_path / "outside").mkdir()
    assert "kubectl vacancy" not in notes(tmp_path / "outside", {"webhook": {"url": "https://gpu.example.com"}})


WARNINGS: dict[str, tuple[Json, tuple[str, ...], int]] = {
    "WARNING: replicas is 1.": ({"replicas": 1}, MODERN, 1),
    "no pod that asks for devices can be created.": (
        {"replicas": 1, "webhook": {"failurePolicy": "Fail"}},
        MODERN,
        2,
    ),
    "WARNING: wake is off.": ({"wake": {"enabled": False}}, MODERN, 1),
    "WARNING: this API server has no ResourcePoolStatusRequest": ({}, MODERN[:1], 1),
    "Refusals rest on the live view alone.": ({"source": "auto"}, MODERN[:1], 1),
    "With source both nothing is ever refused.": ({"source": "both"}, MODERN[:1], 1),
    "With source pool-status nothing is ever refused.": ({"rights": {"witness": False}}, MODERN[:1], 1),
    "so nothing is judged.": ({}, ("--kube-version=1.33.9", MODERN[1]), 1),
    "WARNING: this is Kubernetes v1.36.4.": ({}, ("--kube-version=1.36.4", MODERN[1]), 1),
}


@pytest.mark.parametrize(("sentence", "row"), WARNINGS.items(), ids=WARNINGS)
def test_what_takes_something_away_is_warned_of(
    tmp_path: Path, sentence: str, row: tuple[Json, tuple[str, ...], int]
) -> None:
    values, cluster, warnings = row
    text = notes(tmp_path, values, *cluster)
    assert sentence in text
    assert text.count("WARNING") == warnings


@pytest.mark.parametrize(
    ("values", "cluster"),
    [
        ({"rights": {"poolStatus": False}}, MODERN[:1]),
        ({}, ("--kube-version=1.37.2-gke.100", MODERN[1])),
        ({}, ("--kube-version=1.38.0-alpha.1", MODERN[1])),
    ],
)
def test_what_takes_nothing_away_is_not(tmp_path: Path, values: Json, cluster: tuple[str, ...]) -> None:
    assert "WARNING" not in notes(tmp_path, values, *cluster)


def test_who_runs_the_server_outside_reads_how(tmp_path: Path) -> None:
    text = notes(tmp_path, {"webhook": {"url": "https://vacancy.example.com"}, "replicas": 1})
    assert "--tls-secret gpus/vacancy-tls --webhooks vacancy,vacancy-workloads" in text
    assert "port-forward" not in text
    assert "WARNING" not in text


# What its command says, or its own place decides.
NOT_TOLD = {f"VACANCY_{name}" for name in ("LISTEN", "WEB_LISTEN", "TLS_SECRET", "WEBHOOKS")}


def test_a_server_outside_is_told_every_setting_as_one_inside(tmp_path: Path) -> None:
    """None has its default; some are empty, or hold what a shell would take for its own."""
    changes = [nested("rights.nodes", value=False), *(nested(name, value) for name, (value, _) in OTHERS.items())]
    values = functools.reduce(merged, changes)
    text = notes(tmp_path, merged(values, {"webhook": {"url": "https://vacancy.example.com"}}))
    settings = re.findall(r"^  (VACANCY_\w+=(?:'[^']*'|\\')*)$", text, re.MULTILINE)  # some of several lines
    words = shlex.split("\n".join(settings))
    inside = environment(rendered(values))
    assert dict(word.split("=", 1) for word in words) == {
        name: value for name, value in inside.items() if name not in NOT_TOLD
    }


def test_no_line_is_too_long_for_a_terminal(tmp_path: Path) -> None:
    values = {"replicas": 1, "webhook": {"failurePolicy": "Fail"}, "wake": {"enabled": False}}
    lines = notes(tmp_path, values, "--kube-version=1.36.0").splitlines()
    assert [line for line in lines if len(line) > 120] == []
    assert [line for line in lines if line != line.rstrip()] == []
