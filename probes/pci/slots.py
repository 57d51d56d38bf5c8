"""Physical PCI slots: which device sits in which."""

from __future__ import annotations

from dgxcheck.facts.bdf import is_bdf
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Slot
from dgxcheck.facts.sysfs import PCI_SLOTS
from dgxcheck.source.protocol import Source
from probes.parse_scalar import natural


def probe(source: Source) -> tuple[Slot, ...] | Missing:
    """``/sys/bus/pci/slots``: names are the firmware's (``2``, ``SLOT 4``, ``8-1``)."""
    names = source.names(PCI_SLOTS)
    if isinstance(names, Missing):
        return names
    found = sorted(names, key=natural)
    return tuple(Slot(name=name, address=_address(source, f"{PCI_SLOTS}/{name}/address")) for name in found)


def _address(source: Source, where: str) -> str | Missing:
    text = source.text(where)
    if isinstance(text, Missing):
        return text
    address = text.strip().lower()
    return address if is_bdf(f"{address}.0") else Missing(Gap.GARBLED, where, text[:80])
