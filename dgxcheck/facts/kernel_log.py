"""What the kernel log tells of GPUs, NVSwitches and PCIe since boot."""

from __future__ import annotations

from typing import Literal

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing

EARLIER_DAYS = 30
"""What is longer ago is another event, not the same again."""
Severity = Literal["corrected", "nonfatal", "fatal"]


class Xid(Record):
    """An error that the driver reports of one GPU: ``NVRM: Xid (PCI:0000:06:00): 13, pid=.., ..``."""

    bdf: str
    number: int
    seconds: float
    """Since boot."""
    pid: int | None
    process: str
    """Name of the process; empty where the line has none."""
    part: str
    """GPU and compute instance of a MIG device: ``GPU-I:05 GPU-CI:00``."""
    text: str
    line: str
    past: bool
    """From before the GPU was last reset or the driver last loaded."""
    begun_s: float = 0.0
    """When the GPU had begun anew before it, by a reset or a load of the driver; 0 where the log does not tell."""


class SXid(Record):
    """An error of an NVSwitch: ``nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, ..``."""

    bdf: str
    number: int
    seconds: float
    fatal: bool | None
    """None where the line does not tell."""
    line: str
    past: bool


class OffBus(Record):
    """The driver says that a GPU has fallen off the bus, as Xid 79 or without."""

    bdf: str
    seconds: float
    xid: bool
    line: str
    past: bool
    begun_s: float = 0.0
    """As an Xid's."""


class PcieError(Record):
    """An error that PCI Express Advanced Error Reporting told of one device."""

    bdf: str
    severity: Severity
    seconds: float
    line: str


class EarlierXid(Record):
    """An Xid from before what the log of this boot holds: an earlier run saw it, or the file holds earlier boots."""

    bdf: str
    number: int
    """79 for a GPU that fell off the bus without an Xid too."""
    boot: str
    """Which boot: ``/proc/sys/kernel/random/boot_id``, or its number in the file."""
    begun_s: float
    """As an Xid's."""
    text: str = ""
    date: str = ""
    """UTC, when a run saw it first; empty where that is not known."""
    uuid: str = ""
    """Of the GPU; empty where it did not tell. The two halves of a K80 share a serial number."""


class KernelLog(Record):
    """The log of this boot, as far back as it goes."""

    where: str
    """``/dev/kmsg``, or the file that it was read from."""
    begins: float | Missing
    """Seconds since boot of its first line."""
    xids: tuple[Xid, ...]
    sxids: tuple[SXid, ...]
    off_bus: tuple[OffBus, ...]
    pcie: tuple[PcieError, ...]
    earlier: tuple[EarlierXid, ...] = ()
