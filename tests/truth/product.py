"""The product's judgement of a story, asked in this process, because there are a hundred thousand of them.

Once as `vacancy check --manifests` would, and, where device classes have a history, once more as a server that has
watched it: files don't show it.
"""

import json
from pathlib import Path

import msgspec

from app.cluster.manifests import Manifests, feed, lookups, read_manifests
from app.dra.demand import claim_references
from app.dra.judgement import Policy, Source, World, judge
from app.dra.objects import DeviceClass, Pod
from app.dra.verdict import Verdict
from app.dra.witness import Kind, Witness
from tests.builders import decoded
from tests.truth.comparison import Said
from tests.truth.parts import NAMESPACE
from tests.truth.stories import Story, listed

STARTED = 86_400.0
"""How long the watching server has been running, in seconds: longer than any class exists."""


def answers(story: Story, folder: Path) -> dict[str, Said]:
    """What the product says, by how it was asked: `files`, `watch`. `folder` is for the story's files."""
    file = folder / "cluster.json"
    file.write_bytes(msgspec.json.encode(listed(story.objects)))
    manifests = read_manifests(file)
    found = {}
    if not _forgotten(story):
        found["files"] = Said.of(_judged(story, manifests, Witness(story.now)), watched=False)
    if len(story.class_events) > len(list(story.of("DeviceClass"))):
        witness = Witness(story.now - STARTED)
        for event in story.class_events:
            seen = decoded(event["object"], DeviceClass)
            if event["type"] == "DELETED":
                witness.remove(Kind.DEVICE_CLASSES, "", seen.metadata.name, story.now)
            else:
                witness.apply(Kind.DEVICE_CLASSES, seen, story.now)
        found["watch"] = Said.of(_judged(story, manifests, witness), watched=True)
    return found


def _judged(story: Story, manifests: Manifests, witness: Witness) -> Verdict:
    world = World(witness, feed(manifests, witness, story.now), Policy(source=Source.AUTO))
    pod = msgspec.json.decode(json.dumps(story.pod), type=Pod)
    return judge(pod, NAMESPACE, lookups(manifests, NAMESPACE, claim_references(pod)), world, story.now)


def _forgotten(story: Story) -> bool:
    """A class was deleted and made again: nothing in its object tells what it declared before."""
    names = [event["object"]["metadata"]["name"] for event in story.class_events if event["type"] == "ADDED"]
    return len(names) > len(set(names))
