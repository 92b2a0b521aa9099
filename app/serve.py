"""The composition root: settings become parts, the parts run in one task group, and stop in order.

On SIGTERM readiness fails at once, so that endpoints move, and every answer asks the client to close its connection,
because the API server goes on using the ones it has. After a delay the listeners close and what is under way ends: no
call is lost. A second signal skips the delay.
"""

import asyncio
import contextlib
import dataclasses
import gc
import logging
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import uvloop

from app import signing
from app.cluster.manifests import ManifestError
from app.dra.capacity import class_capacities
from app.dra.meaning import meaning_in_steps
from app.dra.wake import WakeQueue
from app.embedded import Embedded, refused_name, what_to_try
from app.listeners import Listener, ShortHead, bound_socket
from app.logs import configure_logging
from app.metrics import CertificateCounts, DoorCounts, Metrics
from app.parts import clock, judgement_policy, readers, rules
from app.prompt import Prompt, Reception
from app.settings import Address, BadSettings, Reading, Settings
from app.tls.reload import CertificateFolder
from app.tls.serving import ServingCertificate, UnusableCertificate
from app.version import version
from app.web.admit import SECOND_LOOK_SECONDS, AdmissionDoor
from app.web.application import Answers, create_application
from app.web.check import Checker
from app.web.history import History
from app.web.probes import Probes
from app.web.table import CapacityTable

if TYPE_CHECKING:
    from app.cluster.wake import Waker
    from app.live import Live
    from app.self_managed import Timing

DRAIN_SECONDS = 10.0
"""Between the signal and the closing of the listeners; endpoints and connections have moved by then."""

MANIFEST_SECONDS = 2.0
"""Between two looks at the manifests: soon enough for a person who waits for the effect of a change."""

_log = logging.getLogger(__name__)


class Certificates(Protocol):
    """Where the certificate comes from: a folder, or a Secret of our own."""

    serving: ServingCertificate

    async def follow(self) -> NoReturn:
        """Keep it current."""

    def missing(self) -> str:
        """What readiness lacks."""

    def counts(self) -> CertificateCounts:
        """What a scrape is told."""


def run(reading: Reading, timing: "Timing | None" = None) -> int:
    """Serve until told to stop; return the exit code. Raises BadSettings with all that keeps it from starting.

    `timing`: of our own certificates, where it is not the usual one.
    """
    # What can be read may have problems of its own: they are told too, and a default in its place must not have any.
    unread = dict.fromkeys(reading.unread & {"listen", "web_listen"}, Address("127.0.0.1", 0))
    settings = dataclasses.replace(reading.settings, **unread)  # type: ignore[arg-type]  # both are addresses
    configure_logging(as_json=settings.log_format == "json", level=settings.log_level)
    with contextlib.ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        problems = list(reading.problems)
        cluster = runner.run(open_cluster(settings, problems))
        runner.run(Server(settings, cluster, stack, problems=problems, timing=timing).run())
    return 0


class Server:
    """All parts of `vacancy serve`. What they hold of the outside is released by `stack`. Raises BadSettings."""

    def __init__(  # noqa: PLR0913 - parts are handed in
        self,
        settings: Settings,
        cluster: "Embedded | Live | None",
        stack: contextlib.ExitStack,
        *,
        drain_seconds: float = DRAIN_SECONDS,
        problems: Sequence[str] = (),
        timing: "Timing | None" = None,
    ) -> None:
        """`cluster`: what `open_cluster` gave, `problems`: what has been noted before, `timing`: see `run`."""
        now = clock(settings)
        problems = list(problems)
        webhook_socket = _socket(settings, "listen", stack, problems)
        web_socket = _socket(settings, "web-listen", stack, problems)
        self._trial_folder = _throw_away_pair(settings, stack, problems)
        certificates = _certificates(settings, cluster, self._trial_folder, timing, problems)
        if problems or not (webhook_socket and web_socket and certificates and cluster):
            raise BadSettings(tuple(problems))
        world = cluster.latest.get
        counts, self.probes = DoorCounts(), Probes()
        self._wake = WakeQueue() if settings.wake and not isinstance(cluster, Embedded) else None
        self._waker = _waker(cluster, self._wake, now)
        door = AdmissionDoor(
            rules=rules(settings),
            world=world,
            reader=cluster,
            now=now,
            counts=counts,
            probes=self.probes,
            wake=self._wake,
            second_look_seconds=0.0 if isinstance(cluster, Embedded) else SECOND_LOOK_SECONDS,
        )
        metrics = Metrics(
            version=version(),
            counts=counts,
            world=world,
            now=now,
            certificates=certificates.counts,
            river=None if isinstance(cluster, Embedded) else cluster.counts,
            wake=self._wake,
        )
        self._table = CapacityTable(class_capacities, world=world, now=now, hide_names=settings.hide_names)
        self._history = History()
        web = create_application(
            Answers(
                table=self._table,
                meaning=lambda name: meaning_in_steps(name, world(), now()),
                check=Checker(
                    world=world,
                    reader=cluster if isinstance(cluster, Embedded) else cluster.claims_of_checks,
                    now=now,
                    audience=readers(settings),
                ),
                metrics=metrics.text,
                notice=lambda: cluster.problem,
                switches=lambda: {} if isinstance(cluster, Embedded) else cluster.switches() | {"wake": self._waking},
                probes=self.probes,
                hide_names=settings.hide_names,
                version=version(),
                history=self._history,
            )
        )
        self.webhook = Listener(
            door, webhook_socket, certificates.serving.server_context, http=partial(Prompt, Reception(door.at_once))
        )
        self.web = Listener(web, web_socket, http=ShortHead)
        self.probes.checks = {
            "certificate": certificates.missing,
            "listener": lambda: "" if self.webhook.listening.is_set() else "not listening yet",
            "cluster": (lambda: "") if isinstance(cluster, Embedded) else cluster.missing,
        }
        self._certificates, self._cluster, self._drain_seconds = certificates, cluster, drain_seconds
        self._now = now
        self._told, self._told_again = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Serve until `stop` is called or a signal comes; returns when both listeners are closed."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, uvloop.Loop):  # asyncio's own does half the work per second (measured)
            raise TypeError(f"expected the event loop of uvloop, found {type(loop)}")
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        async with asyncio.TaskGroup() as group:
            for_ever = (
                self._certificates.follow(),
                self._follow_cluster(),
                self._wake_owners(),
                self._history.follow(self._table),
            )
            endless = [group.create_task(each) for each in for_ever]
            servers = [group.create_task(each.run_until_stopped()) for each in (self.webhook, self.web)]
            group.create_task(self._say_when_ready())
            await self._drained()
            await asyncio.gather(*servers)
            for task in endless:
                task.cancel()
        if not isinstance(self._cluster, Embedded):
            await self._cluster.close()
        _log.info("stopped")

    def stop(self) -> None:
        """Stop in order; called again, stop at once."""
        (self._told_again if self._told.is_set() else self._told).set()

    async def _drained(self) -> None:
        await self._told.wait()
        self.probes.draining = True
        _log.info("told to stop, draining", extra={"facts": {"seconds": self._drain_seconds}})
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._told_again.wait(), self._drain_seconds)
        for listener in (self.webhook, self.web):
            listener.stop(at_once=self._told_again.is_set())

    async def _say_when_ready(self) -> None:
        for listener in (self.webhook, self.web):
            await listener.listening.wait()
        # What start-up made lives as long as the process: no collection need look at it again. None is made now, for
        # it would hold the loop for 40 ms while a cluster is read (measured).
        gc.freeze()
        _log.info("ready", extra={"facts": {"webhook": self.webhook.address, "web": self.web.address}})
        if self._trial_folder is not None:
            name = refused_name(self._cluster.latest.get(), self._now())
            sys.stderr.write(what_to_try(name, self._trial_folder, self.webhook.address, self.web.address))

    async def _wake_owners(self) -> None:
        """Wake owners of refused pods, where that is wanted."""
        if self._waker is not None:
            await self._waker.run()

    @property
    def _waking(self) -> str:
        """Whether owners are woken, as `Live.switches` says it."""
        if self._waker is None:
            return "off"
        return "on" if self._waker.allowed else "missing"

    async def _follow_cluster(self) -> None:
        if not isinstance(self._cluster, Embedded):
            await self._cluster.follow()
        while True:
            await asyncio.sleep(MANIFEST_SECONDS)
            await asyncio.to_thread(self._cluster.look)


def _waker(cluster: "Embedded | Live", queue: WakeQueue | None, now: Callable[[], float]) -> "Waker | None":
    if queue is None or isinstance(cluster, Embedded):
        return None
    from app.cluster.wake import Waker  # noqa: PLC0415 - what files do not need

    return Waker(cluster.client, queue, cluster.latest.get, now)


# --- What comes from outside; each problem is noted, so that all are reported at once ---------------------------------


def _socket(settings: Settings, name: str, stack: contextlib.ExitStack, problems: list[str]) -> socket.socket | None:
    address = settings.listen if name == "listen" else settings.web_listen
    try:
        return stack.enter_context(bound_socket(address))
    except OSError as error:
        problems.append(f"--{name}={address}: {error.strerror or error}")
        return None


async def open_cluster(settings: Settings, problems: list[str]) -> "Embedded | Live | None":
    """The files or the cluster to judge by; None where there is a problem, which is noted."""
    if settings.manifests is not None:
        return _embedded(settings.manifests, settings, problems)
    from app.cluster.client import BadConfig  # noqa: PLC0415 - 14 MB and 0.2 s that files do not need
    from app.live import Live  # noqa: PLC0415 - the same

    policy, now = judgement_policy(settings), clock(settings)
    try:
        return await Live.connect(
            settings.kubeconfig,
            settings.context or None,
            policy,
            now,
            refresh_seconds=settings.refresh_seconds,
            withheld=settings.withheld,
        )
    except BadConfig as error:
        problems.append(f"no cluster: {error}; or expected --manifests PATH")
        return None


def _embedded(manifests: Path, settings: Settings, problems: list[str]) -> Embedded | None:
    try:
        embedded = Embedded(manifests, judgement_policy(settings), clock(settings), count_ahead=True)
    except ManifestError as error:
        problems.extend(str(error).splitlines())
        return None
    if embedded.manifests.skipped:
        _log.info("manifests of no concern skipped", extra={"facts": dict(embedded.manifests.skipped)})
    return embedded


def _throw_away_pair(settings: Settings, stack: contextlib.ExitStack, problems: list[str]) -> Path | None:
    """A folder with a new certificate for this machine, gone when `stack` is closed; None: not wanted, or a problem."""
    if settings.tls_dir is not None or settings.tls_secret is not None:
        return None
    if settings.manifests is None:
        problems.append("--tls-dir: expected a folder with tls.crt and tls.key, or --tls-secret NAMESPACE/NAME")
        return None
    try:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="vacancy-"))
        # In a process of its own: the library that signs would stay in memory (8 MB) for one signature.
        names = ("--dns", "localhost", "--ip", "127.0.0.1", "::1")
        command = [sys.executable, "-P", "-m", "certs", "--dir", folder, *names]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=signing.environment())  # noqa: S603 - our own words
    except (subprocess.CalledProcessError, OSError) as error:
        problems.append(f"--tls-dir: left out, and no throw-away certificate could be made: {error}")
        return None
    _log.info("made a throw-away certificate", extra={"facts": {"ca": f"{folder}/ca.crt"}})
    return Path(folder)


def _certificates(
    settings: Settings,
    cluster: "Embedded | Live | None",
    trial_folder: Path | None,
    timing: "Timing | None",
    problems: list[str],
) -> Certificates | None:
    if settings.tls_secret is not None:
        return _self_managed(settings, cluster, timing, problems)
    folder = settings.tls_dir or trial_folder
    if folder is None:
        return None
    try:
        return CertificateFolder(folder)
    except UnusableCertificate as error:
        problems.append(f"--tls-dir: {error}")
        return None


def _self_managed(
    settings: Settings, cluster: "Embedded | Live | None", timing: "Timing | None", problems: list[str]
) -> Certificates | None:
    if settings.manifests is not None:
        problems.append(
            f"--tls-secret={settings.tls_secret} with --manifests: expected --tls-dir, files keep no Secret"
        )
    if cluster is None or isinstance(cluster, Embedded) or settings.tls_secret is None:
        return None
    from app.cluster.certificate_secret import CertificateSecret  # noqa: PLC0415 - as for `Live`
    from app.self_managed import SelfManaged  # noqa: PLC0415 - the same

    place = settings.tls_secret
    secret = CertificateSecret(cluster.client, place.namespace, place.name, settings.webhooks)
    return SelfManaged(secret, timing)
