"""A board that was there in an earlier run and is missing now, on a machine without a profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from read_box import facts_of

from dgxcheck.assessment.last_run import Present, counts, inventory, last_run, updated
from dgxcheck.assessment.machine import topology_of
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.placement.missing import CHECKS
from dgxcheck.facts.inventory import Count
from dgxcheck.facts.missing import Json
from dgxcheck.profiles import library
from dgxcheck.source import state_file
from dgxcheck.source.recording.shipped import open_source
from dgxcheck.survey import survey

LAST = "0000:8a:00.0"
OTHER_PRODUCT: dict[str, Json] = {"text /sys/class/dmi/id/product_name": "a server\n"}


def changed(folder: Path, **members: Json) -> str:
    path = folder / "box.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", **members}), encoding="utf-8")
    return str(path)


def ran(spec: str, file: Path, accepted: bool = False, profile: str = "auto") -> dict[str, tuple[str, str]]:
    """Status and reason by kind, after a run that read and renewed the state file."""
    source = open_source(spec)
    facts = facts_of(spec)
    topology = topology_of(facts)
    present = Present(counts=counts(facts, topology), accepted=accepted)
    last = last_run(source, facts, str(file), present)
    box = Box(snapshot=facts, topology=topology, gpus=topology.gpus, choice=library.select(profile, facts, topology),
              inventory=last.inventory, present=present.counts)  # fmt: skip
    findings = run(box, CHECKS)
    return {each.subject.part: (each.status.value, each.judgement.reason) for each in findings}


def test_what_a_box_has() -> None:
    facts = facts_of("dgx-1-v100")
    assert counts(facts, topology_of(facts)) == {"GPU": 8, "HCA": 4, "memory": 502, "disk": 2}


def test_a_missing_gpu_is_found_without_a_profile(tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    whole, less = changed(tmp_path, facts=OTHER_PRODUCT), tmp_path / "less"
    less.mkdir()
    assert ran(whole, file) == {"": ("skip", "no-history")}
    assert {status for status, _ in ran(whole, file).values()} == {"pass"}
    lacking = changed(less, facts=OTHER_PRODUCT | GONE, drop=[LAST])
    for _ in range(2):  # and is not forgotten
        assert ran(lacking, file)["GPU"] == ("fail", "")
    assert ran(whole, file)["GPU"] == ("pass", "")
    assert ran(lacking, file, accepted=True)["GPU"] == ("fail", "")
    assert ran(lacking, file)["GPU"] == ("pass", "")


GONE: dict[str, Json] = {
    "nvml nvmlDeviceGetCount": 7,
    "nvml nvmlDeviceGetHandleByIndex 7": {"missing": "unrecorded"},
}


def test_runs_that_compare_no_counters_know_the_inventory_too(tmp_path: Path) -> None:
    """``--quick``, ``--window`` and burn-ins read it and leave the state file alone."""
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    before = file.read_bytes()
    assert inventory(survey(open_source("dgx-1-v100"), ("host",)), str(file))["GPU"].number == 8
    assert inventory(survey(open_source("k80-x8"), ("host",)), str(file)) == {}
    assert inventory(survey(open_source("k80-x8"), ("host",)), str(tmp_path / "none")) == {}
    assert file.read_bytes() == before


def test_where_the_profile_knows_it_is_said_once(tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    assert ran("dgx-1-v100", file) == {"": ("skip", "no-history")}
    assert ran(changed(tmp_path, facts=GONE, drop=[LAST]), file)["GPU"] == ("skip", "dependency-failed")


def test_another_host_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    other = changed(tmp_path, facts={"text /proc/sys/kernel/hostname": "another\n", **GONE}, drop=[LAST])
    assert ran(other, file) == {"": ("skip", "no-history")}
    assert {status for status, _ in ran("dgx-1-v100", file).values()} == {"pass"}  # both are kept


def test_a_kind_that_cannot_be_counted_keeps_its_number() -> None:
    known = {"HCA": Count(number=4, date="2026-11-20"), "GPU": Count(number=8, date="2026-11-20")}
    assert updated(known, {"GPU": 9}, "2026-11-22T10:00:00Z", False) == {
        "HCA": known["HCA"], "GPU": Count(number=9, date="2026-11-22"),
    }  # fmt: skip


@pytest.mark.parametrize("member", [None, 3, [], {"x": 1}, {"x": {"GPU": 3}}, {"x": {"GPU": [True, "2026-11-20"]}},
                                    {"x": {"GPU": [8, "yesterday"]}}, {"x": {"GPU": [8]}}])  # fmt: skip
def test_a_state_file_with_something_else_in_it(member: Json, tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    ran("dgx-1-v100", file)
    document = json.loads(file.read_text(encoding="utf-8"))
    document["state"]["inventory"] = member
    file.write_text(json.dumps(document), encoding="utf-8")
    reading = state_file.read(str(file))
    assert reading is not None
    assert not any(reading.inventories.values())
    assert ran("dgx-1-v100", file) == {"": ("skip", "no-history")}
