"""The topology matrix as current drivers' nvidia-smi prints it: tabs, SYS, NICn, for scripts that parse it."""

from __future__ import annotations

from dgxcheck.output.plain_text import lines, shown, visible
from dgxcheck.output.topo.matrix import cell, row_names
from dgxcheck.topology.model import Device, Topology, is_printed

# Labels and order are nvidia-smi's, the words are ours
_LEGEND = (
    "  X    = Self",
    "  SYS  = crosses the interconnect between NUMA nodes",
    "  NODE = crosses the host bridges of one NUMA node",
    "  PHB  = crosses a PCIe host bridge",
    "  PXB  = crosses several PCIe bridges, no host bridge",
    "  PIX  = crosses at most one PCIe bridge",
    "  NV#  = crosses # bonded NVLinks",
)


def matrix(topology: Topology, pci_only: bool) -> str:
    """Rows of tab-separated cells; an unknown label is ``?``, an unknown affinity ``N/A``."""
    names = row_names(topology, numbered_nics=True)
    heads = [names[device.name] for device in topology.devices]
    rows = ["\t".join(("", *heads, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"))]
    links = topology.matrix()
    for device in topology.devices:
        cells = [
            " X " if other is device else cell(links[device.name, other.name], pci_only, "sys")
            for other in topology.devices
        ]
        rows.append("\t".join((names[device.name], *cells, *_affinities(device))))
    nics = [
        f"  {names[nic.name]}: {visible(nic.name)}"
        for nic in topology.devices
        if nic.kind != "gpu" and not is_printed(nic.name)
    ]
    legend = ["", "Legend:", "", *(line for line in _LEGEND if not (pci_only and "NV#" in line))]
    return lines([*rows, *legend, *(["", "NIC Legend:", "", *nics] if nics else [])])


def _affinities(device: Device) -> tuple[str, ...]:
    """CPUs, node, an empty cell, GPU NUMA ID: nvidia-smi puts two tabs before the last one; NIC rows end empty."""
    if device.kind != "gpu":
        return ("", "", "")
    values = (device.cpu_affinity, device.numa_node, device.gpu_numa_id)
    cpus, node, own = (value if isinstance(value, str | int) else "N/A" for value in values)
    return (shown(cpus), shown(node), "", shown(own))
