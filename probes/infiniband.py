"""InfiniBand and RoCE devices, and the PCI function behind each."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.infiniband import PHYS_STATES, IbDevice, IbDevicePorts, IbPort, IbRate, PortState
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.sysfs import INFINIBAND
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.limits import HCAS
from dgxcheck.source.protocol import Source
from probes.ask import (
    HEX_DIGITS,
    ask,
    decimal,
    files,
    garbled,
    hexadecimal,
    is_decimal,
    line,
    mapped,
    natural,
    numbered,
    one_of,
)
from probes.pci.tree import function_behind, is_vf


def infiniband(source: Source) -> tuple[IbDevice, ...] | Missing:
    """``/sys/class/infiniband``, ``mlx5_10`` after ``mlx5_9``."""
    return mapped(_names(source), lambda name: _device(source, name))


def _names(source: Source) -> Sequence[str] | Missing:
    names = source.names(INFINIBAND)
    if isinstance(names, tuple) and len(names) > HCAS:
        return Missing(Gap.GARBLED, INFINIBAND, f"{len(names)} devices, more than {HCAS}")
    return names if isinstance(names, Missing) else sorted(names, key=natural)


def _device(source: Source, name: str) -> IbDevice:
    base = f"{INFINIBAND}/{name}"
    bdf = function_behind(source, f"{base}/device")
    return IbDevice(
        name=name,
        bdf=bdf,
        is_vf=bdf if isinstance(bdf, Missing) else is_vf(source, bdf),
        **files(source, IbDevice, base, node_guid=guid, fw_ver=line, hca_type=line, board_id=line, sys_image_guid=guid,
                node_type=node_type, node_desc=line),
    )  # fmt: skip


_NO_COUNTER = "lifespan"  # how long the driver caches hw_counters, in ms


def ib_ports(source: Source) -> tuple[IbDevicePorts, ...] | Missing:
    """``/sys/class/infiniband/<device>/ports`` of every device, in natural order."""
    return mapped(_names(source), lambda name: IbDevicePorts(device=name, ports=_ports(source, name)))


def _ports(source: Source, device: str) -> tuple[IbPort, ...] | Missing:
    return mapped(numbered(source, f"{INFINIBAND}/{device}/ports", ""), lambda port: _port(source, device, port))


def _port(source: Source, device: str, port: int) -> IbPort:
    base = f"{INFINIBAND}/{device}/ports/{port}"
    return IbPort(
        device=device,
        port=port,
        **files(source, IbPort, base, state=port_state, phys_state=phys_state, rate=rate, link_layer=line,
                lid=hexadecimal, sm_lid=hexadecimal),
        counters=_counters(source, f"{base}/counters"),
        hw_counters=_counters(source, f"{base}/hw_counters"),
    )  # fmt: skip


@or_gap
def _counters(source: Source, base: str) -> dict[str, int | Missing]:
    return {name: ask(source, f"{base}/{name}", counter) for name in need(source.names(base)) if name != _NO_COUNTER}


def guid(text: str, where: str) -> str | Missing:
    """``506b:4b03:003c:eee8``; some virtual functions have zeros for one."""
    body = text.strip()
    groups = body.split(":")
    if len(groups) != 4 or not all(len(group) == 4 and not group.strip(HEX_DIGITS) for group in groups):
        return garbled(text, where)
    return body if body.strip("0:") else Missing(Gap.UNSUPPORTED, where, "all zeros")


def node_type(text: str, where: str) -> str | Missing:
    """The name in ``1: CA``."""
    number, _, name = text.strip().partition(": ")
    return name if is_decimal(number) and name else garbled(text, where)


_RATE = LazyPattern(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec \(([0-9]{1,3})X(?: ([A-Z0-9]{1,8}))?\)", " Gb/sec (")
port_state = one_of({f"{state.value}: {state.name}": state for state in PortState})
phys_state = one_of({f"{state.value}: {name}": state for state, name in PHYS_STATES.items()})


def rate(text: str, where: str) -> IbRate | Missing:
    """``100 Gb/sec (4X EDR)``; older kernels leave the name of SDR out."""
    if (match := _RATE.fullmatch(text.strip())) is None:
        return garbled(text, where)
    gbit, lanes, speed = match.groups()
    return IbRate(gbit_per_s=float(gbit), lanes=int(lanes), speed=speed or "SDR")


def counter(text: str, where: str) -> int | Missing:
    """A decimal counter; older kernels print ``N/A (no PMA)`` where the port has no performance agent."""
    body = text.strip()
    return Missing(Gap.UNSUPPORTED, where, body) if body == "N/A (no PMA)" else decimal(text, where)
