"""Every story of `cases/`: from the bytes of an AdmissionReview to those of the answer, and once more from files."""

import json
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
import yaml

from app import parts
from app.cluster.manifests import ManifestError, feed, lookups, read_manifests
from app.dra.demand import ClaimReferences, Lookup, Lookups, claim_references
from app.dra.explain import SENTENCE_LIMIT, WARNING_LIMIT, Audience
from app.dra.holders import PodRecord
from app.dra.judgement import World, judge
from app.dra.objects import (
    DeviceClass,
    DeviceTaintRule,
    Node,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from app.dra.snapshot import build_snapshot
from app.dra.vacancy import ResourcePoolStatusRequest
from app.dra.witness import Heard, Kind, Witness
from app.presubmit.asked import asked
from app.presubmit.manifest import parse
from app.presubmit.report import check
from app.settings import Settings, read_settings
from app.times import epoch_seconds
from tests.builders import decoded, review_body, timestamp
from tests.story import (
    BASELINES,
    CASES,
    BadStory,
    Cluster,
    Json,
    Story,
    read_baselines,
    rewrite_want,
    stories,
    stories_of,
)
from tests.webhook import answer

T = TypeVar("T")

NOW = epoch_seconds("2026-01-01T12:00:00Z")
STARTED = -3600.0
"""Seconds from now; when Vacancy of a story started to watch, if the story does not say."""

STORIES = stories()
TIMELESS = [story for story in STORIES if not story.history]

WATCHED: dict[str, tuple[Kind, type[Heard]]] = {
    "DeviceClass": (Kind.DEVICE_CLASSES, DeviceClass),
    "ResourceSlice": (Kind.RESOURCE_SLICES, ResourceSlice),
    "ResourceClaim": (Kind.RESOURCE_CLAIMS, ResourceClaim),
    "DeviceTaintRule": (Kind.DEVICE_TAINT_RULES, DeviceTaintRule),
    "Node": (Kind.NODES, Node),
}


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_pod_is_answered_as_the_story_wants(story: Story, request: pytest.FixtureRequest) -> None:
    words = answer_to_review(story)
    if words != story.want and request.config.getoption("--update-cases"):
        rewrite_want(story, words)
        return
    assert words == story.want, (
        f"\n{story.file.name}: {story}\n\n{yaml.safe_dump(words, sort_keys=False, width=110)}\n"
        "is the answer now. If that is right: pytest tests/test_cases.py --update-cases"
    )


@pytest.mark.parametrize("story", TIMELESS, ids=str)
def test_files_say_the_same(story: Story, tmp_path: Path) -> None:
    told = story.fields.get("files", story.want)
    expected = {key: told[key] for key in ("verdict", "reason") if key in told}
    assert answer_from_files(story, tmp_path) == expected


# --- A live cluster ---------------------------------------------------------------------------------------------------


def answer_to_review(story: Story) -> Json:
    """The answer to the AdmissionReview, in the words of `want`."""
    settings = settings_of(story)
    body = review_body(story.pod(), **story.fields.get("request", {}))
    world = watched_world(story, settings)
    content, verdict = answer(body, world, lambda _, references: read(story, references), parts.rules(settings), NOW)
    judged = {} if verdict is None else {"verdict": verdict.outcome.value, "reason": verdict.reason.value}
    return words_of(content, judged, story.pod()["metadata"]["name"])


def words_of(body: bytes, judged: Json, pod_name: str) -> Json:
    """What an answer says, once it has been found to be one the API server understands."""
    review = json.loads(body)
    response = review["response"]
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert response["uid"] == "review-1"
    annotated = {key: response.get("auditAnnotations", {}).get(key) for key in ("verdict", "reason")}
    assert annotated in (judged, {"verdict": None, "reason": None}) or not judged
    words = {"allowed": response["allowed"], **judged}
    if not response["allowed"]:
        status = response["status"]
        assert (status["code"], status["reason"], status["status"]) == (403, "Forbidden", "Failure")
        assert status["details"]["name"] == pod_name
        assert {cause["reason"] for cause in status["details"]["causes"]} == {judged["reason"]}
        assert len(status["message"]) <= SENTENCE_LIMIT
        words["message"] = status["message"]
    if warnings := response.get("warnings", []):
        assert all(len(line) <= WARNING_LIMIT and line.isascii() and line.isprintable() for line in warnings)
        words["warnings"] = warnings
    return words


def settings_of(story: Story) -> Settings:
    """The settings as flags give them; `both`, if the story does not say."""
    flags = {"source": "both", **story.fields.get("settings", {})}
    return read_settings({name: str(value) for name, value in flags.items()}, {})


def watched_world(story: Story, settings: Settings) -> World:
    """What Vacancy knows after it has listed the given cluster and heard the history, event by event."""
    at = NOW + story.given.get("started", STARTED)
    witness = Witness(at)
    witness.server_minor = int(story.given.get("kubernetes", "1.37").removeprefix("1."))
    before: Cluster = {}
    for event, after in story.states():
        at = NOW + event.get("at", at - NOW)
        tell(witness, before, after, at)
        listed = set(Kind) if not before else {Kind(name) for name in event.get("listed", [])}
        for kind in listed - {Kind(name) for name in event.get("unlisted", [])}:
            witness.synced(kind, at)
        for name in event.get("lost", []):
            witness.lost(Kind(name))
        before = after
    requests = [
        decoded(obj, ResourcePoolStatusRequest)
        for key, obj in before.items()
        if key.startswith("ResourcePoolStatusRequest/")
    ]
    return World(witness, build_snapshot(requests, received_at=NOW), parts.judgement_policy(settings))


def tell(witness: Witness, before: Cluster, after: Cluster, at: float) -> None:
    """Every object that is new, different or gone, as a watch would."""
    for key in before.keys() - after.keys():
        kind, _, name = key.partition("/")
        namespace = before[key]["metadata"].get("namespace", "")
        if kind in WATCHED:
            witness.remove(WATCHED[kind][0], namespace, name, at)
        elif kind == "Pod":
            witness.remove(Kind.PODS, namespace, name, at)
    for key, obj in after.items():
        if obj == before.get(key):
            continue
        kind = obj["kind"]
        if kind in WATCHED:
            heard, wire = WATCHED[kind]
            witness.apply(heard, decoded(obj, wire), at)
        elif kind == "Pod":
            tell_pod(witness, obj, at)


def tell_pod(witness: Witness, obj: Json, at: float) -> None:
    """A pod as the two watches of pods see it."""
    metadata = obj["metadata"]
    deleted = metadata.get("deletionTimestamp")
    deadline = epoch_seconds(deleted) if deleted else None
    record = PodRecord(metadata["uid"], metadata["namespace"], metadata["name"], deadline)
    witness.apply(Kind.PODS, record, at)
    if obj["status"]["phase"] in {"Succeeded", "Failed"}:
        witness.apply(Kind.ENDED_PODS, record, at)


def read(story: Story, references: ClaimReferences) -> Lookups:
    """The claims and templates the pod names, read from the API server."""
    told = story.fields.get("read", {})
    if told == "fails":
        return Lookups(
            dict.fromkeys(references.claims, Lookup.FAILED), dict.fromkeys(references.templates, Lookup.FAILED)
        )
    objects = {**story.cluster(), **told}

    def found(key: str, wire: type[T]) -> T | Lookup:
        return decoded(objects[key], wire) if key in objects else Lookup.MISSING

    return Lookups(
        claims={name: found(f"ResourceClaim/{name}", ResourceClaim) for name in references.claims},
        templates={
            name: found(f"ResourceClaimTemplate/{name}", ResourceClaimTemplate) for name in references.templates
        },
    )


# --- Files ------------------------------------------------------------------------------------------------------------


def answer_from_files(story: Story, folder: Path) -> Json:
    """What `check` says of the pod when the cluster is a folder of files."""
    for number, obj in enumerate(story.cluster().values()):
        (folder / f"{number:03}.json").write_bytes(msgspec.json.encode(obj))
    manifests = read_manifests(folder)
    witness = Witness(NOW)
    snapshot = feed(manifests, witness, NOW)
    policy = parts.judgement_policy(settings_of(story))
    try:
        (pod,) = asked(parse(msgspec.json.encode(story.pod()), "pod.json"), "default")
    except ManifestError:
        return {"verdict": "unreadable"}
    found = lookups(manifests, pod.namespace, claim_references(pod.pod))
    verdict = judge(pod.pod, pod.namespace, found, World(witness, snapshot, policy), NOW)
    report = check(pod, verdict, Audience(), NOW)
    return {"verdict": report.verdict, "reason": report.reason}


# --- The stories themselves -------------------------------------------------------------------------------------------

LITTLE = """# about nothing
story: a story
why: because
given: C0
want:
  allowed: false
"""

SURPLUS = {
    "a key of a story": "mood: good\n",
    "a key of an event": "history: [{at: -1, aply: []}]\n",
    "a key of the files' answer": "files: {message: no}\n",
}


@pytest.mark.parametrize("surplus", SURPLUS.values(), ids=SURPLUS)
def test_a_surplus_key_is_an_error(surplus: str, tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(surplus + LITTLE)
    with pytest.raises(BadStory, match="a story"):
        list(stories_of(file))


def test_a_missing_key_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text("story: a story\ngiven: C0\nwant: {}\n")
    with pytest.raises(BadStory, match="why is missing"):
        list(stories_of(file))


def test_updating_rewrites_the_answer_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    other = LITTLE.replace("a story", "another")
    file.write_text(f"{LITTLE}---\n{other}")
    rewrite_want(next(stories_of(file)), {"allowed": True})
    assert file.read_text() == f"{LITTLE.replace('false', 'true')}---\n{other}"


def test_no_file_of_stories_is_overlooked() -> None:
    told = {story.file for story in STORIES}
    assert set(CASES.iterdir()) == {*told, *BASELINES, CASES / "README.md"}


def test_every_baseline_is_used() -> None:
    baselines = read_baselines()
    users = [story.given for story in STORIES] + list(baselines.values())
    assert {given.get("baseline") for given in users} >= baselines.keys() - {"pod"}


def test_the_clock_is_the_one_the_baselines_name() -> None:
    assert timestamp(NOW) == "2026-01-01T12:00:00Z"
    assert timestamp(NOW) in BASELINES[-1].read_text()
