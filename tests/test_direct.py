"""The commands with `--direct`, and an API server that does not hurry."""

import asyncio
import json
import sys
from pathlib import Path

from tests.apiserver import ApiServer
from tests.apiserver_parts import Fault

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c"}], "resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]},
}


def test_a_person_waits_longer_for_a_claim_than_a_review_may(tmp_path: Path) -> None:
    async def checked() -> bytes:
        async with ApiServer() as server:
            path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/mine"
            server.fault(Fault(delay_seconds=0.6), path=path, times=None)
            command = (sys.executable, "-m", "app", "check", "-f", "-", "-o", "json", "--direct")
            asking = await asyncio.create_subprocess_exec(
                *command, "--kubeconfig", str(server.kubeconfig(tmp_path)), stdin=-1, stdout=-1
            )
            return (await asking.communicate(json.dumps(POD).encode()))[0]

    assert [each["reason"] for each in json.loads(asyncio.run(checked()))["checks"]] == ["ClaimMissing"]
