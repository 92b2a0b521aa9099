"""A folder of manifests in the place of a cluster: read whole, and whole again when a file has changed."""

import json
import logging
import shlex
from collections.abc import Callable
from pathlib import Path

from app import mistakes
from app.cluster.manifests import ManifestError, Manifests, Stamp, feed, lookups, read_manifests, stamp
from app.dra.capacity import capacity
from app.dra.classes import IMPLICIT_PREFIX
from app.dra.demand import ClaimReferences, Lookups
from app.dra.judgement import Policy, World
from app.dra.meaning import meaning
from app.dra.verdict import Outcome
from app.dra.witness import Witness
from app.latest_snapshot import LatestSnapshot

_log = logging.getLogger(__name__)


class Embedded:
    """The files under `path`, judged by at `now`. Raises `ManifestError` where they cannot be read.

    Every reading builds a live view of its own: files have no history, so an answer must not depend on what was in them
    before.
    """

    def __init__(self, path: Path, policy: Policy, now: Callable[[], float], *, count_ahead: bool = False) -> None:
        self._path, self._policy, self._now = path, policy, now
        self._count_ahead = count_ahead
        """Count every class at once, not when it is first asked for: a server's first review has no time for it."""
        self._seen: Stamp | None = stamp(path)
        self.manifests, world = self._read()
        self.latest = LatestSnapshot(world)
        self.problem = ""
        """Why the files as they are now are not what is judged by; empty where they are."""

    async def lookups(self, namespace: str, references: ClaimReferences) -> Lookups:
        """The claims and templates a pod names, in the form the doors ask for."""
        return lookups(self.manifests, namespace, references)

    def look(self) -> None:
        """Read again if the files have changed; what cannot be read leaves the last good reading in place.

        May be called in a thread, and should be: a large dump takes seconds to parse.
        """
        before, self._seen = self._seen, None
        try:
            self._seen = stamp(self._path)
            if self._seen == before:
                return
            manifests, world = self._read()
        except Exception as error:  # noqa: BLE001 - also a mistake of ours must not end a server that can go on
            problem = str(error) if isinstance(error, ManifestError) else f"unexpected {mistakes.place(error)}"
            if problem != self.problem:
                self.problem = problem
                facts = {"problem": problem}
                _log.warning("manifests cannot be read, the last good ones stay", extra={"facts": facts})
            return
        self.manifests = manifests
        self.latest.publish(world)
        self.problem = ""
        _log.info("manifests read again")

    def _read(self) -> tuple[Manifests, World]:
        manifests = read_manifests(self._path)
        now = self._now()
        witness = Witness(now)
        snapshot = feed(manifests, witness, now)
        world = World(witness, snapshot, self._policy)
        if self._count_ahead:
            capacity(world, now)
        return manifests, world


def refused_name(world: World, now: float) -> str:
    """A name of which one device is refused now; where there is none, any name."""
    name = "example.com/gpu"
    for each in capacity(world, now).classes:
        name = each.extended_resource_name or IMPLICIT_PREFIX + each.name
        need = meaning(name, world, now).verdict
        if need is not None and need.outcome is Outcome.FULL:
            break
    return name


def what_to_try(name: str, tls_folder: Path, webhook: str, web: str) -> str:
    """Lines for a person who has just started a server on files: its page, and a review to post."""
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "operation": "CREATE",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "default",
            "object": {"spec": {"containers": [{"name": "c", "resources": {"limits": {name: "1"}}}]}},
        },
    }
    post = ["curl", "--cacert", f"{tls_folder}/ca.crt", "-H", "content-type: application/json"]
    post += ["-d", json.dumps(review), f"https://{_local(webhook)}/validate"]
    return f"page:   http://{_local(web)}/\nreview: {shlex.join(post)}\n"


def _local(address: str) -> str:
    """How this machine reaches a listener."""
    host, _, port = address.rpartition(":")
    return f"localhost:{port}" if host in {"0.0.0.0", "[::]"} else address  # noqa: S104 - compared, not bound
