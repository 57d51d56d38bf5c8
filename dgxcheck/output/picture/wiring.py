"""What a picture shows of a machine: NUMA nodes, host bridges, PCIe switches and devices, each with the link above it.

Bridges that are ports of one switch are one node, and so are the functions of one card.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from dgxcheck.facts.bdf import bus_order
from dgxcheck.facts.bdf import shown as known_bdf
from dgxcheck.facts.memory import NumaNode
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.output.picture.by_class import DeviceGroup, class_name, groups
from dgxcheck.output.picture.marks import At
from dgxcheck.output.plain_text import visible
from dgxcheck.topology.model import Device, Topology
from dgxcheck.topology.paths import Hop, hops_above

NodeKind = Literal["host-bridge", "switch", "card", "gpu", "nic", "other"]
UNKNOWN_NODE = "NUMA node unknown"


class TreeNode(Record):
    """A host bridge, a switch, a card of several functions, or a device."""

    kind: NodeKind
    key: str
    """Root bus, bus id, or the name of a device without one; different for each node of a picture."""
    name: str
    hop: Hop | None = None
    """The physical link above it; None where there is none, or where it is not known."""
    bdf: str = ""
    """Of a device."""
    parts: tuple[str, ...] = ()
    """Bus ids of all ports that belong to it."""
    children: tuple[TreeNode, ...] = ()
    gone: bool = False
    """Is it missing, or a GPU that NVML does not list while it lists others?"""


class Panel(Record):
    """What is near one NUMA node."""

    node: int | None
    title: str
    cpus: str
    """Empty where unknown."""
    children: tuple[TreeNode, ...]


def panels(
    topology: Topology, numa: tuple[NumaNode, ...] | Missing, also: Collection[str] = (), ghosts: Collection[At] = ()
) -> tuple[Panel, ...]:
    """One for each NUMA node that has a device, by number; last what is near none that is known.

    ``also`` are bus ids of other functions to show: disks, NVSwitches; ``ghosts`` stand where devices are missing.
    """
    nodes_of_host = (*_from_paths(topology, also), *_from_classes(topology))
    by_node = gathered((number, _haunted(node, ghosts)) for number, node in nodes_of_host)
    cpus: dict[int | None, str | Missing] = {each.node: each.cpulist for each in rows(numa)}
    for gpu in topology.gpus:
        if isinstance(gpu.numa_node, int) and isinstance(gpu.cpu_affinity, str):
            cpus.setdefault(gpu.numa_node, gpu.cpu_affinity)
    return tuple(
        Panel(
            node=number,
            title=UNKNOWN_NODE if number is None else f"NUMA node {number}",
            cpus=f"CPUs {visible(cpu_list)}" if isinstance(cpu_list := cpus.get(number), str) and cpu_list else "",
            children=tuple(nodes),
        )
        for number, nodes in sorted(by_node.items(), key=lambda item: (item[0] is None, item[0] or 0))
    )


def _haunted(node: TreeNode, ghosts: Collection[At]) -> TreeNode:
    """The node with what is missing below it, after what is like it."""
    children = [_haunted(child, ghosts) for child in node.children]
    for _, above, what in (each for each in ghosts if each[1] in (node.key, *node.parts)):
        name = what.rpartition(" ")[0]
        kinds: Mapping[str, NodeKind] = {"GPU": "gpu", "HCA": "nic"}
        kind = kinds.get(name, "switch")
        last = max((number for number, child in enumerate(children, 1) if child.kind == kind), default=len(children))
        children.insert(last, TreeNode(kind=kind, key=f"{above} {what}", name=name, gone=True))
    return replace(node, children=tuple(children))


def devices_below(nodes: Iterable[TreeNode]) -> Iterable[TreeNode]:
    """GPUs, NICs and disks below these nodes, in order."""
    for node in nodes:
        if node.kind in ("gpu", "nic", "other"):
            yield node
        yield from devices_below(node.children)


def _from_paths(topology: Topology, also: Collection[str]) -> Iterable[tuple[int | None, TreeNode]]:
    """Host bridges with their NUMA node, by bus."""
    listed = any(gpu.index is not None for gpu in topology.gpus)
    unlisted = {_key(gpu, topology) for gpu in topology.gpus if listed and gpu.index is None}
    found: list[tuple[tuple[str, ...], NodeKind, str, str, int | Missing]] = [
        (device.path, "gpu" if device.kind == "gpu" else "nic", _name(device, topology), _key(device, topology),
         device.numa_node)
        for device in topology.devices
        if device.bdf and isinstance(device.path, tuple) and not _is_folded(device, topology)
    ]  # fmt: skip
    others = [function for bdf in also if (function := topology.functions.get(bdf)) is not None]
    found += [(each.path, "other", class_name(each), each.bdf, each.numa_node) for each in others
              if isinstance(each.path, tuple)]  # fmt: skip
    shown = gathered((row[0][0], row) for row in found)
    for root in sorted(shown, key=bus_order):
        rows = sorted(shown[root], key=lambda row: [bus_order(part) for part in row[0]])
        nodes = {node for *_, node in rows if isinstance(node, int) and node >= 0}
        children = _below([(_physical_hops(row[0], topology.functions), *row[:4]) for row in rows], unlisted)
        bridge = TreeNode(kind="host-bridge", key=root, name=f"host bridge {root.removeprefix('pci')}", parts=(root,),
                      children=children)  # fmt: skip
        yield (min(nodes) if len(nodes) == 1 else None), bridge


PathToDevice = tuple[list[tuple[Hop, tuple[str, ...]]], tuple[str, ...], NodeKind, str, str]
"""Links still above a device with the bus ids of the switch below each; its path, kind, name and key."""


def _physical_hops(path: tuple[str, ...], functions: Mapping[str, PciFunction]) -> list[tuple[Hop, tuple[str, ...]]]:
    """The physical links above a device, from the root down, with the ports of the switch at the lower end of each."""
    found: list[tuple[Hop, tuple[str, ...]]] = []
    for hop in hops_above(path, functions):
        if hop.skip_reason and found and hop.device != path[-1]:
            found[-1] = found[-1][0], (*found[-1][1], hop.port, hop.device)
        else:
            found.append((hop, (hop.device,)))
    return found


def _below(rows: Sequence[PathToDevice], unlisted: Collection[str]) -> tuple[TreeNode, ...]:
    """The nodes of the first level of these rows; those behind one link of several functions as one card."""
    nodes: dict[str, list[PathToDevice]] = {}
    for row in rows:
        hops = row[0]
        at_end = not hops or hops[0][0].device == row[1][-1]
        below = f"{hops[0][0].port} card" if at_end and hops else row[1][-1] if at_end else hops[0][0].device
        nodes.setdefault(below, []).append(row)
    found = []
    for same in nodes.values():
        hops, path, kind, name, key = same[0]
        hop = hops[0][0] if hops else None
        if hop is not None and hop.device != path[-1]:
            parts = tuple({part: None for row in same for part in row[0][0][1]})
            children = _below([(row[0][1:], *row[1:]) for row in same], unlisted)
            switch = TreeNode(
                kind="switch", key=hop.device, name="PCIe switch", hop=hop, parts=parts, children=children
            )
            found.append(switch)
        elif len(same) == 1:
            gone = key in unlisted
            found.append(TreeNode(kind=kind, key=key, name=name, hop=hop, bdf=path[-1], parts=(path[-1],), gone=gone))
        else:
            functions = tuple(
                TreeNode(kind=kind, key=key, name=name, bdf=path[-1], parts=(path[-1],))
                for _, path, kind, name, key in same
            )
            found.append(TreeNode(kind="card", key=f"card {path[-1]}", name="", hop=hop, children=functions))
    return tuple(found)


def _is_folded(device: Device, topology: Topology) -> bool:
    """A virtual function beside its physical one, which counts it."""
    return device.is_vf is True and bool(_physical(device, topology))


def _physical(device: Device, topology: Topology) -> str:
    """The name of the first physical function behind the same port; empty where there is none."""
    port = rows(device.path)[:-1]
    return next((each.name for each in topology.adapters if port and rows(each.path)[:-1] == port), "")


def _name(device: Device, topology: Topology) -> str:
    """A GPU that NVML does not list without its bus id, which stands below; an HCA with the number of its VFs."""
    name = visible(device.name.removesuffix(f"@{device.bdf}"))
    if device.kind == "gpu":
        return name
    virtual = sum(
        other.is_vf is True and isinstance(other.path, tuple) and _physical(other, topology) == device.name
        for other in topology.devices
    )
    return f"{name} +{virtual} VF" if virtual else name


def _from_classes(topology: Topology) -> Iterable[tuple[int | None, TreeNode]]:
    """Devices without a PCI path (an imported matrix), by the classes of their pairs."""
    pathless = [device for device in topology.devices if device.bdf is None or not isinstance(device.path, tuple)]
    for number, (node, tree) in enumerate(groups(topology, pathless)):
        yield node, _group(tree, f"group{number}", topology)


def _group(tree: DeviceGroup | Device, key: str, topology: Topology) -> TreeNode:
    if isinstance(tree, Device):
        kind: NodeKind = "gpu" if tree.kind == "gpu" else "nic"
        name = visible(tree.name.removesuffix(f"@{tree.bdf}"))
        parts = tuple(filter(None, (tree.bdf, tree.name)))
        return TreeNode(kind=kind, key=_key(tree, topology), name=name, bdf=known_bdf(tree.bdf) or "", parts=parts)
    children = tuple(_group(member, f"{key}.{number}", topology) for number, member in enumerate(tree.members))
    return TreeNode(kind=tree.kind, key=key, name=tree.name, children=children)


def _key(device: Device, topology: Topology) -> str:
    """The bus id; with the name where several devices share one PCI function (ConnectX-3, multi-plane HCAs)."""
    same = [other for other in topology.devices if other.bdf == device.bdf]
    return f"{device.bdf} {device.name}" if device.bdf and len(same) > 1 else device.bdf or device.name
