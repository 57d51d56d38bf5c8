"""Why a matrix shows ``?``: each reason once, with the names of the matrix."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Missing
from dgxcheck.output.plain_text import visible
from dgxcheck.topology.model import Topology
from dgxcheck.topology.stated import HIDDEN, NO_ID

SHOWN = 4


def unknown(topology: Topology, names: Mapping[str, str]) -> list[str]:
    """Reasons of devices without a PCI function, of single pairs, and of affinities."""
    who: dict[str, list[str]] = {}
    for device in topology.devices:
        if device.function is None and device.path != NO_ID:
            why = f"{device.path.where}: {device.path}" if isinstance(device.path, Missing) else "not on the PCI tree"
            who.setdefault(f"no PCI function is known ({why})", []).append(names[device.name])
    without = {device.name for device in topology.devices if device.function is None and device.path != NO_ID}
    for link in topology.links:
        hidden = link.nvlinks and link.pci_reason == HIDDEN
        if link.pci is None and not hidden and not {link.a, link.b} & without:
            who.setdefault(link.pci_reason, []).append(f"{names[link.a]}-{names[link.b]}")
    for gpu in topology.gpus:
        for what, value in (("CPU affinity", gpu.cpu_affinity), ("NUMA affinity", gpu.numa_node)):
            if isinstance(value, Missing) and gpu.name not in without:
                file = value.where.rpartition("/")[2]
                who.setdefault(f"{what} is not known ({file}: {value})", []).append(names[gpu.name])
    return [f"? {_some(found)}: {visible(reason)}" for reason, found in who.items()]


def _some(found: list[str]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
