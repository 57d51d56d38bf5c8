"""The data volume, every software RAID array, and the disks that one lacks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, component_of, remedy_of, ruled
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.finding import FAULTY, Evidence, Judged, Judgement, Status, Subject, counted, judged, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.components.component import Component
from dgxcheck.components.locate import links_at
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import BlockDevice, MdArray
from dgxcheck.facts.kernel_log import HostEvent, KernelLog
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, rows
from dgxcheck.facts.sysfs import BLOCK
from dgxcheck.facts.typical import gathered
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.profiles.model import Number

_DOWN = ("inactive", "broken")
"""Of ``array_state``: https://docs.kernel.org/admin-guide/md.html"""
_READ_ONLY = "readonly"
"""And this one; ``read-auto`` ends at the first write."""
_REDUNDANT = ("raid1", "raid4", "raid5", "raid6", "raid10")
_CONTAINER = ("container", "-100")
"""Levels of what only holds the metadata of arrays (Intel VROC); it is always inactive."""
_NVME = LazyPattern(r"nvme\d+")


def _disks(box: Box) -> Judged:
    """Fails if a software RAID array is inactive or lacks a disk that its level cannot do without; warns if it is
    degraded or read-only, and if no volume (of a RAID controller, or an array counted with its redundancy) is as large
    as the reference machine's data volume less {host.data-tolerance}. Disks that may form a pool of their own are not
    judged.

    Source: size of /sys/class/block, array_state and degraded of each array, against the profile
    """
    disks = need(box.snapshot.disks)
    of_arrays = [(Subject(kind="disk", name=array.name, bdf=None), ruled(_array, box, array))
                 for array in box.snapshot.arrays]  # fmt: skip
    reference = expected(box, "host.data")
    if isinstance(reference, Number):
        down = [at.name for at, judgement in of_arrays if judgement.status in FAULTY]
        yield HOST, ruled(_volume, box, reference, disks, down)
    elif not of_arrays:
        yield HOST, reference
    yield from of_arrays


def _array(box: Box, array: MdArray) -> Judgement:
    if not isinstance(array.level, Missing) and array.level in _CONTAINER:
        return skip("not-supported", "holds the metadata of other arrays")
    state, degraded, members = need(array.state), array.degraded, array.members
    evidence = [Evidence(f"{BLOCK}/{array.name}/md/array_state", state)]
    if state == "clear":
        return skip("not-visible", "no array is configured under this name", *evidence)
    if isinstance(degraded, Missing) and degraded.gap is not Gap.ABSENT and state not in _DOWN:
        return unjudged(degraded)  # levels without redundancy have no such file
    missing = degraded if isinstance(degraded, int) else 0
    if isinstance(degraded, int):
        evidence.append(Evidence(f"{BLOCK}/{array.name}/md/degraded", degraded))
    disks = f" of {', '.join(listed)}" if (listed := rows(members)) else ""
    name = f"{'array' if isinstance(array.level, Missing) else array.level}{disks}"
    size = "" if isinstance(array.raid_disks, Missing) else f", configured for {counted(array.raid_disks, 'disk')}"
    if not isinstance(members, Missing):
        evidence.append(Evidence(f"{BLOCK}/{array.name}/slaves", list(members)))
    redundant = array.level in _REDUNDANT
    gone = 0 if redundant else members_gone(array)
    lost = ", ".join(lost_members(box, array))
    find = remedy_of("host.disks", "find a known disk" if lost else "find").format(lost)
    if state in _DOWN or gone:
        trouble = state if state in _DOWN else f"{state}, but lacks {counted(gone, 'disk')}"
        message, case = f"{name} is {trouble}{size}", "redundant" if redundant else "without redundancy"
        remedy = remedy_of("host.disks", case).format(find)
        return judged(Fault.ARRAY_FAILED, message, state, evidence=tuple(evidence), fails=True, remedy=remedy)
    if missing:
        message = f"{name} is degraded: {counted(missing, 'disk')} missing{size}"
        remedy = remedy_of("host.disks", "degraded").format(find, shlex.quote(f"/dev/{array.name}"))
        return Judgement(Status.WARN, message, missing, 0, "disks", tuple(evidence), fault=Fault.DISK, remedy=remedy)
    if state == _READ_ONLY:
        message = f"{name} is read-only: writes fail"
        return judged(Fault.ARRAY_READ_ONLY, message, state, evidence=tuple(evidence), warns=True)
    return Judgement(Status.PASS, f"{name} is {state}", 0, 0, "disks", tuple(evidence))


@or_gap
def _volumes(box: Box) -> dict[str, int] | Missing:
    """Size in bytes by name: each disk that is in no array, and each array, but no container, with its redundancy."""
    disks = need(box.snapshot.disks)
    sizes = {disk.name: disk.size_bytes for disk in disks if not isinstance(disk.size_bytes, Missing)}
    if not sizes:
        gaps = (disk.size_bytes for disk in disks if isinstance(disk.size_bytes, Missing))
        return next(gaps, Missing(Gap.ABSENT, BLOCK))
    in_array = set[str]()
    usable = dict(sizes)
    for array in box.snapshot.arrays:
        members = rows(array.members)
        in_array.update((array.name, *members) if array.level in _CONTAINER else members)
        # the disks of a RAID 5 hold what those of a RAID 0 do; the array is smaller by choice
        usable[array.name] = max(sizes.get(array.name, 0), sum(sizes.get(name, 0) for name in members))
    return {name: size for name, size in usable.items() if name not in in_array}


@or_gap
def data_volume(box: Box) -> float:
    """Size in TB of the largest volume that can be used; an inactive array cannot."""
    sizes = need(_volumes(box))
    inactive = {array.name for array in box.snapshot.arrays if array.state in _DOWN}
    return max((size for name, size in sizes.items() if name not in inactive), default=0) / 1e12


def possible_pool(box: Box) -> str:
    """In words, the disks that may hold the profile's data volume together, as a pool; empty where none can."""
    sizes, reference = _volumes(box), expected(box, "host.data")
    if isinstance(sizes, Missing) or isinstance(reference, Judgement):
        return ""
    return _pool(sizes, smallest_data_volume(box, reference.value) * 1e12)


def smallest_data_volume(box: Box, reference: float) -> float:
    """The smallest data volume that passes, in the unit of ``reference``."""
    return reference * (1 - box.settings.limit("host.data-tolerance") / 100)


def _volume(box: Box, reference: Number, disks: tuple[BlockDevice, ...], down: list[str]) -> Judgement:
    """Is there a volume as large as the reference's: an array, or one of a RAID controller?"""
    if not disks:
        return skip("not-visible", "no disks are visible")
    usable = need(_volumes(box))
    sizes = {disk.name: disk.size_bytes for disk in disks if not isinstance(disk.size_bytes, Missing)}
    name = max(usable, key=lambda each: usable[each], default="")
    size = usable.get(name, 0)
    least = smallest_data_volume(box, reference.value) * 1e12
    evidence = (Evidence(f"{BLOCK}/{name}/size", sizes.get(name, 0) // 512),) if name else ()
    largest = f"largest volume {name}: {size / 1e12:.2f} TB" if name else "no volume"
    message = f"{largest}, expected {reference.value:g} TB"
    if size >= least:
        return Judgement(Status.PASS, message, round(size / 1e12, 2), reference.value, "TB", evidence)
    if down:
        return skip("dependency-failed", f"{', '.join(down)} failed; {message}", *evidence)
    if pool := _pool(usable, least):
        return skip("not-visible", pool, *evidence)
    return Judgement(Status.WARN, message, round(size / 1e12, 2), reference.value, "TB", evidence, fault=Fault.DISK)


def _pool(sizes: dict[str, int], size_bytes: float) -> str:
    """Two or more disks of one size that together have ``size_bytes``: of ZFS, LVM, or single file systems."""
    by_size = gathered((size, name) for name, size in sizes.items())
    large = (names for size, names in by_size.items() if len(names) > 1 and size * len(names) >= size_bytes)
    return next((f"{', '.join(names)} have that size together; a pool of them cannot be seen" for names in large), "")


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
    remote = tuple(f"{event.part}n" for event in log.host if event.trouble == "file server")  # of NVMe over Fabrics
    events = [event for event in log.host
              if event.trouble == "array" or (event.trouble == "disk" and not f"{event.part}n".startswith(remote))]
    names = [event.part if event.trouble == "disk" else event.group for event in events]
    members = (member for array in box.snapshot.arrays for member in rows(array.members))
    disk_names = (*names, *sorted(disks or ()), *members)
    yield from zip((disk_of(name, disk_names) for name in names), events, strict=True)


def located(log: KernelLog, name: str) -> str:
    """The bus id of an NVMe disk, as the kernel logged it for its controller; empty where it did not."""
    return next((event.group for event in log.host if event.trouble == "located"
                 and (name == event.part or name.startswith(f"{event.part}n"))), "")  # fmt: skip


def failed_link(box: Box, name: str) -> Iterator[Component]:
    """The PCIe link of an NVMe disk, where the kernel logged that it failed or went down."""
    function = box.topology.functions.get(located(box.log, name))
    path = () if function is None else rows(function.path)
    failed = {error.bdf for error in box.log.pcie if error.severity != "corrected"}
    failed |= {event.part for event in box.log.host if event.trouble in ("unplugged", "untrained")}
    if not failed.isdisjoint(path[-2:]):
        yield from links_at(box, path[-1])


def disk_of(name: str, disks: Iterable[str]) -> str:
    """The disk of an NVMe controller: ``nvme1n1`` of ``nvme1``; the name as it is where there is none."""
    return next((disk for disk in disks if _NVME.fullmatch(name) and disk.startswith(f"{name}n")), name)


def own_disks(box: Box) -> set[str] | None:
    """The host's disks without removable ones (virtual media of a BMC, card readers); None where they are not known."""
    disks = box.snapshot.disks
    return None if isinstance(disks, Missing) else {row.name for row in disks if row.removable is not True}


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The array, and the failed links of NVMe disks that left it; of the host its disks."""
    yield component_of(box, at, "disks" if at.kind == "host" else "")
    for array in box.snapshot.arrays:
        for disk in lost_members(box, array) if array.name == at.name else ():
            yield from failed_link(box, disk)


CHECKS = (Check("host.disks", _disks, _blames),)
