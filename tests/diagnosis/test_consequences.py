"""What follows from a fault, and is found beside it, takes neither the place of its remedy nor a cause of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from changed_box import DIED, causes, document
from judging import judged, of_text
from sample import BY_NAME
from test_public_reports import IN_NO_DOMAIN, OF_H100, OFF, RESET, links_off, lost, of, xid
from test_shared_faults import HUNG

from dgxcheck.facts.missing import Json

PCI = "/sys/bus/pci/devices"


def all_ones(bdf: str) -> dict[str, Json]:
    return {f"data {PCI}/{bdf}/config": {"size": 64, "rows": {f"0{row}0": "f" * 32 for row in range(4)}},
            f"text {PCI}/{bdf}/current_link_speed": "Unknown\n", f"text {PCI}/{bdf}/current_link_width": "63\n"}


@pytest.mark.parametrize(("base", "bus", "index", "port"), [
    ("dgx-h100", "43", 1, "0000:42:00.0"), ("l40s-x8", "9b", 4, "0000:9a:00.0"),
])  # fmt: skip
def test_a_slot_whose_gpu_fell_off_the_bus_was_not_pulled(
    base: str, bus: str, index: int, port: str, tmp_path: Path
) -> None:
    """Linux drivers/pci/hotplug/pciehp_ctrl.c: whatever ends the link, the slot logs that its link and card are gone.
    NVIDIA's action for Xid 79 is RESTART_BM."""
    slot = f"pcieport {port}: pciehp: Slot(17): "
    log = (slot + "Link Down", slot + "Card not present", xid(bus, 79, OFF))
    (cause,) = causes(tmp_path, base, lost(bus, index), log)
    assert cause["id"] == f"gpu/0000:{bus}:00.0"
    assert [each["action"] for each in cause["actions"]][:3] == ["drain", "reboot", "power-cycle"]


def test_a_slot_that_lost_an_unknown_device_is_looked_at(tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, "l40s-x8", {}, ("pcieport 0000:9a:00.0: pciehp: Slot(5): Link Down",))
    assert (cause["action"]["action"], "pulled" in cause["action"]["text"]) == ("inspect", True)


def test_the_port_of_an_adapter_that_is_gone_needs_no_cable(tmp_path: Path) -> None:
    bdf, port = "0000:40:00.0", "/sys/class/infiniband/mlx5_3/ports/1"
    down = {f"text {port}/state": "1: DOWN\n", f"text {port}/phys_state": "2: Polling\n"}
    (cause,) = causes(tmp_path, "dgx-h100", {**all_ones(bdf), **down}, (f"mlx5_core {bdf}: {DIED[1]}",))
    assert (cause["id"], cause["action"]["action"]) == (f"hca/{bdf}", "inspect")
    assert "lspci -x" in cause["action"]["text"]
    assert "cable" not in cause["action"]["text"]


DBE = "pid=911, name=python3, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer"
FIRMWARE = "mlx5_core 0000:c0:00.0: print_health_info:445:(pid 0): synd 0x1: firmware internal error"
STALLED = ("mlx5_core 0000:c0:00.0 ib9: TX timeout detected", "ib9: transmit timeout: latency 1500 msecs")
CRASHED = "python3[911]: segfault at 10 ip 00007f12 sp 00007ffc error 4 in libcuda.so.580.105.08[7f1200000000+1000]"
MANAGER = "nv-fabricmanager[2301]: segfault at 0 ip 00007f3c sp 00007ffc error 4 in nv-fabricmanager[55d0+1000]"
BLOCKED, LOCKED = ("INFO: task python3:911 blocked for more than 120 seconds.",
                   "watchdog: BUG: soft lockup - CPU#12 stuck for 23s! [python3:911]")  # fmt: skip
DISK_LINK = "link/0000:22:00.0"
DISK_AER = (
    "nvme nvme0: pci function 0000:22:00.0",
    "nvme 0000:22:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)",
    "nvme 0000:22:00.0:   device [144d:a824] error status/mask=00004000/00400000",
    "nvme 0000:22:00.0:    [14] CmpltTO                (First)",
    "nvme nvme0: Device not ready; aborting reset, CSTS=0x1",
)  # fmt: skip
DISK_FAILED = ("nvme nvme1: I/O 12 QID 3 timeout, aborting",
               "Buffer I/O error on dev nvme1n1p2, logical block 1234, lost sync page write")  # fmt: skip
OOPS = ("BUG: kernel NULL pointer dereference, address: 0000000000000010", "RIP: 0010:_nv040123rm+0x12/0x40 [nvidia]")


@pytest.mark.parametrize(("base", "log", "due"), [
    *(("dgx-h100", (xid("9d", 79, OFF), line), ["gpu/0000:9d:00.0"]) for line in (CRASHED, MANAGER, BLOCKED, LOCKED)),
    ("dgx-h100", (xid("9d", 48, DBE), *OOPS), ["gpu/0000:9d:00.0/memory"]),
    ("dgx-1-v100", (xid("0a", 48, DBE), CRASHED, BLOCKED), ["gpu/0000:0a:00.0/memory"]),
    ("dgx-h100", (FIRMWARE, *STALLED), ["hca/0000:c0:00.0"]),
    ("dgx-h100", (FIRMWARE, STALLED[1], BLOCKED), ["hca/0000:c0:00.0"]),
    ("dgx-h100", STALLED, ["hca/0000:c0:00.0"]),
    ("dgx-a100", (*DISK_AER, "md/raid1:md0: Disk failure on nvme0n1, disabling device."), [DISK_LINK]),
    ("dgx-a100", (*DISK_AER, "EXT4-fs error (device nvme0n1p2): ext4_find_entry:1455: inode #7: reading directory"),
     [DISK_LINK]),
    ("dgx-h100", (xid("9d", 48, DBE), *DISK_FAILED, BLOCKED), ["disk/md0", "gpu/0000:9d:00.0/memory"]),
    ("dgx-h100", (FIRMWARE, *OOPS), ["driver/NVIDIA driver", "hca/0000:c0:00.0"]),
    ("dgx-h100", (FIRMWARE, MANAGER), ["hca/0000:c0:00.0", "host/host/programs"]),
])  # fmt: skip
def test_what_crashes_or_waits_when_a_device_fails(
    base: str, log: tuple[str, ...], due: list[str], tmp_path: Path
) -> None:
    """In code of NVIDIA with its devices alone, and a task waits for any."""
    found = causes(tmp_path, base, {}, log)
    assert sorted(each["id"] for each in found) == due
    of_task = [each["id"] for each in found if "kernel.hung-task" in each["explains"]]
    assert of_task == ([due[0]] if {BLOCKED, LOCKED} & {*log} else [])


def test_a_cpu_that_is_offline_for_its_errors_stays_so(tmp_path: Path) -> None:
    off: dict[str, Json] = {"text /sys/devices/system/cpu/online": "0-54,56-223\n"}
    error = "mce: [Hardware Error]: CPU 55: Machine Check: 0 Bank 0: bc00000000010005"
    (cause,) = causes(tmp_path, "dgx-h100", off, (error, "smpboot: CPU 55 is now offline"))
    assert (cause["action"]["action"], "chcpu" in json.dumps(cause["actions"])) == ("inspect", False)
    (alone,) = causes(tmp_path, "dgx-h100", off)
    assert "chcpu" in json.dumps(alone["actions"])


GSP = "pid=2211, name=dcgm-exporter, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 76"
QUERIES = ("nvmlDeviceGetTemperature 0", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetUtilizationRates")


def silent(bus: str, answer: Json) -> dict[str, Json]:
    return {key: value for query in QUERIES for key, value in of(bus, query, answer).items()}


@pytest.mark.parametrize(("answer", "log"), [
    ({"missing": "timeout"}, (xid("9d", 119, GSP), xid("9d", 154, RESET))),
    ({"missing": "timeout"}, (xid("9d", 119, GSP), xid("9d", 154, RESET), *HUNG)),
    ({"missing": "lost", "code": 999}, (xid("9d", 119, GSP), xid("9d", 154, RESET))),
])  # fmt: skip
def test_a_gpu_that_alone_is_silent_is_reset_first(answer: Json, log: tuple[str, ...], tmp_path: Path) -> None:
    """As the driver asks (Xid 119: RESET_GPU), though tasks hang in it; the other GPUs answer."""
    (cause,) = causes(tmp_path, "dgx-h100", silent("9d", answer), log)
    assert cause["id"] == "gpu/0000:9d:00.0"
    steps = [each["action"] for each in cause["actions"]]
    assert steps[steps.index("reset-gpu") :][:2] == ["reset-gpu", "reboot"]
    assert {*steps[: steps.index("reset-gpu")]} == {"drain", "stop-jobs"}


@pytest.mark.parametrize(("log", "component"), [
    ((), "driver/NVIDIA driver"), ((xid("9d", 119, GSP),), "gpu/0000:9d:00.0"),
])  # fmt: skip
def test_several_silent_gpus_are_the_driver_unless_firmware_timed_out(
    log: tuple[str, ...], component: str, tmp_path: Path
) -> None:
    unanswered: Json = {"missing": "timeout"}
    (cause,) = causes(tmp_path, "dgx-h100", {**silent("9d", unanswered), **silent("c3", unanswered)}, log)
    assert cause["id"] == component


def test_a_gpu_that_alone_is_silent_without_a_reason_is_not_reset(tmp_path: Path) -> None:
    """``nvidia-smi -r`` asks the driver about it first, and waits as well."""
    (cause,) = causes(tmp_path, "dgx-h100", silent("9d", {"missing": "timeout"}), ())
    assert cause["id"] == "gpu/0000:9d:00.0"
    assert [each["action"] for each in cause["actions"]][:2] == ["drain", "reboot"]


def test_a_gpu_that_nvml_calls_lost_is_not_reset(tmp_path: Path) -> None:
    gone: Json = {"missing": "lost", "code": 15}
    (cause,) = causes(tmp_path, "dgx-h100", silent("9d", gone), (xid("9d", 154, RESET),))
    assert "reset-gpu" not in {each["action"] for each in cause["actions"]}


@pytest.mark.parametrize(("bus", "bdf", "component"), [
    ("9d", "0000:9a:00.0", "switch"), ("61", "0000:9a:00.0", "link"),
])  # fmt: skip
def test_gpu_and_adapter_of_a_switch_that_train_low_share_it(
    bus: str, bdf: str, component: str, tmp_path: Path
) -> None:
    low = {f"text {PCI}/{each}/current_link_speed": "8.0 GT/s PCIe\n" for each in (bdf, f"0000:{bus}:00.0")}
    facts = {**low, **of(bus, "nvmlDeviceGetUtilizationRates", {"gpu": 99, "memory": 40}),
             **of(bus, "nvmlDeviceGetCurrentClocksEventReasons", 0), **of(bus, "nvmlDeviceGetPerformanceState", 0),
             **of(bus, "nvmlDeviceGetCurrPcieLinkGeneration", 3), **of(bus, "nvmlDeviceGetPowerUsage", 600_000)}
    found = causes(tmp_path, "dgx-h100", facts)
    assert {cause["id"].partition("/")[0] for cause in found} == {component}
    assert len(found) == (1 if component == "switch" else 2)


HOT = ("Port module event[error]: module 0, Cable error, High Temperature",
       "temp_warn:190:(pid 0): High temperature on sensors with bit set 0x1 0x0")  # fmt: skip


@pytest.mark.parametrize(("later_s", "due"), [(10, {"port"}), (11, {"port", "hca"})])
def test_a_hot_transceiver_heats_the_sensors_of_its_adapter(later_s: int, due: set[str], tmp_path: Path) -> None:
    """Linux drivers/net/ethernet/mellanox/mlx5/core/events.c: sensors from 64 on are those of modules."""
    module, sensors = (f"{3600 + at}.000000;mlx5_core 0000:dc:00.0: {line}"
                       for at, line in zip((0, later_s), HOT, strict=True))  # fmt: skip
    path = tmp_path / "dgx-h200-hot.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-h200", "facts": {},
                                "add": {"kmsg 40": module, "kmsg 41": sensors}}))  # fmt: skip
    found = judged(str(path))[1]["causes"]
    assert {cause["id"].partition("/")[0] for cause in found} == due
    if later_s == 10:
        assert [each["action"] for each in found[0]["actions"]] == ["inspect", "drain", "reseat"]
        assert "airflow at its cage" in found[0]["action"]["text"]


def test_a_peer_memory_module_of_another_version_stops_no_gpu(tmp_path: Path) -> None:
    found = document(tmp_path, "dgx-h100", {"text /sys/module/nvidia_peermem/version": "575.57.08\n"})
    (cause,) = found["causes"]
    assert (cause["id"], cause["severity"]) == ("host/host/peer memory module", "warn")
    assert cause["action"]["action"] == "load-module"
    assert found["score"]["usable_gpus"] == 1


@pytest.mark.parametrize(("base", "bdf"), [("dgx-station-v100", "0000:08:00.0"), ("gb200-nvl72", "0009:01:00.0")])
def test_one_hot_gpu_among_cool_ones_is_not_what_all_share(base: str, bdf: str, tmp_path: Path) -> None:
    facts = {f"nvml nvmlDeviceGetTemperature {bdf} 0": 84, f"nvml nvmlDeviceGetMarginTemperature {bdf}": 8}
    (cause,) = causes(tmp_path, base, facts)
    assert cause["id"] == f"gpu/{bdf}/cooling"
    look = next(each["text"] for each in cause["actions"] if each["action"] == "inspect")
    assert "cold plate" in look
    assert "coolant level" not in look


@pytest.mark.parametrize(("base", "bdf", "code", "steps"), [
    ("l40s-x8", "0000:ba:00.0", "auxiliary power cable", {"inspect", "reseat", "field-diagnostic", "replace"}),
    ("dgx-h200", "0000:9d:00.0", "power of the GPU baseboard", {"inspect", "contact-vendor"}),
])  # fmt: skip
def test_one_gpu_that_lacks_power_has_cables_or_a_module_of_its_own(
    base: str, bdf: str, code: str, steps: set[str], tmp_path: Path
) -> None:
    (cause,) = causes(tmp_path, base, {f"nvml nvmlDeviceGetCurrentClocksEventReasons {bdf}": 0x88})
    assert cause["id"] == f"gpu/{bdf}/power supply"
    assert {each["action"] for each in cause["actions"]} - {"drain"} == steps
    assert code in cause["action"]["text"]


def test_a_board_of_two_gpus_that_is_lost_is_named_by_its_slot(tmp_path: Path) -> None:
    """NVML has no serial number of what is lost; the switch above the two is on the board."""
    facts = {**lost("0a", 2), **lost("0b", 3)}
    (cause,) = causes(tmp_path, "k80-x8", facts, (xid("0a", 79, OFF), xid("0b", 79, OFF)))
    assert cause["id"] == "board/0000:0a:00.0"
    assert [each["slot"] for each in cause["frus"]] == ["4"]
    assert [each["action"] for each in cause["actions"]][:2] == ["drain", "reboot"]
    (one,) = causes(tmp_path, "k80-x8", lost("0a", 2), (xid("0a", 79, OFF),))
    assert one["id"] == "gpu/0000:0a:00.0"


def test_a_port_that_is_gone_was_above_the_gpus_that_were_lost_with_it(tmp_path: Path) -> None:
    """Hot-plug takes the ports of a board off PCI as well."""
    gone = ("pcieport 0000:0f:08.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data Link Layer, id=0f40",
            "pcieport 0000:0f:08.0:    [ 5] Surprise Down Error    (First)")  # fmt: skip
    (cause,) = causes(tmp_path, "k80-x8", {}, (xid("0a", 79, OFF), xid("0b", 79, OFF), *gone))
    assert cause["id"].startswith("board/")
    assert len(cause["explains"]) == 3


def port_down(hca: str) -> dict[str, Json]:
    port = f"/sys/class/infiniband/{hca}/ports/1"
    return {f"text {port}/state": "1: DOWN\n", f"text {port}/phys_state": "2: Polling\n", f"text {port}/lid": "0x0\n"}


def fatal(name: str) -> tuple[str, ...]:
    """Of the root port above the switch of a GPU and an adapter."""
    port = "pcieport 0000:13:01.0: "
    return (f"{port}DPC: containment event, status:0x1f01 source:0x0000",
            f"{port}PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)",
            f"{port}   [ 5] {name}                   (First)")  # fmt: skip


ENP = "/sys/class/net/enp2s0f0/carrier"
WAITS = "INFO: task python3:4711 blocked for more than 120 seconds."
LUSTRE = ("Lustre: lustre-OST0003-osc-ffff9a1c3b2d4000: Connection to lustre-OST0003 (at 10.10.0.5@o2ib) was lost; in"
          " progress operations using this service will wait for recovery to complete")
NFS = "nfs: server fs01 not responding, still trying"
RECONNECTS, REMOTE = "nvme nvme6: Reconnecting in 10 seconds...", "block nvme6n1: no available path - failing I/O"
LATE = "nvme nvme4: I/O 128 QID 17 timeout, reset controller"
IOMMU, SILENT = "AMD-Vi: Completion-Wait loop timed out", "AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device=47:00.0 "
SLOT = "pcieport 0000:9a:00.0: pciehp: Slot(5): "
WITHOUT_NVSWITCHES = [bdf for bdf in json.loads(Path(BY_NAME["dgx-h100"]).read_text())["facts"][PCI]["link"]
                      if not re.match("0000:0[5-8]:00.0", bdf)]
FABRIC_OFF = {key: fact for bus in OF_H100 for key, fact in of(bus, "nvmlDeviceGetGpuFabricInfo",
              {**IN_NO_DOMAIN, "state": 1}).items()}  # fmt: skip
NOT_STARTED = "probe_one:1500:(pid 9): mlx5_init_one failed with error code -5"
UE = "EDAC MC0: 1 UE on mc#0csrow#1channel#3 (csrow:1 channel:3 page:0x123 offset:0x0 grain:64)"


@pytest.mark.parametrize(("base", "facts", "log", "component", "steps"), [
    ("dgx-a100", port_down("mlx5_4"), (LUSTRE, WAITS), "port/0000:61:00.0/1", ["inspect", "reseat"]),
    ("dgx-a100", port_down("mlx5_4"), (f"mlx5_core 0000:61:00.0: {DIED[0]}", LUSTRE, WAITS), "hca/0000:61:00.0",
     ["drain", "inspect", "power-cycle", "reseat", "replace"]),
    ("dgx-a100", {}, (LUSTRE, WAITS), "host/host/file server", ["inspect"]),
    ("dgx-a100", {key: fact for hca in range(12) for key, fact in port_down(f"mlx5_{hca}").items()}, (LUSTRE, WAITS),
     "fabric/InfiniBand fabric", ["inspect", "drain", "reseat"]),
    ("dgx-a100", port_down("mlx5_4"), (RECONNECTS, REMOTE), "port/0000:61:00.0/1", ["inspect", "reseat"]),
    ("dgx-a100", {}, (RECONNECTS, REMOTE), "host/host/file server", ["inspect"]),
    ("dgx-h100", {key: fact for bus in OF_H100 for key, fact in {**of(bus, "nvmlDeviceGetMarginTemperature", -1),
     **of(bus, "nvmlDeviceGetCurrentClocksEventReasons", 0x40)}.items()}, (xid("43", 79, OFF),), "host/host/cooling",
     ["drain", "stop-jobs", "inspect", "reboot", "power-cycle", "contact-vendor"]),
    ("dgx-h100", {}, (*fatal("SDES"), xid("1b", 79, OFF)), "link/0000:14:00.0",
     ["drain", "power-cycle", "field-diagnostic", "contact-vendor"]),
    ("dgx-h100", {}, (*fatal("SDES"), xid("1b", 79, OFF), *(f"mlx5_core 0000:18:00.0: {line}" for line in DIED)),
     "link/0000:14:00.0", ["drain", "power-cycle", "field-diagnostic", "contact-vendor"]),
    ("dgx-h100", {}, (*fatal("CmpltTO"), xid("1b", 79, OFF)), "gpu/0000:1b:00.0",
     ["drain", "reboot", "power-cycle", "field-diagnostic", "contact-vendor"]),
    ("l40s-x8", {}, (xid("3d", 79, OFF), xid("3e", 79, OFF)), "switch/0000:3b:00.0",  # alone below its host bridge
     ["drain", "power-cycle", "reseat", "field-diagnostic", "replace"]),
    ("dgx-h100", {"names /sys/bus/pci/devices": WITHOUT_NVSWITCHES, **{key: fact for bus in OF_H100 for key, fact in {
     **of(bus, "nvmlDeviceGetGpuFabricInfo", {**IN_NO_DOMAIN, "state": 2}), **links_off(18, bus)}.items()}}, (),
     "slot/missing NVSwitch", ["drain", "reboot", "power-cycle", "field-diagnostic", "contact-vendor"]),
    ("dgx-b200", FABRIC_OFF, tuple(f"mlx5_core 0000:05:00.{n}: {DIED[0]}" for n in (0, 1)), "hca/0000:05:00.0",
     ["drain", "inspect", "stop-jobs", "restart-service", "power-cycle", "contact-vendor"]),  # in front of NVSwitches
    ("dgx-b200", FABRIC_OFF, (f"mlx5_core 0000:05:00.0: {NOT_STARTED}",), "hca/0000:05:00.0",
     ["load-module", "drain", "stop-jobs", "restart-service", "power-cycle", "contact-vendor"]),
    ("dgx-b200", FABRIC_OFF, (f"mlx5_core 0000:05:00.0: {DIED[1]}",), "hca/0000:05:00.0",
     ["inspect", "drain", "power-cycle", "contact-vendor"]),
    ("dgx-1-v100", {f"text {ENP}": "0\n", f"text {ENP}_down_count": "2\n"}, (NFS,), "interface/0000:02:00.0",
     ["inspect", "drain", "reseat"]),
    ("dgx-1-v100", {f"text {ENP.replace('f0', 'f1')}": "0\n"}, (NFS,), "host/host/file server", ["inspect"]),
    ("dgx-a100", {}, (IOMMU, LATE, SILENT), "link/0000:47:00.0", ["inspect", "drain", "reboot", "contact-vendor"]),
    ("dgx-a100", {}, (IOMMU, LATE), "host/host", ["inspect", "drain", "reboot", "contact-vendor"]),
    ("dgx-a100", {}, (IOMMU, LATE, xid("47", 79, OFF)), "gpu/0000:47:00.0",
     ["drain", "reboot", "power-cycle", "field-diagnostic", "contact-vendor"]),
    ("l40s-x8", {}, (f"{SLOT}Power fault", f"{SLOT}Link Down", xid("9b", 79, OFF)), "gpu/0000:9b:00.0",
     ["inspect", "drain", "power-cycle", "reseat", "field-diagnostic", "replace"]),
    ("dgx-a100", {}, (UE, "Kernel panic - not syncing: Fatal hardware error!"), "host/host/memory",
     ["inspect", "drain", "reseat", "replace"]),
])  # fmt: skip
def test_what_waits_for_something_has_its_cause_and_its_steps(
    base: str, facts: dict[str, Json], log: tuple[str, ...], component: str, steps: list[str], tmp_path: Path
) -> None:
    (cause,) = causes(tmp_path, base, facts, log)
    assert cause["id"].startswith(component)
    assert [each["action"] for each in cause["actions"]] == steps


def test_a_medium_error_is_the_disks_own(tmp_path: Path) -> None:
    line = "critical medium error, dev nvme2n1, sector 123456 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0"
    found = causes(tmp_path, "dgx-a100", {}, (IOMMU, line))
    assert {each["component"]["kind"] for each in found} == {"disk", "host"}


def test_an_empty_slot_that_reports_a_power_fault_at_boot_is_none(tmp_path: Path) -> None:
    """As below Intel's VMD; of a slot that had a card it is one (above)."""
    assert causes(tmp_path, "l40s-x8", {}, (f"{SLOT}Power fault",)) == []


@pytest.mark.parametrize("log", [
    (f"mlx5_core 0000:18:00.0: {DIED[0]}",),  # leads to no NVSwitch
    (f"mlx5_core 0000:05:00.0: {DIED[0]}", "mlx5_core 0000:05:00.0: health recovery succeeded"),
])  # fmt: skip
def test_an_adapter_that_no_nvswitch_waits_for_or_that_works_again_leaves_fabric_manager(
    log: tuple[str, ...], tmp_path: Path
) -> None:
    (fabric,) = [each for each in causes(tmp_path, "dgx-b200", FABRIC_OFF, log)
                 if each["id"] == "host/host/Fabric Manager"]  # fmt: skip
    assert "restart-service" in [each["action"] for each in fabric["actions"]]


def test_what_hangs_in_a_log_without_times_stands_alone(tmp_path: Path) -> None:
    """Its order alone is known: between two lines may be months."""
    lines = ("NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.", *["usb 1-1: new device"] * 800, BLOCKED)
    causes, _ = of_text("\n".join(lines), tmp_path)
    assert len(causes) == 2
