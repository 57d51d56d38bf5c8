"""Registers that ``lspci`` shows as words or as bytes: bridge windows, PCI Express link, extended capabilities.

Offsets are those of the PCI Local Bus and PCI Express Base specifications (pciutils: lib/header.h).
"""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern

_BRIDGE = 1
_EXPRESS = 0x10
_LINK_CAPABILITY, _LINK_STATUS, _LINK_CAPABILITY_2 = 0x0C, 0x12, 0x2C
_SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
_INTEGRATED = (9, 10)
"""Port types of endpoints and event collectors within the root complex, which have no link."""
_ACS = 0x000D
_SECONDARY = LazyPattern(r"Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2}),")
_LINK = ascii_pattern(r"(?P<which>LnkCap|LnkSta):\s(?:Port #\d+, )?Speed (?P<speed>[\d.]{1,5})GT/s[^,]{0,20}, "
                   r"Width x(?P<width>\d{1,2})\b.*")  # fmt: skip
_SUPPORTED = ascii_pattern(r"LnkCap2: Supported Link Speeds: (?:[\d.]{1,5}-)?([\d.]{1,5})GT/s")
_CAPABILITY = ascii_pattern(r"Capabilities: \[([0-9a-f]{3})(?: v(\d+))?\] (.*)")
_ACS_WORDS = LazyPattern(r"ACS(Cap|Ctl):\s(.*)")
_ACS_BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")


def is_dead(config: bytes) -> bool:
    """Does the function read all ones?"""
    return config[:4] == b"\xff\xff\xff\xff"


def secondary_bus(config: bytes, details: Sequence[str]) -> str | None:
    """The bus behind a bridge, two hexadecimal digits; None where the function is no bridge or leads nowhere."""
    if len(config) >= 0x1A and not is_dead(config):
        return f"{config[0x19]:02x}" if config[0x0E] & 0x7F == _BRIDGE and config[0x19] else None
    return next((match[1] for line in details if (match := _SECONDARY.match(line))), None)


def link(config: bytes, details: Sequence[str]) -> dict[str, str]:
    """``current_link_speed`` and its three siblings as the kernel's files word them.

    Where the kernel says Unknown, or a width of 0, there is no link, and no file is given.
    """
    at = _express(config)
    if at is None or at + _LINK_STATUS + 2 > len(config):
        return _link_words(details)
    if _word(config, at + 2) >> 4 & 0xF in _INTEGRATED:
        return {}
    capability, status = _word(config, at + _LINK_CAPABILITY), _word(config, at + _LINK_STATUS)
    best = capability & 0xF
    if at + _LINK_CAPABILITY_2 + 2 <= len(config):  # pcie_get_speed_cap: the highest bit of the supported speeds
        best = (_word(config, at + _LINK_CAPABILITY_2) >> 1 & 0x7F).bit_length() or best
    numbers = {
        "max_link_speed": _SPEEDS.get(best, ""), "max_link_width": capability >> 4 & 0x3F,
        "current_link_speed": _SPEEDS.get(status & 0xF, ""), "current_link_width": status >> 4 & 0x3F,
    }  # fmt: skip
    return {name: f"{n} GT/s PCIe" if name.endswith("speed") else str(n) for name, n in numbers.items() if n}


def extended(config: bytes, details: Sequence[str]) -> bytes:
    """256 bytes of configuration space with the extended capabilities that the words name behind them.

    Only Access Control Services are given with their content, and only where it is shown; the rest are entered as null
    capabilities (id 0), so that the list can be followed. Unchanged where the words name none.
    """
    found = [match for line in details if (match := _CAPABILITY.match(line))]
    if len(config) != 256 or not found or int(found[0][1], 16) != 0x100:
        return config
    space = bytearray(config) + bytearray(0x1000 - len(config))
    offsets = [int(match[1], 16) for match in found]
    for match, at, following in zip(found, offsets, [*offsets[1:], 0], strict=True):
        is_acs = match[3].startswith("Access Control Services")
        header = (_ACS if is_acs else 0) | int(match[2] or 1) << 16 | following << 20
        space[at : at + 4] = header.to_bytes(4, "little")
        if is_acs:
            words = _acs(details)
            if words is None:
                return bytes(space[: at + 4])
            space[at + 4 : at + 8] = words
    return bytes(space)


def _acs(details: Sequence[str]) -> bytes | None:
    values = {match[1]: match[2] for line in details if (match := _ACS_WORDS.match(line))}
    if len(values) != 2:
        return None
    return b"".join(
        sum(1 << bit for bit, name in enumerate(_ACS_BITS) if f"{name}+" in values[which]).to_bytes(2, "little")
        for which in ("Cap", "Ctl")
    )


def _link_words(details: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in details:
        if match := _LINK.match(line):
            which = "max_link" if match["which"] == "LnkCap" else "current_link"
            speed = match["speed"] if "." in match["speed"] else f"{match['speed']}.0"
            found.setdefault(f"{which}_speed", f"{speed} GT/s PCIe")
            found.setdefault(f"{which}_width", match["width"])
    best = next((match[1] for line in details if (match := _SUPPORTED.match(line))), "")
    if best and found:
        found["max_link_speed"] = f"{best if '.' in best else f'{best}.0'} GT/s PCIe"
    return found


def _express(config: bytes) -> int | None:
    """Where the PCI Express capability is."""
    if len(config) < 0x40 or is_dead(config) or not config[0x06] & 0x10:
        return None
    at, seen = config[0x34] & 0xFC, set[int]()
    while 0x40 <= at < len(config) - 1 and at not in seen:
        if config[at] == _EXPRESS:
            return at
        seen.add(at)
        at = config[at + 1] & 0xFC
    return None


def _word(config: bytes, at: int) -> int:
    return int.from_bytes(config[at : at + 2], "little")


_REGION = LazyPattern(
    r"(?:Region (?P<number>[0-5]): |(?P<rom>(?:\[virtual\] )?Expansion ROM) at |(?P<plain>))"
    r"(?:(?P<memory>Memory at )|(?P<io>I/O ports at )|(?<= at ))"
    r"(?P<at>[0-9a-f]{1,16}|<unassigned>|<ignored>|\[?virtual\]?)(?P<more>.*)"
)
_UNKNOWN = LazyPattern(r"^Region \d|(?:Memory|I/O ports) at ")
_SIZE = ascii_pattern(r"\[size=(\d{1,4})([KMGT]?)\]")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_ROM = 6
# include/linux/ioport.h
_IO, _MEMORY, _PREFETCH, _READ_ONLY, _SIZE_ALIGN = 0x100, 0x200, 0x2000, 0x4000, 0x40000
_MEM_64, _UNSET = 0x100000, 0x20000000


def resource(details: Sequence[str], config: bytes) -> str | None:
    """Seven lines ``start end flags``; None where a region cannot be placed, or the listing is not verbose.

    A listing without any region was shortened, or memory decoding would be off: lspci prints one without an address as
    ``<unassigned>`` (pciutils, lspci.c).
    """
    if not details or is_dead(config):
        return None
    if not config and not any(_REGION.match(line) for line in details):
        whole = any(line.startswith("Status:") for line in details)
        if not whole or any(line.startswith("Control:") and " Mem+" in line for line in details):
            return None
    rows = ["0x0000000000000000 0x0000000000000000 0x0000000000000000"] * (_ROM + 1)
    for line in details:
        match = _REGION.match(line)
        if match is None:
            if _UNKNOWN.search(line):
                return None
            continue
        size = _SIZE.search(match["more"])
        placed = "<" not in match["at"] and "v" not in match["at"]
        start = int(match["at"], 16) if placed else 0
        number = _ROM if match["rom"] else int(match["number"]) if match["number"] else _number(start, config)
        if size is None or number is None:
            return None
        flags = _IO if match["io"] else _MEMORY | _SIZE_ALIGN | (0 if placed else _UNSET)
        flags |= _READ_ONLY if match["rom"] else 0
        flags |= _MEM_64 if "64-bit" in match["more"] else 0
        flags |= _PREFETCH if " prefetchable" in match["more"] else 0
        last = start + (int(size[1]) << _UNITS[size[2]]) - 1
        rows[number] = f"0x{start:016x} 0x{last:016x} 0x{flags:016x}"
    return "\n".join(rows) + "\n"


def _number(start: int, config: bytes) -> int | None:
    """Which base address register holds an address: ``-v`` alone does not number its regions."""
    for number in range(6):
        at = 0x10 + 4 * number
        low = int.from_bytes(config[at : at + 4], "little")
        if low & 1:
            if low & ~0x3 == start:
                return number
        elif low & 0x4:
            if int.from_bytes(config[at : at + 8], "little") & ~0xF == start:
                return number
        elif low and low & ~0xF == start:
            return number
    return None
