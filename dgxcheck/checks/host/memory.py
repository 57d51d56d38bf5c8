"""The host's memory: is all of it there, and does it count errors?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.box import HOST, Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import DAY_S, counter_growth, rate
from dgxcheck.facts.host import MemoryController
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace

Judged = Iterator[tuple[Subject, Judgement]]
_KB = 1 << 20
"""kB in a GiB; the kernel's kB has 1024 bytes."""
_MEMMAP = 1 / 64
"""A ``struct page`` of 64 bytes for each of 4096, which MemTotal leaves out:
https://docs.kernel.org/mm/memory-model.html"""
_EDAC = "/sys/devices/system/edac/mc"


def _memory(box: Box) -> Judged:
    yield HOST, _size(box)


def _kb(box: Box) -> int | Missing:
    host = box.snapshot.host
    return host if isinstance(host, Missing) else host.memory_kb


def size(box: Box) -> float | Missing:
    """GiB that the kernel has."""
    kb = _kb(box)
    return kb if isinstance(kb, Missing) else kb / _KB


def short(box: Box, gib: float, due: float) -> bool:
    """Is it less, both in GiB, than what the kernel takes for itself explains?"""
    dimm = expected(box, "host.dimm")
    if isinstance(dimm, Judgement):
        return gib < due * (1 - box.settings.limit("host.memory-missing") / 100)
    return gib <= due * (1 - _MEMMAP) - dimm.value / 2


def _size(box: Box) -> Judgement:
    kb, due = _kb(box), expected(box, "host.memory")
    if isinstance(kb, Missing):
        return unjudged(kb)
    if isinstance(due, Judgement):
        return due
    low = short(box, kb / _KB, due.value)
    gib = round(kb / _KB, 1)
    evidence = (Evidence("/proc/meminfo", f"MemTotal: {kb} kB"), *_sizes(box))
    if low and (why := visibility.cpus_hidden(box)):
        return skip("not-visible", f"{why}: {gib:g} of {due.value:g} GiB", *evidence)
    message = f"{gib:g} GiB of {due.value:g} GiB" + (_smallest(box) if low else "")
    return Judgement(Status.WARN if low else Status.PASS, message, gib, due.value, "GiB", evidence)


def _controllers(box: Box) -> tuple[MemoryController, ...]:
    return () if isinstance(box.snapshot.edac, Missing) else box.snapshot.edac


def _sizes(box: Box) -> Iterator[Evidence]:
    for each in _controllers(box):
        if not isinstance(each.size_mb, Missing):
            yield Evidence(f"{_EDAC}/{each.name}/size_mb", each.size_mb)


def _smallest(box: Box) -> str:
    """The memory controllers that have less than the others, which is where a DIMM is missing."""
    sizes = {each: each.size_mb for each in _controllers(box) if not isinstance(each.size_mb, Missing)}
    least, most = min(sizes.values(), default=0), max(sizes.values(), default=0)
    if least == most:
        return ""
    names = ", ".join(_name(each) for each, size in sizes.items() if size == least)
    return f"; {least / 1024:g} GiB at {names}, {most / 1024:g} GiB at others"


def _name(controller: MemoryController) -> str:
    known = controller.mc_name
    return controller.name if isinstance(known, Missing) else f"{controller.name} ({known})"


def _edac(box: Box) -> Judged:
    controllers = box.snapshot.edac
    if isinstance(controllers, Missing):
        yield HOST, unjudged(controllers)
    elif not controllers:
        yield HOST, skip("not-supported", "no driver of this kernel counts errors of the host's memory")
    else:
        for each in controllers:
            yield replace(HOST, part=each.name), _errors(box, each)


def _errors(box: Box, now: MemoryController) -> Judgement:
    growth = box.growth
    new = now if isinstance(growth, Judgement) else _row(growth.new.edac, now.name) or now
    corrected, uncorrected = new.corrected, new.uncorrected
    if isinstance(uncorrected, Missing):
        return unjudged(uncorrected)
    if isinstance(corrected, Missing):
        return unjudged(corrected)
    evidence = (
        Evidence(f"{_EDAC}/{now.name}/ue_count", uncorrected),
        Evidence(f"{_EDAC}/{now.name}/ce_count", corrected),
    )
    grew = None if isinstance(growth, Judgement) else _grew(growth, new)
    if grew is not None and not isinstance(growth, Judgement):
        more_uncorrected, more_corrected = grew
        if more_uncorrected > 0:
            message = f"{_name(now)}: {more_uncorrected} uncorrected errors more {growth.how}"
            return Judgement(Status.FAIL, message, more_uncorrected, 0, "errors", evidence)
        limit = box.settings.limit("host.edac-corrected")
        if rate(more_corrected, growth, DAY_S) > limit and uncorrected == 0:
            message = f"{_name(now)}: {more_corrected} corrected errors more {growth.how}, {limit:g} a day allowed"
            return Judgement(Status.WARN, message, more_corrected, limit, "errors", evidence)
    status = Status.WARN if uncorrected else Status.PASS
    message = f"{_name(now)}: {uncorrected} uncorrected, {corrected} corrected errors since its driver was loaded"
    return Judgement(status, message, uncorrected, 0, "errors", evidence)


def _grew(growth: Growth, new: MemoryController) -> tuple[int, int] | None:
    """By how many uncorrected and corrected errors; None where they were not counted before, or from 0 again."""
    old = _row(growth.old.edac, new.name)
    if old is None:
        return None
    uncorrected = counter_growth(old.uncorrected, new.uncorrected)
    corrected = counter_growth(old.corrected, new.corrected)
    return (uncorrected, corrected) if isinstance(uncorrected, int) and isinstance(corrected, int) else None


def _row(controllers: tuple[MemoryController, ...] | Missing, name: str) -> MemoryController | None:
    return None if isinstance(controllers, Missing) else next((c for c in controllers if c.name == name), None)


CHECKS = (
    Check(
        id="host.memory",
        rule="Warns where half a DIMM or more is missing from the reference machine's memory, less 1/64 of it that the"
        " kernel takes for itself; where the size of its DIMMs is not known, where more than {host.memory-missing} is."
        " A container of LXC is not judged by its share.",
        source="MemTotal of /proc/meminfo against the profile; Azure node checks allow 3 to 5 %",
        remedy="find the DIMM (dmidecode -t memory, the BMC's event log), then reseat or replace it",
        judge=_memory,
    ),
    Check(
        id="host.edac",
        rule="Per memory controller: fails where uncorrected errors came since the last reading, warns where corrected"
        " ones came at more than {host.edac-corrected}, and where any uncorrected error was counted since the EDAC"
        " driver was loaded.",
        source="ue_count and ce_count of /sys/devices/system/edac/mc",
        remedy="find the DIMM (edac-util, ras-mc-ctl --errors, the BMC's event log) and replace it if errors come back",
        judge=_edac,
    ),
)
