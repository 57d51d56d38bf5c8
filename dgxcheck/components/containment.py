"""What is part of what: the one model by which a broken whole explains its parts.

Memory, clocks, power, cooling, BAR1 and NVLinks are in a GPU; ports in an HCA; devices below a PCIe link, switch and
host bridge, on a board, in a socket; NVSwitches in the fabric; all of it in the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from dgxcheck.components.component import HOST, Component, Key, host_part
from dgxcheck.components.locate import device_part, link_of, serial_of, switch_at
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Identity
from dgxcheck.topology.model import Device, Surveyed, Topology
from dgxcheck.topology.paths import hops_above

NVSWITCHES = host_part("NVSwitches")


def containers(machine: Surveyed, component: Component) -> Iterator[Key]:
    """Keys of all that a component is part of, the nearest first; not its own."""
    return (container.key for container in containing(machine, component))


def containing(machine: Surveyed, component: Component) -> Iterator[Component]:
    """All that a component is part of, the nearest first; not itself.

    The PCIe link directly above a device counts as part of the device: it ends there, and what a dead device does not
    answer shows at its link. Links further up contain the device.
    """
    if component.part:
        yield component.whole
    if component.kind == "nvswitch":
        yield NVSWITCHES
    for bdf in filter(None, (component.bdf, component.peer_bdf)):
        device = machine.topology.device(bdf)
        if device is not None and component.kind in ("link", "nvlink", "path", "port"):
            yield device_part(machine, device)
        elif component.kind == "port":
            yield Component(kind="hca", name=bdf, bdf=bdf)
        yield from above(machine, bdf)
    if component.key != HOST.key:
        yield HOST


def above(machine: Surveyed, bdf: str) -> Iterator[Component]:
    """Board, switches and links further up, host bridge, socket: what a device or bridge shares with others."""
    device, function = machine.topology.device(bdf), machine.topology.functions.get(bdf)
    if device is not None and device.kind == "gpu" and len(same := board(machine, device)) > 1:
        serial = str(serial_of(machine, same[0].bdf))
        yield Component(kind="board", name=serial, serial=serial, shared_by=tuple(gpu.name for gpu in same))
    path = _path(device or function)
    if path[1:]:
        yield from _bridges(machine, path)
    if (node := _node(machine, bdf)) is not None:
        below = _by_node(Identity(machine.topology)).get(node, ())
        yield Component(kind="socket", name=str(node), shared_by=below)


def board(machine: Surveyed, gpu: Device) -> tuple[Device, ...]:
    """The GPUs on the same board (a K80 carries two): those with its serial number behind its switch."""
    if (serial := serial_of(machine, gpu.bdf)) is None:
        return (gpu,)
    same = [other for other in machine.topology.gpus if serial_of(machine, other.bdf) == serial]
    near = [other for other in same if other is gpu or machine.topology.link(gpu, other).pci == "PIX"]
    return tuple(near) if len(near) > 1 else (gpu,)


def _bridges(machine: Surveyed, path: tuple[str, ...]) -> Iterator[Component]:
    """Of the bridges above a device: each switch, each link that ends in one of them, the host bridge."""
    for hop in reversed(hops_above(path, machine.topology.functions)):
        if hop.device in path[:-1]:
            yield switch_at(machine, hop.device)
            yield link_of(machine, hop)
    below = tuple(device.name for device in machine.topology.below(path[0]))
    yield Component(kind="host-bridge", name=path[0], shared_by=below)


def _node(machine: Surveyed, bdf: str) -> int | None:
    """NUMA node of a device, or of the first one below a bridge."""
    below = machine.topology.below(bdf)
    device = below[0] if below else machine.topology.device(bdf)
    if device is not None:
        return device.numa_node if isinstance(device.numa_node, int) else None
    function = machine.topology.functions.get(bdf)
    node = None if function is None else function.numa_node
    return node if isinstance(node, int) and node >= 0 else None


@lru_cache(maxsize=4)
def _by_node(topology: Identity) -> dict[int, tuple[str, ...]]:
    """Names of the devices at each NUMA node."""
    found: dict[int, list[str]] = {}
    for device in topology.facts.devices if isinstance(topology.facts, Topology) else ():
        if isinstance(device.numa_node, int):
            found.setdefault(device.numa_node, []).append(device.name)
    return {node: tuple(names) for node, names in found.items()}


def _path(of: Device | PciFunction | None) -> tuple[str, ...]:
    return () if of is None or isinstance(of.path, Missing) else of.path
