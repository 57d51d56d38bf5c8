"""Memory and I/O regions of ``lspci -v``, as the file ``resource`` of sysfs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.readers.lspci.registers import is_dead

_REGION = re.compile(
    r"(?:Region (?P<number>[0-5]): |(?P<rom>(?:\[virtual\] )?Expansion ROM) at |(?P<plain>))"
    r"(?:(?P<memory>Memory at )|(?P<io>I/O ports at )|(?<= at ))"
    r"(?P<at>[0-9a-f]{1,16}|<unassigned>|<ignored>|\[?virtual\]?)(?P<more>.*)",
    re.ASCII,
)
_UNKNOWN = re.compile(r"^Region \d|(?:Memory|I/O ports) at ")
_SIZE = re.compile(r"\[size=(\d{1,4})([KMGT]?)\]", re.ASCII)
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_ROM = 6
# include/linux/ioport.h
_IO, _MEMORY, _PREFETCH, _READ_ONLY, _SIZE_ALIGN = 0x100, 0x200, 0x2000, 0x4000, 0x40000
_MEM_64, _UNSET = 0x100000, 0x20000000


def resource(details: Sequence[str], config: bytes) -> str | None:
    """Seven lines ``start end flags``; None where a region cannot be placed, or the listing is not verbose."""
    if not details or is_dead(config):
        return None
    rows = ["0x0000000000000000 0x0000000000000000 0x0000000000000000"] * (_ROM + 1)
    for line in details:
        match = _REGION.match(line)
        if match is None or not (match["memory"] or match["io"] or match["rom"]):
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
