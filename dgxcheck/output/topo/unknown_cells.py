"""Why a matrix shows ``?``: each reason once, with the names of the matrix."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.wording import first_of
from dgxcheck.facts.missing import Missing
from dgxcheck.output.plain_text import visible
from dgxcheck.topology.model import Topology
from dgxcheck.topology.nvidia_smi_topo import HIDDEN, NO_ID


def unknown_cell_reasons(topology: Topology, names: Mapping[str, str]) -> list[str]:
    """One line per reason: devices without a PCI function, pairs without a label, affinities."""
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
