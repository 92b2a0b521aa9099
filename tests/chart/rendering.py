"""The chart as Helm renders it: every object, or the one of a kind and name."""

import functools
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.helm import helms

CHART = Path(__file__).parents[2] / "charts" / "vacancy"
VALUE_SETS = sorted((CHART / "ci").glob("*-values.yaml"))
HELMS = ("helm4", "helm3")

Json = dict[str, Any]
Values = Mapping[str, Any]

# Without a cluster Helm 3.17 takes itself for 1.32.
_CLUSTER = ("--kube-version=1.37.0", "--api-versions=resource.k8s.io/v1alpha3/ResourcePoolStatusRequest")


class Refused(Exception):
    """Helm will not render it. The message is Helm's."""


def helm(program: str, *arguments: str, values: Values | None = None) -> str:
    """Run a Helm that knows no cluster, with values beside those of its arguments. Raises `Refused`."""
    run = subprocess.run(
        [helms() / program, *arguments, *(["--values=-"] if values is not None else [])],
        input=None if values is None else yaml.safe_dump(dict(values)),
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": "/nonexistent"},
    )
    if run.returncode:
        raise Refused(run.stderr)
    return run.stdout


def rendering(
    values: Values | None = None,
    *options: str,
    program: str = "helm4",
    chart: Path = CHART,
    release: str = "vacancy",
    namespace: str = "vacancy",
) -> str:
    """What `helm template` prints. Raises `Refused`."""
    where = f"--namespace={namespace}"
    return helm(program, "template", release, str(chart), where, *_CLUSTER, *options, values=values)


def objects(text: str) -> dict[str, Json]:
    """The objects of a rendering by `Kind/name`, `List`s taken apart; none may be there twice."""
    found = {}
    for item in _items(text):
        key = f"{item['kind']}/{item['metadata']['name']}"
        assert key not in found, f"{key} is rendered twice"
        found[key] = item
    return found


def rendered(values: Values | None = None, *options: str, release: str = "vacancy") -> dict[str, Json]:
    """The objects of these values, to look at: they are rendered once for all tests. Raises `Refused`."""
    return _rendered(json.dumps(dict(values or {})), options, release)


def merged(values: Values, other: Values) -> Json:
    """Values as Helm merges them: the other's win, maps key by key."""
    both = dict(values)
    for key, value in other.items():
        old = both.get(key)
        both[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


def value_set(name: str) -> Json:
    """The values of `ci/NAME-values.yaml`."""
    values: Json = yaml.safe_load((CHART / "ci" / f"{name}-values.yaml").read_text())
    return values


def default_values() -> Json:
    """What `values.yaml` says."""
    values: Json = yaml.safe_load((CHART / "values.yaml").read_text())
    return values


def copied_chart(folder: Path) -> Path:
    """A copy of the chart, to try other files in it."""
    return Path(shutil.copytree(CHART, folder / "vacancy"))


@functools.cache
def _rendered(values: str, options: tuple[str, ...], release: str) -> dict[str, Json]:
    return objects(rendering(json.loads(values), *options, release=release))


class _NoDuplicates(yaml.CSafeLoader):
    """Refuses a key that is there twice, as Kubernetes does when asked to be strict."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as the library calls it
        keys = [self.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key is there twice: {keys}"
        return super().construct_mapping(node, deep)


def _items(text: str) -> Iterator[Json]:
    for document in yaml.load_all(text, Loader=_NoDuplicates):
        if document:
            yield from document["items"] if document["kind"] == "List" else [document]
