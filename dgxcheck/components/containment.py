"""What is part of what: the one model by which a broken whole explains its parts.

Memory, clocks, power, cooling, BAR1 and NVLinks are in a GPU; ports in an HCA; devices below a PCIe link, switch and
host bridge, on a board, in a socket; NVSwitches in the fabric; all of it in the host.
"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.components.component import HOST, Component, Key
from dgxcheck.components.locate import Machine, link_of, serial_of, switch_at
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import hops_above

NVSWITCHES: Key = ("host", "host", "NVSwitches")


def containers(machine: Machine, component: Component) -> Iterator[Key]:
    """Keys of all that a component is part of, the nearest first; not its own.

    The PCIe link directly above a device counts as part of the device: it ends there, and what a dead device does not
    answer shows at its link. Links further up contain the device.
    """
    if component.part:
        yield component.whole.key
    if component.kind == "port" and component.bdf is not None:
        yield "hca", component.bdf, ""
    if component.kind == "nvswitch":
        yield NVSWITCHES
    for bdf in (component.bdf, component.peer_bdf):
        device = machine.topology.device(bdf) if bdf is not None else None
        if device is not None:
            if component.kind in ("link", "nvlink", "path"):
                yield "gpu" if device.kind == "gpu" else "hca", bdf or "", ""
            yield from _above_device(machine, device)
        elif component.kind in ("link", "switch", "bridge"):
            yield from _above_bridge(machine, component)
    if component.key != HOST.key:
        yield HOST.key


def board(machine: Machine, gpu: Device) -> tuple[Device, ...]:
    """The GPUs on the same board (a K80 carries two): those with its serial number behind its switch."""
    serial = serial_of(machine, gpu.bdf)
    if serial is None:
        return (gpu,)
    same = [other for other in machine.topology.gpus if serial_of(machine, other.bdf) == serial]
    near = [other for other in same if other is gpu or machine.topology.link(gpu, other).pci == "PIX"]
    return tuple(near) if len(near) > 1 else (gpu,)


def _above_device(machine: Machine, device: Device) -> Iterator[Key]:
    """Board, switches, links further up, host bridge, socket."""
    if device.kind == "gpu" and len(same := board(machine, device)) > 1:
        yield "board", str(serial_of(machine, same[0].bdf)), ""
    if not isinstance(device.path, Missing):
        yield from _path_keys(machine, device, device.path[:-1])
    if isinstance(device.numa_node, int):
        yield "socket", str(device.numa_node), ""


def _above_bridge(machine: Machine, component: Component) -> Iterator[Key]:
    for device in machine.topology.devices:
        if not isinstance(device.path, Missing) and component.bdf in device.path:
            yield from _path_keys(machine, device, device.path[: device.path.index(component.bdf)])
            if isinstance(device.numa_node, int):
                yield "socket", str(device.numa_node), ""
            return


def _path_keys(machine: Machine, device: Device, above: tuple[str, ...]) -> Iterator[Key]:
    """Of the bridges above a device: each switch, each link that ends in one of them, the host bridge."""
    if isinstance(device.path, Missing):
        return
    for hop in reversed(hops_above(device.path, machine.topology.functions)):
        if hop.device in above:
            yield switch_at(machine, hop.device).key
            yield link_of(machine, hop).key
    if above:
        yield "host-bridge", above[0], ""
