"""The chart's objects in a real cluster without Helm: applied, used, and taken away again."""

import contextlib
import json
from collections.abc import Iterable, Iterator

from tests.chart.rendering import Json, Values, objects, rendering
from tests.controlplane.plane import ControlPlane

# What the API server of the tests has no definition of.
FOREIGN = ("cert-manager.io/", "monitoring.coreos.com/")


def known(values: Values | None, namespace: str, *options: str, release: str = "vacancy") -> list[Json]:
    """The rendered objects Kubernetes has kinds for, in the order of the rendering, for that namespace."""
    found = objects(rendering(values, *options, release=release, namespace=namespace)).values()
    return [item for item in found if not item["apiVersion"].startswith(FOREIGN)]


def as_list(items: Iterable[Json]) -> str:
    """The objects as kubectl reads them."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})


@contextlib.contextmanager
def installed(plane: ControlPlane, items: list[Json]) -> Iterator[None]:
    """These objects are there, as Helm 4 would apply them, and then no more."""
    text = as_list(items)
    try:
        run = plane.kubectl("apply", "--server-side", "--field-manager=helm", "-f", "-", input=text)
        assert run.returncode == 0, run.stderr
        yield
    finally:
        run = plane.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=text)
        assert run.returncode == 0, run.stderr
