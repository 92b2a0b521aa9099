"""Real files on disk to what the witness and the lookups then say."""

from pathlib import Path

import pytest

from app.cluster.manifests import ManifestError, feed, lookups, read_manifests, stamp
from app.dra.demand import Ask, ClaimReferences, Lookup
from app.dra.objects import ResourceClaim, ResourceClaimTemplate
from app.dra.pools import Condition
from app.dra.witness import Kind, Witness
from app.times import epoch_seconds

NOW = epoch_seconds("2026-01-01T12:00:00Z")
EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster"

CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu, creationTimestamp: "2026-01-01T11:00:00Z"}
spec: {extendedResourceName: example.com/gpu}
"""
SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s, creationTimestamp: "%s"}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: %d}
  devices: [{name: gpu-0}]
"""
COMPLETE = SLICE % ("2026-01-01T11:00:00Z", 1)
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: team}
status:
  allocation:
    allocationTimestamp: "2026-01-01T11:30:00Z"
    devices: {results: [{request: r, driver: gpu.example.com, pool: n1, device: gpu-0}]}
  reservedFor: [{resource: pods, name: holder, uid: u1}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: team, uid: %s%s}
status: {phase: %s}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: %s, creationTimestamp: "2026-01-01T11:00:00Z"}
status: {allocatable: {example.com/fpga: "%d"}}
"""
STATUS = """
apiVersion: resource.k8s.io/v1alpha3
kind: ResourcePoolStatusRequest
metadata: {name: vacancy-1}
spec: {driver: gpu.example.com}
status:
  conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-01-01T11:59:30Z"}]
  poolCount: 1
  pools: [{driver: gpu.example.com, poolName: n1, generation: 1, totalDevices: 1, allocatedDevices: 1,
           availableDevices: 0, unavailableDevices: 0}]
"""


def dump(path: Path, *texts: str) -> Path:
    path.write_text("---".join(texts))
    return path


def witness_of(path: Path, witness: Witness | None = None) -> Witness:
    witness = witness or Witness(NOW)
    feed(read_manifests(path), witness, NOW)
    witness.advance(NOW)
    return witness


def free(witness: Witness, now: float = NOW) -> int:
    return witness.standing(witness.tally(Ask("gpu")), (), (), now).free


# --- Reading ----------------------------------------------------------------------------------------------------------


def test_a_directory_is_read_to_its_leaves_and_hidden_or_other_files_are_not(tmp_path: Path) -> None:
    for name in ("b.yml", "a/deep/c.json", "..data/b.yaml", ".hidden.yaml", "notes.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        suffix = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"json"}}'
        file.write_text(suffix if name.endswith("json") else NODE % (name.strip("."), 0))
    assert sorted(name for _, name in read_manifests(tmp_path).heard[Kind.NODES]) == ["b.yml", "json"]


def test_a_mounted_config_map_is_read_through_its_links(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    dump(tmp_path / "..2026" / "classes.yaml", CLASS)
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "classes.yaml").symlink_to("..data/classes.yaml")
    assert set(read_manifests(tmp_path).heard[Kind.DEVICE_CLASSES]) == {("", "gpu")}


def test_a_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    assert set(read_manifests(dump(tmp_path / "dump", CLASS)).heard[Kind.DEVICE_CLASSES]) == {("", "gpu")}


def test_other_kinds_and_other_groups_are_skipped_and_counted(tmp_path: Path) -> None:
    other = "\napiVersion: %s\nkind: %s\nmetadata: {name: x}\n"
    path = dump(
        tmp_path / "d.yaml", CLASS, other % ("v1", "Service"), other % ("v1", "Service"), other % ("x.io/v1", "Node")
    )
    assert read_manifests(path).skipped == {"Service": 2, "Node": 1}


VERSIONS = {
    "a class of v1beta2": CLASS.replace("k8s.io/v1", "k8s.io/v1beta2"),
    "a taint rule of v1alpha3": (
        "\napiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\nmetadata: {name: t}\n"
        "spec: {taint: {key: k, effect: NoSchedule}}\n"
    ),
    "a template": (
        "\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\nspec: {spec: {}}\n"
    ),
    "a pool status": STATUS,
}


@pytest.mark.parametrize("text", VERSIONS.values(), ids=VERSIONS)
def test_every_version_of_a_known_shape_is_read(text: str, tmp_path: Path) -> None:
    assert read_manifests(dump(tmp_path / "d.yaml", text)).skipped == {}


BAD = {
    "YAML that is none": ("a: b: c\n", "f.yaml:1: mapping values are not allowed in this context"),
    "a version of another shape, without which devices would be missing": (
        COMPLETE.replace("k8s.io/v1", "k8s.io/v1beta1"),
        "f.yaml:2: ResourceSlice of 'resource.k8s.io/v1beta1', expected resource.k8s.io/v1 or resource.k8s.io/v1beta2",
    ),
    "a slice without a driver": (
        COMPLETE.replace("driver", "drover"),
        "f.yaml:2: ResourceSlice: Object missing required field `driver` - at `$.spec`",
    ),
    "an object without a name": (CLASS.replace("name: gpu, ", ""), "f.yaml:2: DeviceClass without a name"),
    "an object without metadata": (
        "\nkind: Node\napiVersion: v1\n",
        "f.yaml:2: Node: Object missing required field `metadata`",
    ),
    "a pod without a UID": (
        POD % ("''", "", "Running"),
        "f.yaml:2: Pod without metadata.uid, by which claims name their holders",
    ),
    "a creation time that is none": (
        CLASS.replace("2026-01-01T11:00:00Z", "yesterday"),
        "f.yaml:2: DeviceClass: Invalid isoformat string: 'yesterday'",
    ),
    "a creation time without a zone": (
        CLASS.replace("11:00:00Z", "11:00:00"),
        "f.yaml:2: DeviceClass: timestamp without a time zone: '2026-01-01T11:00:00'",
    ),
    "a deletion time that is none": (
        POD % ("u", ", deletionTimestamp: soon", "Running"),
        "f.yaml:2: Pod: Invalid isoformat string: 'soon'",
    ),
    "an allocation time that is none": (
        CLAIM.replace("2026-01-01T11:30:00Z", "x"),
        "f.yaml:2: ResourceClaim: Invalid isoformat string: 'x'",
    ),
    "the same object twice": (f"{CLASS}---{CLASS}", "f.yaml:7: DeviceClass 'gpu' is already in f.yaml:2"),
    "several mistakes, each with its line": (
        f"{CLASS}---{CLASS}---\nkind: Node\napiVersion: v1\nmetadata: {{}}\n",
        "f.yaml:7: DeviceClass 'gpu' is already in f.yaml:2\nf.yaml:12: Node without a name",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_mistake_is_named_with_file_and_line(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ManifestError) as caught:
        read_manifests(dump(Path("f.yaml"), text))
    assert str(caught.value) == message


def test_the_mistakes_of_all_files_come_in_one_message_and_duplicates_name_both_places(tmp_path: Path) -> None:
    dump(tmp_path / "a.yaml", CLASS)
    dump(tmp_path / "b.yaml", CLASS)
    (tmp_path / "c.yaml").write_bytes(b"\xff")
    with pytest.raises(ManifestError) as caught:
        read_manifests(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/b.yaml:2: DeviceClass 'gpu' is already in {tmp_path}/a.yaml:2\n{tmp_path}/c.yaml:1: not UTF-8"
    )


def test_a_folder_full_of_mistakes_does_not_fill_the_screen(tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"{number}.yaml").write_text("kind: X\n")
    with pytest.raises(ManifestError) as caught:
        read_manifests(tmp_path)
    *lines, last = str(caught.value).splitlines()
    assert (len(lines), last) == (20, "and 5 more problems")


def test_a_path_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    for read in (read_manifests, stamp):
        with pytest.raises(ManifestError, match=r"missing.yaml: No such file or directory$"):
            read(tmp_path / "missing.yaml")
        with pytest.raises(ManifestError, match=r": no \*.yaml, \*.yml, \*.json below this directory$"):
            read(tmp_path)


def test_a_stamp_changes_with_every_file(tmp_path: Path) -> None:
    dump(tmp_path / "a.yaml", CLASS)
    first = stamp(tmp_path)
    assert stamp(tmp_path) == first
    dump(tmp_path / "a.yaml", CLASS, NODE % ("n1", 0))
    second = stamp(tmp_path)
    dump(tmp_path / "b.yaml", CLASS)
    assert len({first, second, stamp(tmp_path)}) == 3


# --- Feeding ----------------------------------------------------------------------------------------------------------

HOLDERS = {
    "a pod that runs holds": (POD % ("u1", "", "Running"), 0),
    "without any pod in the dump, what a claim holds is held": ("", 0),
    "a pod that has succeeded lets go": (POD % ("u1", "", "Succeeded"), 1),
    "a pod that has failed lets go": (POD % ("u1", "", "Failed"), 1),
    "a pod of that name with another UID is not the holder": (POD % ("u2", "", "Running"), 1),
    "a pod whose deadline is still to come lets go": (
        POD % ("u1", ', deletionTimestamp: "2026-01-01T12:00:20Z"', "Running"),
        1,
    ),
    "a pod whose deadline is ten minutes past is stuck": (
        POD % ("u1", ', deletionTimestamp: "2026-01-01T11:50:00Z"', "Running"),
        0,
    ),
}


@pytest.mark.parametrize(("pods", "count"), HOLDERS.values(), ids=HOLDERS)
def test_what_the_dump_says_of_holders(pods: str, count: int, tmp_path: Path) -> None:
    texts = (CLASS, COMPLETE, CLAIM, pods) if pods else (CLASS, COMPLETE, CLAIM)
    witness = witness_of(dump(tmp_path / "d.yaml", *texts))
    assert (witness.devices_unknown, witness.holds_unknown) == (None, None)
    assert witness.judges_extended_resources()
    assert free(witness) == count


def test_a_claim_without_consumers_is_about_to_be_freed_however_old(tmp_path: Path) -> None:
    unreserved = CLAIM.partition("  reservedFor")[0]
    assert free(witness_of(dump(tmp_path / "d.yaml", CLASS, COMPLETE, unreserved))) == 1


def test_a_claim_and_a_pod_written_without_a_namespace_are_in_default(tmp_path: Path) -> None:
    bare = CLAIM.replace(", namespace: team", "")
    path = dump(tmp_path / "d.yaml", bare, POD.replace(", namespace: team", "") % ("u1", "", "Running"))
    manifests = read_manifests(path)
    witness = Witness(NOW)
    feed(manifests, witness, NOW)
    found = lookups(manifests, "default", ClaimReferences(claims=("c",))).claims["c"]
    assert isinstance(found, ResourceClaim)
    assert witness.claim_allocated("default", "c")
    assert set(manifests.heard[Kind.PODS]) == {("default", "holder")}


SINCE = {
    "a slice of two minutes ago is being rolled out": ("2026-01-01T11:58:00Z", Condition.INCOMPLETE),
    "a slice of an hour ago is not": ("2026-01-01T11:00:00Z", Condition.UNUSABLE),
}


@pytest.mark.parametrize(("created", "condition"), SINCE.values(), ids=SINCE)
def test_a_state_lasts_since_its_object_was_created(created: str, condition: Condition, tmp_path: Path) -> None:
    witness = witness_of(dump(tmp_path / "d.yaml", CLASS, SLICE % (created, 2)))
    assert [pool.condition for pool in witness.pools()] == [condition]


def test_an_object_without_a_time_has_been_so_for_an_hour(tmp_path: Path) -> None:
    text = (SLICE % ("", 2)).replace(', creationTimestamp: ""', "")
    witness = witness_of(dump(tmp_path / "d.yaml", CLASS, text))
    assert [pool.since for pool in witness.pools()] == [NOW - 3600]


def test_a_dump_without_nodes_says_nothing_of_them(tmp_path: Path) -> None:
    without = witness_of(dump(tmp_path / "a.yaml", CLASS, COMPLETE))
    assert without.judges_extended_resources()
    assert without.plugin_node("example.com/fpga", NOW) is None
    assert free(without) == 1
    with_another = witness_of(dump(tmp_path / "b.yaml", CLASS, COMPLETE, NODE % ("n2", 2)))
    assert with_another.plugin_node("example.com/fpga", NOW) == "n2"
    assert free(with_another) == 0, "its node does not exist"


def test_pool_statuses_become_a_snapshot(tmp_path: Path) -> None:
    snapshot = feed(read_manifests(dump(tmp_path / "d.yaml", STATUS)), Witness(NOW), NOW)
    assert snapshot.taken_at == NOW - 30
    assert list(snapshot.statuses["gpu.example.com"].pools) == ["n1"]


def test_lookups_find_claims_and_templates_of_the_namespace(tmp_path: Path) -> None:
    template = (
        "\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t, namespace: team}\n"
        "spec: {spec: {}}\n"
    )
    manifests = read_manifests(dump(tmp_path / "d.yaml", CLAIM, template))
    references = ClaimReferences(claims=("c", "d"), templates=("t",))
    found = lookups(manifests, "team", references)
    assert isinstance(found.claims["c"], ResourceClaim)
    assert found.claims["d"] is Lookup.MISSING
    assert isinstance(found.templates["t"], ResourceClaimTemplate)
    elsewhere = lookups(manifests, "other", references)
    assert set(elsewhere.claims.values()) | set(elsewhere.templates.values()) == {Lookup.MISSING}


# --- The example ------------------------------------------------------------------------------------------------------

EXAMPLE_FREE = {"gpu.example.com": 0, "gpu-legacy": 0, "gpu-l4": 1, "mig-whole": 0, "mig-half": 1, "fpga": 0}


def test_the_example_holds_what_its_comments_say() -> None:
    manifests = read_manifests(EXAMPLE)
    witness = Witness(NOW)
    snapshot = feed(manifests, witness, NOW)
    assert manifests.skipped == {}
    assert {name: witness.standing(witness.tally(Ask(name)), (), (), NOW).free for name in EXAMPLE_FREE} == EXAMPLE_FREE
    assert witness.claimants("example.com/gpu") == ("gpu.example.com", "gpu-legacy")
    assert witness.plugin_node("example.com/fpga", NOW) == "fpga-node-1"
    ages = [NOW - s.taken_at for s in snapshot.statuses.values() if s.taken_at is not None]
    assert len(ages) == 4
    assert all(20 <= age <= 40 for age in ages)
