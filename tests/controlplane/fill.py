"""Fills a control plane with a folder of manifests, leaving to the cluster what is the cluster's to decide.

Pool statuses and the claims that belong to one pod are left out: controllers and the scheduler make their own. A pod
goes through the real scheduler to the node that its manifest names, and is then said to be running.
"""

import itertools
import json
import time
from collections.abc import Iterable
from pathlib import Path

import yaml

from tests.controlplane.client import Json
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

_SETTABLE = ("name", "generateName", "namespace", "labels", "annotations")
_CLAIM_OF_A_POD = ("resource.kubernetes.io/extended-resource-claim", "resource.kubernetes.io/pod-claim-name")


class NotTaken(Exception):
    """The cluster refused a manifest, or has no place for its pod. The message is the cluster's."""


def fill(plane: ControlPlane, folder: Path) -> None:
    """Make what the YAML in `folder`, and below it, describes. Raises `NotTaken`, `Refused`."""
    objects = [each for each in _manifests(folder) if not _made_by_the_cluster(each)]
    for namespace in sorted({each["metadata"].get("namespace", "default") for each in objects} - {"default"}):
        plane.add_namespace(namespace)
    by_kind = {kind: [each for each in objects if each["kind"] == kind] for kind in ("DeviceClass", "Node", "Pod")}
    _create_by_age(plane, by_kind["DeviceClass"])
    _create(plane, [each for each in objects if each["kind"] not in by_kind])
    for node in by_kind["Node"]:
        plane.register_node(_as_created(node) | {"status": node["status"]})
    for pod in by_kind["Pod"]:
        _run(plane, _as_created(pod))


def _manifests(folder: Path) -> list[Json]:
    return [each for path in sorted(folder.rglob("*.yaml")) for each in yaml.safe_load_all(path.read_text()) if each]


def _made_by_the_cluster(given: Json) -> bool:
    annotations = given["metadata"].get("annotations", {})
    return given["kind"] == "ResourcePoolStatusRequest" or any(mark in annotations for mark in _CLAIM_OF_A_POD)


def _as_created(given: Json) -> Json:
    """The object without what a server sets: UID, times, status."""
    created = given | {"metadata": {name: value for name, value in given["metadata"].items() if name in _SETTABLE}}
    created.pop("status", None)
    return created


def _create_by_age(plane: ControlPlane, classes: Iterable[Json]) -> None:
    """The oldest first, a second apart: of two classes that declare one resource name the newest counts."""

    def age(given: Json) -> str:
        return str(given["metadata"].get("creationTimestamp", ""))

    for number, (_, alike) in enumerate(itertools.groupby(sorted(classes, key=age), key=age)):
        if number:
            time.sleep(1)  # the resolution of a creation time
        _create(plane, list(alike))


def _create(plane: ControlPlane, given: list[Json]) -> None:
    if not given:
        return
    objects = {"apiVersion": "v1", "kind": "List", "items": [_as_created(each) for each in given]}
    made = plane.kubectl("create", "-f", "-", input=json.dumps(objects))
    if made.returncode:
        raise NotTaken(made.stderr)


def _run(plane: ControlPlane, pod: Json) -> None:
    """Have the pod scheduled to its node, so that it really holds devices there, and call it running."""
    client = plane.client()
    node = pod["spec"].pop("nodeName", None)
    if node:
        pod["spec"]["nodeSelector"] = pod["spec"].get("nodeSelector", {}) | {"kubernetes.io/hostname": node}
    pods = f"/api/v1/namespaces/{pod['metadata'].get('namespace', 'default')}/pods"
    path = f"{pods}/{client.post(pods, pod)['metadata']['name']}"
    if node:
        try:
            until("bound", lambda: client.get(path)["spec"].get("nodeName"), seconds=20)
        except TimeoutError as late:
            raise NotTaken(f"{path} on {node}: {client.get(path)['status'].get('conditions')}") from late
        client.patch(f"{path}/status", {"status": {"phase": "Running"}})
