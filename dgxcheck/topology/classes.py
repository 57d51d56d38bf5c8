"""The PCI class of a pair of functions, from their paths under ``/sys/devices`` and their NUMA nodes."""

from __future__ import annotations

from dgxcheck.facts.host import NumaNode
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.topology.model import PciClass

NEAR: tuple[PciClass, ...] = ("PIX", "PXB")
"""Classes below a shared PCIe switch: those NCCL uses for GPUDirect RDMA by default (``NCCL_NET_GDR_LEVEL``)."""


def numa_node(function: PciFunction, numa: tuple[NumaNode, ...] | Missing) -> int | Missing:
    """The kernel's ``numa_node`` of a function; if missing or negative, the only node of a single-node host."""
    node = function.numa_node
    if isinstance(node, int) and node >= 0:
        return node
    if not isinstance(numa, Missing) and len(numa) == 1:
        return numa[0].node
    where = f"/sys/bus/pci/devices/{function.bdf}/numa_node"
    return node if isinstance(node, Missing) else Missing(Gap.UNSUPPORTED, where, "the firmware reports no NUMA node")


def shared_bridges(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """How many bridges two paths below one root bus have in common, counted from the top."""
    count = 0
    for left, right in zip(a[1:-1], b[1:-1], strict=False):
        if left != right:
            break
        count += 1
    return count


def pci_class(a: PciFunction, b: PciFunction, numa: tuple[NumaNode, ...] | Missing) -> tuple[PciClass | None, str]:
    """The class that nvidia-smi prints for the pair, or None and the reason.

    A switch (upstream port and downstream ports) counts as one bridge, so one further bridge level on either side of
    the nearest common one is still PIX. Broadcom PEX88xxx show several levels in one chip: PXB, as nvidia-smi says too.
    """
    paths = []
    for function in (a, b):
        if isinstance(function.path, Missing):
            return None, f"PCI path of {function.bdf} unknown ({function.path})"
        if len(function.path) < 2:
            return None, f"PCI path of {function.bdf} has no root bus"
        paths.append(function.path)
    path_a, path_b = paths
    if path_a == path_b:
        return "PIX", ""
    if path_a[0] == path_b[0]:
        shared = shared_bridges(path_a, path_b)
        if not shared:
            return "PHB", ""
        deepest = max(len(path_a), len(path_b)) - 2 - shared
        return ("PIX" if deepest <= 1 else "PXB"), ""
    nodes = []
    for function in (a, b):
        node = numa_node(function, numa)
        if isinstance(node, Missing):
            return None, f"NUMA node of {function.bdf} unknown ({node})"
        nodes.append(node)
    return ("NODE" if nodes[0] == nodes[1] else "SOC"), ""
