"""The bandwidth of PCIe links, NVLinks and rings of NVLinks, and of hosts of known models."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import chain

from dgxcheck.bandwidth import rate
from dgxcheck.bandwidth.rate import NO_LIMIT, Direction, Limit, Rate, exactly, unknown
from dgxcheck.facts.host import Cpu
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, or_none
from dgxcheck.facts.pci import ConfigSpace
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import ranges
from dgxcheck.package_files import table
from dgxcheck.topology.model import Device, PciClass, Topology
from dgxcheck.topology.nvlinks import Rings, find_rings, nvlink_generation, nvlink_graph
from dgxcheck.topology.paths import NEAR, Hop, nvlink_gbs, pcie_gbs

SPLIT = "NVIDIA/nccl src/graph/topo.h: Intel CPUs forward what GPUs send each other in packets of 64 bytes"


class Reached(Record, kw_only=False):
    """GB/s (1e9) that were measured; None where nobody published a figure."""

    read: float | None
    write: float | None
    source: str
    limits_reads: bool = False
    """Was it this part that limited reads, and not the links or ports around it?"""


class Generation(Record, kw_only=False):
    """One generation of hosts."""

    name: str
    vendor: str
    """As in ``/proc/cpuinfo``, likewise the family and the models."""
    family: int
    models: Container[int]
    splits_at: int | None = None
    """Bytes of the packets in which a root complex forwards peer traffic, where they are smaller than MaxPayload."""
    is_transparent: bool = False
    """Do writes through the root complex reach what the links carry? Published only for some."""
    root: Reached | None = None
    """Peer traffic through one root complex, or two of one NUMA node."""
    nodes: Reached | None = None
    """Peer traffic between NUMA nodes."""
    from_memory: Reached | None = None
    """Copies between a device and memory, where they reach less than ``crossing.MEMORY`` says."""


def _figures(row: Mapping[str, str]) -> Reached:
    read, write = (float(row[way]) if row[way] else None for way in ("read", "write"))
    return Reached(read, write, row["source"], limits_reads=bool(row["limits_reads"]))


_REACHED = {(row["name"], row["where"]): _figures(row) for row in table("bandwidth/reached.tsv")}
GENERATIONS = tuple(
    Generation(
        row["name"], row["vendor"], int(row["family"]), frozenset(chain.from_iterable(ranges(row["models"]) or ())),
        int(row["splits_at"]) if row["splits_at"] else None, bool(row["transparent"]),
        *(_REACHED.get((row["name"], where)) for where in ("root", "nodes", "from_memory")),
    )
    for row in table("bandwidth/hosts.tsv")
)


@or_none
def generation(read: Cpu | Missing) -> Generation | None:
    """The host's generation; None for one without published figures, or whose CPU cannot be read."""
    cpu = need(read)
    own = (each for each in GENERATIONS if (each.vendor, each.family) == (cpu.vendor, cpu.family))
    return next((each for each in own if cpu.model_number in each.models), None)


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


LineRate = Callable[[Hop], "float | Missing"]
"""GB/s of a link at line rate, as it should be or as it is."""

NVLINK_SHARE: Mapping[int, tuple[float, float, str]] = {
    1: (0.92, 0.92, "18.4 of 20 GB/s per link, p2pBandwidthLatencyTest on a DGX-1 P100 (Tartan)"),
    2: (0.96, 0.96, "47.9 of 50 GB/s on two links, p2pBandwidthLatencyTest on V100-SXM2 (Dell C4130)"),
    3: (0.91, 0.91, "274 of 300 GB/s on 12 links, nvbandwidth README (A100)"),
    4: (0.82, 0.82, "371 of 450 GB/s on 18 links, NVIDIA/nccl issue 1264 (H100)"),
    5: (0.80, 1.0, "NVIDIA/nccl src/graph/topo.h: 40.1 of 50 GB/s per link; no published result of copies"),
}
"""By generation: the least and the most of the line rate to expect of copies."""


def as_supported(hop: Hop) -> float | Missing:
    """The lower of both ends' maxima."""
    return hop.max_gbs


def as_it_is(steady: Device) -> LineRate:
    """As trained; of links other than ``steady``'s own by their lanes alone: an idle GPU lowers its generation."""
    return lambda hop: hop.gbs if hop.device == steady.bdf else with_lanes(hop, hop.width)


def with_lanes(hop: Hop, width: int | Missing) -> float | Missing:
    """At so many lanes and the generation that both ends support."""
    return pcie_gbs(hop.max_gen, width)


def physical(hops: Iterable[Hop]) -> tuple[Hop, ...]:
    """Those that are links, and not ports within one switch."""
    return tuple(hop for hop in hops if not hop.skip_reason)


@or_gap
def narrowest(hops: Iterable[Hop], line: LineRate = as_supported) -> tuple[Hop, float] | None:
    """The slowest link and its GB/s; None where no link is visible, Missing where one's rate is unknown."""
    rates = [(hop, need(line(hop))) for hop in physical(hops)]
    return min(rates, key=lambda each: each[1], default=None)


@or_gap
def payload_of(hops: Iterable[Hop], spaces: Sequence[ConfigSpace] | Missing) -> int | Missing:
    """MaxPayload in bytes that all ends of these links share, the least of them."""
    bdfs = {bdf for hop in hops for bdf in (hop.port, hop.device)}
    express = {space.bdf: space.express for space in need(spaces) if space.bdf in bdfs}
    own = (express.get(bdf, Missing(Gap.UNRECORDED, f"/sys/bus/pci/devices/{bdf}/config")) for bdf in sorted(bdfs))
    sizes = [need(need(each).max_payload) for each in own]
    return min(sizes, default=Missing(Gap.ABSENT, "PCIe links", "no link is visible"))


def link_limit(hop: Hop, payload: int | Missing, line: LineRate, splits_at: int | None = None) -> Limit:
    """What one link carries in packets of ``payload`` bytes, or of ``splits_at`` behind a root complex."""
    gbs = line(hop)
    source = rate.SOURCE
    speed = "line rate unknown" if isinstance(gbs, Missing) else f"{gbs:.2f} GB/s at line rate"
    if splits_at is not None and (isinstance(payload, Missing) or splits_at < payload):
        payload, packet, source = splits_at, f"packets of {splits_at} bytes behind the root complex", SPLIT
    elif isinstance(payload, Missing):
        packet = f"MaxPayload unknown ({payload}), {rate.SMALLEST} to {rate.LARGEST}"
    else:
        packet = f"MaxPayload {payload}"
    read, write = _rate(gbs, payload, "read"), _rate(gbs, payload, "write")
    return Limit(name=f"link {hop}", read=read, write=write, basis=f"{speed}, {packet}", source=source)


def _rate(gbs: float | Missing, payload: int | Missing, direction: Direction) -> Rate:
    if isinstance(gbs, Missing):
        return unknown(gbs)
    sizes = (rate.SMALLEST, rate.LARGEST) if isinstance(payload, Missing) else (payload, payload)
    return Rate(*(gbs * rate.share(size, direction) for size in sizes))


def nvlink_limit(links: int, generation: int | None) -> Limit:
    """What so many NVLinks carry together."""
    line = nvlink_gbs(generation)
    name = f"{links} NVLink{'s' if links > 1 else ''}"
    if isinstance(line, Missing):
        return Limit(name=name, read=unknown(line), write=unknown(line), basis="", source="")
    name = f"{name} of {line:g} GB/s"
    low, high, source = NVLINK_SHARE[generation or 0]
    rate = Rate(links * line * low, links * line * high)
    basis = f"{low:g} of the line rate" if low == high else f"{low:g} to {high:g} of the line rate"
    return Limit(name=name, read=rate, write=rate, basis=basis, source=source)


@or_gap
def collective_gbs(rings: Rings, generation: int | Missing) -> float:
    """Upper bound of a collective's bus bandwidth in GB/s (1e9): rings x 2 directions x line rate of one link."""
    return need(rings.count) * 2 * need(nvlink_gbs(need(generation)))


@or_none
def copies_gbs(topology: Topology, rings_used: int, both_ways: bool) -> float | None:
    """What copies around so many rings should reach together; None where the rings or their rate are unknown.

    Through NVSwitches one order of the GPUs has all the links; elsewhere each ring has its own.
    """
    generation, rings = need(nvlink_generation(topology)), find_rings(need(nvlink_graph(topology)))
    if not (count := need(rings.count)):
        return None
    most = need(collective_gbs(rings, generation))
    share = 1.0 if rings.how == "switched" else min(1.0, rings_used / count)
    return most * share * (1.0 if both_ways else 0.5) * NVLINK_SHARE[generation][0]
