"""A large cluster in a real API server: `make scale-test`.

10,000 slices of 8 devices and 20,000 claims that hold one device each are written into a control plane of its own; then
the whole of `vacancy serve` reads them, and measures itself. API server, etcd, controller manager and
Vacancy share the machine, so that times are long rather than short.
"""

import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from app.cluster.rights import ROLES
from certs.serving import throwaway_pair
from tests.controlplane.client import Json
from tests.controlplane.credentials import Credentials
from tests.controlplane.plane import ControlPlane
from tests.live.serving import account

SLICES, DEVICES_PER_SLICE, CLAIMS = 10_000, 8, 20_000
WRITERS = 48
DRIVER = "gpu.example.com"
DRA = "/apis/resource.k8s.io/v1"


def main() -> None:
    """Fill, read, measure, print."""
    with tempfile.TemporaryDirectory(prefix="vacancy-scale-") as directory:
        folder = Path(directory)
        with ControlPlane(folder / "plane", scheduler=False) as plane:
            began = time.perf_counter()
            asyncio.run(_fill(plane.server, Credentials(folder / "plane" / "credentials")))
            print(
                f"written in {time.perf_counter() - began:.0f} s: {SLICES:,} slices of {DEVICES_PER_SLICE} devices,"
                f" {CLAIMS:,} claims\n"
            )
            kubeconfig = account(plane, "scale", ROLES)
            auto, witness = (_measured(source, kubeconfig, folder / source) for source in ("auto", "witness"))
    rows = (
        ("first lists read and watches current", auto["read_seconds"], "s", ""),
        ("the class counted: the first refusal is possible", auto["counted_seconds"], "s", ""),
        ("memory before anything is read (RSS)", auto["before_mb"], "MB", ""),
        ("memory at most while reading (RSS)", auto["reading_mb"], "MB", "<= 200"),
        ("memory afterwards (RSS)", auto["after_mb"], "MB", "<= 150"),
        ("longest hold of the event loop in the first quarter second", auto["held_starting_ms"], "ms", ""),
        ("longest hold of the event loop while reading, our own work", auto["held_ms"], "ms", "<= 10"),
        ("  the same with what the machine did meanwhile", auto["waited_ms"], "ms", ""),
        ("longest hold of the event loop afterwards, our own work", auto["held_after_ms"], "ms", "<= 10"),
        ("received while nothing changes, a minute, source auto", auto["quiet_kb"], "kB", ""),
        ("  the same with source witness: no pool statuses", witness["quiet_kb"], "kB", "near 0"),
    )
    for name, figure, unit, target in rows:
        print(f"{name:<64}{figure:>10.1f} {unit:<3}{target}")


# --- Filling ----------------------------------------------------------------------------------------------------------


async def _fill(server: str, credentials: Credentials) -> None:
    connector = aiohttp.TCPConnector(ssl=credentials.client_context(), limit=WRITERS)
    async with aiohttp.ClientSession(server, connector=connector) as session:
        await _write(session, _classes_and_slices())
        await _write(session, _claims())


async def _write(session: aiohttp.ClientSession, objects: Iterator[tuple[str, Json, Json | None]]) -> None:
    """Create each object and then write its status, if it has one; many at once."""

    async def writer() -> None:
        for path, body, status in objects:
            async with session.post(path, json=body) as answer:
                answer.raise_for_status()
                await answer.read()
            if status is not None:
                where = f"{path}/{body['metadata']['name']}/status"
                headers = {"Content-Type": "application/merge-patch+json"}
                async with session.patch(where, data=json.dumps({"status": status}), headers=headers) as answer:
                    answer.raise_for_status()
                    await answer.read()

    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(writer())


def _classes_and_slices() -> Iterator[tuple[str, Json, Json | None]]:
    spec: Json = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    yield f"{DRA}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": spec}, None
    for number in range(SLICES):
        name = f"node-{number:05}"
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [_device(number, index) for index in range(DEVICES_PER_SLICE)]
        body = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        yield f"{DRA}/resourceslices", {"metadata": {"name": name}, "spec": body}, None


def _device(number: int, index: int) -> Json:
    """With what a GPU driver publishes; no two are alike, because each has its UUID."""
    strings = {
        "architecture": "Hopper",
        "brand": "Nvidia",
        "productName": "NVIDIA H100 80GB HBM3",
        "type": "gpu",
        "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{number}/{index}')}",
        "pcieRoot": f"pci0000:{index:02x}",
    }
    versions = {"cudaComputeCapability": "9.0.0", "cudaDriverVersion": "12.8.0", "driverVersion": "570.86.15"}
    attributes = {name: {"string": value} for name, value in strings.items()}
    attributes |= {name: {"version": value} for name, value in versions.items()}
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": "81559Mi"}}}


def _claims() -> Iterator[tuple[str, Json, Json | None]]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    holder = {"apiGroup": "example.com", "resource": "jobs", "name": "holder", "uid": "holder"}
    devices = itertools.product(range(SLICES), range(DEVICES_PER_SLICE))
    for number, (pool, device) in enumerate(itertools.islice(devices, CLAIMS)):
        result = {"request": "gpu", "driver": DRIVER, "pool": f"node-{pool:05}", "device": f"gpu-{device}"}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [holder]}
        body = {"metadata": {"name": f"claim-{number:05}"}, "spec": {"devices": {"requests": [request]}}}
        yield f"{DRA}/namespaces/default/resourceclaims", body, status


# --- Measuring --------------------------------------------------------------------------------------------------------


def _measured(source: str, kubeconfig: Path, folder: Path) -> dict[str, float]:
    """What a server of its own measures of itself, see `loadtest.measured`."""
    throwaway_pair(["localhost"], ["127.0.0.1"], time.time()).write(folder)
    command = [sys.executable, "-m", "loadtest.measured", source, str(kubeconfig), str(folder)]
    output = subprocess.run(  # noqa: S603 - our own command
        command, check=True, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1], text=True
    ).stdout
    figures: dict[str, float] = json.loads(output.splitlines()[-1])
    return figures


if __name__ == "__main__":
    main()
