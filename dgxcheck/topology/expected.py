"""Expected bandwidth of a path, derived from its links; a reference machine's measured numbers take precedence.

PCIe: line rate of the narrowest link x 0.77 for reads and x 0.80 for writes through a host bridge. The factors are what
pinned host copies reach on generations 3 to 5 (12.0 and 12.5 of 15.75 GB/s, gearshifft PR 82 and DCGM; 24.5 of 31.5,
NVIDIA forum 352186; 51 of 63, Azure AI benchmarking guide). Hosts before 2014 reach less: 0.49 on a K80 server.
NVLink: links x rate x the share that copy engines reach.
"""

from __future__ import annotations

from typing import Literal

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.topology.model import Device, Link, Topology
from dgxcheck.topology.paths import Hop, hops_above, hops_between, sharers
from dgxcheck.topology.rates import nvlink_gbs

READ, WRITE = 0.77, 0.80
PCIE_SOURCE = "pinned host copies on PCIe generations 3 to 5 (gearshifft PR 82, DCGM, Azure AI benchmarking guide)"
PEER_SOURCE = f"assumed from {PCIE_SOURCE}: no published result for traffic that turns around in a switch"
NVLINK_SHARE = {
    1: (0.91, "18.4 of 20 GB/s per link, p2pBandwidthLatencyTest on a DGX-1 P100 (Tartan)"),
    2: (0.96, "47.9 of 50 GB/s on two links, p2pBandwidthLatencyTest on V100-SXM2 (Dell C4130)"),
    3: (0.91, "274 of 300 GB/s on 12 links, nvbandwidth README (A100)"),
    4: (0.82, "371 of 450 GB/s on 18 links, NVIDIA/nccl issue 1264 (H100)"),
}


class Expected(Record):
    """Bandwidth that a path should reach in one direction while nothing else runs, and the basis of the number."""

    medium: Literal["nvlink", "pci"]
    line_gbs: float | Missing
    """GB/s (1e9) of the narrowest part at line rate."""
    read_gbs: float | Missing
    """``a`` reads from ``b`` (from its host: host to device)."""
    write_gbs: float | Missing
    limit: str
    """The limiting part: the narrowest link, the NVLinks, or the part that is unknown."""
    method: str
    source: str
    hops: tuple[Hop, ...]
    notes: tuple[str, ...]


def to_host(device: Device, topology: Topology) -> Expected:
    """Copies between the device and host memory on the device's NUMA node; GB/s are Missing without a PCI path."""
    if isinstance(device.path, Missing):
        return _unknown(device.path, "PCI path", ())
    return _pci(hops_above(device.path, topology.functions), topology, READ, WRITE, ())


def between(a: Device, b: Device, link: Link, topology: Topology) -> Expected:
    """Copies between two devices: over NVLink if links are up, else over PCI; GB/s are Missing with the reason."""
    if link.nvlinks:
        return _nvlink(link, link.nvlinks)
    hops = hops_between(a, b, topology.functions)
    if isinstance(hops, Missing):
        return _unknown(hops, "PCI path", ())
    notes: tuple[str, ...] = ()
    if link.nvlinks is None:
        notes = ("NVLink is unknown: this is the PCI path.",)
    if link.pci == "SOC":
        gap = Missing(Gap.UNSUPPORTED, f"{a.name} {b.name}", "no published result for the socket interconnect")
        return _unknown(gap, "socket interconnect", hops, (*notes, *_sharing(hops, topology)))
    if link.pci is None:
        gap = Missing(Gap.ABSENT, f"{a.name} {b.name}", link.pci_reason)
        return _unknown(gap, "PCI path", hops, notes)
    if link.pci in ("PIX", "PXB"):
        return replace(_pci(hops, topology, READ, READ, notes), source=PEER_SOURCE)
    notes = (*notes, "Crosses a host bridge: on older hosts it carries far less than its links, especially for reads.")
    return _pci(hops, topology, READ, WRITE, notes)


def _nvlink(link: Link, links: int) -> Expected:
    rate = nvlink_gbs(link.nvlink_generation)
    if isinstance(rate, Missing):
        return _unknown(rate, "NVLink", (), medium="nvlink")
    line = links * rate
    limit = f"{links} NVLink{'s' if links > 1 else ''} of {rate:g} GB/s"
    share = NVLINK_SHARE.get(link.nvlink_generation or 0)
    if share is None:
        where = f"{link.a} {link.b}"
        gap = Missing(Gap.UNSUPPORTED, where, f"no recorded result for NVLink generation {link.nvlink_generation}")
        return _unknown(gap, limit, (), medium="nvlink", line=line)
    factor, source = share
    return Expected(
        medium="nvlink",
        line_gbs=line,
        read_gbs=line * factor,
        write_gbs=line * factor,
        limit=limit,
        method=f"{limit} x {factor}",
        source=source,
        hops=(),
        notes=(),
    )


def _pci(hops: tuple[Hop, ...], topology: Topology, read: float, write: float, notes: tuple[str, ...]) -> Expected:
    notes = (*notes, *_as_trained(hops), *_sharing(hops, topology))
    narrowest: Hop | None = None
    least = 0.0
    for hop in hops:
        if hop.skip_reason:
            continue
        gbs = hop.max_gbs
        if isinstance(gbs, Missing):
            return _unknown(gbs, f"link {hop}", hops, notes)
        if narrowest is None or gbs < least:
            narrowest, least = hop, gbs
    if narrowest is None:
        why = "; ".join(sorted({hop.skip_reason for hop in hops})) or "no dedicated PCIe link between them"
        return _unknown(Missing(Gap.UNSUPPORTED, "PCIe links", why), "PCI path", hops, notes)
    limit = f"link {narrowest}, both ends support gen{narrowest.max_gen} x{narrowest.max_width}, {least:.2f} GB/s"
    factors = f"{read} for reads and {write} for writes" if read != write else f"{read}"
    return Expected(
        medium="pci",
        line_gbs=least,
        read_gbs=least * read,
        write_gbs=least * write,
        limit=limit,
        method=f"line rate of the narrowest link x {factors}",
        source=PCIE_SOURCE,
        hops=hops,
        notes=notes,
    )


def _unknown(
    gap: Missing,
    limit: str,
    hops: tuple[Hop, ...],
    notes: tuple[str, ...] = (),
    medium: Literal["nvlink", "pci"] = "pci",
    line: float | None = None,
) -> Expected:
    return Expected(
        medium=medium,
        line_gbs=gap if line is None else line,
        read_gbs=gap,
        write_gbs=gap,
        limit=limit,
        method="",
        source="",
        hops=hops,
        notes=notes,
    )


def _as_trained(hops: tuple[Hop, ...]) -> tuple[str, ...]:
    """One sentence per link trained below what both its ends support."""
    notes = []
    for hop in hops:
        now, most = hop.gbs, hop.max_gbs
        if hop.skip_reason or isinstance(now, Missing) or isinstance(most, Missing) or now >= most:
            continue
        idle = "" if hop.narrow is True else "; idle GPUs lower their link speed, check again under load"
        notes.append(f"Link {hop} is currently trained at gen{hop.gen} x{hop.width}, {now:.2f} GB/s{idle}.")
    return tuple(notes)


def _sharing(hops: tuple[Hop, ...], topology: Topology) -> tuple[str, ...]:
    """One sentence per physical link shared by several devices."""
    shared = [(hop, sharers(hop, topology)) for hop in hops if not hop.skip_reason]
    return tuple(f"Link {hop} is shared by {', '.join(names)}." for hop, names in shared if len(names) > 1)
