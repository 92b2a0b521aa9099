"""Every value set with both Helms: it renders, lints, is the same each time, and is what Kubernetes 1.37 takes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chart.rendering import CHART, HELMS, VALUE_SETS, helm, objects, rendering

KUBERNETES_VALIDATE = Path(sys.executable).with_name("kubernetes-validate")

each_set = pytest.mark.parametrize("values", VALUE_SETS, ids=lambda path: path.stem)
each_helm = pytest.mark.parametrize("program", HELMS)

# Custom resources, whose schemas Kubernetes doesn't have.
FOREIGN = ("cert-manager.io/v1", "monitoring.coreos.com/v1")


@each_helm
@each_set
def test_a_value_set_lints(values: Path, program: str) -> None:
    assert "0 chart(s) failed" in helm(program, "lint", "--strict", str(CHART), f"--values={values}")


@each_helm
@each_set
def test_two_renderings_are_equal_byte_by_byte(values: Path, program: str) -> None:
    option = f"--values={values}"
    assert rendering(None, option, program=program) == rendering(None, option, program=program)


@each_set
def test_both_helms_render_the_same_objects(values: Path) -> None:
    four, three = (objects(rendering(None, f"--values={values}", program=program)) for program in HELMS)
    assert four == three


@each_set
def test_an_upgrade_renders_what_an_installation_does(values: Path) -> None:
    option = f"--values={values}"
    assert rendering(None, option, "--is-upgrade") == rendering(None, option)


@each_set
def test_kubernetes_1_37_knows_every_field(values: Path, tmp_path: Path) -> None:
    file = tmp_path / "rendered.yaml"
    file.write_text(rendering(None, f"--values={values}"))
    command = [str(KUBERNETES_VALIDATE), "--kubernetes-version=1.37", "--strict", str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    # What it has no schema for it passes over with a warning and exit code 0.
    unknown = re.findall(r"Couldn't find schema for kind \S+ with api version (\S+)", run.stdout + run.stderr)
    assert run.returncode == 0, run.stdout + run.stderr
    assert set(unknown) <= set(FOREIGN)


def test_every_template_is_rendered_by_some_value_set() -> None:
    sources = {
        source
        for values in VALUE_SETS
        for source in re.findall(r"^# Source: vacancy/(\S+)$", rendering(None, f"--values={values}"), re.MULTILINE)
    }
    silent = {"templates/guards.yaml"}
    templates = {str(path.relative_to(CHART)) for path in CHART.glob("templates/**/*.yaml")}
    assert templates - sources == silent


def test_nothing_is_random_or_read_from_a_cluster() -> None:
    words = re.compile(r"\b(lookup|rand\w+|gen(CA|PrivateKey|SelfSignedCert|SignedCert)\w*|uuidv4|now|date|htpasswd)\b")
    actions = {
        path.name: [word for action in re.findall(r"{{.*?}}", _code(path), re.DOTALL) for word in words.findall(action)]
        for path in CHART.glob("templates/**/*.*")
    }
    assert {name: found for name, found in actions.items() if found} == {}


def _code(path: Path) -> str:
    """A template without comments and quoted text."""
    return re.sub(r'{{-? ?/\*.*?\*/ ?-?}}|"[^"]*"', '""', path.read_text(), flags=re.DOTALL)
