"""The disks of the host, and those that an array lacks, by what the kernel logged of disks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.host import BlockDevice, MdArray
from dgxcheck.facts.kernel_log import HostEvent, KernelLog
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.lazy_pattern import LazyPattern

_NVME = LazyPattern(r"nvme\d+", "nvme")


def lost_members(box: Box, array: MdArray) -> list[str]:
    """Disks that an array lacks, by the kernel log: it dropped them, or they had errors and are gone from the host."""
    disks, events = own_disks(box), [*by_disk(box, box.log)]
    dropped = [name for name, event in events if event.trouble == "array" and event.part == array.name]
    gone = {name: None for name, _ in events if disks is not None and name not in disks and name.startswith("nvme")}
    absent = [member for member in rows(array.members) if member in gone]
    lacks = (members_gone(array) if isinstance(array.degraded, Missing) else array.degraded) or len(absent)
    return [*dict.fromkeys(dropped or (gone if len(gone) == lacks else ()))]


def members_gone(array: MdArray) -> int:
    """Disks that the array is configured for and does not have; not every kernel sets ``array_state`` to broken."""
    if isinstance(array.raid_disks, Missing) or isinstance(array.members, Missing):
        return 0
    return max(0, array.raid_disks - len(array.members))


def by_disk(box: Box, log: KernelLog) -> Iterator[tuple[str, HostEvent]]:
    """What the kernel logged of disks and of arrays that dropped one, with the name of the disk."""
    disks = own_disks(box)
    events = [event for event in log.host if event.trouble in ("disk", "array")]
    names = [event.part if event.trouble == "disk" else event.group for event in events]
    members = (member for array in arrays_of(box) for member in rows(array.members))
    disk_names = (*names, *sorted(disks or ()), *members)
    yield from zip((_of_controller(name, disk_names) for name in names), events, strict=True)


def _of_controller(name: str, disks: Iterable[str]) -> str:
    """The disk of an NVMe controller: ``nvme1n1`` of ``nvme1``; the name as it is where there is none."""
    return next((disk for disk in disks if _NVME.fullmatch(name) and disk.startswith(f"{name}n")), name)


def own_disks(box: Box) -> set[str] | None:
    """The host's disks without removable ones (virtual media of a BMC, card readers); None where they are not known."""
    storage = box.snapshot.storage
    disks: Missing | tuple[BlockDevice, ...] = storage if isinstance(storage, Missing) else storage.disks
    return None if isinstance(disks, Missing) else {row.name for row in disks if row.removable is not True}


def arrays_of(box: Box) -> tuple[MdArray, ...]:
    """The host's arrays (md); none where they are not known."""
    storage = box.snapshot.storage
    return () if isinstance(storage, Missing) else rows(storage.arrays)
