"""Lines of the mlx5 driver in the kernel log (Linux drivers/net/ethernet/mellanox/mlx5/core).

Only those about hardware. A register that a restricted function may not read fails at every access
(``ACCESS_REG(0x805) .. err(-22)``) and means nothing.
"""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import PATTERN, is_bdf
from dgxcheck.facts.kernel_log import HcaTrouble
from dgxcheck.facts.record import Record

_LINE = re.compile(
    rf"mlx5_core (?P<bdf>{PATTERN}): (?:\w{{1,64}}:\d{{1,6}}:(?:\(pid \d{{1,10}}\):)? )?(?P<text>.*)", re.DOTALL
)
_OF_OLD = re.compile(rf"mlx5_core: (?P<text>probe of (?P<bdf>{PATTERN}) failed with error -?\d.*)", re.DOTALL)
_TROUBLES: tuple[tuple[HcaTrouble, re.Pattern[str]], ...] = (
    (
        "not started",
        re.compile(
            r"mlx5_(?:load|init)_one failed with error code|probe (?:of|with driver) .*failed"
            r"|ENABLE_HCA\(0x104\) timeout"
        ),
    ),
    (  # health.c
        "firmware",
        re.compile(r"device's health compromised|Fatal error \d{1,3} detected|synd 0x1: firmware internal error"),
    ),
    # cmd.c: no answer at all; a command that is answered late says "recovered after timeout"
    ("firmware", re.compile(r"\w{1,64}\(0x[0-9a-f]{1,8}\) timeout\. Will cause a leak of a command resource")),
    ("module", re.compile(r"Port module event\[error\]: module (?P<module>\d{1,3}), (?P<what>.*)")),  # events.c
    ("temperature", re.compile(r"High temperature on sensors")),
    ("power", re.compile(r"Detected insufficient power on the PCIe slot")),
)
_PLUGGED = re.compile(r"Port module event: module (?P<module>\d{1,3}), Cable plugged")
_BEGINS = "firmware version: "


class HcaText(Record):
    """An error of an HCA in one line."""

    bdf: str
    trouble: HcaTrouble
    module: int | None
    text: str


def trouble(message: str) -> HcaText | None:
    """``mlx5_core 0000:05:00.0: Port module event[error]: module 0, Cable error, High Temperature``."""
    match = _LINE.match(message) or _OF_OLD.match(message)
    if match is None or not is_bdf(match["bdf"]):
        return None
    for kind, form in _TROUBLES:
        if error := form.match(match["text"]):
            parts = error.groupdict()
            module = parts.get("module")
            text = (parts.get("what") or match["text"]).strip()
            return HcaText(bdf=match["bdf"], trouble=kind, module=int(module) if module else None, text=text)
    return None


def begins(message: str) -> str | None:
    """``mlx5_core 0000:05:00.0: firmware version: 12.28.2006``: the driver takes over this adapter."""
    match = _LINE.match(message)
    return match["bdf"] if match is not None and match["text"].startswith(_BEGINS) and is_bdf(match["bdf"]) else None


def plugged(message: str) -> tuple[str, int] | None:
    """A module or cable was plugged in: adapter and number of the module."""
    match = _LINE.match(message)
    event = None if match is None else _PLUGGED.match(match["text"])
    return (match["bdf"], int(event["module"])) if match is not None and event and is_bdf(match["bdf"]) else None
