"""Tasks stuck in the NVIDIA driver, disks with I/O errors and slots that lost their device, by the kernel log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dgxcheck.checks.engine.blame import driver, itself
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Judgement, Status, Subject
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.wording import counted, first_of
from dgxcheck.checks.kernel_log.device_log import Judged, happened, lines, reach
from dgxcheck.checks.placement.missing_device import missing
from dgxcheck.components.component import Component
from dgxcheck.components.locate import is_below, links_at
from dgxcheck.facts.bdf import gpu_at
from dgxcheck.facts.host import BlockDevice, MdArray
from dgxcheck.facts.kernel_log import HostEvent, HostTrouble, KernelLog
from dgxcheck.facts.missing import Missing

WINDOW_S = 10.0
"""Within this time of each other a GPU falls off the bus and its slot reports that its link is down."""
_NVME = re.compile(r"nvme\d+")
_MAPPED = ("dm-", "md")
"""Volumes and arrays, which are no disks by themselves."""


def _stuck(box: Box) -> Judged:
    log = box.snapshot.kernel_log
    if isinstance(log, Missing):
        yield HOST, unjudged(log)
        return
    events = _of(log, "stuck")
    if not events:
        yield HOST, Judgement(Status.PASS, f"no task hung in the NVIDIA driver{reach(log)}")
        return
    names = first_of([*dict.fromkeys(event.part for event in events if event.part)])
    message = f"tasks hung in the NVIDIA driver {counted(len(events), 'time')}: {names}{reach(log)}"
    yield HOST, Judgement(Status.WARN, message, len(events), 0, evidence=lines(log, events), fault=Fault.DRIVER_STUCK)


def _of(log: KernelLog, *troubles: HostTrouble) -> list[HostEvent]:
    return [event for event in log.host if event.trouble in troubles]


def _disks(box: Box) -> Judged:
    log = box.snapshot.kernel_log
    if isinstance(log, Missing):
        yield HOST, unjudged(log)
        return
    disks = _own_disks(box)
    events = _of(log, "disk", "array")
    names = [event.part if event.trouble == "disk" else event.group for event in events]
    found: dict[str, list[HostEvent]] = {}
    known = (*names, *sorted(disks or ()))
    for event, name in zip(events, (_of_controller(name, known) for name in names), strict=True):
        if disks is None or _is_own(name, disks) or event.trouble == "array":
            found.setdefault(name, []).append(event)
    for name, events in sorted(found.items()):
        yield Subject(kind="disk", name=name, bdf=None), _disk(box, log, events)
    if not found:
        yield HOST, Judgement(Status.PASS, f"no I/O errors of disks logged{reach(log)}")


def _own_disks(box: Box) -> set[str] | None:
    """The host's disks without removable ones (virtual media of a BMC, card readers); None where they are not known."""
    storage = box.snapshot.storage
    rows: Missing | tuple[BlockDevice, ...] = storage if isinstance(storage, Missing) else storage.disks
    return None if isinstance(rows, Missing) else {row.name for row in rows if row.removable is not True}


def _of_controller(name: str, disks: Iterable[str]) -> str:
    """The disk of an NVMe controller: ``nvme1n1`` of ``nvme1``; the name as it is where there is none."""
    return next((disk for disk in disks if _NVME.fullmatch(name) and disk.startswith(f"{name}n")), name)


def _is_own(name: str, disks: set[str]) -> bool:
    """Is it a disk of the host, or an NVMe disk that is gone?"""
    return name in disks or name.startswith("nvme")


def _disk(box: Box, log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    """An array without redundancy fails with the first disk that it drops."""
    dropped_by = dict.fromkeys(event.part for event in events if event.trouble == "array")
    failed = [row.name for row in _arrays(box) if row.name in dropped_by and row.level in ("raid0", "linear")]
    message = f"{counted(len(events), 'I/O error')} logged"
    if dropped_by:
        message = f"{message}; {', '.join(dropped_by)} dropped it{' and failed' if failed else ''}"
    status, fault = (Status.FAIL, Fault.ARRAY_FAILED) if failed else (Status.WARN, Fault.DISK_ERRORS)
    return Judgement(status, f"{message}{reach(log)}", len(events), 0, "errors", lines(log, events), fault=fault)


def _arrays(box: Box) -> tuple[MdArray, ...]:
    storage = box.snapshot.storage
    arrays: Missing | tuple[MdArray, ...] = storage if isinstance(storage, Missing) else storage.arrays
    return () if isinstance(arrays, Missing) else arrays


def _blame_disk(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The array that the disk is or was in, else the disk."""
    log, rows = box.snapshot.kernel_log, _arrays(box)
    events = () if isinstance(log, Missing) else log.host
    dropped = [event.part for event in events if event.trouble == "array" and event.group == at.name]
    of = [row.name for row in rows if not isinstance(row.members, Missing) and _has(row.members, at.name)]
    for name in dict.fromkeys((*of, *dropped)):
        yield Component(kind="disk", name=name)
    yield from itself(box, at, judgement)


def _has(members: Sequence[str], disk: str) -> bool:
    """Is one of an array's members the disk, or a partition of it?"""
    partition = f"{disk}p" if disk[-1:].isdigit() else disk
    return any(
        member == disk or (member.startswith(partition) and member[len(partition) :].isdigit()) for member in members
    )


def _slots(box: Box) -> Judged:
    log = box.snapshot.kernel_log
    if isinstance(log, Missing):
        yield HOST, unjudged(log)
        return
    gone = {event.part: event for event in _of(log, "unplugged") if not event.past}
    for port, event in sorted(gone.items()):
        message = f"slot {event.group} below this port lost its device while the system was running{reach(log)}"
        yield (
            Subject(kind="pci", name=port, bdf=port),
            Judgement(
                Status.WARN,
                message,
                evidence=lines(log, [event]),
                fault=Fault.UNPLUGGED,
                events=happened([event], "pcie"),
            ),
        )
    if not gone:
        yield HOST, Judgement(Status.PASS, f"no slot lost its device{reach(log)}")


def _blame_slot(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The link below the port; where nothing is below it any more, the GPU that fell off the bus at that time, or the
    place of a GPU or HCA that is missing."""
    yield from tuple(links_at(box, at.bdf or "")) or itself(box, at, judgement)
    if any(is_below(device, at.bdf or "") for device in box.topology.devices):
        return
    log = box.snapshot.kernel_log
    for gpu in () if isinstance(log, Missing) else log.off_bus:
        if any(abs(gpu.seconds - event.seconds) <= WINDOW_S for event in judgement.events):
            known = box.topology.device(gpu.bdf)
            yield Component(kind="gpu", name=gpu_at(gpu.bdf) if known is None else known.name, bdf=gpu.bdf)
    for place in (missing(box, "GPU"), missing(box, "HCA")):
        if place.bdf is not None:
            yield place


def _file_systems(box: Box) -> Judged:
    log, disks = box.snapshot.kernel_log, _own_disks(box)
    if isinstance(log, Missing):
        yield HOST, unjudged(log)
        return
    found: dict[str, list[HostEvent]] = {}
    for event in _of(log, "file system"):
        if disks is None or event.part in disks or event.part.startswith(_MAPPED):
            found.setdefault(event.part, []).append(event)
    for name, events in sorted(found.items()):
        message = f"{counted(len(events), 'error')} of its file systems logged{reach(log)}"
        yield (
            Subject(kind="disk", name=name, bdf=None),
            Judgement(Status.WARN, message, len(events), 0, "errors", lines(log, events), fault=Fault.FILE_SYSTEM),
        )
    if not found:
        yield HOST, Judgement(Status.PASS, f"no errors of file systems logged{reach(log)}")


CHECKS = (
    Check(
        id="kernel.driver-stuck",
        rule="Warns if a task was blocked for minutes, or a CPU locked up, in a function of the NVIDIA driver. Tasks"
        " that hang elsewhere are not judged.",
        source="Linux kernel/hung_task.c and kernel/watchdog.c; the stack names the driver's module",
        remedy="run nvidia-bug-report.sh --safe-mode --extra-system-data; look for an Xid at that time; if nvidia-smi"
        " hangs, drain the node and reboot",
        judge=_stuck,
        blames=driver,
        witness="log",
    ),
    Check(
        id="kernel.disk",
        rule="Warns if the kernel logged I/O errors of a disk, a controller of NVMe disks that failed, or a disk that"
        " an array dropped; fails if that array has no redundancy. Removable disks are not judged.",
        source="Linux block layer, drivers/nvme, drivers/md",
        remedy="read its state (smartctl -a, nvme smart-log), check cable and backplane; replace it if errors continue",
        judge=_disks,
        blames=_blame_disk,
        witness="log",
    ),
    Check(
        id="kernel.file-system",
        rule="Warns if the kernel logged errors of a file system on a disk, volume or array of the host (ext4, XFS,"
        " Btrfs), as when it becomes read-only. Removable disks are not judged.",
        source="Linux fs/ext4, fs/jbd2, fs/xfs, fs/btrfs",
        remedy="look for I/O errors of the disk before it (smartctl -a, nvme smart-log); at the next drain unmount the"
        " file system and check it (e2fsck -f, xfs_repair, btrfs check), from a rescue system if it is the root",
        judge=_file_systems,
        blames=_blame_disk,
        witness="log",
    ),
    Check(
        id="kernel.hot-plug",
        rule="Warns if a PCIe slot lost its device while the system was running, and it did not come back. A slot that"
        " somebody switched off by its button is not judged.",
        source="Linux drivers/pci/hotplug/pciehp_ctrl.c",
        remedy="find out whether somebody pulled the device; if not, look for PCIe errors before it and check power,"
        " cables and riser",
        judge=_slots,
        blames=_blame_slot,
        witness="log",
    ),
)
