"""What a host says of its CPUs, PCIe, modules and services: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from readers_text import assert_read, reported

from dgxcheck.readers.host import units

SHORTENED = """\
3b:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 80GB] (rev a1)
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx-
\tKernel driver in use: nvidia
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 16GT/s, Width x16
"""
"""Without the lines of its regions."""
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
SETTING = "fabric manager config file item: FABRIC_NODE_CONFIG_FILE has an invalid value\n"
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
RUNNING = UNIT.replace("failed (Result: exit-code)", "active (running)").split("\n\n")[0] + "\n"
OF_A_RACK = """\
[Oct 13 2025 18:14:38] [ERROR] [tid 202] Fabric Manager detected GPU NVL Fatal error on :
moduleId : 3
nodeId : 7
gpuGuid : 0xED0A8727AFC3C6F9
portNum : 4
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
EXCLUDED = """\
GPU UUID: \t GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77
Bus Location: \t 0000:07:00.0
GPU Excluded:\t {}
"""
SOCKETS = (
    "CPU(s):               64\nOn-line CPU(s) list:  0-63\nVendor ID:            AuthenticAMD\n{1}"
    "Socket(s):            2\nNUMA node(s):         {0}\nNUMA node0 CPU(s):    0-63\n"
)
RUNS = """\
● nvidia-persistenced.service - NVIDIA Persistence Daemon
     Active: {} since Mon 2025-01-06 10:00:00 UTC; 2 days ago
Jan 06 10:00:00 n1 nvidia-persistenced[900]: {}
"""
MCELOG = "mcelog: Hardware event. This is not a software error.\nmcelog: CPU 3 BANK 4\nmcelog: {} error\n"
LINK_OF_GPU = (
    "[Jan 02 2025 10:00:00] [ERROR] [tid 1234] GPU NVLink training failed for GPU pci bus id: 00000000:0A:00.0"
    " physical id: 3\n"
)
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "lspci, shortened": (SHORTENED, ()),
    "systemctl status": (UNIT, ()),
    "a log of what runs": (RUNS.format("active (running)", "Started (900)"), ()),
    "a CPU by mcelog": (MCELOG.format("Uncorrected"), ("warn machine-check inspect",)),
    "a CPU by mcelog, corrected": (MCELOG.format("Corrected"), ()),
    "a link by Fabric Manager": (LINK_OF_GPU, ("fail nvlink-down drain",)),
    "systemctl list-units": (UNITS, ("fail fabric-manager-down inspect",)),
    "a setting of Fabric Manager": (SETTING, ("warn fabric-manager-error inspect",)),
    "modinfo": (MODULE, ()),
    "a GPU's file": (INFORMATION, ()),
    "systemctl status, good": (RUNNING, ()),
    "nvidia-persistenced": ("Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*)"
                            " exist, and that user 116 has read and write permissions for those files.\n", ()),
    "rasdaemon, a device on PCI": (LOGGED, ("warn aer-uncorrectable inspect",)),
    "Fabric Manager of a rack": (OF_A_RACK, ("warn nvlink-reported inspect",)),
    "systemctl status without the name of the unit": (
        SERVICE.format("failed (Result: exit-code)"), ("fail fabric-manager-down inspect",)),
    "systemctl is-active": (
        "$ systemctl is-active nvidia-fabricmanager\nfailed\n", ("fail fabric-manager-down inspect",)),
    "systemctl is-active, good": ("$ systemctl is-active nvidia-fabricmanager\nactive\n", ()),
    "systemctl status of a unit that runs": (SERVICE.format("active (running)"), ()),
    "a GPU that the driver leaves out": (EXCLUDED.format("Yes"), ("warn gpu-excluded inspect",)),
    "a GPU that the driver has": (EXCLUDED.format("No"), ()),
    "lscpu": (SOCKETS.format(1, ""), ("warn numa-tables drain",)),
    "lscpu, a node for each socket": (SOCKETS.format(2, ""), ()),
    "lscpu, offline": (SOCKETS.replace("0-63\nV", "0-7,16-63\nOff-line CPU(s) list: 8-15\nV").format(2, ""),
                       ("warn cpu-offline drain",)),
    "lscpu, SMT off": (SOCKETS.replace("0-63\nV", "0-31\nOff-line CPU(s) list: 32-63\nV").format(2, ""), ()),
    "lscpu of a virtual machine": (SOCKETS.format(1, "Hypervisor vendor:    KVM\n"), ()),
    "lshw": (LSHW.format(" UNCLAIMED", ""), ("fail driver-not-loaded load-module",)),
    "lshw, good": (LSHW.format("", "driver=nvidia "), ()),
    "lshw, a function of sound without driver": (
        LSHW.format(" UNCLAIMED", "").replace("3D controller", "Audio device"), ()),
    "lshw, another driver": (LSHW.format("", "driver=nouveau "), ("fail nouveau drain",)),
    "grep of links": (LNKSTA.format(4, "downgraded"), ("warn link-unseen inspect",)),
    "grep of half a link": (LNKSTA.format(8, "downgraded"), ()),
    "lspci -vv of a module": (LNKCAP.format("GH100 [H100 SXM5 80GB]"), ("warn link-unseen inspect",)),
    "lspci -vv of a card": (LNKCAP.format("GH100 [H100 PCIe]"), ()),
    "grep of links, good": (LNKSTA.format(16, "ok"), ()),
    "lspci -k": (MODULES, ("fail driver-unbound load-module",)),
    "lspci -v, small BAR1": (REGION.format("256M"), ("fail bar1-small drain",)),
    "lspci -v, whole BAR1": (REGION.format("128G"), ()),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    assert_read(EXPECTED[name], tmp_path)


def test_why_a_service_failed_is_what_it_says_first(tmp_path: Path) -> None:
    text = RUNS.format("failed (Result: exit-code)", "Failed to open libnvidia-cfg.so.1")
    _, found = of_text(text, tmp_path)
    why = "systemctl: nvidia-persistenced failed: Failed to open libnvidia-cfg.so.1"
    assert why in [each["message"] for each in found["findings"]]


def test_the_gpu_of_a_rack_that_fabric_manager_names(tmp_path: Path) -> None:
    _, found = of_text(OF_A_RACK, tmp_path)
    messages = [each["message"] for each in found["findings"] if each["status"] == "warn"]
    assert "moduleId 3, nodeId 7, gpuGuid 0xED0A8727AFC3C6F9, portNum 4" in messages[0]


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
    assert reported(output) == [("note", "", note)]
    other = text.replace("nvidia-", "some-").replace("openibd", "sshd").replace("dcgm", "ssh")
    assert units.read_units((*other.splitlines(),)) == ()
