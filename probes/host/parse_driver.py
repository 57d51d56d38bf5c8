"""``/proc/driver/nvidia/version`` and ``params``."""

from __future__ import annotations

import re

from dgxcheck.facts.host import Flavour, NvidiaDriver
from dgxcheck.facts.missing import Missing
from probes.parse_scalar import garbled

_VERSION = re.compile(r"[0-9]{2,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?")


def driver_version(text: str, where: str) -> NvidiaDriver | Missing:
    """``NVRM version: NVIDIA UNIX x86_64 Kernel Module  418.67``; the open driver says Open Kernel Module."""
    first = text.partition("\n")[0]
    label, _, rest = first.partition(":")
    if label.strip() != "NVRM version" or "Kernel Module" not in rest:
        return garbled(text, where)
    flavour = Flavour.OPEN if "Open Kernel Module" in rest else Flavour.PROPRIETARY
    for field in rest.partition("Kernel Module")[2].split():
        if _VERSION.fullmatch(field):
            return NvidiaDriver(version=field, flavour=flavour)
    return garbled(first, where)


def driver_params(text: str, where: str) -> dict[str, str] | Missing:
    """``EnableMSI: 1`` per line."""
    params = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            return garbled(line, where)
        params[name.strip()] = value.strip()
    return params or garbled(text, where)
