"""The kernel log as it is written: one record of ``/dev/kmsg`` a read, known by boot and sequence number.

https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable

from dgxcheck.facts.limits import LOG_LINE_CHARACTERS
from dgxcheck.facts.record import Record
from dgxcheck.kernel_messages.forms import is_relevant
from dgxcheck.source.kernel_log.kmsg import line
from dgxcheck.source.kernel_log.rows import parsed

RECORD_BYTES = 8192
"""PRINTKRB: a shorter read is refused by the kernel."""
MOST_RECORDS = 500
"""Of one turn, so that a flood does not keep the loop from everything else."""
_HEAD = re.compile(r"\d{1,5},(\d{1,20}),")


class Records(Record):
    """What one turn of reading gave."""

    lines: tuple[str, ...] = ()
    """Those that are about GPUs, PCIe, fabrics or trouble of the host, as ``<seconds since boot>;<message>``."""
    lost: int = 0
    """Records that were overwritten before they were read."""
    more: bool = False
    """Is there more to read at once?"""


class Kmsg:
    """Reads records after ``sequence``, the last that is known of this boot (-1: none)."""

    def __init__(self, read: Callable[[int], bytes], sequence: int = -1) -> None:
        """``read`` gives one record; BlockingIOError where there is none, EPIPE where records were overwritten."""
        self._read = read
        self.sequence = sequence

    def records(self, most: int = MOST_RECORDS) -> Records:
        """The records that are there now. OSError where the log cannot be read any more."""
        lines: list[str] = []
        lost = 0
        for _ in range(most):
            try:
                raw = self._read(RECORD_BYTES)
            except BlockingIOError:
                return Records(lines=tuple(lines), lost=lost)
            except OSError as error:
                if error.errno == errno.EPIPE:  # the sequence number of the next record says how many
                    continue
                raise
            if not raw:
                return Records(lines=tuple(lines), lost=lost)
            text = raw.decode("utf-8", "replace")
            if (head := _HEAD.match(text)) is None:
                continue
            number = int(head[1])
            if number <= self.sequence:
                continue
            lost += number - self.sequence - 1 if self.sequence >= 0 else 0
            self.sequence = number
            found = parsed(text.split("\n"))
            lines += [
                line(seconds, message[:LOG_LINE_CHARACTERS]) for _, seconds, message in found if is_relevant(message)
            ]
        return Records(lines=tuple(lines), lost=lost, more=True)


def opened(path: str) -> int:
    """A descriptor of the log that never waits; OSError where this user may not read it, or it is a mere file."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), path)
    return fd
