"""A board that was there in an earlier run and is missing now, on a machine without a profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judging import judged
from read_box import facts_of

from dgxcheck.assessment.last_run import Present, counts, inventory, last_run, updated
from dgxcheck.assessment.machine import topology_of
from dgxcheck.checks.by_nature.last_run import CHECKS, INVENTORY, kept
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.placement.missing import missing
from dgxcheck.facts.inventory import Count, Remembered
from dgxcheck.facts.missing import Json, need
from dgxcheck.facts.record import replace
from dgxcheck.profiles import library
from dgxcheck.profiles.model import SelectedProfile, Selection
from dgxcheck.source import state_file
from dgxcheck.source.recording.load import open_source
from dgxcheck.survey import survey

COUNTED = [check for check in CHECKS if check.id == INVENTORY]
LAST = "0000:8a:00.0"
OTHER_PRODUCT: dict[str, Json] = {"text /sys/class/dmi/id/product_name": "a server\n"}


def changed(folder: Path, **members: Json) -> str:
    path = folder / "box.json"
    document = {"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", **members}
    path.write_text(json.dumps(document), encoding="utf-8")
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
    findings = run(box, COUNTED)
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


@pytest.mark.parametrize(("kind", "was", "now", "how", "due"), [
    ("HCA", 5, 4, "named", "fail"),  # as many as the reference machine, fewer than were there
    ("HCA", 5, 3, "named", "skip"), ("HCA", 5, 3, "gpus", "fail"), ("HCA", 4, 4, "named", "pass"),
    ("GPU", 9, 8, "named", "fail"), ("disk", 5, 3, "named", "warn"), ("memory", 512, 300, "named", "warn"),
])  # fmt: skip
def test_fewer_than_before(kind: str, was: int, now: int, how: Selection, due: str) -> None:
    of = Box(snapshot=facts_of("dgx-1-v100"), topology=(topology := topology_of(facts_of("dgx-1-v100"))),
             gpus=topology.gpus, choice=SelectedProfile(profile=library.by_name("dgx-1-v100"), how=how),
             inventory={kind: Count(number=was, date="2026-11-20")}, present={kind: now})  # fmt: skip
    (found,) = run(of, COUNTED)
    assert found.status.value == due
    words = {"memory": "memory", "disk": "disks"}.get(kind, f"missing {kind}")
    assert [each.part for each in found.blames] == ([words] if due in ("warn", "fail") else [])


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


# GPU2, its HCA and what is above them on a DGX H100, from the root port down
SWITCH = ("0000:4a:01.0", "0000:4b:00.0")
TO_GPU = (*SWITCH, "0000:4c:04.0", "0000:50:00.0", "0000:51:00.0")
TO_HCA = (*SWITCH, "0000:4c:00.0", "0000:4d:00.0", "0000:4e:00.0")
GPU, HCA = ["0000:52:00.0"], ["0000:4f:00.0", "/sys/class/infiniband/mlx5_4", "/sys/class/net/ib4"]


def ports(*paths: tuple[str, ...], root: str = "pci0000:4a") -> dict[str, Json]:
    """The bridges of these paths, with nothing below the last ones."""
    ends = {path[: depth + 1] for path in paths for depth in range(len(path))}
    return {f"link /sys/bus/pci/devices/{end[-1]}": f"../../../devices/{'/'.join((root, *end))}" for end in ends}


@pytest.mark.parametrize(("base", "left", "drop", "due"), [
    ("dgx-h100", ports(TO_GPU), GPU, {"slot/0000:51:00.0/missing GPU": 1}),
    ("dgx-h100", ports(TO_HCA), HCA, {"slot/0000:4e:00.0/missing HCA": 1}),
    ("dgx-h100", ports(TO_GPU, TO_HCA), [*GPU, *HCA], {"slot/0000:4b:00.0/empty PCIe switch": 2}),
    ("dgx-h100", ports(SWITCH[:1]), [*GPU, *HCA, *TO_GPU[1:], *TO_HCA[2:]],
     {"slot/0000:4a:01.0/missing PCIe switch": 2}),
    ("pcie-x8", ports(*(("0000:00:03.0", "0000:06:00.0", f"0000:07:{port}.0") for port in ("08", "10")),
                      root="pci0000:00"),
     ["0000:08:00.0", "0000:09:00.0"], {"slot/0000:06:00.0/empty PCIe switch": 1}),
])  # fmt: skip
def test_a_port_that_leads_to_nothing_says_what_is_missing(
    base: str, left: dict[str, Json], drop: list[str], due: dict[str, int], tmp_path: Path
) -> None:
    members: dict[str, Json] = {"base": base, "add": left, "drop": [*dict.fromkeys(drop)]}
    found = judged(changed(tmp_path, **members))[1]["causes"]
    assert {cause["id"]: len(cause["explains"]) for cause in found} == due
    assert all(cause["actions"][0]["instruction"] == "inspect-missing" for cause in found)


def test_of_several_ports_the_last_run_says_which_led_to_a_device(tmp_path: Path) -> None:
    port = SWITCH[0]
    facts = facts_of(changed(tmp_path, base="dgx-h100", add=ports(SWITCH[:1]),
                             drop=[*GPU, *HCA, *TO_GPU[1:], *TO_HCA[2:]]))
    left = {**need(facts.empty_ports), "0000:37:01.0": ("pci0000:37", "0000:37:01.0")}
    less, topology = replace(facts, empty_ports=left), topology_of(facts)
    box = Box(snapshot=less, topology=topology, gpus=topology.gpus, choice=library.select("dgx-h100", less, topology))
    assert missing(box, "GPU").bdf is None
    before = Remembered(mark="", date="2026-11-20", values=kept(facts_of("dgx-h100")))
    assert missing(replace(box, kept=before), "GPU").bdf == port
