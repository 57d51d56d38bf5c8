"""Expected bandwidth of a path while nothing else runs: the least of what its parts carry, in each direction.

What a reference machine measured takes precedence over it (``checks/measurement/expectations.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dgxcheck.bandwidth.links import (
    Generation,
    LineRate,
    as_supported,
    between_devices,
    generation,
    link_limit,
    nvlink_limit,
    payload_of,
    physical,
    to_memory,
)
from dgxcheck.bandwidth.rate import Direction, Limit, Rate, Total, exactly, least_of, unknown
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device, Surveyed, Topology
from dgxcheck.topology.paths import NEAR, Hop, hops_above, hops_between, meeting_point, nvlink_gbs, sharers

PORT_SHARE = 0.9
"""Of the rate of an HCA's port."""
PORT_SOURCE = "Azure's node checks expect 180 of 200 Gbit/s with GPUDirect RDMA (check_ib_bw_gdr)"


class Expected(Record):
    """What a path should carry in one direction at a time."""

    medium: Literal["nvlink", "pci"]
    line_gbs: float | Missing
    """GB/s (1e9) of the slowest link, or of all NVLinks, at line rate."""
    read: Total
    """``a`` reads from ``b``; host to device; an HCA reads a GPU's memory."""
    write: Total
    limits: tuple[Limit, ...]
    """The parts of the path."""
    notes: tuple[str, ...]


def to_host(machine: Surveyed, device: Device, line: LineRate = as_supported) -> Expected:
    """Copies between the device and memory of its NUMA node, with links at ``line``'s rate."""
    if isinstance(device.path, Missing):
        return _nothing(device.path)
    hops = hops_above(device.path, machine.topology.functions)
    if not physical(hops):
        return _nothing(_no_link(hops))
    links = _links(machine, hops, line)
    root = to_memory(_host(machine), least_of(links, "read").rate, least_of(links, "write").rate)
    return _pci(machine, hops, (*links, root), line)


def between(machine: Surveyed, a: Device, b: Device, line: LineRate = as_supported) -> Expected:
    """Copies between two devices: over NVLink if links are up, else over PCI with links at ``line``'s rate."""
    link = machine.topology.link(a, b)
    if link.nvlinks:
        return _nvlink(link.nvlinks, link.nvlink_generation)
    if isinstance(hops := hops_between(a, b, machine.topology.functions), Missing):
        return _nothing(hops)
    notes = () if link.nvlinks is not None else ("NVLink is unknown: this is the PCI path.",)
    meeting = meeting_point(a, b, link, machine.topology.functions)
    if link.pci is None or isinstance(meeting, Missing):
        return _nothing(Missing(Gap.ABSENT, f"{a.name} {b.name}", link.pci_reason), notes)
    if not physical(hops):
        return _nothing(_no_link(hops), notes)
    host = _host(machine)
    splits_at = None if host is None or link.pci in NEAR else host.splits_at
    top = between_devices(meeting, link.pci, host, _line(hops, line))
    return _pci(machine, hops, (*_links(machine, hops, line, splits_at), top), line, notes)


def through_port(
    machine: Surveyed, gpu: Device, nic: Device, port_gbs: float | Missing, line: LineRate
) -> tuple[Rate, tuple[Limit, ...]]:
    """GPUDirect RDMA of a GPU and an HCA, the slower direction, and what limits it.

    ``port_gbs`` is the rate of the HCA's port; Missing where none is up, and then nothing is expected.
    """
    if isinstance(port_gbs, Missing):
        return unknown(port_gbs), ()
    rate = exactly(port_gbs * PORT_SHARE)
    basis = f"{PORT_SHARE} of its rate"
    port = Limit(name=f"port of {nic.name}", read=rate, write=rate, basis=basis, source=PORT_SOURCE)
    path = between(machine, gpu, nic, line)
    ways: tuple[Direction, ...] = ("read", "write")
    totals = [least_of((*path.limits, port), way) for way in ways]
    slower = Rate(_lower([total.rate.least for total in totals]), _lower([total.rate.most for total in totals]))
    return slower, tuple(limit for total in totals if total.rate.most == slower.most for limit in total.limited_by)


@or_gap
def _lower(bounds: list[float | Missing]) -> float:
    return min([need(bound) for bound in bounds])


def _host(machine: Surveyed) -> Generation | None:
    return generation(machine.snapshot.known_host.cpu)


def _links(machine: Surveyed, hops: tuple[Hop, ...], line: LineRate, splits_at: int | None = None) -> list[Limit]:
    payload = payload_of(hops, machine.snapshot.config_space)
    return [link_limit(hop, payload, line, splits_at) for hop in physical(hops)]


@or_gap
def _line(hops: Iterable[Hop], line: LineRate) -> float:
    """Of hops among which is a physical link."""
    return min(need(line(hop)) for hop in physical(hops))


def _pci(
    machine: Surveyed, hops: tuple[Hop, ...], limits: tuple[Limit, ...], line: LineRate, notes: tuple[str, ...] = ()
) -> Expected:
    return Expected(
        medium="pci", line_gbs=_line(hops, line), read=least_of(limits, "read"), write=least_of(limits, "write"),
        limits=limits, notes=(*notes, *_as_trained(hops), *_sharing(hops, machine.topology)),
    )  # fmt: skip


def _nvlink(links: int, generation: int | None) -> Expected:
    limit = nvlink_limit(links, generation)
    rate = nvlink_gbs(generation)
    line = rate if isinstance(rate, Missing) else links * rate
    total = least_of((limit,), "write")
    return Expected(medium="nvlink", line_gbs=line, read=total, write=total, limits=(limit,), notes=())


def _nothing(gap: Missing, notes: tuple[str, ...] = ()) -> Expected:
    limit = Limit(name="PCI path", read=unknown(gap), write=unknown(gap), basis="", source="")
    total = least_of((limit,), "read")
    return Expected(medium="pci", line_gbs=gap, read=total, write=total, limits=(limit,), notes=notes)


def _no_link(hops: Iterable[Hop]) -> Missing:
    why = "; ".join(sorted({hop.skip_reason for hop in hops})) or "no dedicated PCIe link between them"
    return Missing(Gap.UNSUPPORTED, "PCIe links", why)


def _as_trained(hops: tuple[Hop, ...]) -> tuple[str, ...]:
    """One sentence per link trained below what both its ends support."""
    notes = []
    for hop in physical(hops):
        now, most = hop.gbs, hop.max_gbs
        if isinstance(now, Missing) or isinstance(most, Missing) or now >= most:
            continue
        idle = "" if hop.narrow is True else "; idle GPUs lower their link speed, check again under load"
        notes.append(f"Link {hop} is currently trained at gen{hop.gen} x{hop.width}, {now:.2f} GB/s{idle}.")
    return tuple(notes)


def _sharing(hops: tuple[Hop, ...], topology: Topology) -> tuple[str, ...]:
    """One sentence per physical link shared by several devices."""
    shared = [(hop, sharers(hop, topology)) for hop in physical(hops)]
    return tuple(f"Link {hop} is shared by {', '.join(names)}." for hop, names in shared if len(names) > 1)
