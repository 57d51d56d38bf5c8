"""The capability lists in a PCI function's configuration space, and the two capabilities that matter here."""

from __future__ import annotations

from typing import NamedTuple

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Acs, Express, PortType
from probes.parse_scalar import garbled

# pciutils: lib/header.h
_STATUS, _STATUS_CAP_LIST = 0x06, 0x10
_HEADER_TYPE, _CARDBUS = 0x0E, 2
_CAPABILITY_LIST, _CARDBUS_CAPABILITY_LIST = 0x34, 0x14
_FIRST_CAPABILITY, FIRST_EXTENDED = 0x40, 0x100
_EXPRESS, _ACS = 0x10, 0x000D
_MOST_EXTENDED = 960  # (4096 - 256) / 4


class Chain(NamedTuple):
    """Offsets by capability id (the first of each), and how the list broke, if it did."""

    offsets: dict[int, int]
    broken: str = ""


def express(config: bytes, where: str) -> Express | Missing:
    """Port type, MaxPayload and MaxReadReq; absent where the function is not PCI Express."""
    chain = standard(config)
    at = chain.offsets.get(_EXPRESS)
    if at is None:
        return garbled(chain.broken, where) if chain.broken else Missing(Gap.ABSENT, where, "not PCI Express")
    if at + 12 > min(len(config), FIRST_EXTENDED):
        return garbled(f"PCI Express capability at {at:#x} is cut off", where)
    flags, supported, control = _word(config, at + 2), _word(config, at + 4), _word(config, at + 8)
    return Express(
        port_type=_port_type(flags >> 4 & 0xF, where),
        max_payload_supported=_size(supported & 7, where),
        max_payload=_size(control >> 5 & 7, where),
        max_read_request=_size(control >> 12 & 7, where),
    )


def acs(config: bytes, where: str) -> Acs | Missing | None:
    """The ACS extended capability; None where the list ends without one or there can be no list."""
    chain = standard(config)
    if _EXPRESS not in chain.offsets:
        return garbled(chain.broken, where) if chain.broken else None
    if len(config) <= FIRST_EXTENDED:
        return Missing(Gap.UNSUPPORTED, where, "no extended configuration space")
    chain = extended(config)
    at = chain.offsets.get(_ACS)
    if at is None:
        return garbled(chain.broken, where) if chain.broken else None
    if at + 8 > len(config):
        return garbled(f"ACS capability at {at:#x} is cut off", where)
    return Acs(capability=_word(config, at + 4), control=_word(config, at + 6))


def standard(config: bytes) -> Chain:
    """The list that starts at the pointer in the header; every offset is below 256."""
    if len(config) < _FIRST_CAPABILITY or not config[_STATUS] & _STATUS_CAP_LIST:
        return Chain({})
    cardbus = config[_HEADER_TYPE] & 0x7F == _CARDBUS
    at = config[_CARDBUS_CAPABILITY_LIST if cardbus else _CAPABILITY_LIST] & 0xFC
    offsets: dict[int, int] = {}
    seen: set[int] = set()
    while at:
        if at < _FIRST_CAPABILITY or at + 2 > len(config):
            return Chain(offsets, f"capability pointer {at:#x} leads nowhere")
        if at in seen:
            return Chain(offsets, f"capability list loops at {at:#x}")
        if config[at] == 0xFF:
            return Chain(offsets, f"capability at {at:#x} reads all ones")
        seen.add(at)
        offsets.setdefault(config[at], at)
        at = config[at + 1] & 0xFC
    return Chain(offsets)


def extended(config: bytes) -> Chain:
    """The list that starts at 0x100; a header is id (16 bits), version (4), next (12)."""
    at = FIRST_EXTENDED
    offsets: dict[int, int] = {}
    seen: set[int] = set()
    while at >= FIRST_EXTENDED and len(seen) < _MOST_EXTENDED:
        if at + 4 > len(config):
            return Chain(offsets, f"extended capability pointer {at:#x} leads nowhere")
        if at in seen:
            return Chain(offsets, f"extended capability list loops at {at:#x}")
        header = int.from_bytes(config[at : at + 4], "little")
        if header == 0xFFFFFFFF:
            return Chain(offsets, f"extended capability at {at:#x} reads all ones")
        if not header:
            break
        seen.add(at)
        offsets.setdefault(header & 0xFFFF, at)
        at = header >> 20 & 0xFFC
    return Chain(offsets)


def _word(config: bytes, at: int) -> int:
    return int.from_bytes(config[at : at + 2], "little")


def _size(code: int, where: str) -> int | Missing:
    """128 bytes and its doubles up to 4096; 6 and 7 are reserved."""
    return 128 << code if code < 6 else garbled(f"size code {code}", where)


def _port_type(code: int, where: str) -> PortType | Missing:
    return PortType(code) if code in PortType._value2member_map_ else garbled(f"port type {code}", where)
