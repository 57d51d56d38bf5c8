"""Excerpts of one tool, as they are pasted without the rest: component and first step, and that all of it is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text

from dgxcheck.assessment.importing.texts import lines as lines_of
from dgxcheck.readers.any_text import outputs, unread
from dgxcheck.readers.layout.undo import undone
from dgxcheck.readers.network.counters import read_port_counters

REPLAYS = """\
+-----  Integration  -------+------------------------------------------------+
| PCIe                      | Fail - GPU: 5                                  |
| Warning                   | GPU 5 Detected 312 PCIe replays for GPU 5      |
"""
WRITTEN = """\
+-----  Integration  -------+------------------------------------------------+
| PCIe                      | Fail - GPU: 2                                  |
| Warning                   | GPU 2 was unsuccessfully written to in a peer- |
|                           | to-peer test: cudaMemcpyPeer                   |
"""
SHUTDOWN = """\
kernel: XFS (dm-4): xfs_do_force_shutdown(0x2) called from line 1211 of file fs/xfs/xfs_log.c.  Return address = 0
kernel: XFS (dm-4): Log I/O Error Detected.  Shutting down filesystem
"""
OFF_BUS = """\
pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error received: 0000:40:01.1
pcieport 0000:40:01.1: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)
pcieport 0000:40:01.1:   device [1022:1483] error status/mask=00000020/04400000
NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
"""
PORT_EVENT = """\
node48:34050:34121 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : {}Got async event : port error
node48:34052:34141 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : {}Got async event : port error
"""
ADMISSION = (
    "Message:  Pod Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code ="
    " Unknown desc = Unable to retrieve list of available devices: {}, which is unexpected\n"
)
DEVINFO = """\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tvendor_id:\t\t\t0x02c9
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_{}
\t\t\tport_lid:\t\t65535
\t\t\tlink_layer:\t\tInfiniBand
"""
ABSENT = """\
nvidia-nvlink: Nvlink Core is being initialized, major device number 236
NVRM: {}
"""
LEGACY = """\
The NVIDIA Tesla K20m GPU installed in this system is
NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please
NVRM:  visit http://www.nvidia.com/object/unix.html for more
"""
RELOADED = """\
nvidia-nvlink: Nvlink Core is being initialized, major device number 236
NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build
"""
LSMOD = """\
nouveau              2285568  4
drm                   491520  7 drm_kms_helper,ttm,nouveau
{}"""
SMART = """\
SMART/Health Information (NVMe Log 0x02)
Critical Warning:                   0x{}
Available Spare Threshold:          10%
Media and Data Integrity Errors:    0
Error Information Log Entries:      4,804
"""
OLD_EVENTS = """\
 100 | 08/26/2005 | 11:36:09 | OEM #0xfb |
 300 | 08/26/2005 | 11:36:12 | Memory | Memory Device Disabled | CPU 0 DIMM 0
"""
EVENT = "7840 08/09/11 15:10:47 MIN BMC Memory #08 {}, DIMM6/CPU1 6f [20 ff 10]\n"
ON_PAGE = "Uncorrectable ECC / other uncorrectable memory error @P2-DIMMF1 - {}\n"
IN_FULL = """\
Sensor ID              : Board_Temp (0xc)
 Entity ID             : 7.0 (System Board)
 Sensor Type (Analog)  : Temperature
 Sensor Reading        : 52 (+/- 1) degrees C
 Status                : {}
 Upper critical        : 50.000
 Event Message Control : Per-threshold
"""
CHIPS = """\
coretemp-isa-0000
Adapter: ISA adapter
Core 0:       +{}°C  (high = +80.0°C, crit = +90.0°C)  ALARM (CRIT)
Core 2:       +46.0°C  (high = +80.0°C, crit = +90.0°C)
"""
NODE = 'Errors for 0x200002 "leaf-r1"\n'
SUM = "   GUID 0x200002 port {}: [SymbolErrorCounter == 250] [LinkDownedCounter == 3]\n"
UDEV = (
    "2025-08-16T00:03:04-04:00 localhost (udev-worker)[106246]: nvidia: Process '/sbin/modprobe nvidia-uvm' failed with"
    " exit code 1.\n"
)
PORT_STATES = """\
PortInfo:
# Port info: Lid 1 port 6
PhysLinkState:...................LinkUp
LinkWidthEnabled:................1X or 4X
LinkWidthActive:.................{}X
LinkSpeedActive:.................10.0 Gbps
Peer PortInfo:
# Port info: Lid 1 DR path slid 2; dlid 65535; 0,6 port 1
LinkWidthEnabled:................{}X
LinkWidthActive:.................{}X
"""
HPL = (
    "HPL ERROR: CUDART Error: cudaMemcpyAsync( a, b, n, cudaMemcpyDeviceToDevice, s) = 700 (an illegal memory access"
    " was encountered) on gpu46 at (cugetrfs_mp/getrfs_mp.cu:750)\n"
)
COMPONENTS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "DCGM, replays": (REPLAYS, [("gpu/GPU5", "inspect")]),
    "DCGM, peers": (WRITTEN, [("gpu/GPU2", "inspect")]),
    "XFS that is shut down": (SHUTDOWN, [("disk/dm-4", "inspect")]),
    "a GPU off the bus and its port, without times": (OFF_BUS, [("gpu/0000:41:00.0", "reboot")]),
    "a port's event": (PORT_EVENT.format("", ""), [("host/host/ports", "inspect")]),
    "a named port's event": (PORT_EVENT.format("mlx5_3:1 ", "mlx5_3:1 "), [("port/mlx5_3/1", "inspect")]),
    "a lost GPU of a pod": (
        ADMISSION.format("error creating nvml.Device 5: nvml: GPU is lost"), [("gpu/GPU5", "reboot")]),
    "no NVML of a pod": (
        ADMISSION.format("error calling nvml.Init: Unknown Error"), [("host/host/GPUs for the scheduler", "inspect")]),
    "no GPU of a program": ("RuntimeError: No CUDA GPUs are available\n", [("driver/NVIDIA driver", "inspect")]),
    "one port": (DEVINFO.format("DOWN (1)"), [("port/mlx5_0/1", "inspect")]),
    "one port, good": (DEVINFO.format("ACTIVE (4)").replace("65535", "12"), []),
    "nouveau": (LSMOD.format(""), [("driver/NVIDIA driver", "change-setting")]),
    "nouveau and nvidia": (LSMOD.format("nvidia              62402560  0\n"), []),
    "no GPU on the bus": (ABSENT.format("No NVIDIA GPU found."), [("slot/missing GPU", "inspect")]),
    "no GPU, older words": (
        ABSENT.format("No NVIDIA graphics adapter found!"), [("slot/missing GPU", "inspect")]),
    "no GPU before a reload": (ABSENT.format("No NVIDIA GPU found.") + RELOADED, []),
    "no GPU that it supports": (
        ABSENT.format(f"{LEGACY}NVRM: No NVIDIA GPU found."), [("host/host/start of a GPU", "change-setting")]),
    "udev": (UDEV, [("driver/NVIDIA driver", "load-module")]),
    "HPL": (HPL, [("host/host/programs", "inspect")]),
    "GPUassert": (
        "GPUassert: an illegal memory access was encountered main.cu 50\n", [("host/host/programs", "inspect")]),
    "a narrow link": (PORT_STATES.format(1, 4, 1), [("port/LID1/6", "inspect")]),
    "a link that its other end makes narrow": (PORT_STATES.format(1, 1, 1), []),
    "a link of all its lanes": (PORT_STATES.format(4, 4, 4), []),
    "a link of which one end is shown": (PORT_STATES.format(1, 4, 1).partition("Peer")[0], []),
    "SMART of an unnamed disk": (SMART.format("04"), [("host/host/disks", "inspect")]),
    "SMART of an unnamed disk, good": (SMART.format("00"), []),
    "an old event log": (OLD_EVENTS, [("host/host/memory", "inspect")]),
    "ipmiutil": (EVENT.format("Uncorrectable ECC"), [("host/host/memory", "inspect")]),
    "ipmiutil, corrected": (EVENT.format("Correctable ECC"), []),
    "the page of a BMC": (ON_PAGE.format("Assertion"), [("host/host/memory", "inspect")]),
    "the page of a BMC, over": (ON_PAGE.format("Assertion") + ON_PAGE.format("Deassertion"), []),
    "a sensor in full": (IN_FULL.format("Upper Critical"), [("host/host/cooling", "inspect")]),
    "a sensor in full, good": (IN_FULL.format("ok"), []),
    "a sensor in full, beyond a mark": (IN_FULL.format("Upper Non-Critical"), []),
    "sensors": (CHIPS.format("96.0"), [("host/host/cooling", "inspect")]),
    "sensors at their limit": (CHIPS.format("90.0"), [("host/host/cooling", "inspect")]),
    "sensors with an alarm of long ago": (CHIPS.format("89.9"), []),
}
"""By text: of each cause the component and the step that is due."""
NO_DEVICES = [
    "Failed to get IB devices list: Function not implemented\n",
    "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs4\n0 HCAs"
    " found:\n",
    "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.\nNo IB devices found\n",
    " Did not detect devices \n If device exists, check if driver is up\n Unable to find the Infiniband/RoCE device\n",
    "Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)\n",
]


def _unread(text: str) -> list[str]:
    lines = lines_of(text.encode(), "f")
    layout = undone(lines)
    return [lines[number] for number in unread(lines, layout, [output for _, output in outputs(layout)])]


@pytest.mark.parametrize("name", COMPONENTS)
def test_the_component_of_an_excerpt(name: str, tmp_path: Path) -> None:
    text, causes = COMPONENTS[name]
    _, found = of_text(text, tmp_path)
    assert [(each["id"], each["action"]["action"]) for each in found["causes"]] == causes
    assert [line for line in _unread(text) if "drm" not in line and "OEM" not in line] == []


@pytest.mark.parametrize("text", NO_DEVICES)
def test_no_rdma_device_is_no_pass_and_no_fault(text: str, tmp_path: Path) -> None:
    """There may be none, or none for this container."""
    causes, found = of_text(text, tmp_path)
    assert (causes, found["summary"]["unknown"], _unread(text)) == ((), 1, [])


def test_a_provider_that_is_missing_is_no_device_that_is(tmp_path: Path) -> None:
    warning = "libibverbs: Warning: couldn't load driver 'librxe-rdmav34.so': librxe-rdmav34.so: cannot open\n"
    causes, found = of_text(warning + DEVINFO.format("ACTIVE (4)").replace("65535", "12"), tmp_path)
    assert (causes, found["summary"]["unknown"]) == ((), 0)


@pytest.mark.parametrize(("text", "wheres"), [
    (NODE + SUM.format("ALL"), ["0x200002/ALL"]), (NODE + SUM.format("ALL") + SUM.format(33), ["0x200002/33"]),
])  # fmt: skip
def test_counters_of_a_switch_in_all_count_where_those_of_its_ports_are_cut_off(text: str, wheres: list[str]) -> None:
    (found,) = read_port_counters(tuple(text.splitlines()))
    assert [key.split()[2] for key in found.facts] == wheres


def test_a_container_is_not_given_every_device(tmp_path: Path) -> None:
    assert _unread("Failed to open device\n" + DEVINFO.format("ACTIVE (4)")) == []
