"""Outputs that mention a fault that is none, or is over, and those beside them that do: what health finds of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text

FABRIC = """\
a-04:7:8 [0] NCCL INFO NCCL_MNNVL_CLIQUE_ID set by environment to 3.
a-04:7:8 [0] NCCL INFO MNNVL busId 0x801000 fabric UUID 3143b15b.28cc9b54 cliqueId 0x3 state 3 healthMask 0xaa
"""
COMPATIBILITY = """\
NOTE: CUDA Minor Version Compatibility mode ENABLED.
  Using driver version 535.183.06 which has support for CUDA 12.2.  This container
  was built with CUDA 12.6 and will be run in Minor Version Compatibility mode.
  CUDA Forward Compatibility is preferred over Minor Version Compatibility for use
  with this container but was unavailable:
  [[Forward compatibility was attempted on non supported HW (CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) cuInit()=804]]
  See https://docs.nvidia.com/deploy/cuda-compatibility/ for details.
"""
MISMATCH = "System has unsupported display driver / cuda driver combination (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)"
UNAVAILABLE = f"""\
ERROR: This container was built for NVIDIA Driver Release 560.35 or later, but
       version 535.183.06 was detected and compatibility mode is UNAVAILABLE.
       [[{MISMATCH} cuInit()=803]]
"""
EKS = """\
{"kind": "Node", "metadata": {"name": "n1"}, "status": {"conditions": [
 {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"},
 {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory", "message": "a"},
 {"type": "AcceleratedHardwareReady", "status": "True", "reason": "NvidiaAcceleratedHardwareIsReady", "message": "a"},
 {"type": "KernelReady", "status": "True", "reason": "KernelIsReady", "message": "a"},
 {"type": "HealthyGPU", "status": "True", "reason": "GPUHealthy", "message": "8 GPUs are healthy"},
 {"type": "EtcdIsVoter", "status": "True", "reason": "MemberNotLearner", "message": "a"}]}}
"""
NOT_READY = '"status": "False", "reason": "NvidiaXID48Error"'
IML = """\
ID   Severity  Class  Last Update       Count  Description
13   Repaired  Power  11/02/2026 10:12  1      Server Critical Fault (Service Information: Runtime Fault, P12V (05h))
"""
REDUNDANT = """\
FAN1201 Fan redundancy is lost.
FAN1200 The fans are redundant.
PSU0002 Power supply redundancy is lost.
PSU0001 The power supplies are redundant.
"""
OPERATES = """\
2026-11-02T10:11:12-0500 PSU0003: The power input for power supply 1 is lost.
2026-11-02T10:15:12-0500 PSU0017: Power supply 1 is operating normally.
"""
OPERATED = OPERATES.replace("T10:11", "T10:21")
FAILED = """\
2026-11-02T10:11:12-0500 PSU0001 Power supply 1 failed.
2026-11-02T10:15:12-0500 PSU0017 The power input for power supply 1 has been restored.
"""
UNSUPPORTED = """\
n1:77:90 [0] NCCL INFO NCCL version 2.26.2+cuda12.8
n1:77:90 [0] misc/cudawrap.cc:36 NCCL WARN Cuda failure 801 'operation not supported'
"""
REDFISH = """\
{"@odata.type": "#LogEntryCollection.LogEntryCollection", "Members": [
 {"@odata.type": "#LogEntry.v1_3_0.LogEntry", "Created": "2026-02-03T04:28:34-06:00", "Severity": "OK",
  "Message": "The power supplies are redundant."},
 {"@odata.type": "#LogEntry.v1_3_0.LogEntry", "Created": "2026-02-03T04:04:14-06:00", "Severity": "Critical",
  "Message": "Power supply redundancy is lost."}]}
"""
CLOSED = "n1:77:91 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n2<3>\n"
DF = "Dateisystem     Größe Benutzt Verf. Verw% Eingehängt auf\n/dev/md0         1,8T    1,8T     0  {}% /\n"
ERROR_LOG = """\
Error Log Entries for device:nvme0 entries:64
.................
 Entry[ 0]
.................
error_count     : 123
status_field    : 0x2002(Invalid Field in Command: A reserved coded value or an unsupported value in a defined field)
"""
DKMS = """\
$ uname -r
5.15.0-119-generic
$ dkms status
nvidia/550.90.07, 5.15.0-117-generic, x86_64: installed
nvidia-fs/2.19.7: added
"""
LOADED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Mon Jan 29 16:30:39 UTC 2024\n"
DIFFERS = DKMS.splitlines()[3].replace("-117", "-119") + " (WARNING! Diff between built and installed module!)\n"
"""As of modules that are signed: https://github.com/strongtz/i915-sriov-dkms/issues/274."""
IBSTAT = "".join(
    f"CA 'mlx5_{number}'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n"
    f"\t\tRate: {rate}\n\t\tLink layer: InfiniBand\n" for number, rate in enumerate((400, "{}", 400))
)
DUAL = "".join(
    f"CA 'mlx5_{number}'\n\tCA type: {{}}\n\tNode GUID: 0x{16 + number:016x}\n"
    f"\tSystem image GUID: 0x{16 + number & 30:016x}\n\tPort 1:\n\t\tState: {state}\n"
    f"\t\tPhysical state: {how}\n\t\tBase lid: {lid}\n\t\tLink layer: InfiniBand\n"
    for number in range(4) for state, how, lid in [(("Active", "LinkUp", 5), ("Down", "Polling", 65535))[number & 1]]
)
VIRTUAL = DUAL.replace("Polling", "LinkUp")
ETHERNET = """\
hca_id:\tmlx5_0
\tfw_ver:\t\t\t\t28.41.1000
\tvendor_part_id:\t\t\t4129
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_{}
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tlink_layer:\t\t{}

"""
IN_USE, NOT_IN_USE = ETHERNET.format("ACTIVE (4)", "Ethernet"), ETHERNET.replace("mlx5_0", "mlx5_1")
MST = """\
DEVICE_TYPE             MST                           PCI       RDMA            NET                       NUMA
ConnectX7(rev:0)        /dev/mst/mt4129_pciconf0      18:00.0   mlx5_0          net-ib0                   0
{}(rev:0)        /dev/mst/mt4129_pciconf1      9a:00.0                                             1
"""
ADAPTERS = "".join(
    f"Device #{number}:\n----------\n\n  Device Type:      ConnectX7\n  PSID:             MT_0000000838\n"
    f"  PCI Device Name:  0000:{number}b:00.0\n     FW             {version}     N/A\n\n"
    for number, version in enumerate(("28.39.1002", "{}"), 3)
)
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "a clique of NCCL's settings": (FABRIC, ()),
    "a feature that NCCL does without": (UNSUPPORTED, ()),
    "a feature that NCCL does without, and a peer that left": (UNSUPPORTED + CLOSED, ("warn transfer-failed inspect",)),
    "a container that runs on": (COMPATIBILITY, ()),
    "a container that runs on, after another error": (
        COMPATIBILITY.replace("NOTE", "CUDA error: system not yet initialized\nNOTE"),
        ("fail fabric-manager-down inspect",),
    ),
    "a container without a driver that fits": (UNAVAILABLE, ("fail driver-mismatch inspect",)),
    "conditions of EKS": (EKS, ()),
    "conditions of EKS, an Xid": (
        EKS.replace('"status": "True", "reason": "NvidiaAcceleratedHardwareIsReady"', NOT_READY),
        ("warn ecc-uncorrected inspect",),
    ),
    "records of an iDRAC, redundant again": (REDUNDANT, ()),
    "records of an iDRAC, redundant before": (
        REDUNDANT.replace("1201 Fan", "0000 Fan").replace("FAN1200 The fans are redundant.\n", ""),
        ("warn fan inspect",),
    ),
    "records of an iDRAC, a supply operates": (OPERATES, ()),
    "records of an iDRAC, newest first": ("\n".join(OPERATES.splitlines()[::-1]), ()),
    "records of an iDRAC, a supply operated": (OPERATED, ("warn power-supply inspect",)),
    "records of an iDRAC, a supply has its input": (FAILED, ("warn power-supply inspect",)),
    "entries by Redfish, redundant again": (REDFISH, ()),
    "entries by Redfish, lost again": (REDFISH.replace("T04:04", "T05:04"), ("warn power-supply inspect",)),
    "df in German": (DF.format(100), ("warn disk-full inspect",)),
    "df in German, room left": (DF.format(97), ()),
    "nvme error-log": (ERROR_LOG, ()),
    "ibstat, a port at a lower rate": (IBSTAT.format(10), ("warn port-slow inspect",)),
    "ibstat, a rate of thousands of digits": (IBSTAT.format("9" * 5000), ()),
    "ibstat, two ports of storage": (IBSTAT.format(200) + IBSTAT.format(200).replace("mlx5_", "mlx5_1"), ()),
    "ibstat, ports at one rate": (IBSTAT.format(400), ()),
    "ibstat, ports at one rate, SDR": (IBSTAT.replace("400", "10").format(10), 3 * ("warn port-slow inspect",)),
    "ibstat, ports at one rate, EDR": (IBSTAT.replace("400", "100").format(100), ()),
    "ibstat, cards with one port in use": (DUAL.format(*4 * ["MT4129"]), ()),
    "ibstat, a card with two ports in use": (DUAL.format(*4 * ["MT4129"]).replace("65535", "7", 1), 2 * (
        "warn port-down inspect",)),
    "ibstat, virtual functions": (VIRTUAL.format("MT4129", "MT4126", "MT4129", "MT4126"), ()),
    "ibstat, virtual functions of a guest": (VIRTUAL.format(*4 * ["MT4126"]), 2 * (
        "warn no-subnet-manager inspect",)),
    "ibstat, one card with two functions": (DUAL.replace("Polling", "Disabled").replace("2\n\tPort", "5\n\tPort", 1)
        .format(*4 * ["MT4129"]), ()),
    "ibv_devinfo, an Ethernet port not in use": (IN_USE + NOT_IN_USE.format("DOWN (1)", "Ethernet"), ()),
    "ibv_devinfo, an InfiniBand port down": (IN_USE + NOT_IN_USE.format("DOWN (1)", "InfiniBand"), (
        "warn port-down inspect",)),
    "mst status -v, no RDMA device": (MST.format("ConnectX7"), ("warn hca-unlisted inspect",)),
    "mst status -v, none of a DPU": (MST.format("BlueField3"), ()),
    "mlxfwmanager, two releases": (ADAPTERS.format("28.41.1000"), ("warn hca-firmware drain",)),
    "mlxfwmanager, one release": (ADAPTERS.format("28.39.1002"), ()),
    "dkms status, another kernel": (DKMS, ("warn module-not-built change-setting",)),
    "dkms status, added": ("nvidia/550.54.14: added\n", ("warn module-not-built change-setting",)),
    "dkms status, another kernel, and a module that is loaded": (DKMS + LOADED, ()),
    "dkms status, the kernel that runs": (DKMS + DIFFERS, ()),
    "modinfo, another version": (LOADED + "version:        535.183.01\n", ("warn driver-mismatch inspect",)),
    "modinfo, of the next kernel": (
        LOADED + "Linux a 6.8.0-55-generic #57 SMP\n"
        "filename:       /lib/modules/6.8.0-60-generic/updates/nvidia.ko.zst\nversion:        535.183.01\n", ()),
    "modinfo, of another module": (
        LOADED + "filename:       /lib/modules/6.8.0-60-generic/i40e.ko\nversion:        535.104\n", ()),
    "modinfo, the same version": (LOADED + "version:        535.161.08\n", ()),
    "the log of HPE's iLO with numbers, repaired": (IML, ()),
    "the log of HPE's iLO with numbers": (IML.replace("Repaired", "Critical"), ("warn test-failed inspect",)),
}
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    text, causes = EXPECTED[name]
    shown, found = of_text(text, tmp_path)
    assert shown == causes
    assert [each["id"] for each in found["findings"] if each["status"] == "unknown"] == []
