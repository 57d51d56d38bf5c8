"""Several faults at once: one cause, and first what only looks, in the order that the worst of them asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from changed_box import PCI, causes, document
from sample import BY_NAME

from dgxcheck.facts.missing import Json

RESET = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
DRAIN = "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
REBOOT = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
SIGNAL = "NETIR_LINK_DOWN Fatal XC0 i0 Link 03 (0x004001c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
TRAY, HGX, CARD = "0009:06:00.0", "0000:61:00.0", "0000:3d:00.0"
GONE: dict[str, Json] = {"missing": "unsupported", "detail": "NVML 2: Invalid Argument"}
TWO_LESS: dict[str, Json] = {
    "nvml nvmlDeviceGetCount": 6, **{f"nvml nvmlDeviceGetHandleByIndex {index}": GONE for index in (6, 7)},
}  # fmt: skip
OF_A100 = [f"0000:{bus}:00.0" for bus in ("07", "0f", "47", "4e", "87", "90", "b7", "bd")]


def xid(bdf: str, number: int, text: str) -> str:
    return f"NVRM: Xid (PCI:{bdf[:-2]}): {number}, {text}"


def asked(bdf: str, action: int) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetFieldValues {bdf} 230": action}


def unpowered(bdf: str) -> tuple[str, str]:
    return (f"NVRM: GPU {bdf}: GPU does not have the necessary power cables connected.",
            f"NVRM: GPU {bdf}: RmInitAdapter failed! (0x24:0x1c:1568)")  # fmt: skip


LINK_DOWN: dict[str, Json] = {f"nvml nvmlDeviceGetNvLinkState {TRAY} 3": 0}
FAILED_ROW: dict[str, Json] = {f"nvml nvmlDeviceGetRemappedRows {HGX}": [0, 2, 0, 1]}
SMALL_BAR1: dict[str, Json] = {
    "nvml nvmlDeviceGetBAR1MemoryInfo 0000:86:00.0":
        {"bar1Free": 200 << 20, "bar1Total": 256 << 20, "bar1Used": 56 << 20},
}  # fmt: skip
NO_ROW = xid(HGX, 64, "Failed to add row to remap table")


@pytest.mark.parametrize(("base", "facts", "log", "component", "steps"), [
    ("gb300-nvl72", asked(TRAY, 1), (xid(TRAY, 149, SIGNAL), xid(TRAY, 154, RESET)), f"gpu/{TRAY}/NVLink",
     ["drain", "stop-jobs", "reset-gpu", "reboot", "inspect", "contact-vendor"]),
    ("gb300-nvl72", LINK_DOWN, (xid(TRAY, 149, SIGNAL),), f"gpu/{TRAY}/NVLink", ["inspect", "drain"]),
    ("gb300-nvl72", {**LINK_DOWN, **asked(TRAY, 1)}, (xid(TRAY, 149, SIGNAL), xid(TRAY, 154, RESET)),
     f"gpu/{TRAY}/NVLink", ["drain", "stop-jobs", "reset-gpu", "reboot", "inspect"]),
    ("dgx-b200", {**FAILED_ROW, **asked(HGX, 4)}, (NO_ROW, xid(HGX, 154, DRAIN)), f"gpu/{HGX}/memory",
     ["drain", "stop-jobs", "reset-gpu", "reboot", "field-diagnostic", "contact-vendor"]),
    ("dgx-b200", {}, (NO_ROW, xid(HGX, 154, DRAIN)), f"gpu/{HGX}/memory",
     ["drain", "stop-jobs", "reset-gpu", "reboot", "field-diagnostic", "contact-vendor"]),
    ("l40s-x8", {}, (xid(CARD, 79, "GPU has fallen off the bus."), xid(CARD, 154, REBOOT)), f"gpu/{CARD}",
     ["drain", "reboot", "power-cycle", "reseat", "field-diagnostic"]),
    ("l40s-x8", TWO_LESS, (*unpowered("0000:ba:00.0"), *unpowered("0000:bb:00.0")),
     "host/host/power supply", ["inspect", "drain"]),
    ("vm-h100-x8", {f"text {PCI}/0000:75:00.0/current_link_width": "8\n"}, (), "link/0000:75:00.0",
     ["drain", "contact-host"]),
    ("dgx-1-v100", SMALL_BAR1, (), "gpu/0000:86:00.0/BAR1", ["inspect", "drain", "reboot"]),
])  # fmt: skip
def test_the_steps_of_one_cause(
    base: str, facts: dict[str, Json], log: tuple[str, ...], component: str, steps: list[str], tmp_path: Path
) -> None:
    (cause,) = causes(tmp_path, base, facts, log)
    assert cause["id"] == component
    assert [each["action"] for each in cause["actions"]][: len(steps)] == steps


def test_what_is_looked_at_behind_an_nvlink_of_a_rack(tmp_path: Path) -> None:
    """A log line with a link that is down does not take away that the other end is on a switch tray."""
    (cause,) = causes(tmp_path, "gb300-nvl72", LINK_DOWN, (xid(TRAY, 149, SIGNAL),))
    assert "NVLink switch tray" in cause["actions"][0]["text"]


def test_a_dead_adapter_is_not_burned_first(tmp_path: Path) -> None:
    """Its older firmware is a matter for the time when it responds again."""
    dead = "mlx5_core 0000:9a:00.0: poll_health:1008:(pid 0): Fatal error 3 detected"
    versions: dict[str, Json] = {}
    for number in (0, 3, 4, 5, 6, 9, 10, 11):
        adapter = f"text /sys/class/infiniband/mlx5_{number}"
        versions |= {f"{adapter}/board_id": "MT_0000000838\n", f"{adapter}/fw_ver": f"28.{45 + (number != 6)}.3048\n"}
    (cause,) = causes(tmp_path, "dgx-h200", versions, (dead,))
    assert {key.split("/")[0] for key in cause["explains"]} == {"kernel.hca", "network.firmware"}
    assert "mstdump" in next(each["text"] for each in cause["actions"] if each["action"] == "inspect")


@pytest.mark.parametrize("announced", [True, False])
def test_firmware_that_fails_on_every_gpu_is_the_driver(announced: bool, tmp_path: Path) -> None:
    """From R570 on the driver logs what each GPU needs beside the error that it comes from."""
    text = "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 10"
    log = [line for bdf in OF_A100 for line in (xid(bdf, 119, text), xid(bdf, 154, RESET))]
    (cause,) = causes(tmp_path, "dgx-a100", {}, tuple(log if announced else log[::2]))
    assert cause["id"].startswith("driver")


@pytest.mark.parametrize(("base", "bdf", "query", "value", "part"), [
    ("pcie-x4", "0000:08:00.0", "Temperature", 45, "power supply"),
    ("pcie-x4", "0000:08:00.0", "Temperature", 80, "cooling"),
    ("dgx-h200", "0000:9d:00.0", "MarginTemperature", 30, "power supply"),
    ("dgx-h200", "0000:9d:00.0", "MarginTemperature", 5, "cooling"),
])  # fmt: skip
def test_a_hardware_slowdown_of_a_cool_gpu_is_no_heat(
    base: str, bdf: str, query: str, value: int, part: str, tmp_path: Path
) -> None:
    slowed = f"nvml nvmlDeviceGetCurrentClocksEventReasons {bdf}"
    measured = f"nvml nvmlDeviceGet{query} {bdf}" + (" 0" if query == "Temperature" else "")
    found = document(tmp_path, base, {slowed: 8, measured: value}, later={slowed: {"": 8}})["causes"]
    assert f"gpu/{bdf}/{part}" in {cause["id"] for cause in found}


@pytest.mark.parametrize(("capped", "due"), [(4, "next-maintenance"), (1, "now")])
def test_a_limit_set_on_every_gpu_is_not_urgent(capped: int, due: str, tmp_path: Path) -> None:
    """It is who runs them that chose it, until somebody says otherwise."""
    facts: dict[str, Json] = {}
    for bus in (21, 22, 23, 24)[:capped]:
        for name in ("PowerManagementLimit", "EnforcedPowerLimit"):
            facts[f"nvml nvmlDeviceGet{name} 0000:{bus}:00.0 "] = 450_000
    (cause,) = causes(tmp_path, "geforce-x4", facts)
    assert cause["action"]["urgency"] == due


SRAM: dict[str, Json] = {
    "aggregateUncBucketL2": 0, "aggregateUncBucketMcu": 0, "aggregateUncBucketOther": 0, "aggregateUncBucketPcie": 0,
    "aggregateUncBucketSm": 6, "aggregateUncParity": 6, "aggregateUncSecDed": 0, "bThresholdExceeded": 1,
}  # fmt: skip


def test_an_rma_stands_in_the_first_line(tmp_path: Path) -> None:
    """Beside the one error since the driver was loaded, which asks for less."""
    facts: dict[str, Json] = {
        f"nvml nvmlDeviceGetSramEccErrorStatus {HGX} ": SRAM, f"nvml nvmlDeviceGetTotalEccErrors {HGX} 1 0": 1,
        f"nvml nvmlDeviceGetTotalEccErrors {HGX} 1 1": 6, f"nvml nvmlDeviceGetMemoryErrorCounter {HGX} 1 0 7": 1,
        f"nvml nvmlDeviceGetMemoryErrorCounter {HGX} 1 1 7": 6,
    }  # fmt: skip
    (cause,) = causes(tmp_path, "dgx-b200", facts)
    assert "RMA threshold" in cause["headline"]


def test_another_psid_is_not_burned_over(tmp_path: Path) -> None:
    """It is another board, or another maker's."""
    adapters = "text /sys/class/infiniband"
    facts: dict[str, Json] = {f"{adapters}/mlx5_{number}/board_id": "NVD0000000077\n" for number in range(4)}
    (cause,) = causes(tmp_path, "gb300-nvl72", {**facts, f"{adapters}/mlx5_2/board_id": "MT_0000001222\n"})
    assert "part numbers" in cause["action"]["text"]
    assert "query" not in cause["action"]["text"]


def test_what_differs_alike_is_named_once(tmp_path: Path) -> None:
    """A small BAR1 is read of NVML and twice of sysfs."""
    folder = f"{PCI}/0000:23:00.0"
    resource = json.loads(Path(BY_NAME["geforce-x4"]).read_text(encoding="utf-8"))["facts"][folder]["text"]["resource"]
    rows = resource.split("\n")
    start, _, flags = rows[1].split()
    rows[1] = f"{start} {int(start, 16) + (256 << 20) - 1:#018x} {flags}"
    facts: dict[str, Json] = {
        f"text {folder}/resource": "\n".join(rows),
        "nvml nvmlDeviceGetBAR1MemoryInfo 0000:23:00.0 ": {
            "bar1Free": 266338304, "bar1Total": 268435456, "bar1Used": 2097152},
    }  # fmt: skip
    (cause,) = causes(tmp_path, "geforce-x4", facts)
    assert cause["headline"].count("256 MiB") == 1


def test_a_board_of_a_legacy_release_is_no_second_cause(tmp_path: Path) -> None:
    """The driver says why it is not loaded, and names no bus id."""
    facts = json.loads(Path(BY_NAME["k80-x8"]).read_text(encoding="utf-8"))["facts"]
    gone: dict[str, Json] = {"missing": "absent", "detail": "NVML 9: Driver Not Loaded", "code": 9}
    changed: dict[str, Json] = {f"{key} {argument}": {**gone} for key, value in facts.items()
                                if key.startswith("nvml nvml") for argument in value}  # fmt: skip
    lines = ("NVRM: The NVIDIA Tesla K80 GPU installed in this system is",
             "NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please",
             "NVRM:  visit http://www.nvidia.com/object/unix.html for more")  # fmt: skip
    found = document(tmp_path, "k80-x8", changed, lines)
    cause = found["causes"][0]
    assert {key.split("/")[0] for key in cause["explains"]} >= {"driver.library", "kernel.gpu-start"}
    assert [each["action"] for each in cause["actions"]][:2] == ["drain", "change-setting"]
    assert any("470.xx" in each["message"] for each in found["findings"] if each["id"] == "kernel.gpu-start")
OF_GPU4 = [("06", 4), ("06", 5), ("86", 2), ("89", 1), ("8a", 1), ("8a", 2)]
"""Where the six NVLinks of GPU4 of a DGX-1 end, and the link of that GPU."""
ENDS = [(f"0000:{bus}:00.0", link) for bus, link in [*(("85", link) for link in range(6)), *OF_GPU4]]


def errors_at(folder: Path, ends: list[tuple[str, int]]) -> dict[str, int]:
    """Causes, with how much each explains, where errors of these ends are counted."""
    query = "nvml nvmlDeviceGetNvLinkErrorCounter"
    before: dict[str, Json] = {f"{query} {bdf} {link} 2": 100 for bdf, link in ends}
    after: dict[str, Json] = {f"{query} {bdf}": {f"{link} 2": 9000 for at, link in ends if at == bdf}
                              for bdf, _ in ends}  # fmt: skip
    found = document(folder, "dgx-1-v100", before, later=after)["causes"]
    return {cause["id"]: len(cause["explains"]) for cause in found}


@pytest.mark.parametrize("ends", [ENDS, ENDS[::-1]])
def test_both_ends_of_all_nvlinks_of_one_gpu_are_that_gpu(ends: list[tuple[str, int]], tmp_path: Path) -> None:
    log = [xid(bdf, 74, f"NVLink: fatal error detected on link {link}(0x10000, 0x0, 0x0)") for bdf, link in ends]
    (cause,) = causes(tmp_path, "dgx-1-v100", {}, tuple(log))
    assert cause["id"] == "gpu/0000:85:00.0/NVLink"
    assert errors_at(tmp_path, ends) == {"gpu/0000:85:00.0/NVLink": len(ends)}


def test_errors_on_a_link_that_leads_elsewhere_are_none_of_that_gpu(tmp_path: Path) -> None:
    found = errors_at(tmp_path, [*ENDS, ("0000:0a:00.0", 0)])
    assert found.pop("gpu/0000:85:00.0/NVLink") == len(ENDS)
    assert len(found) == 1


def test_a_reset_that_the_driver_asks_for_stands_beside_its_reason(tmp_path: Path) -> None:
    """Of three GPUs whose firmware fails, of an NVSwitch that stops them all, of a GPU that heat halted."""
    bdfs = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
    text = "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 10"
    found = causes(tmp_path, "dgx-b200", {key: 1 for bdf in bdfs[:3] for key in asked(bdf, 1)},
                   tuple(line for bdf in bdfs[:3] for line in (xid(bdf, 119, text), xid(bdf, 154, RESET))))  # fmt: skip
    assert [cause["id"] for cause in found] == [f"gpu/{bdf}" for bdf in bdfs[:3]]
    sxid = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Fatal, Link 32 egress non-posted PRIV error (First)"
    lines = [xid(bdf, 74, "NVLink: fatal error detected on link 3(0x0, 0x0)") for bdf in bdfs]
    lines += [xid(bdf, 154, RESET) for bdf in bdfs]
    (cause,) = causes(tmp_path, "dgx-h200", {key: 1 for bdf in bdfs for key in asked(bdf, 1)}, (sxid, *lines))
    assert cause["id"] == "nvswitch/0000:05:00.0"
    slowed = f"nvml nvmlDeviceGetCurrentClocksEventReasons {HGX}"
    halted = xid(HGX, 62, "PMU Halt: 0x1 0x2 0x3")
    (cause,) = document(tmp_path, "dgx-b200", {slowed: 0x48, **of_heat(HGX)}, (halted,),
                        later={slowed: {"": 0x48}})["causes"]  # fmt: skip
    assert cause["id"] == f"gpu/{HGX}/cooling"
    assert "reset-gpu" in [each["action"] for each in cause["actions"]]


def of_heat(bdf: str) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetTemperature {bdf} 0": 90, f"nvml nvmlDeviceGetMarginTemperature {bdf}": -2}


def test_a_reset_waits_for_nobody_who_looks_after_a_rack(tmp_path: Path) -> None:
    trays = [f"{domain}:06:00.0" for domain in ("0008", "0009", "0018", "0019")]
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetNvLinkState {bdf} {link}": 0 for bdf in trays for link in (4, 5)}
    facts |= {key: 1 for bdf in trays for key in asked(bdf, 1)}
    (cause,) = causes(tmp_path, "gb300-nvl72", facts, tuple(xid(bdf, 149, SIGNAL) for bdf in trays))
    steps = [each["action"] for each in cause["actions"]]
    assert steps == ["inspect", "drain", "stop-jobs", "reset-gpu", "reboot", "contact-vendor"]
    assert "NVSwitches" not in next(each["text"] for each in cause["actions"] if each["action"] == "reset-gpu")


def test_a_lost_gpu_comes_before_one_that_a_reset_repairs(tmp_path: Path) -> None:
    pending: dict[str, Json] = {"nvml nvmlDeviceGetRemappedRows 0000:9c:00.0": [0, 1, 1, 0]}
    log = (xid(CARD, 79, "GPU has fallen off the bus."), xid("0000:9c:00.0", 48, "DBE (double bit error) ECC Error"),
           xid("0000:9c:00.0", 63, "Row Remapper: New row (0x1) marked for remapping"))  # fmt: skip
    found = causes(tmp_path, "l40s-x8", pending, log)
    assert [cause["id"] for cause in found] == [f"gpu/{CARD}", "gpu/0000:9c:00.0/memory"]


def test_what_a_dead_switch_does_not_answer_belongs_to_it(tmp_path: Path) -> None:
    """Its own ports, and the root port above it."""
    ends = ("0000:08:00.0", "0000:09:08.0", "0000:09:10.0", "0000:00:03.0")
    silent: dict[str, Json] = {f"text {PCI}/{bdf}/current_link_speed": "Unknown\n" for bdf in ends}
    silent |= {f"text {PCI}/{bdf}/current_link_width": "63\n" for bdf in ends}
    log = tuple(xid(f"0000:{bus}:00.0", 79, "GPU has fallen off the bus.") for bus in ("0a", "0b"))
    found = document(tmp_path, "dgx-1-v100", silent, log)
    (cause,) = found["causes"]
    assert cause["id"] == "switch/0000:08:00.0"
    bad = {each["key"] for each in found["findings"] if each["status"] in ("fail", "warn", "unknown")}
    assert bad == {*cause["explains"]}


def test_a_guest_does_not_see_the_power_of_its_host(tmp_path: Path) -> None:
    log = tuple(xid(f"0000:{bus}:00.0", 79, "GPU has fallen off the bus.") for bus in ("86", "97"))
    (cause,) = causes(tmp_path, "vm-h100-x8", {}, log)
    assert cause["id"] == "host/host/physical host"
    assert [each["action"] for each in cause["actions"]] == ["drain", "contact-host"]
    assert "vfio" in cause["actions"][-1]["text"]


def test_gpus_that_were_set_aside_alike_are_one_setting(tmp_path: Path) -> None:
    aside = ("0000:ba:00.0", "0000:bb:00.0")
    facts: dict[str, Json] = {f"link {PCI}/{bdf}/driver": "../../bus/pci/drivers/vfio-pci" for bdf in aside}
    (cause,) = causes(tmp_path, "l40s-x8", {**facts, **TWO_LESS})
    assert cause["component"]["part"] == "kernel driver"
    assert "0000:ba:00.0 0000:bb:00.0 | xargs -n 1 driverctl unset-override" in cause["actions"][0]["text"]


def test_memory_that_c2c_leads_to_is_no_node_without_it(tmp_path: Path) -> None:
    facts: dict[str, Json] = {"nvml nvmlDeviceGetC2cModeInfo 0018:01:00.0": {"isC2cEnabled": 0},
                              "nvml nvmlDeviceGetNumaNodeId 0018:01:00.0": GONE}  # fmt: skip
    (cause,) = causes(tmp_path, "gb200-nvl72", facts)
    assert cause["id"] == "gpu/0018:01:00.0/C2C"


def test_a_tray_has_no_nvswitches(tmp_path: Path) -> None:
    trays = [f"{domain}:06:00.0" for domain in ("0008", "0009", "0018", "0019")]
    (cause,) = causes(tmp_path, "gb300-nvl72", {}, tuple(xid(bdf, 149, SIGNAL) for bdf in trays))
    assert (cause["id"], cause["component"]["slot"]) == ("host/host/NVSwitches", "rack")
