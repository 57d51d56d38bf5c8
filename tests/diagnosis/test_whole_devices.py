"""Faults that show at several functions, devices or readings of one thing: one cause, at the right place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from judging import judged
from sample import BY_NAME
from wired import wired

from dgxcheck.facts.missing import Json

PCI = "/sys/bus/pci/devices"
HOT = "0000:9d:00.0"
OF_K80 = ("06", "07", "0a", "0b", "85", "86", "89", "8a")
OF_H200 = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]


def document(
    folder: Path, base: str, facts: Mapping[str, Json], log: tuple[str, ...] = (), later: dict[str, Json] | None = None,
    at_s: int = 60,
) -> Any:
    """How the box is judged with these facts and lines, and with others in its second reading; empty: it has none."""
    lines = {f"kmsg {place}": f"{3600 + place / 100:.6f};{line}" for place, line in enumerate(log, 40)}
    path = folder / f"{base}-changed.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": base, "facts": facts, "add": lines,
                                **({} if later is None else
                                   {"later": [{"at_s": at_s, "facts": later}] if later else []})}))  # fmt: skip
    return judged(str(path))[1]


def causes(folder: Path, base: str, facts: Mapping[str, Json], log: tuple[str, ...] = ()) -> Any:
    """What it is judged to have."""
    return document(folder, base, facts, log)["causes"]


def of_functions(slot: str, name: str, value: str) -> dict[str, Json]:
    return {f"text {PCI}/{slot}.{function}/{name}": f"{value}\n" for function in (0, 1)}


def links_down(links: int, bdfs: list[str]) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetNvLinkState {bdf} {link}": 0 for bdf in bdfs for link in range(links)}


DIED = ("poll_health:835:(pid 0): device's health compromised - reached miss count",
        "mlx5_health_try_recover:343:(pid 9): health recovery flow aborted, PCI reads still not working")  # fmt: skip


@pytest.mark.in_ci
@pytest.mark.parametrize(("base", "facts", "log", "component"), [
    ("dgx-h200", {**of_functions("0000:29:00", "current_link_width", "8"),
     f"text {PCI}/0000:28:01.0/current_link_width": "8\n"}, (), "link/0000:29:00.0"),
    ("dgx-h100", {}, tuple(f"mlx5_core 0000:29:00.{function}: {line}" for function in (0, 1) for line in DIED),
     "hca/0000:29:00.0"),
    ("dgx-h100", {}, tuple(f"mlx5_core 0000:29:00.{function}: {line}" for function, line in
     ((0, DIED[0]), (1, DIED[0]), (0, DIED[1]))), "hca/0000:29:00.0"),
    ("dgx-h100", {}, tuple(f"mlx5_core 0000:29:00.{function}: temp_warn:198:(pid 9): High temperature on sensors with"
     " bit set 0 1" for function in (0, 1)), "hca/0000:29:00.0"),
])  # fmt: skip
def test_the_functions_of_an_adapter_are_one(
    base: str, facts: dict[str, Json], log: tuple[str, ...], component: str, tmp_path: Path
) -> None:
    """Both fail together, and nothing of what is above them is to blame."""
    (cause,) = causes(tmp_path, base, facts, log)
    assert cause["id"] == component
    assert len(cause["explains"]) == 2


GSP = "119, pid=2211, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU1 GSP! Expected function 76"
LATE = "mlx5_core 0000:61:00.0: wait_func:1152: CREATE_MKEY(0x200) timeout. Will cause a leak of a command resource"
DISKS = tuple(f"nvme nvme{n}: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff" for n in (2, 3))


OFF = "NVRM: Xid (PCI:0000:{}:00): 79, GPU has fallen off the bus."
FATAL = ("pcieport 0000:00:01.1: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)",
         "pcieport 0000:00:01.1:    [ 5] SDES                   (First)")  # fmt: skip
OOPS = ("BUG: unable to handle page fault for address: ffffb24d403e50", "RIP: 0010:{}+0x12/0x100 [{}]")


@pytest.mark.parametrize(("base", "log", "component", "step"), [
    ("dgx-a100", ("AMD-Vi: Event logged [IO_PAGE_FAULT device=61:00.0 domain=0x0021 address=0xfe000000 flags=0x0000]",
     LATE), "host/host/IOMMU setting", "change-setting"),
    ("dgx-h100", ("DMAR: [DMA Read NO_PASID] Request device [43:00.0] fault addr 0xfe000000 [fault reason 0x06] PTE",
     f"NVRM: Xid (PCI:0000:43:00): {GSP}"), "host/host/IOMMU setting", "change-setting"),
    ("dgx-a100", (*DISKS, OFF.format("07")), "switch/0000:03:00.0", "power-cycle"),
    ("dgx-a100", (*FATAL, *DISKS, OFF.format("07"), OFF.format("0f"), *(f"mlx5_core 0000:{bus}:00.0: {line}"
     for bus in ("0c", "12") for line in DIED)), "link/0000:01:00.0", "inspect"),
    ("pcie-x8", ("NMI: PCI system error (SERR) for reason b1 on CPU 0.", OFF.format("84")), "gpu/0000:84:00.0",
     "reboot"),
    ("dgx-a100", ("mce: [Hardware Error]: CPU 0: Machine Check Exception: 5 Bank 6: be00000000000e0b",
     OFF.format("07"), OFF.format("47")), "host/host/GPU baseboard", "inspect"),
    ("dgx-h100", (OFF.format("43"), OOPS[0], OOPS[1].format("_nv0123rm", "nvidia")), "gpu/0000:43:00.0", "reboot"),
    ("dgx-a100", (*(f"mlx5_core 0000:61:00.0: {line}" for line in DIED), OOPS[0],
     OOPS[1].format("mlx5_cmd_exec", "mlx5_core")), "hca/0000:61:00.0", "inspect"),
    ("dgx-a100", ("nvme nvme0: pci function 0000:22:00.0", "pcieport 0000:20:03.1: pciehp: Slot(7): Link Down",
     DISKS[0].replace("nvme2", "nvme0")), "link/0000:22:00.0", "inspect"),
    ("dgx-h100", ("nvme nvme0: pci function 0000:09:00.0", "DMAR: [DMA Read NO_PASID] Request device [09:00.0] fault"
     " addr 0xfe000000 [fault reason 0x06] PTE", "nvme nvme0: I/O 128 QID 17 timeout, reset controller"),
     "host/host/IOMMU setting", "change-setting"),
    ("dgx-h100", ("pcieport 0000:3b:01.0: DPC: containment event, status:0x1f15 source:0x3c00", OFF.format("43"),
     "pcieport 0000:3b:01.0: AER: device recovery failed"), "link/0000:3c:00.0", "power-cycle"),
    ("dgx-h100", ("pcieport 0000:41:00.0: DPC: containment event, status:0x1f15 source:0x4300", OFF.format("43"),
     "pcieport 0000:41:00.0: AER: device recovery failed"), "gpu/0000:43:00.0", "reboot"),
    ("dgx-h100", ("watchdog: BUG: soft lockup - CPU#33 stuck for 26s! [nv_queue:2241]", OOPS[1].format("_nv0123rm",
     "nvidia"), "rcu: INFO: rcu_sched self-detected stall on CPU"), "driver/NVIDIA driver", "inspect"),
    ("dgx-h200", (*(OFF.format(bus.split(":")[1]) for bus in OF_H200), *(f"nvidia-nvswitch{n}: SXid (PCI:0000:0{5 + n}"
     ":00.0): 10001, Fatal, Host_priv_error" for n in range(4))), "host/host/GPU baseboard", "inspect"),
    ("dgx-h100", ("mce: [Hardware Error]: CPU 60: Machine Check: 0 Bank 0: be00000000800400",
     "watchdog: BUG: soft lockup - CPU#60 stuck for 22s! [python3:4711]"), "host/host/CPUs/CPU 60 bank 0", "inspect"),
    ("dgx-b300", ("mce: [Hardware Error]: CPU 88: Machine Check: 0 Bank 5: be00000000800400",
     "watchdog: BUG: soft lockup - CPU#88 stuck for 23s! [nvidia-smi:77]", OOPS[1].format("_nv0123rm", "nvidia")),
     "host/host/CPUs/CPU 88 bank 5", "inspect"),
    ("dgx-a100", tuple(f"mlx5_core 0000:{bus}:00.0: mlx5_pcie_event:299:(pid 2): Detected insufficient power on the"
     " PCIe slot (27W)." for bus in ("0c", "12", "4b")), "host/host/power of PCIe slots", "inspect"),
    ("dgx-a100", ("Out of memory: Killed process 2211 (python3) total-vm:1kB",
     "INFO: task python3:4711 blocked for more than 120 seconds."), "host/host/free memory", "inspect"),
    ("dgx-1-v100", tuple(f"mlx5_core 0000:{bus}:00.0: probe with driver mlx5_core failed with error -110"
     for bus in ("05", "0c", "84", "8b")), "host/host/HCA driver", "load-module"),
    ("dgx-station-v100", ('irq 19: nobody cared (try booting with the "irqpoll" option)',
     "ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen"), "host/host/interrupts/IRQ 19", "inspect"),
    ("dgx-1-v100", ("megaraid_sas 0000:01:00.0: Found FW in FAULT state, will reset adapter scsi0.",
     *(f"blk_update_request: I/O error, dev {disk}, sector 123 op 0x0:(READ)" for disk in ("sda", "sdb"))),
     "host/host/RAID controller 0000:01:00.0", "inspect"),
    ("dgx-a100", ("neighbour: arp_cache: neighbor table overflow!", "nfs: server fs01 not responding, timed out"),
     "host/host/ARP table", "change-setting"),
    ("dgx-h200", tuple(f"mlx5_core 0000:{bus}:00.0: temp_warn:198:(pid 9): High temperature on sensors with bit set 0 1"
     for bus in ("18", "40", "4f")), "host/host/cooling", "inspect"),
])  # fmt: skip
def test_what_several_lines_come_from_is_one_cause(
    base: str, log: tuple[str, ...], component: str, step: str, tmp_path: Path
) -> None:
    """The IOMMU keeps a device from its commands, a switch takes what is below it along, three adapters lack air."""
    (cause,) = causes(tmp_path, base, {}, log)
    assert cause["id"] == component
    assert len(cause["explains"]) > 1
    assert next(each["action"] for each in cause["actions"] if each["action"] != "drain") == step


def test_an_array_goes_with_the_link_of_the_disk_that_left_it(tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, "dgx-h100", {"text /sys/class/block/md0/md/degraded": "1\n"}, (
        "nvme nvme0: pci function 0000:09:00.0", "md/raid1:md0: Disk failure on nvme0n1p2, disabling device.",
        "pcieport 0000:00:03.0: AER: Uncorrected (Fatal) error received: 0000:00:03.0",
        DISKS[0].replace("nvme2", "nvme0")))  # fmt: skip
    assert (cause["id"], cause["action"]["action"]) == ("link/0000:09:00.0", "inspect")


def test_an_event_of_an_smmu_is_of_the_client_that_it_names(tmp_path: Path) -> None:
    """GPUs and adapters of a tray have the same bus, device and function in domains of their own."""
    smmu = "arm-smmu-v3 arm-smmu-v3.5.auto: event"
    named = f"{smmu}: F_TRANSLATION client: 0002:01:00.0 sid: 0x100 ssid: 0x0 iova: 0x0 ipa: 0x0"
    numbers = (f"{smmu} 0x10 received:", "arm-smmu-v3 arm-smmu-v3.5.auto: \t0x0000010000000010")
    found = [causes(tmp_path, "gb200-nvl72", {}, lines)[0]["explains"] for lines in ((named,), numbers)]
    assert found == [["kernel.iommu-fault/0002:01:00.0"], ["kernel.iommu-fault"]]


@pytest.mark.parametrize(("log", "expected"), [
    ((LATE, "AMD-Vi: Event logged [IO_PAGE_FAULT device=61:00.0 domain=0x0021 address=0xfe000000 flags=0x0000]"), 2),
    ((DISKS[0], OFF.format("07")), 2),  # one of two below the switch
    ((*DISKS, OFF.format("4e")), 2),
    (tuple(f"mlx5_core 0000:{bus}:00.0: probe with driver mlx5_core failed with error -22" for bus in ("0c", "12")), 2),
    (("nvme nvme1: pci function 0000:23:00.0", "pcieport 0000:20:03.1: pciehp: Slot(7): Link Down",
      DISKS[0].replace("nvme2", "nvme1")), 2),  # another disk
    (tuple(f"mlx5_core 0000:{bus}:00.0: {line}" for bus in ("0c", "12") for line in DIED), 2),  # GPUs beside respond
])  # fmt: skip
def test_what_need_not_come_from_it_stays_apart(log: tuple[str, ...], expected: int, tmp_path: Path) -> None:
    assert len(causes(tmp_path, "dgx-a100", {}, log)) == expected


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


SILENT = f"mlx5_core {{}}: {DIED[0]}"
TURNED_AWAY = "NVRM: GPU 0000:0a:00.0: RmInitAdapter failed! (0x26:0xffff:1290)"


@pytest.mark.parametrize(("log", "bdf", "check", "status", "words"), [
    ((SILENT.format("0000:8b:00.0"),), "0000:8b:00.0", "driver.bound", "fail", "no RDMA device"),
    ((SILENT.format("0000:0c:00.0"),), "0000:8b:00.0", "driver.bound", "unknown", "another network namespace"),
    ((SILENT.format("0000:8b:00.0"), "mlx5_core 0000:8b:00.0: firmware version: 12.28.2006"), "0000:8b:00.0",
     "driver.bound", "unknown", "another network namespace"),
    ((TURNED_AWAY, "NVRM: GPU 0000:0a:00.0: GPU has fallen off the bus."), "0000:0a:00.0", "kernel.gpu-start", "warn",
     "it does not respond"),
    ((TURNED_AWAY, "NVRM: GPU 0000:0b:00.0: GPU has fallen off the bus."), "0000:0a:00.0", "kernel.gpu-start", "warn",
     "start it at first; NVML lists it now"),
])  # fmt: skip
def test_a_line_is_of_the_device_that_it_names_and_may_be_over(
    log: tuple[str, ...], bdf: str, check: str, status: str, words: str, tmp_path: Path
) -> None:
    facts: dict[str, Json] = {"names /sys/class/infiniband": ["mlx5_0", "mlx5_1", "mlx5_2"],
                              "names /sys/class/net": ["enp1s0f0", "lo"]}  # fmt: skip
    found = document(tmp_path, "dgx-1-v100", facts if check == "driver.bound" else {}, log)["findings"]
    (told,) = [each for each in found if each["id"] == check and each["subject"]["bdf"] == bdf]
    assert told["status"] == status
    assert words in told["message"]


def of_gpus(own: dict[str, Json], others: dict[str, Json]) -> dict[str, Json]:
    return {
        f"nvml nvmlDeviceGet{query.partition(' ')[0]} {bdf}{query[len(query.partition(' ')[0]) :]}": value
        for bdf in OF_H200 for query, value in (own if bdf == HOT else others).items()
    }  # fmt: skip


SLOWED: dict[str, Json] = {"Temperature 0": 90, "MarginTemperature": -3, "PowerUsage": 240_000}
COOL: dict[str, Json] = {"Temperature 0": 64, "MarginTemperature": 23, "PowerUsage": 690_000}


def test_a_gpu_that_heat_slowed_is_compared_with_those_that_draw_more(tmp_path: Path) -> None:
    own = {**SLOWED, "CurrentClocksEventReasons": 0x48}
    (cause,) = causes(tmp_path, "dgx-h200", of_gpus(own, {**COOL, "CurrentClocksEventReasons": 4}))
    assert cause["id"] == f"gpu/{HOT}/cooling"
    assert "heat sink" in next(each["text"] for each in cause["actions"] if each["action"] == "inspect")


def test_the_power_brake_does_not_hide_heat(tmp_path: Path) -> None:
    own = {**SLOWED, "CurrentClocksEventReasons": 0xC8}
    found = causes(tmp_path, "dgx-h200", of_gpus(own, {**COOL, "CurrentClocksEventReasons": 0x88}))
    assert {cause["id"]: cause["severity"] for cause in found} == {
        "host/host/power supply": "fail", f"gpu/{HOT}/cooling": "fail",
    }  # fmt: skip


def test_an_empty_line_of_bar1_is_no_small_bar1(tmp_path: Path) -> None:
    bdf = "0000:d1:00.0"
    zeros = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
    bar0 = "0x000000009d000000 0x000000009dffffff 0x0000000000040200"
    bar3 = "0x00000c0000000000 0x00000c0001ffffff 0x000000000014220c"
    rows = [bar0, zeros, zeros, bar3, *[zeros] * 9]
    found = document(tmp_path, "hgx-h100", {f"text {PCI}/{bdf}/resource": "\n".join([*rows, ""])})
    (bad,) = [each for each in found["findings"] if each["id"] == "pcie.bar1" and each["status"] == "fail"]
    assert (bad["subject"]["bdf"], bad["message"]) == (bdf, "BAR1 is unassigned")


@pytest.mark.parametrize(("lost", "due"), [
    (1, []), (2, ["interface/0000:0b:00.0"]), (5, ["interface/0000:0b:00.0"]), (6, []),
])
def test_an_interface_that_had_a_carrier_is_missed(lost: int, due: list[str], tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        "text /sys/class/net/enp11s0/carrier": "0\n",
        "text /sys/class/net/enp11s0/carrier_down_count": f"{lost}\n",
    }
    assert [cause["id"] for cause in causes(tmp_path, "dgx-b200", facts)] == due


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


@pytest.mark.parametrize(("errors", "due"), [
    (152, "watch"), (200, "power-cycle"), (2110, "power-cycle"), (5_000_000, "power-cycle"),
])  # fmt: skip
def test_a_storm_of_corrected_errors_is_acted_upon(errors: int, due: str, tmp_path: Path) -> None:
    counts = f"RxErr {errors}\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\nTOTAL_ERR_COR {errors}\n"
    later: dict[str, Json] = {f"{PCI}/0000:09:08.0": {"text": {"aer_dev_correctable": counts}}}
    found = document(tmp_path, "dgx-1-v100", {}, later=later)
    (bad,) = [each for each in found["findings"] if each["id"] == "pcie.aer" and each["status"] == "warn"]
    assert bad["fault"] == ("aer-correctable" if due == "watch" else "aer-storm")
    assert found["causes"][0]["action"]["action"] == due


IB = "/sys/class/infiniband"


@pytest.mark.parametrize(("base", "names", "name", "value", "component"), [
    ("dgx-h100", ("mlx5_1", "mlx5_2", "mlx5_7", "mlx5_8"), "state", "2: INIT", "subnet-manager/of the fabric"),
    ("dgx-h200", ("mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5"), "rate", "200 Gb/sec (4X HDR)", "fabric/InfiniBand fabric"),
])  # fmt: skip
def test_what_the_ports_of_one_fabric_share(
    base: str, names: tuple[str, ...], name: str, value: str, component: str, tmp_path: Path
) -> None:
    """Cards for storage have a fabric of their own, and a leaf switch joins a half of those for computing."""
    (cause,) = causes(tmp_path, base, {f"text {IB}/{hca}/ports/1/{name}": f"{value}\n" for hca in names})
    assert cause["id"] == component


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


def test_only_jobs_on_the_gpus_that_overheat_are_stopped(tmp_path: Path) -> None:
    """Half of them behind a fan that is lost: those that are cool work on."""
    hot = OF_H200[4:]
    facts: dict[str, Json] = {}
    for bdf in OF_H200:
        facts |= {f"nvml nvmlDeviceGetUtilizationRates {bdf} ": {"gpu": 99, "memory": 40},
                  f"nvml nvmlDeviceGetCurrentClocksEventReasons {bdf} ": 0x20 if bdf in hot else 0,
                  f"nvml nvmlDeviceGetTemperature {bdf} 0": 88 if bdf in hot else 55}  # fmt: skip
    (cause,) = causes(tmp_path, "dgx-h200", facts)
    (stop,) = [step for step in cause["actions"] if step["action"] == "stop-jobs"]
    assert stop["disturbs"] == [f"GPU{number}" for number in range(4, 8)]
    assert not any(bdf in str(stop) for bdf in OF_H200[:4])


def test_an_odd_mtu_is_set_with_ip(tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, "hgx-h100", {"text /sys/class/net/ib5/mtu": "1500\n"})
    assert "ip link set dev" in cause["action"]["text"]
    assert "mstconfig" not in cause["action"]["text"]


LOST: dict[str, Json] = {"missing": "lost", "detail": "NVML 15: GPU is lost"}


def off_the_bus(*bdfs: str) -> dict[str, Json]:
    ones: dict[str, Json] = {"size": 64, "rows": {f"0{row}0": "f" * 32 for row in range(4)}}
    return {f"data {PCI}/{bdf}/config": ones for bdf in bdfs}


@pytest.mark.parametrize(("base", "component"), [
    ("dgx-h100", "host/host/GPU baseboard"), ("pcie-x8", "host/host/power supply"),
])  # fmt: skip
def test_gpus_that_are_all_off_the_bus_are_not_the_drivers(base: str, component: str, tmp_path: Path) -> None:
    """Their config space reads all ones, and the log begins later."""
    gpus = wired(base).gpus
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetHandleByIndex {gpu}": LOST for gpu in range(len(gpus))}
    assert [cause["id"] for cause in causes(tmp_path, base, facts)] == ["driver/NVIDIA driver"]
    assert [cause["id"] for cause in causes(tmp_path, base, facts | off_the_bus(*gpus))] == [component]


def test_what_explains_that_an_adapter_is_dead_explains_its_port(tmp_path: Path) -> None:
    """The PCIe switch above it and a GPU."""
    gpu, hca = "0000:1b:00.0", "0000:18:00.0"
    facts: dict[str, Json] = {"nvml nvmlDeviceGetHandleByIndex 0": LOST, **off_the_bus(gpu, hca),
                              f"text {IB}/mlx5_0/ports/1/state": "1: DOWN\n",
                              f"text {IB}/mlx5_0/ports/1/phys_state": "2: Polling\n"}  # fmt: skip
    log = (f"NVRM: Xid (PCI:{gpu[:-2]}): 79, pid=4242, GPU has fallen off the bus.", f"mlx5_core {hca}: {DIED[0]}")
    (cause,) = causes(tmp_path, "dgx-h100", facts, log)
    assert cause["id"] == "switch/0000:14:00.0"
    assert "port-down" in cause["faults"]


@pytest.mark.parametrize(("base", "names", "received", "due"), [
    ("dgx-h100", ("mlx5_2", "mlx5_8"), 0, 0), ("dgx-h100", ("mlx5_2", "mlx5_8"), 4711, 2),
    ("dgx-h100", ("mlx5_2",), 0, 1), ("dgx-h100", ("mlx5_0", "mlx5_3"), 0, 2),
    ("gb200-nvl72", ("mlx5_0", "mlx5_1"), 0, 2),
])  # fmt: skip
def test_ports_of_cards_for_storage_may_have_no_cable(
    base: str, names: tuple[str, ...], received: int, due: int, tmp_path: Path
) -> None:
    """All of their second ports, since the driver was loaded; those near GPUs have one, and no GPU of a tray is near
    any."""
    facts: dict[str, Json] = {}
    for name in names:
        facts |= {f"text {IB}/{name}/ports/1/{file}": f"{value}\n" for file, value in (
            ("state", "1: DOWN"), ("phys_state", "2: Polling"), ("lid", "0xffff"),
            ("counters/port_rcv_data", received))}  # fmt: skip
    assert len(causes(tmp_path, base, facts)) == due


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


def test_a_connectx_8_is_one_device_in_its_two_pci_domains(tmp_path: Path) -> None:
    """It carries the switch of GPU1; where it does not come up its DMA function beside the GPU is missing with it."""
    log = ("NVRM: Xid (PCI:0009:06:00): 79, GPU has fallen off the bus.",
           *(f"mlx5_core 0000:03:00.0: {line}" for line in DIED))  # fmt: skip
    lost: dict[str, Json] = {"nvml nvmlDeviceGetHandleByIndex 1": {"missing": "lost", "detail": "NVML 15: GPU is lost"}}
    (dead,) = causes(tmp_path, "gb300-nvl72", lost, log)
    assert dead["id"] == "hca/0000:03:00.0"
    path = tmp_path / "missing.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "gb300-nvl72", "drop": [
        "0000:03:00.0", "0009:03:00.0", "/sys/class/infiniband/mlx5_0", "/sys/class/net/ib0"]}))  # fmt: skip
    (missing,) = judged(str(path))[1]["causes"]
    assert (missing["component"]["part"], missing["component"]["bdf"]) == ("missing HCA", "0009:04:00.0")


def test_gpus_without_c2c_are_one_cause(tmp_path: Path) -> None:
    """As both of a superchip; one restart is for all of them, and their links are looked at before it."""
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetC2cModeInfo {bdf}:01:00.0": {"isC2cEnabled": int(bdf < "0010")}
                              for bdf in ("0008", "0009", "0018", "0019")}  # fmt: skip
    (cause,) = causes(tmp_path, "gb200-nvl72", facts)
    assert cause["id"] == "gpus/GPU2, GPU3/C2C"
    assert cause["action"]["action"] == "inspect"


def test_a_model_of_unknown_size_has_the_bar1_of_the_others(tmp_path: Path) -> None:
    """Where none has a large one the firmware has no room for it, which is no fault of these cards."""
    facts: dict[str, Json] = {}
    for number in range(1, 5):
        bdf = f"0000:2{number}:00.0"
        rows = json.loads(Path(BY_NAME["geforce-x4"]).read_text(encoding="utf-8"))["facts"][f"{PCI}/{bdf}"]["text"]
        large = next(row for row in rows["resource"].splitlines() if row.endswith("14220c"))
        small = f"{large[:18]} 0x{int(large[:18], 16) + (1 << 28) - 1:016x} {large[-18:]}"
        facts[f"text {PCI}/{bdf}/resource"] = rows["resource"].replace(large, small)
        sizes: Json = {"bar1Free": (1 << 28) - 1, "bar1Total": 1 << 28, "bar1Used": 1}
        facts[f"nvml nvmlDeviceGetBAR1MemoryInfo {bdf}"] = sizes
    assert not causes(tmp_path, "geforce-x4", facts)
    (cause,) = causes(tmp_path, "geforce-x4", {key: value for key, value in facts.items() if "0000:22:00.0" in key})
    assert (cause["id"], cause["faults"]) == ("gpu/0000:22:00.0/BAR1", ["bar1-small"])
    assert cause["action"]["action"] == "inspect"


def test_who_has_a_lost_gpu_open_does_not_hold_the_driver(tmp_path: Path) -> None:
    held = f"NVRM: Attempting to remove device {HOT} with non-zero usage count!"
    assert [cause["id"] for cause in causes(tmp_path, "dgx-h200", {}, (held,))] == ["driver/NVIDIA driver"]
    fallen = (f"NVRM: GPU {HOT}: GPU has fallen off the bus.", held)
    assert [cause["id"] for cause in causes(tmp_path, "dgx-h200", {}, fallen)] == [f"gpu/{HOT}"]


@pytest.mark.parametrize(("excluded", "faults"), [
    ("GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77", ["gpu-excluded"]), ("", ["gpu-lost"]),
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
