"""What each Xid means, how severe it is and what to do, as NVIDIA's catalogue has it.

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
"""application: a program's own fault, until several programs have it. repeated: warns, and fails if it occurs twice.
wording: the line itself says how severe it is (``Fatal``, the action asked for)."""
Action = Literal[
    "power", "recovery", "retire", "nvlink", "reset", "vm", "contained", "pcie", "watch", "report", "program"
]  # fmt: skip


class Meaning(Record, kw_only=False):
    """One number of the catalogue."""

    text: str
    severity: XidClass
    action: Action


REMEDIES: Mapping[Action, str] = {
    "power": "power off and check the GPU's auxiliary power cables and the power supplies",
    "recovery": "do what the driver asks for: GPU Recovery Action of nvidia-smi -q",
    "retire": "drain and reset the GPU, then run dcgmi diag -r 3; if it fails or the Xid comes back, call the vendor"
    " with the file of nvidia-bug-report.sh",
    "nvlink": "see nvlink.errors and nvidia-smi nvlink -e for the links at both ends; drain and reset the GPU (before"
    " Ampere together with the GPUs joined to it), then check seating and NVLink bridge if the Xid comes back",
    "reset": "drain and reset the GPU (before Ampere together with the GPUs joined to it by NVLink); if the Xid comes"
    " back, call the vendor with the file of nvidia-bug-report.sh",
    "vm": "restart the virtual machine",
    "contained": "restart the program that was stopped; reset the GPU at the next drain",
    "pcie": "check the GPU's PCIe link (pcie.*, kernel.aer) and its seating; before Ampere this Xid mostly means a bad"
    " PCIe link",
    "watch": "no action now; look at ecc.* and reset the GPU at the next drain if it is asked for there",
    "report": "if the Xid comes back, call the vendor with the file of nvidia-bug-report.sh",
    "program": "check the program (compute-sanitizer); suspect the hardware only if several programs fail on this GPU",
}
"""The most drastic first."""
AMPERE = 7
"""``nvmlDeviceArchitecture_t``"""
UNLISTED = Meaning("not in the catalogue", "warn", "report")
FATAL = re.compile(r"(?<![\w-])Fatal\b")
"""In the line of a number whose wording says how severe it is."""


def _each(severity: XidClass, action: Action, text: str, *numbers: int) -> dict[int, Meaning]:
    return dict.fromkeys(numbers, Meaning(text, severity, action))


XIDS: Mapping[int, Meaning] = {
    **_each("application", "program", "GPU stopped processing", 8, 43),
    **_each("application", "program", "invalid or corrupted push buffer", 11, 25, 32),
    **_each("application", "program", "graphics engine exception", 13, 69),
    **_each("application", "program", "GPU memory page fault", 31),
    **_each("application", "program", "copy engine exception", 39, 40, 41, 70, 71, 72, 75, 76, 77, 85,
            *range(126, 136)),
    **_each("application", "program", "channel removed after another error", 45),
    **_each("application", "program", "corrupted data sent to the GPU", 80),
    **_each("application", "program", "video, JPEG or optical flow engine exception", 60, 68, 82, 83, 84, 86, 88, 89,
            *range(96, 106), 139),
    **_each("information", "report", "driver notice", 44, 66, 67, 93, 106, 107, 141, 152, 153, 162, 163, 164, 165, 174),
    **_each("information", "report", "vGPU start error", 78),
    **_each("warn", "report", "driver firmware error", 37, 38),
    **_each("fail", "reset", "GPU stopped processing", 46),
    **_each("fail", "retire", "double-bit ECC error", 48),
    **_each("fail", "power", "auxiliary power is not connected", 54),
    **_each("fail", "reset", "internal microcontroller halt", 62),
    **_each("warn", "watch", "page retirement or row remapping recorded", 63),
    **_each("fail", "retire", "page retirement or row remapping failed", 64),
    **_each("fail", "reset", "video processor exception", 65),
    **_each("repeated", "nvlink", "NVLink error", 74),
    **_each("warn", "watch", "high rate of single-bit ECC errors", 92),
    **_each("warn", "contained", "contained memory error", 94),
    **_each("fail", "reset", "uncontained memory error", 95),
    **_each("fail", "reset", "context switch timeout", 109),
    **_each("fail", "reset", "security fault", 110),
    **_each("fail", "reset", "GPU system processor (GSP) does not respond", 119, 120),
    **_each("warn", "report", "chip-to-chip link (C2C) error", 121),
    **_each("fail", "nvlink", "NVLink training failed", 136),
    **_each("warn", "program", "NVLink privilege error", 137),
    **_each("fail", "reset", "unrecovered ECC error", 140),
    **_each("warn", "report", "video encoder error", 142),
    **_each("fail", "reset", "GPU initialization error", 143),
    **_each("wording", "nvlink", "NVLink error", *range(144, 151)),
    **_each("warn", "vm", "key rotation error", 151),
    **_each("wording", "recovery", "GPU recovery action changed", 154),
    **_each("fail", "nvlink", "NVLink error defined by software", 155),
    **_each("fail", "reset", "resource retirement", 156),
    **_each("warn", "report", "resource retirement failed", 157),
    **_each("fail", "reset", "GPU fatal timeout", 158),
    **_each("warn", "report", "CHI non-data error", 159),
    **_each("warn", "report", "channel retirement", 160),
    **_each("warn", "report", "channel retirement failed", 161),
    **_each("fail", "reset", "fatal PCIe timeout", 167),
    **_each("warn", "report", "error in the write-protected memory region", 168),
    **_each("fail", "reset", "security processor halt", 169),
    **_each("warn", "report", "security processor interrupt", 170),
    **_each("fail", "retire", "uncorrectable DRAM error", 171),
    **_each("fail", "retire", "uncorrectable SRAM error", 172),
    **_each("fail", "reset", "fatal chip-to-chip link (C2C) error", 173),
    **_each("fail", "reset", "memory subsystem error", 175),
    **_each("warn", "report", "correctable PCIe fault", 176),
}  # fmt: skip
_BEFORE_AMPERE = {
    32: Meaning("invalid or corrupted push buffer", "application", "pcie"),
    63: Meaning("page retirement recorded", "warn", "watch"),
    64: Meaning("page retirement failed", "fail", "retire"),
}
_FROM_AMPERE = {
    63: Meaning("row remapping recorded", "warn", "watch"),
    64: Meaning("row remapping failed", "fail", "retire"),
}


def meaning(number: int, architecture: int | None) -> Meaning:
    """What the number means on a GPU of this ``nvmlDeviceArchitecture_t``; None where that is not known."""
    if architecture is not None:
        of_board = _FROM_AMPERE if architecture >= AMPERE else _BEFORE_AMPERE
        if number in of_board:
            return of_board[number]
    return XIDS.get(number, UNLISTED)
