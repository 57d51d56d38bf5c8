"""What devices share: the firmware, fans, board or switch of several is one cause, and the first step is about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from changed_box import OF_H200, PCI, causes, document

from dgxcheck.facts.missing import Json


def port_down(*devices: str) -> dict[str, Json]:
    return {f"text /sys/class/infiniband/{device}/ports/1/{name}": text for device in devices
            for name, text in (("state", "1: DOWN\n"), ("phys_state", "2: Polling\n"))}  # fmt: skip


def dead(bdf: str) -> str:
    return f"mlx5_core {bdf}: poll_health:889:(pid 0): Fatal error 1 detected"


@pytest.mark.parametrize(("base", "device", "bdf"), [
    ("hgx-h100", "mlx5_2", "0000:4f:00.0"), ("dgx-b300", "mlx5_12", "0000:57:00.0"),
])  # fmt: skip
def test_firmware_that_is_dead_comes_before_its_port_that_is_down(
    base: str, device: str, bdf: str, tmp_path: Path
) -> None:
    (cause,) = causes(tmp_path, base, port_down(device), (dead(bdf),))
    assert cause["id"] == f"hca/{bdf}"
    assert [each["action"] for each in cause["actions"]][:3] == ["drain", "inspect", "power-cycle"]
    assert f"mstdump {bdf}" in cause["actions"][1]["text"]


def hot(bdf: str, celsius: int) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetTemperature {bdf} 0": celsius}


@pytest.mark.parametrize("gpus", [(0, 1, 2), (4, 5), (0, 3, 5, 7)])
def test_gpus_that_are_hot_alike_share_their_fans(gpus: tuple[int, ...], tmp_path: Path) -> None:
    facts = {key: fact for gpu in gpus for key, fact in hot(OF_H200[gpu], 83).items()}
    (cause,) = causes(tmp_path, "dgx-h200", facts)
    assert cause["id"] == "host/host/cooling"
    assert "fans" in cause["actions"][0]["text"]
    assert not [each["text"] for each in cause["actions"] if "siblings" in each["text"]]


def test_gpus_apart_that_are_hot_have_no_cool_siblings(tmp_path: Path) -> None:
    found = causes(tmp_path, "dgx-h200", {**hot(OF_H200[0], 83), **hot(OF_H200[5], 83)})
    assert {each["id"] for each in found} == {f"gpu/{OF_H200[gpu]}/cooling" for gpu in (0, 5)}
    assert all("fans and inlet air" in each["actions"][0]["text"] for each in found)
    texts = [action["text"] for each in found for action in each["actions"]]
    assert not [text for text in texts if "siblings at similar power are cool" in text]


def test_one_gpu_that_is_hot_has_a_heat_sink_of_its_own(tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, "dgx-h200", hot(OF_H200[4], 83))
    assert cause["id"] == f"gpu/{OF_H200[4]}/cooling"
    assert [each["action"] for each in cause["actions"][:2]] == ["drain", "inspect"]
    assert "its siblings at similar power are cool" in cause["actions"][1]["text"]


OF_HGX = ("18", "40", "4f", "5e", "9a", "c0", "ce", "dc")
OF_DGX = (*(f"{bus}:00.0" for bus in OF_HGX), "29:00.0", "29:00.1", "aa:00.0", "aa:00.1")


def logged(base: str, line: str) -> tuple[str, ...]:
    """The line of each HCA of the box."""
    adapters = OF_DGX if base == "dgx-h100" else [f"{bus}:00.0" for bus in OF_HGX]
    return tuple(f"mlx5_core 0000:{bdf}: {line}" for bdf in adapters)


@pytest.mark.parametrize(("base", "line", "component", "text"), [
    ("dgx-h100", "temp_warn:159:(pid 9): High temperature on sensors with bit set 0 1", "cooling", "fans"),
    ("dgx-h100", "Port module event[error]: module 0, Cable error, High Temperature", "cooling", "fans"),
    ("hgx-h100", "Detected insufficient power on the PCIe slot (27W).", "power of PCIe slots", "BIOS"),
])  # fmt: skip
def test_what_every_adapter_reports_of_its_surroundings(
    base: str, line: str, component: str, text: str, tmp_path: Path
) -> None:
    (cause,) = causes(tmp_path, base, {}, logged(base, line))
    assert cause["id"] == f"host/host/{component}"
    assert cause["actions"][0]["action"] == "inspect"
    assert text in cause["actions"][0]["text"]


def test_a_broken_module_of_every_adapter_is_not_the_air(tmp_path: Path) -> None:
    line = "Port module event[error]: module 0, Cable error, Bus stuck (I2C or data shorted)"
    found = causes(tmp_path, "dgx-h100", {}, logged("dgx-h100", line))
    assert all("cooling" not in each["id"] for each in found)
    hot = logged("dgx-h100", "Port module event[error]: module 0, Cable error, High Temperature")
    mixed = causes(tmp_path, "dgx-h100", {}, (*hot[:-1], logged("dgx-h100", line)[-1]))
    assert {each["id"] for each in mixed} == {"host/host/cooling", "port/0000:aa:00.1/1"}


@pytest.mark.parametrize(("base", "bdf", "beside"), [
    ("dgx-a100", "0000:e1:00.0", ["mlx5_10", "mlx5_11"]), ("dgx-h100", "0000:29:00.1", ["mlx5_2", "mlx5_1"]),
])  # fmt: skip
def test_the_reset_of_an_adapter_disturbs_its_other_function(
    base: str, bdf: str, beside: list[str], tmp_path: Path
) -> None:
    (cause,) = causes(tmp_path, base, {}, (dead(bdf),))
    inspect = next(each for each in cause["actions"] if each["action"] == "inspect")
    assert inspect["disturbs"] == beside
    assert f"with {beside[1]}" in inspect["text"]


def test_the_ports_of_both_functions_go_down_with_their_chip(tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, "dgx-h100", port_down("mlx5_1", "mlx5_2"), (dead("0000:29:00.0"),))
    assert cause["id"] == "hca/0000:29:00.0"


@pytest.mark.parametrize(("counter", "text"), [
    ("port_rcv_remote_physical_errors", "ibqueryerrors"), ("port_xmit_discards", "ibqueryerrors"),
    ("port_rcv_constraint_errors", "smpquery pkeys"),
])  # fmt: skip
def test_what_the_fabric_does_is_no_fault_of_the_cable_here(counter: str, text: str, tmp_path: Path) -> None:
    later: dict[str, Json] = {"/sys/class/infiniband/mlx5_5/ports/1/counters": {"text": {counter: "155\n"}}}
    (cause,) = document(tmp_path, "dgx-h100", {}, (), later)["causes"]
    assert cause["id"] == "fabric/InfiniBand fabric"
    assert [each["action"] for each in cause["actions"]] == ["inspect"]
    assert text in cause["actions"][0]["text"]


HUNG = ("INFO: task nvidia-smi:51412 blocked for more than 120 seconds.", "Call Trace:", " <TASK>",
        " nvidia_open+0x3a/0x60 [nvidia]", " </TASK>")  # fmt: skip


@pytest.mark.parametrize(("base", "bdf", "text"), [
    ("dgx-b200", "0000:52:00.0", "119, Timeout after 45s of waiting for RPC response from GPU2 GSP! Expected function"
     " 76 (GSP_RM_CONTROL) (0x20801702 0x8)."),
    ("dgx-h200", "0000:52:00.0", "79, GPU has fallen off the bus."),
])  # fmt: skip
def test_tasks_that_wait_for_a_gpu_are_no_fault_of_the_driver(base: str, bdf: str, text: str, tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, base, {}, (f"NVRM: Xid (PCI:{bdf[:-2]}): {text}", *HUNG))
    assert cause["id"] == f"gpu/{bdf}"
    assert [each["action"] for each in cause["actions"]][:2] == ["drain", "reboot"]
    assert "reset-gpu" not in [each["action"] for each in cause["actions"]]


def test_errors_of_every_device_below_a_switch_are_the_switch(tmp_path: Path) -> None:
    """The ports above them count none: they send what is damaged."""
    text = "RxErr 0\nBadTLP 90\nBadDLLP 30\nRollover 0\nTimeout 0\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\n"
    below = ("0000:07:00.0", "0000:0c:00.0", "0000:0f:00.0", "0000:12:00.0")
    errors: dict[str, Json] = {"aer_dev_correctable": f"{text}TOTAL_ERR_COR 120\n"}
    later: dict[str, Json] = {f"{PCI}/{bdf}": {"text": errors} for bdf in below}
    (cause,) = document(tmp_path, "dgx-a100", {}, (), later)["causes"]
    assert cause["id"] == "switch/0000:01:00.0"
    (first, *others) = document(tmp_path, "dgx-a100", {}, (), {key: later[key] for key in [*later][:3]})["causes"]
    assert others
    assert first["id"] != "switch/0000:01:00.0"


def off_bus(bdf: str) -> str:
    return f"NVRM: Xid (PCI:{bdf[:-2]}): 79, pid=4242, name=python3, GPU has fallen off the bus."


ONES: Json = {"rows": {f"0{row}0": "ff" * 16 for row in range(4)}, "size": 4096}
LOST: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
OF_A100 = ["07:00.0", "0f:00.0", "47:00.0", "4e:00.0", "87:00.0", "90:00.0", "b7:00.0", "bd:00.0"]
SWITCHES = {"dgx-a100": ["c4", "c5", "c6", "c7", "c8", "c9"], "dgx-h100": ["05", "06", "07", "08"],
            "dgx-2": ["c1", "c2", "c3", "c5", "c6", "c7"]}  # fmt: skip
HALF_OF_DGX_2 = ["b7", "b9", "bc", "be", "e0", "e2", "e5", "e7"]


def silent(bdfs: list[str], numbers: range) -> dict[str, Json]:
    """Config space that reads ones, and GPUs of these numbers that NVML lost."""
    config: dict[str, Json] = {f"data {PCI}/{bdf}/config": ONES for bdf in bdfs}
    return config | {f"nvml nvmlDeviceGetHandleByIndex {number}": LOST for number in numbers}


@pytest.mark.parametrize(("base", "gpus", "numbers", "logged"), [
    ("dgx-a100", [f"0000:{bdf}" for bdf in OF_A100], range(8), True),
    ("dgx-a100", [f"0000:{bdf}" for bdf in OF_A100], range(8), False), ("dgx-h100", OF_H200, range(8), True),
    ("dgx-2", [f"0000:{bus}:00.0" for bus in HALF_OF_DGX_2], range(8, 16), False),
])  # fmt: skip
def test_gpus_and_nvswitches_of_a_board_that_are_lost_are_one(
    base: str, gpus: list[str], numbers: range, logged: bool, tmp_path: Path
) -> None:
    """Adapters at the same sockets respond, so that neither these nor the host's power supplies are to blame."""
    switches = [f"0000:{bus}:00.0" for bus in SWITCHES[base]]
    of_switches = (f"nvidia-nvswitch0: SXid (PCI:{bdf}): 10001, Fatal, Host_priv_error" for bdf in switches)
    log = (*map(off_bus, gpus), *of_switches) if logged else ()
    found = document(tmp_path, base, silent([*gpus, *switches], numbers), log)
    (cause,) = found["causes"]
    assert cause["id"] == "host/host/GPU baseboard"
    assert [each["action"] for each in cause["actions"]] == ["inspect", "drain", "power-cycle", "contact-vendor"]
    assert cause["confidence"]["reason"] == "rest-responds"
    assert cause["confidence"]["unaffected"]
    assert not [each for each in found["findings"] if each["status"] == "unknown"]


def test_a_board_whose_nvswitches_adapters_lead_to_is_lost_with_these(tmp_path: Path) -> None:
    bridges = [f"0000:{function}" for function in ("05:00.0", "05:00.1", "06:00.0", "06:00.1")]
    of_vpd: dict[str, Json] = {f"data {PCI}/{bdf}/vpd": {"missing": "garbled"} for bdf in bridges}
    (cause,) = causes(tmp_path, "dgx-b200", silent([*OF_H200, *bridges], range(8)) | of_vpd)
    assert cause["id"] == "host/host/GPU baseboard"
    assert len(cause["explains"]) == len(OF_H200) + len(bridges)


@pytest.mark.parametrize(("gpus", "switches", "expected"), [
    (0, 4, ["host/host/NVSwitches"]),
    (0, 1, ["nvswitch/0000:05:00.0"]),
    (8, 3, ["host/host/GPU baseboard"]),
    (8, 1, ["host/host/GPU baseboard", "nvswitch/0000:05:00.0"]),
    (1, 4, [f"gpu/{OF_H200[0]}", "host/host/NVSwitches"]),
])  # fmt: skip
def test_what_is_lost_of_a_board_without_all_gpus_is_not_the_board(
    gpus: int, switches: int, expected: list[str], tmp_path: Path
) -> None:
    lost = [*OF_H200[:gpus], *(f"0000:{bus}:00.0" for bus in SWITCHES["dgx-h100"][:switches])]
    found = causes(tmp_path, "dgx-h100", silent(lost, range(gpus)), tuple(map(off_bus, OF_H200[:gpus])))
    assert sorted(each["id"] for each in found) == expected


def test_a_board_that_is_off_before_the_driver_starts_keeps_it_from_starting(tmp_path: Path) -> None:
    switches = [f"0000:{bus}:00.0" for bus in SWITCHES["dgx-h100"]]
    facts = silent([*OF_H200, *switches], range(0)) | {"nvml nvmlInit": {"missing": "absent", "detail": "NVML 9"}}
    (cause,) = causes(tmp_path, "dgx-h100", facts)
    assert (cause["id"], len(cause["explains"])) == ("host/host/GPU baseboard", 13)


@pytest.mark.parametrize(("base", "bdf"), [("dgx-a100", "0000:0c:00.0"), ("dgx-h100", "0000:18:00.0")])
def test_what_a_dead_adapter_does_not_answer_is_no_finding_of_its_own(base: str, bdf: str, tmp_path: Path) -> None:
    found = document(tmp_path, base, silent([bdf], range(0)))
    assert [each["id"] for each in found["causes"]] == [f"hca/{bdf}"]
    assert not [each for each in found["findings"] if each["status"] == "unknown"]


def link_fault(number: int, bus: str, port: int) -> str:
    return f"nvidia-nvswitch{number}: SXid (PCI:0000:{bus}:00.0): 20034, Fatal, Link {port:02d} LTSSM Fault Up"


@pytest.mark.parametrize(("base", "ends", "component"), [
    ("dgx-2", (("61", 8), ("c1", 8)), "nvswitch/0000:61:00.0/0000:c1:00.0"),
    ("dgx-2", (("66", 10), ("c6", 11)), "nvswitch/0000:66:00.0/0000:c6:00.0"),
    ("dgx-2", (("61", 8), ("62", 8)), "host/host/NVSwitches"),  # of one board: GPUs are joined to both
    ("dgx-2", (("61", 8), ("62", 8), ("c1", 8)), "host/host/NVSwitches"),
    ("dgx-a100", (("c4", 30), ("c6", 31)), "host/host/NVSwitches"),
])  # fmt: skip
def test_nvswitches_of_two_boards_that_name_a_port_at_once_share_an_nvlink(
    base: str, ends: tuple[tuple[str, int], ...], component: str, tmp_path: Path
) -> None:
    log = tuple(link_fault(number, *end) for number, end in enumerate(ends))
    (cause,) = causes(tmp_path, base, {}, log)
    assert (cause["id"], len(cause["explains"])) == (component, len(ends))
    assert "reset-gpu" in [each["action"] for each in cause["actions"]]


LABEL = "CPU_SrcID#0_MC#1_Chan#0_DIMM#0"


def ecc(kind: str, label: str, count: int = 1) -> str:
    return f"EDAC MC1: {count} {kind} memory read error on {label} (channel:0 slot:0 page:0x4f5c offset:0x0 grain:32)"


@pytest.mark.parametrize(("others", "component"), [
    ((), "host/host/CPUs"), ((ecc("CE", LABEL),), f"host/host/memory/{LABEL}"),
    ((ecc("UE", LABEL),), f"host/host/memory/{LABEL}"),
])  # fmt: skip
def test_a_storm_of_errors_is_of_what_else_has_some(others: tuple[str, ...], component: str, tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, "dgx-h100", {}, ("mce: CMCI storm detected: switching to poll mode", *others))
    assert cause["id"] == component


@pytest.mark.parametrize("base", ["dgx-h100", "pcie-x8"])
@pytest.mark.parametrize(("labels", "component"), [
    ((LABEL,), f"host/host/memory/{LABEL}"), ((LABEL, LABEL.replace("Chan#0", "Chan#1")), "host/host/memory/mc1"),
    (("any memory",), "host/host/memory/mc1"),
])  # fmt: skip
def test_the_only_dimm_that_a_controller_names_is_the_cause(
    base: str, labels: tuple[str, ...], component: str, tmp_path: Path
) -> None:
    (cause,) = causes(tmp_path, base, {}, tuple(ecc("UE", label) for label in labels))
    assert cause["id"] == component


LOCKUP = "watchdog: BUG: soft lockup - CPU#12 stuck for 26s! [kworker/12:1:4242]"


@pytest.mark.parametrize(("frame", "words"), [
    ("RIP: 0010:mlx5_cmd_exec+0x1d/0x40 [mlx5_core]", "CPUs locked up 1 time: kworker/12:1 (module mlx5_core)"),
    ("RIP: 0010:_nv012345rm+0x1d/0x40 [nvidia]", "tasks hung in it 1 time: kworker/12:1 (module nvidia)"),
    ("RIP: 0010:_nv012345rm+0x1d/0x40 [nvidia_uvm]", "tasks hung in it 1 time: kworker/12:1 (module nvidia_uvm)"),
])  # fmt: skip
def test_a_lockup_names_the_module_that_it_is_in(frame: str, words: str, tmp_path: Path) -> None:
    found = document(tmp_path, "dgx-a100", {}, (LOCKUP, frame))["findings"]
    assert [each["message"] for each in found if each["status"] == "warn"] == [words]


FULL = "Delayed block allocation failed for inode 12 at logical offset 0 with max blocks 8 with error 28"


@pytest.mark.parametrize(("line", "severity", "actions", "words"), [
    ("EXT4-fs (nvme0n1p2): Remounting filesystem read-only", "fail", ["inspect", "drain", "reboot"],
     "smartctl"),
    ("XFS (nvme0n1p2): Filesystem has been shut down due to log error (0x2).", "fail",
     ["inspect", "drain", "reboot"], "xfs_repair -n"),
    (f"EXT4-fs (nvme0n1p2): {FULL}", "warn", ["inspect"], "df -h"),
])  # fmt: skip
def test_a_file_system_that_takes_no_writes_fails_and_one_that_is_full_needs_room(
    line: str, severity: str, actions: list[str], words: str, tmp_path: Path
) -> None:
    (cause,) = causes(tmp_path, "dgx-a100", {}, (line,))
    assert (cause["severity"], [each["action"] for each in cause["actions"]]) == (severity, actions)
    assert words in cause["actions"][0]["text"]


def test_an_smmu_that_waits_in_vain_is_no_pcie_error(tmp_path: Path) -> None:
    line = "arm-smmu-v3 arm-smmu-v3.0.auto: CMD_SYNC timeout at 0x00000081 [hwprod 0x00000094, hwcons 0x00000081]"
    (cause,) = causes(tmp_path, "gb200-nvl72", {}, (line,))
    assert cause["faults"] == ["iommu-unanswered"]
    assert [each["action"] for each in cause["actions"]] == ["inspect", "drain", "reboot", "contact-vendor"]


@pytest.mark.parametrize(("more", "urgency"), [(20, "watch"), (50_000, "next-drain")])
def test_retransmissions_are_due_by_their_rate(more: int, urgency: str, tmp_path: Path) -> None:
    counters = "text /sys/class/infiniband/mlx5_1/ports/1/hw_counters/out_of_sequence"
    later: dict[str, Json] = {"/sys/class/infiniband/mlx5_1/ports/1/hw_counters": {
        "text": {"out_of_sequence": f"{more}\n"}}}  # fmt: skip
    (cause,) = document(tmp_path, "dgx-1-v100", {counters: "0\n"}, later=later)["causes"]
    assert (cause["id"], cause["actions"][-1]["urgency"]) == ("port/0000:0c:00.0/1", urgency)
