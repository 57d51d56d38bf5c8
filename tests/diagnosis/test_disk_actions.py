"""What is done about disks, arrays and the links that lead to them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hand_made import box_of, finding, planned, steps
from judging import judged

from dgxcheck.checks.engine.finding import Status, Subject
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.actions import actions
from dgxcheck.diagnosis.by_hand import _is_array
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Storage
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
from dgxcheck.output.health.instructions import action_text


@pytest.mark.parametrize(("level", "last"), [("raid0", "restore-array"), ("raid1", "replace-disk")])
def test_a_raid_0_is_not_rebuilt(level: str, last: str) -> None:
    box = box_of("dgx-station-v100")
    storage = box.snapshot.storage
    assert isinstance(storage, Storage)
    assert not isinstance(storage.arrays, Missing)
    arrays = tuple(replace(row, level=level) for row in storage.arrays)
    changed = replace(box, snapshot=replace(box.snapshot, storage=replace(storage, arrays=arrays)))
    acts = planned(changed, Component(kind="disk", name="md0"), Fault.DISK)
    assert [action.instruction.code for action in acts] == ["finding-remedy", "reseat-disk", last]
    assert acts[0].commands == (("cat", "/proc/mdstat"), ("mdadm", "--detail", "/dev/md0"))
    assert "or no longer; else the kernel log names it), and leave in those that still run" in action_text(acts[1], {})


def test_a_drives_link_and_an_nvswitchs_link_name_what_ends_there() -> None:
    drives = box_of("dgx-a100-nvme-x2")
    link = Component(kind="link", name="0000:04:04.0 - 0000:08:00.0", bdf="0000:08:00.0")
    assert "reseat-drive" in [action.instruction.code for action in planned(drives, link, Fault.LINK_NARROW)]
    switches = box_of("dgx-2-nvswitch-gen1")
    link = Component(kind="link", name="0000:60:02.0 - 0000:61:00.0", bdf="0000:61:00.0")
    assert steps(planned(switches, link, Fault.LINK_NARROW))[-1] == "contact-vendor"


@pytest.mark.parametrize(("name", "asked"), [("mlx5_0/1", (("mlxlink", "-d", "mlx5_0", "-m", "-c"),)), ("NIC0/1", ()),
                                             ("leaf1/1", ()), ("dgx05.mlx5_3/1", ())])
def test_a_cable_is_asked_at_the_adapter_of_its_port(name: str, asked: tuple[tuple[str, ...], ...]) -> None:
    acts = planned(box_of("dgx-1-v100"), Component(kind="port", name=name), Fault.PORT_ERRORS)
    assert acts[0].commands == asked


def test_a_name_is_quoted_where_it_stands_in_a_command() -> None:
    array = Component(kind="disk", name="md0;x")
    for fault in (Fault.ARRAY_FAILED, Fault.DISK_ERRORS):
        text = " ".join(action_text(action, {}) for action in planned(box_of("dgx-a100"), array, fault))
        assert {*re.findall(r"(?:--stop|--detail) (\S+)", text)} == {"'/dev/md0;x'"}


def test_the_boot_mirror_of_a_dgx_is_changed_with_the_power_off() -> None:
    acts = planned(box_of("dgx-a100"), Component(kind="disk", name="md0"), Fault.DISK, status=Status.WARN)
    assert [(action.step, action.scope) for action in acts] == [
        ("inspect", "none"), ("drain", "none"), ("contact-vendor", "host"),
    ]  # fmt: skip


def test_data_of_an_array_is_lost_only_once_it_failed() -> None:
    box = box_of("dgx-a100")
    array = Component(kind="disk", name="md1")
    assert planned(box, array, Fault.ARRAY_FAILED)[-1].instruction.code == "restore-array"
    errors = planned(box, array, Fault.DISK_ERRORS)[-1]
    assert action_text(errors, {}) == (
        "back up now all that is on it, of an array without redundancy all of the array; then stop what uses it,"
        " replace the failing disk of md1 (mdadm --detail /dev/md1 lists it as faulty, or no longer; else the kernel"
        " log names it) and restore the data"
    )
    sick = replace(finding(array, Fault.DISK_ERRORS), subject=Subject(kind="disk", name="nvme3n1", bdf=None))
    named = actions(box, array, [sick], frozenset())[0][-1]
    assert "replace nvme3n1 of md1 and restore" in action_text(named, {})
    assert [act.instruction.code for act in planned(box, array, Fault.ARRAY_FAILED)][1:] == [
        "drain-host", "reassemble-array", "restore-array",
    ]  # fmt: skip


@pytest.mark.parametrize(("overlay", "due"), [
    ("dgx-station-v100-disk-medium-errors", "sdc"), ("dgx-h200-raid0-disk-gone", "nvme4n1"),
    ("dgx-a100-md-degraded", None),
])  # fmt: skip
def test_the_disk_of_an_array_is_named_where_errors_name_it(overlay: str, due: str | None) -> None:
    (cause,) = judged(overlay)[1]["causes"]
    assert cause["component"].get("position") == due
    assert cause["confidence"]["level"] != "guess"


@pytest.mark.parametrize(("disk", "due"), [("sda", ["disk/sda"]), ("sdz", [])])
def test_the_disk_of_the_root_is_the_hosts_though_it_is_not_listed(disk: str, due: list[str], tmp_path: Path) -> None:
    """``root=/dev/sda2``; another that is not there any more was removable."""
    path = tmp_path / "read-only.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-h100", "add": {
        "kmsg 40": f"3600.0;EXT4-fs ({disk}2): Remounting filesystem read-only"}}))  # fmt: skip
    assert [cause["id"] for cause in judged(str(path))[1]["causes"]] == due


@pytest.mark.parametrize(("name", "due"), [("md0", True), ("md9", True), ("raid_data", True), ("sda", False)])
def test_an_array_is_known_by_its_name_or_listed(name: str, due: bool) -> None:
    box = box_of("dgx-a100")
    assert isinstance(box.snapshot.storage, Storage)
    array = replace(box.snapshot.arrays[0], name="raid_data")
    storage = replace(box.snapshot.storage, arrays=(*box.snapshot.arrays, array))
    assert _is_array(replace(box, snapshot=replace(box.snapshot, storage=storage)), name) is due


def test_a_disk_that_is_no_array_is_none_of_mdadms() -> None:
    """Its file system alone is no reason to replace it: a failing disk logs errors of its own."""
    box, disk = box_of("dgx-1-v100"), Component(kind="disk", name="sda")
    assert steps(planned(box, disk, Fault.FILE_SYSTEM_READ_ONLY)) == ["inspect", "drain", "reboot"]
    for fault in (Fault.FILE_SYSTEM_READ_ONLY, Fault.DISK_ERRORS, Fault.DISK, Fault.UNPLUGGED, Fault.ARRAY_FAILED):
        assert "mdadm" not in " ".join(action_text(action, {}) for action in planned(box, disk, fault))
