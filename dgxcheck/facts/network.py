"""Network interfaces."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class NetInterface(Record):
    """One ``/sys/class/net/<name>``."""

    name: str
    operstate: str | Missing
    carrier: bool | Missing
    speed_mbit: int | Missing
    """Unsupported where the link is down or the driver does not say (-1)."""
    mtu: int | Missing
    type: int | Missing
    """ARPHRD number: 1 Ethernet, 32 InfiniBand, 772 loopback."""
    mac: str | Missing
    """6 octets, 20 for IP over InfiniBand."""
    bdf: str | Missing
    """PCI function behind it; absent for virtual interfaces."""
