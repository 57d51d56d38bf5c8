"""The devices of a machine that have siblings: by kind and role, with all their fact records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Literal

from dgxcheck.checks.engine.box import HOST, Box, pci_subject
from dgxcheck.checks.engine.expected import model_family
from dgxcheck.checks.engine.finding import Subject
from dgxcheck.components.device_facts import records
from dgxcheck.components.locate import serial_of
from dgxcheck.facts.host import BlockDevice, NetInterface
from dgxcheck.facts.infiniband import IbDevice, PortState
from dgxcheck.facts.missing import Missing, known, need, or_none, rows, text_of
from dgxcheck.facts.pci import ROM, PciBars, PciFunction
from dgxcheck.facts.record import Record, remembered, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.survey import Snapshot
from dgxcheck.topology.nvlinks import is_nvswitch
from dgxcheck.topology.paths import NEAR

_CONTROLLERS = LazyPattern(
    r"(AVAGO|LSI|BROADCOM|ADAPTEC|ASR|ARECA|AMCC|3WARE|FTS|CISCO|LENOVO|DELL|HPE?|IBM|INTEL)\b", flags=re.IGNORECASE
)
"""SCSI vendors of RAID controllers, as lsscsi(8) prints them for their volumes; drives behind a plain SATA or NVMe
adapter have the vendor ``ATA`` or none, SAS drives that of their maker."""
_VIRTUAL = LazyPattern(
    r"QEMU|VBOX|VMware|Msft|Virtual|PERC|MegaRAID|MR\d{4}|LOGICAL VOLUME|ServeRAID|RAID|Elastic Block Store"
    r"|PersistentDisk|card-pd",
    flags=re.IGNORECASE,
)


def is_drive(disk: BlockDevice) -> bool:
    """Is it one physical drive? A disk without a model is taken for one."""
    vendor, model = (text_of(text).strip() for text in (disk.vendor, disk.model))
    return not _CONTROLLERS.match(vendor) and not _VIRTUAL.search(f"{vendor} {model}")


Kind = Literal["gpu", "nvlink", "hca", "port", "interface", "bridge", "function", "disk", "memory-controller", "node"]
Rows = Mapping[tuple[str | None, int | None], tuple[Record, ...]]
"""Records of the snapshot by bus id, and by NVLink position where they have one."""
STORAGE, NETWORK, BRIDGE = 0x01, 0x02, 0x06
"""PCI base classes."""


class Sibling(Record, many=True):
    """One device that is compared with others."""

    kind: Kind
    subject: Subject
    role: Hashable
    """Equal for devices that should be alike: model and use."""
    rows: tuple[Record, ...]
    place: Hashable = None
    """What the slot can do: capabilities of the bridges above."""
    board: Hashable = None
    """Position on a board that carries several GPUs."""
    image: Hashable = None
    """Which firmware images fit."""
    model: Hashable = None
    """Of a bridge: switches of several generations serve one kind of GPU."""
    below: frozenset[str] = frozenset()
    """Of a bridge: bus ids of what its link leads to. A fault of that link is found at its lower end."""


def siblings(box: Box, kinds: Collection[Kind]) -> Iterator[Sibling]:
    """Every device of these kinds that may have siblings; whether it has is seen from the roles."""
    rows = rows_by_device(box.snapshot)
    for of, found in _FINDERS.items():
        if not of.isdisjoint(kinds):
            yield from (sibling for sibling in found(box, rows) if sibling.kind in kinds)


def _gpus(box: Box, rows: Rows) -> Iterator[Sibling]:
    """The GPUs that NVML lists; model names are compared without the size of the memory."""
    serials = [serial_of(box, gpu.bdf) for gpu in box.topology.gpus]
    for number, gpu in enumerate(box.topology.gpus):
        family, serial = model_family(box, gpu), serials[number]
        if family and gpu.index is not None:
            on_board = (serials.count(serial), serials[:number].count(serial)) if serial is not None else None
            place, own = _place(box, gpu.path), rows.get((gpu.bdf, None), ())
            yield Sibling(kind="gpu", subject=box.subject(gpu), role=family, place=place, board=on_board, rows=own)


def _nvlinks(box: Box, by_place: Rows) -> Iterator[Sibling]:
    """NVLinks that are up; a link that is down has no version or speed."""
    gpus = {gpu.bdf: gpu for gpu in box.topology.gpus}
    for row in rows(box.snapshot.nvlink):
        gpu = gpus.get(row.bdf)
        if gpu is not None and row.up is True:
            subject = replace(box.subject(gpu), part=str(row.link))
            own = by_place.get((row.bdf, row.link), ())
            yield Sibling(kind="nvlink", subject=subject, role=model_family(box, gpu), rows=own)


def _hcas(box: Box, by_place: Rows) -> Iterator[Sibling]:
    """HCAs without virtual functions, their ports and the interfaces of the network stack on them; none where a
    reference machine's GPUs are all missing, which tell those for storage from the others."""
    matrix = box.topology.links
    layers = {row.device: frozenset(str(port.link_layer) for port in rows(row.ports))
              for row in rows(box.snapshot.ib_ports)}  # fmt: skip
    versions = gathered(((row.hca_type, layers.get(row.name)), row.fw_ver) for row in rows(box.snapshot.infiniband)
                        if isinstance(row.fw_ver, str))  # fmt: skip
    for row in rows(box.snapshot.infiniband) if box.topology.gpus or box.choice is None else ():
        device = box.topology.device(row.name)
        if row.is_vf is True or (device is not None and device.kind != "nic"):
            continue
        near = device is not None and any(matrix[device.name, gpu.name].pci in NEAR for gpu in box.topology.gpus)
        bdf = known(row.bdf)
        function = box.topology.functions.get(bdf or "")
        role = (_model(function) if function is not None else str(row.hca_type), near)
        place = _place(box, device.path) if device is not None else None
        own = (row, *by_place.get((bdf, None), ()))
        image = _image(row, function, versions.get((row.hca_type, layers.get(row.name)), ()))
        at = Subject(kind="hca", name=row.name, bdf=bdf)
        hca = Sibling(kind="hca", subject=at, role=role, place=place, rows=own, image=image)
        yield hca
        yield from _ports(box, row, hca)


def _image(row: IbDevice, function: PciFunction | None, versions: Sequence[str]) -> Hashable:
    """``board_id`` names the firmware images that fit; else the model and board of PCI do; else the model, where all
    others of it with such ports run the same of these ``versions`` (ibstat): of another board there is seldom one."""
    if isinstance(row.board_id, str):
        return row.board_id
    numbers = sorted(Counter(versions).values())
    alone = len(numbers) == 2 and numbers[0] == 1 and numbers[1] >= _LEAST_OTHERS
    return (row.hca_type if alone else row.name) if function is None else _model(function)


_LEAST_OTHERS = 3
"""Fewer may be adapters of two boards."""


def _ports(box: Box, device: IbDevice, hca: Sibling) -> Iterator[Sibling]:
    """Ports that are up: a port that is down prints the rate 10 (4X SDR), which means nothing. The second port of a
    card may be made or cabled for less than the first."""
    own = (row for row in rows(box.snapshot.ib_ports) if row.device == device.name)
    for port in (port for row in own for port in rows(row.ports)):
        if port.state in (PortState.ACTIVE, PortState.ACTIVE_DEFER):
            subject = replace(hca.subject, kind="port", name=f"{device.name}/{port.port}", part=str(port.port))
            position = (hca.subject.bdf or "")[-1:], port.port
            yield Sibling(kind="port", subject=subject, role=(hca.role, port.link_layer, position), rows=(port,))
    for row in rows(box.snapshot.network):
        if row.bdf == hca.subject.bdf and row.bdf is not None and row.operstate == "up":
            subject = Subject(kind="interface", name=row.name, bdf=hca.subject.bdf)
            yield Sibling(kind="interface", subject=subject, role=(hca.role, row.type), rows=(row,))


def _bridges(box: Box, rows: Rows) -> Iterator[Sibling]:
    """Root ports and ports of switches above a GPU or HCA: alike where all that is below them is."""
    below: dict[str, Counter[Hashable]] = {}
    depth: dict[str, int] = {}
    next_below: dict[str, set[str]] = {}
    uses = {device.bdf: device.kind for device in box.topology.devices}
    wanted = {bridge for device in box.topology.devices for bridge in _bridges_above(device.path)}
    for function in box.topology.functions.values():
        for upper in _bridges_above(function.path)[-1:]:
            next_below.setdefault(upper, set()).add(function.bdf)
        if function.subclass >> 8 != BRIDGE or is_nvswitch(function):
            for level, bridge in enumerate(_bridges_above(function.path)):
                below.setdefault(bridge, Counter())[_model(function), uses.get(function.bdf)] += 1
                depth[bridge] = level
    for bdf in sorted(wanted):
        if (port := box.topology.functions.get(bdf)) is not None:
            model = port.vendor if depth.get(bdf) == 0 else (port.vendor, port.device)
            role = (model, depth.get(bdf), frozenset(below.get(bdf, Counter()).items()))
            yield Sibling(
                kind="bridge", subject=pci_subject(bdf), role=role, rows=rows.get((bdf, None), ()),
                model=_model(port), below=frozenset(next_below.get(bdf, ())),
            )  # fmt: skip


def _functions(box: Box, rows: Rows) -> Iterator[Sibling]:
    """NVSwitches, DMA functions of HCAs, and adapters for storage and network that are no HCAs."""
    bdfs = {device.bdf for device in box.topology.devices}
    for function in box.topology.functions.values():
        adapter = function.subclass >> 8 in (STORAGE, NETWORK) or function.is_data_direct
        if function.bdf not in bdfs and (adapter or is_nvswitch(function)):
            place = _place(box, function.path)
            subject, own = pci_subject(function.bdf), rows.get((function.bdf, None), ())
            yield Sibling(kind="function", subject=subject, role=_model(function), place=place, rows=own)


def _disks(box: Box, _: Rows) -> Iterator[Sibling]:
    """Drives; the volumes of a RAID controller or hypervisor bear its model and have the sizes that a site chose."""
    for row in rows(box.snapshot.disks):
        if isinstance(row.model, str) and is_drive(row):
            subject = Subject(kind="disk", name=row.name, bdf=None)
            vendor = row.vendor if isinstance(row.vendor, str) else None
            yield Sibling(kind="disk", subject=subject, role=(vendor, row.model), rows=(row,))


def _memory_controllers(box: Box, _: Rows) -> Iterator[Sibling]:
    for row in rows(box.snapshot.edac):
        yield Sibling(kind="memory-controller", subject=replace(HOST, part=row.name), role="", rows=(row,))


def _nodes(box: Box, _: Rows) -> Iterator[Sibling]:
    """NUMA nodes with CPUs; those of GPU memory and of memory expanders are of another kind."""
    for node in rows(box.snapshot.numa):
        if isinstance(node.cpulist, str) and node.cpulist:
            own = [row for row in rows(box.snapshot.numa_memory) if row.node == node.node]
            yield Sibling(kind="node", subject=replace(HOST, part=f"node{node.node}"), role="", rows=(node, *own))


def _model(function: PciFunction) -> Hashable:
    """Ids that are equal for one model; of a function whose ids are not known its own address, so that it has none."""
    ids = (function.vendor, function.device, function.subsystem_vendor, function.subsystem_device)
    if not function.ids:
        return function.bdf
    return tuple(each if isinstance(each, int) else None for each in ids)


def _bridges_above(path: tuple[str, ...] | Missing) -> tuple[str, ...]:
    return rows(path)[1:-1]


@or_none
def _place(box: Box, path: tuple[str, ...] | Missing) -> Hashable:
    """Vendor and capabilities of each bridge above; None where the path is not known."""
    above = [box.topology.functions.get(bridge) for bridge in need(path)[1:-1]]
    return tuple(None if each is None else (each.vendor, each.max_link_gen, each.max_link_width) for each in above)


@remembered(2)
def rows_by_device(snapshot: Snapshot) -> Rows:
    """Every record with a bus id, whichever field of the snapshot holds it: a new field is found by itself."""
    found: dict[tuple[str | None, int | None], list[Record]] = {}
    for _, row in records(snapshot):
        bdf, link = getattr(row, "bdf", None), getattr(row, "link", None)
        if isinstance(bdf, str) and not isinstance(row, IbDevice | NetInterface):
            found.setdefault((bdf, link), []).append(_without_rom(row))
    return {device: tuple(rows) for device, rows in found.items()}


def _without_rom(row: Record) -> Record:
    """The expansion ROM of the boot display is the firmware's copy of it, of another size."""
    if not isinstance(row, PciBars) or isinstance(row.bars, Missing):
        return row
    return replace(row, bars=tuple(bar for bar in row.bars if bar.line != ROM))


_FINDERS: Mapping[frozenset[Kind], Callable[[Box, Rows], Iterator[Sibling]]] = {
    frozenset({"gpu"}): _gpus,
    frozenset({"nvlink"}): _nvlinks,
    frozenset({"hca", "port", "interface"}): _hcas,
    frozenset({"bridge"}): _bridges,
    frozenset({"function"}): _functions,
    frozenset({"disk"}): _disks,
    frozenset({"memory-controller"}): _memory_controllers,
    frozenset({"node"}): _nodes,
}
