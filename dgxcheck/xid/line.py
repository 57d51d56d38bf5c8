"""What the text of an Xid's line says about its severity and the recovery that the driver asks for."""

from __future__ import annotations

import re
from typing import Literal

from dgxcheck.lazy_pattern import LazyPattern

Recovery = Literal["none", "gpu-reset", "node-reboot", "drain-p2p", "drain-and-reset", "imex", "other"]
FATAL = LazyPattern(r"(?<![\w-])Fatal\b", "Fatal")
"""In the line of a number whose text says how severe it is."""
ANNOUNCES_RECOVERY = 154
OFF_BUS = 79
_TO = LazyPattern(r"\bto 0x[0-9a-fA-F]+ \(([^)]*)\)", "to 0x")
_RECOVERIES: dict[str, Recovery] = {
    "none": "none", "gpu reset required": "gpu-reset", "node reboot required": "node-reboot",
    "drain p2p": "drain-p2p", "drain and reset": "drain-and-reset", "recover imex domain": "imex",
    "bus reset": "gpu-reset", "system reboot": "node-reboot",
}  # fmt: skip
"""By the names of nvmlDeviceGpuRecoveryAction_t in nvml.h."""
_LINK = LazyPattern(r"\blink (\d+)\b", flags=re.IGNORECASE)


def link_of(text: str) -> int | None:
    """The NVLink of a GPU that an Xid's text names, or the port of an NVSwitch: ``Link 28 LTSSM Fault Up``."""
    named = _LINK.search(text)
    return None if named is None else int(named[1])


def recovery_of(text: str) -> Recovery:
    """Of an Xid 154: ``GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)``."""
    named = _TO.search(text)
    return "other" if named is None else _RECOVERIES.get(named[1].lower(), "other")
