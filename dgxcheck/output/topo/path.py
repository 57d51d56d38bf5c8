"""The path between two devices, hop by hop, and the bandwidth that is expected of it."""

from __future__ import annotations

from math import isinf

from dgxcheck.bandwidth.expected import Expected, between
from dgxcheck.bandwidth.rate import Direction, Rate
from dgxcheck.facts.bdf import shown
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.output.json_values import either
from dgxcheck.output.plain_text import columns, lines, visible
from dgxcheck.output.topo.tree import hop_json, hop_text
from dgxcheck.topology.model import Device, Link, Surveyed, Topology
from dgxcheck.topology.paths import hops_between, meeting_point


def path(machine: Surveyed, a: Device, b: Device, label: str, labels: str) -> str:
    """The path from ``a`` to ``b`` link by link, and its expected bandwidth."""
    topology = machine.topology
    link = topology.link(a, b)
    text = [f"{_title(a)} - {_title(b)}: {label}"]
    if link.nvlinks:
        generation = f" of generation {link.nvlink_generation}" if link.nvlink_generation else ""
        way = "through NVSwitches" if link.switched else "direct"
        text.append(f"NVLink   {link.nvlinks} up{generation}, {way}")
    elif link.nvlinks is None:
        text.append(f"NVLink   unknown: {visible(link.nvlink_reason)}")
    meeting = meeting_point(a, b, link, topology.functions)
    way = "SYS" if link.pci == "SOC" and labels == "sys" else link.pci or "?"
    text.append(f"PCI      {way}, {visible(str(meeting)) if link.pci else visible(link.pci_reason)}")
    hops = hops_between(a, b, topology.functions)
    if isinstance(hops, Missing):
        text.append(f"  hops unknown: {visible(str(hops))}")
    else:
        rows = [(f"  {visible(hop.port)} - {visible(hop.device)}", hop_text(hop),
                 "?" if isinstance(hop.gbs, Missing) else f"{hop.gbs:.2f} GB/s each way") for hop in hops]  # fmt: skip
        text += columns(rows) if rows else ["  no dedicated PCIe link between them"]
    return lines([*text, *bandwidth_text(between(machine, a, b))])


def as_json(machine: Surveyed, a: Device, b: Device) -> dict[str, Json]:
    """The member ``path`` of the JSON document."""
    topology = machine.topology
    link, expected = topology.link(a, b), between(machine, a, b)
    hops = hops_between(a, b, topology.functions)
    members: dict[str, Json] = {"a": a.name, "b": b.name, "label": link.label, "medium": expected.medium}
    if isinstance(hops, Missing):
        members |= either("hops", hops)
    else:
        members["hops"] = [hop_json(hop) for hop in hops]
    members |= either("meets_at", meeting_point(a, b, link, topology.functions))
    return {"path": members | bandwidth_as_json(expected)}


def sentence(a: Device, b: Device, link: Link, label: str) -> str:
    """``topo -p``: the most direct path between two GPUs as a sentence."""
    ways = {"PIX": "a single PCIe switch", "PXB": "several PCIe bridges", "PHB": "a PCIe host bridge",
            "NODE": "two host bridges of one NUMA node", "SOC": "the interconnect between NUMA nodes"}
    if link.nvlinks:
        way = f"{link.nvlinks} NVLinks" if link.nvlinks > 1 else "1 NVLink"
        return f"{visible(a.name)} reaches {visible(b.name)} over {way} ({label})."
    silent = "" if link.nvlinks is not None else f" NVLink is unknown: {visible(link.nvlink_reason)}."
    if link.pci is None:
        way = f"over an unknown path: {visible(link.pci_reason)}"
        return f"{visible(a.name)} reaches {visible(b.name)} {way}.{silent}"
    return f"{visible(a.name)} reaches {visible(b.name)} over {ways[link.pci]} ({label}).{silent}"


def is_known(topology: Topology, a: Device, b: Device) -> bool:
    """Are the label and every hop known? A missing published bandwidth does not count."""
    link = topology.link(a, b)
    hops = hops_between(a, b, topology.functions)
    if isinstance(hops, Missing) or any(isinstance(hop.narrow, Missing) and not hop.skip_reason for hop in hops):
        return False
    return link.pci is not None and link.nvlinks is not None


def _title(device: Device) -> str:
    return f"{visible(device.name)} ({device.bdf})" if shown(device.bdf) else visible(device.name)


_WAYS: tuple[Direction, ...] = ("read", "write")


def bandwidth_text(expected: Expected) -> list[str]:
    """The figure of each direction, the parts that limit it, the unknown parts, sources and notes."""
    totals = (expected.read, expected.write)
    if all(isinstance(total.rate.most, Missing) for total in totals):
        gap = expected.read.rate.most
        where = f"{gap.where}: " if isinstance(gap, Missing) else ""
        return [f"Expected bandwidth unknown: {visible(f'{where}{gap}')}", *_notes(expected)]
    rates = [f"{total.rate} {way}" for total, way in zip(totals, _WAYS, strict=True)]
    lines = [f"Expected {', '.join(rates)}, one direction at a time"]
    limits = dict.fromkeys(limit for total in totals for limit in total.limited_by)
    for basis in dict.fromkeys(limit.basis for limit in limits):
        names = ", ".join(limit.name for limit in limits if limit.basis == basis)
        lines.append(f"  limited by {visible(names)}{f': {visible(basis)}' if basis else ''}")
    gaps = dict.fromkeys((limit.name, way, str(limit.rate(way).least)) for total, way in zip(totals, _WAYS, strict=True)
                         for limit in total.unknown)  # fmt: skip
    lines += [f"  unknown for a {way}: {visible(name)}, {visible(why)}" for name, way, why in gaps]
    lines += [f"  {visible(source)}" for source in dict.fromkeys(limit.source for limit in expected.limits) if source]
    return [*lines, *_notes(expected)]


def _notes(expected: Expected) -> list[str]:
    return [f"  {visible(note)}" for note in expected.notes]


def bandwidth_as_json(expected: Expected) -> dict[str, Json]:
    """The members of the document: figures, bounds, and every part of the path."""
    members = either("line_gb_per_second", expected.line_gbs)
    for way, total in zip(_WAYS, (expected.read, expected.write), strict=True):
        members |= bounds(total.rate, f"{way}_")
        members[f"{way}_limited_by"] = [limit.name for limit in total.limited_by]
    limits: list[Json] = [
        {"name": limit.name, "basis": limit.basis, "source": limit.source, **bounds(limit.read, "read_"),
         **bounds(limit.write, "write_")}
        for limit in expected.limits
    ]  # fmt: skip
    return members | {"limits": limits, "notes": list(expected.notes)}


def bounds(rate: Rate, prefix: str = "") -> dict[str, Json]:
    """``expected``, which is null unless the figure is known, with ``at_least`` and ``at_most``."""
    figure = rate.most if rate.is_known else rate.least if isinstance(rate.least, Missing) else _BETWEEN
    named = {"expected": figure, "at_least": rate.least, "at_most": rate.most}
    members: dict[str, Json] = {}
    for word, value in named.items():
        unlimited = isinstance(value, float) and isinf(value)
        members |= either(f"{word}_{prefix}gb_per_second", _UNLIMITED if unlimited else value)
    return members


_BETWEEN = Missing(Gap.UNSUPPORTED, "bandwidth", "known between two bounds")
_UNLIMITED = Missing(Gap.UNSUPPORTED, "bandwidth", "carries what the other parts of the path do")
