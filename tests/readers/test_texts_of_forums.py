"""Outputs as people paste them in forums and issues, alone: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import judged, of_text
from readers_text import one

from dgxcheck.assessment.importing.texts import lines as lines_of
from dgxcheck.facts.missing import Json
from dgxcheck.readers.any_text import outputs, unread
from dgxcheck.readers.host import slurm, units
from dgxcheck.readers.layout.undo import undone
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi import catalogue

WINDOWS = """\
PS C:\\Users\\a> nvidia-smi
Tue Mar 12 10:41:23 2024
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 546.12                 Driver Version: 546.12       CUDA Version: 12.3     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                     TCC/WDDM  | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA RTX A6000             WDDM  | 00000000:01:00.0  On |                  Off |
|  0%   35C    P8              17W / 300W |   1265MiB / 49140MiB |      3%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
|   1  Quadro RTX 8000               TCC  | 00000000:21:00.0 Off |                    2 |
| 33%   31C    P8              12W / 260W |      9MiB / 46080MiB |      0%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
"""
SHORTENED = """\
3b:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 80GB] (rev a1)
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx-
\tKernel driver in use: nvidia
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 16GT/s, Width x16
"""
"""Without the lines of its regions."""
STAGES = """\
-I- Stage                     Warnings   Errors     Comment
-I- Discovery                 0          0
-I- Speed / Width checks      0          2
"""
SINFO = """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
gpu*         up   infinite      4  drng@ gpu[01-04]
gpu*         up   infinite      1   mix* gpu05
gpu*         up   infinite      5  maint gpu[06-10]
"""
LONG = """\
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
gpu01          1      gpu*     drained 128    2:32:2 103100        0      1   (null) GPU3 fell off the bus
gpu02          1      gpu*        idle 128    2:32:2 103100        0      1   (null) none
"""
"""``sinfo -N -l``."""
NODES = """\
NAME     STATUS                     ROLES    AGE   VERSION
gpu-01   Ready,SchedulingDisabled   <none>   90d   v1.29.3
gpu-02   NotReady                   <none>   90d   v1.29.3
"""
RECORD = """\
SEL Record ID          : 0146
 Record Type           : 02
 Timestamp             : 03/27/2024 12:48:44
 Generator ID          : 0020
 Sensor Type           : {}
 Event Direction       : {} Event
 Event Data (RAW)      : 063000
 Description           : {}

"""
FREEIPMI = "3   | Oct-14-2020 | 10:05:22 | PS2 Status  | Power Supply       | Power Supply Failure detected\n"
SENSORS = """\
Fan 3            | 33h | lcr | 29.3 |  400 RPM
PSU1 Status      | C8h | ok  | 10.1 | Presence detected
PSU2 Status      | C9h | ok  | 10.2 | Presence detected, Power Supply AC lost
"""
IDRAC = """\
Record:      1
Date/Time:   12/05/2024 10:21:33
Source:      system
Severity:    Ok
Description: The power supplies are redundant.
-------------------------------------------------------------------------------
Record:      2
Date/Time:   12/06/2024 03:13:01
Source:      system
Severity:    Critical
Description: The power input for power supply 2 is lost.
"""
LIFECYCLE = """\
SeqNumber       = 1142
Message ID      = PCI1318
Severity        = Critical
Timestamp       = 2024-12-06 03:12:45
Message         = A fatal error was detected on a component at bus 59 device 0 function 0.
"""
ONE_LINE = """\
2024-03-10 23:08:02 PCI1318 A fatal error was detected on a component at bus 59 device 0 function 0.
2024-03-10 23:08:02 PSU0003 The power input for power supply 1 is lost.
2024-03-10 23:09:02 PSU0017 The power input for power supply 1 has been restored.
"""
IML = """\
Severity  Class  Last Update          Count  Description
Critical  Power  09/26/2022 10:11:00  1  Server Critical Fault (Service Information: Power-On Fault, GPU Board (02h))
"""
ENTRIES = """{
 "@odata.type": "#LogEntryCollection.LogEntryCollection", "Members@odata.count": 1,
 "Members": [{"@odata.type": "#LogEntry.v1_15_0.LogEntry", "Severity": "Critical",
   "Message": "Multi-bit memory errors detected on a memory device at location(s) DIMM_A3."}]
}
"""
HEALTH = """{
 "@odata.type": "#Thermal.v1_7_1.Thermal",
 "Fans": [{"Name": "FAN1", "Status": {"Health": "Critical", "State": "Enabled"}},
  {"Name": "FAN2", "Status": {"Health": "OK", "State": "Enabled"}}]
}
"""
UNIT = """\
× nvidia-persistenced.service - NVIDIA Persistence Daemon
     Loaded: loaded (/lib/systemd/system/nvidia-persistenced.service; static)
     Active: failed (Result: exit-code) since Tue 2024-10-01 08:11:15 UTC; 3min ago
        CPU: 4ms

Oct 01 08:11:15 gpu3 nvidia-persistenced[1214]: Failed to query NVIDIA devices. Please ensure that the files exist.
Oct 01 08:11:15 gpu3 systemd[1]: nvidia-persistenced.service: Failed with result 'exit-code'.
"""
UNITS = """\
  UNIT                         LOAD   ACTIVE SUB    DESCRIPTION
● nvidia-fabricmanager.service loaded failed failed NVIDIA fabric manager service
● openibd.service              loaded failed failed openibd - configure Mellanox devices

LOAD   = Reflects whether the unit definition was properly loaded.
2 loaded units listed.
"""
UNKNOWN = """\
RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable
"""
OLLAMA = """\
level=WARN source=gpu.go:220 msg="error initializing, cuda driver library init failure: 802. see docs"
"""
DSO = """\
E cuda_diagnostics.cc:309] kernel version 535.104.5 does not match DSO version 535.129.3 -- cannot find working devices
"""
DRAINED = """\
# nvidia-smi drain -p 0000:9b:00.0 -m 1
Successfully set GPU 00000000:9B:00.0 drain state to: draining.
"""
DISK = '{"critical_warning": 4, "avail_spare": 2, "media_errors": 218}\n'
CONTROL = '{"device": {"name": "/dev/sda"}, "smart_status": {"passed": false}}\n'
SETTING = "fabric manager config file item: FABRIC_NODE_CONFIG_FILE has an invalid value\n"
MISSING = """\
GPUMissing   True  Mon, 03 Mar 2025 08:00:00 +0000   Mon, 03 Mar 2025 07:40:00 +0000   Gone   expected 8 GPUs, found 7
"""
REFUSED = """\
2m          Warning   UnexpectedAdmissionError   pod/train-0   Allocate failed due to no healthy devices present; \
cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected
"""
PLUGIN = "I0313 08:11 1 factory.go:107] Detected non-NVML platform: could not load NVML library: libnvidia-ml.so.1\n"
INTERFACE = "Settings for ens1f0np0:\n\tSpeed: 100000Mb/s\n\tPort: Direct Attach Copper\n\tLink detected: no\n"
MODULE = """\
filename:       /lib/modules/5.15.0-105-generic/updates/dkms/nvidia.ko
version:        535.161.08
license:        NVIDIA
"""
INFORMATION = """\
Model: \t\t Tesla V100-SXM2-32GB
GPU UUID: \t GPU-????????-????-????-????-????????????
Bus Location: \t 0000:b3:00.0
GPU Excluded:\t No
"""
LINKS = "GPUs:\n" + "".join(
    f"    gpuId {at}:\n        {' '.join('U' * 12)} {'D' if at == 3 else 'U'} U U U U U\n" for at in range(8)
)
"""``dcgmi nvlink -s``, which names no model."""
CHECK = "20250303 /etc/nhc/nhc.conf: ERROR:  nhc:  Health check failed:  check_hw_ib:  No IB port mlx5_3:1 is ACTIVE\n"
ARRAYS = """\
Personalities : [raid1]
md0 : active raid1 nvme0n1p2[0](F) nvme1n1p2[1]
      937560384 blocks super 1.2 [2/1] [_U]

md1 : active raid1 nvme2n1p2[0] nvme3n1p2[1]
      937560384 blocks super 1.2 [2/2] [UU]

unused devices: <none>
"""
REASON = """\
NodeName=gpu07 Arch=x86_64
   State=IDLE+DRAIN ThreadsPerCore=2
   Reason=PCIe link width x8 [root@2024-03-11T08:11:10]
"""
POLICY = "Listening for violations.\nThe maximum number of retired pages has violated policy manager values.\n"
CONTAINERS = """\
Personalities : [raid1]
md126 : active raid1 nvme1n1[1] nvme0n1[0]
      890806272 blocks super external:/md127/0 [2/2] [UU]

md127 : inactive nvme1n1[1](S) nvme0n1[0](S)
      10402 blocks super external:imsm
"""
"""Of Intel VROC."""
INACTIVE = "md0 : inactive nvme1n1[1](S)\n      937560384 blocks super 1.2\n"
GOOD_SENSORS = """\
Planar Fault     | 3Ch | ok  |  7.1 | Predictive Failure Deasserted
PS1 Status       | C8h | ok  | 10.1 | Presence detected
Fan Redundancy   | 75h | ok  |  7.1 | Fully Redundant
"""
PARTS = """\
HDD 3            | 7Ch | ok  |  4.3 | Drive Present, Drive Fault
CPU1 Status      | 70h | ok  |  3.1 | Config Error
Cable SAS A      | 61h | ok  | 11.1 | Config Error
Mem ECC          | 71h | ok  | 32.1 | Predictive Failure
PS2 Status       | C9h | ok  | 10.2 | Presence detected, Failure detected
"""
GOOD_DISK = '{"critical_warning": {"value": 0, "available_spare": 0}, "media_errors": 0}\n'
WARNS = GOOD_DISK.replace('"value": 0', '"value": 4')
UNTOLD = '{"device": {"name": "/dev/sda"}, "smart_status": {}}\n'
OVER = IDRAC + """\
-------------------------------------------------------------------------------
Record:      3
Date/Time:   12/06/2024 04:00:09
Source:      system
Severity:    Ok
Description: The power input for power supply 2 has been restored.
"""
CORRECTABLE = IDRAC.replace("Critical", "Non-Critical").replace(
    "The power input for power supply 2 is lost.", "Correctable memory error rate exceeded for DIMM_A3.")
OF_TWO = "".join(
    RECORD.format("Fan", way, "Lower Critical").replace("Event Dir", f"Sensor Number         : {number}\n Event Dir")
    for number, way in ((30, "Assertion"), (31, "Deassertion"))
)
DIRECTIONS = """\
ID  | Date        | Time     | Name        | Type               | Event Direction   | Event
3   | Oct-14-2020 | 10:05:22 | PS2 Status  | Power Supply       | Assertion Event   | Power Supply Failure detected
4   | Oct-14-2020 | 10:09:51 | PS2 Status  | Power Supply       | Deassertion Event | Power Supply Failure detected
"""
ABSENT = HEALTH.replace("Enabled", "Absent", 1)
ROLLUP = """{
 "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem", "Name": "System",
 "Status": {"Health": "Critical", "State": "Enabled"},
 "MemorySummary": {"Status": {"Health": "Critical"}}
}
"""
TWO_EVENTS = REFUSED + "3m          Warning   NodeNotReady   node/gpu-02   Node is not ready\n"
RUNNING = UNIT.replace("failed (Result: exit-code)", "active (running)").split("\n\n")[0] + "\n"
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
COMPONENTS = {
    "a lost GPU, which its BMC logs too": (
        OFF_BUS + EVENT.format("Critical Interrupt #0x88 | Bus Fatal Error"), [("gpu/0000:52:00.0", "reboot")]),
    "a lost GPU, which nvsm counts": (
        f"{OFF_BUS}Verify installed GPUs.......... Unhealthy\nOverall system status is unhealthy\n",
        [("gpu/0000:52:00.0", "reboot")]),
    "a lost GPU, which Slurm misses": (
        f"{OFF_BUS}NodeName=gpu07\n   State=IDLE+DRAIN\n   Reason=gres/gpu count reported lower than configured\n",
        [("gpu/0000:52:00.0", "reboot")]),
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
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "Windows": (WINDOWS, ("fail ecc-uncorrected drain",)),
    "lspci, shortened": (SHORTENED, ()),
    "sinfo": (SINFO, ()),
    "kubectl get nodes": (NODES, ()),
    "a record of the BMC": (RECORD.format("Memory", "Assertion", "Uncorrectable ECC"), ("warn dimm-errors inspect",)),
    "a record that is over": (RECORD.format("Fan", "Assertion", "Lower Critical") + RECORD.format(
        "Fan", "Deassertion", "Lower Critical"), ()),
    "ipmi-sel": (FREEIPMI, ("warn power-supply inspect",)),
    "ipmitool sdr elist": (SENSORS, ("warn fan inspect", "warn power-supply inspect")),
    "racadm getsel": (IDRAC, ("warn power-supply inspect",)),
    "racadm lclog": (LIFECYCLE, ("warn aer-uncorrectable inspect",)),
    "records of a line": (ONE_LINE, ("warn aer-uncorrectable inspect",)),
    "the log of HPE's iLO": (IML, ("warn test-failed inspect",)),
    "the log of HPE's iLO, repaired": (IML.replace("Critical  Power", "Repaired  Power"), ()),
    "entries by Redfish": (ENTRIES, ("warn dimm-errors inspect",)),
    "health by Redfish": (HEALTH, ("warn fan inspect",)),
    "systemctl status": (UNIT, ()),
    "systemctl list-units": (UNITS, ("fail fabric-manager-down inspect",)),
    "PyTorch": (UNKNOWN, ("warn driver-failed inspect",)),
    "Ollama": (OLLAMA, ("fail fabric-manager-down inspect",)),
    "TensorFlow": (DSO, ("fail driver-mismatch inspect",)),
    "nvidia-smi drain": (DRAINED, ()),
    "nvme -o json": (DISK, ("warn disk inspect",)),
    "smartctl -j": (CONTROL, ("warn disk inspect",)),
    "a setting of Fabric Manager": (SETTING, ("warn fabric-manager-error inspect",)),
    "a condition": (MISSING, ("warn gpus-not-offered inspect",)),
    "an event of a pod": (REFUSED, ("warn gpus-not-offered inspect",)),
    "the device plugin": (PLUGIN, ("warn container-runtime inspect",)),
    "ethtool": (INTERFACE, ()),
    "modinfo": (MODULE, ()),
    "a GPU's file": (INFORMATION, ()),
    "dcgmi nvlink -s": (LINKS, ("warn nvlink-down drain",)),
    "NHC behind the name of its file": (CHECK, ("fail port-down inspect",)),
    "/proc/mdstat": (ARRAYS, ("warn disk inspect",)),
    "a reason that names no device": (REASON, ("warn link-tested inspect",)),
    "a reason that names no GPU": (REASON.replace("PCIe link width x8", "Xid 79"), ("warn gpu-lost inspect",)),
    "a policy of DCGM": (POLICY, ("warn pages-many watch",)),
    "ibdiagnet": (STAGES, ("warn port-slow inspect",)),
    "containers of arrays": (CONTAINERS, ()),
    "an array that is not assembled": (INACTIVE, ("warn disk inspect",)),
    "good sensors": (GOOD_SENSORS, ()),
    "sensors of parts": (PARTS, ("warn machine-check inspect", "warn disk inspect", "warn dimm-errors inspect",
                                 "warn power-supply inspect")),
    "nvme -o json -v, good": (GOOD_DISK, ()),
    "nvme -o json -v": (WARNS, ("warn disk inspect",)),
    "smartctl -j, good": (CONTROL.replace("false", "true"), ()),
    "smartctl -j without a result": (UNTOLD, ()),
    "racadm getsel, good": (IDRAC.replace("Critical", "Ok"), ()),
    "racadm getsel, over": (OVER, ()),
    "racadm getsel, not critical": (CORRECTABLE, ("warn dimm-errors inspect",)),
    "records of two sensors": (OF_TWO, ("warn fan inspect",)),
    "ipmi-sel, over": (DIRECTIONS, ()),
    "ipmi-sel, not over": (DIRECTIONS.replace("Deassertion", "Assertion"), ("warn power-supply inspect",)),
    "Redfish, absent": (ABSENT, ()),
    "Redfish, good": (HEALTH.replace("Critical", "OK"), ()),
    "Redfish, a system": (ROLLUP, ("warn dimm-errors inspect",)),
    "events of a pod and a node": (TWO_EVENTS, ("warn gpus-not-offered inspect",)),
    "systemctl status, good": (RUNNING, ()),
}
"""By text: of each cause severity, faults and first step."""


def told(output: Imported) -> list[tuple[Json, Json, Json]]:
    """Outcome, fault and text of every result."""
    results = [fact for fact in output.facts.values() if isinstance(fact, dict) and "outcome" in fact]
    return [(fact["outcome"], fact["fault"], fact["text"]) for fact in results]


def test_a_gpu_that_is_kept_from_programs() -> None:
    shown = "The current drain state of GPU 00000000:9B:00.0 is: {}."
    results = [told(one(catalogue.read_drain, shown.format(state))) for state in ("draining", "not draining")]
    assert [outcome for ((outcome, _, _),) in results] == ["note", "pass"]


def test_what_the_scheduler_says_of_nodes() -> None:
    """A state is a note that tells where the reason is; a reason counts as what it names."""
    (states,) = slurm.read_slurm(tuple(SINFO.splitlines()))
    notes = [text for outcome, _, text in told(states) if outcome == "note"]
    assert notes == ["gpu[01-04] drng@: sinfo -R says why", "gpu05 mix*: sinfo -R says why"]
    lost, fine = slurm.read_slurm(tuple(LONG.splitlines()))
    assert (lost.host, fine.host) == ("gpu01", "gpu02")
    assert told(lost) == [("warn", "gpu-lost", "GPU3 fell off the bus")]


@pytest.mark.parametrize(("text", "note"), [
    ("Unit nvidia-fabricmanager.service could not be found.", "nvidia-fabricmanager is not installed"),
    ("Failed to restart openibd.service: Unit openibd.service not found.", "openibd is not installed"),
    ("Failed to enable unit: Unit file nvidia-imex.service does not exist.", "nvidia-imex is not installed"),
    ("Failed to start dcgm.service: Unit dcgm.service is masked.", "dcgm is masked"),
    ("● dcgm.service - DCGM service\n  Active: activating (auto-restart) (Result: core-dump) since Wed; 3s ago",
     "dcgm failed: journalctl -b -u dcgm says why"),
    ("     Loaded: loaded (/lib/systemd/system/openibd.service; enabled)\n     Active: failed (Result: exit-code)",
     "openibd failed: journalctl -b -u openibd says why"),
])  # fmt: skip
def test_a_service_that_systemd_does_not_have_is_a_note(text: str, note: str) -> None:
    (output,) = units.read_units((*text.splitlines(),))
    assert told(output) == [("note", "", note)]
    other = text.replace("nvidia-", "some-").replace("openibd", "sshd").replace("dcgm", "ssh")
    assert units.read_units((*other.splitlines(),)) == ()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    text, causes = EXPECTED[name]
    assert of_text(text, tmp_path)[0] == causes
    lines = lines_of(text.encode(), "f")
    layout = undone(lines)
    left = unread(lines, layout, [output for _, output in outputs(layout)])
    assert [lines[number] for number in left] == []


@pytest.mark.parametrize("name", COMPONENTS)
def test_the_component_that_a_text_names(name: str, tmp_path: Path) -> None:
    text, causes = COMPONENTS[name]
    _, found = of_text(text, tmp_path)
    assert [(each["id"], each["action"]["action"]) for each in found["causes"]] == causes


def test_an_nvswitch_has_the_ports_that_fabric_manager_names(tmp_path: Path) -> None:
    text = MANAGER.format("non-fatal", 12028)
    _, found = of_text(text + text.replace("port 35", "port 7"), tmp_path)
    (cause,) = found["causes"]
    assert cause["component"]["position"] == "7, 35"


def test_nothing_of_linux_is_saved_on_windows(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(WINDOWS)
    _, found = judged(str(tmp_path / "text.txt"))
    assert {each["command"][0] for cause in found["causes"] for each in cause["save_first"]} == {"nvidia-smi"}
