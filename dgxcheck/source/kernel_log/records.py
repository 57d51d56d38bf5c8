"""Which lines of a log the kernel's own code wrote, and which hold text that any user can choose.

The kernel logs the name and the file of a program that crashes, newlines included. A process can thus begin a record
with 15 bytes of its own (``TASK_COMM_LEN``), and can continue it with lines in any driver's form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

BDF = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
OF_HOST = (
    r"EDAC MC\d{1,3}: \d{1,9} [CU]E \w|(?:mce: |\{\d{1,10}\})?\[Hardware Error\]: |Memory failure: 0x"
    r"|mce: Uncorrected hardware memory|(?:mce: )?CPU\d{1,5}: (?:Core|Package) temperature"
    r"|INFO: task .{1,16}:\d{1,10} blocked for|(?:NMI )?watchdog: (?:BUG: soft lockup|Watchdog detected)"
    r"|(?:blk_update_request: |print_req_error: |end_request: )?(?:critical \w{1,10}|I/O|protection) error, dev \w"
    r"|Buffer I/O error on dev|sd (?:\d{1,6}:){3}\d{1,6}: \[sd\w{1,4}\] |md/raid[\w-]{0,8}:md\w{1,31}: Disk failure"
    r"|nvme nvme\d{1,4}: (?:I/O (?:\d|tag)|controller is|Removing after|Device not ready|Disabling device)"
    rf"|pciehp {BDF}:pcie"
    r"|AMD-Vi: Event logged \[IO_PAGE_FAULT device=|DMAR: \[DMA (?:Read|Write)[A-Z_ ]{0,20}\] Request device \["
    r"|Kernel panic - not syncing: |BUG: (?:unable to handle |kernel NULL pointer |soft lockup - CPU#)"
    r"|Unable to handle kernel |general protection fault[,:] |kernel BUG at [\w./-]{1,120}:\d"
    r"|(?:Oops|Internal error): (?:[A-Za-z][A-Za-z ,-]{0,80}(?:0x[0-9a-f]{1,16})?: )?[0-9a-f]{4,16} \[#\d{1,4}\] [PS]"
    r"|(?:rcu: )?INFO: rcu\w{0,20} (?:self-)?detected |NMI: (?:PCI system error \(SERR\)|IOCK error \()"
    r"|(?:Memory cgroup o|O)ut of memory: Kill(?:ed)? process \d"
    r"|RIP: [0-9a-f]{4}:[\w.]{1,120}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \["
    r"|pc : [\w.]{1,120}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \["
    r"|.{1,16}\[\d{1,10}\]: segfault at [0-9a-f]{1,16} ip .{1,90} in (?:lib(?:nccl|cuda|nvidia-[mpn]|dcgm)|nv)"
    r"|traps: .{1,16}\[\d{1,10}\] [a-z ]{1,30} ip:.{1,90} in (?:lib(?:nccl|cuda|nvidia-[mpn]|dcgm)|nv)"
)
"""Trouble of the host itself, each by more bytes than the name of a process has; crashes of programs begin with it."""
FRAME = r"[^\[]{0,160}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \[nvidia"
"""A function of the NVIDIA driver on a stack; the name of a process can begin so too."""
_SEVERAL_LINES = re.compile(
    rf"NVRM: The NVIDIA GPU {BDF}|NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:"
)
"""The messages of several lines that are read."""
_OF_DEVICE = re.compile(
    rf"[^\s:]{{1,64}} {BDF}: |NVRM: (?:Xid \()?(?:The NVIDIA )?(?:GPU )?(?:at )?(?:PCI:)?{BDF}"
    r"|NVRM: loading NVIDIA|NVRM: API mismatch|nvidia-nvswitch\d|nvidia-nvlink: \w|mlx5_core: probe "
    rf"|{OF_HOST}"
)
"""First lines of drivers, each by more bytes than the name of a process has."""
_OF_DRIVER = re.compile(rf"NVRM: |nvidia|mlx5|Linux version |[^\s:]{{1,64}} {BDF}: |{OF_HOST}|{FRAME}")


def from_kernel(priority: int) -> bool:
    """Is the facility 0? What is written to ``/dev/kmsg`` never has that one."""
    return priority >> 3 == 0


def messages(lines: Sequence[str]) -> list[str]:
    """The messages of one record: its first line, and those after it that the same driver wrote."""
    if len(lines) > 1 and _SEVERAL_LINES.match(lines[0]):
        return [lines[0], *(line for line in lines[1:] if line.startswith("NVRM: "))]
    return [*lines[:1]]


def may_follow(first: str, message: str) -> bool:
    """Is a message that has the microsecond of the one before it a record of its own?

    ``dmesg -S`` and rsyslog give every line of a record the time of the first. A driver's line after one that is no
    driver's counts as the rest of that record.
    """
    return _OF_DEVICE.match(first) is not None or _OF_DRIVER.match(message) is None
