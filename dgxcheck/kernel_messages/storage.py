"""Messages about disks, arrays, file systems and file servers.

Linux block/blk-core.c, fs/buffer.c, drivers/nvme/host, drivers/scsi/sd.c and megaraid, drivers/md, fs/ext4, fs/jbd2,
fs/xfs, fs/btrfs, drivers/ata/libata-eh.c, Lustre ptlrpc/import.c, net/sunrpc/clnt.c; OpenZFS module/zfs/zio.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.bdf import PATTERN
from dgxcheck.facts.kernel_log import HostEvent
from dgxcheck.facts.record import replace
from dgxcheck.kernel_messages.form import Form, Lines, first_match, host_event
from dgxcheck.lazy_pattern import LazyPattern

_NAME = r"(?P<disk>[a-z][\w!-]{0,31})"
_BLOCK = r"(?:blk_update_request: |print_req_error: |end_request: )?"
_BEYOND_END = Form(": rw=", r"\d{1,9}, (?:want|sector)=\d{1,20}, (?:limit=|nr_sectors = )\d", before=_NAME)
SEVERAL_LINES = {Form(": attempt to access beyond end of device", before=".{1,16}", forgeable=True): _BEYOND_END}
"""How a message of several lines begins, and those that go on with it. Its own words are those of a task."""
_DISK = (
    Form(" error, dev ", rf"{_NAME}, sector \d", before=rf"{_BLOCK}(?:critical medium|critical target|I/O|protection)"),
    Form("Buffer I/O error on dev", rf"(?:ice)? {_NAME}, logical block \d"),
    Form(
        "nvme nvme", r"(?P<disk>\d{1,4}): (?:controller is down; will reset"
        r"|I/O (?:\d{1,6} (?:\([^)]{1,40}\) )?|tag \d{1,6} \([0-9a-f]{1,8}\) .{0,60})"
        r"QID \d{1,5} timeout(?!, completion polled)|Removing after probe failure"
        r"|Device not ready; aborting|Disabling device after reset failure)",
    ),
    Form(": no available path - failing I/O", before=rf"block {_NAME}"),
    Form(
        ": exception Emask 0x",
        r"[0-9a-f]{1,4} SAct 0x[0-9a-f]{1,8} SErr 0x[0-9a-f]{1,8} action 0x[0-9a-f]{1,4} frozen",
        before=r"(?P<disk>ata\d{1,3})(?:\.\d\d)?",
    ),
    _BEYOND_END,
    Form(": reset failed, giving up", "$", before=r"(?P<disk>ata\d{1,3})"),
    Form(
        "Sense Key : ", "(?:Medium|Hardware) Error",
        before=r"sd \d{1,4}(?::\d{1,6}){3}: \[(?P<disk>sd[a-z]{1,4})\] .{0,40}",
    ),
)  # fmt: skip
_FILE_SYSTEM = (
    Form("EXT4-fs error (device ", rf"{_NAME}\): "),
    Form(
        "EXT4-fs (", rf"{_NAME}\): (?:Remounting filesystem read-only|failed to convert unwritten extents"
        r"|error count since last fsck: |warning: mounting fs with errors, "
        r"|[Dd]elayed block allocation failed for inode \d{1,20} at .{1,80} with error -?(?!122\b)\d)",
    ),
    Form("Aborting journal on device ", r"(?P<disk>[a-z][\w!]{0,31}(?:-\d{1,4})?)-\d{1,10}\."),
    Form(
        "XFS (", rf"{_NAME}\): (?:Metadata corruption detected|Corruption detected|Corruption of (?:in-memory data"
        r"|on-disk metadata)|Internal error|(?:[mM]etadata |[lL]og )?I/O [eE]rror|Block device removal"
        r"|Filesystem has been shut down|xfs_do_force_shutdown\()",
    ),
    Form("BTRFS", rf"(?:: | )(?:error|critical) \(device {_NAME}(?: state \w{{1,8}})?\)"),
    Form("): forced readonly", before=rf"BTRFS(?:: | )info \(device {_NAME}(?: state \w{{1,8}})?"),
)  # fmt: skip
_UNWRITABLE = LazyPattern(
    r"Remounting filesystem read-only|[Ff]ilesystem has been shut down|[Ss]hutting down filesystem|forced readonly"
    r"|xfs_do_force_shutdown\("
)
"""What XFS says of a shutdown: since 5.15 the second, before it the third
(https://github.com/torvalds/linux/commit/b36d4651e165)."""
_FULL = LazyPattern(r"with error -?28\b")
"""ENOSPC."""
_FOUND = Form(": pci function ", rf"(?P<bdf>{PATTERN})$", before=r"nvme (?P<disk>nvme\d{1,4})")
"""Where a controller is, as nvme_probe logs it (drivers/nvme/host/pci.c)."""
_ARRAY = Form("md/raid", rf"[\w-]{{0,8}}:(?P<array>md\w{{1,31}}): Disk failure on {_NAME}(?:,| detected)")
_ENDED = Form("md/raid", r"[\w-]{0,8}:(?P<array>md\w{1,31}): Cannot continue operation \(\d{1,4}/\d{1,4} failed\)")
_STALE = Form("md: kicking non-fresh ", rf"{_NAME} from array!")
_STARTS = Form("md/raid", r"[\w-]{0,8}:(?P<array>md\w{1,31}): (?:raid level \d{1,2} )?active with \d")
_POOL = Form(
    "WARNING: Pool '",
    r"(?P<pool>[\w .:-]{1,255})' has encountered an uncorrectable I/O failure and has been suspended",
)
_CONTROLLER = Form(
    "megaraid_sas ",
    rf"(?P<bdf>{PATTERN}): (?:\d{{1,12}} \([^)]{{1,40}}/0x[0-9a-f]{{4}}/(?:CRIT|FATAL|DEAD)\) - |Found )"
    r"(?P<what>.{1,200})",
)
"""Alarms of the controller's firmware, of which drivers/scsi/megaraid prints no lower class, and that it failed."""
_LUSTRE = r"Lustre: (?:[\d:]{1,20}\(\w{1,30}\.c:\d{1,5}:\w{1,60}\(\)\) )?[\w.-]{1,120}: "
_OF_A_FABRIC = r"nvme (?P<server>nvme\d{1,4})"
"""A controller of NVMe over Fabrics: drivers/nvme/host, rdma.c, tcp.c and fc.c."""
_SERVER_SILENT = (
    Form("nfs: server ", r"(?P<server>\S{1,255}) not responding, (?:still trying|timed out)"),
    Form(
        "Connection to ", r"\S{1,120} \(at (?P<server>[\w.:@-]{1,80})\) was lost; in progress operations",
        before=_LUSTRE,
    ),
    Form(": Reconnecting in ", r"\d{1,6} seconds\.\.\.", before=_OF_A_FABRIC),
)  # fmt: skip
_SERVER_ANSWERS = (
    Form(": Successfully reconnected (", before=_OF_A_FABRIC),
    Form("nfs: server ", r"(?P<server>\S{1,255}) OK"),
    Form("Connection restored to ", r"\S{1,120} \(at (?P<server>[\w.:@-]{1,80})\)", before=_LUSTRE),
)


def events(lines: Lines) -> Iterator[HostEvent]:
    """All of these, by kind."""
    yield from _single(lines)
    yield from _stale(lines)
    yield from _silent_servers(lines)


def _single(lines: Lines) -> Iterator[HostEvent]:
    dropped: dict[str, str] = {}
    for seconds, message in lines:
        if match := _ARRAY.match(message):
            dropped[match["array"]] = whole_disk(match["disk"])
            yield host_event("array", match["array"], seconds, message, dropped[match["array"]])
        elif match := _ENDED.match(message):
            array = match["array"]
            yield host_event("array", array, seconds, message, dropped.get(array, array))
        elif match := first_match(_DISK, message):
            disk = f"nvme{match['disk']}" if match["disk"].isdigit() else match["disk"]
            yield host_event("disk", whole_disk(disk), seconds, message)
        elif match := first_match(_FILE_SYSTEM, message):
            state = "read-only" if _UNWRITABLE.search(message) else "full" if _FULL.search(message) else ""
            yield host_event("file system", whole_disk(match["disk"]), seconds, message, state)
        elif match := _FOUND.match(message):
            yield host_event("located", match["disk"], seconds, message, match["bdf"])
        elif match := _POOL.match(message):
            yield host_event("file system", match["pool"], seconds, message, "suspended")
        elif match := _CONTROLLER.match(message):
            yield host_event("controller", match["bdf"], seconds, message, match["what"].strip())


def _stale(lines: Lines) -> Iterator[HostEvent]:
    """Disks whose data are older than those of their array, which starts next (md.c, analyze_sbs)."""
    left: list[HostEvent] = []
    for seconds, message in lines:
        if match := _STALE.match(message):
            left.append(host_event("array", "", seconds, message, whole_disk(match["disk"])))
        elif left and (match := _STARTS.match(message)):
            yield from (replace(event, part=match["array"]) for event in left)
            left = []
    yield from left


def _silent_servers(lines: Lines) -> Iterator[HostEvent]:
    """Each server's last silence, ``past`` where it responded again."""
    silent: dict[str, HostEvent] = {}
    for seconds, message in lines:
        if match := first_match(_SERVER_SILENT, message):
            silent[match["server"]] = host_event("file server", match["server"], seconds, message)
        elif (match := first_match(_SERVER_ANSWERS, message)) and match["server"] in silent:
            silent[match["server"]] = replace(silent[match["server"]], past=True)
    yield from silent.values()


def whole_disk(name: str) -> str:
    """The disk of a partition: ``sda`` of ``sda1``, ``nvme0n1`` of ``nvme0n1p2``, ``md0`` of ``md0p1``."""
    match = re.fullmatch(r"(nvme\d+n\d+|mmcblk\d+|md\d+)p\d+|((?:[shv]|xv)d[a-z]{1,4})\d+", name)
    return name if match is None else match[1] or match[2]
