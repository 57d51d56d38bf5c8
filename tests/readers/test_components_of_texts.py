"""Texts pasted alone, and the component that they name: what is to blame, and the step that is due."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from test_texts_of_disks import ARRAYS
from test_texts_of_hosts import SHORTENED
from test_texts_of_nvidia_smi import WINDOWS

NARROW = SHORTENED.replace("LnkSta:\tSpeed 16GT/s, Width x16", "LnkSta:\tSpeed 16GT/s (ok), Width x{} (downgraded)")
STATUS = SHORTENED.replace(
    "\tKernel", "\t\tUESta:\tDLP- SDES+ TLP- FCP- CmpltTO{} RxOF- MalfTLP- ECRC- UnsupReq+\n\tKernel")
OVER_TCP = """\
gpu1:711:731 [0] NCCL INFO NET/IB : No device found.
gpu1:711:731 [0] NCCL INFO NET/Socket : Using [0]{}:10.4.0.11<0>
gpu1:711:731 [0] NCCL INFO Using network Socket
gpu1:711:731 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0
"""
ACTIVE = """\
CA 'mlx5_2'
	CA type: MT4129
	Number of ports: 1
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 400
		SM lid: 3
		Link layer: InfiniBand
"""
BIT_ERRORS = """\
# mlxlink -d mlx5_2 -c
Operational Info
----------------
State                              : Active
Physical state                     : LinkUp
Speed                              : IB-NDR
Width                              : 4x

Physical Counters and BER Info
------------------------------
Effective Physical BER             : {}
Link Down Counter                  : 3
"""
SILENT = WINDOWS.replace("TCC/WDDM ", "Persistence-M").replace(" WDDM", "   On").replace("  TCC", "   On").replace(
    "33%   31C    P8              12W / 260W", "ERR!  ERR! ERR!             ERR! / ERR!").replace(
    "  2 |", "ERR |").split("\n", 1)[1]
MANAGER = (
    "[May 11 2025 08:06:01] [ERROR] [tid 27812] detected NVSwitch {} error {} on NodeId 0 on NVSwitch pci bus id"
    " 00000000:86:00.0 physical id 10 port 35\n"
)
SMART = """\
$ sudo smartctl -H /dev/nvme3
=== START OF SMART DATA SECTION ===
SMART overall-health self-assessment test result: FAILED!
"""
GONE = "ibpanic: [4711] main: stat of IB device 'mlx5_9' failed: No such file or directory\n" + ACTIVE.replace(
    "Active", "Initializing")
SPACE = """\
Filesystem      Size  Used Avail Use% Mounted on
/dev/md0        879G  879G     0 {}% {}
/dev/loop3       64M   64M     0 100% /snap/core20/2318
"""
TRACKING = "Reference ID    : 7F7F0101 ()\nStratum         : 10\nLeap status     : {}\n"
MCELOG = """\
gpu1 mcelog[1226]: Hardware event. This is not a software error.
gpu1 mcelog[1226]: MCE 0
gpu1 mcelog[1226]: CPU 0 BANK 7 TSC b98e63765d2
gpu1 mcelog[1226]: {} error
gpu1 mcelog[1226]: MCA: MEMORY CONTROLLER RD_CHANNEL0_ERR
gpu1 mcelog[1226]: STATUS 9c00004001010090 MCGSTATUS 0
"""
DETAIL = """\
/dev/md1:
           Version : 1.2
        Raid Level : raid5
      Raid Devices : 4
             State : clean{}
    Active Devices : 3
    Number   Major   Minor   RaidDevice State
       0     259        3        0      active sync   /dev/nvme2n1
       -       0        0        1      removed
"""
DECODED = "9 | 02/12/2024 | 01:11:12 UTC | Memory #0x87 | Uncorrectable ECC (UnCorrectable ECC |  DIMMG1) | Asserted\n"
FLAPS = "".join(
    f"Jan  3 10:{minute:02}:01 gpu1 kernel: mlx5_core 0000:5e:00.0 mlx5_3: Port: 1 Link {state}\n"
    for minute in (11, 19, 24) for state in ("DOWN", "ACTIVE")
)
PRE_INIT = "   1 |  Pre-Init  |0000171903| Critical Interrupt #0xa1 | Bus Fatal Error | Asserted\n"
ILO = "LOG: Uncorrectable {} (Slot 4, Bus 0, Device 3, Function 0, Error status 0x00000020)\n"
PROVIDER = """\
n7:19:31 [2] nccl_net_ofi_rdma_init:7712 NCCL WARN NET/OFI OFI fi_getinfo() call failed: No data available
n7:19:31 [2] nccl_net_ofi_create_plugin:338 NCCL WARN NET/OFI aws-ofi-nccl initialization failed
"""
CLAIM = """\
  Warning  FailedPrepareDynamicResources  9m (x4 over 11m)  kubelet  Failed to prepare dynamic resources: prepare \
dynamic resources: NodePrepareResources failed for ResourceClaim job-0-{}
"""
DOMAIN = "channel-x: error preparing devices: error applying config: current node not ready in ComputeDomain"
CDI = "gpu-x: error preparing devices: unable to create CDI spec file for claim"
HGX = """\
{{"@odata.type": "#LogEntry.v1_15_0.LogEntry", "Severity": "Critical", "Created": "2026-03-04T05:06:07+00:00",
 "Message": "The resource property {} has detected errors of type '{}'."}}
"""
CONSUMED = """\
[ 9001.100000] mce: [Hardware Error]: CPU 33: Machine Check Exception: f Bank 1: bd80000000100134
[ 9001.100100] mce: Uncorrected hardware memory error in user-access at 7f1c2d3400
[ 9001.100200] Memory failure: 0x7f1c2d3: recovery action for dirty LRU page: Recovered
"""
OFF_BUS = "[54.000000] NVRM: Xid (PCI:0000:52:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
EVENT = "   1 | 11/12/2025 | 09:10:12 | {} | Asserted\n"
DROPPED = """\
[54321.000000] nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10
[54321.010000] md/raid1:md0: Disk failure on nvme0n1p2, disabling device.
"""
NO_ROWS = """\
Attached GPUs                                          : 1
GPU 00000000:52:00.0
    Product Name                                       : NVIDIA H100 80GB HBM3
    Minor Number                                       : 0
    Remapped Rows
        Correctable Error                              : 0
        Uncorrectable Error                            : 8
        Pending                                        : No
        Remapping Failure Occurred                     : Yes
"""
BRAKE = """\
Attached GPUs                                          : 1
GPU 00000000:52:00.0
    Product Name                                       : NVIDIA H100 80GB HBM3
    Clocks Event Reasons
        HW Slowdown                                    : Active
            HW {} Slowdown                        : Active
"""
FAILED_TEST = """\
| Diagnostic                | Result                                         |
|-----  Hardware  ----------+------------------------------------------------|
| GPU Memory                | Fail - GPU: 0                                  |
"""
MISMATCH = """\
Failed to initialize NVML: Driver/library version mismatch
NVML library version: 580.105
● nvidia-fabricmanager.service - NVIDIA fabric manager service
     Active: failed (Result: exit-code) since Wed 2025-11-12 09:14:02 UTC; 3h ago
"""
OFFERED = "Capacity:\n  nvidia.com/gpu:     4\nAllocatable:\n  nvidia.com/gpu:     3\n"
UUID = "GPU-00000000-1111-2222-3333-444444444444"
COMPONENTS = {
    "a lost GPU, which its BMC logs too": (
        OFF_BUS + EVENT.format("Critical Interrupt #0x88 | Bus Fatal Error"), [("gpu/0000:52:00.0", "reboot")]),
    "a lost GPU, which nvsm counts": (
        f"{OFF_BUS}Verify installed GPUs.......... Unhealthy\nOverall system status is unhealthy\n",
        [("gpu/0000:52:00.0", "reboot")]),
    "a lost GPU, which Slurm misses": (
        f"{OFF_BUS}NodeName=gpu07\n   State=IDLE+DRAIN\n   Reason=gres/gpu count reported lower than configured\n",
        [("gpu/0000:52:00.0", "reboot")]),
    "a GPU that the device plugin withholds for an Xid": (
        f"{OFFERED}I0303 08:11:09.000000       1 health.go:186] XidCriticalError: Xid=94 on Device={UUID}; marking"
        " device as unhealthy.\nI0303 08:11:09.000100       1 server.go:276] 'nvidia.com/gpu' device marked unhealthy:"
        f" {UUID}\n",
        [("gpu/ffffffff:00:00.0/memory", "inspect")]),
    "a GPU with an Xid for which Slurm misses none": (
        "NodeName=gpu07\n   State=IDLE+DRAIN\n   Reason=gres/gpu count reported lower than configured\n"
        "[1.0] NVRM: Xid (PCI:0000:52:00): 94, pid=4711, name=python3, Contained: SM (0x1). RST: No, D-RST: No\n",
        [("host/host/GPUs for the scheduler", "inspect"), ("gpu/0000:52:00.0", "restart-program")]),
    "a lost GPU, without which Fabric Manager failed": (
        OFF_BUS + MISMATCH.partition("580.105\n")[2], [("gpu/0000:52:00.0", "reboot")]),
    "a port, which its BMC does not name": (
        "[1.0] pcieport 0000:00:03.0: AER: Uncorrected (Fatal) error received: 0000:00:03.0\n"
        + EVENT.format("Critical Interrupt #0x88 | Bus Fatal Error"), [("function/0000:00:03.0", "inspect")]),
    "a fan, and the only GPU that lacks its air": (
        BRAKE.format("Thermal") + EVENT.format("Fan FAN_1_F | Lower Critical going low "),
        [("host/host/cooling", "inspect")]),
    "a power supply, and the only GPU that says so": (
        BRAKE.format("Power Brake") + EVENT.format("Power Supply #0x53 | Failure detected"),
        [("host/host/power supply", "inspect")]),
    "an error of NVLink, by a program that names no GPU": (
        "[1.0] NVRM: Xid (PCI:0000:52:00): 74, pid=4711, name=python3, NVLink: fatal error detected on link 4(0x10000,"
        " 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)\nRuntimeError: CUDA error: uncorrectable NVLink error detected during the"
        " execution\n", [("gpu/0000:52:00.0", "reset-gpu")]),
    "lscpu": (
        "Architecture: x86_64\nCPU(s): 8\nOn-line CPU(s) list: 0-3,5-7\nOff-line CPU(s) list: 4\n",
        [("host/host/CPUs", "change-setting")]),
    "a disk of an array, by four tools": (
        ARRAYS + DROPPED + SMART.replace("nvme3", "nvme0") + EVENT.format("Drive Slot / Bay NVMe0 | Drive Fault"),
        [("disk/md0", "inspect")]),
    "a DIMM, which its BMC does not name": (
        "[1.0] EDAC MC1: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x7e1f23"
        " offset:0x0 grain:32)\n" + EVENT.format("Memory #0x87 | Uncorrectable ECC"),
        [("host/host/memory/CPU_SrcID#1_MC#0_Chan#0_DIMM#0", "inspect")]),
    "a GPU without spare rows, whose test fails": (
        NO_ROWS + FAILED_TEST, [("gpu/0000:52:00.0/memory", "field-diagnostic")]),
    "a driver that Fabric Manager does not find": (MISMATCH, [("driver/NVIDIA driver", "inspect")]),
    "an NVSwitch that programs wait for": (
        "[1.0] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 12020, Fatal, Link 30 egress sequence ID error\n"
        "RuntimeError: CUDA error: system not yet initialized\n", [("nvswitch/0000:06:00.0", "reboot")]),
    "a battery": (EVENT.format("Battery #0x36 | Low"), [("host/host/batteries", "inspect")]),
    "a voltage": (EVENT.format("Voltage P12V | Lower Critical going low "), [("host/host/power supply", "inspect")]),
    "the voltage of a battery": ("VBAT | 2.412 | Volts | cr | 2.375 | 2.5", [("host/host/batteries", "inspect")]),
    "an event before the clock was set": (PRE_INIT, [("host/host/PCIe links", "inspect")]),
    "an error of PCIe of HPE's iLO": (ILO.format("PCI Express Error"), [("host/host/PCIe links", "inspect")]),
    "a machine check of HPE's iLO": (
        ILO.format("Machine Check Exception").replace("Slot 4", "Processor 2"), [("host/host/CPUs", "inspect")]),
    "a plug-in that finds no device": (PROVIDER, [("host/host/network of NCCL", "inspect")]),
    "a claim of a domain": (CLAIM.format(DOMAIN), [("host/host/IMEX", "inspect")]),
    "a claim of a GPU": (CLAIM.format(CDI), [("host/host/GPUs for the scheduler", "inspect")]),
    "HGX, a link of PCIe": (HGX.format("GPU_SXM_5 PCIe", "LTSSM Link Down"), [("host/host/PCIe links", "inspect")]),
    "HGX, errors of PCIe": (HGX.format("PCIeSwitch_0", "PCIe Uncorrectable Error"), [
        ("host/host/PCIe links", "inspect")]),
    "HGX, memory": (HGX.format("GPU_SXM_3 Memory", "Row-Remapping Failure"), [
        ("gpu/ffffffff:00:00.0/memory", "inspect")]),
    "HGX, a reset": (HGX.format("GPU_SXM_7", "GPU Reset Required"), [("gpu/ffffffff:00:00.0", "inspect")]),
    "memory that a core read": (CONSUMED, [("host/host/memory", "inspect")]),
    "an event with what its number means": (DECODED, [("host/host/memory", "inspect")]),
    "a port that goes down again and again": (FLAPS, [("port/0000:5e:00.0/1", "inspect")]),
    "mdadm --detail": (DETAIL.format(", degraded"), [("disk/md1", "inspect")]),
    "mdadm --detail, good": (DETAIL.format(""), []),
    "df": (SPACE.format(100, "/"), [("host/host/disks", "inspect")]),
    "df, shared memory": (SPACE.format(100, "/dev/shm"), [("host/host/shared memory", "inspect")]),
    "df, good": (SPACE.format(93, "/"), []),
    "chronyc": (TRACKING.format("Not synchronised"), [("host/host/time synchronisation", "inspect")]),
    "chronyc, good": (TRACKING.format("Normal"), []),
    "timedatectl": ("System clock synchronized: no\n", [("host/host/time synchronisation", "inspect")]),
    "mcelog": (MCELOG.format("Uncorrected"), [("host/host/memory", "inspect")]),
    "mcelog, corrected": (MCELOG.format("Corrected"), []),
    "mcelog, a file": (
        MCELOG.format("Corrected").replace("gpu1 mcelog[1226]: ", "") + "\nas root\nUncorrected error\n", []),
    "Fabric Manager, not fatal": (MANAGER.format("non-fatal", 12028), [("nvswitch/0000:86:00.0", "inspect")]),
    "Fabric Manager, fatal": (MANAGER.format("fatal", 20034), [("nvswitch/0000:86:00.0", "reset-gpu")]),
    "Fabric Manager, harmless": (MANAGER.format("non-fatal", 22013), []),
    "a degraded array": (ARRAYS, [("disk/md0", "inspect")]),
    "a disk that fails": (SMART, [("disk/nvme3", "inspect")]),
    "a GPU of which nothing can be read": (SILENT, [("gpu/0000:21:00.0", "inspect")]),
    "an adapter without its file, and another's port": (
        GONE, [("hca/mlx5_9", "inspect"), ("subnet-manager/at port mlx5_2/1", "inspect")]),
    "a quarter of the lanes": (NARROW.format(4), [("gpu/0000:3b:00.0", "inspect")]),
    "an adapter that reads all ones": (
        "5e:00.0 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6] (rev ff)\n",
        [("hca/0000:5e:00.0", "inspect")]),
    "an error that its status holds": (STATUS.format("+"), [("gpu/0000:3b:00.0", "inspect")]),
    "an error that is masked": (
        STATUS.format("+").replace("\tKernel", "\t\tUEMsk:\tDLP- SDES- TLP- FCP- CmpltTO+ RxOF-\n\tKernel"), []),
    "errors of probing that its status holds": (STATUS.format("-"), []),
    "half of the lanes": (NARROW.format(8), []),
    "a quarter of the lanes of a device without name": (
        NARROW.format(4).split("\n", 3)[3], [("host/host/PCIe links", "inspect")]),
    "TCP over InfiniBand": (OVER_TCP.format("ibp12s0"), [("host/host/network of NCCL", "inspect")]),
    "TCP beside an active port": (ACTIVE + OVER_TCP.format("eno1"), [("host/host/network of NCCL", "inspect")]),
    "TCP": (OVER_TCP.format("eno1"), []),
    "bit errors": (BIT_ERRORS.format("4E-9"), [("port/mlx5_2/1", "inspect")]),
    "no bit errors": (BIT_ERRORS.format("15E-255"), []),
}
"""By text: of each cause the component and the step that is due."""


@pytest.mark.parametrize("name", COMPONENTS)
def test_the_component_that_a_text_names(name: str, tmp_path: Path) -> None:
    text, causes = COMPONENTS[name]
    _, found = of_text(text, tmp_path)
    assert [(each["id"], each["action"]["action"]) for each in found["causes"]] == causes


SLURM = "NodeName=gpu07\n   State=IDLE+DRAIN\n   Reason=gres/gpu count reported lower than configured\n"
DBE = "Xid (PCI:0000:54:00): 48, pid=4711, name=python3, DBE (Double Bit Error)"


@pytest.mark.parametrize(("offered", "looks"), [(OFFERED, True), (SLURM, False)])
def test_a_device_plugin_is_looked_at_after_the_reset_whether_or_not_the_fault_persists(
    offered: str, looks: bool, tmp_path: Path
) -> None:
    """Slurm has no such plugin."""
    _, found = of_text(f"{offered}[1.0] NVRM: {DBE}\n", tmp_path)
    (cause,) = found["causes"]
    at_once = [each["action"] for each in cause["actions"] if each["condition"] is None]
    assert at_once == ["drain", "stop-jobs", "reset-gpu", *(["inspect"] if looks else [])]
    assert looks == any("nvidia-device-plugin" in each["text"] for each in cause["actions"])


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Xid (PCI:0000:52:00): 94, pid=4711, name=python3, Contained: SM (0x1). RST: No, D-RST: No",
         ["restart-program", "inspect"]),
        ("GPU at PCI:0000:52:00: GPU-1\nNVRM: GPU 0000:52:00.0: GPU has fallen off the bus.", ["drain", "reboot"]),
    ],
)  # fmt: skip
def test_a_device_plugin_is_looked_at_once_the_gpu_that_it_withholds_runs(
    text: str, steps: list[str], tmp_path: Path
) -> None:
    _, found = of_text(f"{OFFERED}[1.0] NVRM: {text}\n", tmp_path)
    (cause,) = found["causes"]
    assert [each["action"] for each in cause["actions"]][:2] == steps
    looks = [each["text"] for each in cause["actions"] if "nvidia-device-plugin" in each["text"]]
    assert len(looks) == ("inspect" in steps)


def test_an_nvswitch_has_the_ports_that_fabric_manager_names(tmp_path: Path) -> None:
    text = MANAGER.format("non-fatal", 12028)
    _, found = of_text(text + text.replace("port 35", "port 7"), tmp_path)
    (cause,) = found["causes"]
    assert cause["component"]["position"] == "7, 35"
