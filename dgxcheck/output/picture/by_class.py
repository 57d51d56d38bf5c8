"""Devices whose place in the PCI tree is known from classes of pairs alone; functions beside those of devices.

An imported ``nvidia-smi topo`` matrix has no bus ids, but it says which devices share a switch, a host bridge, a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Literal, TypeVar

from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record
from dgxcheck.output.picture.marks import Mark
from dgxcheck.topology.model import Device, PciClass, Topology
from dgxcheck.topology.nvlinks import is_nvswitch

T = TypeVar("T")
_LEVELS: tuple[tuple[PciClass, str], ...] = (("PIX", "PCIe switch"), ("PXB", "PCIe switches"))


class DeviceGroup(Record):
    """Devices below one switch or host bridge."""

    kind: Literal["host-bridge", "switch"]
    name: str
    members: tuple[DeviceGroup | Device, ...]


def groups(topology: Topology, devices: Sequence[Device]) -> Iterator[tuple[int | None, DeviceGroup]]:
    """Host bridges with the number of their NUMA node, None where it is unknown."""
    trees: list[DeviceGroup | Device] = [*devices]
    near: set[PciClass] = set()
    for label, name in _LEVELS:
        near.add(label)
        trees = [
            same[0] if len(same) == 1 else DeviceGroup(kind="switch", name=name, members=tuple(same))
            for same in _joined(trees, lambda a, b: _is_within(topology, a, b, near))
        ]
    near.add("PHB")
    loose: dict[int | None, list[DeviceGroup | Device]] = {}
    for same in _joined(trees, lambda a, b: _is_within(topology, a, b, near)):
        nodes = {device.numa_node for tree in same for device in _devices(tree) if isinstance(device.numa_node, int)}
        node = nodes.pop() if len(nodes) == 1 else None
        if any(_is_within(topology, a, b, {"PHB"}) for a, b in combinations(same, 2)):
            yield node, DeviceGroup(kind="host-bridge", name="host bridge", members=tuple(same))
        else:
            loose.setdefault(node, []).extend(same)
    for node, members in loose.items():
        yield node, DeviceGroup(kind="host-bridge", name="host bridges not known", members=tuple(members))


def _devices(tree: DeviceGroup | Device) -> list[Device]:
    return [tree] if isinstance(tree, Device) else [each for member in tree.members for each in _devices(member)]


def _is_within(topology: Topology, a: DeviceGroup | Device, b: DeviceGroup | Device, near: set[PciClass]) -> bool:
    """Is any device of one as near to any of the other?"""
    return any(topology.link(one, other).pci in near for one in _devices(a) for other in _devices(b))


def _joined(trees: Sequence[T], together: Callable[[T, T], bool]) -> list[list[T]]:
    """The trees in sets of those that belong together, also through others, in order."""
    sets: list[list[T]] = []
    for tree in trees:
        own = [each for each in sets if any(together(tree, other) for other in each)]
        rest = [each for each in sets if each not in own]
        merged = [other for each in own for other in each] + [tree]
        sets = [*rest, merged]
    order = {id(tree): number for number, tree in enumerate(trees)}
    sets = [sorted(each, key=lambda tree: order[id(tree)]) for each in sets]
    return sorted(sets, key=lambda each: order[id(each[0])])


NVME = 0x0108
"""PCI class and subclass."""
_CLASSES = {
    NVME: "NVMe", 0x0200: "Ethernet", 0x0207: "HCA", 0x0106: "SATA", 0x0104: "RAID", 0x0302: "GPU", 0x0300: "GPU",
}  # fmt: skip


def others(topology: Topology, marks: Iterable[Mark], nvme: bool) -> tuple[str, ...]:
    """Functions beside GPUs and NICs to show: those that are marked, or that a marked link leads to, and NVMe disks."""
    marked = {at[1] for mark in marks for at in mark.at if at[0] in ("box", "link")}
    shown = {device.bdf for device in topology.devices}
    on_path = {bdf for each in topology.functions.values() if isinstance(each.path, tuple) for bdf in each.path[:-1]}
    return tuple(bdf for bdf, function in topology.functions.items() if bdf not in shown and bdf not in on_path
                 and (bdf in marked or (nvme and function.subclass == NVME)))


def class_name(function: PciFunction) -> str:
    """``NVMe``, ``Ethernet``"""
    return "NVSwitch" if is_nvswitch(function) else _CLASSES.get(function.subclass, "PCI device")
