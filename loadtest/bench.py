"""The figures of docs/performance.md: `make bench`.

Plain calls in one process on one core; every figure is the best of several rounds, for what disturbs a measurement on a
shared machine only ever adds time. Starting is measured from outside, on the real command.
"""

import asyncio
import gc
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from app.admission.admit import Rules, admit
from app.admission.review import decode_review, encode_response
from app.dra.demand import Ask, ClaimReferences, Lookups
from app.dra.judgement import Policy, Source, World, judge
from app.dra.snapshot import build_snapshot
from app.dra.witness import Kind, Witness
from app.metrics import DoorCounts
from app.web.admit import AdmissionDoor
from app.web.probes import Probes
from app.web.view import View
from tests.builders import (
    DRIVER,
    GPU,
    NOON,
    device,
    device_class,
    node,
    pod_manifest,
    pod_record,
    pool_counts,
    pool_status,
    resource_claim,
    resource_slice,
    review_body,
)
from tests.web.many import a_page, a_table, many_classes

ROUNDS = 7
DEVICES_PER_SLICE = 8
PAGE = 100


def main() -> None:
    """Measure everything and print one table."""
    print(f"machine: {machine()}\n\n| what | measured | target |\n|---|---|---|")
    for name, figure, unit, target in (*handler(), *_witness(), *_page(), *_start()):
        print(f"| {name} | {figure:.1f} {unit} | {target} |")


# --- The handler: bytes of an AdmissionReview in, bytes of the answer out ---------------------------------------------


def handler() -> Iterator[tuple[str, float, str, str]]:
    """What one review costs, without and with the ASGI door."""
    full, free = _world(1000, held=DEVICES_PER_SLICE), _world(1000, held=DEVICES_PER_SLICE - 1)
    nothing = _review({"cpu": "1"})
    device_review = _review({GPU: "1"})
    size = len(device_review)
    for what, world, body in (
        ("no device asked for", full, nothing),
        ("free", free, device_review),
        ("full: refused", full, device_review),
    ):
        review = f"review of {size / 1000:.1f} kB, 1,000 slices, {what}"
        yield f"{review}: decode, judge, encode", _judged(world, body), "us", "<= 15"
        yield f"{review}: through the ASGI door", _per_review(world, body), "us", ""
    tenfold = _world(10_000, held=DEVICES_PER_SLICE - 1)
    review = f"review of {size / 1000:.1f} kB, 10,000 slices, free"
    yield f"{review}: decode, judge, encode", _judged(tenfold, device_review), "us", ""


def _judged(world: World, body: bytes) -> float:
    """Microseconds of the functions behind the door for one review."""
    rules, lookups = Rules(), Lookups({}, {})

    def reviews() -> None:
        for _ in range(1000):
            request = decode_review(body)
            assert request.pod is not None
            decision = admit(request, judge(request.pod, "default", lookups, world, NOON), rules, NOON)
            encode_response(
                request.uid,
                allowed=decision.allowed,
                status=decision.status,
                warnings=decision.warnings,
                audit_annotations=decision.audit_annotations,
            )

    return _best(reviews) / 1000 * 1e6


class _NoReader:
    async def lookups(self, namespace: str, references: ClaimReferences) -> Lookups:  # noqa: ARG002 - never asked
        return Lookups({}, {})


def _per_review(world: World, body: bytes) -> float:
    """Microseconds of the ASGI door for one review, the server left out."""
    door = AdmissionDoor(
        rules=Rules(), world=lambda: world, reader=_NoReader(), now=lambda: NOON, counts=DoorCounts(), probes=Probes()
    )
    scope = {"path": "/validate", "method": "POST", "headers": [(b"content-type", b"application/json")]}

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, object]) -> None:
        pass

    async def reviews(count: int) -> None:
        for _ in range(count):
            await door(scope, receive, send)

    asyncio.run(reviews(500))
    return _best(lambda: asyncio.run(reviews(2000))) / 2000 * 1e6


def _review(resources: dict[str, str]) -> bytes:
    """A review of the size real ones have: environment, mounts and managed fields are most of it."""
    manifest = pod_manifest(resources)
    fields: dict[str, object] = {f"f:field-{i}": {} for i in range(80)}
    manifest["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": fields}]
    container = manifest["spec"]["containers"][0]
    container["env"] = [{"name": f"VARIABLE_{i}", "value": "some value of usual length"} for i in range(85)]
    container["volumeMounts"] = [{"name": f"volume-{i}", "mountPath": f"/mnt/{i}"} for i in range(20)]
    return review_body(manifest)


# --- The witness ------------------------------------------------------------------------------------------------------


def _witness() -> Iterator[tuple[str, float, str, str]]:
    slices, count = _slices(10_000), 10_000
    witness, longest = Witness(NOON - 3600), 0.0
    witness.apply(Kind.DEVICE_CLASSES, device_class(declares=GPU), NOON)
    began = time.perf_counter()
    for number, each in enumerate(slices):
        if number % PAGE == 0:
            gc.freeze()  # as after each page of a list: what is kept need not be looked at again
        before = time.perf_counter()
        witness.apply(Kind.RESOURCE_SLICES, each, NOON)
        longest = max(longest, time.perf_counter() - before)
    whole = time.perf_counter() - began
    yield f"{count:,} slices x {DEVICES_PER_SLICE} devices: all of them", whole * 1e3, "ms", ""
    yield f"{count:,} slices x {DEVICES_PER_SLICE} devices: longest step", longest * 1e3, "ms", "<= 5"
    before = time.perf_counter()
    witness.tally(Ask("gpu"))
    yield "a new ask that all 80,000 devices match: first answer", (time.perf_counter() - before) * 1e3, "ms", "<= 5"
    while witness.tallies.work(500):
        pass
    yield "a new ask that all 80,000 devices match: counted", (time.perf_counter() - before) * 1e3, "ms", ""
    claims = [resource_claim("gpu-0", pool=f"pool-{i}", name=f"c{i}", consumers=["p1"]) for i in range(2000)]

    def events() -> None:
        for claim in claims:
            witness.apply(Kind.RESOURCE_CLAIMS, claim, NOON)
        for claim in claims:
            witness.remove(Kind.RESOURCE_CLAIMS, claim.metadata.namespace, claim.metadata.name, NOON)

    yield "a claim event with 10,000 slices", _best(events) / (2 * len(claims)) * 1e6, "us", "<= 50"
    changed = _slices(500)

    def slice_events() -> None:
        for each in changed:
            witness.apply(Kind.RESOURCE_SLICES, each, NOON)

    yield "a slice event with 10,000 slices", _best(slice_events) / len(changed) * 1e6, "us", ""
    gc.unfreeze()


def _slices(count: int) -> list[object]:
    """Slices as drivers publish them: every device has a UUID of its own."""
    return [
        resource_slice(
            [
                device(f"gpu-{j}", memory="80Gi", attributes={"model": "A100", "uuid": f"GPU-{i:08x}-{j}"})
                for j in range(DEVICES_PER_SLICE)
            ],
            pool=f"pool-{i}",
        )
        for i in range(count)
    ]


def _world(pools: int, held: int) -> World:
    """A cluster of node-local pools, `held` devices of each in use, and a status that agrees."""
    witness = Witness(NOON - 3600)
    witness.apply(Kind.DEVICE_CLASSES, device_class(declares=GPU), NOON - 600)
    for each in _slices(pools):
        witness.apply(Kind.RESOURCE_SLICES, each, NOON - 600)  # type: ignore[arg-type]  # a list of slices
    witness.apply(Kind.PODS, pod_record(), NOON - 600)
    for i in range(pools):
        witness.apply(Kind.NODES, node(f"pool-{i}"), NOON - 600)
        names = [f"gpu-{j}" for j in range(held)]
        claim = resource_claim(*names, pool=f"pool-{i}", name=f"c{i}", consumers=["p1"], at=NOON - 600)
        witness.apply(Kind.RESOURCE_CLAIMS, claim, NOON - 600)
    for kind in Kind:
        witness.synced(kind, NOON - 600)
    witness.tally(Ask("gpu"))
    while witness.tallies.work(1000):
        pass
    counts = [pool_counts(f"pool-{i}", total=DEVICES_PER_SLICE, allocated=held) for i in range(pools)]
    status = pool_status(*counts, driver=DRIVER, at=NOON - 20)
    return World(witness, build_snapshot([status], received_at=NOON - 20), Policy(source=Source.AUTO))


# --- The capacity page ------------------------------------------------------------------------------------------------


def _page() -> Iterator[tuple[str, float, str, str]]:
    for count, time_wanted, size_wanted in ((50, "", "<= 60"), (500, "<= 100", "")):
        classes = many_classes(count, 10)
        table, page = a_table(classes), a_page(classes)
        times = []
        for number in range(ROUNDS):
            began = time.process_time()  # it pauses for reviews
            made = asyncio.run(page.get(table, f"round {number}", {}, View()))
            times.append(time.process_time() - began)
        what = f"capacity page, {count} classes and {10 * count:,} pools"
        yield f"{what}: made and packed", min(times) * 1e3, "ms", time_wanted
        yield f"{what}: size", sum(map(len, made.plain)) / 1e3, "kB", size_wanted
        yield f"{what}: packed size", sum(map(len, made.packed)) / 1e3, "kB", ""


# --- Starting ---------------------------------------------------------------------------------------------------------


def _start() -> Iterator[tuple[str, float, str, str]]:
    times, memory = zip(*(started() for _ in range(ROUNDS)), strict=True)
    yield "start to ready with the example", min(times) * 1e3, "ms", "<= 600"
    yield "resident memory with the example", min(memory), "MiB", "<= 65"


def started() -> tuple[float, float]:
    """Seconds until `vacancy serve` is ready, and mebibytes it then has."""
    command = [sys.executable, "-m", "app", "serve", "--manifests", "examples/cluster", "--now", "2026-01-01T12:00:00Z"]
    web = f"127.0.0.1:{_free_port()}"
    command += ["--listen", "127.0.0.1:0", "--web-listen", web, "--log-level", "error"]
    began = time.perf_counter()
    with subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=Path(__file__).parents[1], stdout=subprocess.DEVNULL
    ) as server:
        try:
            while not _ready(f"http://{web}/readyz"):
                if server.poll() is not None or time.perf_counter() - began > 30:  # noqa: PLR2004
                    sys.exit("the server did not get ready")
                time.sleep(0.005)
            took = time.perf_counter() - began
            status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
        finally:
            for _ in range(2):
                server.send_signal(signal.SIGTERM)
                time.sleep(0.05)
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    return took, int(resident[1]) / 1024 if resident else 0.0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as response:  # noqa: S310 - our own address
            return bool(response.status == 200)  # noqa: PLR2004
    except OSError:
        return False


def _best(work: Callable[[], None]) -> float:
    """Seconds of the fastest of several rounds."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def machine() -> str:
    """What the figures were measured on."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    cpu = model[1] if model else platform.machine()
    return f"{os.cpu_count()} x {cpu}, Python {platform.python_version()}, {platform.system()} {platform.release()}"


if __name__ == "__main__":
    main()
