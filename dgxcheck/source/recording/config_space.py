"""What of a PCI configuration space leaves a machine: the header, both capability lists, PCI Express and ACS.

The rest is blank. The Device Serial Number of a ConnectX adapter is its node GUID, and what stands in vendor specific
capabilities nobody knows.
"""

from __future__ import annotations

_HEADER = 64
_LIST, _CARDBUS_LIST = 0x34, 0x14
_FIRST_EXTENDED, _EXTENDED_HEADER = 0x100, 4
_EXPRESS, _EXPRESS_BYTES = 0x10, 60
_ACS, _ACS_BYTES = 0x000D, 8
_SERIAL, _SERIAL_BYTES = 0x0003, 12
_MOST = 960  # (4096 - 256) / 4


def publishable(config: bytes) -> bytes:
    """The same bytes with all that is not read of them set to 0."""
    kept = bytearray(len(config))
    kept[:_HEADER] = config[:_HEADER]
    for start, end in (*_standard(config), *_extended(config)):
        kept[start:end] = config[start:end]
    return bytes(kept)


def serial_numbers(config: bytes) -> list[str]:
    """Device Serial Numbers in hexadecimal, as lspci prints them: an EUI-64, which may be made of a MAC."""
    found = (config[at + _EXTENDED_HEADER : at + _SERIAL_BYTES][::-1] for at, _ in _extended(config)
             if int.from_bytes(config[at : at + 2], "little") == _SERIAL)  # fmt: skip
    return [serial.hex() for serial in found if len(serial) == _SERIAL_BYTES - _EXTENDED_HEADER]


def _standard(config: bytes) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    if len(config) < _HEADER:
        return pieces
    at = config[_CARDBUS_LIST if config[0x0E] & 0x7F == 2 else _LIST] & 0xFC
    while at >= _HEADER and at + 2 <= len(config) and len(pieces) < 48:
        pieces.append((at, min(len(config), at + (_EXPRESS_BYTES if config[at] == _EXPRESS else 2), _FIRST_EXTENDED)))
        at = config[at + 1] & 0xFC
    return pieces


def _extended(config: bytes) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    at = _FIRST_EXTENDED
    while at >= _FIRST_EXTENDED and at + _EXTENDED_HEADER <= len(config) and len(pieces) < _MOST:
        header = int.from_bytes(config[at : at + _EXTENDED_HEADER], "little")
        size = _ACS_BYTES if header & 0xFFFF == _ACS else _EXTENDED_HEADER
        pieces.append((at, min(len(config), at + size)))
        at = header >> 20 & 0xFFC
    return pieces
