"""A port of a fabric as a tool printed it, and the port at the other end of its cable."""

from __future__ import annotations

import re
from typing import Literal

from dgxcheck.facts.record import Record
from dgxcheck.readers.values import number

EndKind = Literal["switch", "adapter"]


class End(Record, kw_only=False):
    """One port. Of a switch the GUID is that of the switch, of an adapter that of the port."""

    kind: EndKind
    guid: str
    """16 hexadecimal digits; of a machine that LLDP names ``lldp:NAME``, of a node that iblinkinfo names by its LID
    ``lid:NUMBER``, in this text alone."""
    port: int
    description: str
    lid: int | None = None
    """0 where no subnet manager gave one; None where it is not told."""
    label: str = ""
    """What is printed on the port, where it has more than a number: ``swp5s1``."""
    mtu: int = 0
    """Bytes of its largest frame; 0 where it is not told."""

    @property
    def at(self) -> tuple[str, int]:
        """GUID and number of the port."""
        return self.guid, self.port


class PortRow(Record, kw_only=False):
    """One line: a port, the one at the other end where there is one, and how the link runs."""

    end: End
    peer: End | None
    lanes: int
    """0 where it is not told."""
    speed: str
    """``EDR``; empty where it is not told."""
    state: str = ""
    """Of the first of both ports: ``ACTIVE``, ``INIT``; empty where it is not told."""
    disabled: bool = False
    """Was the first of both ports taken down by hand?"""
    could: str = ""
    """``could be 4X``: what both ports support, where it runs below that."""

    @property
    def ends(self) -> tuple[End, ...]:
        """One or both ports."""
        return (self.end,) if self.peer is None else (self.end, self.peer)


_SIGNALLED = {
    2.5: "SDR", 5.0: "DDR", 10.0: "QDR", 10.3125: "FDR10", 14.0625: "FDR", 25.78125: "EDR", 25.0: "EDR",
    53.125: "HDR", 50.0: "HDR", 106.25: "NDR", 100.0: "NDR", 212.5: "XDR", 200.0: "XDR",
}  # fmt: skip
"""By what a lane signals, or carries, in Gbit/s: the tools print either, and round it."""
_ROUNDED = 0.01


def speed_of_lane(gbit: str) -> str:
    """``EDR`` of ``25.78125`` and ``25.78 Gbps``; empty for what is no such speed."""
    if "FDR10" in gbit.upper():
        return "FDR10"
    value = number(gbit.removesuffix(" Gbps").strip(), 1000.0) or 0.0
    return next((name for lane, name in _SIGNALLED.items() if abs(value - lane) <= _ROUNDED * lane), "")


_GUID = re.compile(r"[0-9a-f]{16}", flags=re.ASCII)


def is_guid(node: str) -> bool:
    """Else it stands for a node whose GUID is not printed."""
    return _GUID.fullmatch(node) is not None


def digits(guid: str) -> str:
    """The 16 digits of a GUID, with or without ``0x`` and leading zeros."""
    return guid.lower().removeprefix("0x").rjust(16, "0")
