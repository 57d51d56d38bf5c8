"""Errors of GPUs, NVSwitches, HCAs, PCIe and the host itself in the kernel log since boot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, replace

MARK = "dgxcheck: log begins"
NO_TIMES = "dgxcheck: log begins, its lines have no times"
"""An excerpt of which the order of the lines alone is known; their seconds are an hour apart."""
FORGEABLE = "dgxcheck: rows of syslog"
"""A line of dgxcheck's own: anybody can have written the others."""
GPU_DRIVER = "nvidia"
OF_GPU = f"{GPU_DRIVER} "
"""Begins a message about a GPU: driver and bus id (``dev_printk``)."""
OFF_BUS = 79
"""The Xid of a GPU that has fallen off the bus."""
ANNOUNCES_RECOVERY = 154
"""The Xid that says what the GPU needs now: a reset, a reboot or nothing any more."""
OF_IO = "machine check of I/O"
"""The part of such an event."""
EARLIER_DAYS = 30
"""An Xid that is longer ago counts as another event, not as a recurrence."""
Severity = Literal["corrected", "nonfatal", "fatal"]
HcaTrouble = Literal[
    "not started", "off bus", "firmware", "health", "module", "temperature", "power", "stalled",
    "unplugged", "link down",
]  # fmt: skip
"""Driver gave up, no answer on PCIe, firmware does not respond or reports an error that it survived, module or cable of
a port, too hot, insufficient slot power, a transmit queue that timed out, a port without a cable or that went down."""

HostTrouble = Literal[
    "memory", "machine check", "throttled", "stuck", "disk", "array", "file system", "unplugged", "panic", "oops",
    "hung", "out of memory", "crashed", "file server", "limit reached", "no BAR", "nvlink", "fabric", "clock",
    "bounce buffers", "controller", "overheated", "sends nothing", "link down", "untrained", "BMC",
    "held", "silent", "no ECC", "interrupt off", "located",
]  # fmt: skip
"""Memory error, another machine check, CPU too hot, a task stuck in the NVIDIA driver, I/O error, array that lost a
disk, damaged file system, PCIe slot that lost its device; the kernel panicked, hit a bug, or saw a task or CPU hang
elsewhere; a process was killed for lack of memory, or crashed in a library of NVIDIA; a file server does not respond,
a limit of the whole host was reached, no address space for a BAR, NVLinks that the driver could not detect, an
NVSwitch fabric whose state it no longer knows, a time stamp counter that is unstable, no bounce buffer for a transfer,
a RAID controller's own alarm, a sensor of the machine at its critical temperature, an
interface whose transmit queue timed out or whose link went down, a PCIe port whose link does not train, a BMC that does
not answer, a GPU that the driver cannot give up as it is in use, a device that does not respond on PCIe,
memory whose errors are not corrected, an interrupt that the kernel switched off, and where an NVMe controller is."""


NoStart = Literal[
    "", "power", "bars", "interrupt", "firmware", "unsupported", "supported", "not-open", "needs-open", "claimed",
    "given", "unsupported-call", "unattached", "no-memory", "to-reset", "gfw", "rom", "none",
]  # fmt: skip
"""Why the driver could not start a GPU: power cables are not connected, firmware gave a BAR no or a wrong address, it
has no interrupt, the image of the GPU's own firmware is missing, this release does not support it, it says so though
this release supports the model, the open modules do not, only the open ones do, another driver holds it, or one that
passes it to a virtual machine, which is no trouble; of the status of its call (nvstatuscodes.h): NV_ERR_NOT_SUPPORTED
0x56, the same while it looked which chip this is (0x22, osinit.c: osInitNvMapping), NV_ERR_NO_MEMORY 0x51, or the GPU
is left in a state from which a reset leads (NV_ERR_INVALID_STATE 0x40 while the region of its firmware is still
protected), its own firmware (GFW) did not finish booting, its VBIOS cannot be read; there was none on PCI."""
ModuleTrouble = Literal["kernel", "symbols", "signature", "proprietary"]
"""Why the kernel did not load a module: it was built for another kernel, lacks another module, is not signed."""


IommuRefusal = Literal["memory", "interrupt", "smmu", "unanswered"]
"""An access to memory, by Intel's or AMD's IOMMU; an interrupt; whatever an SMMU of Arm reports; a device that did not
answer when it was told to forget an address (ATS)."""


def is_near(seconds: float, times: Iterable[float], within_s: float) -> bool:
    """Is one of these times so near? All in seconds since boot."""
    return any(abs(seconds - each) <= within_s for each in times)


class LoggedEvent(Record, nature="event"):
    """What one line of the log says."""

    seconds: float
    """Since boot."""
    line: str
    past: bool
    """From before the device was last reset, its driver last took over, or the module in a port was plugged in."""


class Xid(LoggedEvent):
    """An error that the driver reports of one GPU: ``NVRM: Xid (PCI:0000:06:00): 13, pid=.., ..``."""

    bdf: str
    number: int
    pid: int | None
    process: str
    """Name of the process; empty where the line has none."""
    part: str
    """GPU and compute instance of a MIG device: ``GPU-I:05 GPU-CI:00``."""
    text: str
    begun_s: float = 0.0
    """Seconds of the last reset or driver load before it; 0 where the log has none."""
    more: int = 0
    """Times that it was logged before, of which no line is kept."""
    ended_channel: bool = False
    """Another line says that it ended a program's channel: ``45, .., Ch 00000001 caused by previous Xid 149``."""


class SXid(LoggedEvent):
    """An error of an NVSwitch: ``nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, ..``."""

    bdf: str
    number: int
    fatal: bool | None
    """None where the line does not say."""


class OffBus(LoggedEvent):
    """A GPU has fallen off the bus, as Xid 79 or without an Xid."""

    bdf: str
    xid: bool
    begun_s: float = 0.0
    """As an Xid's."""
    serial: str = ""
    """Of the board, where the driver says it after the fall."""


class NotStarted(LoggedEvent):
    """The driver could not start a GPU: ``NVRM: GPU 0000:06:00.0: RmInitAdapter failed! (0x26:0xffff:1290)``."""

    bdf: str | None
    """Old drivers name no GPU."""
    why: NoStart
    code: str
    """``0x26:0xffff`` of RmInitAdapter, without the line of its source; empty where there is none."""


class Refused(LoggedEvent):
    """The driver refused a program of another version: ``NVRM: API mismatch: the client has the version ..``."""

    version: str
    module: str
    """The version of the loaded module; empty where the line has none."""
    fabric: bool
    """By the driver of the NVSwitches: the program is Fabric Manager."""


class HcaEvent(LoggedEvent):
    """A hardware error of an adapter, by the mlx5 driver."""

    bdf: str
    trouble: HcaTrouble
    module: int | None
    """Number of the port's module, from 0, where it is about one."""
    text: str
    back: bool = False
    """Of a link that went down: it came up again since."""


class PcieError(LoggedEvent):
    """An error of one device by PCI Express Advanced Error Reporting."""

    bdf: str
    severity: Severity
    names: tuple[str, ...] = ()
    """Of the bits, as the kernel has them: ``BadTLP``."""
    unrecovered: bool = False
    """The kernel could not recover the device."""
    other_gpus: tuple[str, ...] = ()
    """GPUs below the port that reported it, or on its card, that the kernel could not recover."""
    received: bool = False
    """A port above received it as a message of this function."""
    past: bool = False
    """Kept by firmware from before this boot."""
    more: int = 0
    """As an Xid's."""


class HostEvent(LoggedEvent):
    """Trouble of the host: ``EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (..)``."""

    trouble: HostTrouble
    part: str
    """DIMM, CPU and bank, task, disk, array, bus id of a controller, of the device without buffers or of the port above
    the slot, process, or reason of a panic or an unstable clock; empty where the line names none."""
    group: str
    """Of memory the controller (``mc1``), socket or module, of an array the disk that failed, of a port its slot, of a
    BAR its number, after ``GPU`` where the log names its device as NVIDIA's, ``GPU`` alone of such a device that does
    not respond, ``large`` before a number of a BAR of 8 GiB or more, of a controller what it says, of an oops
    the kernel module, of a crash the library; ``hardware`` of a panic that hardware asked for, ``cgroup`` of a process
    that its own limit of memory ended."""
    corrected: bool | None
    """Of memory and machine checks."""
    count: int = 1
    """Errors of this one line."""
    past: bool = False
    """Kept by firmware or CPU from before this boot; of a slot, server or BAR: it is there again."""
    back: bool = False
    """Of a link that went down: it came up again since."""

    @property
    def of_cpus(self) -> bool:
        """Of what hung: CPUs, not a task that waits."""
        return " blocked for more than " not in self.line


class EarlierXid(Record, nature="event"):
    """An Xid that the log of this boot does not hold: an earlier run recorded it, or the file holds earlier boots."""

    bdf: str
    number: int
    """79 for a GPU that fell off the bus without an Xid too."""
    boot: str
    """Which boot: ``/proc/sys/kernel/random/boot_id``, or its number in the file: -1 is the one before the last."""
    begun_s: float
    """As an Xid's."""
    text: str = ""
    date: str = ""
    """UTC, of the first run that recorded it; empty where that is not known."""
    uuid: str = ""
    """Of the GPU; empty where it was not reported. The two GPUs of a K80 share a serial number."""


class ModuleRefused(LoggedEvent):
    """The kernel did not load a module of the driver: ``nvidia: version magic '..' should be '..'``."""

    module: str
    """Empty where the line names none."""
    why: ModuleTrouble


class IommuFault(LoggedEvent):
    """An IOMMU refused a device's access to memory: ``DMAR: [DMA Write] Request device [07:00.0] fault addr ..``."""

    bdf: str
    """Empty where the line names no device."""
    what: IommuRefusal
    past: bool = False


class DriverError(LoggedEvent):
    """An error in words that no other event here stands for: ``nvidia-uvm: .. failed ..``."""

    driver: str
    """``nvidia``, ``mlx5_core`` or ``efa``, whichever of its modules says it."""
    bdf: str
    """Empty where the line names no device."""


class KernelLog(Record, nature="event"):
    """The log of this boot, as far back as it goes."""

    where: str
    """``/dev/kmsg``, or the file that it was read from."""
    begins: float | Missing
    """Seconds since boot of its first line."""
    xids: tuple[Xid, ...]
    sxids: tuple[SXid, ...]
    off_bus: tuple[OffBus, ...]
    pcie: tuple[PcieError, ...]
    not_started: tuple[NotStarted, ...] = ()
    refused: tuple[Refused, ...] = ()
    modules: tuple[ModuleRefused, ...] = ()
    hcas: tuple[HcaEvent, ...] = ()
    host: tuple[HostEvent, ...] = ()
    iommu: tuple[IommuFault, ...] = ()
    driver_errors: tuple[DriverError, ...] = ()
    earlier: tuple[EarlierXid, ...] = ()
    in_use_s: float = -1.0
    """Seconds of the last line that a program has taken a GPU; -1 where there is none."""
    timed: bool = True
    """False where the seconds say nothing but the order of the lines."""
    cut: str = ""
    """Of a saved log: why not all of it was read."""
    forgeable: bool = False
    """Rows of syslog, to which any user can write as ``kernel``, and not those of the kernel itself."""


_EVENTS = ("xids", "sxids", "off_bus", "pcie", "not_started", "refused", "modules", "hcas", "host", "iommu",
           "driver_errors")  # fmt: skip
_MOST_EVENTS = 4096
"""Of a kind, that are kept of earlier readings."""


def with_overwritten(old: KernelLog | Missing, new: KernelLog) -> KernelLog:
    """With the events of an earlier reading that come before the first line of this one: the kernel overwrites."""
    if isinstance(old, Missing) or isinstance(old.begins, Missing) or isinstance(new.begins, Missing):
        return new
    if new.begins <= old.begins:
        return new
    first = new.begins
    lost = {name: [each for each in getattr(old, name) if each.seconds < first][-_MOST_EVENTS:] for name in _EVENTS}
    return replace(new, begins=old.begins, **{name: (*lost[name], *getattr(new, name)) for name in _EVENTS})


NO_LOG = KernelLog(where="", begins=Missing(Gap.UNASKED, ""), xids=(), sxids=(), off_bus=(), pcie=())
"""Has no line."""
