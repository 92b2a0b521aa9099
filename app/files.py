"""Answers from files that stand in for a cluster, judged in this process."""

import logging
from pathlib import Path

from app.cluster.manifests import ManifestError, lookups
from app.dra.capacity import capacity
from app.dra.demand import claim_references
from app.dra.meaning import meaning
from app.embedded import Embedded
from app.parts import clock, judgement_policy, readers
from app.presubmit.manifest import Document
from app.presubmit.report import Report
from app.settings import Settings
from app.unanswered import NoAnswer, Unusable
from app.web.capacity import CapacityReport, capacity_report
from app.web.explain import MeaningReport, meaning_report
from app.web.question import answer, question

logging.getLogger("app").addHandler(logging.NullHandler())  # what is amiss is said by the answer, and once


class Files:
    """See `answers.Answers`."""

    namespace = "default"

    def __init__(self, manifests: Path, settings: Settings) -> None:
        """Raises Unusable."""
        self._now, self._readers = clock(settings), readers(settings)
        try:
            self._embedded = Embedded(manifests, judgement_policy(settings), self._now)
        except ManifestError as error:
            raise Unusable(str(error)) from error

    def close(self) -> None:
        """Files are read and closed."""

    def check(self, documents: tuple[Document, ...], namespace: str) -> Report:
        """See `answers.Answers`."""
        try:
            asking = question(documents, namespace)
        except ManifestError as error:
            raise Unusable(str(error)) from error
        world, now = self._embedded.latest.get(), self._now()
        checks = []
        for pod in asking.pods:
            found = lookups(self._embedded.manifests, pod.namespace, claim_references(pod.pod))
            checks.append(answer(pod, asking.given.over(pod.namespace, found), world, self._readers, now))
        return Report(tuple(checks))

    def capacity(self) -> CapacityReport:
        """See `answers.Answers`."""
        self._embedded.look()
        if self._embedded.problem:
            raise NoAnswer(self._embedded.problem)
        return capacity_report(capacity(self._embedded.latest.get(), self._now()), hide_names=self._readers.hide_names)

    def meaning(self, name: str) -> MeaningReport:
        """See `answers.Answers`."""
        return meaning_report(
            meaning(name, self._embedded.latest.get(), self._now()), hide_names=self._readers.hide_names
        )
