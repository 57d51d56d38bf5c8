"""The topology matrix as text: labels, affinities, legend, and how the box differs from its reference."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.output.plain_text import columns, fitted, left_out, lines, shown, visible
from dgxcheck.output.topo.row_names import nic_legend, row_names
from dgxcheck.topology.model import Device, Link, Topology

LEGEND = {
    "X": "the device itself",
    "NV#": "# NVLinks join the two",
    "PIX": "one PCIe switch (or one card) joins the two",
    "PXB": "several PCIe bridges, but no host bridge, lie between",
    "PHB": "a PCIe host bridge lies between, usually the CPU",
    "NODE": "two host bridges of the same NUMA node lie between",
    "SOC": "the interconnect between NUMA nodes lies between; newer tools print SYS",
    "SYS": "the interconnect between NUMA nodes lies between; older tools print SOC",
    "?": "not known, for the reason given below",
}


def cell(link: Link, pci_only: bool, labels: str) -> str:
    """The label of a pair: SOC or SYS as asked, NV# left out for PCI paths alone."""
    label = (link.pci or "?") if pci_only else link.label
    return "SYS" if label == "SOC" and labels == "sys" else label


def matrix(topology: Topology, pci_only: bool, labels: str, width: int | None, remarks: Sequence[str]) -> str:
    """The whole answer to ``topo -m``; ``width`` None keeps every column, ``remarks`` go below the legend."""
    if not topology.devices:
        nothing = "No NVIDIA GPU and no InfiniBand device is known on this machine."
        return lines([nothing, *map(visible, topology.notes)])
    names = row_names(topology, numbered_nics=False)
    table, dropped = _tables(topology, names, pci_only, labels, width)
    seen = {label for row in table for label in row.split()}
    nics = nic_legend(topology, names)
    headline = [visible(topology.headline)] if topology.headline else []
    below = ["", "Legend:", *_legend(seen, labels)]
    if nics:
        below += ["", "NICs:", *(f"  {line}" for line in nics)]
    reasons = _unknown(topology, names) if "?" in seen else []
    said = [*reasons, *map(visible, topology.notes), *_narrow(topology), *remarks, *left_out(dropped)]
    if said:
        below += ["", *said]
    return lines([*headline, *table, *below])


def _unknown(topology: Topology, names: dict[str, str]) -> list[str]:
    from dgxcheck.output.topo.unknown_cells import unknown

    return unknown(topology, names)


def _narrow(topology: Topology) -> list[str]:
    """Links that run on fewer lanes than both ends have, where a quick look shows that there may be some."""
    functions = topology.functions.values()
    lanes = [(function.link_width, function.max_link_width) for function in functions]
    if not any(isinstance(now, int) and isinstance(most, int) and now < most for now, most in lanes):
        return []
    from dgxcheck.output.topo.tree import narrow_links

    return narrow_links(topology)


def _tables(
    topology: Topology, names: dict[str, str], pci_only: bool, labels: str, width: int | None
) -> tuple[list[str], list[str]]:
    """The matrix, and the columns that it had to do without."""
    links = topology.matrix()
    peers = [_peer_column(topology, links, device, names, pci_only, labels) for device in topology.devices]
    head = ["", *(names[device.name] for device in topology.devices)]
    affinities = [
        ["CPU Affinity", *(_affinity(device, device.cpu_affinity) for device in topology.devices)],
        ["NUMA Affinity", *(_affinity(device, device.numa_node) for device in topology.devices)],
    ]
    if any(isinstance(device.gpu_numa_id, int) for device in topology.devices):
        affinities.append(["GPU NUMA ID", *(shown(device.gpu_numa_id) for device in topology.devices)])
    return fitted(head, peers, affinities, width)


def _peer_column(
    topology: Topology,
    links: dict[tuple[str, str], Link],
    device: Device,
    names: dict[str, str],
    pci_only: bool,
    labels: str,
) -> list[str]:
    column = [names[device.name]]
    for other in topology.devices:
        column.append(" X" if other is device else cell(links[other.name, device.name], pci_only, labels))
    return column


def _affinity(device: Device, value: object) -> str:
    """Affinities belong to GPUs, as nvidia-smi has it."""
    return shown(value) if device.kind == "gpu" else ""


def _legend(seen: set[str], labels: str) -> list[str]:
    other = "SYS" if labels == "soc" else "SOC"
    kept = {label: text for label, text in LEGEND.items() if label != other and (label != "?" or "?" in seen)}
    return columns([(f"  {label}", f"= {text}") for label, text in kept.items()], " ")
