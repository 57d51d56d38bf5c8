"""``dmidecode``: system, board and BIOS, as the files of ``/sys/class/dmi/id``, and what is in the memory slots.

The memory devices of ``dmidecode -t memory``: what is in the slots, as results of a tool.

Slots and speeds: System Management BIOS reference specification (DSP0134), type 17. DIMMs often run slower than they
are rated, where a channel holds two or the CPU supports no more: that alone is no fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dgxcheck.facts import firmware
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.sysfs import DMI, SMBIOS
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart
from dgxcheck.readers.values import bounded, integer
from dgxcheck.readers.wording import any_of, rows
from dgxcheck.source.recording.keys import to_rows

Members = Mapping[str, str]
_SIZE = LazyPattern(r"(\d{1,7}) (MB|GB|MiB|GiB)")
_SPEED = LazyPattern(r"(\d{3,5}) (?:MT/s|MHz)")
_SLOT = LazyPattern(r"(?P<channel>.{0,40}[A-Za-z])(?P<slot>\d)")
"""``P1-DIMMA2``, ``CPU2_DIMM_C1``: the letter is the channel."""
_CHANNEL = caseless_pattern(r".{0,40}CHANNEL[ _-]?[A-Z0-9]{1,2}")
FEWEST_CHANNELS = 6
"""Boards with fewer are often not filled."""


def report(devices: Sequence[Members], reports: Reports) -> None:
    """What the slots hold; different speeds, and the only channel without a DIMM."""
    dimms = [device for device in devices if device.get("Type", "").startswith("DDR") and _mib(device)]
    if not dimms:
        return
    kinds = Counter(f"{_mib(dimm) / 1024:g} GiB {dimm['Type']}" for dimm in dimms)
    empty = sum(map(_is_empty, devices))
    speeds = {dimm.get("Locator", "?"): speed for dimm in dimms if (speed := _speed(dimm)) is not None}
    rated = {int(match[1]) for dimm in dimms if (match := _SPEED.fullmatch(dimm.get("Speed", "")))}
    text = ", ".join(f"{count} x {kind}" for kind, count in kinds.items())
    if len({*speeds.values()}) == 1:
        speed = next(iter(speeds.values()))
        text = f"{text} at {speed} MT/s" + (f", rated {max(rated)}" if rated and max(rated) != speed else "")
    reports.add(HOST, "memory", "pass", None, f"{text}; empty slots: {empty}" if empty else text)
    counted = Counter(speeds.values())
    if len(counted) > 1:
        usual = counted.most_common(1)[0][0]
        odd = [f"{name} at {speed}" for name, speed in speeds.items() if speed != usual]
        more = f" and {len(odd) - 4} more" if len(odd) > 4 else ""
        text = f"DIMMs run at different speeds: {', '.join(odd[:4])}{more}, the others at {usual} MT/s"
        reports.add(HOST, "memory-speed", "warn", Fault.DIMM_SPEED, text)
    filled = {channel for dimm in dimms if (channel := _channel(dimm))}
    channels = {channel for device in devices if (channel := _channel(device))}
    without = sorted(channels - filled)
    if len(without) == 1 and len(channels) >= FEWEST_CHANNELS:
        text = f"no DIMM in channel {without[0]}, some in each of the {len(filled)} others"
        reports.add(HOST, "memory-channels", "warn", Fault.MEMORY_MISSING, text)


def _mib(device: Members) -> int:
    match = _SIZE.fullmatch(device.get("Size", ""))
    return 0 if match is None else int(match[1]) << (10 if match[2].startswith("G") else 0)


def _is_empty(device: Members) -> bool:
    return device.get("Size") in ("No Module Installed", "Not Installed", "None")


def _speed(device: Members) -> int | None:
    match = _SPEED.fullmatch(device.get("Configured Memory Speed", device.get("Configured Clock Speed", "")))
    return None if match is None else int(match[1])


def _channel(device: Members) -> str:
    """By the bank's name, else by that of the slot; empty where neither tells."""
    if not (_is_empty(device) or _mib(device)):
        return ""
    if bank := _CHANNEL.fullmatch(device.get("Bank Locator", "")):
        return bank[0]
    slot = _SLOT.fullmatch(device.get("Locator", ""))
    return slot["channel"] if slot else ""


TOOL = "dmidecode"
_FILES = {(row["table"], row["member"]): row["file"] for row in rows("host/dmi")}
_MEMORY, _ARRAY = "Memory Device", "Physical Memory Array"
_TABLES = frozenset((*(table for table, _ in _FILES), _MEMORY, _ARRAY))
_STRINGS = {
    "Locator": firmware.LOCATOR, "Bank Locator": firmware.BANK, "Manufacturer": firmware.MAKER,
    "Serial Number": firmware.SERIAL, "Part Number": firmware.PART_NUMBER,
}  # fmt: skip
MOST_SLOTS = 512
_HANDLE = LazyPattern(r"Handle 0x[0-9A-Fa-f]{1,4}, DMI type \d{1,3}, \d{1,3} bytes\.?")
_MEMBER = LazyPattern(r"\s{1,16}([A-Z][\w /-]{1,40}): ?(.{0,200})")
_VERSION = LazyPattern(r"# dmidecode (\d[\w.-]{0,20})")
_CHATTER = LazyPattern(any_of("host/lines", "dmidecode"))


def read_dmidecode(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Of several tables of one kind (blades, boards) the first counts, as with the kernel; the memory modules where no
    slot is left out."""
    part = ToolPart(TOOL)
    table = ""
    titled = inside = False
    counted: Counter[str] = Counter()
    slots: list[dict[str, str]] = []
    in_arrays = 0
    for number, raw in enumerate(_dedented(bounded(lines))):
        line = raw.rstrip()
        if not line:
            table, inside = "", titled
        elif version := _VERSION.fullmatch(line):
            part.tool = f"{TOOL} {version[1]}"
            part.lines.add(number)
        elif _HANDLE.fullmatch(line):
            table, titled, inside = "", True, True
            part.lines.add(number)
        elif (titled and inside and line[:1] not in " \t") or line in _TABLES:
            table, titled, inside = line, False, True
            counted[table] += 1
            slots += [{}] if line == _MEMORY and len(slots) < MOST_SLOTS else []
            part.lines.add(number)
        elif inside and line[:1] in " \t":
            part.lines.add(number)
            name, value = member.groups() if (member := _MEMBER.fullmatch(line)) else ("", "")
            if table == _MEMORY:
                slots[-1].setdefault(name, value.strip())
            elif table == _ARRAY and name == "Number Of Devices":
                in_arrays += integer(value.strip(), MOST_SLOTS) or 0
            elif counted[table] == 1 and (table, name) in _FILES:
                part.found.setdefault(f"text {DMI}/{_FILES[table, name]}", f"{value.rstrip()}\n")
        elif _CHATTER.fullmatch(line):
            part.lines.add(number)
        else:
            table, inside, titled = "", False, False
    reports = Reports(TOOL)
    report(slots, reports)
    if slots and len(slots) == in_arrays and all(_is_empty(slot) or _mib(slot) for slot in slots):
        texts = [{at: slot.get(name, "") for name, at in _STRINGS.items()} for slot in slots]
        part.found[f"data {SMBIOS}"] = to_rows(firmware.memory_table(zip(map(_mib, slots), texts, strict=True)))
    return part.imported(reports.facts()) if part.found or reports else ()


def _dedented(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Without the blanks that every handle has before it, as in a listing that is code of Markdown."""
    margins = {line[: len(line) - len(line.lstrip())] for line in lines if _HANDLE.fullmatch(line.strip())}
    common = min(margins, key=len, default="")
    return tuple(line.removeprefix(common) for line in lines) if common else lines
