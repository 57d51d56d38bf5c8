"""Messages of the mlx5 driver (Linux drivers/net/ethernet/mellanox/mlx5/core), and ports that went down, of any driver
(drivers/infiniband/core/cache.c, from Linux 6.15 on).

Only those about hardware. A register that a restricted function may not read fails at every access
(``ACCESS_REG(0x805) .. err(-22)``) and means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.bdf import PATTERN, is_bdf
from dgxcheck.facts.kernel_log import HcaEvent, HcaTrouble
from dgxcheck.facts.record import Record
from dgxcheck.kernel_messages.form import Form, Lines, first_match
from dgxcheck.kernel_messages.pcie import silent_forms

SAME_S = 1.0
"""Within this time the details of a health issue follow its first line."""
_HCA = rf"mlx5_core (?P<bdf>{PATTERN})(?: [\w.@-]{{1,15}})?: (?:\w{{1,64}}:\d{{1,6}}:(?:\(pid \d{{1,10}}\):)? ?)?"
"""Driver and bus id, a network interface, the function in the driver."""
_FATAL = 3
"""Severities are those of syslog; below ``ERROR`` the firmware does not go on."""
_HEALTH = Form("Health issue observed, ", r"(?P<what>.{1,60}), severity\((?P<severity>\d{1,2})\)", before=_HCA)
_HOT = "High temperature"
_SYNDROME = Form("synd 0x1: firmware internal error", before=_HCA)
_TROUBLES: Mapping[Form, HcaTrouble] = {
    Form("failed with error code", before=rf"{_HCA}mlx5_(?:load|init)_one "): "not started",
    Form("probe ", "(?:of|with driver) .*failed", before=_HCA): "not started",
    Form("mlx5_core: probe of ", rf"(?P<bdf>{PATTERN}) failed with error -?\d"): "not started",
    Form("ENABLE_HCA(0x104) timeout", before=_HCA): "not started",
    Form("PCI slot is unavailable", before=_HCA): "off bus",
    Form("PCI reads still not working", before=rf"{_HCA}health recovery flow aborted, "): "off bus",
    **dict.fromkeys(silent_forms(_HCA), "off bus"),
    Form("device's health compromised", before=_HCA): "firmware",
    Form("handling bad device here", before=_HCA): "firmware",
    Form("Fatal error ", r"\d{1,3} detected", before=_HCA): "firmware",
    Form("wait vital failed with error code", before=rf"{_HCA}mlx5_pci_slot_reset: "): "firmware",
    _SYNDROME: "firmware",
    Form(" timeout. Will cause a leak of a command resource", before=rf"{_HCA}\w{{1,64}}\(0x[0-9a-f]{{1,8}}\)"):
        "firmware",
    Form("Port module event[error]: module ", r"(?P<module>\d{1,3}), (?P<what>.*)", before=_HCA): "module",
    Form("High temperature on sensors", before=_HCA): "temperature",
    Form("synd 0x10: High temperature", before=_HCA): "temperature",
    Form("Detected insufficient power on the PCIe slot", before=_HCA): "power",
    Form("TX timeout detected", before=_HCA): "stalled",
    Form("Port module event: module ", r"(?P<module>\d{1,3}), (?P<what>Cable unplugged)", before=_HCA): "unplugged",
}  # fmt: skip
"""health.c, cmd.c (no answer at all; a command that is answered late says "recovered after timeout"), events.c,
en_main.c."""
_PORT_DOWN = Form(
    ": Port: ", r"(?P<port>[1-9]\d{0,2}) Link DOWN$",
    before=rf"[\w-]{{1,32}} (?P<bdf>{PATTERN}) (?P<device>[\w.@-]{{1,63}})",
)  # fmt: skip
_PLUGGED = Form("Port module event: module ", r"(?P<module>\d{1,3}), Cable plugged", before=_HCA)
CONTEXT = (
    Form("mlx5", r"\w{0,32}[:( ].{0,80}(?:ACCESS_REG|_cmd)", context=True),
    Form("mlx5", r"\w{0,32}[:( ]", context=True),
    Form("efa ", rf"{PATTERN}[ :]", context=True),
    Form("infiniband ", r"(?:efa_|rdmap)\d", context=True),
)
"""Everything else that the driver logs, and that of AWS's adapters (drivers/infiniband/hw/efa)."""
_BEGINS = (Form("firmware version: ", before=_HCA), Form("health recovery succeeded", before=_HCA))

class HcaText(Record):
    """An error of an HCA in one line, or that a port of it went down."""

    bdf: str
    trouble: HcaTrouble
    module: int | None
    text: str


def trouble(message: str) -> HcaText | None:
    """``mlx5_core 0000:05:00.0: Port module event[error]: module 0, Cable error, High Temperature``."""
    if (health := _HEALTH.match(message)) is not None:
        severity = int(health["severity"])
        kind: HcaTrouble = "temperature" if health["what"] == _HOT else "firmware" if severity < _FATAL else "health"
        return _text(health, kind, message) if severity <= _FATAL else None
    if (down := _PORT_DOWN.match(message)) is not None and is_bdf(down["bdf"]):
        port = int(down["port"])
        return HcaText(bdf=down["bdf"], trouble="link down", module=port - 1, text=f"{down['device']} port {port}")
    found = ((match, kind) for form, kind in _TROUBLES.items() if (match := form.match(message)))
    return next((_text(match, kind, message) for match, kind in found), None)


def _text(match: re.Match[str], kind: HcaTrouble, message: str) -> HcaText | None:
    if not is_bdf(match["bdf"]):
        return None
    parts = match.groupdict()
    module = parts.get("module")
    text = parts.get("what") or re.sub(rf"mlx5_core: |{_HCA}", "", message, count=1)
    return HcaText(bdf=match["bdf"], trouble=kind, module=int(module) if module else None, text=text.strip())


def begins(message: str) -> str | None:
    """``mlx5_core 0000:05:00.0: firmware version: 12.28.2006``: the driver takes over this adapter, or has it again."""
    match = first_match(_BEGINS, message)
    return match["bdf"] if match is not None and is_bdf(match["bdf"]) else None


def plugged(message: str) -> tuple[str, int] | None:
    """A module or cable was plugged in: adapter and number of the module."""
    match = _PLUGGED.match(message)
    return (match["bdf"], int(match["module"])) if match is not None and is_bdf(match["bdf"]) else None


def events(lines: Lines) -> list[HcaEvent]:
    """Its errors, ``past`` where the driver took over the adapter, or a module was plugged in, since.

    From Linux 5.18 on a line with the severity of a health issue precedes its details, which say nothing of their own.
    """
    starts = ((begins(message) or plugged(message), number) for number, (_, message) in enumerate(lines))
    last_start: dict[object, int] = {started: number for started, number in starts if started is not None}
    found = []
    rated: dict[str, float] = {}
    for number, (seconds, message) in enumerate(lines):
        if (health := _HEALTH.match(message)) is not None:
            rated[health["bdf"]] = seconds
        detail = _SYNDROME.match(message)
        if detail is not None and seconds - rated.get(detail["bdf"], -SAME_S - 1) <= SAME_S:
            continue
        if (error := trouble(message)) is not None:
            past = number < max(last_start.get(error.bdf, -1), last_start.get((error.bdf, error.module), -1))
            found.append(
                HcaEvent(bdf=error.bdf, trouble=error.trouble, module=error.module, text=error.text, seconds=seconds,
                         line=message, past=past)
            )  # fmt: skip
    return found
