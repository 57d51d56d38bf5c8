"""Where devices that are missing were."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.expected import is_of_baseboard
from dgxcheck.components.component import Component
from dgxcheck.components.containment import GPU_BASEBOARD
from dgxcheck.components.locate import off_the_bus
from dgxcheck.facts.ids import DISPLAY, NETWORK
from dgxcheck.facts.missing import Missing, known, rows
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import PCI_CLASSES, Device, PciClass
from dgxcheck.topology.paths import NEAR

DeviceType = Literal["GPU", "HCA"]
_KINDS = {"GPU": "gpu", "HCA": "nic"}
_NUMBERS = {"GPU": "gpu.count", "HCA": "network.hcas"}
_CLASSES = {"GPU": DISPLAY, "HCA": NETWORK}
_OTHER: Mapping[DeviceType, DeviceType] = {"GPU": "HCA", "HCA": "GPU"}


class _Place(Record):
    """The switch or host bridge below which a device is missing."""

    bridge: str
    """Bus id of the switch's upstream port, or the root bus."""
    is_switch: bool
    beside: tuple[str, ...]
    """Names of the devices below it that have fewer near them."""

    @property
    def name(self) -> str:
        bridge = "switch" if self.is_switch else "host bridge"
        return f"behind the {bridge} of {', '.join(self.beside)}"


def missing(box: Box, what: DeviceType) -> Component:
    """The place of a missing device; the place of a switch if GPUs and HCAs are missing below one host bridge; the
    board of all GPUs where none is there, or no more than half and these have no place in common.

    A port that leads to nothing says where it was; ports of one switch that all lead to nothing, that it is the switch.
    """
    ports = _left_empty(box, what)
    beside = ports and _left_empty(box, _OTHER[what])
    if (switch := _above_all(box, (*ports, *beside))) is not None:
        is_there = switch not in {path[-1] for path in ports}
        part = "empty PCIe switch" if is_there else "missing PCIe switch"
        return Component(kind="slot", name=switch if is_there else f"below {switch}", bdf=switch, part=part)
    if len(ports) == 1:
        return Component(kind="slot", name=f"below {ports[0][-1]}", bdf=ports[0][-1], part=f"missing {what}")
    place = _place(box, what)
    if place is None and what == "GPU" and _most_are_missing(box) and (of_all := baseboard(box)) is not None:
        return of_all
    if place is None:
        each = ", ".join(path[-1] for path in ports) if len(ports) == _absent(box, what) else ""
        return Component(kind="slot", name=f"below {each}" if each else "", part=f"missing {what}")
    both = not place.is_switch and place == _place(box, _OTHER[what])
    part = "missing PCIe switch" if both else f"missing {what}"
    return Component(kind="slot", name=place.name, bdf=place.bridge, part=part)


def _left_empty(box: Box, what: DeviceType) -> tuple[tuple[str, ...], ...]:
    """Paths of the ports that lead to nothing and led to the missing devices: by the last run, or because others of the
    kind stand below such ports in their parts of the tree, or of other switches, and there are no more of these than
    devices are missing.

    A whole branch can be gone: of too many ports those count that are the deepest. A root port to spare looks like one
    that lost its branch, so it counts if both kinds of devices are missing.
    """
    empty = _empty_ports(box)
    if not empty or not (number := _absent(box, what)):
        return ()
    above = {*box.topology.functions, *empty}
    earlier = (next((bdf for bdf in reversed(path) if bdf in above), "") for path in _earlier(box, what))
    if known := tuple(empty[bdf] for bdf in dict.fromkeys(earlier) if bdf in empty):
        return known
    inner = {bridge for path in empty.values() for bridge in path[1:-1]}
    places = [_branch(device.path[:-1]) for device in _there(box, what) if isinstance(device.path, tuple)]
    least = 1 if _absent(box, _OTHER[what]) else _BELOW_A_ROOT_PORT
    branches = {path: _branch(path) for bdf, path in empty.items() if bdf not in inner}
    found = [path for path, branch in branches.items() if branch in places
             or (len(branch) >= least and any(place[: len(branch)] == branch for place in places))]  # fmt: skip
    ends = [place[-2:] for place in places]
    found = found or [
        path for path, branch in branches.items() if len(branch) > _BELOW_A_ROOT_PORT and branch[-2:] in ends
    ]
    depth = max(map(len, found), default=0) if len(found) > number else 0
    deepest = tuple(path for path in found if len(path) >= depth)
    return deepest if len(deepest) <= number else ()


def _empty_ports(box: Box) -> dict[str, tuple[str, ...]]:
    paths = (known(box.snapshot.empty_ports) or {}).values()
    return {path[-1]: path for path in paths if isinstance(path, tuple)}


def unlike_other_switches(box: Box) -> dict[str, int]:
    """Ports of the only switch that has fewer GPUs than another, which lead to nothing where those of the other lead
    to GPUs, with the number of GPUs below such a port: machines have as many GPUs below each of their switches."""
    below: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for gpu in box.topology.gpus:
        path = rows(gpu.path)
        for at in range(_DOWNSTREAM, len(path) - 1):
            below[path[:at]][path[at].rpartition(":")[2]] += 1
    lesser: list[dict[str, int]] = []
    empty = _empty_ports(box)
    for switch, own in below.items():
        free = {bdf.rpartition(":")[2]: bdf for bdf, path in empty.items() if path[:-1] == switch}
        lacking = [other.keys() - own for other in below.values() if own.keys() < other.keys()]
        found = min((each for each in lacking if each <= free.keys()), key=len, default=set())
        lesser += [{free[number]: max(own.values()) for number in sorted(found)}] if found else []
    return lesser[0] if len(lesser) == 1 else {}


_DOWNSTREAM = 3
"""Before a downstream port in a path stand at least root bus, root port and upstream port."""
_BELOW_A_ROOT_PORT = 2
"""Bridges on the path of a port of a switch, at least."""


def _there(box: Box, what: DeviceType) -> list[Device]:
    return [device for device in box.topology.devices if device.kind == _KINDS[what] and device.is_vf is not True]


def _branch(path: Sequence[str]) -> list[str]:
    """Device and function numbers of the bridges, which are alike where a machine repeats itself: ``01.0``."""
    return [bridge.rpartition(":")[2] for bridge in path[1:]]


def _absent(box: Box, what: DeviceType) -> int:
    """How many are missing, by the reference machine, an earlier run, minor numbers that no GPU has, or other
    switches."""
    reference, before = box.number(_NUMBERS[what]), box.inventory.get(what)
    of_reference = len(box.reference_gpus if what == "GPU" else _there(box, what))
    gone = max(len(host_limits.minors_gone(box)), len(unlike_other_switches(box))) if what == "GPU" else 0
    return max(
        int(reference.value) - of_reference if reference is not None else 0,
        before.number - len(_there(box, what)) if before is not None else 0, gone,
    )


def _earlier(box: Box, what: DeviceType) -> Iterator[list[str]]:
    """Paths by the last run of devices that are gone."""
    for owner, values in (box.kept.values if box.kept is not None else {}).items():
        code, path = values.get("PciFunction.class_code"), values.get("PciFunction.path")
        is_kind = isinstance(code, int) and code >> 16 == _CLASSES[what]
        if is_kind and isinstance(path, list) and owner.partition(" ")[2] not in box.topology.functions:
            yield [str(bridge) for bridge in path[1:-1]]


def _above_all(box: Box, ports: Sequence[tuple[str, ...]]) -> str | None:
    """The bridge that several missing devices had in common and below which nothing is left; None where none is."""
    common = [each[0] for each in zip(*ports, strict=False) if len({*each}) == 1][1:]
    left = any(common[-1:] and common[-1] in rows(function.path) for function in box.topology.functions.values())
    return common[-1] if len(ports) > 1 and common and not left else None


def _most_are_missing(box: Box) -> bool:
    """Half of several GPUs or more: they are likelier to have one cause than each its own."""
    number, there = box.number("gpu.count"), len(box.reference_gpus)
    return not there or (number is not None and number.value - there > 1 and 2 * there <= number.value)


def baseboard(box: Box) -> Component | None:
    """The board that feeds all GPUs, while adapters of the host respond; None where they have none in common."""
    models = [box.board_id(gpu) for gpu in box.topology.gpus]
    models = models or [*(box.choice.profile.boards if box.choice is not None else ())]
    beside = any(device.bdf not in off_the_bus(box) for device in box.topology.nics)
    of_it = beside and any(id in box.boards and is_of_baseboard(box.boards[id].name) for id in models)
    return GPU_BASEBOARD if of_it else None


def place_of(box: Box, bdf: str | None) -> Iterator[Component]:
    """The place of a missing GPU, where a GPU was at this bus id and PCI does not list it any more."""
    number = box.number("gpu.count")
    if number is not None and len(box.reference_gpus) < number.value and bdf not in box.topology.functions:
        yield missing(box, "GPU")


def _place(box: Box, what: DeviceType) -> _Place | None:
    """Where it is missing; None if not known.

    Found at the nearest class of which some GPUs have fewer than every wiring of the reference machine gives them; or
    of which some HCAs have no GPU, if every GPU should have an HCA there.
    """
    wirings = box.choice.profile.wiring if box.choice is not None else ()
    expected_counts = [wiring.to_gpus if what == "GPU" else wiring.to_hcas for wiring in wirings]
    devices = [device for device in box.topology.devices if not isinstance(device.path, Missing)]
    gpus, hcas = ([device for device in devices if device.kind == kind] for kind in _KINDS.values())
    for near in PCI_CLASSES:
        expected = min((classes.get(near, 0) for classes in expected_counts), default=0)
        lacking = [gpu for gpu in gpus if _classes(box, gpu, what)[near] < expected]
        if lacking and len(lacking) < len(gpus):
            if near == "NODE":  # it is below a host bridge of its own
                return None
            # what lacks a device at the other socket is not where the device is missing
            return _below(lacking if near != "SOC" else [gpu for gpu in gpus if gpu not in lacking], near)
        if what == "GPU" and near in NEAR and wirings and all(wiring.to_hcas.get(near) for wiring in wirings):
            alone = [hca for hca in hcas if not _classes(box, hca, what)[near]]
            if alone and len(alone) < len(hcas) and (place := _below(alone, near)) is not None:
                return place
    return None


def _classes(box: Box, device: Device, what: DeviceType) -> Counter[PciClass]:
    """How many devices of a type it reaches at each PCI class."""
    others = [other for other in box.topology.devices if other.kind == _KINDS[what] and other is not device]
    return Counter(pci for other in others if (pci := box.topology.link(device, other).pci) is not None)


def _below(devices: Sequence[Device], near: PciClass) -> _Place | None:
    """The switch or host bridge that the devices have in common."""
    paths = [rows(device.path) for device in devices]
    common = [bridge for bridge in paths[0][:-2] if all(bridge in path for path in paths)]
    is_switch = near in NEAR
    if not common or (is_switch and len(common) < 2):
        return None
    names = tuple(device.name for device in devices)
    return _Place(bridge=common[-1] if is_switch else common[0], is_switch=is_switch, beside=names)
