"""``cat /proc/driver/nvidia/version``: the version of the kernel module that is loaded."""

from __future__ import annotations

import re

from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded

FILE = "/proc/driver/nvidia/version"
_MODULE = re.compile(r"NVRM version: NVIDIA UNIX .{0,60}Kernel Module .{0,60}\d{3}\.\d{1,4}.{0,120}")
_COMPILER = re.compile(r"GCC version: .{1,200}")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Nothing of texts that show two modules: which of them is loaded is not known."""
    found = {number: text for number, line in enumerate(bounded(lines)) if _MODULE.fullmatch(text := line.strip())}
    if len(set(found.values())) != 1:
        return ()
    behind = {at + 1 for at in found if at + 1 < len(lines) and _COMPILER.fullmatch(lines[at + 1].strip())}
    facts = {f"text {FILE}": f"{next(iter(found.values()))}\n"}
    return (Imported(tool=FILE, facts={**facts}, understood=frozenset({*found} | behind)),)
