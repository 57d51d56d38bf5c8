"""GPUs that are missing, lost or did not start, and drivers that found none: one cause, at the right place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from changed_box import HOT, LOST, causes, off_the_bus
from judging import judged
from sample import BY_NAME
from wired import wired

from dgxcheck.facts.missing import Json

OF_K80 = ("06", "07", "0a", "0b", "85", "86", "89", "8a")
UNPOWERED = ("NVRM: GPU 0000:{}:00.0: GPU does not have the necessary power cables connected.",
             "NVRM: GPU 0000:{}:00.0: RmInitAdapter failed! (0x24:0x1c:1482)")  # fmt: skip


@pytest.mark.parametrize(("base", "buses", "lines", "component", "step"), [
    ("l40s-x8", ("3d", "ba"), UNPOWERED, "host/host/power supply", "inspect"),
    ("k80-x8", OF_K80, ("pci 0000:{}:00.0: BAR 1: no space for [mem size 0x400000000 64bit pref]",),
     "host/host/large BARs", "change-setting"),
    ("l40s-x8", ("ba", "bb"), ("pci 0000:{}:00.0: BAR 1: no space for [mem size 0x1000000000 64bit pref]",),
     "host/host/large BARs", "change-setting"),
    ("pcie-x8", ("88", "89"), ("NVRM: GPU 0000:{}:00.0: RmInitAdapter failed! (0x62:0x51:1941)",),
     "host/host/free memory", "inspect"),
    ("l40s-x8", ("ba", "bb"), ("nouveau 0000:{}:00.0: secboot: error during falcon reset: -110",
     "nouveau 0000:{}:00.0: gr: init failed, -110"), "driver/NVIDIA driver", "change-setting"),
])  # fmt: skip
def test_gpus_that_do_not_start_for_one_reason_share_that(
    base: str, buses: tuple[str, ...], lines: tuple[str, ...], component: str, step: str, tmp_path: Path
) -> None:
    """Also those below one switch, which is not at fault."""
    gone: Json = {"missing": "unsupported", "code": 2, "detail": "NVML 2: Invalid Argument"}
    listed = json.loads(Path(BY_NAME[base]).read_text(encoding="utf-8"))["facts"]["nvml nvmlDeviceGetHandleByIndex"]
    left: list[Json] = [bdf for bdf in listed.values() if isinstance(bdf, str) and bdf[5:7] not in buses]
    facts: dict[str, Json] = {"nvml nvmlDeviceGetCount": len(left)}
    facts |= {f"nvml nvmlDeviceGetHandleByIndex {n}": left[n] if n < len(left) else gone for n in range(8)}
    (cause,) = causes(tmp_path, base, facts, tuple(line.format(bus) for bus in buses for line in lines))
    assert (cause["id"], len(cause["explains"])) == (component, 2 * len(buses))
    assert next(each["action"] for each in cause["actions"] if each["action"] != "drain") == step


@pytest.mark.parametrize(("base", "component"), [
    ("dgx-h100", "host/host/GPU baseboard"), ("pcie-x8", "host/host/power supply"),
])  # fmt: skip
def test_gpus_that_are_all_off_the_bus_are_not_the_drivers(base: str, component: str, tmp_path: Path) -> None:
    """Their config space reads all ones, and the log begins later."""
    gpus = wired(base).gpus
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetHandleByIndex {gpu}": LOST for gpu in range(len(gpus))}
    assert [cause["id"] for cause in causes(tmp_path, base, facts)] == ["driver/NVIDIA driver"]
    assert [cause["id"] for cause in causes(tmp_path, base, facts | off_the_bus(*gpus))] == [component]


IS_LOST: dict[str, Json] = {"nvml nvmlDeviceGetHandleByIndex 2": LOST}
IS_SILENT: dict[str, Json] = {"nvml nvmlDeviceGetPowerUsage 0000:0a:00.0": {"missing": "timeout"}}


@pytest.mark.parametrize(("task", "facts", "due"), [
    ("nvidia-smi", IS_LOST, [["gpu-lost", "driver-stuck"]]), ("nv-hostengine", {}, [["driver-stuck"]]),
    ("nvidia-smi", IS_SILENT, [["driver-unresponsive", "driver-stuck"]]),
    ("python3", IS_LOST, [["gpu-lost"], ["tasks-hung"]]),
])  # fmt: skip
def test_nvidia_smi_hangs_in_the_driver(
    task: str, facts: dict[str, Json], due: list[list[str]], tmp_path: Path
) -> None:
    """Also where the log has no stack of it; of a program nobody knows for what it waits."""
    found = causes(tmp_path, "dgx-1-v100", facts, (f"INFO: task {task}:4711 blocked for more than 120 seconds.",))
    assert [cause["faults"] for cause in found] == due


NO_MODULES: dict[str, Json] = {
    "names /sys/module": ["nvme"], "text /proc/driver/nvidia/version": {"missing": "absent"},
    "nvml nvmlInit": {"missing": "absent", "code": 9, "detail": "NVML 9: driver not loaded"},
}  # fmt: skip


def test_a_kernel_whose_modules_were_not_built_is_one_cause(tmp_path: Path) -> None:
    """After an update: those of the GPUs and of the adapters are built or installed with it alike."""
    (cause,) = causes(tmp_path, "dgx-h100", NO_MODULES | {"names /sys/class/infiniband": {"missing": "absent"}})
    assert (cause["id"], cause["action"]["action"]) == ("host/host/kernel modules", "load-module")
    assert "dkms status" in cause["action"]["text"]


def test_a_driver_that_finds_no_room_for_bars_does_not_stay_loaded(tmp_path: Path) -> None:
    lines = tuple(f"pci {bdf}: BAR 1: no space for [mem size 0x1000000000 64bit pref]" for bdf in wired("pcie-x8").gpus)
    (cause,) = causes(tmp_path, "pcie-x8", NO_MODULES, lines)
    assert (cause["id"], [each["action"] for each in cause["actions"]]) == (
        "host/host/large BARs", ["drain", "change-setting", "reboot"])  # fmt: skip


def test_a_module_that_was_refused_is_loaded_by_modprobe(tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, "pcie-x4", NO_MODULES, ("Loading of module with unavailable key is rejected",))
    steps = {each["action"]: each["text"] for each in cause["actions"]}
    assert steps["change-setting"].startswith("enrol the key")
    assert "run modprobe nvidia once it is fixed" in steps["load-module"]


@pytest.mark.parametrize(("base", "there", "due"), [
    ("pcie-x8", False, ["fail slot/missing GPU"]), ("pcie-x8", True, ["warn slot/missing GPU"]),
    ("gb200-nvl72", False, ["fail slot/missing GPU"]), ("dgx-h100", False, ["fail host/host/GPU baseboard"]),
    ("vm-h100-x8", False, []),
])  # fmt: skip
def test_a_driver_that_found_no_gpu(base: str, there: bool, due: list[str], tmp_path: Path) -> None:
    """Nothing else tells of a machine without a reference that it had some; a guest may never have had one."""
    facts = {"nvml nvmlInit": {"missing": "absent", "code": 9, "detail": "NVML 9: driver not loaded"}}
    path = tmp_path / "none.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": base, "facts": {} if there else facts,
                                "drop": [] if there else wired(base).gpus,
                                "add": {"kmsg 40": "3600.0;NVRM: No NVIDIA GPU found."}}))  # fmt: skip
    assert [f"{cause['severity']} {cause['id']}" for cause in judged(str(path))[1]["causes"]] == due


def test_a_guest_that_lost_a_gpu_says_so_by_its_minor_number(tmp_path: Path) -> None:
    path = tmp_path / "guest.json"
    gone = wired("vm-h100-x8").gpus[2]
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "vm-h100-x8", "drop": [gone]}))
    (cause,) = judged(str(path))[1]["causes"]
    assert (cause["id"], cause["actions"][0]["action"]) == ("slot/missing GPU", "inspect")


@pytest.mark.parametrize(("facts", "due"), [
    ({}, ["gpu.count"]), ({"text /proc/driver/nvidia/version": {"missing": "absent"}}, []),
    ({"text /proc/sys/kernel/osrelease": "5.15.148-tegra\n"}, []),
])  # fmt: skip
def test_a_driver_without_gpus_had_some(facts: Json, due: list[str], tmp_path: Path) -> None:
    """It is loaded where it finds one alone; of a Jetson none is on PCI."""
    path = tmp_path / "none.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "l40s-x8", "drop": wired("l40s-x8").gpus,
                                "facts": facts}))  # fmt: skip
    assert [each["id"] for each in judged(str(path))[1]["findings"] if each["status"] == "fail"] == due


@pytest.mark.parametrize(("base", "gone", "due"), [
    ("dgx-h100", (4, 5, 6, 7), "host/host/GPU baseboard"), ("dgx-h100", (0, 2, 5, 7), "host/host/GPU baseboard"),
    ("dgx-2", range(8, 16), "host/host/GPU baseboard"),
    ("dgx-a100", (1, 6), "slot/below 0000:0e:00.0, 0000:b6:00.0/missing GPU"),
    ("dgx-1-v100", (2, 3), "slot/0000:08:00.0/missing GPU"),
    ("gb300-nvl72", (0,), "slot/0008:05:00.0/missing GPU"),
    ("k80-x8", (0, 7), "slot/below 0000:05:08.0, 0000:88:10.0/missing GPU"),
    ("k80-x8", (4, 5), "slot/0000:83:00.0/empty PCIe switch"),
])  # fmt: skip
def test_half_of_the_gpus_are_missing_for_one_reason(base: str, gone: Sequence[int], due: str, tmp_path: Path) -> None:
    """What connects and feeds them all is to blame where no bridge is above those that are missing alone."""
    path = tmp_path / "half.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": base, "facts": {}, "add": {},
                                "drop": [wired(base).gpus[gpu] for gpu in gone]}))  # fmt: skip
    found = [cause["id"] for cause in judged(str(path))[1]["causes"]]
    assert due in found
    assert not any("ACS" in cause for cause in found)


def test_who_has_a_lost_gpu_open_does_not_hold_the_driver(tmp_path: Path) -> None:
    held = f"NVRM: Attempting to remove device {HOT} with non-zero usage count!"
    assert [cause["id"] for cause in causes(tmp_path, "dgx-h200", {}, (held,))] == ["driver/NVIDIA driver"]
    fallen = (f"NVRM: GPU {HOT}: GPU has fallen off the bus.", held)
    assert [cause["id"] for cause in causes(tmp_path, "dgx-h200", {}, fallen)] == [f"gpu/{HOT}"]


@pytest.mark.parametrize(("excluded", "faults"), [
    ("GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77", ["gpu-excluded"]), ("", ["gpu-lost"]),
    ("GPU-00000000-0000-0000-0011-000000001a00", ["gpu-lost"]),  # which NVML lists
])  # fmt: skip
def test_a_gpu_that_the_driver_leaves_out_is_not_lost(excluded: str, faults: list[str], tmp_path: Path) -> None:
    """NVreg_ExcludedGpus: NVML does not list it."""
    found = causes(tmp_path, "l40s-x8", {
        "nvml nvmlDeviceGetCount": 7, "text /proc/driver/nvidia/params": f'EnableMSI: 1\nExcludedGpus: "{excluded}"\n',
        "nvml nvmlDeviceGetHandleByIndex 7": {"missing": "unsupported", "detail": "NVML 2: Invalid Argument"},
    })  # fmt: skip
    assert [(each["component"]["bdf"], each["faults"]) for each in found] == [("0000:bb:00.0", faults)]


def test_gpus_of_a_switch_that_do_not_start_for_two_reasons_have_two_causes(tmp_path: Path) -> None:
    gone: Json = {"missing": "unsupported", "code": 2, "detail": "NVML 2: Invalid Argument"}
    facts: dict[str, Json] = {"nvml nvmlDeviceGetCount": 6,
                              **{f"nvml nvmlDeviceGetHandleByIndex {index}": gone for index in (6, 7)}}  # fmt: skip
    found = causes(tmp_path, "pcie-x8", facts, ("NVRM: GPU 0000:88:00.0: RmInitAdapter failed! (0x62:0x51:1941)",
                   "pci 0000:89:00.0: BAR 1: no space for [mem size 0x400000000 64bit pref]"))  # fmt: skip
    assert not [cause["id"] for cause in found if cause["id"].startswith("switch")]
