"""The memory of the host, its NUMA nodes, and its errors as EDAC drivers count them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations

from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import HOST, Box, Growth, guest
from dgxcheck.checks.engine.check import Check, asked, host, per_host, remedy_of, ruled
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.finding import (
    Evidence,
    Instead,
    Judged,
    Judgement,
    Status,
    Subject,
    as_evidence,
    counted,
    first_of,
    given,
    judged,
    skip,
)
from dgxcheck.checks.engine.growth import DAY_S, counter_growth, flood, is_short, rate
from dgxcheck.checks.engine.host_limits import (
    MEMORY_PARAMETERS,
    NUMA_PARAMETERS,
    NUMA_SETTING,
    left_out,
    missing_socket,
    nodes_below_roots,
    nodes_without_memory,
)
from dgxcheck.components.component import Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Cpu
from dgxcheck.facts.memory import MemoryController, NumaMemory, NumaNode
from dgxcheck.facts.missing import Missing, need, or_gap, rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import EDAC, NODES
from dgxcheck.lazy_pattern import LazyPattern

_KB = 1 << 20
"""kB in a GiB; the kernel's kB has 1024 bytes."""
_MEMMAP = 1 / 64
"""A ``struct page`` of 64 bytes for each of 4096, which MemTotal leaves out:
https://docs.kernel.org/mm/memory-model.html"""


@or_gap
def total_memory(box: Box) -> float:
    """Memory of the kernel in GiB."""
    return need(box.snapshot.known_host.memory_kb) / _KB


def is_low(box: Box, gib: float, reference: float) -> bool:
    """Is more missing, both in GiB, than the kernel takes for itself?"""
    dimm = expected(box, "host.dimm")
    if isinstance(dimm, Judgement):
        return gib < reference * (1 - box.settings.limit("host.memory-missing") / 100)
    return gib <= reference * (1 - _MEMMAP) - dimm.value / 2


def _total(box: Box) -> Judgement:
    """Warns if half a DIMM or more of the reference machine's memory is missing, after the 1/64 that the kernel takes
    for itself; if the size of its DIMMs is not known, if more than {host.memory-missing} is. An LXC container is not
    judged, because it sees its share only.

    Source: MemTotal of /proc/meminfo against the profile; Azure node checks allow 3 to 5 %
    """
    kb, reference = need(box.snapshot.known_host.memory_kb), given(expected(box, "host.memory"))
    low = is_low(box, kb / _KB, reference.value)
    gib = round(kb / _KB, 1)
    evidence = (Evidence("/proc/meminfo", f"MemTotal: {kb} kB"), *_sizes(box))
    message = f"{gib:g} of {reference.value:g} GiB"
    if low and (why := host_limits.cpus_hidden(box)):
        return skip("not-visible", f"{why}: {message}", *evidence)
    message += _smallest(box) if low else ""
    return judged(Fault.MEMORY_MISSING, message, gib, reference.value, "GiB", evidence, warns=low)


def _sizes(box: Box) -> Iterator[Evidence]:
    for controller in rows(box.snapshot.edac):
        if not isinstance(controller.size_mb, Missing):
            yield Evidence(f"{EDAC}/{controller.name}/size_mb", controller.size_mb)


def _smallest(box: Box) -> str:
    """The memory controllers that have less than the others: there a DIMM is missing."""
    sizes = {each: each.size_mb for each in rows(box.snapshot.edac) if not isinstance(each.size_mb, Missing)}
    least, most = min(sizes.values(), default=0), max(sizes.values(), default=0)
    if least == most:
        return ""
    names = ", ".join(name_of(each) for each, size in sizes.items() if size == least)
    return f"; {least / 1024:g} GiB at {names}, {most / 1024:g} GiB at the others"


def name_of(controller: MemoryController) -> str:
    """``mc1 (Broadwell SrcID#0_Ha#1)``"""
    driver = controller.mc_name
    return controller.name if isinstance(driver, Missing) else f"{controller.name} ({driver})"


def _blame_missing(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The parameter that leaves memory out, the DIMMs of an empty node, any DIMM, or the socket that they belong to."""
    yield from left_out(box, MEMORY_PARAMETERS)
    yield from (host_part("memory", f"node {node}") for node in nodes_without_memory(box))
    yield from host("memory")(box, at, judgement)
    yield from missing_socket(box)


_SELF = 10
"""``LOCAL_DISTANCE`` of ACPI's SLIT."""
Wrong = Iterator[tuple[str, Evidence]]


def _tables(box: Box) -> Judged:
    """Warns if there are fewer NUMA nodes than sockets, if devices below one root bus are at different nodes, if the
    distances of nodes are no symmetric matrix with 10 on its diagonal, and if a node with CPUs has no memory. Not
    judged in virtual machines; a node of -1 is reported by topology.numa.

    Source: ACPI's SRAT and SLIT as in /sys/devices/system/node and numa_node of PCI devices
    """
    nodes, memory = need(box.snapshot.numa), box.snapshot.numa_memory
    if (vm := guest(box)) is not None:
        raise Instead(skip("not-visible", f"{vm} shows its guest NUMA nodes of its own"))
    listed = rows(memory)
    wrong = [*_fewer_than_sockets(box, nodes), *_below_one_root(box), *_distances(listed)]
    if wrong:
        message = "; ".join(text for text, _ in wrong)
        evidence = tuple(fact for _, fact in wrong)
        yield HOST, Judgement(Status.WARN, message, len(wrong), 0, "", evidence, fault=Fault.NUMA_TABLES)
    else:
        evidence = tuple(Evidence(f"{NODES}/node{each.node}/cpulist", as_evidence(each.cpulist)) for each in nodes)
        message = f"{counted(len(nodes), 'NUMA node')} in agreement with the PCI tree"
        yield HOST, Judgement(Status.PASS, message, 0, 0, "", evidence)
    for node in nodes_without_memory(box):
        facts = (Evidence(f"{NODES}/node{node}/meminfo", "MemTotal: 0 kB"),)
        judgement = judged(Fault.NODE_EMPTY, f"node {node} has CPUs and no memory", 0, None, "kB", facts, warns=True)
        yield replace(HOST, part=f"node {node}"), judgement


def _fewer_than_sockets(box: Box, nodes: tuple[NumaNode, ...]) -> Wrong:
    """Every socket has memory controllers of its own, and at least one node."""
    cpu = box.snapshot.known_host.cpu
    sockets = cpu.sockets if isinstance(cpu, Cpu) else None
    if isinstance(sockets, int) and len(nodes) < sockets:
        text = f"{counted(len(nodes), 'NUMA node')} for {counted(sockets, 'socket')}"
        yield text, Evidence(NODES, [node.node for node in nodes])


def _below_one_root(box: Box) -> Wrong:
    """-1 is topology.numa's."""
    for root, by_node in nodes_below_roots(box).items():
        parts = (f"{first_of(names)} at node {node}" for node, names in sorted(by_node.items()))
        evidence = Evidence(root, {str(node): [*names] for node, names in sorted(by_node.items())})
        yield f"two nodes below root bus {root}: {', '.join(parts)}", evidence


def _distances(rows: tuple[NumaMemory, ...]) -> Wrong:
    """A matrix with 10 on its diagonal, more elsewhere, and the same in both directions."""
    by_node = {row.node: row.distances for row in rows if not isinstance(row.distances, Missing)}
    nodes = [row.node for row in rows]
    for node, distances in by_node.items():
        where = Evidence(f"{NODES}/node{node}/distance", " ".join(map(str, distances)))
        if len(distances) != len(rows):
            yield f"node {node} has {counted(len(distances), 'distance')} for {counted(len(rows), 'node')}", where
            return
        own, others = distances[nodes.index(node)], [d for n, d in zip(nodes, distances, strict=False) if n != node]
        if own != _SELF or any(other <= own for other in others):
            yield f"distances of node {node} from itself {own}, from others {', '.join(map(str, others))}", where
    if len(by_node) == len(rows):
        for (a, one), (b, other) in combinations(enumerate(nodes), 2):
            there, back = by_node[one][b], by_node[other][a]
            if there != back:
                text = f"distance of nodes {one} and {other}: {there} one way, {back} the other"
                yield text, Evidence(f"{NODES}/node{one}/distance", " ".join(map(str, by_node[one])))


def _blame(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    if at.part:
        yield host_part("memory", at.part)
        return
    yield from left_out(box, NUMA_PARAMETERS)
    yield from host(NUMA_SETTING)(box, HOST, judgement)


_SOCKET = LazyPattern(r"(?:SrcID|Socket) ?#(\d{1,3})(?!\d)", flags=re.IGNORECASE)
"""In the names that EDAC drivers give to controllers and DIMMs: ``Skylake Socket#0 IMC#1``, ``CPU_SrcID#1_Ha#0``."""


def _edac(box: Box) -> Judged:
    """Per memory controller: fails if any uncorrected error was counted since the EDAC driver was loaded; warns if
    corrected errors grew by more than {host.edac-corrected} (where growth over an hour or more is not known: also over
    the whole time since boot).

    Source: ue_count and ce_count of /sys/devices/system/edac/mc
    """
    controllers = need(box.snapshot.edac)
    if not controllers:
        yield HOST, skip("not-supported", "no EDAC driver counts memory errors on this machine")
    yield from ((replace(HOST, part=each.name), ruled(_errors, box, each)) for each in controllers)


def _errors(box: Box, now: MemoryController) -> Judgement:
    growth, name, limit = box.growth, name_of(now), box.settings.limit("host.edac-corrected")
    new = now if isinstance(growth, Judgement) else _row(growth.new.edac, now.name) or now
    uncorrected, corrected = need(new.uncorrected), need(new.corrected)
    evidence = asked(new, "uncorrected", "corrected")
    fault, remedy = Fault.DIMM_ERRORS, remedy_of("host.edac", "uncorrected")
    settled = False
    if not isinstance(growth, Judgement) and (grew := _grew(growth, new)) is not None:
        settled = not is_short(growth)
        more_uncorrected, more_corrected = grew
        if more_uncorrected > 0:
            message = f"{name}: {counted(more_uncorrected, 'new uncorrected error')} {growth.how}"
            return judged(fault, message, more_uncorrected, 0, "errors", evidence, fails=True, remedy=remedy)
        if rate(more_corrected, growth, DAY_S) > limit and uncorrected == 0:
            message = f"{name}: {counted(more_corrected, 'new corrected error')} {growth.how}, limit {limit:g} a day"
            return judged(fault, message, more_corrected, limit, "errors", evidence, warns=True)
    counts = [other.corrected for other in rows(box.snapshot.edac) if other.name != new.name]
    others = [count for count in counts if isinstance(count, int)]
    if not (settled or uncorrected) and (flooded := flood(box, corrected, others, limit, DAY_S)) is not None:
        message = f"{name}: {counted(corrected, 'corrected error')} {flooded}, limit {limit:g} a day"
        return judged(fault, message, corrected, limit, "errors", evidence, warns=True)
    totals = f"{counted(uncorrected, 'uncorrected error')}, {counted(corrected, 'corrected error')}"
    message = f"{name}: {totals}; since the EDAC driver was loaded"
    return judged(fault, message, uncorrected, 0, "errors", evidence, fails=bool(uncorrected), remedy=remedy)


def slots(box: Box) -> Mapping[str, str]:
    """Those of the DIMMs of SMBIOS, by the names that the kernel gives them: with and without their bank.

    Linux drivers/edac/ghes_edac.c, drivers/firmware/efi/cper.c; edac-ctl(8), --register-labels.
    """
    dimms = rows(box.snapshot.dimms)
    return {f"{dimm.bank} {dimm.slot}": dimm.slot for dimm in dimms} | {dimm.slot: dimm.slot for dimm in dimms}


def memory_modules(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The DIMMs of the memory controller or slot that a finding names, or that the log names, and of its socket."""
    dimms, events = slots(box), [event for event in box.log.host if event.group == at.part]
    named = [*dict.fromkeys(dimms.get(event.part, event.part) for event in events if event.part not in _ANY_DIMM)]
    yield host_part("memory", named[0] if len(named) == 1 else at.part)
    yield from (host_part("memory", slot) for slot in named if slot in dimms)
    controller = next((each.mc_name for each in rows(box.snapshot.edac) if each.name == at.part), at.part)
    socket = _SOCKET.search(controller) if isinstance(controller, str) else None
    if socket is not None:
        yield host_part("memory", f"socket {int(socket[1])}")


_ANY_DIMM = ("", "any memory", "unknown memory", "unknown label")
"""Linux drivers/edac/edac_mc.c, where an error is of no DIMM that is known."""


def _grew(growth: Growth, new: MemoryController) -> tuple[int, int] | None:
    """By how many uncorrected and corrected errors; None where they were not counted before, or were reset."""
    old = _row(growth.old.edac, new.name)
    if old is None:
        return None
    uncorrected = counter_growth(old.uncorrected, new.uncorrected)
    corrected = counter_growth(old.corrected, new.corrected)
    return (uncorrected, corrected) if isinstance(uncorrected, int) and isinstance(corrected, int) else None


def _row(controllers: tuple[MemoryController, ...] | Missing, name: str) -> MemoryController | None:
    return next((row for row in rows(controllers) if row.name == name), None)


CHECKS = (
    Check("host.memory", per_host(_total), _blame_missing),
    Check("host.numa", _tables, _blame),
    Check("host.edac", _edac, memory_modules),
)  # fmt: skip
