"""Which lines of a log the kernel's own code wrote, which hold text that any user can choose, and which are kept.

The kernel logs the name and the file of a program that crashes, newlines included. A process can thus begin a record
with 15 bytes of its own (``TASK_COMM_LEN``), and can continue it with lines in any driver's form.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence

from dgxcheck.facts.bdf import PATTERN
from dgxcheck.kernel_messages.forms import form_of, goes_on, is_certain, is_drivers
from dgxcheck.limits import LOG_LINE_CHARACTERS, LOG_LINES

BDF = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_OF_DEVICE = re.compile(
    rf"[^\s:]{{3,64}} {PATTERN}: |NVRM: (?:Xid \()?(?:The NVIDIA )?(?:GPU )?(?:at )?(?:PCI:)?{BDF}"
    r"|nvidia-nvswitch\d|nvidia-nvlink: \w"
)
"""First lines of drivers about a device, each by more bytes than the name of a process has."""
_BDF = re.compile(BDF)
Lines = list[tuple[float, str]]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MOST_KINDS = 64
"""Of a real log; in a forged one the rest share one."""


def from_kernel(priority: int) -> bool:
    """Is the facility 0? What is written to ``/dev/kmsg`` never has that one."""
    return priority >> 3 == 0


def messages(lines: Sequence[str]) -> list[str]:
    """The messages of one record: its first line, and those after it that belong to its form."""
    return [*lines[:1], *(line for line in lines[1:] if _belongs(lines[0], line))]


def may_follow(first: str, message: str) -> bool:
    """Is a message that has the microsecond of the one before it a record of its own?

    ``dmesg -S`` and rsyslog give every line of a record the time of the first. A driver's line after one that is no
    driver's counts as the rest of that record, unless its message goes on like that.
    """
    return (
        _OF_DEVICE.match(first) is not None or is_certain(first) or not is_drivers(message) or _belongs(first, message)
    )


def _belongs(first: str, line: str) -> bool:
    """Is a later line of a record of its message, in the form of those that go on with it?"""
    return (after := goes_on(first)) is not None and after.match(line) is not None


class Kept:
    """Messages in their order, as many of each form as ``LOG_LINES``, so that a flood of one evicts no other."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, str], deque[tuple[int, float, str]]] = {}
        self._number = 0
        self._left_out: Counter[tuple[int, str, str]] = Counter()
        self._last_left_out: dict[tuple[int, str, str], str] = {}
        self.complete_s: float | None = None
        """Seconds from which on no message was evicted; None where none was."""

    def add(self, seconds: float, message: str) -> None:
        """Take a message in, if it has a form that is read. Those with a number count by it: Xids, controllers."""
        found = form_of(message)
        if found is None:
            return
        form, match = found
        name = (id(form), (match["number"] or "") if "number" in form.compiled.groupindex else "")
        kind = self._kinds.get(name)
        if kind is None:
            name = name if len(self._kinds) < _MOST_KINDS else (-1, "")
            kind = self._kinds.setdefault(name, deque(maxlen=LOG_LINES))
        full = len(kind) == LOG_LINES
        self._number += 1
        if full:
            evicted = kind[0][2]
            named = _BDF.search(evicted)
            device = (*name, named[0] if named else "")
            self._left_out[device] += 1
            self._last_left_out[device] = evicted
        kind.append((self._number, seconds, message[:LOG_LINE_CHARACTERS]))
        if full:
            self.complete_s = max(self.complete_s or 0.0, kind[0][1])

    def left_out(self) -> list[tuple[int, str]]:
        """How many messages of each form and device were evicted, and the last of them; the most first."""
        return [(count, self._last_left_out[device]) for device, count in self._left_out.most_common(_MOST_KINDS)]

    def lines(self) -> Lines:
        """Seconds and message of all that were kept."""
        merged = sorted(entry for kind in self._kinds.values() for entry in kind)
        return [(seconds, message) for _, seconds, message in merged]
