"""The field replaceable units of a component: what a technician looks for, and what a vendor asks for first."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.components.component import Component
from dgxcheck.components.containment import board
from dgxcheck.components.locate import fallen, serial_of
from dgxcheck.facts.gpu import GpuBoard
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device, Surveyed, slot_of

_SHARED = ("switch", "bridge", "host-bridge", "socket", "gpus")
"""What no unit can be taken for: many devices are behind it."""


class Fru(Record):
    """One unit; what is not known of it is empty."""

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
        slot=_text(slot_of(device, machine.snapshot.slots)),
        serial=serial_of(machine, device.bdf) or fallen(machine).get(device.bdf or "", ""),
        part_number=_text(own.part_number) if own else "", position=_position(own, boards) if own else "",
    )  # fmt: skip


def _position(own: GpuBoard, boards: Sequence[GpuBoard]) -> str:
    """Nothing of modules whose numbers repeat, as in virtual machines."""
    modules = [each.module_id for each in boards]
    module = own.module_id if modules.count(own.module_id) == 1 else Missing(Gap.GARBLED, "module id")
    said = (("tray", own.tray), ("slot in the rack", own.chassis_slot), ("module", module))
    return ", ".join(f"{word} {number}" for word, number in said if isinstance(number, int))


def _text(value: str | Missing) -> str:
    return "" if isinstance(value, Missing) else value
