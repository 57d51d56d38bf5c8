"""The topology matrix as text: labels, affinities, legend, and how the box differs from its reference."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.output.matrix_names import nic_legend, row_names
from dgxcheck.output.plain import columns, lines, shown, visible
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
    headline, notes = _headline(topology)
    table = _tables(topology, names, pci_only, labels, width)
    seen = {label for row in table for label in row.split()}
    legend = _legend(seen, labels)
    nics = nic_legend(topology, names)
    below = ["", "Legend:", *legend]
    if nics:
        below += ["", "NICs:", *(f"  {line}" for line in nics)]
    reasons = _reasons(topology) if "?" in seen else []
    said = [*reasons, *notes, *remarks]
    if said:
        below += ["", *said]
    return lines([*headline, *table, *below])


def _headline(topology: Topology) -> tuple[list[str], list[str]]:
    """What goes above the matrix: that NVLink is unknown, where it is; all other notes go below."""
    first = [note for note in topology.notes if note.startswith("NVLink is unknown")]
    return [visible(note) for note in first], [visible(note) for note in topology.notes if note not in first]


def _tables(topology: Topology, names: dict[str, str], pci_only: bool, labels: str, width: int | None) -> list[str]:
    """The matrix in one block, in fewer columns or narrower where it must fit, else in blocks of whole columns."""
    peers = [_peer_column(topology, device, names, pci_only, labels) for device in topology.devices]
    head = ["", *(names[device.name] for device in topology.devices)]
    affinities = [
        ["CPU Affinity", *(_affinity(device, device.cpu_affinity) for device in topology.devices)],
        ["NUMA Affinity", *(_affinity(device, device.numa_node) for device in topology.devices)],
    ]
    if any(isinstance(device.gpu_numa_id, int) for device in topology.devices):
        affinities.append(["GPU NUMA ID", *(shown(device.gpu_numa_id) for device in topology.devices)])
    if width is None:
        return _rows([head, *peers, *affinities], "  ")
    for gap in ("  ", " "):
        for kept in range(len(affinities), -1, -1):
            table = _rows([head, *peers, *affinities[:kept]], gap)
            if max(map(len, table)) <= width:
                return table
    return _blocks(head, peers, width)


def _blocks(head: list[str], peers: list[list[str]], width: int) -> list[str]:
    blocks: list[str] = []
    start = 0
    while start < len(peers):
        end = len(peers)
        while end > start + 1 and max(map(len, _rows([head, *peers[start:end]], " "))) > width:
            end -= 1
        blocks += ([""] if blocks else []) + _rows([head, *peers[start:end]], " ")
        start = end
    return blocks


def _peer_column(topology: Topology, device: Device, names: dict[str, str], pci_only: bool, labels: str) -> list[str]:
    links = topology.matrix()
    column = [names[device.name]]
    for other in topology.devices:
        column.append(" X" if other is device else cell(links[other.name, device.name], pci_only, labels))
    return column


def _affinity(device: Device, value: object) -> str:
    """Affinities belong to GPUs, as nvidia-smi has it."""
    return shown(value) if device.kind == "gpu" else ""


def _rows(table: list[list[str]], gap: str) -> list[str]:
    return columns(list(zip(*table, strict=True)), gap)


def _legend(seen: set[str], labels: str) -> list[str]:
    other = "SYS" if labels == "soc" else "SOC"
    kept = {label: text for label, text in LEGEND.items() if label != other and (label != "?" or "?" in seen)}
    return columns([(f"  {label}", f"= {text}") for label, text in kept.items()], " ")


def _reasons(topology: Topology) -> list[str]:
    """Why cells show ``?``, each reason once, with how many pairs it stands for."""
    pairs: dict[str, list[str]] = {}
    for link in topology.links:
        if link.pci is None:
            pairs.setdefault(visible(link.pci_reason), []).append(f"{link.a}-{link.b}")
    return [
        f"? {', '.join(map(visible, found[:3]))}{f' and {len(found) - 3} more' if len(found) > 3 else ''}: {reason}"
        for reason, found in pairs.items()
    ]
