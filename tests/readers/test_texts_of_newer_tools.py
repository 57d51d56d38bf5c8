"""Lines of drivers from R570, DCGM 4, NCCL 2.27 and what runs beside them, alone: what health finds, and its first
step."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from judging import BAD, of_text
from readers_text import results
from smi_texts import TABLE

from dgxcheck.assessment.importing.texts import lines as lines_of
from dgxcheck.readers.any_text import outputs, unread
from dgxcheck.readers.benchmarks.gpu_burn import read_memtest
from dgxcheck.readers.dcgm import diag
from dgxcheck.readers.layout.undo import undone

TO_RESET = """\
GPU 00000000:9A:00.0
    Product Name                                       : NVIDIA A100-SXM4-80GB
    GPU Recovery Action                                : Reset
    ECC Errors
        Channel Repair Pending                         : GPU requires reset
        TPC Repair Pending                             : GPU requires reset
"""
"""Fields that NVML refuses with NVML_ERROR_RESET_REQUIRED; the GPU is on the bus."""
OF_EFA = """\
libfabric:4517:1708520807::efa:cq:efa_rdm_txe_handle_error():737<warn> err: {}, message: {} My EFA addr: \
fi_addr_efa://[fe80::13]:0:1 My host id: i-0db7 Peer EFA addr: fi_addr_efa://[fe80::b8]:0:9 Peer host id: i-0ce6 (15)
libfabric:151205:1753871244::core:core:fi_getinfo_():1385<info> fi_getinfo: provider lnx returned -61
"""
"""prov/efa/src/rdm/efa_rdm_ope.c of libfabric, the whole line of aws-ofi-nccl issue 346."""
OFI = "ip-10-1-7-2:9:8 [5] NCCL WARN NET/OFI Request 0x7f completed with error. RC: 113. Error: 15 ({}). Length: 0\n"
UNREACHED, UNRESPONSIVE = "Unreachable remote - never received a response", "Unresponsive receiver (handshake failed)"
MULTINODE = """\
Running multinode_device_to_device_memcpy_read_ce.
[CUDA_ERROR_INVALID_VALUE] invalid argument in expression cuMemSetAccess(buffer) on node0, rank = 8 in F() : /m.cpp:76
"""
RAS_TABLE = """\
  Nodes  Processes         GPUs
          per node  per process
      1          2            1

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    2         4         0         0         0         0    NOCOMM  {}
"""
HEALTH = """\
| Health Monitor Report                                                                |
+===========================+==========================================================+
| Overall Health            | Failure                                                  |
| {:<25} |                                                          |
| -> 1                      | Failure                                                  |
|    -> Errors              |                                                          |
|       -> {:<16} | Failure                                                  |
|                           | {:<56} |
+---------------------------+----------------------------------------------------------+
"""
"""DCGM 4, dcgmi/Health.cpp: entities of each kind have numbers of their own."""
SWITCH = HEALTH.format("Switch", "NVLINK system", "Detected fatal errors on NvSwitch 1 link 12")
CONNECTX = HEALTH.format("ConnectX", "ConnectX system", "ConnectX entity Id:1 uncorrectable fatal errors: 0x4000")
LANES = HEALTH.format("GPU", "PCIe system", "Detected more than 8 PCIe replays per minute for GPU 1")
TREE = """{"body": {"Overall Health": {"value": "Failure"}, "Switch": {"children": {"1": {"children": {"Errors":
{"children": {"NVLINK system": {"children": {"Failure": {"children": {"Detected fatal errors on NvSwitch 1 link 12":
{}}}}}}}}}}}}}
"""
COUNTS = """\
+-----------------------------+------------------------------------------------+
| NVLINK Error Counts                                                          |
| GPU 3                                                                        |
+=============================+================================================+
| Error Detail                |                                                |
| -> Rx Symbol Error          | 0                                              |
| -> Symbol BER               | 1.5e-254                                       |
| -> Effective BER            | {:<46} |
+-----------------------------+------------------------------------------------+
"""
"""DCGM 4, dcgmi/Nvlink.cpp: of GPUs from Blackwell on."""
LINKS = """\
+----------------------+
|  NvLink Link Status  |
+----------------------+
GPUs:
    gpuId 0:
        U U {0} U
    Link Entities:  0:01  1:02
    gpuId 1:
        U U U U
    Link Entities: N/A
NvSwitches:
    No NvSwitches found.
"""
GH200 = "GPU 0: NVIDIA GH200 480GB (UUID: GPU-2e2b6342-3996-51b9-5480-e20df571e09c)\n"
C2C = GH200 + "\t C2C Link 0: 44.712 GB/s\n\t C2C Link 1: {}\n"
C2C_STATUS = 'DCGM_FI_DEV_C2C_LINK_STATUS{{gpu="{0}",pci_bus_id="0000000{0}:01:00.0",modelName="NVIDIA {1}"}} {2}\n'
NO_C2C = GH200 + "NVML: Unable to retreive C2C Link information as all links are inActive\n"
A100 = GH200.replace("GH200 480GB", "A100-SXM4-80GB")
ONE_LINK = A100 + "NVML: Unable to retrieve NVLink information for link 3 - inActive\n"
PCI_COUNTS = A100 + """\
    REPLAY_COUNTER:          {}
    L0_TO_RECOVERY_COUNTER:  12
    CORRECTABLE_ERRORS:      2
    NON_FATAL_ERROR:         1
    FATAL_ERROR:             {}
    UNSUPPORTED_REQ:         1
    LANE_ERROR:
\t lane  0: 0
"""
"""The strings of nvidia-smi 550.163."""
MODULE = """\
$ mlxlink -d {} -m

Operational Info
----------------
State                              : Active
Physical state                     : LinkUp
Speed                              : IB-NDR
Width                              : 4x

Troubleshooting Info
--------------------
Status Opcode                      : 0
Recommendation                     : No issue was observed

Tool Information
----------------
amBER Version                      : 6.4

Module Info
-----------
Temperature [C]                    : {}
Bias Current [mA]                  : 0,0,0,0 [0..0]
Attenuation (5g,7g,12g,25g)[dB]    : 0,0,0,0
Module State                       : {}
DataPath FW Fault                  : {}
Tx Fault [per lane]                : {}
Rx LOS [per lane]                  : 1,0,1,1
Rx CDR LOL [per lane]              : 1,1,1,1
"""
"""Lanes are shown as lost of a copper cable at work, too."""
ADAPTER = "/dev/mst/mt4129_pciconf0"
UNQUERIED = """\
Querying Mellanox devices firmware ...

Device #1:
----------

  Device Type:      ConnectX7
  PSID:             MT_0000000834
  PCI Device Name:  0000:b6:00.0
  Status:           Failed to open device

---------
-E- Failed to query 0000:b6:00.0 device, error : FwInit has failed!
"""
STAGES = """\
-E- Ports counters Difference Check finished with errors
-E- lid=0x0012 dev=54000 leaf-3/U1/P17 - "symbol_error_counter" increased during the run (difference value=22)
-W- host-a17/mlx5_4/1 - link is in wrong width 2x instead of 4x
-I- Stage                     Warnings   Errors     Comment
-I- Port Counters             0          1
-I- BER Check                 2          0
"""
EXPORTER = """\
# HELP nvidia_smi_gpu_recovery_action gpu_recovery_action
nvidia_smi_gpu_info{{driver_version="590.48",index="3",name="NVIDIA H200",pci_bus_id="00000000:83:00.0",uuid="1-2"}} 1
nvidia_smi_gpu_recovery_action{{uuid="1-2"}} {}
nvidia_smi_ecc_errors_uncorrected_volatile_total{{uuid="1-2"}} {}
nvidia_smi_remapped_rows_pending{{uuid="1-2"}} {}
nvidia_smi_command_exit_code 0
"""
OF_A_RACK = """\
[Oct 13 2025 18:14:38] [ERROR] [tid 202] Fabric Manager detected GPU NVL Fatal error on :
moduleId : 3
nodeId : 7
gpuGuid : 0xED0A8727AFC3C6F9
portNum : 4
"""
NOT_IDLE = """\
+---------------------------+------------------------------------------------+
| nvbandwidth               | Fail                                           |
|                           | GPU0: Fail                                     |
| Warning: GPU0             | The memory copy utilization for the GPU: 0 is  |
|                           | greater than 10%. This may affect the results  |
|                           | of the nvbandwidth test.                       |
+---------------------------+------------------------------------------------+
"""
"""DCGM 4.5.0 on idle hosts: https://github.com/NVIDIA/DCGM/issues/272."""
GEMM = "".join(f"GEMM [I] (ADAPTER#{at})  Ending with {{{at}}}.381499904 GFlops\n" for at in range(4))
NODES = """\
Multi-node diagnostic failed.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| MNUBERGEMM Test           | Fail                                           |
| Hosts Found               | 2                                              |
| Host List                 | 0: node-a01.local                              |
|                           | 1: node-a02                                    |
|-----  Host Details  ------+------------------------------------------------|
| Host 0                    | Pass                                           |
|   GPUs: 0, 1              | Pass                                           |
| Host 1                    | Fail                                           |
|   GPU 0                   | Pass                                           |
|   GPU 1                   | Fail                                           |
|                           | Error: wrong results                           |
|-----  Error Summary  -----+------------------------------------------------|
| Host 1 (GPU 1)            | Error: wrong results                           |
+---------------------------+------------------------------------------------+
"""
NODES_JSON = """\
{"DCGM Diagnostic": "DCGM Multi-Node Diagnostic", "hosts": [{"host_id": 0, "hostname": "node-a01"},
{"host_id": 1, "hostname": "node-a02"}], "test_categories": [{"category": "Multi-Node Tests", "tests": [{"name":
"mnubergemm", "status": "Fail", "results": [{"host_id": 0, "entity_group": "GPU", "entity_id": 1, "status": "Pass"},
{"host_id": 1, "entity_group": "GPU", "entity_id": 1, "status": "Fail", "warnings": [{"warning": "wrong results"}]}
]}]}]}
"""
SAS = """\
=== START OF READ SMART DATA SECTION ===
SMART Health Status: OK
Elements in grown defect list: 0

Error counter log:
           Errors Corrected by           Total   Correction     Gigabytes    Total
               ECC          rereads/    errors   algorithm      processed    uncorrected
           fast | delayed   rewrites  corrected  invocations   [10^9 bytes]  errors
read:   1492558298        0         0  1492558298          0       9653,059          {}
write:         0        0         1         1          1       4144.460           0
verify: 2501279159        0         0  2501279159          0      14578.622           0

Non-medium error count:        6
"""
SELF_TESTS = """\
=== START OF READ SMART DATA SECTION ===
SMART overall-health self-assessment test result: PASSED

SMART Self-test log structure revision number 1
Num  Test_Description    Status                  Remaining  LifeTime(hours)  LBA_of_first_error
# 1  Extended offline    Completed{}       90%     12345         123456789
# 2  Short offline       Completed: read failure       90%     12000         123456789
"""
LOGGED = """\
    <...>-21  [026] d.H.     0.024825 aer_event [CRIT] 2025-03-28 13:28:48 +0800 0000:5e:00.0 Poisoned TLP Uncorrected \
(Non-Fatal)
rasdaemon[1337]:  <...>-5  [000]  0.000123: aer_event:  2022-12-02 23:56:03 +0800 0000:16:00.0 Bad TLP Corrected
"""
SERVICE = """\
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)
     Active: {} since Wed 2024-11-13 09:12:11 UTC; 3min 2s ago
"""
INTERFACE = """\
Settings for ens6f0np0:
\tSupported ports: [ FIBRE ]
\tSupported link modes:   25000baseCR/Full
\t                        100000baseCR4/Full
\tAdvertised link modes:  25000baseCR/Full
\t                        100000baseCR4/Full
\tAdvertised FEC modes: RS
\tLink partner advertised link modes:  {}
\tLink partner advertised auto-negotiation: Yes
\tSpeed: {}
\tDuplex: Full
"""
ROWS = """\
GPU 00000000:1B:00.0
        Pending                                        : No
        Remapping Failure Occurred                     : No
GPU 00000000:43:00.0
        Pending                                        : Yes
        Remapping Failure Occurred                     : {}
"""
REPAIRS = """\
            SRAM Threshold Exceeded                    : {}
        Channel Repair Pending                         : No
        TPC Repair Pending                             : {}
"""
SLOWED = """\
        HW Slowdown                                    : {}
            HW Thermal Slowdown                        : {}
        SW Thermal Slowdown                            : Not Active
        SW Thermal Slowdown                            : 81 us
        HW Thermal Slowdown                            : 81 us
"""
ERRORS = """\
            SRAM Uncorrectable                         : 0
            DRAM Uncorrectable                         : {}
"""
SUMS = """\
        Volatile
            SRAM Uncorrectable                         : 0
            DRAM Uncorrectable                         : {}
--
"""
MARGINS = """\
GPU 00000000:1B:00.0
        GPU Current Temp                               : 88 C
        GPU T.Limit Temp                               : {} C
        GPU Slowdown T.Limit Temp                      : -2 C
"""
TWO_SLOWED = SLOWED.format("Not Active", "Not Active") + SLOWED.format("Active", "Active")
SUBNET = """\
Nov 12 11:02:01 sm01 OpenSM[2011]: Entering MASTER state
Nov 12 11:02:31 sm01 OpenSM[2011]: {}
"""
TRAPS = """\
Nov 12 11:02:01 123456 [A1B2C3D4] 0x01 -> log_trap_info: Received Generic Notice type:1 num:{} (Local Link integrity \
threshold reached) Producer:2 (Switch) from LID:14 Port 17 TID:0x0000000000000004
Nov 12 11:02:32 323456 [A1B2C3D4] 0x02 -> SUBNET UP
"""
CELL = """\
| NVIDIA-SMI 590.44.01              Driver Version: 590.44.01      CUDA Version: 13.1     |
|=========================================+========================+======================|
|   1  NVIDIA B200                    On  |   00000000:43:00.0 Off | {:>20} |
| N/A   33C    P0            143W / 1000W |       0MiB / 183359MiB |      0%      Default |
"""
POOL = """\
  pool: data
 state: {0}
status: One or more devices are faulted in response to persistent errors.
\tSufficient replicas exist for the pool to continue functioning in a
\tdegraded state.
action: Replace the faulted device.
  scan: scrub repaired 0B in 02:13:11 with 0 errors on Sun Nov 10 02:37:12 2024
config:

\tNAME                        STATE     READ WRITE CKSUM
\tdata                        {0:10}    0     0     0
\t  raidz2-0                  {0:10}    0     0     0
\t    nvme-eui.0025385b0140   ONLINE       0     0     0
\t    nvme3n1                 {1:10}   12    87     0  {2}
\tspares
\t  nvme9n1                   AVAIL

errors: No known data errors
"""
MEMTEST = """\
[10/23/2023 10:02:11][node7][2]:Running cuda memtest, version 1.2.3
[10/23/2023 10:02:11][node7][2]:Test6 [Moving inversions, 32 bit pattern]
[10/23/2023 10:02:19][node7][2]:ERROR: The unit serial number is unknown (no NVML found)
[10/23/2023 10:02:19][node7][2]:ERROR: (move_inv_read) 121 errors found in block 13
[10/23/2023 10:02:19][node7][2]:ERROR: the last 2 error addresses are:\t0x7f9a40012340\t0x7f9a40012344
[10/23/2023 10:02:19][node7][2]:ERROR: 0th error, expected value=0x1, current value=0x3, diff=0x2 (second_read=0x1)
[10/23/2023 10:02:19][node7][2]:Test6 finished in 22.1 seconds
"""
COUNTERS = """\
-{}- lid=0x0007 guid=0x001397030000006f dev=25418 Port=1
    Performance Monitor counter     : Value
    symbol_error_counter            : 0xffff (overflow)
    link_down_counter               : 0xf
"""
DIAGNOSED = """\
-E- MF0;leaf-3:MQM8700/U1/P17 - "link_down_counter" increased during the run (difference value=3,threshold=1)
-E- Ports counters Difference Check finished with errors
"""
LSHW = """\
  *-display{}
       description: 3D controller
       product: GA100 [A100 SXM4 80GB]
       vendor: NVIDIA Corporation
       bus info: pci@0000:07:00.0
       configuration: {}latency=0
  *-display
       description: VGA compatible controller
       product: ASPEED Graphics Family
       vendor: ASPEED Technology, Inc.
       bus info: pci@0000:03:00.0
       configuration: driver=ast latency=0
"""
PINGED = """\
Pong from node08.(none) (Lid 41): time 0.021 ms

--- node08.(none) (Lid 41) ibping statistics ---
10 packets transmitted, {} received, 0% packet loss, time 9001 ms
rtt min/avg/max = 0.018/0.021/0.030 ms
"""
"""ibping.c of infiniband-diags."""
RACK = """\
nvbandwidth Version: v0.8
Process 3 (worker-1): device 1: HGX GB200 (00000009:01:00)

Running multinode_device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2         3
 0       N/A    798.02    798.25    {0:.2f}
 1    798.10       N/A    797.80    {0:.2f}
 2    797.95    797.95       N/A    {0:.2f}
 3    {0:.2f}    {0:.2f}    {0:.2f}       N/A

SUM multinode_device_to_device_memcpy_read_ce 9576.12
"""
"""README.md of https://github.com/NVIDIA/nvbandwidth: each process has one GPU."""
LIMITED = """\
[   12.123556] mlx5_core 0000:5e:00.0: {1} Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x{0} link at \
0000:5d:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)
"""
OF_CONNECTX = """\
{}:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 32GT/s, Width x{}
"""
LNKCAP = """\
d1:00.0 3D controller: NVIDIA Corporation {} (rev a1)
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 32GT/s, Width x8 (downgraded)
"""
LNKSTA = """\
07:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)
\t\tLnkSta:\tSpeed 16GT/s (ok), Width x16 (ok)
0f:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)
\t\tLnkSta:\tSpeed 16GT/s (ok), Width x{} ({})
"""
MODULES = """\
07:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)
\tSubsystem: NVIDIA Corporation Device 147f
\tKernel modules: nvidiafb, nouveau, nvidia_drm, nvidia
0f:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)
\tSubsystem: NVIDIA Corporation Device 147f
\tKernel driver in use: nvidia
\tKernel modules: nvidiafb, nouveau, nvidia_drm, nvidia
"""
REGION = """\
1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx+
\tRegion 0: Memory at 21042000000 (64-bit, prefetchable) [size=16M]
\tRegion 2: Memory at 20000000000 (64-bit, prefetchable) [size={}]
\tRegion 4: Memory at 21040000000 (64-bit, prefetchable) [size=32M]
\tKernel driver in use: nvidia
"""
NAMED = "index, pci.bus_id, name, mig.mode.current\n" + "".join(
    f"{gpu}, 00000000:{gpu + 16:02x}:00.0, NVIDIA H100 80GB HBM3, Disabled\n" for gpu in range(8)
)
BAR1 = """\
==============NVSMI LOG==============
Attached GPUs                             : 1
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA {}
    BAR1 Memory Usage
        Total                             : {} MiB
        Used                              : 1 MiB
        Free                              : 255 MiB
"""


def joined(label: str, legend: str = "NV#  = Connection traversing a bonded set of # NVLinks") -> str:
    """The matrix of eight GPUs."""
    rows = "".join(f"GPU{a}\t{chr(9).join(' X ' if a == b else label for b in range(8))}\n" for a in range(8))
    legend = f"  {legend}\n"
    return "\n\t" + "\t".join(f"GPU{gpu}" for gpu in range(8)) + f"\n{rows}\nLegend:\n\n{legend}"


def allowed(cell: str, which: str = "r") -> str:
    """The matrix of access between eight GPUs."""
    return f"\n$ nvidia-smi topo -p2p {which}" + joined(cell, "OK   = Status Ok")


SHARED = """\
| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:10:00.0 Off |                   On |
| N/A   31C    P0             44W /  400W |       1MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
|   1  NVIDIA A100-SXM4-40GB          On  |   00000000:18:00.0 Off |                   On |
| N/A   31C    P0             44W /  400W |       1MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
| MIG devices:                                                                            |
{}
| Processes:                                                                              |
"""
INSTANCE = "|  1    1   0   0  |              37MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |"
TREE_IN_MIG = """\
<nvidia_smi_log>
\t<gpu id="00000000:10:00.0">
\t\t<mig_mode>
\t\t\t<current_mig>{0}</current_mig>
\t\t\t<pending_mig>{0}</pending_mig>
\t\t</mig_mode>
\t\t<mig_devices>
\t\t\tNone
\t\t</mig_devices>
\t</gpu>
</nvidia_smi_log>
"""
DISCOVERY = "".join(
    f"| {gpu}      | Name: NVIDIA H100 80GB HBM3 |\n|        | PCI Bus ID: 00000000:{gpu + 16:02x}:00.0 |\n"
    for gpu in range(8)
) + "{} NvSwitches found.\n| Switch ID |\n"  # fmt: skip
EXCLUDED = """\
GPU UUID: \t GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77
Bus Location: \t 0000:07:00.0
GPU Excluded:\t {}
"""
LANES_OF = "index, name, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max\n{}"
BURNT = "".join(f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-{gpu})\n" for gpu in range(2)) + (
    "Initialized device 0 with 81089 MB of memory (80000 MB available, using 72000 MB of it), using {0}\n"
    "100.0%  proc'd: 9 ({1} Gflop/s) - 9 ({1} Gflop/s)   errors: 0 - 0   temps: 60 C - 61 C\n"
)
WIRED = "".join(
    f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-01234567-89ab-cdef-0123-45678900000{gpu})\n"
    + "".join(f"\t Link {link}: {'26.562 GB/s' if gpu or link else '{}'}\n" for link in range(18)) for gpu in range(8)
)  # fmt: skip
SOCKETS = (
    "CPU(s):               64\nOn-line CPU(s) list:  0-63\nVendor ID:            AuthenticAMD\n{1}"
    "Socket(s):            2\nNUMA node(s):         {0}\nNUMA node0 CPU(s):    0-63\n"
)
CAPPED = (
    TABLE.partition("|   1  ")[0].replace("Example SXM2-16GB ", "Tesla V100-SXM2...")
    .replace("/ 163W", "/ {}W").replace("/ 32510MiB", "/ {}MiB")
)  # fmt: skip
DEVLINK = """\
pci/0000:0c:00.0:
  reporter fw
    state healthy error 1 recover 1
  reporter fw_fatal
    state {} error 1 recover 0 last_dump_date 2026-05-01 last_dump_time 10:20:30 grace_period 1200000 auto_recover true
pci/0000:0c:00.0/1:
  reporter tx
    state {} error 2 recover 1 grace_period 500 auto_recover true auto_dump true
"""
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "devlink, firmware": (DEVLINK.format("error", "healthy"), ("fail hca-fatal inspect",)),
    "devlink, a queue": (DEVLINK.format("healthy", "error"), ("warn hca-stalled inspect",)),
    "devlink, healthy": (DEVLINK.format("healthy", "healthy"), ()),
    "devlink and its adapter's port": (
        DEVLINK.format("error", "error") + "mlx5_core 0000:0c:00.0: device's health compromised - reached miss count\n",
        ("fail hca-unresponsive hca-fatal hca-stalled drain",)),
    "nvidia-smi -q of a GPU to be reset": (TO_RESET, ("fail reset-required drain",)),
    "the same without the action": (TO_RESET.replace("GPU Recovery", "Other"),
                                    ("fail reset-required drain",)),
    "nvidia-smi -q of a GPU to be drained": (
        TO_RESET.replace("GPU Recovery Action ", "GPU Reset Status\n        Drain and Reset Recommended")
        .partition("    ECC")[0].replace(": Reset", ": Yes"), ("fail drain-and-reset drain",)),
    "no handle": ("Unable to determine the device handle for GPU0: 0000:9A:00.0: GPU requires reset\n",
                  ("fail reset-required drain",)),
    "a container": ("nvidia-container-cli: detection error: nvml error: gpu requires reset\n",
                    ("fail reset-required drain",)),
    "kubelet": ("Warning  UnexpectedAdmissionError  12s  kubelet  Allocate failed due to rpc error: code = Unknown desc"
                " = failed to get nvlink state: GPU requires reset, which is unexpected\n",
                ("warn reset-required inspect",)),
    "libfabric, unreachable": (OF_EFA.format(5, UNREACHED), ("fail transfer-unanswered inspect",)),
    "libfabric, an address": (OF_EFA.format(5, "Invalid address"), ("fail transfer-failed inspect",)),
    "libfabric, unknown": (OF_EFA.format(5, "Unknown error"), ("fail transfer-failed inspect",)),
    "libfabric, the other end stopped": (
        OF_EFA.format(5, "Connection was reset by remote peer"), ("warn transfer-failed inspect",)),
    "libfabric, locked memory": ("libfabric:1:2::efa:mr:efa_mr_reg_ibv_mr():519<warn> Unable to register MR of 4096"
                                 " bytes: Cannot allocate memory, ibv pid: 3\n", ("fail memlock change-setting",)),
    "libfabric, sound": (OF_EFA.splitlines()[-1], ()),
    "aws-ofi-nccl": (OFI.format(UNRESPONSIVE), ("fail transfer-unanswered inspect",)),
    "nvbandwidth between nodes": (MULTINODE, ()),
    "ncclras, two errors of a group": (RAS_TABLE.format("INCOMPLETE,MISMATCH"), ("warn collective-timeout inspect",)),
    "ncclras, good": (RAS_TABLE.format("OK"), ()),
    "dcgmi nvlink -e": (COUNTS.format("4e-09"), ("fail nvlink-errors drain",)),
    "dcgmi nvlink -e, good": (COUNTS.format("1e-15"), ()),
    "dcgmi nvlink -s": (LINKS.format("D"), ("warn nvlink-down drain",)),
    "dcgmi nvlink -s, good": (LINKS.format("U"), ()),
    "dcgmi nvlink -s, a GPU without links": (
        LINKS.format("X").replace("NvSwitches:", "    gpuId 2:\n        _ _ _ _\nNvSwitches:"),
        ("warn nvlink-down drain",)),
    "nvidia-smi nvlink -s, one link": (ONE_LINK, ("warn nvlink-down drain",)),
    "nvidia-smi c2c -s": (C2C.format("<inactive>"), ("warn c2c-down inspect",)),
    "nvidia-smi c2c -s, all links": (NO_C2C, ("fail c2c-down inspect",)),
    "nvidia-smi c2c -s, good": (C2C.format("44.712 GB/s"), ()),
    "dcgm-exporter, C2C": (
        "".join(C2C_STATUS.format(gpu, "GB200", 1 - gpu) for gpu in range(2)), ("warn c2c-down inspect",)),
    "dcgm-exporter, no C2C": (C2C_STATUS.format(0, "H100 80GB HBM3", 0), ()),
    "nvidia-smi c2c -s on a line": (C2C.replace("\n\t ", "\t", 1).format("<Inactive>"), ("warn c2c-down inspect",)),
    "nvidia-smi pci": (PCI_COUNTS.format(0, 1), ("warn aer-uncorrectable inspect",)),
    "nvidia-smi pci, good": (PCI_COUNTS.format(0, 0), ()),
    "nvidia-persistenced": ("Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*)"
                            " exist, and that user 116 has read and write permissions for those files.\n", ()),
    "smartctl of a SAS disk": (SAS.format(0), ()),
    "smartctl of a SAS disk that could not read": (SAS.format(12), ()),
    "a self-test that failed": (SELF_TESTS.format(": read failure"), ("warn disk inspect",)),
    "a self-test that failed before": (SELF_TESTS.format(" without error"), ()),
    "a self-test of a SAS disk that failed": (
        "SMART Self-test log\n# 1  Background long   Failed in segment -->   -   12345   1234567 [0x3 0x11 0x0]\n",
        ("warn disk inspect",)),
    "rasdaemon, a device on PCI": (LOGGED, ("warn aer-uncorrectable inspect",)),
    "a copper cable": (MODULE.format(ADAPTER, "0 [0..0]", "Ready state", "0", "0,0,0,0"), ()),
    "a module": (MODULE.format("mlx5_0", "49 [-10..80]", "N/A", "N/A", "N/A"), ()),
    "a hot module": (MODULE.format("mlx5_0", "84 [-10..80]", "Ready state", "0", "0,0,0,0"),
                     ("warn port-module inspect",)),
    "a module whose firmware failed": (MODULE.format("mlx5_0", "49 [-10..80]", "Fault state", "1", "0,0,0,0"),
                                       ("warn port-module inspect",)),
    "a module without light": (MODULE.format("mlx5_0", "49 [-10..80]", "Ready state", "0", "0,0,1,0"),
                               ("warn port-module inspect",)),
    "mlxfwmanager": (UNQUERIED, ()),
    "ibdiagnet": (STAGES, ("warn port-errors inspect",)),
    "nvidia_gpu_exporter": (EXPORTER.format(1, 0, 0), ("fail reset-required drain",)),
    "nvidia_gpu_exporter, memory": (EXPORTER.format(0, 2, 1), ("fail ecc-uncorrected remap-pending drain",)),
    "nvidia_gpu_exporter, good": (EXPORTER.format(0, 0, 0), ()),
    "the device plugin": ("E0902 09:57:32.900000       1 factory.go:113] Incompatible strategy detected auto\n",
                          ("warn container-runtime inspect",)),
    "Fabric Manager of a rack": (OF_A_RACK, ("warn nvlink-reported inspect",)),
    "nvbandwidth of DCGM that began too early": (NOT_IDLE, ()),
    "ubergemm": (GEMM.format(6698, 19239, 19148, 19256), ("warn slow inspect",)),
    "ubergemm, good": (GEMM.format(19010, 19239, 19148, 19256), ()),
    "systemctl status without the name of the unit": (
        SERVICE.format("failed (Result: exit-code)"), ("fail fabric-manager-down inspect",)),
    "systemctl is-active": (
        "$ systemctl is-active nvidia-fabricmanager\nfailed\n", ("fail fabric-manager-down inspect",)),
    "systemctl is-active, good": ("$ systemctl is-active nvidia-fabricmanager\nactive\n", ()),
    "systemctl status of a unit that runs": (SERVICE.format("active (running)"), ()),
    "ethtool": (INTERFACE.format("25000baseCR/Full 100000baseCR4/Full", "25000Mb/s"), ("warn port-slow inspect",)),
    "ethtool, good": (INTERFACE.format("25000baseCR/Full 100000baseCR4/Full", "100000Mb/s"), ()),
    "ethtool of a slower switch": (INTERFACE.format("25000baseCR/Full", "25000Mb/s"), ()),
    "ethtool, no faster mode in common": (INTERFACE.format("10000baseCR/Full 40000baseCR4/Full", "10000Mb/s"), ()),
    "ethtool without the other end": (INTERFACE.format("Not reported", "25000Mb/s"), ()),
    "ethtool at a thousandth": (INTERFACE.format("Not reported", "100Mb/s"), ("warn port-slow inspect",)),
    "ethtool without a link": (INTERFACE.format("Not reported", "Unknown!"), ()),
    "grep of rows": (ROWS.format("Yes"), ("fail remap-failed drain",)),
    "grep of pending rows": (ROWS.format("No"), ("fail remap-pending drain",)),
    "grep of rows without GPUs": (
        "\n".join(ROWS.splitlines()[1:3] + ROWS.splitlines()[4:] + [""]).format("Yes"), ("fail remap-failed drain",)),
    "grep of repairs": (REPAIRS.format("No", "No") + REPAIRS.format("Yes", "No"), ("fail sram-exceeded drain",)),
    "grep of a repair": (REPAIRS.format("No", "No") + REPAIRS.format("No", "Yes"), ("warn repair-pending drain",)),
    "grep of errors": ("".join(map(ERRORS.format, (0, 3, 2, 3))), ("fail ecc-uncorrected drain",)),
    "grep of errors, good": ("".join(map(ERRORS.format, (0, 3, 0, 3))), ()),
    "grep -A of errors": (SUMS.format(0) + SUMS.format(2), ("fail ecc-uncorrected drain",)),
    "grep of margins": (MARGINS.format(-3), ("warn overheating inspect",)),
    "grep of margins, good": (MARGINS.format(40), ()),
    "grep of slowdowns": (TWO_SLOWED, ("warn thermal-slowdown inspect",)),
    "grep of ibv_devinfo": (
        "hca_id:\tmlx5_0\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\tInfiniBand\n"
        "hca_id:\tmlx5_1\n\t\t\tstate:\t\t\tPORT_INIT (2)\n\t\t\tlink_layer:\t\tInfiniBand\n",
        ("warn no-subnet-manager inspect",)),
    "opensm": (SUBNET.format("SUBNET UP"), ()),
    "opensm, with errors": (SUBNET.format("Errors during initialization"), ()),
    "opensm without its port": (SUBNET.format("SM port is down"), ("warn no-subnet-manager inspect",)),
    "opensm.log": (TRAPS.format(129), ("warn port-errors inspect",)),
    "opensm.log, a link that changed": (TRAPS.format(128), ()),
    "nvidia-smi, a cell": (CELL.format("GPU requires reset"), ("fail reset-required drain",)),
    "nvidia-smi, a cell of a GPU that is gone": (CELL.format("GPU is lost"), ("fail gpu-lost drain",)),
    "nvidia-smi, a good cell": (CELL.format("0"), ()),
    "nvidia-smi topo -m, half of the NVLinks": (NAMED + joined("NV9"), ("warn nvlink-reported inspect",)),
    "nvidia-smi topo -m, no NVLink": (NAMED + joined("SYS"), ("warn nvlink-reported inspect",)),
    "nvidia-smi topo -m, no NVLink in MIG mode": (NAMED.replace("Disabled", "Enabled") + joined("SYS"), ()),
    "nvidia-smi topo -m, good": (NAMED + joined("NV18"), ()),
    "nvidia-smi topo -m of cards": (NAMED.replace("80GB HBM3", "PCIe") + joined("SYS"), ()),
    "nvidia-smi topo -p2p": (NAMED + allowed("CNS"), ("warn p2p-blocked change-setting",)),
    "nvidia-smi topo -p2p of NVLinks": (NAMED + allowed("NS", "n"), ("warn p2p-blocked change-setting",)),
    "nvidia-smi topo -p2p, good": (NAMED + allowed("OK"), ()),
    "nvidia-smi topo -p2p in MIG mode": (NAMED.replace("Disabled", "Enabled") + allowed("NS"), ()),
    "nvidia-smi topo -p2p of cards": (NAMED.replace("80GB HBM3", "PCIe") + allowed("CNS"), ()),
    "nvidia-smi topo -p2p of cards below a switch": (
        NAMED.replace("80GB HBM3", "PCIe") + joined("PIX") + allowed("CNS"), ("warn p2p-blocked change-setting",)),
    "nvidia-smi topo -p2p of GeForce below a switch": (
        NAMED.replace("H100 80GB HBM3", "GeForce RTX 4090") + joined("PIX") + allowed("CNS"), ()),
    "nvidia-smi topo -m and -p2p": (joined("NV4") + allowed("TNS"), ("warn p2p-blocked change-setting",)),
    "nvidia-smi topo -m and -p2p, good": (joined("NV4") + allowed("OK"), ()),
    "nvidia-smi without MIG devices": (
        SHARED.format(f"|  No MIG devices found{68 * ' '}|"), (2 * ("warn mig-empty inspect",))),
    "nvidia-smi, a GPU without MIG devices": (SHARED.format(INSTANCE), ("warn mig-empty inspect",)),
    "nvidia-smi, MIG devices": (SHARED.format(f"{INSTANCE.replace('  1 ', '  0 ', 1)}\n{INSTANCE}"), ()),
    "nvidia-smi -q -x without MIG devices": (TREE_IN_MIG.format("Enabled"), ("warn mig-empty inspect",)),
    "nvidia-smi -q -x, MIG off": (TREE_IN_MIG.format("Disabled"), ()),
    "nvidia-smi -B": ("Excluded GPU 0: 00000000:4B:00.0 (UUID: GPU-b300b300-0000-0000-0000-000000000003)\n",
                      ("warn gpu-excluded inspect",)),
    "nvidia-smi -B, good": ("No excluded devices found.\n", ()),
    "a GPU that the driver leaves out": (EXCLUDED.format("Yes"), ("warn gpu-excluded inspect",)),
    "a GPU that the driver has": (EXCLUDED.format("No"), ()),
    "dcgmi discovery": (DISCOVERY.format(3), ("fail nvswitch-missing drain",)),
    "dcgmi discovery, good": (DISCOVERY.format(4), ()),
    "dcgmi discovery without NVSwitches": (DISCOVERY.format(0), ()),
    "lanes of a module": (LANES_OF.format("0, NVIDIA H200, 5, 5, 8, 8\n"), ("warn link-unseen inspect",)),
    "lanes of a module, good": (LANES_OF.format("0, NVIDIA H200, 5, 5, 16, 16\n"), ()),
    "lanes of a module beside POWER9": (LANES_OF.format("0, Tesla V100-SXM2-16GB, 3, 3, 8, 8\n"), ()),
    "lanes of a card": (LANES_OF.format("0, NVIDIA L40S, 4, 4, 8, 8\n"), ()),
    "gpu_burn": (BURNT.format("FLOATS", 8200), 2 * ("fail slow inspect",)),
    "gpu_burn, good": (BURNT.format("FLOATS", 48231), ()),
    "gpu_burn of doubles": (BURNT.format("DOUBLES", 8200), ()),
    "gpu_burn of a part": (
        BURNT.replace("\n", "\n  MIG 1g.10gb     Device  0: (UUID: MIG-c6d4)\n", 1).format("FLOATS", 8200), ()),
    "nvidia-smi -q, small BAR1": (BAR1.format("H100 80GB HBM3", 256), ("warn bar1-small drain",)),
    "nvidia-smi -q, whole BAR1": (BAR1.format("H100 80GB HBM3", 131072), ()),
    "nvidia-smi -q, small BAR1 beside displays": (BAR1.format("L40S", 256), ()),
    "nvidia-smi nvlink -s": (WIRED.format("<inactive>"), ("fail nvlink-down drain",)),
    "nvidia-smi nvlink -s, good": (WIRED.format("26.562 GB/s"), ()),
    "nvidia-smi, names that are cut": (CAPPED.format(163, 32510), ("warn power-capped change-setting",)),
    "nvidia-smi, names that are cut, good": (CAPPED.format(300, 32510), ()),
    "nvidia-smi, ECC off": (CAPPED.format(300, 32510).replace("                    0 |", "                  Off |"),
        ("warn ecc-off change-setting",)),
    "nvidia-smi, hot": (CAPPED.format(300, 32510).replace("36C", "90C"), ("warn overheating inspect",)),
    "nvidia-smi, warm": (CAPPED.format(300, 32510).replace("36C", "89C"), ()),
    "nvidia-smi, names that are cut, of no known size": (CAPPED.format(163, 24000), ()),
    "lscpu": (SOCKETS.format(1, ""), ("warn numa-tables drain",)),
    "lscpu, a node for each socket": (SOCKETS.format(2, ""), ()),
    "lscpu, offline": (SOCKETS.replace("0-63\nV", "0-7,16-63\nOff-line CPU(s) list: 8-15\nV").format(2, ""),
                       ("warn cpu-offline drain",)),
    "lscpu, SMT off": (SOCKETS.replace("0-63\nV", "0-31\nOff-line CPU(s) list: 32-63\nV").format(2, ""), ()),
    "lscpu of a virtual machine": (SOCKETS.format(1, "Hypervisor vendor:    KVM\n"), ()),
    "zpool status": (POOL.format("DEGRADED", "FAULTED", "too many errors"), ("warn disk inspect",)),
    "zpool status of a pool that is gone": (POOL.format("SUSPENDED", "REMOVED", ""), ("fail array-failed inspect",)),
    "zpool status, good": (POOL.format("ONLINE", "ONLINE", ""), ()),
    "zpool status -x": ("all pools are healthy\n", ()),
    "cuda_memtest": (MEMTEST, ("fail memory-faulty drain",)),
    "cuda_memtest, good": ("".join(MEMTEST.splitlines(keepends=True)[i] for i in (0, 1, 6)), ()),
    "ibdiagnet of ibutils": (COUNTERS.format("E"), ("warn port-errors inspect",)),
    "ibdiagnet of ibutils, a warning": (COUNTERS.format("W"), ()),
    "ibdiagnet without its summary": (DIAGNOSED, ("warn port-errors inspect",)),
    "lshw": (LSHW.format(" UNCLAIMED", ""), ("fail driver-not-loaded load-module",)),
    "lshw, good": (LSHW.format("", "driver=nvidia "), ()),
    "lshw, a function of sound without driver": (
        LSHW.format(" UNCLAIMED", "").replace("3D controller", "Audio device"), ()),
    "lshw, another driver": (LSHW.format("", "driver=nouveau "), ("fail nouveau drain",)),
    "grep of links": (LNKSTA.format(4, "downgraded"), ("warn link-unseen inspect",)),
    "grep of half a link": (LNKSTA.format(8, "downgraded"), ()),
    "lspci -vv of a module": (LNKCAP.format("GH100 [H100 SXM5 80GB]"), ("warn link-unseen inspect",)),
    "lspci -vv of a card": (LNKCAP.format("GH100 [H100 PCIe]"), ()),
    "ibping": (PINGED.format(10), ()),
    "ibping, half of it": (PINGED.format(5), ("warn transfer-unanswered inspect",)),
    "ibping, nobody answers": (PINGED.format(0), ()),
    "a rack": (RACK.format(797.8), ()),
    "a rack with a slow GPU": (RACK.format(391.2), ("warn slow inspect",)),
    "a ConnectX": (OF_CONNECTX.format("5e", 4), ("warn link-unseen inspect",)),
    "the kernel, of a ConnectX with four lanes": (LIMITED.format(4, "126.024"), ("warn link-unseen inspect",)),
    "a rack with a GPU that copies nothing": (RACK.format(0), ("warn slow inspect",)),
    "the kernel, of lanes that are back": (
        LIMITED.format(4, "126.024") + LIMITED[: LIMITED.index(", lim")].format("", "504.112")
        + " (32.0 GT/s PCIe x16 link)\n", ()),
    "the kernel, of one in a slot of an older generation": (
        LIMITED.format(16, "126.024").replace("by 32.0", "by 8.0"), (),
    ),
    "the kernel, of one whose link did not train up": (
        LIMITED.format(16, "31.504").replace("by 32.0", "by 2.5"), ("warn link-unseen inspect",),
    ),
    "the kernel, of one with half of them": (LIMITED.format(8, "252.048"), ()),
    "a ConnectX with half of its lanes": (OF_CONNECTX.format("5e", 8), ()),
    "a ConnectX with half of its lanes beside two": (
        "".join(OF_CONNECTX.format(*each) for each in (("3e", 16), ("4e", 16), ("5e", 8))),
        ("warn link-unseen inspect",)),
    "grep of links, good": (LNKSTA.format(16, "ok"), ()),
    "lspci -k": (MODULES, ("fail driver-unbound inspect",)),
    "lspci -v, small BAR1": (REGION.format("256M"), ("fail bar1-small drain",)),
    "lspci -v, whole BAR1": (REGION.format("128G"), ()),
    "dcgmi health, an NVSwitch": (SWITCH, ("fail nvswitch-fatal drain",)),
    "dcgmi health -j, an NVSwitch": (TREE, ("fail nvswitch-fatal drain",)),
    "dcgmi health, a ConnectX": (CONNECTX, ("fail aer-uncorrectable inspect",)),
    "dcgmi health, a GPU": (LANES, ("fail pcie-replays inspect",)),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    text, causes = EXPECTED[name]
    assert of_text(text, tmp_path)[0] == causes
    lines = lines_of(text.encode(), "f")
    layout = undone(lines)
    left = unread(lines, layout, [output for _, output in outputs(layout)])
    assert [lines[number] for number in left] == []


def test_values_that_grep_chose_are_of_as_many_gpus_as_have_them(tmp_path: Path) -> None:
    _, found = of_text(TWO_SLOWED, tmp_path)
    names = {each["subject"]["name"] for each in found["findings"] if each["subject"]["kind"] == "gpu"}
    assert (names, found["causes"][0]["component"]["name"]) == ({"unnamed GPU", "unnamed GPU 2"}, "unnamed GPU 2")


@pytest.mark.parametrize(("last", "outcomes"), [
    ("Test7 [Random blocks]", []), ("Test7 finished in 1.2 seconds", ["pass"]),
    ("ERROR: CUDA error: misaligned address, line 9", ["unknown"]),
])  # fmt: skip
def test_a_test_of_memory_passes_once_it_is_finished(last: str, outcomes: list[str]) -> None:
    head, *_ = MEMTEST.splitlines()
    (*found,) = read_memtest((head, head.replace(head.partition("]:")[2], last)))
    assert re.findall("'outcome': '([a-z]+)'", str(found)) == outcomes


def test_errors_of_memory_that_may_be_old_are_not_new_ones(tmp_path: Path) -> None:
    """The end of a dump that was cut within its aggregate counts."""
    _, found = of_text(ERRORS.format(7) + "    Remapped Rows\n        Remapping Failure Occurred : No\n", tmp_path)
    assert found["causes"] == []


@pytest.mark.parametrize(("text", "components"), [
    (SWITCH, ["host/host/NVSwitches"]), (TREE, ["host/host/NVSwitches"]), (CONNECTX, ["host/host/PCIe links"]),
    (LANES, ["gpu/GPU1"]),
])
def test_numbers_of_other_entities_are_not_those_of_gpus(text: str, components: list[str], tmp_path: Path) -> None:
    _, found = of_text(text, tmp_path)
    assert [cause["id"] for cause in found["causes"]] == components


@pytest.mark.parametrize("text", [NODES, NODES_JSON])
def test_results_of_several_nodes_are_of_each(text: str) -> None:
    found = {output.host: results(output) for _, output in outputs(undone(lines_of(text.encode(), "f")))}
    assert found["node-a01"].keys() >= {"GPU1 dcgmi-mndiag-mnubergemm"}
    assert {outcome for outcome, _, _ in found["node-a01"].values()} == {"pass"}
    assert found["node-a02"]["GPU1 dcgmi-mndiag-mnubergemm"] == ("fail", "test-failed", 1)


def test_a_test_between_nodes_that_did_not_start_is_no_fault(tmp_path: Path) -> None:
    text = NODES[: NODES.index("| Host List")] + "| MPI Error                 | Error: could not reach node-a02   |\n"
    _, found = of_text(text, tmp_path)
    assert (found["causes"], found["verdict"]) == ([], "unknown")
    document = NODES_JSON.replace('"status": "Fail", "results', '"mpi_error": {"warning": "Error: x"}, "results')
    assert ("host dcgmi-diag-mpi", ("unknown", "", 1)) in results(diag.read_json((*document.splitlines(),))[0]).items()


def test_a_link_that_is_shown_alone_is_not_all_of_them(tmp_path: Path) -> None:
    _, found = of_text(ONE_LINK, tmp_path)
    assert "link 3 down, and all of this model are wired" in str(found["causes"][0])


def test_what_a_sas_disk_could_not_read_is_a_note(tmp_path: Path) -> None:
    _, found = of_text(SAS.format(12), tmp_path)
    assert "SMART: a disk: 12 media errors" in [each["message"] for each in found["findings"]]


def test_firmware_that_does_not_answer_is_no_pass(tmp_path: Path) -> None:
    assert of_text(UNQUERIED, tmp_path)[1]["verdict"] == "unknown"


@pytest.mark.parametrize("device", ["mlx5_0", ADAPTER, "0000:1a:00.0"])
def test_an_adapter_is_asked_by_the_name_that_the_tool_takes(device: str, tmp_path: Path) -> None:
    _, found = of_text(MODULE.format(device, "84 [-10..80]", "Ready state", "0", "0,0,0,0"), tmp_path)
    (action, *_) = found["causes"][0]["actions"]
    assert action["commands"] == [["mlxlink", "-d", device, "-m", "-c"]]


def test_the_first_port_that_a_stage_of_ibdiagnet_names(tmp_path: Path) -> None:
    _, found = of_text(STAGES, tmp_path)
    messages = [each["message"] for each in found["findings"] if each["status"] == "warn"]
    assert len(messages) == 1
    assert 'Port Counters: 1 error; lid=0x0012 dev=54000 leaf-3/U1/P17 - "symbol_error_counter"' in messages[0]


def test_an_exporter_tells_which_gpu_it_is(tmp_path: Path) -> None:
    _, found = of_text(EXPORTER.format(1, 0, 0), tmp_path)
    assert [cause["id"] for cause in found["causes"]] == ["gpu/0000:83:00.0"]
    alone = [line for line in EXPORTER.format(1, 0, 0).splitlines() if "gpu_info" not in line]
    _, found = of_text("\n".join(alone), tmp_path)
    assert [cause["component"]["kind"] for cause in found["causes"]] == ["gpu"]


def test_the_gpu_of_a_rack_that_fabric_manager_names(tmp_path: Path) -> None:
    _, found = of_text(OF_A_RACK, tmp_path)
    messages = [each["message"] for each in found["findings"] if each["status"] == "warn"]
    assert "moduleId 3, nodeId 7, gpuGuid 0xED0A8727AFC3C6F9, portNum 4" in messages[0]


def test_a_module_at_a_generation_below_its_models_may_be_in_such_a_slot(tmp_path: Path) -> None:
    _, found = of_text(LANES_OF.format("0, NVIDIA H200, 4, 4, 16, 16\n"), tmp_path)
    (odd,) = [each for each in found["findings"] if each["status"] in BAD]
    assert (odd["id"], odd["message"]) == (
        "pcie.generation", "PCIe gen4 at most, its model supports gen5; what its slot supports is not shown"
    )  # fmt: skip
