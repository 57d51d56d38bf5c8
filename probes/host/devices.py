"""Disks, arrays and network interfaces of the host."""

from __future__ import annotations

import re

from dgxcheck.facts.host import BlockDevice, MdArray, NetInterface, Storage
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.sysfs import BLOCK
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.source.protocol import Source
from probes.ask import decimal, files, flag, garbled, line, natural, one_of
from probes.pci.tree import function_behind

_SECTOR = 512  # the unit of ``size``, whatever the device's own sectors are
_NO_DISK = ("loop", "ram", "zram")
_WAY = LazyPattern(r"nvme\d+c\d+n\d+", flags=re.ASCII)
"""One of the ways to ``nvme0n1``, which the kernel hides (``nvme_set_disk_name`` in ``drivers/nvme/host``)."""


def storage(source: Source) -> Storage:
    """``/sys/class/block``, in natural order."""
    if isinstance(names := source.names(BLOCK), Missing):
        return Storage(disks=names, arrays=names)
    whole = sorted(whole_devices(names), key=natural)
    arrays = tuple(_array(source, name) for name in whole if name.startswith("md"))
    return Storage(disks=tuple(_disk(source, name) for name in whole), arrays=arrays)


def whole_devices(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names that are no partition of another (``sda1`` of ``sda``, ``nvme0n1p1`` of ``nvme0n1``) and can be a disk."""
    present = frozenset(names)
    can_be = (name for name in names if not name.startswith(_NO_DISK) and not _WAY.fullmatch(name))
    return tuple(name for name in can_be if not _is_partition(name, present))


def size_bytes(text: str, where: str) -> int | Missing:
    """Sectors of 512 bytes."""
    sectors = decimal(text, where)
    return sectors if isinstance(sectors, Missing) else sectors * _SECTOR


def _is_partition(name: str, present: frozenset[str]) -> bool:
    stem = name.rstrip("0123456789")
    if stem == name:
        return False
    parent = stem[:-1] if stem.endswith("p") else ""
    return (parent in present and parent[-1:].isdigit()) or stem in present


def _disk(source: Source, name: str) -> BlockDevice:
    facts = files(source, BlockDevice, f"{BLOCK}/{name}", size_bytes=size_bytes, rotational=flag, removable=flag,
                  model=line, vendor=line)  # fmt: skip
    return BlockDevice(name=name, **facts)


def _array(source: Source, name: str) -> MdArray:
    base = f"{BLOCK}/{name}"
    facts = files(source, MdArray, f"{base}/md", level=line, state=line, degraded=decimal, raid_disks=decimal)
    return MdArray(name=name, members=source.names(f"{base}/slaves"), **facts)


_INTERFACES = "/sys/class/net"
_NO_INTERFACE = "bonding_masters"  # a file of the bonding driver among the interfaces
_UNKNOWN_SPEED = ("-1", "4294967295")  # newer and older kernels
_OPERSTATES = ("unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up")  # net/core/net-sysfs.c
operstate = one_of(dict(zip(_OPERSTATES, _OPERSTATES, strict=True)))
_OCTETS = LazyPattern(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){0,31}")


@or_gap
def network(source: Source) -> tuple[NetInterface, ...]:
    """``/sys/class/net``, in natural order."""
    names = sorted(need(source.names(_INTERFACES)), key=natural)
    return tuple(_interface(source, name) for name in names if name != _NO_INTERFACE)


def speed(text: str, where: str) -> int | Missing:
    """Mb/s."""
    body = text.strip()
    return Missing(Gap.UNSUPPORTED, where, body) if body in _UNKNOWN_SPEED else decimal(text, where)


def mac(text: str, where: str) -> str | Missing:
    """``00:25:90:ab:cd:ef``; a tunnel has no address and an empty file."""
    if not (body := text.strip()):
        return Missing(Gap.ABSENT, where, "empty")
    return body.lower() if _OCTETS.fullmatch(body) else garbled(text, where)


def _interface(source: Source, name: str) -> NetInterface:
    base = f"{_INTERFACES}/{name}"
    facts = files(source, NetInterface, base, operstate=operstate, carrier=flag, carrier_down_count=decimal,
                  speed_mbit=speed, mtu=decimal, type=decimal, mac=mac)  # fmt: skip
    return NetInterface(name=name, bdf=function_behind(source, f"{base}/device"), **facts)
