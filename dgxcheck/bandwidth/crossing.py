"""What joins the two ends of a path at its top: a switch, one root complex or several, or two NUMA nodes."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.bandwidth.hosts import SPLIT, Generation, Reached
from dgxcheck.bandwidth.rate import NO_LIMIT, Direction, Limit, Rate, exactly
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.classes import NEAR
from dgxcheck.topology.model import PciClass

SWITCH_READ = 0.75
"""Of the line rate."""
SWITCH_SOURCE = (
    "Azure's node checks of ND H100 v5 (check_ib_bw_gdr): 380 Gbit/s, of 504 at line rate, with GPUDirect RDMA"
)
MEMORY: Mapping[Direction, float] = {"read": 0.9, "write": 0.95}
"""Of what packets leave, at the least. Reads: 12.0 to 12.4 of 13.4 GB/s on generation 3, 24.8 to 25.8 of 26.9 on 4,
51 of 53.7 on 5; writes: 12.5 to 13.2 of 13.2 GB/s, 26.2 of 26.5, 52 of 53."""
MEMORY_SOURCE = "pinned host copies on PCIe generations 3 to 5 (gearshifft PR 82, DCGM, Azure AI benchmarking guide)"


def between_devices(name: str, pci: PciClass, host: Generation | None, line_gbs: float | Missing) -> Limit:
    """The meeting point of two PCI paths; ``line_gbs`` is the line rate of the slowest link."""
    if pci in NEAR:
        read = line_gbs if isinstance(line_gbs, Missing) else line_gbs * SWITCH_READ
        return Limit(name=name, read=Rate(read, NO_LIMIT), write=exactly(NO_LIMIT), basis="", source=SWITCH_SOURCE)
    who = "this host's CPU" if host is None else host.name
    gap = Missing(Gap.UNSUPPORTED, name, f"no published figure for {who}")
    reached = None if host is None else host.nodes if pci == "SOC" else host.root
    read_rate, write_rate = _reached(reached, "read", gap), _reached(reached, "write", gap)
    source = "" if reached is None else reached.source
    if host is not None and host.is_transparent and pci != "SOC":
        write_rate, source = exactly(NO_LIMIT), source or SPLIT
    return Limit(name=name, read=read_rate, write=write_rate, basis=who, source=source)


def _reached(reached: Reached | None, direction: Direction, gap: Missing) -> Rate:
    gbs = None if reached is None else reached.read if direction == "read" else reached.write
    if reached is None or gbs is None:
        return Rate(gap, NO_LIMIT)
    return Rate(gbs, gbs if reached.limits_reads and direction == "read" else NO_LIMIT)


def to_memory(host: Generation | None, reads: Rate, writes: Rate) -> Limit:
    """The root complex between a device and memory; ``reads`` and ``writes`` are what the links carry."""
    if host is not None and host.from_memory is not None:
        read, write = _reached(host.from_memory, "read", _NONE), _reached(host.from_memory, "write", _NONE)
        return Limit(name="host bridge", read=read, write=write, basis=host.name, source=host.from_memory.source)
    read, write = _reaches(reads, "read"), _reaches(writes, "write")
    return Limit(name="host bridge", read=read, write=write, basis="", source=MEMORY_SOURCE)


def _reaches(links: Rate, way: Direction) -> Rate:
    return Rate(links.least if isinstance(links.least, Missing) else links.least * MEMORY[way], NO_LIMIT)


_NONE = Missing(Gap.UNSUPPORTED, "host bridge", "no published figure")
