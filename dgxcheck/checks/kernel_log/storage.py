"""Disks with I/O errors, file systems with damage, file servers that do not respond, by the kernel log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, component_of, itself, remedy_of
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, first_of, judged
from dgxcheck.checks.host.disks import by_disk, failed_link, lost_members, own_disks
from dgxcheck.checks.kernel_log.device_log import (
    events_of,
    grouped,
    happened,
    lines,
    nothing_logged,
    reach,
    subject_at,
    warning,
)
from dgxcheck.checks.kernel_log.pcie import blame_pcie
from dgxcheck.checks.network.ports import UP, listed_ports, port_subject, waits_for
from dgxcheck.components.component import INFINIBAND_FABRIC, SUBNET_MANAGER, Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import HostEvent, KernelLog, is_near
from dgxcheck.facts.missing import need, rows, text_of
from dgxcheck.facts.record import replace
from dgxcheck.lazy_pattern import LazyPattern

_MAPPED = ("dm-", "md")
"""Volumes and arrays, which are no disks by themselves."""
_SCSI = LazyPattern("sd[a-z]+", "sd")
"""Disks of SATA ports among others."""
_GONE = LazyPattern(r"nvme.*(?:controller is down|timeout|after probe failure|after reset failure)")
"""An NVMe controller or the link to it was lost; a medium error is the disk's own."""
_GIVEN_UP = LazyPattern(r"after (?:probe|reset) failure|reset failed, giving up")
_ONES = "CSTS=0xffffffff"
"""What is read of a device that is not there any more (drivers/nvme/host/pci.c, nvme_warn_reset)."""
_STALE, _ENDED = "kicking non-fresh", "Cannot continue operation"
_RECOVERY_S = 60.0
"""A port is reset several times before its disk is given up: libata's error handler."""


def _disks(box: Box) -> Judged:
    """Warns if the kernel logged I/O errors of a disk or SATA port, a controller of NVMe disks that failed, a disk that
    an array dropped or found stale, or an alarm of a RAID controller (megaraid_sas); fails if that array has no
    redundancy, or none that is left. Removable disks are not judged.

    Source: Linux block layer, drivers/nvme, drivers/md, drivers/scsi/megaraid
    """
    log, disks = need(box.snapshot.kernel_log), own_disks(box)
    found = grouped(
        (name, event) for name, event in by_disk(box, log) if _is_own(name, disks) or event.trouble == "array"
    )
    for name, events in found.items():
        yield Subject(kind="disk", name=name, bdf=None), _disk(box, log, events)
    alarms = grouped((event.part, event) for event in events_of(log, "controller"))
    for bdf, own in alarms.items():
        named = first_of([*dict.fromkeys(event.group for event in own)])
        message = f"alarms of this RAID controller: {named}{reach(log)}"
        judgement = judged(Fault.RAID_ALARM, message, len(own), 0, "alarms", lines(log, own), warns=True)
        yield Subject(kind="disk", name=bdf, bdf=None), judgement
    if not found and not alarms:
        yield HOST, Judgement(Status.PASS, f"no I/O errors of disks logged{reach(log)}")


def _is_own(name: str, disks: set[str] | None) -> bool:
    """Is it a disk, volume or array of the host, a disk's SATA port, or an NVMe disk that is gone, as far as its disks
    are known?
    """
    return disks is None or name in disks or name.startswith(("nvme", "ata", *_MAPPED))


def _disk(box: Box, log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    """An array without redundancy fails with the first disk that it drops, another one where it says so."""
    arrays = [event for event in events if event.trouble == "array"]
    dropped_by = dict.fromkeys(event.part for event in arrays if event.part not in ("", event.group))
    failed = [row.name for row in box.snapshot.arrays if row.name in dropped_by and row.level in ("raid0", "linear")]
    failed += [event.part for event in events if _ENDED in event.line]
    stale = all(_STALE in event.line for event in events)
    ended = any(event.part == event.group for event in arrays)
    message = "this array cannot continue operation" if ended else f"{counted(len(events), 'I/O error')} logged"
    message = "its data are older than its array's" if stale else message
    if dropped_by:
        message = f"{message}; {', '.join(dropped_by)} dropped it{' and failed' if failed else ''}"
    status, fault = (Status.FAIL, Fault.ARRAY_FAILED) if failed else (Status.WARN, Fault.DISK_ERRORS)
    facts = (len(events), 0, "errors", lines(log, events))
    gone = any(_GONE.search(event.line) for event in events) and all("medium" not in event.line for event in events)
    on_pcie = happened(events, "nvme") if gone else ()
    silent = gone and any(_ONES in event.line for event in events)
    given_up = any(_GIVEN_UP.search(event.line) for event in events)
    message += ", and its controller no longer answered on PCIe" if silent else ""
    message += ", and the kernel gave it up" if given_up else ""
    case = "silent" if silent or (gone and given_up) else "stale" if stale else ""
    remedy = remedy_of("kernel.disk", case) if case else ""
    return Judgement(status, f"{message}{reach(log)}", *facts, fault=fault, events=on_pcie, remedy=remedy)


def blame_disk(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The array that the disk is or was in, else the disk; the link of an NVMe controller that stopped or timed out and
    what did not answer the IOMMU at that time, for then none of the devices behind it reads or writes; the volumes of
    the only RAID controller that logs an alarm at that time, and an interrupt that the kernel switched off then."""
    if judgement.fault is Fault.RAID_ALARM:
        yield host_part(f"RAID controller {at.name}")
        return
    arrays, disk = box.snapshot.arrays, _behind(box, at.name)
    dropped = [event.part for event in events_of(box.log, "array") if event.group == disk and event.part]
    of = [row.name for row in arrays if _has(rows(row.members), disk)]
    lacking = [row.name for row in arrays if disk in lost_members(box, row)]
    for name in dict.fromkeys((*of, *dropped, *lacking, disk)):
        yield Component(kind="disk", name=name)
    yield from itself(box, at, judgement)
    yield from failed_link(box, at.name)
    if at.name.startswith(("sd", "ata")):
        times = [event.seconds for name, event in by_disk(box, box.log) if name == at.name]
        beside = [event for event in events_of(box.log, "controller", "interrupt off")
                  if is_near(event.seconds, times, _RECOVERY_S)]  # fmt: skip
        only_one = len({event.part for event in events_of(box.log, "controller")}) == 1
        for event in beside:
            if event.trouble == "interrupt off":
                yield host_part(Fault.INTERRUPT_OFF.about[1], event.part)
            elif only_one:
                yield host_part(f"RAID controller {event.part}")
    moments = [each.seconds for each in judgement.events]
    for fault in box.log.iommu:
        if fault.what == "unanswered" and is_near(fault.seconds, moments, _RECOVERY_S):
            yield from blame_pcie(box, subject_at(box, fault.bdf) if fault.bdf else HOST, judgement)


def _behind(box: Box, name: str) -> str:
    """Of a SATA port the one disk whose errors were logged within a minute of its own; of a disk itself."""
    found = grouped(by_disk(box, box.log))
    times = [event.seconds for event in found.get(name, ())]
    beside = [
        disk for disk, events in found.items() if _SCSI.fullmatch(disk)
        and any(is_near(event.seconds, times, _RECOVERY_S) for event in events)
    ]  # fmt: skip
    return beside[0] if name.startswith("ata") and len(beside) == 1 else name


def _has(members: Sequence[str], disk: str) -> bool:
    """Is one of an array's members the disk, or a partition of it?"""
    partition = f"{disk}p" if disk[-1:].isdigit() else disk
    return any(
        member == disk or (member.startswith(partition) and member[len(partition) :].isdigit()) for member in members
    )


def _file_systems(box: Box) -> Judged:
    """Warns if the kernel logged errors of a file system on a disk, volume or array of the host (ext4, XFS, Btrfs), and
    fails if it became read-only or was shut down, or if a pool of ZFS was suspended; warns if an NFS or Lustre server,
    or one of NVMe over Fabrics, does not respond and did not since. Removable disks are not judged.

    Source: Linux fs/ext4, fs/jbd2, fs/xfs, fs/btrfs, net/sunrpc/clnt.c, drivers/nvme/host/tcp.c; OpenZFS
    module/zfs/zio.c
    """
    log, disks = need(box.snapshot.kernel_log), own_disks(box)
    root = _root_disk(box)
    damaged = [
        event for event in events_of(log, "file system")
        if _is_own(event.part, disks) or event.part == root or event.group == _SUSPENDED
    ]  # fmt: skip
    for name, events in grouped((event.part, event) for event in damaged).items():
        yield Subject(kind="disk", name=name, bdf=None), _file_system(log, events)
    if servers := events_of(log, "file server"):
        yield HOST, _servers(log, servers)
    elif not damaged:
        yield HOST, nothing_logged(log, "no errors of file systems logged")


def _root_disk(box: Box) -> str | None:
    """The disk of which the kernel command line says that the root is on it: ``root=/dev/sda2``."""
    words = text_of(box.snapshot.known_host.cmdline).split()
    root = next((word.partition("=/dev/")[2] for word in words if word.startswith("root=/dev/")), "")
    return root.rstrip("0123456789") or None


def _file_system(log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    """Nothing can be written any more where it became read-only; one that is full needs room, not a repair."""
    if suspended := [event for event in events if event.group == _SUSPENDED]:
        message = f"ZFS suspended this pool: whatever reads or writes it hangs{reach(log)}"
        remedy = remedy_of("kernel.file-system", "suspended")
        figures = (len(suspended), 0, "errors", lines(log, suspended))
        return judged(Fault.FILE_SYSTEM_READ_ONLY, message, *figures, fails=True, remedy=remedy)
    unwritable = any(event.group == "read-only" for event in events)
    full = all(event.group == "full" for event in events)
    what = ", one became read-only" if unwritable else ", one has no space left" if full else ""
    message = f"{counted(len(events), 'error')} of its file systems logged{what}{reach(log)}"
    fault = Fault.FILE_SYSTEM_READ_ONLY if unwritable else Fault.FILE_SYSTEM
    remedy = remedy_of("kernel.file-system", "full") if full else ""
    figures = (len(events), 0, "errors", lines(log, events))
    return judged(fault, message, *figures, warns=True, fails=unwritable, remedy=remedy)


_SUSPENDED = "suspended"


def _servers(log: KernelLog, servers: Sequence[HostEvent]) -> Judgement:
    """Those that responded again pass: a server that restarts is silent for a while."""
    silent = [event for event in servers if not event.past]
    if not silent:
        return Judgement(Status.PASS, f"file servers did not respond for a while, and do again{reach(log)}")
    message = f"{counted(len(silent), 'file server')} stopped responding{reach(log)}"
    return warning(Fault.FILE_SERVER, message, log, silent, remedy_of("kernel.file-system", "file server"))


def _blame_file_system(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    yield from blame_servers(box) if judgement.fault is Fault.FILE_SERVER else blame_disk(box, at, judgement)


def blame_servers(box: Box) -> Iterator[Component]:
    """File servers, a full table of this host's network, a port or interface of it that is not up, or the fabric that
    several of those share."""
    yield host_part("file server")
    yield from (host_part(event.part) for event in events_of(box.log, "limit reached") if event.part != "open files")
    for at in [port_subject(device, port) for device, port in listed_ports(box) if port.state not in UP]:
        yield from (component_of(box, at), component_of(box, replace(at, kind="hca", name=at.bdf or "")))
        yield from (waits_for(at), SUBNET_MANAGER, INFINIBAND_FABRIC)
    for each in rows(box.snapshot.network):
        if each.carrier is False and isinstance(each.bdf, str):
            yield Component(kind="interface", name=each.name, bdf=each.bdf)


CHECKS = (
    Check("kernel.disk", _disks, blame_disk),
    Check("kernel.file-system", _file_systems, _blame_file_system),
)  # fmt: skip
