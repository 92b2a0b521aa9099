"""Answers from the cluster itself, by the caller's own read rights: no server of ours is asked, nothing is created."""

import asyncio
import logging
import sys

from app.cluster.client import ApiClient, ApiError, BadConfig
from app.cluster.login import namespace
from app.dra.capacity import capacity
from app.dra.demand import claim_references
from app.dra.judgement import Source
from app.dra.meaning import meaning
from app.dra.witness import DEVICES
from app.dra.words import printable
from app.live import Live
from app.parts import clock, judgement_policy, readers
from app.presubmit.manifest import Document, ManifestError
from app.presubmit.report import Report
from app.settings import BadSettings, Settings
from app.unanswered import NoAnswer, Unusable
from app.web.capacity import CapacityReport, capacity_report
from app.web.explain import MeaningReport, meaning_report
from app.web.question import answer, question

READ_SECONDS = 30.0
"""For reading the whole cluster once. A person waits; ten thousand slices take some seconds."""

CATCH_UP_SECONDS = 0.2
"""Before an answer that is not the first: what has happened meanwhile is waiting in the watches."""

_UNREAD = "you may not list them, or the cluster does not serve them; without --direct a Vacancy server is asked"


class Direct:
    """The cluster that kubectl would talk to, read once and then followed. Raises BadSettings, NoAnswer."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._now = settings, clock(settings)
        self._readers = readers(settings)
        logging.getLogger("app").setLevel(logging.ERROR)  # what is amiss is said in one line below
        self._runner = asyncio.Runner()
        self._live = self._runner.run(self._read())
        denied = {each.kind for each in self._live.counts().watches if each.current is None}
        if unread := sorted(denied & {kind.value for kind in DEVICES}):
            self.close()
            raise NoAnswer(f"{' and '.join(unread)}: {_UNREAD}")
        if self._live.problem:
            sys.stderr.write(f"vacancy: not everything may be read: {printable(self._live.problem)}\n")

    async def _read(self) -> Live:
        settings, policy = self._settings, judgement_policy(self._settings, Source.WITNESS)
        try:
            self.namespace = namespace(settings.kubeconfig, settings.context or None)
            client = await ApiClient.connect(settings.kubeconfig, settings.context or None)
            await client.server_minor()
        except BadConfig as error:
            raise BadSettings((f"no cluster: {error}",)) from error
        except ApiError as error:
            await client.close()
            raise NoAnswer(str(error)) from error
        live = Live(client, policy, self._now, refresh_seconds=0.0)
        live.latest.get().witness.tallies.count_at_once()
        self._following = asyncio.create_task(live.follow())
        try:
            async with asyncio.timeout(READ_SECONDS):
                await live.read()
        except TimeoutError as error:
            raise NoAnswer(f"not read within {READ_SECONDS:g} s: {live.problem}") from error
        return live

    def close(self) -> None:
        """Close all connections."""
        self._following.cancel()
        self._runner.run(self._live.close())
        self._runner.close()

    def check(self, documents: tuple[Document, ...], namespace: str) -> Report:
        """See `answers.Answers`."""
        try:
            asking = question(documents, namespace)
        except ManifestError as error:
            raise Unusable(str(error)) from error

        async def checks() -> Report:
            found = []
            for pod in asking.pods:
                known = await self._live.claims_of_checks.lookups(pod.namespace, claim_references(pod.pod))
                known = asking.given.over(pod.namespace, known)
                found.append(answer(pod, known, self._live.latest.get(), self._readers, self._now()))
            return Report(tuple(found))

        return self._runner.run(checks())

    def capacity(self) -> CapacityReport:
        """See `answers.Answers`."""
        self._runner.run(asyncio.sleep(CATCH_UP_SECONDS))
        return capacity_report(capacity(self._live.latest.get(), self._now()), hide_names=self._readers.hide_names)

    def meaning(self, name: str) -> MeaningReport:
        """See `answers.Answers`."""
        return meaning_report(meaning(name, self._live.latest.get(), self._now()), hide_names=self._readers.hide_names)
