"""The kernel log: its lines about GPUs, PCIe and fabrics, each as ``<seconds since boot>;<message>``.

The first line is dgxcheck's own and tells where the log begins, so that a log that was overwritten is known as such.
"""

from __future__ import annotations

import errno
import os
import re
from collections import defaultdict, deque
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
"""Lines of each kind; of more the last are kept, and a flood of one kind pushes out no other."""
LONGEST = 1000
_MOST_BYTES = 32 << 20
_RECORD = 8192  # PRINTKRB: a shorter read is refused by the kernel
_BDF = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_ABOUT = re.compile(
    rf"(?:NVRM|nvidia[-\w]{{0,32}}|mlx5\w{{0,32}}|pcieport)[:( ]|[^\s:]{{1,64}} {_BDF}: (?:AER:|PCIe Bus)"
)
_KINDS = (
    re.compile(rf"pcieport |[^\s:]{{1,64}} {_BDF}: (?:AER:|PCIe Bus Error| )"),  # " ": what follows such an error
    re.compile(r"mlx5.{0,80}(?:ACCESS_REG|_cmd)"),
    re.compile("mlx5"),
    re.compile(r"NVRM: Xid \([^)]{0,64}\): (\d{1,4})"),
    re.compile(r"nvidia-nvswitch\d{1,3}: SXid \([^)]{0,64}\): (\d{1,6})"),
    re.compile("NVRM: API mismatch|NVRM: this kernel module|NVRM: kernel module"),  # any user can provoke these
    re.compile("NVRM: GPU |NVRM: The NVIDIA GPU|NVRM: fallen|NVRM: rm_init_adapter|NVRM: RmInitAdapter"),
    re.compile("NVRM: loading|nvidia-nvlink: Nvlink Core|nvidia [^:]{1,8}:"),
)
"""Errors by number; what matches none of these is a kind of its own."""
_OF_GPU = re.compile(r"NVRM: (?:Xid|GPU )")
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
    kinds: defaultdict[tuple[int, str], deque[tuple[int, float, str]]] = defaultdict(lambda: deque(maxlen=MOST + 1))
    for number, (seconds, message) in enumerate(log.lines):
        if _ABOUT.match(message):
            kinds[_kind(message)].append((number, seconds, message[:LONGEST]))
    for kind in kinds.values():
        if len(kind) > MOST:
            kind.popleft()
            begins = None if begins is None else max(begins, kind[0][1])
    mark = line(0.0, NO_BOOT) if begins is None else line(begins, MARK)
    lines = (line(seconds, message) for _, seconds, message in sorted(chain.from_iterable(kinds.values())))
    return with_earlier((mark, *lines), _earlier(log))


def _kind(message: str) -> tuple[int, str]:
    """The form of a message, and the number of its error where it has one."""
    for number, form in enumerate(_KINDS):
        if match := form.match(message):
            return number, match[match.lastindex] if match.lastindex else ""
    return len(_KINDS), ""


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
