"""The ports of the HCAs: which there are, what they are called, and what all of them have in common."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Subject, skip
from dgxcheck.checks.network.hcas import hcas, none_here, subject
from dgxcheck.components.component import SUBNET_MANAGER, Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import IbDevice, IbPort, PortState
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace

UP = (PortState.ACTIVE, PortState.ACTIVE_DEFER)
_NO_PORTS = skip("not-supported", "no InfiniBand device has a port")


def ports(box: Box) -> list[tuple[IbDevice, IbPort]] | Judgement:
    """The ports of all HCAs without virtual functions, never empty; or the skip that stands for them."""
    devices, rows = hcas(box), box.snapshot.ib_ports
    if isinstance(devices, Missing):
        return none_here(devices)
    if isinstance(rows, Missing):
        return none_here(rows)
    by_name = {device.name: device for device in devices}
    listed = [
        (by_name[row.device], port)
        for row in rows
        if row.device in by_name and not isinstance(row.ports, Missing)
        for port in row.ports
    ]
    return listed or _NO_PORTS


def gbit_per_s(port: IbPort) -> float | Missing:
    """Rate of a port in Gbit/s; 0 where it is not up."""
    if isinstance(port.state, Missing):
        return port.state
    if port.state not in UP:
        return 0.0
    return port.rate if isinstance(port.rate, Missing) else port.rate.gbit_per_s


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
    kind = device.hca_type if isinstance(device.hca_type, str) else ""
    bdf = device.bdf if isinstance(device.bdf, str) else ".0"
    return kind, bdf.rpartition(".")[2], port.port


def fabric(box: Box, at: Subject, judgement: Judgement) -> Component | None:
    """Behind what all ports have; a disabled port is disabled on its own."""
    if judgement.fault is Fault.PORT_DISABLED:
        return None
    if judgement.fault is Fault.NO_SUBNET_MANAGER:
        return SUBNET_MANAGER
    return Component(kind="fabric", name="InfiniBand fabric")
