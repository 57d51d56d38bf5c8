"""The HCAs and their ports: which there are, which are expected to be alike, and the judges that look at every port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable

from dgxcheck.checks.driver.bound import models
from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Judge, ruled, saying
from dgxcheck.checks.engine.finding import Instead, Judged, Judgement, Subject, given, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import or_total
from dgxcheck.components.component import ETHERNET_FABRIC, INFINIBAND_FABRIC, SUBNET_MANAGER, Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MELLANOX
from dgxcheck.facts.infiniband import IbDevice, IbPort, PortState
from dgxcheck.facts.missing import Gap, Missing, NeededFact, need, or_gap, rows, text_of
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import remembered, replace
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import NEAR

Ports = list[tuple[IbDevice, IbPort]]
"""Each with its adapter."""
UP = (PortState.ACTIVE, PortState.ACTIVE_DEFER)
_NO_PORTS = skip("not-supported", "no InfiniBand device has a port")
NO_HCAS = skip("not-supported", "no InfiniBand devices")


@or_gap
def hcas(box: Box) -> tuple[IbDevice, ...] | Missing:
    """InfiniBand and RoCE devices without virtual functions, and without those that lead to NVSwitches."""
    devices, names = need(box.snapshot.infiniband), _bridge_names(box)
    return tuple(each for each in devices if not _is_virtual(each, devices) and each.name not in names)


def _is_virtual(device: IbDevice, devices: tuple[IbDevice, ...]) -> bool:
    """Where nothing shows it (ibstat) by its model, if physical functions are beside it: a guest has only virtual ones.
    """
    if not isinstance(device.is_vf, Missing):
        return device.is_vf
    virtual = {f"MT{number}" for number in models("virtual")}
    return device.hca_type in virtual and any(each.hca_type not in virtual for each in devices)


@or_gap
def bridges(box: Box) -> tuple[IbDevice, ...] | Missing:
    """The InfiniBand devices that lead to NVSwitches."""
    names = _bridge_names(box)
    return tuple(device for device in need(box.snapshot.infiniband) if device.name in names)


def _bridge_names(box: Box) -> set[str]:
    return {device.name for device in box.topology.devices if device.kind == "nvswitch-bridge"}


def subject(device: IbDevice) -> Subject:
    """An HCA by name and bus id."""
    return Subject(kind="hca", name=device.name, bdf=None if isinstance(device.bdf, Missing) else device.bdf)


def listed_hcas(box: Box) -> tuple[IbDevice, ...] | Judgement:
    """``hcas``, never empty; or the skip that stands for them."""
    devices = hcas(box)
    return none_here(devices) if isinstance(devices, Missing) else devices or NO_HCAS


def none_here(gap: Missing) -> Judgement:
    """What stands in place of judgements about HCAs where ``/sys/class/infiniband`` cannot be read."""
    return NO_HCAS if gap.gap is Gap.ABSENT else unjudged(gap)


def in_flash_recovery(box: Box) -> list[PciFunction]:
    """Adapters that run no firmware, by their PCI device ids."""
    functions = box.topology.functions.values()
    return [function for function in functions if function.vendor == MELLANOX and function.device in models("recovery")]


def ports(box: Box, adapters: Callable[[Box], tuple[IbDevice, ...] | Missing] = hcas) -> Ports | Judgement:
    """The ports of all HCAs without virtual functions, never empty; or the skip that stands for them."""
    try:
        devices, read = need(adapters(box)), need(box.snapshot.ib_ports)
    except NeededFact as needed:
        return none_here(needed.gap)
    by_name = {device.name: device for device in devices}
    listed = [(by_name[row.device], port) for row in read if row.device in by_name for port in rows(row.ports)]
    return listed or _NO_PORTS


@or_gap
def ports_of(box: Box, hca: str) -> tuple[IbPort, ...] | Missing:
    """The ports of one HCA, by its name."""
    unrecorded = Missing(Gap.UNRECORDED, f"/sys/class/infiniband/{hca}/ports")
    return next((row.ports for row in need(box.snapshot.ib_ports) if row.device == hca), unrecorded)


def listed_ports(box: Box) -> Ports:
    """The same; none where a skip stands for them."""
    listed = ports(box)
    return [] if isinstance(listed, Judgement) else listed


@or_gap
def gbit_per_s(port: IbPort) -> float:
    """Rate of a port in Gbit/s; 0 where it is not up."""
    return need(port.rate).gbit_per_s if need(port.state) in UP else 0.0


def port_gbs(box: Box, nic: Device) -> float | None:
    """GB/s of the fastest port of an HCA that is up; None where none is known to be up."""
    rates = [gbit_per_s(port) for port in rows(ports_of(box, nic.name))]
    return max((rate for rate in rates if isinstance(rate, float)), default=0.0) / 8 or None


def is_first(device: IbDevice, port: IbPort) -> bool:
    """The first port of an InfiniBand card; the second may be made or cabled for less, and the rate of RoCE varies."""
    return port.link_layer == "InfiniBand" and position_of(device, port)[1:] == ("0", 1)


def port_subject(device: IbDevice, port: IbPort) -> Subject:
    """A port as the configuration names it, at the PCI function behind it."""
    return replace(subject(device), kind="port", name=name_of(port), part=str(port.port))


def name_of(port: IbPort) -> str:
    """``mlx5_1/1``"""
    return f"{port.device}/{port.port}"


def file_of(port: IbPort, name: str) -> str:
    """A file of the port under ``/sys/class/infiniband``."""
    return f"/sys/class/infiniband/{port.device}/ports/{port.port}/{name}"


def position_of(device: IbDevice, port: IbPort) -> tuple[str, str, int]:
    """Kind of card, function and port: the second port of a card may be made or cabled for less."""
    bdf = device.bdf if isinstance(device.bdf, str) else ".0"
    return text_of(device.hca_type), bdf.rpartition(".")[2], port.port


def waits_for(at: Subject) -> Component:
    """The subnet manager that one port waits for."""
    return Component(kind="subnet-manager", name=f"at port {at.name}", bdf=at.bdf)


def behind(box: Box, at: Subject) -> Component:
    """The fabric that a port leads to."""
    layers = {port.link_layer for _, port in listed_ports(box) if name_of(port) == at.name}
    return ETHERNET_FABRIC if layers == {"Ethernet"} else INFINIBAND_FABRIC


def fabric(box: Box, at: Subject, judgement: Judgement) -> Component | None:
    """Behind what all ports have; a disabled port is disabled on its own."""
    if judgement.fault is Fault.PORT_DISABLED:
        return None
    return SUBNET_MANAGER if judgement.fault is Fault.NO_SUBNET_MANAGER else behind(box, at)


LEAST = 3
"""Fewer others make no majority: two adapters of one model may serve two networks."""


@remembered(64)  # every port is compared with every other
def role(box: Box, device: IbDevice) -> tuple[Hashable, ...] | None:
    """Model, board, function number and functions of its card, and whether a GPU shares its PCIe switch; None where the
    model or the place is not known.

    A card for storage is often of the same chip as those for computing, but on another board, or behind no switch.
    """
    if isinstance(device.bdf, Missing) or isinstance(device.hca_type, Missing):
        return None
    card, _, function = device.bdf.rpartition(".")
    bdfs = [each.bdf for each in rows(hcas(box)) if isinstance(each.bdf, str)]
    functions = sum(bdf.startswith(f"{card}.") for bdf in bdfs)
    pci = box.topology.functions.get(device.bdf)
    board = None if pci is None else tuple(
        None if isinstance(each, Missing) else each for each in (pci.device, pci.subsystem_vendor, pci.subsystem_device)
    )  # fmt: skip
    return device.hca_type, board, function, functions, _is_near_gpu(box, device)


@remembered(64)
def is_apart(box: Box, device: IbDevice) -> bool:
    """Is it an adapter for storage, by its place: does no GPU share its PCIe switch, while GPUs share those of others?
    """
    return not _is_near_gpu(box, device) and any(_is_near_gpu(box, each) for each in rows(hcas(box)))


def _is_near_gpu(box: Box, device: IbDevice) -> bool:
    nic = box.topology.device(device.bdf) if isinstance(device.bdf, str) else None
    return nic is not None and any(box.topology.link(gpu, nic).pci in NEAR for gpu in box.topology.gpus)


def same_cards(box: Box, bdfs: Collection[str | None]) -> set[str]:
    """Bdfs of all adapters on cards like these: what one fabric joins; another may be for storage."""
    kinds = {device.bdf: role(box, device) for device in rows(hcas(box)) if isinstance(device.bdf, str)}
    cards = {bdf: kind and (*kind[:2], *kind[3:]) for bdf, kind in kinds.items()}  # whichever function
    return {bdf for bdf, card in cards.items() if card in [cards.get(each or "") for each in bdfs]}


def twins(box: Box, device: IbDevice, port: IbPort, listed: Ports) -> Ports:
    """The ports of the same number on the other adapters in the same role."""
    own = role(box, device)
    return [
        (other, each) for other, each in listed
        if other is not device and each.port == port.port and own is not None and role(box, other) == own
    ]  # fmt: skip


def odd_link_layer(box: Box, device: IbDevice, port: IbPort, listed: Ports) -> str | None:
    """The link layer that three quarters of at least three twins have, where this port has another; else None."""
    layers = [each.link_layer for _, each in twins(box, device, port, listed) if isinstance(each.link_layer, str)]
    if len(layers) < LEAST or isinstance(port.link_layer, Missing):
        return None
    usual, count = Counter(layers).most_common(1)[0]
    return usual if usual != port.link_layer and 4 * count >= 3 * len(layers) else None


PortRule = Callable[[Box, IbDevice, IbPort, Ports], Judgement]
"""The last are all ports, for those that are compared with their twins."""


def per_port(rule: PortRule) -> Judge:
    """A judge that applies ``rule`` to each port; the reason where none is listed."""

    def judge(box: Box) -> Judged:
        listed = given(ports(box))
        for device, port in listed:
            yield port_subject(device, port), ruled(rule, box, device, port, listed)

    return saying(rule, judge)


def per_port_growth(
    rule: Callable[[Box, Growth, IbPort], Judgement], total: Callable[[Box, IbPort], Judgement | None]
) -> Judge:
    """The same of counters that were read twice; ``total`` judges those that were not, or not an hour apart, or were
    reset."""

    def judge(box: Box) -> Judged:
        listed, growth = given(ports(box)), box.growth
        totals = {name_of(port): total(box, port) for _, port in listed}
        if isinstance(growth, Judgement) and not any(totals.values()):
            raise Instead(growth)
        for device, port in listed:
            judgement = growth if isinstance(growth, Judgement) else ruled(rule, box, growth, port)
            yield port_subject(device, port), or_total(growth, judgement, totals.get(name_of(port)))

    return saying(rule, judge)
