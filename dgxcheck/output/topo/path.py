"""The path between two devices: every hop, and the expected bandwidth."""

from __future__ import annotations

from dgxcheck.bandwidth.expected import between
from dgxcheck.facts.bdf import shown
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.output.json_null import either
from dgxcheck.output.plain_text import columns, lines, visible
from dgxcheck.output.topo import bandwidth
from dgxcheck.output.topo.tree import hop_json, hop_text
from dgxcheck.topology.model import Device, Link, Machine, Topology
from dgxcheck.topology.paths import hops_between, meeting_point


def path(machine: Machine, a: Device, b: Device, label: str, labels: str) -> str:
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
        rows = [(f"  {visible(hop.port)} - {visible(hop.device)}", hop_text(hop), _gbs(hop.gbs)) for hop in hops]
        text += columns(rows) if rows else ["  no dedicated PCIe link between them"]
    return lines([*text, *bandwidth.text(between(machine, a, b))])


def as_json(machine: Machine, a: Device, b: Device) -> dict[str, Json]:
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
    return {"path": members | bandwidth.as_json(expected)}


def sentence(a: Device, b: Device, link: Link, label: str) -> str:
    """``topo -p``: the most direct path between two GPUs as a sentence."""
    ways = {
        "PIX": "a single PCIe switch",
        "PXB": "several PCIe bridges",
        "PHB": "a PCIe host bridge",
        "NODE": "two host bridges of one NUMA node",
        "SOC": "the interconnect between NUMA nodes",
    }
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


def _gbs(value: float | Missing) -> str:
    return "?" if isinstance(value, Missing) else f"{value:.2f} GB/s each way"
