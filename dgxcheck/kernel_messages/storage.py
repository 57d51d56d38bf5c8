"""Messages about disks, arrays, file systems and file servers.

Linux block/blk-core.c, fs/buffer.c, drivers/nvme/host, drivers/scsi/sd.c and megaraid, drivers/md, fs/ext4, fs/jbd2,
fs/xfs, fs/btrfs, drivers/ata/libata-eh.c, Lustre ptlrpc/import.c, net/sunrpc/clnt.c; OpenZFS module/zfs/zio.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.kernel_log import HostEvent
from dgxcheck.facts.record import replace
from dgxcheck.kernel_messages.form import Forms, Lines, host_event
from dgxcheck.lazy_pattern import LazyPattern

FORMS = Forms("storage")
_UNWRITABLE = LazyPattern(
    r"Remounting filesystem read-only|[Ff]ilesystem has been shut down|[Ss]hutting down filesystem|forced readonly"
    r"|xfs_do_force_shutdown\("
)
"""What XFS says of a shutdown: since 5.15 the second, before it the third
(https://github.com/torvalds/linux/commit/b36d4651e165)."""
_FULL = LazyPattern(r"with error -?28\b")
"""ENOSPC."""


def events(lines: Lines) -> Iterator[HostEvent]:
    """All of these, by kind."""
    yield from _single(lines)
    yield from _stale(lines)
    yield from _silent_servers(lines)


def _single(lines: Lines) -> Iterator[HostEvent]:
    dropped: dict[str, str] = {}
    for seconds, message in lines:
        if (event := FORMS.event(seconds, message)) is None:
            continue
        if event.trouble == "array":
            disk = dropped[event.part] = whole_disk(event.group) or dropped.get(event.part, event.part)
            event = replace(event, group=disk)
        elif event.trouble == "disk":
            event = replace(event, part=whole_disk(f"nvme{event.part}" if event.part.isdigit() else event.part))
        elif event.trouble == "controller":
            event = replace(event, group=event.group.strip())
        elif event.trouble == "file system":
            state = "read-only" if _UNWRITABLE.search(message) else "full" if _FULL.search(message) else event.group
            event = replace(event, part=event.part if event.group else whole_disk(event.part), group=state)
        yield event


def _stale(lines: Lines) -> Iterator[HostEvent]:
    """Disks whose data are older than those of their array, which starts next (md.c, analyze_sbs)."""
    left: list[HostEvent] = []
    for seconds, message in lines:
        if match := FORMS.match("stale", message):
            left.append(host_event("array", "", seconds, message, whole_disk(match["disk"])))
        elif left and (match := FORMS.match("starts", message)):
            yield from (replace(event, part=match["array"]) for event in left)
            left = []
    yield from left


def _silent_servers(lines: Lines) -> Iterator[HostEvent]:
    """Each server's last silence, ``past`` where it responded again."""
    silent: dict[str, HostEvent] = {}
    for seconds, message in lines:
        if match := FORMS.match("server silent", message):
            silent[match["server"]] = host_event("file server", match["server"], seconds, message)
        elif (match := FORMS.match("server answers", message)) and match["server"] in silent:
            silent[match["server"]] = replace(silent[match["server"]], past=True)
    yield from silent.values()


def whole_disk(name: str) -> str:
    """The disk of a partition: ``sda`` of ``sda1``, ``nvme0n1`` of ``nvme0n1p2``, ``md0`` of ``md0p1``."""
    match = re.fullmatch(r"(nvme\d+n\d+|mmcblk\d+|md\d+)p\d+|((?:[shv]|xv)d[a-z]{1,4})\d+", name)
    return name if match is None else match[1] or match[2]
