"""The table of SMBIOS as bytes: what is in the memory slots, and a copy without what names a single machine.

System Management BIOS reference specification (DSP0134): structures in 6.1, Memory Device (type 17) in 7.18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_HEXADECIMAL = frozenset("0123456789abcdef")
MEMORY_DEVICE = 17
_HEADER, _LEAST = 4, 0x1B
"""Bytes of a structure's head, and of a memory device since version 2.3, which brought serial and part number."""
_SIZE, _EXTENDED_SIZE = 0x0C, 0x1C
LOCATOR, BANK, MAKER, SERIAL, _ASSET, PART_NUMBER = 0x10, 0x11, 0x17, 0x18, 0x19, 0x1A
"""Where the number of a string stands."""
_IN_KIB, _UNKNOWN, _IS_EXTENDED = 0x8000, 0xFFFF, 0x7FFF


def structures(table: bytes) -> Iterator[tuple[bytes, tuple[bytes, ...]]]:
    """The formatted part of each, and its strings; up to where the table makes no sense."""
    while len(table) >= _HEADER and _HEADER <= table[1] <= len(table):
        end = table.find(b"\0\0", table[1])
        if end < 0:
            return
        yield table[: table[1]], tuple(table[table[1] : end].split(b"\0"))
        table = table[end + 2 :]


def memory_devices(table: bytes) -> Iterator[tuple[bytes, tuple[bytes, ...]]]:
    """Those that have a serial number's place."""
    return (each for each in structures(table) if each[0][0] == MEMORY_DEVICE and len(each[0]) >= _LEAST)


def string(device: bytes, strings: tuple[bytes, ...], at: int) -> str:
    """One of its strings without the blanks around it; empty where it has none."""
    number = device[at]
    return strings[number - 1].decode("latin-1").strip() if 0 < number <= len(strings) else ""


def size_mib(device: bytes) -> int | None:
    """0 for an empty slot, None for a size that firmware does not know."""
    size = int.from_bytes(device[_SIZE : _SIZE + 2], "little")
    if size == _IS_EXTENDED and len(device) >= _EXTENDED_SIZE + 4:
        return int.from_bytes(device[_EXTENDED_SIZE : _EXTENDED_SIZE + 4], "little") & 0x7FFFFFFF
    if size == _UNKNOWN:
        return None
    return (size & ~_IN_KIB) >> 10 if size & _IN_KIB else size


def is_number(serial: str) -> bool:
    """Is it more than zeros, ``FFFFFFFF`` or words such as ``Not Specified``?"""
    characters = set(serial.lower())
    return bool(characters - set("0xf .-")) and (any(map(str.isdigit, serial)) or characters <= _HEXADECIMAL)


def publishable(table: bytes, renamed: Callable[[str], str]) -> bytes:
    """The memory devices alone, with other serial numbers and asset tags."""
    kept = b""
    for device, strings in memory_devices(table):
        names = [*strings]
        for number in {device[SERIAL], device[_ASSET]}:
            if 0 < number <= len(names) and is_number(name := names[number - 1].decode("latin-1")):
                names[number - 1] = renamed(name).encode("latin-1")
        kept += device + b"\0".join(names) + b"\0\0"
    return kept
