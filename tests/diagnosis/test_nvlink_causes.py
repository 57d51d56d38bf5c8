"""Faults of NVLinks, NVSwitches and Fabric Manager that show at several GPUs: one cause, at the right place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from changed_box import HOT, OF_H200, PCI, causes, links_down
from sample import BY_NAME

from dgxcheck.facts.missing import Json


@pytest.mark.in_ci
def test_a_fabric_manager_of_another_version_is_replaced(tmp_path: Path) -> None:
    """NVIDIA/gpu-operator issue 121: the driver of the NVSwitches refuses it, and no GPU is registered."""
    line = "nvidia-nvswitch: Version mismatch, kernel version 580.105.08 user version 580.95.05"
    waits: dict[str, Json] = {
        "cliqueId": 0, "clusterUuid": "00000000-0000-0000-0000-000000000000", "healthMask": 0, "healthSummary": 0,
        "state": 2, "status": 0,
    }  # fmt: skip
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetGpuFabricInfo {bdf}": {**waits} for bdf in OF_H200}
    (cause,) = causes(tmp_path, "dgx-h200", facts, (line,))
    assert cause["id"] == "host/host/Fabric Manager"
    assert cause["action"]["action"] == "change-setting"
    assert not causes(tmp_path, "dgx-h200", {}, (line,))  # the right one runs since
    assert "driver's own version" in cause["action"]["text"]


def test_a_guest_whose_partition_is_off_has_one_cause(tmp_path: Path) -> None:
    """Its NVLinks are down because its host has not joined them: no setting of its own is to blame."""
    buses = ("53", "64", "75", "86", "97", "a8", "b9", "ca")
    facts: dict[str, Json] = {}
    for bus in buses:
        bdf = f"0000:{bus}:00.0"
        facts[f"nvml nvmlDeviceGetGpuFabricInfo {bdf}"] = {"state": 1, "status": 0}
    facts |= links_down(18, [f"0000:{bus}:00.0" for bus in buses])
    (cause,) = causes(tmp_path, "vm-h100-x8", facts)
    assert cause["id"] == "host/host/Fabric Manager"


def test_a_gpu_loses_its_fabric_with_its_nvlinks(tmp_path: Path) -> None:
    own: dict[str, Json] = {"cliqueId": 0, "clusterUuid": "00000000-0000-0000-0000-000000000000", "healthMask": 0,
                            "healthSummary": 0, "state": 2, "status": 0}  # fmt: skip
    facts = {f"nvml nvmlDeviceGetGpuFabricInfo {HOT}": own, **links_down(18, [HOT])}
    (cause,) = causes(tmp_path, "dgx-h200", facts)
    assert cause["id"] == f"gpu/{HOT}/NVLink"
    assert "reset-gpu" in [each["action"] for each in cause["actions"]]


def test_a_gpu_loses_its_routes_with_an_nvswitch(tmp_path: Path) -> None:
    own: dict[str, Json] = {"cliqueId": 0, "clusterUuid": "00000000-0000-0000-0000-000000000000", "healthMask": 0,
                            "healthSummary": 2, "state": 3, "status": 0}  # fmt: skip
    line = "nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"
    for log, due in (((line,), "nvswitch/0000:07:00.0"), ((), f"gpu/{HOT}/fabric")):
        (cause,) = causes(tmp_path, "dgx-h200", {f"nvml nvmlDeviceGetGpuFabricInfo {HOT}": own}, log)
        assert cause["id"] == due


def test_no_setting_of_a_tray_keeps_the_nvlinks_of_a_rack_down(tmp_path: Path) -> None:
    """Its NVSwitches are on no PCI bus, and no link that is up tells of them."""
    bdfs = [f"{domain}:01:00.0" for domain in ("0008", "0009", "0018", "0019")]
    (cause,) = causes(tmp_path, "gb200-nvl72", links_down(18, bdfs))
    assert cause["id"] == "host/host/NVSwitches"
    assert [each["action"] for each in cause["actions"]] == ["inspect", "drain", "contact-vendor"]


@pytest.mark.parametrize("line", [
    "pcieport 0000:04:01.0: AER: Uncorrected (Fatal) error message received from 0000:06:00.0",
    "pcieport 0000:04:01.0: AER: Uncorrected (Fatal) error received: 0000:04:01.0",
    "pcieport 0000:04:01.0: pciehp: Slot(9): Link Down",
])
def test_an_nvswitch_that_fell_off_the_bus_is_the_one_cause(line: str, tmp_path: Path) -> None:
    """What its port logs of its PCIe link, its NVLinks and the fabric that no GPU joins any more are its work."""
    dead = "0000:06:00.0"
    facts = json.loads(Path(BY_NAME["dgx-h100"]).read_text(encoding="utf-8"))["facts"]
    fabric = "nvml nvmlDeviceGetGpuFabricInfo"
    changed: dict[str, Json] = {
        f"data {PCI}/{dead}/config": {"size": 64, "rows": {f"0{row}0": "f" * 32 for row in range(4)}},
        f"text {PCI}/{dead}/current_link_speed": "Unknown\n",
        f"text {PCI}/{dead}/current_link_width": "63\n",
        **{f"{key} ": {**value[""], "state": 2} for key, value in facts.items() if key.startswith(fabric)},
        **{f"nvml nvmlDeviceGetNvLinkState {key.split()[2]} {link}": 0 for key, ends in facts.items()
           if key.startswith("nvml nvmlDeviceGetNvLinkRemotePciInfo") for link, end in ends.items()
           if isinstance(end, dict) and end.get("busIdLegacy") == dead},
    }  # fmt: skip
    (cause,) = causes(tmp_path, "dgx-h100", changed, (line,))
    assert cause["id"] == f"nvswitch/{dead}"


@pytest.mark.parametrize("line", [
    "Out of memory: Killed process 2211 (nv-fabricmanage) total-vm:1kB",
    "nv-fabricmanage[2211]: segfault at 0 ip 0000558011223344 sp 00007ffd11223344 error 4 in nv-fabricmanager[55+1]",
])
def test_what_ended_fabric_manager_is_part_of_its_cause(line: str, tmp_path: Path) -> None:
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetGpuFabricInfo {bdf}": {
        "cliqueId": 0, "clusterUuid": "00000000-0000-0000-0000-000000000000", "healthMask": 0, "healthSummary": 0,
        "state": 1, "status": 0} for bdf in OF_H200}  # fmt: skip
    (cause,) = causes(tmp_path, "dgx-h100", facts, (line,))
    assert (cause["id"], len(cause["explains"])) == ("host/host/Fabric Manager", 2)


def test_gpus_without_c2c_are_one_cause(tmp_path: Path) -> None:
    """As both of a superchip; one restart is for all of them, and their links are looked at before it."""
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetC2cModeInfo {bdf}:01:00.0": {"isC2cEnabled": int(bdf < "0010")}
                              for bdf in ("0008", "0009", "0018", "0019")}  # fmt: skip
    (cause,) = causes(tmp_path, "gb200-nvl72", facts)
    assert cause["id"] == "gpus/GPU2, GPU3/C2C"
    assert cause["action"]["action"] == "inspect"
