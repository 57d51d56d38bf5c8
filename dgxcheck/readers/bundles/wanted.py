"""Which sections of a bundle hold facts, and as what each is read."""

from __future__ import annotations

import re

_FILES = re.compile(
    r"/proc/(?:cmdline|cpuinfo|meminfo|version|modules|driver/nvidia/.*|sys/kernel/(?:numa_balancing|osrelease|hostname))"
    r"|/sys/(?:bus/pci|class/(?:dmi|infiniband|net|iommu|block)|devices/system|module|kernel/(?:mm/memory_peers"
    r"|iommu_groups)|hypervisor)/.*|/etc/(?:os-release|dgx-release)|/run/systemd/container|/\.dockerenv"
)
_MODULES = "/proc/modules"
_PROGRAM = re.compile(r"(?:/[\w.+/-]{0,80}/)?(?P<name>[\w.+-]{1,40}?)(?::|(?P<options>\s.*))?")
PROGRAMS = (
    "lspci", "nvidia-smi", "dmidecode", "numactl", "ibstat", "lsmod", "mst", "uname", "ibstatus", "ibv_devinfo", "rdma",
    "ibdev2netdev", "mlxlink", "lscpu", "dcgmi", "fabricmanager",
)  # fmt: skip
KERNEL_LOG = "kernel log"
BY_TITLE = ("uname", "files")
"""What is read only where a title says what it is."""
_LOGS = re.compile(r"Scanning kernel log files.*|  journalctl -b -\d{1,2}:|  /var/log/[\w./+-]{1,80}:"
                   r"|(?:.*/)?dmesg(?::|\s.*)?|/var/log/(?:kern\.log|dmesg|messages)")  # fmt: skip
_OF_KERNEL = re.compile(r"(?:.*/)?journalctl\b(?=.*(?: -k\b| --dmesg\b| --boot\b| -b\b))(?!.*_COMM=).*")


def reader_of(title: str) -> str:
    """``lspci`` .., ``kernel log``, ``files`` for a file of the machine, or empty where nothing is read of it."""
    if title.startswith("/") and _FILES.fullmatch(without_dots(title)):
        return "lsmod" if title == _MODULES else "files"
    if _LOGS.fullmatch(title) or _OF_KERNEL.fullmatch(title):
        return KERNEL_LOG
    match = _PROGRAM.fullmatch(title)
    return match["name"] if match is not None and match["name"] in PROGRAMS else ""


def options_of(title: str) -> str:
    """What follows the program of a command line."""
    match = _PROGRAM.fullmatch(title)
    return (match["options"] or "").strip() if match is not None else ""


def without_dots(path: str) -> str:
    """``/proc/driver/nvidia/./gpus`` without the dot that the script's find puts in."""
    return path.replace("/./", "/")
