"""The host's memory: size and errors."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import HOST, Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import DAY_S, counter_growth, rate
from dgxcheck.checks.engine.host_limits import MEMORY_PARAMETERS, left_out, missing_socket, nodes_without_memory
from dgxcheck.checks.engine.per_gpu import need, ruled
from dgxcheck.checks.engine.wording import counted
from dgxcheck.components.component import Component, host_part
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
    yield HOST, ruled(_total, box)


def _kb(box: Box) -> int | Missing:
    facts = box.snapshot.host
    return facts if isinstance(facts, Missing) else facts.memory_kb


def total_memory(box: Box) -> float | Missing:
    """Memory of the kernel in GiB."""
    kb = _kb(box)
    return kb if isinstance(kb, Missing) else kb / _KB


def is_short(box: Box, gib: float, reference: float) -> bool:
    """Is more missing, both in GiB, than the kernel takes for itself?"""
    dimm = expected(box, "host.dimm")
    if isinstance(dimm, Judgement):
        return gib < reference * (1 - box.settings.limit("host.memory-missing") / 100)
    return gib <= reference * (1 - _MEMMAP) - dimm.value / 2


def _total(box: Box) -> Judgement:
    kb, reference = need(_kb(box)), expected(box, "host.memory")
    if isinstance(reference, Judgement):
        return reference
    low = is_short(box, kb / _KB, reference.value)
    gib = round(kb / _KB, 1)
    evidence = (Evidence("/proc/meminfo", f"MemTotal: {kb} kB"), *_sizes(box))
    message = f"{gib:g} of {reference.value:g} GiB"
    if low and (why := visibility.cpus_hidden(box)):
        return skip("not-visible", f"{why}: {message}", *evidence)
    if low:
        message += _smallest(box)
        return Judgement(Status.WARN, message, gib, reference.value, "GiB", evidence, fault=Fault.MEMORY_MISSING)
    return Judgement(Status.PASS, message, gib, reference.value, "GiB", evidence)


def _controllers(box: Box) -> tuple[MemoryController, ...]:
    return () if isinstance(box.snapshot.edac, Missing) else box.snapshot.edac


def _sizes(box: Box) -> Iterator[Evidence]:
    for each in _controllers(box):
        if not isinstance(each.size_mb, Missing):
            yield Evidence(f"{_EDAC}/{each.name}/size_mb", each.size_mb)


def _smallest(box: Box) -> str:
    """The memory controllers that have less than the others: there a DIMM is missing."""
    sizes = {each: each.size_mb for each in _controllers(box) if not isinstance(each.size_mb, Missing)}
    least, most = min(sizes.values(), default=0), max(sizes.values(), default=0)
    if least == most:
        return ""
    names = ", ".join(_name(each) for each, size in sizes.items() if size == least)
    return f"; {least / 1024:g} GiB at {names}, {most / 1024:g} GiB at the others"


def _name(controller: MemoryController) -> str:
    known = controller.mc_name
    return controller.name if isinstance(known, Missing) else f"{controller.name} ({known})"


def _edac(box: Box) -> Judged:
    controllers = box.snapshot.edac
    if isinstance(controllers, Missing):
        yield HOST, unjudged(controllers)
    elif not controllers:
        yield HOST, skip("not-supported", "no EDAC driver counts memory errors on this machine")
    else:
        for each in controllers:
            yield replace(HOST, part=each.name), ruled(_errors, box, each)


def _errors(box: Box, now: MemoryController) -> Judgement:
    growth, name = box.growth, _name(now)
    new = now if isinstance(growth, Judgement) else _row(growth.new.edac, now.name) or now
    uncorrected, corrected = need(new.uncorrected), need(new.corrected)
    evidence = (
        Evidence(f"{_EDAC}/{now.name}/ue_count", uncorrected),
        Evidence(f"{_EDAC}/{now.name}/ce_count", corrected),
    )
    fault = Fault.DIMM_ERRORS
    grew = None if isinstance(growth, Judgement) else _grew(growth, new)
    if grew is not None and not isinstance(growth, Judgement):
        more_uncorrected, more_corrected = grew
        if more_uncorrected > 0:
            message = f"{name}: {counted(more_uncorrected, 'new uncorrected error')} {growth.how}"
            return Judgement(
                Status.FAIL, message, more_uncorrected, 0, "errors", evidence, fault=fault, remedy=REPLACE_DIMM
            )  # fmt: skip
        limit = box.settings.limit("host.edac-corrected")
        if rate(more_corrected, growth, DAY_S) > limit and uncorrected == 0:
            message = f"{name}: {counted(more_corrected, 'new corrected error')} {growth.how}, limit {limit:g} a day"
            return Judgement(Status.WARN, message, more_corrected, limit, "errors", evidence, fault=fault)
    totals = f"{counted(uncorrected, 'uncorrected error')}, {counted(corrected, 'corrected error')}"
    message = f"{name}: {totals} since the EDAC driver was loaded"
    status = Status.WARN if uncorrected else Status.PASS
    return Judgement(status, message, uncorrected, 0, "errors", evidence, fault=fault if uncorrected else None)


REPLACE_DIMM = (
    "find the DIMM (ras-mc-ctl --errors, edac-util -v, the BMC's event log), drain the node and replace it; uncorrected"
    " errors can corrupt data or halt the host"
)


def _grew(growth: Growth, new: MemoryController) -> tuple[int, int] | None:
    """By how many uncorrected and corrected errors; None where they were not counted before, or were reset."""
    old = _row(growth.old.edac, new.name)
    if old is None:
        return None
    uncorrected = counter_growth(old.uncorrected, new.uncorrected)
    corrected = counter_growth(old.corrected, new.corrected)
    return (uncorrected, corrected) if isinstance(uncorrected, int) and isinstance(corrected, int) else None


def _row(controllers: tuple[MemoryController, ...] | Missing, name: str) -> MemoryController | None:
    return None if isinstance(controllers, Missing) else next((c for c in controllers if c.name == name), None)


def _blame_missing(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The parameter that leaves memory out, the DIMMs of an empty node, any DIMM, or the socket that they belong to."""
    yield from left_out(box, MEMORY_PARAMETERS)
    yield from (host_part("memory", f"node {node}") for node in nodes_without_memory(box))
    yield from host("memory")(box, at, judgement)
    yield from missing_socket(box)


CHECKS = (
    Check(
        id="host.memory",
        rule="Warns if half a DIMM or more of the reference machine's memory is missing, after the 1/64 that the kernel"
        " takes for itself; if the size of its DIMMs is not known, if more than {host.memory-missing} is. An LXC"
        " container is not judged, because it sees its share only.",
        source="MemTotal of /proc/meminfo against the profile; Azure node checks allow 3 to 5 %",
        remedy="find the DIMM (dmidecode -t memory, the BMC's event log), then reseat or replace it",
        judge=_memory,
        blames=_blame_missing,
    ),
    Check(
        id="host.edac",
        rule="Per memory controller: fails if uncorrected errors were counted since the last reading; warns if"
        " corrected errors grew by more than {host.edac-corrected}, or if any uncorrected error was counted since the"
        " EDAC driver was loaded.",
        source="ue_count and ce_count of /sys/devices/system/edac/mc",
        remedy="find the DIMM (ras-mc-ctl --errors, edac-util -v, the BMC's event log); replace it at the next"
        " maintenance if errors continue",
        judge=_edac,
        blames=host("memory"),
    ),
)
