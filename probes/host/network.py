"""Network interfaces and the PCI function behind each."""

from __future__ import annotations

import re

from dgxcheck.facts.host import NetInterface
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.source.protocol import Source
from probes.ask import ask, decimal, flag, garbled, line, natural
from probes.pci.tree import function_behind

_INTERFACES = "/sys/class/net"
_NO_INTERFACE = "bonding_masters"  # a file of the bonding driver among the interfaces
_UNKNOWN_SPEED = ("-1", "4294967295")  # newer and older kernels
_OCTETS = re.compile(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){0,31}")


def network(source: Source) -> tuple[NetInterface, ...] | Missing:
    """``/sys/class/net``, in natural order."""
    names = source.names(_INTERFACES)
    if isinstance(names, Missing):
        return names
    return tuple(_interface(source, name) for name in sorted(names, key=natural) if name != _NO_INTERFACE)


def speed(text: str, where: str) -> int | Missing:
    """Mb/s."""
    body = text.strip()
    return Missing(Gap.UNSUPPORTED, where, body) if body in _UNKNOWN_SPEED else decimal(text, where)


def mac(text: str, where: str) -> str | Missing:
    """``00:25:90:ab:cd:ef``; a tunnel has no address and an empty file."""
    body = text.strip()
    if not body:
        return Missing(Gap.ABSENT, where, "empty")
    return body.lower() if _OCTETS.fullmatch(body) else garbled(text, where)


def _interface(source: Source, name: str) -> NetInterface:
    base = f"{_INTERFACES}/{name}"
    return NetInterface(
        name=name,
        operstate=ask(source, f"{base}/operstate", line),
        carrier=ask(source, f"{base}/carrier", flag),
        speed_mbit=ask(source, f"{base}/speed", speed),
        mtu=ask(source, f"{base}/mtu", decimal),
        type=ask(source, f"{base}/type", decimal),
        mac=ask(source, f"{base}/address", mac),
        bdf=function_behind(source, f"{base}/device"),
    )
