"""Stories: clusters, pods and the answers they must get, as YAML (`cases/README.md` is the notation).

This room reads and rewrites the files and works out what a cluster looks like; `test_cases` tells it to the code.
Nothing here decides anything: it stores, patches and hands out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from app.presubmit.yaml_reader import read_yaml

Json = dict[str, Any]
Cluster = Mapping[str, Json]
"""Objects by `Kind/name`."""

CASES = Path(__file__).parent / "cases"
BASELINES = sorted(CASES.glob("baselines*.yaml"))

_CHANGE = {"apply", "patch", "delete"}
_STORY = {"story", "why", "given", "settings", "history", "read", "pod", "request", "files", "want"}
_NEEDED = {"story", "why", "given", "want"}
_GIVEN = _CHANGE | {"baseline", "kubernetes", "started", "unlisted"}
_EVENT = _CHANGE | {"at", "lost", "listed"}
_WANT = {"allowed", "verdict", "reason", "message", "warnings"}
_FILES = {"why", "verdict", "reason"}


class BadStory(Exception):
    """A story that does not follow the notation; says which, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Story:
    """One story, and where it is written."""

    file: Path
    document: int
    fields: Json

    def __str__(self) -> str:
        """What the test is called."""
        return str(self.fields["story"])

    @property
    def given(self) -> Json:
        """The cluster, and its changes."""
        given: str | Json = self.fields["given"]
        return {"baseline": given} if isinstance(given, str) else given

    @property
    def history(self) -> list[Json]:
        """What Vacancy saw happen, oldest first."""
        history: list[Json] = self.fields.get("history", [])
        return history

    @property
    def want(self) -> Json:
        """The answer."""
        want: Json = self.fields["want"]
        return want

    def states(self) -> Iterator[tuple[Json, Cluster]]:
        """The given cluster, then the cluster after each event of the history."""
        cluster = given_cluster(self.given)
        yield self.given, cluster
        for event in self.history:
            cluster = changed(cluster, event)
            yield event, cluster

    def cluster(self) -> Cluster:
        """The cluster as it is when the pod is posted."""
        *_, (_, cluster) = self.states()
        return cluster

    def pod(self) -> Json:
        """The pod as it is posted."""
        pod: Json = merged(read_baselines()["pod"], self.fields.get("pod", {}))
        return pod


def stories() -> list[Story]:
    """Every story. Raises BadStory."""
    return [story for file in sorted(CASES.glob("*.yaml")) if file not in BASELINES for story in stories_of(file)]


def stories_of(file: Path) -> Iterator[Story]:
    """The stories of one file. Raises BadStory."""
    for index, text in enumerate(_documents(file)):
        documents = [fields for _, fields in read_yaml(text)]
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise BadStory(f"{file.name}: document {index + 1} is not one story")
        story = Story(file, index, documents[0])
        _check(story)
        yield story


def rewrite_want(story: Story, want: Json) -> None:
    """Write another answer into the story's file; the rest of it, comments included, stays as it is."""
    documents = _documents(story.file)
    head, found, _ = documents[story.document].partition("\nwant:")
    if not found:
        raise BadStory(f"{story.file.name}: {story}: no `want` at the start of a line")
    documents[story.document] = f"{head}\n{yaml.dump({'want': want}, Dumper=_Dumper, sort_keys=False, width=110)}"
    story.file.write_text("---\n".join(documents))


# --- Clusters ---------------------------------------------------------------------------------------------------------


@cache
def read_baselines() -> Json:
    """The baselines by name, and the `pod`."""
    baselines: Json = {}
    for file in BASELINES:
        ((_, named),) = read_yaml(file.read_text())
        assert isinstance(named, dict)
        assert baselines.keys().isdisjoint(named)
        baselines |= named
    return baselines


def given_cluster(given: Json) -> Cluster:
    """A baseline and what is different."""
    name = given.get("baseline")
    return changed(given_cluster(read_baselines()[name]) if name else {}, given)


def changed(cluster: Cluster, change: Json) -> Cluster:
    """The cluster after `delete`, `apply` and `patch`, in this order."""
    after = dict(cluster)
    for key in change.get("delete", []):
        del after[key]
    for obj in change.get("apply", []):
        after[f"{obj['kind']}/{obj['metadata']['name']}"] = obj
    for key, patch in change.get("patch", {}).items():
        after[key] = merged(after[key], patch)
    return after


def merged(value: Any, patch: Any) -> Any:  # noqa: ANN401  # JSON of any kind
    """JSON merge patch (RFC 7386): objects are merged, null removes, anything else (a list too) replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, part in patch.items():
        if part is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), part)
    return result


# --- Files ------------------------------------------------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    """Long sentences as folded text."""


def _sentence(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    longest_in_line = 60
    style = ">" if len(text) > longest_in_line else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _sentence)


def _documents(file: Path) -> list[str]:
    """The text of each document, comments included."""
    return file.read_text().removeprefix("---\n").split("---\n") if file.suffix == ".yaml" else []


def _check(story: Story) -> None:
    """Raise BadStory for a key that is missing or means nothing: it would be an expectation nobody checks."""
    fields = story.fields
    problems = [f"{key} is missing" for key in sorted(_NEEDED - fields.keys())]
    allowed = [("story", fields, _STORY)]
    allowed += [("given", fields["given"], _GIVEN)] if isinstance(fields.get("given"), dict) else []
    allowed += [("history", event, _EVENT) for event in fields.get("history", [])]
    allowed += [(part, fields[part], keys) for part, keys in (("want", _WANT), ("files", _FILES)) if part in fields]
    problems += [f"{part} has no {key}" for part, given, keys in allowed for key in sorted(given.keys() - keys)]
    if problems:
        raise BadStory(f"{story.file.name}: {fields.get('story', story.document + 1)}: {'; '.join(problems)}")
