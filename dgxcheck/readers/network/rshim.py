"""``cat /dev/rshim0/misc``: what a BlueField logs of its boot, which its host reads over the rshim.

With DISPLAY_LEVEL 2 it has the log: https://docs.nvidia.com/networking/display/bluefieldbsp4110, RShim logging;
https://github.com/Mellanox/rshim-user-space, rshim.8.
"""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import Imported, ToolPart
from dgxcheck.readers.values import numbered

TOOL = "rshim"
_HEAD = LazyPattern(r"DISPLAY_LEVEL {1,20}\d \(0:basic.{0,60}", "DISPLAY_LEVEL")
_MEMBER = LazyPattern(r"(?P<name>[A-Z][A-Z0-9_]{3,30}) {1,24}(?P<value>\S.{0,120})|-{20,80}|Log Messages")
_LOGGED = LazyPattern(r"(?P<level>INFO|WARN|ERR|ASSERT|PANIC)\[(?P<stage>[\w .-]{1,20})\]: ?(?P<text>.{1,300})")
_BAD = ("ERR", "ASSERT", "PANIC")


def read_rshim(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """An error of the boot; the device is that of the rshim, a function beside the adapter's."""
    part, at = ToolPart(TOOL), ""
    for number, text in numbered(lines):
        if _HEAD.fullmatch(text):
            at = ""
        elif not part.lines:
            continue
        elif logged := _LOGGED.fullmatch(text):
            if logged["level"] in _BAD:
                part.add("BlueField", "boot", "warn", Fault.HCA_BOOT, f"{logged['stage']}: {logged['text']}{at}")
        elif member := _MEMBER.fullmatch(text):
            at = f" (rshim at {member['value']})" if member["name"] == "DEV_NAME" else at
        else:
            continue
        part.lines.add(number)
    return part.imported(sound="boot")
