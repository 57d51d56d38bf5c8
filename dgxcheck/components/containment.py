"""What is part of what: the one model by which a broken whole explains its parts; the units that can be replaced.

Memory, clocks, power, cooling, BAR1 and NVLinks are in a GPU; ports in an HCA; devices below a PCIe link, switch and
host bridge, on a board, in a socket; NVSwitches in the fabric; all of it in the host. What the reset of an
adapter takes down too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dgxcheck.components.component import HOST, Component, Key, host_part
from dgxcheck.components.locate import device_part, fallen, link_of, serial_of, switch_at
from dgxcheck.facts.bdf import card_of
from dgxcheck.facts.ids import MELLANOX, PCI_BRIDGE
from dgxcheck.facts.missing import Gap, Missing, rows, text_of
from dgxcheck.facts.nvml.gpu import GpuBoard
from dgxcheck.facts.record import Record, remembered
from dgxcheck.facts.typical import gathered
from dgxcheck.topology.model import Device, Surveyed, Topology, slot_of
from dgxcheck.topology.paths import hops_above

NVSWITCHES = host_part("NVSwitches")
GPU_BASEBOARD = host_part("GPU baseboard")
"""Of SXM modules: it feeds GPUs and NVSwitches, and connects them to the host."""
COMPUTE_BOARDS = host_part("compute boards")
"""Of a Grace and the GPUs beside it, one or two in a machine: a Grace that runs has power on its board."""
OF_SLOT = "device"
"""Part of a PCIe slot: the device that does not respond there, whatever it is."""
BOARDS = (GPU_BASEBOARD.part, COMPUTE_BOARDS.part)


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
        if device is not None and component.kind in ("link", "nvlink", "path", "port", "interface"):
            yield device_part(machine, device)
        elif component.kind == "port":
            yield Component(kind="hca", name=bdf, bdf=bdf)
        elif component.kind in ("interface", "function"):
            yield Component(kind="slot", name=bdf, bdf=bdf, part=OF_SLOT)
        yield from above(machine, bdf)
    if component.key != HOST.key:
        yield HOST


def above(machine: Surveyed, bdf: str) -> Iterator[Component]:
    """Board, switches and links further up, host bridge, socket: what a device or bridge shares with others."""
    device, function = machine.topology.device(bdf), machine.topology.functions.get(bdf)
    if device is not None and device.kind == "gpu" and len(same := board(machine, device)) > 1:
        serial = next((own for gpu in same if (own := serial_of(machine, gpu.bdf)) is not None), "")
        name = serial or same[0].bdf or ""
        yield Component(kind="board", name=name, serial=serial, shared_by=tuple(gpu.name for gpu in same))
    at = device or function
    path = () if at is None else rows(at.path)
    if path[1:]:
        yield from _bridges(machine, path)
    if (node := _node(machine, bdf)) is not None:
        below = _by_node(machine.topology).get(node, ())
        yield Component(kind="socket", name=str(node), shared_by=below)


def board(machine: Surveyed, gpu: Device) -> tuple[Device, ...]:
    """The GPUs on the same board (a K80 carries two): those with its serial number behind its switch.

    One of those that are lost has no serial number any more, and the only switch above two K80 GPUs alone is their own.
    """
    if (serial := serial_of(machine, gpu.bdf)) is None and not is_k80(gpu):
        return (gpu,)
    same = [other for other in machine.topology.gpus if other is gpu or _is_on_board(machine, gpu, other, serial)]
    near = [other for other in same if other is gpu or machine.topology.link(gpu, other).pci == "PIX"]
    return tuple(near) if len(near) > 1 else (gpu,)


def _is_on_board(machine: Surveyed, gpu: Device, other: Device, serial: str | None) -> bool:
    theirs = serial_of(machine, other.bdf)
    return is_k80(gpu) and is_k80(other) if None in (serial, theirs) else theirs == serial


def is_k80(gpu: Device) -> bool:
    """Is the GPU one of the two of a K80 board?"""
    return gpu.function is not None and (gpu.function.vendor, gpu.function.device) == _K80


_K80 = (0x10DE, 0x102D)


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
    topology = machine.topology
    below = topology.below(bdf)
    at = below[0] if below else topology.device(bdf) or topology.functions.get(bdf)
    node = None if at is None else at.numa_node
    return node if isinstance(node, int) and node >= 0 else None


@remembered()
def _by_node(topology: Topology) -> dict[int, tuple[str, ...]]:
    """Names of the devices at each NUMA node."""
    found = gathered((each.numa_node, each.name) for each in topology.devices if isinstance(each.numa_node, int))
    return {node: tuple(names) for node, names in found.items()}


_SHARED = ("switch", "bridge", "host-bridge", "socket", "gpus")
"""What no unit can be taken for: many devices are behind it."""


class Fru(Record):
    """One field replaceable unit: what a technician looks for, and what a vendor asks for first; empty if unknown."""

    name: str
    """``GPU2``; both GPUs of a K80 board: ``GPU2, GPU3``."""
    bdf: str
    slot: str
    serial: str
    part_number: str
    position: str = ""
    """Where it sits on the baseboard and in the rack, as NVML has it: ``tray 3, module 2``."""


def frus(machine: Surveyed, component: Component) -> tuple[Fru, ...]:
    """The GPUs or adapters that it is, is a part of or ends at, each board once; none is what supplies it."""
    of_several = component.kind in _SHARED or (component.kind == "link" and len(component.shared_by) > 1)
    if of_several or component.part == "power supply":
        return ()
    gone = {bdf: serial for bdf, serial in fallen(machine).items() if bdf not in machine.topology.functions}
    if component.bdf in gone or (component.part == "missing GPU" and gone):
        found = [component.bdf] if component.bdf in gone else gone
        return tuple(Fru(name="GPU", bdf=bdf, slot="", serial=gone[bdf], part_number="") for bdf in found)
    ends = {component.bdf, component.peer_bdf} - {None}
    names = component.shared_by if component.kind in ("link", "board") else ()
    devices = (device for device in machine.topology.devices if device.bdf in ends or device.name in names)
    return tuple(dict.fromkeys(_unit(machine, device) for device in devices))


def _unit(machine: Surveyed, device: Device) -> Fru:
    units = board(machine, device) if device.kind == "gpu" else (device,)
    boards = rows(machine.snapshot.gpu_board)
    own = next((each for each in boards if each.bdf == device.bdf), None)
    return Fru(
        name=", ".join(unit.name for unit in units), bdf=units[0].bdf or "",
        slot=text_of(slot_of(device, machine.snapshot.slots)),
        serial=serial_of(machine, device.bdf) or fallen(machine).get(device.bdf or "", ""),
        part_number=text_of(own.part_number) if own else "", position=_position(own, boards) if own else "",
    )  # fmt: skip


def _position(own: GpuBoard, boards: Sequence[GpuBoard]) -> str:
    """Nothing of modules whose numbers repeat, as in virtual machines."""
    modules = [each.module_id for each in boards]
    module = own.module_id if modules.count(own.module_id) == 1 else Missing(Gap.GARBLED, "module id")
    numbered_places = (("tray", own.tray), ("slot in the rack", own.chassis_slot), ("module", module))
    return ", ".join(f"{word} {number}" for word, number in numbered_places if isinstance(number, int))


def gpus_behind(topology: Topology, adapters: Collection[str | None]) -> tuple[str, ...]:
    """Names of the GPUs below a bridge that the adapter, or its DMA function, stands below too and that is its make.

    A ConnectX-8 is the switch of a GPU on HGX B300 and of a Direct NIC's (linux-rdma/rdma-core kernel-boot/rdma_topo);
    ``mlxfwreset --sync 2`` resets such a switch with its adapter (MFT 4.33 release notes).
    """
    ends = [function for bdf, function in topology.functions.items() if bdf in adapters]
    ends += [device.dma for device in topology.devices if device.dma is not None and device.bdf in adapters]
    bridges = {
        bdf for end in ends if not isinstance(end.path, Missing) and end.vendor == MELLANOX
        for bdf in end.path[1:-1] if _is_own(topology, bdf)
    }  # fmt: skip
    return tuple(
        gpu.name for gpu in topology.gpus if not isinstance(gpu.path, Missing) and not bridges.isdisjoint(gpu.path)
    )


def functions_beside(topology: Topology, adapters: Collection[str | None]) -> tuple[str, ...]:
    """Names of the other PCI functions of these adapters: ``mstfwreset`` resets the chip that they share."""
    cards = {card_of(bdf) for bdf in adapters if bdf is not None}
    return tuple(
        device.name for device in topology.adapters
        if device.bdf is not None and device.bdf not in adapters and card_of(device.bdf) in cards
    )  # fmt: skip


def _is_own(topology: Topology, bdf: str) -> bool:
    bridge = topology.functions.get(bdf)
    code = None if bridge is None else bridge.class_code
    return bridge is not None and bridge.vendor == MELLANOX and isinstance(code, int) and code >> 8 == PCI_BRIDGE
