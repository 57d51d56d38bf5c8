"""Other trouble of the host in the kernel log: hot CPUs, threads stuck in the NVIDIA driver, disks and
their file systems, arrays, slots.

Linux arch/x86/kernel/cpu/mce/therm_throt.c (drivers/thermal/intel from 5.11), kernel/hung_task.c, kernel/watchdog.c,
block/blk-core.c, drivers/nvme/host, drivers/md, drivers/pci/hotplug/pciehp_ctrl.c, fs/ext4, fs/jbd2, fs/xfs, fs/btrfs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.facts.bdf import PATTERN, is_bdf
from dgxcheck.facts.kernel_log import HostEvent, HostTrouble

FRAMES_S = 1.0
"""The stack follows its heading within this time."""
_THROTTLED = re.compile(
    r"(?:mce: )?CPU(?P<cpu>\d{1,5}): (?:Core|Package) temperature (?:is )?above threshold, cpu clock (?:is )?throttled"
    r" \(total events = (?P<count>\d{1,12})\)"
)
STUCK = re.compile(
    r"INFO: task (?P<task>.{1,16}):\d{1,10} blocked for more than \d{1,6} seconds"
    r"|(?:NMI )?watchdog: (?:BUG: soft lockup - CPU#\d{1,5} stuck for \d{1,8}s! \[(?P<spinning>.{1,16}):\d{1,10}\]"
    r"|Watchdog detected hard LOCKUP on cpu \d{1,5})"
)
_FRAME = re.compile(
    r"(?:RIP: [0-9a-f]{4}:| {0,8}\??  ?)?[\w.]{1,120}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \[nvidia\w{0,20}\]"
)
_DISK = (
    re.compile(
        r"(?:blk_update_request: |print_req_error: |end_request: )?(?:critical medium|critical target|I/O|protection)"
        r" error, dev (?P<disk>[a-z][\w!-]{0,31}), sector \d"
    ),
    re.compile(r"Buffer I/O error on dev(?:ice)? (?P<disk>[a-z]\w{0,31}), logical block \d"),
    re.compile(
        r"nvme (?P<disk>nvme\d{1,4}): (?:controller is down; will reset"
        r"|I/O \d{1,6} (?:\([^)]{1,40}\) )?QID \d{1,5} timeout"
        r"|I/O tag \d{1,6} \([0-9a-f]{1,8}\) .{0,60}QID \d{1,5} timeout|Removing after probe failure"
        r"|Device not ready; aborting|Disabling device after reset failure)"
    ),
    re.compile(r"sd \d{1,4}(?::\d{1,6}){3}: \[(?P<disk>sd[a-z]{1,4})\] .{0,40}Sense Key : (?:Medium|Hardware) Error"),
)
_FILE_SYSTEM = (
    re.compile(r"EXT4-fs error \(device (?P<disk>[a-z][\w!-]{0,31})\): "),
    re.compile(r"EXT4-fs \((?P<disk>[a-z][\w!-]{0,31})\): Remounting filesystem read-only"),
    re.compile(r"Aborting journal on device (?P<disk>[a-z][\w!]{0,31})-\d{1,10}\."),
    re.compile(
        r"XFS \((?P<disk>[a-z][\w!-]{0,31})\): (?:Metadata corruption detected|Corruption detected"
        r"|Corruption of in-memory data|Internal error|metadata I/O error|[lL]og I/O [eE]rror"
        r"|Filesystem has been shut down)"
    ),
    re.compile(r"BTRFS(?:: | )(?:error|critical) \(device (?P<disk>[a-z][\w!-]{0,31})(?: state \w{1,8})?\)"),
)
_ARRAY = re.compile(r"md/raid[\w-]{0,8}:(?P<array>md\w{1,31}): Disk failure on (?P<disk>[a-z]\w{0,31})(?:,| detected)")
_SLOT = re.compile(
    rf"(?:pcieport (?P<port>{PATTERN}): pciehp|pciehp (?P<old>{PATTERN}):pcie\d{{1,4}}): "
    r"Slot\((?P<slot>[\w-]{1,20})\): (?P<what>Link Down|Card not present|Link Up|Card present"
    r"|Attention button pressed|Button pressed|Powering off due to button press)"
)
_GONE, _BACK = ("Link Down", "Card not present"), ("Link Up", "Card present")
Lines = Sequence[tuple[float, str]]


def events(lines: Lines) -> list[HostEvent]:
    """All of these, in the order of the log."""
    found = [*_single(lines), *_stuck(lines), *_unplugged(lines)]
    return sorted(found, key=lambda each: each.seconds)


def _single(lines: Lines) -> Iterator[HostEvent]:
    for seconds, message in lines:
        if match := _THROTTLED.match(message):
            yield _event("throttled", f"CPU {int(match['cpu'])}", seconds, message, count=int(match["count"]))
        elif match := _ARRAY.match(message):
            yield _event("array", match["array"], seconds, message, group=whole_disk(match["disk"]))
        elif match := next((match for form in _DISK if (match := form.match(message))), None):
            yield _event("disk", whole_disk(match["disk"]), seconds, message)
        elif match := next((match for form in _FILE_SYSTEM if (match := form.match(message))), None):
            yield _event("file system", whole_disk(match["disk"]), seconds, message)


def _event(
    trouble: HostTrouble, part: str, seconds: float, line: str, *, group: str = "", count: int = 1, past: bool = False
) -> HostEvent:
    return HostEvent(
        trouble=trouble, part=part, group=group, corrected=None, count=count, seconds=seconds, line=line, past=past
    )


def is_frame(message: str) -> bool:
    """A function of the NVIDIA driver on a stack: `` os_acquire_rwlock_write+0x30/0x40 [nvidia]``."""
    return _FRAME.match(message) is not None


def whole_disk(name: str) -> str:
    """The disk of a partition: ``sda`` of ``sda1``, ``nvme0n1`` of ``nvme0n1p2``."""
    match = re.fullmatch(r"(nvme\d+n\d+|mmcblk\d+)p\d+|((?:[shv]|xv)d[a-z]{1,4})\d+", name)
    return name if match is None else match[1] or match[2]


def _stuck(lines: Lines) -> Iterator[HostEvent]:
    """Tasks that wait or spin in the NVIDIA driver: functions of its modules are on their stack.

    The stack decides, as the name of a task can be chosen by any user.
    """
    heading: tuple[float, str, str] | None = None
    for seconds, message in lines:
        if match := STUCK.match(message):
            heading = seconds, message, match["task"] or match["spinning"] or ""
        elif heading is not None and seconds - heading[0] <= FRAMES_S and is_frame(message):
            yield _event("stuck", heading[2], heading[0], heading[1])
            heading = None


def _unplugged(lines: Lines) -> Iterator[HostEvent]:
    """Slots whose device went away on its own, ``past`` where one came back; not those that somebody switched off."""
    slots: dict[tuple[str, str], list[tuple[float, str, str]]] = {}
    for seconds, message in lines:
        match = _SLOT.match(message)
        port = None if match is None else match["port"] or match["old"]
        if match is not None and port is not None and is_bdf(port):
            slots.setdefault((port, match["slot"]), []).append((seconds, message, match["what"]))
    for (port, slot), said in slots.items():
        last = [number for number, (_, _, what) in enumerate(said) if what in _GONE]
        if not last:
            continue
        first = last[-1]
        while first and said[first - 1][2] in _GONE:
            first -= 1
        if first and said[first - 1][2] not in (*_GONE, *_BACK):
            continue
        back = any(what in _BACK for _, _, what in said[last[-1] :])
        yield _event("unplugged", port, *said[first][:2], group=slot, past=back)
