"""The topology matrix as current drivers' nvidia-smi prints it: tabs, SYS, NICn, for scripts that parse it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.output.plain_text import lines, shown, visible, wording
from dgxcheck.output.topo.matrix import cell, row_names
from dgxcheck.topology.model import Device, Topology, is_printed
from dgxcheck.topology.nvidia_smi_topo import MATRIX

_ALL = 3
"""Columns beside the matrix."""
_NO_COLUMN = (Gap.UNRECORDED, MATRIX)


def matrix(topology: Topology, pci_only: bool) -> str:
    """Rows of tab-separated cells; an unknown label is ``?``, an unknown affinity ``N/A``.

    Of an imported matrix the columns that it has.
    """
    has_nodes = _printed([gpu.numa_node for gpu in topology.gpus])
    has_own = _printed([gpu.gpu_numa_id for gpu in topology.gpus])
    titles = ["CPU Affinity", *(["NUMA Affinity"] if has_nodes else []), *(["GPU NUMA ID"] if has_own else [])]
    names = row_names(topology, numbered_nics=True)
    heads = [names[device.name] for device in topology.devices]
    rows = ["\t".join(("", *heads, *titles))]
    links = topology.links
    for device in topology.devices:
        cells = [
            " X " if other is device else cell(links[device.name, other.name], pci_only, "sys")
            for other in topology.devices
        ]
        rows.append("\t".join((names[device.name], *cells, *_affinities(device, len(titles)))))
    nics = [f"  {names[nic.name]}: {visible(nic.name)}" for nic in topology.devices
            if nic.kind != "gpu" and not is_printed(nic.name)]
    legend = wording("nvidia-smi")  # labels and order are nvidia-smi's, the words are ours
    if pci_only:
        del legend["NV#"]
    below = ["", "Legend:", "", *(f"  {word:4} = {text}" for word, text in legend.items())]
    return lines([*rows, *below, *(["", "NIC Legend:", "", *nics] if nics else [])])


def _printed(values: Sequence[object]) -> bool:
    """Is there such a column, as current drivers have it?"""
    absent = (isinstance(value, Missing) and (value.gap, value.where) == _NO_COLUMN for value in values)
    return not values or not all(absent)


def _affinities(device: Device, titles: int) -> Iterator[str]:
    """CPUs, nodes, GPU NUMA ID: nvidia-smi puts two tabs before the last one and before N/A; NIC rows end empty."""
    if device.kind != "gpu":
        yield from [""] * (titles if titles < _ALL else titles + 1)
        return
    values = (device.cpu_affinity, device.numa_nodes or device.numa_node, device.gpu_numa_id)
    for at, value in enumerate(values[:titles]):
        is_read = isinstance(value, str | int)
        if at == _ALL - 1 or (at and not is_read):
            yield ""
        yield shown(value) if is_read else "N/A"
