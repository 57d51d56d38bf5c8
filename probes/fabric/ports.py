"""Ports of InfiniBand and RoCE devices; each counter is read once, for on restricted functions every read is logged."""

from __future__ import annotations

from dgxcheck.facts.infiniband import IbDevicePorts, IbPort
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.sysfs import INFINIBAND
from dgxcheck.source.protocol import Source
from probes.ask import ask, numbered
from probes.fabric.parse_ib import counter, phys_state, port_state, rate
from probes.parse_scalar import hexadecimal, line, natural

_NO_COUNTER = "lifespan"  # how long the driver caches hw_counters, in ms


def probe(source: Source) -> tuple[IbDevicePorts, ...] | Missing:
    """``/sys/class/infiniband/<device>/ports`` of every device, in natural order."""
    devices = source.names(INFINIBAND)
    if isinstance(devices, Missing):
        return devices
    return tuple(IbDevicePorts(device=name, ports=_ports(source, name)) for name in sorted(devices, key=natural))


def _ports(source: Source, device: str) -> tuple[IbPort, ...] | Missing:
    numbers = numbered(source, f"{INFINIBAND}/{device}/ports", "")
    return numbers if isinstance(numbers, Missing) else tuple(_port(source, device, port) for port in numbers)


def _port(source: Source, device: str, port: int) -> IbPort:
    base = f"{INFINIBAND}/{device}/ports/{port}"
    return IbPort(
        device=device,
        port=port,
        state=ask(source, f"{base}/state", port_state),
        phys_state=ask(source, f"{base}/phys_state", phys_state),
        rate=ask(source, f"{base}/rate", rate),
        link_layer=ask(source, f"{base}/link_layer", line),
        lid=ask(source, f"{base}/lid", hexadecimal),
        sm_lid=ask(source, f"{base}/sm_lid", hexadecimal),
        counters=_counters(source, f"{base}/counters"),
        hw_counters=_counters(source, f"{base}/hw_counters"),
    )


def _counters(source: Source, base: str) -> dict[str, int | Missing] | Missing:
    names = source.names(base)
    if isinstance(names, Missing):
        return names
    return {name: ask(source, f"{base}/{name}", counter) for name in names if name != _NO_COUNTER}
