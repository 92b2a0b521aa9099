"""Pod templates in custom resources, found by their shape below `spec`: nobody can know all kinds.

A template is what holds `spec.containers` under a key `template` or `…Template`, as in RayCluster, PyTorchJob, JobSet
and Rollout. Argo's `templates` are containers, each of which becomes a pod. A look-alike, such as the pattern of a
policy, has no names for its containers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from app.dra.words import shortened

MAX_DEPTH = 24
"""Keys and indexes from `spec` to a template. An AdvancedCronJob of JobSets would need 12."""

MAX_PATH = 200
"""Characters of a path; real ones have about 60."""

OTHER_SCHEDULERS = {"batch.volcano.sh": "volcano"}
"""API groups whose pods go to a scheduler of their own, although nobody writes it down."""

_CONTAINER_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

_OF_WORKFLOW = ("nodeSelector", "tolerations", "schedulerName")
"""What a template of Argo inherits, if it does not say it itself."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Template:
    """One template."""

    path: str
    """Where it is: `spec.workerGroupSpecs[0].template`."""
    pod: bytes
    """The pod it makes, as JSON."""
    replicas: int | None
    """Pods of it at the same time, if a number beside it says so."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the object we are, and what was said on the way there."""

    path: str
    depth: int
    scheduler: str
    replicas: int
    """How many of it there will be: a JobSet makes several Jobs of one template, each of which has one for pods."""

    def __truediv__(self, key: str | int) -> "_Place":
        step = f"[{key}]" if isinstance(key, int) else f".{key}"
        return _Place(f"{self.path}{step}", self.depth + 1, self.scheduler, self.replicas)


def pod_templates(api_version: str, kind: str, document: bytes) -> Iterator[Template]:
    """The templates of a custom resource, as far down as anybody nests them. Raises msgspec.DecodeError.

    None in the API's own groups, whose kinds are known, or in a DaemonSet of another group: its pods are each for one
    node, so room elsewhere says nothing.
    """
    group, _, _ = api_version.rpartition("/")
    if "." not in group or kind == "DaemonSet":
        return
    whole = msgspec.json.decode(document)
    yield from _within(_mapping(whole).get("spec"), _Place("spec", 0, OTHER_SCHEDULERS.get(group, ""), 1))


def _within(value: object, place: _Place) -> Iterator[Template]:
    if place.depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _within(item, place / number)
    elif isinstance(value, dict):
        scheduler = value.get("schedulerName")
        if isinstance(scheduler, str) and scheduler:
            place = replace(place, scheduler=scheduler)
        for key, item in value.items():
            yield from _at(key, item, value, place / key)


def _at(key: str, item: object, around: Json, place: _Place) -> Iterator[Template]:
    if key == "template" or key.endswith("Template"):
        replicas = _replicas(around)
        if isinstance(item, dict) and _is_pod_template(item):
            number = None if replicas is None else replicas * place.replicas
            yield _template(item, place, number)
            return
        if key == "template" and replicas is not None:
            place = replace(place, replicas=replicas * place.replicas)
    if key == "templates" and isinstance(item, list) and any(map(_is_container_template, item)):
        for number, each in enumerate(item):
            if _is_container_template(each):
                yield _template(_pod_of_containers(each, around), place / number, None)
        return
    yield from _within(item, place)


def _replicas(around: Json) -> int | None:
    """Pods at the same time by the numbers beside a template, read as those of a Job."""
    wanted, completions = around.get("parallelism", around.get("replicas")), around.get("completions")
    numbers = [number for number in (wanted, completions) if type(number) is int and number >= 0]
    if not numbers:
        return None
    return min(numbers) if type(wanted) is int else min(1, *numbers)  # a Job runs one at a time, if nobody says more


def _is_pod_template(value: Json) -> bool:
    containers = _listed(_mapping(value.get("spec")).get("containers"))
    return bool(containers) and all(map(_is_named_container, containers))


def _is_named_container(value: object) -> bool:
    name = _mapping(value).get("name")
    return isinstance(name, str) and _CONTAINER_NAME.fullmatch(name) is not None


def _template(pod: Json, place: _Place, replicas: int | None) -> Template:
    spec = {"schedulerName": place.scheduler} | pod["spec"] if place.scheduler else pod["spec"]
    json = msgspec.json.encode({"metadata": pod.get("metadata") or {}, "spec": spec})
    return Template(shortened(place.path, MAX_PATH), json, replicas)


# --- Argo's templates -------------------------------------------------------------------------------------------------


def _is_container_template(value: object) -> bool:
    return bool(_containers(_mapping(value)))


def _containers(template: Json) -> list[Json]:
    """Those that do the work; none: the template makes no pod, as `dag` and `steps`."""
    several = _listed(_mapping(template.get("containerSet")).get("containers"))
    found = [template.get("container"), template.get("script"), *several]
    return [each for each in found if isinstance(_mapping(each).get("image"), str)]


def _pod_of_containers(template: Json, workflow: Json) -> Json:
    spec = {key: found for key in _OF_WORKFLOW if (found := template.get(key) or workflow.get(key))}
    if selector := _mapping(spec.get("nodeSelector")):  # what is filled in later selects nothing yet
        spec["nodeSelector"] = {key: value for key, value in selector.items() if "{{" not in str(value)}
    spec["containers"] = [*_containers(template), *_listed(template.get("sidecars"))]
    spec["initContainers"] = template.get("initContainers")
    both = [_mapping(each) for each in (workflow.get("podMetadata"), template.get("metadata"))]
    metadata = {
        marks: {key: value for each in both for key, value in _mapping(each.get(marks)).items()}
        for marks in ("labels", "annotations")
    }
    return {"metadata": metadata, "spec": spec}


# --- JSON of anybody --------------------------------------------------------------------------------------------------


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
