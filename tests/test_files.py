"""Files in the place of a cluster, when they change under a reader."""

import json
import re
from pathlib import Path

import pytest

from app import embedded
from app.dra.capacity import capacity
from app.dra.judgement import Policy
from app.dra.meaning import meaning
from app.embedded import Embedded
from app.files import Files
from app.settings import read_settings
from app.unanswered import NoAnswer
from app.web.capacity import capacity_report
from tests.builders import NOON
from tests.web.tiny_cluster import CLUSTER

CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu", "creationTimestamp": "2020-01-01T00:00:00Z"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "sharedCounters": [{"name": "card", "counters": {"cells": {"value": "1"}}}],
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"type": {"string": "whole"}, "score": "NUMBER"},
                "capacity": {"memory": {"value": "NUMBER"}},
                "consumesCounters": [{"counterSet": "card", "counters": {"cells": {"value": "1"}}}],
            }
        ],
    },
}


def written(folder: Path, number: str) -> Path:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [CLASS, SLICE]})
    (folder / "cluster.json").write_text(text.replace('"NUMBER"', number), "utf-8")
    return folder


def test_a_number_larger_than_any_ends_nothing_and_hides_no_device(tmp_path: Path) -> None:
    files = Embedded(written(tmp_path, "1"), Policy(), lambda: NOON, count_ahead=True)
    before = files.latest.get()
    written(tmp_path, "1e999")
    files.look()
    world = files.latest.get()
    assert (files.problem, world is before) == ("", False)
    (gpus,) = capacity_report(capacity(world, NOON), hide_names=False).classes
    assert (gpus.available, gpus.total) == (1, 1)
    assert meaning("deviceclass.resource.kubernetes.io/gpu", world, NOON).devices == 1


def test_a_mistake_of_ours_leaves_the_last_good_files_in_place_and_is_told_without_what_it_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Embedded(written(tmp_path, "1"), Policy(), lambda: NOON)
    before = files.latest.get()

    def mistaken(*_: object) -> None:
        raise KeyError("what a tenant has written")

    with monkeypatch.context() as broken:
        broken.setattr(embedded, "feed", mistaken)
        written(tmp_path, "12")
        files.look()
    assert files.latest.get() is before
    assert re.fullmatch(r"unexpected KeyError in test_files\.mistaken, line \d+", files.problem)
    written(tmp_path, "123")
    files.look()
    assert (files.problem, files.latest.get() is before) == ("", False)


def test_the_capacity_of_files_that_cannot_be_read_any_more_is_no_answer(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER, "utf-8")
    files = Files(tmp_path, read_settings({"manifests": str(tmp_path)}, {}))
    before = files.capacity().classes
    file.write_text("kind: [", "utf-8")
    for _ in range(2):
        with pytest.raises(NoAnswer, match=r"cluster\.yaml:1: "):
            files.capacity()
    file.write_text(CLUSTER, "utf-8")
    assert files.capacity().classes == before
