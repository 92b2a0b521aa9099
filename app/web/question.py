"""What a submitted text asks, and the answer for each of its pods.

Shared by `POST /api/v1/check` and `vacancy check` on files, so nothing that only a server needs comes in here.
"""

from dataclasses import dataclass

from app.dra.demand import Lookups, undeclared
from app.dra.explain import Audience
from app.dra.judgement import World, judge
from app.dra.reasons import Reason
from app.dra.verdict import Outcome, Verdict
from app.presubmit.asked import Asked, asked
from app.presubmit.manifest import Document
from app.presubmit.overlay import Overlay, overlay
from app.presubmit.report import Check, check


@dataclass(frozen=True, slots=True)
class Question:
    """The pods, and what comes with them."""

    pods: tuple[Asked, ...]
    given: Overlay
    """Claims and templates in the text count as existing."""


def question(documents: tuple[Document, ...], namespace: str) -> Question:
    """The question of a text's documents. Raises ManifestError."""
    return Question(asked(documents, namespace), overlay(documents, namespace))


def answer(pod: Asked, lookups: Lookups, world: World, audience: Audience, now: float) -> Check:
    """The answer for one pod; a bug of ours makes it unknown, and costs no other pod its answer."""
    names: tuple[str, ...] = ()
    try:
        verdict = judge(pod.pod, pod.namespace, lookups, world, now)
        if verdict.reason is Reason.NoDeviceRequested:
            names = undeclared(pod.pod, world.witness, now)
    except Exception:  # noqa: BLE001 - as at the webhook: what went wrong here is no verdict on the pod
        verdict = Verdict(Outcome.UNKNOWN, Reason.InternalError)
    return check(pod, verdict, audience, now, names)
