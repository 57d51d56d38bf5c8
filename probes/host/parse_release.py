"""Release files: ``/etc/os-release`` and ``/etc/dgx-release``."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Missing
from probes.parse_scalar import garbled

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")


def release(text: str, where: str) -> dict[str, str] | Missing:
    """``NAME="value"`` lines; other lines are passed over, of repeated names the last counts."""
    fields = {}
    for line in text.splitlines():
        match = _ASSIGNMENT.fullmatch(line.strip())
        if match:
            fields[match[1]] = _unquoted(match[2].strip())
    return fields or garbled(text, where)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
