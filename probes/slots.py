"""Physical PCI slots: which device sits in which."""

from __future__ import annotations

from dgxcheck.facts.slots import Slot
from dgxcheck.reading import Gap, Missing
from dgxcheck.source.protocol import Source

SLOTS = "/sys/bus/pci/slots"


def probe(source: Source) -> tuple[Slot, ...] | Missing:
    """``/sys/bus/pci/slots``: names are the firmware's (``2``, ``SLOT 4``, ``8-1``)."""
    names = source.names(SLOTS)
    if isinstance(names, Missing):
        return names
    return tuple(Slot(name=name, address=_address(source, f"{SLOTS}/{name}/address")) for name in names)


def _address(source: Source, where: str) -> str | Missing:
    text = source.text(where)
    if isinstance(text, Missing):
        return text
    domain, _, rest = text.strip().partition(":")
    bus, _, device = rest.partition(":")
    try:
        return f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}"
    except ValueError:
        return Missing(Gap.GARBLED, where, text[:80])
