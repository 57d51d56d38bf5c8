"""What each Xid means and how bad it is, as NVIDIA's catalogue has it.

https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html; it holds for Ampere and later, and NVIDIA's older
list for boards before: https://docs.nvidia.com/deploy/archive/r525/xid-errors/index.html. Xid 79 is judged by
kernel.off-bus.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.record import Record

XidClass = Literal["application", "information", "warn", "repeated", "wording", "fail"]
"""application: a program's own fault, until several show it. repeated: warns, and fails if it was seen twice.
wording: the line tells (``Fatal``, the action asked for)."""


class Meaning(Record, kw_only=False):
    """One number of the catalogue."""

    text: str
    severity: XidClass


AMPERE = 7
"""``nvmlDeviceArchitecture_t``"""
UNLISTED = Meaning("not in the catalogue", "warn")
FATAL = re.compile(r"(?<![\w-])Fatal\b")
"""In the line of a number whose wording tells."""


def _each(severity: XidClass, text: str, *numbers: int) -> dict[int, Meaning]:
    return dict.fromkeys(numbers, Meaning(text, severity))


XIDS: Mapping[int, Meaning] = {
    **_each("application", "fault in an engine", 8, 11, 25, 60, 69, 75, 76, 77, 80, 85),
    **_each("application", "graphics engine exception", 13),
    **_each("application", "memory page fault", 31),
    **_each("application", "invalid or corrupted push buffer", 32),
    **_each("application", "fault in a copy engine", 39, 40, 41, 70, 71, 72, *range(126, 136)),
    **_each("application", "fault in a video, JPEG or optical flow engine", 68, 82, 83, 84, 86, 88, 89,
            *range(96, 106), 139),
    **_each("application", "channel stopped", 43),
    **_each("application", "channel removed after another error", 45),
    **_each("information", "notice of the driver", 44, 66, 67, 93, 106, 107, 141, 152, 153, 162, 163, 164, 165, 174),
    **_each("information", "start of a virtual GPU", 78),
    **_each("warn", "firmware error", 37, 38),
    **_each("fail", "video processor or context switch stopped", 46, 109, 110),
    **_each("fail", "double-bit memory error", 48),
    **_each("fail", "auxiliary power is not connected", 54),
    **_each("fail", "micro-controller halt", 62),
    **_each("warn", "page retirement or row remapping recorded", 63),
    **_each("fail", "page retirement or row remapping failed", 64),
    **_each("fail", "video processor exception", 65),
    **_each("repeated", "NVLink error", 74),
    **_each("warn", "high rate of single-bit memory errors", 92),
    **_each("warn", "contained memory error", 94),
    **_each("fail", "uncontained memory error", 95),
    **_each("fail", "no answer of the GPU's system processor", 119, 120),
    **_each("warn", "error on the link to the processor", 121),
    **_each("fail", "NVLink training failed", 136),
    **_each("warn", "NVLink privilege error", 137),
    **_each("fail", "unrecovered memory error", 140),
    **_each("warn", "video encoder error", 142),
    **_each("fail", "the GPU did not start", 143),
    **_each("wording", "NVLink error", *range(144, 151)),
    **_each("warn", "key rotation", 151),
    **_each("wording", "recovery action changed", 154),
    **_each("fail", "NVLink software timeout", 155),
    **_each("fail", "resource retirement", 156),
    **_each("warn", "resource retirement failed", 157, 161),
    **_each("fail", "fatal timeout", 158),
    **_each("warn", "resource retirement notice", 159, 160),
    **_each("fail", "fatal PCIe timeout", 167),
    **_each("warn", "error of the protected memory region", 168),
    **_each("fail", "security processor halt", 169),
    **_each("warn", "interrupt of the security processor", 170),
    **_each("fail", "detail of a double-bit memory error", 171, 172),
    **_each("fail", "fatal error on the link to the processor", 173),
    **_each("fail", "memory subsystem error", 175),
    **_each("warn", "correctable PCIe fault", 176),
}  # fmt: skip
_BEFORE_AMPERE = {
    63: Meaning("page retirement recorded", "warn"),
    64: Meaning("page retirement failed", "fail"),
}
_FROM_AMPERE = {
    63: Meaning("row remapping recorded", "warn"),
    64: Meaning("row remapping failed", "fail"),
}


def meaning(number: int, architecture: int | None) -> Meaning:
    """What the number means on a GPU of this ``nvmlDeviceArchitecture_t``; None where that is not known."""
    if architecture is not None:
        of_board = _FROM_AMPERE if architecture >= AMPERE else _BEFORE_AMPERE
        if number in of_board:
            return of_board[number]
    return XIDS.get(number, UNLISTED)
