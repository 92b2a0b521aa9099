"""The ledger of an audit log that a real API server wrote about pods a real webhook admitted, refused and warned of."""

import json
import time
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from app.cli import app
from tests.controlplane.client import Json
from tests.controlplane.waiting import until
from tests.live.scene import Scene
from tests.live.serving import WEBHOOK, Vacancy

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def ledger(scene: Scene, form: str) -> str:
    found = CliRunner().invoke(app, ["ledger", str(scene.plane.audit_log), "-o", form])
    assert found.exit_code == 0, found.stderr
    return found.stdout


def of_namespace(scene: Scene) -> Json:
    """What the ledger says of a scene's namespace."""
    found = json.loads(ledger(scene, "json"))["namespaces"]
    return next((each for each in found if each["namespace"] == scene.name), {"pods": (), "asks": ()})


def pods(scene: Scene) -> dict[str, int]:
    return {f"{row['outcome']} {row['reason']}": row["pods"] for row in of_namespace(scene)["pods"]}


def has(scene: Scene, wanted: dict[str, int]) -> Callable[[], bool]:
    """The API server writes an event when its answer is on its way."""
    return lambda: pods(scene) == wanted


def in_mode(scene: Scene, vacancy: Vacancy, mode: str) -> Scene:
    """A scene whose namespace has that mode, as the chart has it: by a webhook of its own."""
    name = f"{scene.name}-{mode}"
    configuration = scene.client.get(f"{WEBHOOKS}/{vacancy.name}")
    (webhook,) = configuration["webhooks"]
    webhook["name"] = f"{mode}.pods.gpu-vacancy.dev"
    webhook["clientConfig"]["url"] = webhook["clientConfig"]["url"].replace("enforce", mode)
    webhook["namespaceSelector"] = {"matchLabels": {"vacancy": name}}
    scene.make(WEBHOOKS, {"metadata": {"name": name}, "webhooks": [webhook]})
    return Scene(scene.plane, {"vacancy": name})


def sized(scene: Scene, name: str, memory: str) -> None:
    """A class of the devices of that memory, which declares the scene's resource."""
    equal = f"device.capacity['{scene.driver}'].memory.compareTo(quantity('{memory}')) == 0"
    scene.add_class(f"{scene.name}-{name}", selectors=[equal])


@pytest.mark.parametrize("source", ["auto"])
def test_two_teams_ask_for_one_each_and_the_ledger_says_what_each_was(scene: Scene, vacancy: Vacancy) -> None:
    warned = in_mode(scene, vacancy, "warn")
    memories = ("40Gi", "40Gi", "80Gi", "80Gi")
    scene.publish({"name": f"gpu-{n}", "capacity": {"memory": {"value": each}}} for n, each in enumerate(memories))
    sized(scene, "old", "40Gi")
    first, second, late = (scene.pod(name) for name in ("first", "second", "late"))
    until("room", lambda: vacancy.reason(first, scene.name) == "HasRoom")
    scene.hold(first)
    assert scene.apply(second, "--server-side").returncode == 0
    scene.bound("second")
    until("full", lambda: vacancy.refuses(late, scene.name))
    assert scene.apply(late).returncode == 1
    assert scene.apply(late, "--dry-run=server").returncode == 1
    told = warned.apply(warned.pod("late", resource=scene.resource))
    assert told.stderr.startswith("Warning: [NoGPUCapacity]")
    warned.free("late")

    time.sleep(1.1)  # of two classes that declare one name the newer one counts, and times have whole seconds
    sized(scene, "new", "80Gi")
    until("room again", lambda: vacancy.admits(late, scene.name))
    warned.hold(warned.pod("one", resource=scene.resource))

    until("the ledger of who is refused", has(scene, {"admitted HasRoom": 2, "refused NoGPUCapacity": 1}))
    until("the ledger of who is warned", has(warned, {"admitted HasRoom": 1, "warned NoGPUCapacity": 1}))
    lines = [" ".join(each.split()) for each in ledger(scene, "text").splitlines()]
    old, new = (f"{scene.resource} {scene.name}-{which} {scene.driver}" for which in ("old", "new"))
    assert f"{scene.name} {old} 2 2 1 40Gi 2 devices" in lines
    assert f"{warned.name} {old} 1 1 0 40Gi 2 devices" in lines
    assert f"{warned.name} {new} 1 1 0 80Gi 2 devices" in lines
    assert f"{scene.name} 1 refused NoGPUCapacity" in lines
    assert f"{warned.name} 1 warned NoGPUCapacity" in lines
    assert f"1 {scene.resource} 40Gi {scene.name}-old 3 3 {scene.name}, {warned.name}" in lines
    assert f"1 {scene.resource} 80Gi {scene.name}-new 1 1 {warned.name}" in lines
    warned.close()


@pytest.mark.parametrize("source", ["auto"])
def test_a_pod_that_found_room_and_met_a_quota_did_not_come_to_be(scene: Scene, vacancy: Vacancy) -> None:
    scene.add_class()
    scene.publish(1)
    one = scene.pod("one")
    until("room", lambda: vacancy.reason(one, scene.name) == "HasRoom")
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    scene.client.post(f"/api/v1/namespaces/{scene.name}/resourcequotas", quota)
    until("over quota", lambda: "exceeded quota" in scene.apply(one).stderr)
    until("the ledger", lambda: "failed HasRoom" in pods(scene))
    assert set(pods(scene)) == {"failed HasRoom"}


@pytest.mark.parametrize("source", ["auto"])
def test_the_policy_of_the_example_keeps_no_more_than_is_needed(scene: Scene, vacancy: Vacancy) -> None:
    scene.add_class()
    scene.publish(1)
    until("room", lambda: vacancy.reason(scene.pod("one"), scene.name) == "HasRoom")
    scene.hold(scene.pod("one"))
    until("the ledger", has(scene, {"admitted HasRoom": 1}))
    events = [json.loads(each) for each in scene.plane.audit_log.read_text().splitlines()]
    ours = [each for each in events if each.get("objectRef", {}).get("namespace") == scene.name]
    by_people = [each for each in ours if not each["user"]["username"].startswith("system:serviceaccount:")]
    assert [(each["verb"], each["objectRef"]["resource"]) for each in by_people] == [("create", "pods")]
    (creation,) = by_people
    assert "requestObject" not in creation
    assert f"{WEBHOOK}/resolved" in creation["annotations"]
