"""``dmidecode``: system, board and BIOS, as the files of ``/sys/class/dmi/id``, and what is in the memory slots."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import DMI
from dgxcheck.readers.host.memory_devices import report
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bounded

TOOL = "dmidecode"
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
_MEMORY = "Memory Device"
_TABLES = frozenset((*(table for table, _ in _FILES), _MEMORY, "Physical Memory Array"))
MOST_SLOTS = 512
_HANDLE = re.compile(r"Handle 0x[0-9A-Fa-f]{1,4}, DMI type \d{1,3}, \d{1,3} bytes\.?")
_MEMBER = re.compile(r"\s{1,16}([A-Z][\w /-]{1,40}): ?(.{0,200})")
_VERSION = re.compile(r"# dmidecode (\d[\w.-]{0,20})")
_CHATTER = re.compile(
    r"Getting SMBIOS data from \S{1,80}|SMBIOS [\d.]{1,12} present\.|# SMBIOS implementations newer .{1,200}"
    r"|# fully supported by this version of dmidecode\.|Table at 0x[0-9A-Fa-f]{1,16}\."
    r"|\d{1,6} structures occupying \d{1,9} bytes\.|End Of Table"
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Of several tables of one kind (blades, boards) the first counts, as with the kernel."""
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    table = tool = ""
    titled = inside = False
    done: set[str] = set()
    slots: list[dict[str, str]] = []
    for number, raw in enumerate(_dedented(bounded(lines))):
        line = raw.rstrip()
        if not line:
            inside = titled
            done |= {table} - {""}
            table = ""
        elif version := _VERSION.fullmatch(line):
            tool = f"{TOOL} {version[1]}"
            understood.add(number)
        elif _HANDLE.fullmatch(line):
            done |= {table} - {""}
            table, titled, inside = "", True, True
            understood.add(number)
        elif (titled and inside and line[:1] not in " \t") or line in _TABLES:
            done |= {table} - {""}
            table, titled, inside = line, False, True
            slots += [{}] if line == _MEMORY and len(slots) < MOST_SLOTS else []
            understood.add(number)
        elif inside and line[:1] in " \t":
            understood.add(number)
            member = _MEMBER.fullmatch(line)
            if member is not None and table == _MEMORY:
                slots[-1].setdefault(member[1], member[2].strip())
            elif member is not None and table not in done and (table, member[1]) in _FILES:
                facts.setdefault(f"text {DMI}/{_FILES[table, member[1]]}", f"{member[2].rstrip()}\n")
        elif _CHATTER.fullmatch(line):
            understood.add(number)
        else:
            table, inside, titled = "", False, False
    reports = Reports(TOOL)
    report(slots, reports)
    facts |= reports.facts()
    return (Imported(tool=tool or TOOL, facts=facts, understood=frozenset(understood)),) if facts else ()


def _dedented(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Without the blanks that every handle has before it, as in a listing that is code of Markdown."""
    margins = {line[: len(line) - len(line.lstrip())] for line in lines if _HANDLE.fullmatch(line.strip())}
    common = min(margins, key=len, default="")
    return tuple(line.removeprefix(common) for line in lines) if common else lines
