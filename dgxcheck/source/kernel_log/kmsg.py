"""The kernel log: its lines about GPUs, PCIe and fabrics, each as ``<seconds since boot>;<message>``.

The first line is dgxcheck's own and tells where the log begins, so that a log that was overwritten is known as such.
"""

from __future__ import annotations

import errno
import os
import re
from collections import deque
from collections.abc import Iterable
from itertools import chain

from dgxcheck.facts.kernel_log import EarlierXid
from dgxcheck.facts.missing import Gap, Missing, missing
from dgxcheck.rootfs import decode
from dgxcheck.source.kernel_log.saved import Times, times
from dgxcheck.source.recording.keys import DEVICE

MARK = "dgxcheck: log begins"
NO_BOOT = "dgxcheck: log begins, its times do not count from boot"
EARLIER = "dgxcheck: earlier: "
"""Begins a line of dgxcheck's own on what the log of this boot does not hold, or not any more."""
MOST = 2000
"""Lines of each kind; of more the last are kept. A flood of PCIe errors or of mlx5's words pushes out no Xid."""
LONGEST = 1000
_MOST_BYTES = 32 << 20
_RECORD = 8192  # PRINTKRB: a shorter read is refused by the kernel
_ABOUT = re.compile(r"(?:NVRM|nvidia[-\w]*|mlx5\w*|pcieport)[:( ]|.*(?:AER:|PCIe Bus Error)")
_KINDS = (
    re.compile(r"pcieport |.*(?:AER:|PCIe Bus Error)|\S+ [0-9a-f:]+\.[0-7]:  "),  # the last: what follows such an error
    re.compile("mlx5"),
)
_OF_GPU = re.compile(r"NVRM: (?:Xid|GPU )")
_OF_OTHERS = ("audit:", "traps:")
RESTRICTED = (
    "readable by root, or by all with kernel.dmesg_restrict=0; members of group systemd-journal or adm can give"
    " what journalctl -k -o json prints by --kernel-log"
)


def read(path: str) -> tuple[str, ...] | Missing:
    """All of ``/dev/kmsg`` that is there now; in a tree it may be a regular file."""
    try:
        text = _read_all(path)
    except OSError as error:
        gap = missing(DEVICE, error)
        return Missing(gap.gap, DEVICE, RESTRICTED) if gap.gap is Gap.DENIED else gap
    found = times(text)
    return Missing(Gap.ABSENT, DEVICE, "the kernel log is empty") if found is None else relevant_lines(found)


def relevant_lines(log: Times) -> tuple[str, ...]:
    """The lines that are worth keeping, after the one that says where the log begins."""
    begins = log.begins
    kinds: list[deque[tuple[int, float, str]]] = [deque(maxlen=MOST + 1) for _ in range(len(_KINDS) + 1)]
    for number, (seconds, message) in enumerate(log.lines):
        if _ABOUT.match(message) and not message.startswith(_OF_OTHERS):
            of_kind = next((n for n, form in enumerate(_KINDS) if form.match(message)), len(_KINDS))
            kinds[of_kind].append((number, seconds, message[:LONGEST]))
    for kind in kinds:
        if len(kind) > MOST:
            kind.popleft()
            begins = None if begins is None else max(begins, kind[0][1])
    mark = line(0.0, NO_BOOT) if begins is None else line(begins, MARK)
    lines = (line(seconds, message) for _, seconds, message in sorted(chain.from_iterable(kinds)))
    return with_earlier((mark, *lines), _earlier(log))


def with_earlier(lines: tuple[str, ...], earlier: Iterable[str]) -> tuple[str, ...]:
    """The log's lines, then dgxcheck's own about what is not in it."""
    fits = (message for message in earlier if message.startswith(EARLIER) and len(message) <= LONGEST)
    return (*lines, *(line(0.0, message) for message in fits))


def earlier(seen: EarlierXid) -> str:
    """The line of an Xid, without its process: whoever may not read the kernel log may read a state file."""
    more = (f"at {seen.date}" if seen.date else "", seen.uuid)
    head = ", ".join(filter(None, (f"boot {seen.boot}", f"begun {seen.begun_s:.6f}", *more)))
    text = f", {seen.text}" if seen.text else ""
    return f"{EARLIER}{head}: NVRM: Xid (PCI:{seen.bdf.rpartition('.')[0]}): {seen.number}{text}"


def _earlier(log: Times) -> list[str]:
    """Lines of earlier boots about a GPU's end, with the number of their boot."""
    found = {
        f"{EARLIER}boot {number}, begun 0: {message}"[:LONGEST]: None
        for number, boot in enumerate(log.earlier, 1)
        for _, message in boot
        if _OF_GPU.match(message)
    }
    return [*found][-MOST:]


def line(seconds: float, message: str) -> str:
    """How a line is kept: ``12.345678;NVRM: ..``."""
    return f"{seconds:.6f};{message}"


def _read_all(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    parts: list[bytes] = []
    size = 0
    try:
        while size < _MOST_BYTES:
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
    return decode(b"".join(parts))
