"""``dmidecode``: system, board and BIOS, as the files of ``/sys/class/dmi/id``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.missing import Json

_DMI = "/sys/class/dmi/id"
_FILES = {
    ("BIOS Information", "Vendor"): "bios_vendor",
    ("BIOS Information", "Version"): "bios_version",
    ("BIOS Information", "Release Date"): "bios_date",
    ("System Information", "Manufacturer"): "sys_vendor",
    ("System Information", "Product Name"): "product_name",
    ("System Information", "Version"): "product_version",
    ("System Information", "Serial Number"): "product_serial",
    ("Base Board Information", "Manufacturer"): "board_vendor",
    ("Base Board Information", "Product Name"): "board_name",
}
_MEMBER = re.compile(r"\t([A-Z][\w /-]{1,40}): ?(.{0,200})")
_VERSION = re.compile(r"# dmidecode (\d[\w.-]{0,20})")


def read(lines: Sequence[str]) -> dict[str, Json]:
    """Facts by key; of several tables of one kind (blades, boards) the first counts, as with the kernel."""
    facts: dict[str, Json] = {}
    table = ""
    done: set[str] = set()
    for line in lines:
        if line[:1] not in ("\t", ""):
            done |= {table} - {""}
            table = "" if line.startswith("Handle ") else line.strip()
        elif table not in done and (member := _MEMBER.fullmatch(line.rstrip("\r"))):
            file = _FILES.get((table, member[1]))
            if file is not None:
                facts.setdefault(f"text {_DMI}/{file}", f"{member[2].rstrip()}\n")
    return facts


def version(lines: Sequence[str]) -> str:
    """That of the tool, empty where the output does not name it."""
    return next((match[1] for line in lines[:10] if (match := _VERSION.match(line))), "")
