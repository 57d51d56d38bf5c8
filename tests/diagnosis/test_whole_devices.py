"""Faults that show at several functions, devices or readings of one thing: one cause, at the right place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from changed_box import DIED, IB, LOST, OF_H200, PCI, causes, document, off_the_bus
from judging import judged

from dgxcheck.facts.missing import Json


def of_functions(slot: str, name: str, value: str) -> dict[str, Json]:
    return {f"text {PCI}/{slot}.{function}/{name}": f"{value}\n" for function in (0, 1)}


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


@pytest.mark.parametrize("log", [(), (f"mlx5_core 0000:29:00.1: {DIED[0]}",)])
def test_an_adapter_that_is_gone_whatever_finds_it_is_one(log: tuple[str, ...], tmp_path: Path) -> None:
    """It is alone below its host bridge, which is not to blame for that."""
    (cause,) = causes(tmp_path, "dgx-h200", off_the_bus("0000:29:00.0", "0000:29:00.1"), log)
    assert (cause["id"], len(cause["explains"])) == ("hca/0000:29:00.0", 2 + len(log))


BELOW = [f"0000:{bdf}" for bdf in ("bc:00.0", "bd:00.0", "bd:04.0", "bf:00.0", "c0:00.0", "c1:00.0", "c2:00.0")]


@pytest.mark.parametrize("facts", [
    {}, {"nvml nvmlDeviceGetHandleByIndex 5": LOST}, off_the_bus("0000:c0:00.0"),
    {"nvml nvmlDeviceGetHandleByIndex 5": LOST, **off_the_bus("0000:c3:00.0", *BELOW)},
], ids=["log alone", "GPU", "HCA", "all below"])  # fmt: skip
def test_what_no_longer_answers_below_a_link_that_went_down_belongs_to_it(
    facts: dict[str, Json], tmp_path: Path
) -> None:
    """Whether the log, the driver or the PCI tree says that it does not answer."""
    log = ("pcieport 0000:bb:01.0: DPC: containment event, status:0x1f01 source:0x0000",
           "pcieport 0000:bb:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)",
           "pcieport 0000:bb:01.0:    [ 5] SDES                   (First)",
           OFF.format("c3"), f"mlx5_core 0000:c0:00.0: {DIED[0]}")  # fmt: skip
    found = document(tmp_path, "dgx-h100", facts, log)
    (cause,) = found["causes"]
    assert (cause["id"], found["unexplained"]) == ("link/0000:bc:00.0", [])
    assert [each["action"] for each in cause["actions"]][:2] == ["drain", "power-cycle"]


def test_the_bridges_of_a_board_that_is_lost_are_not_read_because_of_it(tmp_path: Path) -> None:
    gone = {f"nvml nvmlDeviceGetHandleByIndex {gpu}": LOST for gpu in (2, 3)}
    bridges = off_the_bus(*(f"0000:{bdf}" for bdf in ("08:00.0", "09:08.0", "09:10.0", "0a:00.0", "0b:00.0")))
    found = document(tmp_path, "k80-x8", {**gone, **bridges}, (OFF.format("0a"), OFF.format("0b")))
    (cause,) = found["causes"]
    assert (cause["component"]["kind"], found["unexplained"]) == ("board", [])
    assert {"pcie.uniform/0000:08:00.0", "pcie.uniform/0000:09:08.0"} <= {*cause["explains"]}


@pytest.mark.parametrize("bdf", ["0000:80:02.0", "0000:83:00.0", "0000:84:08.0"])
def test_a_bridge_that_cannot_be_read_is_no_part_of_the_cooling_of_a_board(bdf: str, tmp_path: Path) -> None:
    found = document(tmp_path, "k80-x8-board-hot", off_the_bus(bdf))
    (cause,) = found["causes"]
    assert (cause["component"]["kind"], cause["component"]["part"]) == ("board", "cooling")
    assert [key.partition("/")[2] for key in found["unexplained"]] == [bdf]


@pytest.mark.parametrize(("bdf", "is_part"), [
    ("0000:80:02.0", False), ("0000:83:00.0", True), ("0000:84:08.0", True), ("0000:87:00.0", False),
])  # fmt: skip
def test_a_board_that_is_lost_reaches_up_to_its_own_switch(bdf: str, is_part: bool, tmp_path: Path) -> None:
    """Of the root port above it the registers are read without the board."""
    gone = {f"nvml nvmlDeviceGetHandleByIndex {gpu}": LOST for gpu in (4, 5)}
    bridges = off_the_bus(bdf, "0000:85:00.0", "0000:86:00.0")
    found = document(tmp_path, "k80-x8", {**gone, **bridges}, (OFF.format("85"), OFF.format("86")))
    (cause,) = found["causes"]
    assert cause["component"]["kind"] == "board"
    assert any(key.endswith(bdf) for key in cause["explains"]) == is_part
    assert any(key.endswith(bdf) for key in found["unexplained"]) != is_part


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
     for bus in ("0c", "12") for line in DIED)), "link/0000:01:00.0", "power-cycle"),
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


@pytest.mark.parametrize(("lost", "due"), [
    (1, []), (2, ["interface/0000:0b:00.0"]), (5, ["interface/0000:0b:00.0"]), (6, []),
])
def test_an_interface_that_had_a_carrier_is_missed(lost: int, due: list[str], tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        "text /sys/class/net/enp11s0/carrier": "0\n",
        "text /sys/class/net/enp11s0/carrier_down_count": f"{lost}\n",
    }
    assert [cause["id"] for cause in causes(tmp_path, "dgx-b200", facts)] == due


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


def test_an_odd_mtu_is_set_with_ip(tmp_path: Path) -> None:
    (cause,) = causes(tmp_path, "hgx-h100", {"text /sys/class/net/ib5/mtu": "1500\n"})
    assert "ip link set dev" in cause["action"]["text"]
    assert "mstconfig" not in cause["action"]["text"]


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
