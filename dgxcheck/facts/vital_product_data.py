"""Vital product data of a PCI function as bytes: the keywords of its read-only resource.

PCI Local Bus specification 3.0, appendix I. NVIDIA's adapters name in one (``VA``) what they are for (``SMDL=``), and
give in ``V3`` a UUID that the functions of one adapter share; the rest, part and serial numbers, is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
