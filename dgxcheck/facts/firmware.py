"""What firmware keeps as bytes: the table of SMBIOS, and the vital product data of PCI functions.

System Management BIOS reference specification (DSP0134): structures in 6.1, Memory Device (type 17) in 7.18; a copy is
made without what names a single machine. PCI Local Bus specification 3.0, appendix I: NVIDIA's adapters name in one
keyword (``VA``) what they are for (``SMDL=``), and give in ``V3`` a UUID that the functions of one adapter share; the
rest, part and serial numbers, is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

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


def memory_table(devices: Iterable[tuple[int, Mapping[int, str]]]) -> bytes:
    """Memory devices of so many MiB, as of version 2.7, with these strings alone."""
    table = b""
    for mib, texts in devices:
        device = bytearray(_EXTENDED_SIZE + 6)
        device[:2] = MEMORY_DEVICE, len(device)
        device[_SIZE : _SIZE + 2] = min(mib, _IS_EXTENDED).to_bytes(2, "little")
        device[_EXTENDED_SIZE : _EXTENDED_SIZE + 4] = mib.to_bytes(4, "little")
        there = {at: text.encode("latin-1", "replace") for at, text in texts.items() if text}
        for number, at in enumerate(there, 1):
            device[at] = number
        table += bytes(device) + b"\0".join(there.values()) + b"\0\0"
    return table


PURPOSE, UUID = "SMDL=", "V3"
_END, _LARGE_END, _READ_ONLY, _LARGE = 0x78, 0x79, 0x90, 0x80
_MOST = 255
"""Bytes of the text of a keyword."""


def keywords(data: bytes) -> Iterator[tuple[str, str]]:
    """Keywords of the read-only resource, up to where the data make no sense."""
    for tag, item in _resources(data):
        while tag == _READ_ONLY and len(item) > 2 and 3 + item[2] <= len(item):
            yield item[:2].decode("latin-1"), item[3 : 3 + item[2]].decode("latin-1").strip("\0 ")
            item = item[3 + item[2] :]


def _resources(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content."""
    while data and data[0] not in (_END, _LARGE_END):
        large = bool(data[0] & _LARGE)
        start, size = (3, int.from_bytes(data[1:3], "little")) if large else (1, data[0] & 7)
        if start + size > len(data):
            return
        yield data[0], data[start : start + size]
        data = data[start + size :]


def read_only(texts: Mapping[str, str]) -> bytes:
    """Data that hold these keywords alone."""
    cut = {name.encode("latin-1"): text.encode("latin-1", "replace")[:_MOST] for name, text in texts.items()}
    items = b"".join(name + bytes([len(text)]) + text for name, text in cut.items())
    return bytes([_READ_ONLY]) + len(items).to_bytes(2, "little") + items + bytes([_END])
