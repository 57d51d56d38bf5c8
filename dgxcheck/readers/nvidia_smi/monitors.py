"""``nvidia-smi dmon`` and ``pmon``, ``--version`` and lists of supported clocks: known, and of no use to any check."""

from __future__ import annotations

import re

from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded

_HEAD = re.compile(r"# {0,4}gpu {1,12}(?P<columns>(?:[a-z]{1,12} {0,12}){1,24})")
_UNITS = re.compile(r"# {0,4}Idx {1,12}[\w%#/ -]{1,200}")
_ROW = re.compile(r"\d{1,3}(?: {1,12}[\w.,/:+-]{1,60}){2,24}")
_CLOCKS = re.compile(r"graphics \[MHz\], memory \[MHz\]|memory \[MHz\], graphics \[MHz\]")
_PAIR = re.compile(r"\d{2,5}(?: MHz)?, \d{2,5}(?: MHz)?")
_VERSION = re.compile(r"(?:NVIDIA-SMI|NVML|DRIVER|CUDA|KMD|CUDA UMD) version {1,12}: .{1,100}", re.IGNORECASE)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """What stands there, without facts."""
    found: dict[str, set[int]] = {}
    tool = ""
    for number, line in enumerate(bounded(lines)):
        text = line.strip()[:300]
        if head := _HEAD.fullmatch(text):
            tool = "nvidia-smi pmon (not used)" if " type " in f" {head['columns']} " else "nvidia-smi dmon (not used)"
        elif _CLOCKS.fullmatch(text):
            tool = "nvidia-smi --query-supported-clocks (not used)"
        elif _VERSION.fullmatch(text):
            tool = "nvidia-smi --version (not used)"
        elif not text or not tool or not (_UNITS.fullmatch(text) or _ROW.fullmatch(text) or _PAIR.fullmatch(text)):
            tool = tool if not text else ""
            continue
        found.setdefault(tool, set()).add(number)
    return tuple(Imported(tool=tool, facts={}, understood=frozenset(at)) for tool, at in found.items())
