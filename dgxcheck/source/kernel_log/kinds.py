"""The messages of one boot that are worth keeping: the last of each kind, so that a flood of one evicts no other."""

from __future__ import annotations

import re
from collections import deque

from dgxcheck.facts.limits import LOG_LINE_CHARACTERS, LOG_LINES
from dgxcheck.source.kernel_log.records import BDF, FRAME, OF_HOST

Lines = list[tuple[float, str]]
_ABOUT = re.compile(
    rf"(?:NVRM|nvidia[-\w]{{0,32}}|mlx5\w{{0,32}}|pcieport)[:( ]|[^\s:]{{1,64}} {BDF}: (?:AER:|PCIe Bus)"
    rf"|{OF_HOST}|{FRAME}"
)
_KINDS = (
    re.compile(r"EDAC (MC\d{1,3}): "),
    re.compile(r"(?:mce: |\{\d{1,10}\})?\[Hardware Error\]: "),
    re.compile(r"Memory failure: |mce: Uncorrected"),
    re.compile(r"(?:mce: )?CPU\d{1,5}: "),
    re.compile(r"INFO: task|(?:NMI )?watchdog: "),
    re.compile(FRAME),
    re.compile("Kernel panic - "),
    re.compile("DMAR: |AMD-Vi: "),
    re.compile("BUG: |Oops: |Internal error: |Unable to handle kernel |general protection |kernel BUG "),
    re.compile("RIP: |pc : "),
    re.compile(r"(?:rcu: )?INFO: rcu"),
    re.compile("(?:Memory cgroup o|O)ut of memory: "),
    re.compile(r"traps: |.{1,16}\[\d{1,10}\]: segfault "),
    re.compile(r"(?:[a-z_]{1,20}: |Buffer )?(?:critical|I/O|protection) |nvme |sd |md/"),
    re.compile(rf"pciehp |pcieport {BDF}: pciehp"),
    re.compile(rf"pcieport |[^\s:]{{1,64}} {BDF}: (?:AER:|PCIe Bus Error| )"),  # " ": what follows such an error
    re.compile(r"mlx5.{0,80}(?:ACCESS_REG|_cmd)"),
    re.compile("mlx5"),
    re.compile(r"NVRM: Xid \([^)]{0,64}\): (\d{1,4})"),
    re.compile(r"nvidia-nvswitch\d{1,3}: SXid \([^)]{0,64}\): (\d{1,6})"),
    re.compile("NVRM: API mismatch|NVRM: this kernel module|NVRM: kernel module"),  # any user can provoke these
    re.compile("NVRM: GPU |NVRM: The NVIDIA GPU|NVRM: fallen|NVRM: rm_init_adapter|NVRM: RmInitAdapter"),
    re.compile("NVRM: loading|nvidia-nvlink: Nvlink Core|nvidia [^:]{1,8}:"),
)
"""Errors by number; what matches none of these is a kind of its own."""
_MOST_KINDS = 64
"""Of a real log; in a forged one the rest share one."""


def is_relevant(message: str) -> bool:
    """Is a message about a GPU, a PCIe error, a fabric or trouble of the host?"""
    return _ABOUT.match(message) is not None


class Kept:
    """Messages in their order, as many of each kind as ``LOG_LINES``."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, str], deque[tuple[int, float, str]]] = {}
        self._number = 0
        self.complete_s: float | None = None
        """Seconds from which on no message was evicted; None where none was."""

    def add(self, seconds: float, message: str) -> None:
        """Take a message in, if it is relevant."""
        if not is_relevant(message):
            return
        name = _kind(message)
        if name not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            name = (-1, "")
        kind = self._kinds.setdefault(name, deque(maxlen=LOG_LINES))
        full = len(kind) == LOG_LINES
        self._number += 1
        kind.append((self._number, seconds, message[:LOG_LINE_CHARACTERS]))
        if full:
            self.complete_s = max(self.complete_s or 0.0, kind[0][1])

    def lines(self) -> Lines:
        """Seconds and message of all that were kept."""
        merged = sorted(entry for kind in self._kinds.values() for entry in kind)
        return [(seconds, message) for _, seconds, message in merged]


def _kind(message: str) -> tuple[int, str]:
    """The form of a message, and the number of its error where it has one."""
    for number, form in enumerate(_KINDS):
        if match := form.match(message):
            return number, match[match.lastindex] if match.lastindex else ""
    return len(_KINDS), ""
