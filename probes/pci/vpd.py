"""Vital product data of ConnectX-7 and newer: which NIC a DMA function belongs to, which adapter manages NVSwitches."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.facts.ids import DATA_DIRECT, MELLANOX, OTHER_BRIDGE
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Vpd
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import ask, hexadecimal
from probes.pci.tree import class_codes, is_dma_controller

_ASKED = (0x1021, 0x1023, 0x1025, DATA_DIRECT)
"""ConnectX-7, -8, -9, and the DMA functions of the last two; an answer takes milliseconds, so others are not asked."""
_ACCELERATOR = 0x0302
_END, _LARGE_END, _READ_ONLY, _LARGE = 0x78, 0x79, 0x90, 0x80
_MANAGES = "SMDL=SW_MNG"


def vpd(source: Source) -> tuple[Vpd, ...] | Missing:
    """``/sys/bus/pci/devices/<bdf>/vpd``, for root only; of machines with GPUs for computing and no NVSwitch on PCI."""
    if isinstance(codes := class_codes(source), Missing):
        return codes
    known = {bdf: code for bdf, code in codes.items() if isinstance(code, int)}
    if _ACCELERATOR not in {code >> 8 for code in known.values()}:
        return ()
    bridges = (bdf for bdf, code in known.items() if code >> 8 == OTHER_BRIDGE)
    if any(_id(source, bdf, "vendor") == 0x10DE for bdf in bridges):
        return ()
    adapters = [bdf for bdf, code in known.items() if (code >> 16 == 0x02 or is_dma_controller(code))]
    return tuple(_device(source, bdf) for bdf in adapters if _id(source, bdf, "vendor") == MELLANOX
                 and _id(source, bdf, "device") in _ASKED)  # fmt: skip


def _id(source: Source, bdf: str, name: str) -> int | Missing:
    return ask(source, f"{PCI_DEVICES}/{bdf}/{name}", hexadecimal)


def _device(source: Source, bdf: str) -> Vpd:
    where = f"{PCI_DEVICES}/{bdf}/vpd"
    if isinstance(answer := source.data(where), Missing):
        return Vpd(bdf=bdf, uuid=answer, manages_nvswitches=answer)
    if not (known := dict(keywords(answer))):
        garbled = Missing(Gap.GARBLED, where, f"{len(answer)} bytes without keywords")
        return Vpd(bdf=bdf, uuid=garbled, manages_nvswitches=garbled)
    return Vpd(
        bdf=bdf,
        uuid=known.get("V3") or Missing(Gap.ABSENT, where, "no keyword V3"),
        manages_nvswitches=any(_MANAGES in text for text in known.values()),
    )


def keywords(data: bytes) -> Iterator[tuple[str, str]]:
    """Keywords of the read-only resource, up to where the data make no sense."""
    for tag, item in _resources(data):
        while tag == _READ_ONLY and len(item) > 2 and 3 + item[2] <= len(item):
            yield item[:2].decode("latin-1"), item[3 : 3 + item[2]].decode("latin-1").strip("\0 ")
            item = item[3 + item[2] :]


def _resources(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content; PCI Local Bus specification 3.0, appendix I."""
    while data and data[0] not in (_END, _LARGE_END):
        large = bool(data[0] & _LARGE)
        start, size = (3, int.from_bytes(data[1:3], "little")) if large else (1, data[0] & 7)
        if start + size > len(data):
            return
        yield data[0], data[start : start + size]
        data = data[start + size :]
