"""Changed words of a recorded PCI configuration space."""

from __future__ import annotations

from dgxcheck.facts.missing import Json, Missing
from dgxcheck.source.recording.keys import from_rows, to_rows
from dgxcheck.source.recording.load import open_source

PCI = "/sys/bus/pci/devices"
COMMAND = -1
"""In place of an offset in the PCI Express capability: the Command register of the header."""
DEVICE_CONTROL, LINK_CONTROL_2 = 0x08, 0x30


def word(base: str, bdf: str, at: int, mask: int, value: int) -> dict[str, Json]:
    """The fact with the bits ``mask`` of one word set to ``value``; ``at`` counts from the PCI Express capability."""
    data = open_source(base).data(f"{PCI}/{bdf}/config")
    assert not isinstance(data, Missing)
    space = bytearray(data)
    start = 0x04
    if at != COMMAND:
        start = space[0x34]
        while space[start] != 0x10:
            start = space[start + 1]
        start += at
    old = int.from_bytes(space[start : start + 2], "little")
    space[start : start + 2] = (old & ~mask | value).to_bytes(2, "little")
    rows = to_rows(bytes(space))
    assert from_rows(rows) == bytes(space)
    return {f"data {PCI}/{bdf}/config": rows}
