"""The bandwidth of PCIe links, NVLinks and rings of NVLinks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dgxcheck.bandwidth import rate
from dgxcheck.bandwidth.hosts import SPLIT
from dgxcheck.bandwidth.rate import Direction, Limit, Rate, unknown
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import ConfigSpace
from dgxcheck.topology.graph import Rings, nvlink_generation, nvlink_graph, search
from dgxcheck.topology.model import Device, Topology
from dgxcheck.topology.paths import Hop, nvlink_gbs, pcie_gbs

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


def narrowest(hops: Iterable[Hop], line: LineRate = as_supported) -> tuple[Hop, float] | Missing | None:
    """The slowest link and its GB/s; None where no link is visible, Missing where one's rate is unknown."""
    rates = [(hop, line(hop)) for hop in physical(hops)]
    gap = next((rate for _, rate in rates if isinstance(rate, Missing)), None)
    if gap is not None:
        return gap
    known = [(hop, rate) for hop, rate in rates if not isinstance(rate, Missing)]
    return min(known, key=lambda each: each[1], default=None)


def payload_of(hops: Iterable[Hop], spaces: Sequence[ConfigSpace] | Missing) -> int | Missing:
    """MaxPayload in bytes that all ends of these links share, the least of them."""
    bdfs = {bdf for hop in hops for bdf in (hop.port, hop.device)}
    if isinstance(spaces, Missing):
        return spaces
    express = {space.bdf: space.express for space in spaces if space.bdf in bdfs}
    sizes: list[int] = []
    for bdf in sorted(bdfs):
        own = express.get(bdf, Missing(Gap.UNRECORDED, f"/sys/bus/pci/devices/{bdf}/config"))
        size = own if isinstance(own, Missing) else own.max_payload
        if isinstance(size, Missing):
            return size
        sizes.append(size)
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


def collective_gbs(rings: Rings, generation: int | Missing) -> float | Missing:
    """Upper bound of a collective's bus bandwidth in GB/s (1e9): rings x 2 directions x line rate of one link."""
    if isinstance(rings.count, Missing):
        return rings.count
    if isinstance(generation, Missing):
        return generation
    rate = nvlink_gbs(generation)
    return rate if isinstance(rate, Missing) else rings.count * 2 * rate


def copies_gbs(topology: Topology, rings_used: int, both_ways: bool) -> float | None:
    """What copies around so many rings should reach together; None where the rings or their rate are unknown.

    Through NVSwitches one order of the GPUs has all the links; elsewhere each ring has its own.
    """
    graph, generation = nvlink_graph(topology), nvlink_generation(topology)
    if isinstance(graph, Missing) or isinstance(generation, Missing) or generation not in NVLINK_SHARE:
        return None
    rings = search(graph)
    most = collective_gbs(rings, generation)
    if isinstance(most, Missing) or isinstance(rings.count, Missing) or not most:
        return None
    share = 1.0 if rings.how == "switched" else min(1.0, rings_used / rings.count)
    return most * share * (1.0 if both_ways else 0.5) * NVLINK_SHARE[generation][0]
