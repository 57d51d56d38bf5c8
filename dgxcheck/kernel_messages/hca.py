"""Messages of the mlx5 driver (Linux drivers/net/ethernet/mellanox/mlx5/core), and ports that went down, of any driver
(drivers/infiniband/core/cache.c, from Linux 6.15 on).

Only those about hardware. A register that a restricted function may not read fails at every access
(``ACCESS_REG(0x805) .. err(-22)``) and means nothing.
"""

from __future__ import annotations

import re
from typing import cast

from dgxcheck.facts.kernel_log import HcaEvent, HcaTrouble
from dgxcheck.facts.record import replace
from dgxcheck.kernel_messages.form import Forms, Lines

FORMS = Forms("hca", "silent")
SAME_S = 1.0
"""Within this time the details of a health issue follow its first line."""
_FATAL = 3
"""Severities are those of syslog; below ``ERROR`` the firmware does not go on."""
_WARNING = 4
_HOT = "High temperature"


def trouble(message: str, seconds: float = 0.0) -> HcaEvent | None:
    """``mlx5_core 0000:05:00.0: Port module event[error]: module 0, Cable error, High Temperature``."""
    if (health := FORMS.match("health", message)) is not None:
        severity = int(health["severity"])
        kind: HcaTrouble = "temperature" if health["what"] == _HOT else "firmware" if severity < _FATAL else "health"
        least = _WARNING if kind == "temperature" else _FATAL
        return _event(health, kind, message, seconds) if severity <= least else None
    if (down := FORMS.match("port", message)) and down["down"]:
        port = int(down["port"])
        text = _port(down)
        return HcaEvent(bdf=down["bdf"], trouble="link down", module=port - 1, text=text, seconds=seconds, line=message,
                        past=False)  # fmt: skip
    found = FORMS.found("trouble", message)
    return None if found is None else _event(found[0], cast(HcaTrouble, found[1]), message, seconds)


def _port(match: re.Match[str]) -> str:
    return f"{match['device']} port {int(match['port'])}"


def _event(match: re.Match[str], kind: HcaTrouble, message: str, seconds: float) -> HcaEvent:
    parts = match.groupdict()
    module = parts.get("module")
    text = parts.get("what") or re.sub(f"mlx5_core: |{FORMS.parts['HCA']}", "", message, count=1)
    return HcaEvent(bdf=match["bdf"], trouble=kind, module=int(module) if module else None, text=text.strip(),
                    seconds=seconds, line=message, past=False)  # fmt: skip


def begins(message: str) -> str | None:
    """``mlx5_core 0000:05:00.0: firmware version: 12.28.2006``: the driver takes over this adapter, or has it again."""
    return FORMS.bdf("begins", message)


def plugged(message: str) -> tuple[str, int] | None:
    """A module or cable was plugged in: adapter and number of the module."""
    match = FORMS.match("plugged", message)
    return None if match is None else (match["bdf"], int(match["module"]))


def events(lines: Lines) -> list[HcaEvent]:
    """Its errors, ``past`` where the driver took over the adapter, or a module was plugged in, since; ``back`` where
    the port came up.

    From Linux 5.18 on a line with the severity of a health issue precedes its details, which say nothing of their own.
    """
    starts = ((begins(message) or plugged(message), number) for number, (_, message) in enumerate(lines))
    last_start: dict[object, int] = {started: number for started, number in starts if started is not None}
    up = {_port(match): number for number, match in FORMS.matches("port", lines) if not match["down"]}
    found = []
    rated: dict[str, float] = {}
    for number, (seconds, message) in enumerate(lines):
        if (health := FORMS.match("health", message)) is not None:
            rated[health["bdf"]] = seconds
        detail = FORMS.match("syndrome", message)
        if detail is not None and seconds - rated.get(detail["bdf"], -SAME_S - 1) <= SAME_S:
            continue
        if (error := trouble(message, seconds)) is not None:
            past = number < max(last_start.get(error.bdf, -1), last_start.get((error.bdf, error.module), -1))
            back = number < up.get(error.text, -1)
            found.append(replace(error, past=past, back=back))
    return found
