"""The kernel log: its lines about GPUs, PCIe and fabrics, each as ``<seconds since boot>;<message>``.

The first line is dgxcheck's own and tells where the log begins, so that a log that was overwritten is known as such.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable

from dgxcheck.facts.kernel_log import FORGEABLE, MARK, EarlierXid
from dgxcheck.facts.missing import Gap, Missing, missing
from dgxcheck.limits import LOG_BYTES, LOG_LINE_CHARACTERS, LOG_LINES
from dgxcheck.source.kernel_log.saved import Times, times
from dgxcheck.source.recording.keys import DEVICE

NO_BOOT = "dgxcheck: log begins, its times do not count from boot"
EARLIER = "dgxcheck: earlier: "
"""Begins a line of dgxcheck's own on what the log of this boot does not hold, or not any more."""
LEFT_OUT = "dgxcheck: left out: "
"""Begins a line of dgxcheck's own that counts messages of which only the last are kept."""
_RECORD = 8192  # PRINTKRB: a shorter read is refused by the kernel
_OF_GPU = re.compile(r"NVRM: (?:Xid|GPU )")
RESTRICTED = (
    "needs CAP_SYSLOG where kernel.dmesg_restrict is 1; members of group systemd-journal or adm can give"
    " what journalctl -k -o json prints by --kernel-log"
)


def read(path: str) -> tuple[str, ...] | Missing:
    """All of ``/dev/kmsg`` that is there now; in a tree it may be a regular file."""
    try:
        raw = _whole(path)
    except OSError as error:
        gap = missing(DEVICE, error)
        return Missing(gap.gap, DEVICE, RESTRICTED) if gap.gap is Gap.DENIED else gap
    found = times(raw)
    return Missing(Gap.ABSENT, DEVICE, "the kernel log is empty") if found is None else relevant_lines(found)


def relevant_lines(log: Times) -> tuple[str, ...]:
    """The lines of a log as a source gives them, after the one that says where the log begins."""
    mark = line(0.0, NO_BOOT) if log.begins is None else line(log.begins, MARK)
    lines = (line(seconds, message) for seconds, message in log.lines)
    left_out = (line(0.0, f"{LEFT_OUT}{count}: {message}"[:LOG_LINE_CHARACTERS]) for count, message in log.left_out)
    forgeable = (line(0.0, FORGEABLE),) if log.forgeable else ()
    return with_earlier((mark, *lines, *left_out, *forgeable), _earlier(log))


def with_earlier(lines: tuple[str, ...], earlier: Iterable[str]) -> tuple[str, ...]:
    """The log's lines, then dgxcheck's own about what is not in it."""
    fits = (message for message in earlier if message.startswith(EARLIER) and len(message) <= LOG_LINE_CHARACTERS)
    return (*lines, *(line(0.0, message) for message in fits))


def earlier(seen: EarlierXid) -> str:
    """The line of an Xid, without its process: whoever may not read the kernel log may read a state file."""
    more = (f"at {seen.date}" if seen.date else "", seen.uuid)
    head = ", ".join(filter(None, (f"boot {seen.boot}", f"begun {seen.begun_s:.6f}", *more)))
    text = f", {seen.text}" if seen.text else ""
    return f"{EARLIER}{head}: NVRM: Xid (PCI:{seen.bdf.rpartition('.')[0]}): {seen.number}{text}"


def _earlier(log: Times) -> list[str]:
    """Facts of earlier boots about a GPU's end, with the number of their boot: that before the last one is -1."""
    found = (f"{EARLIER}boot {number}, begun 0: {message}"[:LOG_LINE_CHARACTERS]
             for number, boot in enumerate(log.earlier, -len(log.earlier))
             for _, message in boot if _OF_GPU.match(message))
    return [*dict.fromkeys(found)][-LOG_LINES:]


def line(seconds: float, message: str) -> str:
    """How a line is written down: ``12.345678;NVRM: ..``."""
    return f"{seconds:.6f};{message}"


def _whole(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    parts: list[bytes] = []
    size = 0
    try:
        while size < LOG_BYTES:
            try:
                part = os.read(fd, _RECORD)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten since; the next read goes on with the oldest there is
                    continue
                raise
            if not part:
                break
            parts.append(part)
            size += len(part)
    finally:
        os.close(fd)
    return b"".join(parts)
