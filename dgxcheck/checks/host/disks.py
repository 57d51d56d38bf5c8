"""The data volume and its disks, and every software RAID array."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.host import BlockDevice, MdArray
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.profiles.model import Number

Judged = Iterator[tuple[Subject, Judgement]]
_BLOCK = "/sys/class/block"
_DOWN = ("inactive", "broken")
"""Of ``array_state``: https://docs.kernel.org/admin-guide/md.html"""
_CONTAINER = ("container", "-100")
"""Levels of what only holds the metadata of arrays (Intel VROC); it is always inactive."""


def _disks(box: Box) -> Judged:
    storage = box.snapshot.storage
    if isinstance(storage, Missing):
        yield HOST, unjudged(storage)
        return
    disks = storage.disks
    if isinstance(disks, Missing):
        yield HOST, unjudged(disks)
        return
    arrays = _arrays(box)
    said = [(Subject(kind="disk", name=each.name, bdf=None), _array(each)) for each in arrays]
    due = expected(box, "host.data")
    if isinstance(due, Number):
        down = [subject.name for subject, judgement in said if judgement.status is Status.WARN]
        yield HOST, _volume(box, due, disks, arrays, down)
    elif not said:
        yield HOST, due
    yield from said


def _array(array: MdArray) -> Judgement:
    if not isinstance(array.level, Missing) and array.level in _CONTAINER:
        return skip("not-supported", "holds the metadata of other arrays")
    state, degraded = array.state, array.degraded
    if isinstance(state, Missing):
        return unjudged(state)
    evidence = [Evidence(f"{_BLOCK}/{array.name}/md/array_state", state)]
    if state == "clear":
        return skip("not-visible", "no array is set up under this name", *evidence)
    if isinstance(degraded, Missing):
        missing = 0
        if degraded.gap is not Gap.ABSENT and state not in _DOWN:
            return unjudged(degraded)  # absent is the file for levels without redundancy
    else:
        missing = degraded
        evidence.append(Evidence(f"{_BLOCK}/{array.name}/md/degraded", degraded))
    members = "" if isinstance(array.members, Missing) else f" of {', '.join(array.members)}"
    level = "array" if isinstance(array.level, Missing) else array.level
    disks = array.raid_disks
    wanted = "" if isinstance(disks, Missing) else f", made for {disks} disks"
    if not isinstance(array.members, Missing):
        evidence.append(Evidence(f"{_BLOCK}/{array.name}/slaves", list(array.members)))
    if state in _DOWN:
        return Judgement(Status.WARN, f"{level}{members} is {state}{wanted}", state, evidence=tuple(evidence))
    if missing:
        message = f"{level}{members} is degraded: {missing} missing{wanted}"
        return Judgement(Status.WARN, message, missing, 0, "disks", tuple(evidence))
    return Judgement(Status.PASS, f"{level}{members} is {state}", 0, 0, "disks", tuple(evidence))


def volumes(disks: tuple[BlockDevice, ...], arrays: tuple[MdArray, ...]) -> dict[str, int] | Missing:
    """Bytes of each disk that is in no array and of each array with its redundancy, by name."""
    sizes = {disk.name: disk.size_bytes for disk in disks if not isinstance(disk.size_bytes, Missing)}
    if not sizes:
        return next(
            (disk.size_bytes for disk in disks if isinstance(disk.size_bytes, Missing)), Missing(Gap.ABSENT, _BLOCK)
        )
    taken = set[str]()
    found = dict(sizes)
    for array in arrays:
        members = () if isinstance(array.members, Missing) else array.members
        taken.update(members)
        # the disks of a RAID 5 hold what those of a RAID 0 do; the array is smaller by choice
        found[array.name] = max(sizes.get(array.name, 0), sum(sizes.get(name, 0) for name in members))
    return {name: size for name, size in found.items() if name not in taken}


def data(box: Box) -> float | Missing:
    """TB of the largest volume that can be used: an inactive array holds nothing."""
    found = _volumes(box)
    if isinstance(found, Missing):
        return found
    inactive = {array.name for array in _arrays(box) if array.state in _DOWN and array.level not in _CONTAINER}
    return max((size for name, size in found.items() if name not in inactive), default=0) / 1e12


def pooled(box: Box) -> str:
    """The disks that hold the profile's data volume together, in a pool that is not seen; empty where none do."""
    found, due = _volumes(box), expected(box, "host.data")
    if isinstance(found, Missing) or isinstance(due, Judgement):
        return ""
    return _pool(_alike(found, lowest(box, due.value) * 1e12))


def lowest(box: Box, due: float) -> float:
    """What a data volume has at least, in the unit of what is due."""
    return due * (1 - box.settings.limit("host.data-tolerance") / 100)


def _volumes(box: Box) -> dict[str, int] | Missing:
    storage = box.snapshot.storage
    if isinstance(storage, Missing):
        return storage
    if isinstance(storage.disks, Missing):
        return storage.disks
    return volumes(storage.disks, _arrays(box))


def _arrays(box: Box) -> tuple[MdArray, ...]:
    storage = box.snapshot.storage
    return () if isinstance(storage, Missing) or isinstance(storage.arrays, Missing) else storage.arrays


def _volume(
    box: Box, due: Number, disks: tuple[BlockDevice, ...], arrays: tuple[MdArray, ...], down: list[str]
) -> Judgement:
    """Is there a volume as large as the data volume should be: an array with all its disks, or a controller's?"""
    if not disks:
        return skip("not-visible", "no disk is visible here")
    free = volumes(disks, arrays)
    if isinstance(free, Missing):
        return unjudged(free)
    sizes = {disk.name: disk.size_bytes for disk in disks if not isinstance(disk.size_bytes, Missing)}
    name = max(free, key=lambda each: free[each], default="")
    size = free.get(name, 0)
    least = lowest(box, due.value) * 1e12
    evidence = (Evidence(f"{_BLOCK}/{name}/size", sizes.get(name, 0) // 512),) if name else ()
    message = f"largest volume {name}: {size / 1e12:.2f} TB, expected {due.value:g} TB"
    if size >= least:
        return Judgement(Status.PASS, message, round(size / 1e12, 2), due.value, "TB", evidence)
    if down:
        return skip("dependency-failed", f"{', '.join(down)} is to blame: {message}", *evidence)
    if pool := _pool(_alike(free, least)):
        return skip("not-visible", pool, *evidence)
    return Judgement(Status.WARN, message, round(size / 1e12, 2), due.value, "TB", evidence)


def _pool(names: list[str]) -> str:
    return f"{', '.join(names)} have the size together, in a pool that is not seen" if names else ""


def _alike(sizes: dict[str, int], lowest: float) -> list[str]:
    """Two or more disks of one size that together are as large: of ZFS, LVM, or single file systems."""
    by_size: dict[int, list[str]] = defaultdict(list)
    for name, size in sizes.items():
        by_size[size].append(name)
    return next((names for size, names in by_size.items() if len(names) > 1 and size * len(names) >= lowest), [])


CHECKS = (
    Check(
        id="host.disks",
        rule="Warns where a software RAID array is degraded or inactive, and where no volume, of a controller or of an"
        " array counted with its redundancy, is as large as the reference machine's data volume, less"
        " {host.data-tolerance}. Disks in a pool of their own are not judged.",
        source="size of /sys/class/block, array_state and degraded of each array, against the profile",
        remedy="find the disk that is missing (cat /proc/mdstat, the controller's tool, the kernel log), replace it and"
        " rebuild the array",
        judge=_disks,
    ),
)
