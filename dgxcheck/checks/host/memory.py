"""How much memory the host has."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.host_limits import MEMORY_PARAMETERS, left_out, missing_socket, nodes_without_memory
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.components.component import Component, host_part
from dgxcheck.facts.host import MemoryController
from dgxcheck.facts.missing import Missing, need, rows

Judged = Iterator[tuple[Subject, Judgement]]
_KB = 1 << 20
"""kB in a GiB; the kernel's kB has 1024 bytes."""
_MEMMAP = 1 / 64
"""A ``struct page`` of 64 bytes for each of 4096, which MemTotal leaves out:
https://docs.kernel.org/mm/memory-model.html"""
EDAC = "/sys/devices/system/edac/mc"


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


def controllers_of(box: Box) -> tuple[MemoryController, ...]:
    """The memory controllers that EDAC knows; empty where it knows none."""
    return rows(box.snapshot.edac)


def _sizes(box: Box) -> Iterator[Evidence]:
    for each in controllers_of(box):
        if not isinstance(each.size_mb, Missing):
            yield Evidence(f"{EDAC}/{each.name}/size_mb", each.size_mb)


def _smallest(box: Box) -> str:
    """The memory controllers that have less than the others: there a DIMM is missing."""
    sizes = {each: each.size_mb for each in controllers_of(box) if not isinstance(each.size_mb, Missing)}
    least, most = min(sizes.values(), default=0), max(sizes.values(), default=0)
    if least == most:
        return ""
    names = ", ".join(name_of(each) for each, size in sizes.items() if size == least)
    return f"; {least / 1024:g} GiB at {names}, {most / 1024:g} GiB at the others"


def name_of(controller: MemoryController) -> str:
    """``mc1 (Broadwell SrcID#0_Ha#1)``"""
    known = controller.mc_name
    return controller.name if isinstance(known, Missing) else f"{controller.name} ({known})"


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
)
