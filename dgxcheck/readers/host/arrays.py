"""Arrays and pools of disks that are not whole: ``/proc/mdstat``, ``mdadm --detail``, storcli, ``zpool status``."""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.tool_outputs import DISK
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of

_ARRAY = LazyPattern(r"(?P<name>md\w{1,30}) : (?P<state>active|inactive)\b(?P<members>.{0,600})")
_MEMBERS = LazyPattern(
    r"\d{1,16} blocks(?P<container> super external:(?![/-]))?"
    r"(?:.{0,120}\[(?P<wanted>\d{1,4})/(?P<there>\d{1,4})\] \[[U_]{1,400}\])?.{0,120}"
)
"""A container holds the metadata of arrays (Intel VROC), which name it behind a slash, and is always inactive."""
_BESIDE = LazyPattern(r"Personalities :.{0,200}|unused devices: .{0,200}|bitmap: .{0,120}|\[[=>.]{10,40}\]  .{0,120}")


def read_arrays(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``/proc/mdstat``: arrays that lack a member, or are not assembled."""
    part = ToolPart("/proc/mdstat")
    name = members = state = ""
    begun = 0
    for number, text in numbered(lines):
        if array := _ARRAY.fullmatch(text):
            name, members, state, begun = array["name"], array["members"], array["state"], number
        elif name and (shown := _MEMBERS.fullmatch(text)):
            there, wanted = int(shown["there"] or 0), int(shown["wanted"] or 0)
            if state == "inactive" and not shown["container"]:
                part.add(f"{DISK}{name}", name, "warn", Fault.DISK, f"{name} is inactive:{members}")
            elif there < wanted:
                part.add(f"{DISK}{name}", name, "warn", Fault.DISK, f"{name} has {there} of {wanted} members:{members}")
            part.lines |= {begun, number}
        elif _BESIDE.fullmatch(text):
            part.beside.add(number)
        else:
            name = name if text else ""
    return part.imported(sound="arrays")


_OF_RAID = LazyPattern(any_of("host/lines", "storcli, drives and volumes"))
_BESIDE_RAID = LazyPattern(any_of("host/lines", "storcli"))
_BROKEN = {"Dgrd": "degraded", "Pdgd": "partially degraded", "OfLn": "offline", "Failed": "failed", "Offln": "offline",
           "UBad": "unconfigured and bad", "Rbld": "being rebuilt", "Msng": "missing"}  # fmt: skip
"""By the legend that it prints itself; hot spares, unconfigured good drives and JBOD are no fault."""


def read_raid(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``storcli`` and ``perccli``, also their 2, ``show``: volumes that are not optimal, and drives that failed."""
    part = ToolPart("storcli")
    for row in part.matches(_OF_RAID, numbered(lines), beside=_BESIDE_RAID):
        if words := _BROKEN.get(row["is"] or row["state"]):
            what = f"drive {row['drive']}" if row["drive"] else f"volume {row['volume']}"
            part.add(HOST, "raid", "warn", Fault.DISK, f"{what} is {words}")
    return part.imported(sound="raid")


_DETAIL = LazyPattern(r"(?P<name>/dev/md[\w/-]{0,30}):")
_DETAIL_STATE = LazyPattern(r"State : (?P<state>.{0,200})")
_DETAIL_ROW = LazyPattern(any_of("host/lines", "mdadm --detail"))


def read_array_details(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Arrays whose state is not clean or active alone."""
    part = ToolPart("mdadm")
    array = ""
    for number, text in numbered(lines):
        if begins := _DETAIL.fullmatch(text):
            array = begins["name"]
        elif array and (state := _DETAIL_STATE.fullmatch(text)):
            if any(word in state["state"] for word in ("degraded", "FAILED", "inactive", "Not Started")):
                part.add(array, "array", "warn", Fault.DISK, f"{array.removeprefix(DISK)} is {state['state']}")
            else:
                part.add(array, "array", "pass")
        elif not (array and _DETAIL_ROW.fullmatch(text)):
            array = "" if text else array
            continue
        part.lines.add(number)
    return part.imported()


_POOL = LazyPattern(r"pool: (?P<name>[\w.:-]{1,255})|all pools are healthy|pool '.{1,255}' is healthy")
_OF_POOL = LazyPattern(any_of("host/lines", "zpool status"))
_GONE = ("it is SUSPENDED", "it is UNAVAIL", "it is FAULTED")
_NO_DISK = LazyPattern(r"(?:mirror|raidz\d?|draid\d?\S{0,30}|replacing|spare)-\d{1,4}")


def read_pools(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``zpool status``: pools that are not ONLINE, with the disks that are to blame, and files that were lost.

    https://openzfs.github.io/openzfs-docs/man/master/7/zpoolconcepts.7.html
    """
    part = ToolPart("zpool")
    pools: list[tuple[str, list[str]]] = []
    words = False
    for number, text in numbered(lines):
        if begins := _POOL.fullmatch(text):
            pools += [(begins["name"], [])] if begins["name"] else []
        elif pools and (row := _OF_POOL.fullmatch(text)):
            name, found = pools[-1]
            bad = row["state"] or row["is"] or "ONLINE"
            if bad != "ONLINE" and row["member"] != name and not _NO_DISK.fullmatch(row["member"] or ""):
                found.append(" ".join(filter(None, (row["member"] or "it", "is", bad, row["why"]))))
            found += ["files were lost"] if "Permanent errors" in text else []
            words = row["words"] is not None
        elif not (words and text):
            words = False
            continue
        part.lines.add(number)
    for name, found in pools:
        gone = any(word in found for word in _GONE)
        if found:
            fault = Fault.ARRAY_FAILED if gone else Fault.DISK
            part.add(f"{DISK}{name}", "pool", "fail" if gone else "warn", fault, f"pool {name}: {', '.join(found)}")
    return part.imported(sound="pools")
