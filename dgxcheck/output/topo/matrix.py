"""The matrix of ``dgxcheck topo -m``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.output.plain_text import columns, fit_columns, hidden_columns, lines, shown, visible
from dgxcheck.topology.model import Device, Link, Topology, is_printed


def row_names(topology: Topology, numbered_nics: bool) -> dict[str, str]:
    """Labels in the matrix by device name; ``numbered_nics``: NICn always, as in current nvidia-smi.

    A NIC that an imported matrix calls NICn keeps that number; the others get those that are free.
    """
    every = [device.name for device in topology.devices if device.kind != "gpu"]
    nics = [name for name in every if not is_printed(name)]
    numbered = numbered_nics or not all(map(_is_short_name, nics))
    names = {device.name: visible(device.name) for device in topology.devices}
    free = (name for name in map("NIC{}".format, count()) if name not in names)
    return names | dict(zip(nics, free, strict=False)) if numbered else names


def nic_legend(topology: Topology, names: dict[str, str]) -> list[str]:
    """``NIC0: mlx5_0 (0000:05:00.0)``, where the matrix shows other names."""
    nics = (device for device in topology.devices if device.kind != "gpu" and names[device.name] != device.name)
    return [f"{names[nic.name]}: {visible(nic.name)}{f' ({nic.bdf})' if nic.bdf else ''}" for nic in nics]


def _is_short_name(name: str) -> bool:
    """``mlx5_0`` is; ``ibp5s0``, ``rocep193s0f1`` and ``mlx5_bond_0`` need a legend."""
    driver, _, number = name.rpartition("_")
    return number.isdecimal() and driver.isalnum() and len(name) <= 8


LEGEND = {
    "X": "the device itself",
    "NV#": "joined by # NVLinks",
    "PIX": "at most one PCIe bridge: same switch or card",
    "PXB": "several PCIe bridges, no host bridge",
    "PHB": "a PCIe host bridge, usually the CPU",
    "NODE": "two host bridges of the same NUMA node",
    "SOC": "the interconnect between NUMA nodes; newer tools print SYS",
    "SYS": "the interconnect between NUMA nodes; older tools print SOC",
    "?": "unknown, for the reason below",
}


def cell(link: Link, pci_only: bool, labels: str) -> str:
    """The label of a pair; ``labels`` is ``soc`` or ``sys``, ``pci_only`` shows the PCI path in place of NVLinks."""
    label = link.pci_label if pci_only else link.label
    return "SYS" if label == "SOC" and labels == "sys" else label


def matrix(topology: Topology, pci_only: bool, labels: str, width: int | None, remarks: Sequence[str]) -> str:
    """The output of ``topo -m``: matrix, legend, notes and ``remarks``; ``width`` in columns, None for no limit."""
    if not topology.devices:
        nothing = "No NVIDIA GPUs and no InfiniBand devices found."
        if topology.nameless is not None:
            nothing = "Which PCI functions are GPUs is unknown: see topo --tree."
        return lines([nothing, *map(visible, topology.notes)])
    names = row_names(topology, numbered_nics=False)
    table, dropped = _tables(topology, names, pci_only, labels, width)
    shown_labels = {label for row in table for label in row.split()}
    nics = nic_legend(topology, names)
    headline = [visible(topology.headline)] if topology.headline else []
    below = ["", "Legend:", *_legend(shown_labels, labels)]
    if nics:
        below += ["", "NICs:", *(f"  {line}" for line in nics)]
    reasons = _unknown_cells(topology, names) if "?" in shown_labels else []
    if notes := [*reasons, *map(visible, topology.notes), *_narrow(topology), *remarks, *hidden_columns(dropped)]:
        below += ["", *notes]
    return lines([*headline, *table, *below])


def _narrow(topology: Topology) -> list[str]:
    """Links on fewer lanes than both ends support; imports the tree only if there may be one."""
    functions = topology.functions.values()
    lanes = [(function.link_width, function.max_link_width) for function in functions]
    if not any(isinstance(now, int) and isinstance(most, int) and now < most for now, most in lanes):
        return []
    from dgxcheck.output.topo.tree import narrow_links

    return narrow_links(topology)


def _tables(
    topology: Topology, names: dict[str, str], pci_only: bool, labels: str, width: int | None
) -> tuple[list[str], list[str]]:
    """The lines of the matrix, and the heads of the columns hidden to fit."""
    links, devices = topology.links, topology.devices
    peers = [
        [names[b.name], *(" X" if a is b else cell(links[a.name, b.name], pci_only, labels) for a in devices)]
        for b in devices
    ]
    head = ["", *(names[device.name] for device in devices)]
    affinities = [
        ["CPU Affinity", *(_affinity(device, device.cpu_affinity) for device in topology.devices)],
        ["NUMA Affinity", *(_affinity(device, device.numa_nodes or device.numa_node) for device in topology.devices)],
    ]
    if any(isinstance(device.gpu_numa_id, int) for device in topology.devices):
        affinities.append(["GPU NUMA ID", *(shown(_own_node(device)) for device in topology.devices)])
    return fit_columns(head, peers, affinities, width, len(topology.gpus))


def _affinity(device: Device, value: object) -> str:
    """The cell of an affinity; empty for NICs, as in nvidia-smi."""
    return shown(value) if device.kind == "gpu" else ""


def _own_node(device: Device) -> int | Missing | None:
    """The NUMA node of a GPU's memory; None where it is none, as of a card beside GPUs of Grace."""
    node = device.gpu_numa_id
    return None if isinstance(node, Missing) and node.gap is Gap.UNSUPPORTED else node


def _legend(shown_labels: set[str], labels: str) -> list[str]:
    other = "SYS" if labels == "soc" else "SOC"
    left_out = {other, *({"?"} - shown_labels)}
    return columns([(f"  {label}", f"= {text}") for label, text in LEGEND.items() if label not in left_out], " ")


def _unknown_cells(topology: Topology, names: Mapping[str, str]) -> list[str]:
    """Why a matrix shows ``?``, once each: devices without a PCI function, pairs without a label, affinities."""
    from dgxcheck.checks.engine.finding import first_of
    from dgxcheck.topology.nvidia_smi_topo import HIDDEN, NO_ID

    names_by_reason: dict[str, list[str]] = {}
    for device in topology.devices:
        if device.function is None and device.path != NO_ID:
            why = f"{device.path.where}: {device.path}" if isinstance(device.path, Missing) else "not on the PCI tree"
            names_by_reason.setdefault(f"no PCI function known ({why})", []).append(names[device.name])
    without_function = {device.name for device in topology.devices if device.function is None and device.path != NO_ID}
    for link in topology.links:
        hidden = link.nvlinks and link.pci_reason == HIDDEN
        if link.pci is None and not hidden and not {link.a, link.b} & without_function:
            names_by_reason.setdefault(link.pci_reason, []).append(f"{names[link.a]}-{names[link.b]}")
    for gpu in topology.gpus:
        for what, value in (("CPU affinity", gpu.cpu_affinity), ("NUMA affinity", gpu.numa_node)):
            if isinstance(value, Missing) and gpu.name not in without_function:
                file = value.where.rpartition("/")[2]
                names_by_reason.setdefault(f"{what} unknown ({file}: {value})", []).append(names[gpu.name])
    return [f"? {first_of(affected)}: {visible(reason)}" for reason, affected in names_by_reason.items()]
