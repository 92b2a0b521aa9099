"""Ways to ask for a device and ways to lose one, each against the real scheduler: it never binds what was refused."""

import pytest

from tests.controlplane.client import Json
from tests.controlplane.waiting import until
from tests.live.scene import CLASSES, TAINT_RULES, Scene, sentence
from tests.live.serving import SOURCES, Vacancy

every_source = pytest.mark.parametrize("source", SOURCES)
live_sources = pytest.mark.parametrize("source", ["witness", "both", "auto"])
auto = pytest.mark.parametrize("source", ["auto"])


def message(vacancy: Vacancy, scene: Scene, pod: Json) -> str:
    """The refusal, once there is one."""
    return until("full", lambda: vacancy.refusal(pod, scene.name))


def would_not_be_bound(scene: Scene, pod: Json, *requests: Json) -> bool:
    """Whether the real scheduler has no place for a pod like this, asked in a namespace that nobody guards.

    `requests`: those of the template that the pod names.
    """
    elsewhere = Scene(scene.plane)
    try:
        if requests:
            elsewhere.add_template(pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"], *requests)
        elsewhere.client.post(elsewhere.pods, pod | {"metadata": {"name": "asked"}})
        until("tried", lambda: elsewhere.unschedulable("asked") or elsewhere.node_of("asked"))
        return not elsewhere.node_of("asked")
    finally:
        elsewhere.close()


@every_source
def test_a_choice_is_full_when_every_alternative_is(scene: Scene, vacancy: Vacancy) -> None:
    for name in ("a", "b"):
        driver = f"{name}.{scene.driver}"
        scene.add_class(f"{scene.name}-{name}", declares="", driver=driver)
        scene.publish(1, driver=driver)
    alternatives = [{"name": name, "deviceClassName": f"{scene.name}-{name}"} for name in ("a", "b")]
    choice = {"name": "gpu", "firstAvailable": alternatives}
    template = scene.add_template("either", choice)
    only_a = scene.add_template("only-a", {"name": "gpu", "exactly": {"deviceClassName": f"{scene.name}-a"}})
    late = scene.pod("late", template=template)

    scene.fill(1, template=only_a)
    until("a is full", lambda: vacancy.refuses(scene.pod("late", template=only_a), scene.name))
    assert vacancy.admits(late, scene.name)
    scene.hold(scene.pod("second", template=template))
    a, b = (alternative["deviceClassName"] for alternative in alternatives)
    facts = f"the only matching device of class {a} is taken in 1 pool, and so are those of class {b}"
    assert sentence("gpu/gpu", facts).fullmatch(message(vacancy, scene, late))
    assert would_not_be_bound(scene, late, choice)


def partitions(gpu: str, memory: int) -> list[Json]:
    """One GPU, whole or as two halves, of which not more can be had than its memory."""

    def part(name: str, profile: str, amount: int) -> Json:
        counters = {"memory": {"value": f"{amount}Gi"}}
        return {
            "name": f"{gpu}-{name}",
            "attributes": {"profile": {"string": profile}},
            "consumesCounters": [{"counterSet": gpu, "counters": counters}],
        }

    return [part("whole", "whole", memory), *(part(f"half-{n}", "half", memory // 2) for n in range(2))]


@every_source
def test_a_whole_gpu_of_which_a_half_is_taken_is_taken(scene: Scene, vacancy: Vacancy) -> None:
    for profile in ("whole", "half"):
        selector = f"device.attributes['{scene.driver}'].profile == '{profile}'"
        scene.add_class(f"{scene.name}-{profile}", declares=f"{scene.driver}/{profile}", selectors=[selector])
    scene.publish([], slices=2, number=0, counters={"gpu-0": {"memory": {"value": "80Gi"}}})
    scene.publish(partitions("gpu-0", 80), slices=2, number=1)
    whole, half = (scene.pod(f"late-{name}", resource=f"{scene.driver}/{name}") for name in ("whole", "half"))
    scene.fill(1, resource=f"{scene.driver}/half")
    if vacancy.source == "pool-status":
        vacancy.wait_for_count(scene.driver)
        assert vacancy.reason(whole, scene.name) == "HasRoom"  # counts know no partitions: never a refusal
        return
    assert "[NoGPUCapacity]" in message(vacancy, scene, whole)
    assert vacancy.admits(half, scene.name)
    assert would_not_be_bound(scene, whole)
    scene.free("holder-0")
    until("room", lambda: vacancy.admits(whole, scene.name))


@every_source
def test_a_device_that_a_rule_taints_is_taken(scene: Scene, vacancy: Vacancy) -> None:
    scene.add_class()
    scene.publish(2)
    late = scene.pod("late")
    scene.fill(1)
    held = until("held", lambda: _held(scene))
    free = "gpu-1" if held == "gpu-0" else "gpu-0"
    until("room", lambda: vacancy.reason(late, scene.name) == "HasRoom")
    rule = {
        "deviceSelector": {"driver": scene.driver, "pool": "pool", "device": free},
        "taint": {"key": "example.com/broken", "effect": "NoSchedule"},
    }
    scene.make(TAINT_RULES, {"metadata": {"name": scene.name}, "spec": rule})
    if vacancy.source == "pool-status":
        # The same counts as with the rule on the device that is held, and the other one free.
        until("counted", lambda: vacancy.reason(late, scene.name) == "NoSource")
        return
    facts = f"all 2 devices of class {scene.name} are taken in 1 pool"
    assert sentence(scene.resource, facts).fullmatch(message(vacancy, scene, late))
    assert would_not_be_bound(scene, late)
    scene.client.delete(f"{TAINT_RULES}/{scene.name}")
    until("room", lambda: vacancy.admits(late, scene.name))


def _held(scene: Scene) -> str:
    claims = scene.client.get(f"/apis/resource.k8s.io/v1/namespaces/{scene.name}/resourceclaims")["items"]
    results = [each["status"]["allocation"]["devices"]["results"] for each in claims if "allocation" in each["status"]]
    return str(results[0][0]["device"]) if results else ""


@live_sources
def test_a_node_that_was_cordoned_just_now_may_come_back(scene: Scene, vacancy: Vacancy) -> None:
    """After 2 minutes of watching its devices are out of reach; that is told where time is an argument."""
    scene.add_class()
    scene.publish(1, pool="a")
    scene.publish(1, pool="b", node=scene.add_node(1))
    scene.fill(1)
    until("room", lambda: vacancy.reason(scene.pod("late"), scene.name) == "HasRoom")
    free = next(node for node in (scene.nodes[0], f"{scene.name}-n1") if node != scene.node_of("holder-0"))
    scene.client.patch(f"/api/v1/nodes/{free}", {"spec": {"unschedulable": True}})
    assert would_not_be_bound(scene, scene.pod("late"))
    assert vacancy.reason(scene.pod("late"), scene.name) == "HasRoom"


@every_source
def test_a_node_with_a_device_plugin_of_that_name_switches_refusals_off(scene: Scene, vacancy: Vacancy) -> None:
    scene.fill_up()
    late = scene.pod("late")
    until("full", lambda: vacancy.refuses(late, scene.name))
    plugin = scene.add_node(1, extended={scene.resource: "2"})
    until("a device plugin", lambda: vacancy.reason(late, scene.name) == "DevicePlugin")
    assert scene.apply(late).returncode == 0
    until("late bound", lambda: scene.node_of("late") == plugin)
    _, explained = vacancy.get(f"/api/v1/explain/{scene.resource}")
    assert plugin in explained


@live_sources
def test_a_class_that_gave_its_name_up_may_still_serve_it(scene: Scene, vacancy: Vacancy) -> None:
    for name in ("old", "new"):
        scene.add_class(f"{scene.name}-{name}", driver=f"{name}.{scene.driver}")
        scene.publish(1, driver=f"{name}.{scene.driver}")
    late = scene.pod("late")
    asks = {name: f"deviceclass.resource.kubernetes.io/{scene.name}-{name}" for name in ("old", "new")}
    scene.hold(scene.pod("new", resource=asks["new"]), scene.pod("old", resource=asks["old"]))
    until("full", lambda: vacancy.refuses(late, scene.name))
    scene.client.patch(f"{CLASSES}/{scene.name}-old", {"spec": {"extendedResourceName": f"{scene.driver}/other"}})
    scene.free("old")
    until("the old one is free", lambda: vacancy.admits(late, scene.name))
    _, explained = vacancy.get(f"/api/v1/explain/{scene.resource}")
    assert f"{scene.name}-old" in explained
    scene.hold(scene.pod("old", resource=asks["old"]))
    until("full again", lambda: vacancy.refuses(late, scene.name))
    assert would_not_be_bound(scene, late)
