"""Vital product data of ConnectX-7 and newer: which NIC a DMA function belongs to, which adapter manages NVSwitches."""

from __future__ import annotations

from dgxcheck.facts.firmware import PURPOSE, UUID, keywords
from dgxcheck.facts.ids import DATA_DIRECT, MELLANOX, OTHER_BRIDGE
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Vpd
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.pci.tree import class_codes, is_dma_controller, pci_id

_ASKED = (0x1021, 0x1023, 0x1025, DATA_DIRECT)
"""ConnectX-7, -8, -9, and the DMA functions of the last two; an answer takes milliseconds, so others are not asked."""
_ACCELERATOR = 0x0302
_MANAGES = f"{PURPOSE}SW_MNG"


def vpd(source: Source) -> tuple[Vpd, ...] | Missing:
    """``/sys/bus/pci/devices/<bdf>/vpd``, for root only; of machines with GPUs for computing and no NVSwitch on PCI."""
    if isinstance(codes := class_codes(source), Missing):
        return codes
    readable = {bdf: code for bdf, code in codes.items() if isinstance(code, int)}
    if _ACCELERATOR not in {code >> 8 for code in readable.values()}:
        return ()
    bridges = (bdf for bdf, code in readable.items() if code >> 8 == OTHER_BRIDGE)
    if any(pci_id(source, bdf, "vendor") == 0x10DE for bdf in bridges):
        return ()
    adapters = [bdf for bdf, code in readable.items() if (code >> 16 == 0x02 or is_dma_controller(code))]
    return tuple(_device(source, bdf) for bdf in adapters if pci_id(source, bdf, "vendor") == MELLANOX
                 and pci_id(source, bdf, "device") in _ASKED)  # fmt: skip


def _device(source: Source, bdf: str) -> Vpd:
    where = f"{PCI_DEVICES}/{bdf}/vpd"
    if isinstance(answer := source.data(where), Missing):
        return Vpd(bdf=bdf, uuid=answer, manages_nvswitches=answer)
    if not (found := dict(keywords(answer))):
        garbled = Missing(Gap.GARBLED, where, f"{len(answer)} bytes without keywords")
        return Vpd(bdf=bdf, uuid=garbled, manages_nvswitches=garbled)
    return Vpd(bdf=bdf, uuid=found.get(UUID) or Missing(Gap.ABSENT, where, f"no keyword {UUID}"),
               manages_nvswitches=any(_MANAGES in text for text in found.values()))
