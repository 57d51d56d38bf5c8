"""Names of PCI ids from the system's pci.ids."""

from __future__ import annotations

from collections.abc import Callable

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.rootfs import decode, read_bytes

PLACES = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids", "/var/lib/pciutils/pci.ids")


class PciIds:
    """One pci.ids, read with ``read`` when the first name is asked for."""

    def __init__(self, root: str = "", read: Callable[[str], bytes] = read_bytes) -> None:
        self._root = root
        self._bytes = read
        self._table: bytes | None = None

    def name(self, key: str) -> str | Missing:
        """``10de`` -> the vendor's name, ``10de:1db1`` -> the device's; absent where no table or no entry is found."""
        where = f"pci {key}"
        if self._table is None:
            self._table = self._read()
        if not self._table:
            return Missing(Gap.ABSENT, where, "no pci.ids on this machine")
        vendor, _, device = key.partition(":")
        if (found := _entry(self._table, f"\n{vendor}  ", 0, len(self._table))) and device:
            block_end = _block_end(self._table, found[1])
            found = _entry(self._table, f"\n\t{device}  ", found[1], block_end)
        return decode(found[0]) if found else Missing(Gap.ABSENT, where, "not in pci.ids")

    def _read(self) -> bytes:
        for place in PLACES:
            try:
                return b"\n" + self._bytes(self._root + place)
            except OSError:
                continue
        return b""


def _entry(table: bytes, head: str, start: int, end: int) -> tuple[bytes, int] | None:
    at = table.find(head.encode(), start, end)
    if at < 0:
        return None
    line_end = table.find(b"\n", at + 1)
    line_end = len(table) if line_end < 0 else line_end
    return table[at + len(head) : line_end].strip(), line_end


def _block_end(table: bytes, start: int) -> int:
    """Where the next vendor's line starts: the first line with neither tab nor # in front."""
    at = start
    while 0 <= at < len(table) - 1:
        if table[at + 1 : at + 2] not in (b"\t", b"#", b"\n"):
            return at + 1
        at = table.find(b"\n", at + 1)
    return len(table)
