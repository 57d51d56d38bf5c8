"""The lines of NCCL's log: who wrote each, and what it says behind that.

``node1:4242:4250 [3] NCCL INFO text``: host, process, thread and CUDA's number of the GPU
(https://github.com/NVIDIA/nccl/blob/master/src/debug.cc); a warning has its place in the source before the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.record import Record
from dgxcheck.readers.values import bounded, gpu

_LINE = re.compile(
    r"(?<![\w.-])(?P<host>[\w.-]{1,255}|<[\w .-]{1,80}>|\*[\w .-]{1,80}\*):\d{1,10}:\d{1,10} \[(?P<dev>\d{1,3})\] "
    r"(?:(?P<where>[\w./-]{1,120}:\d{1,6}) (?:\(\w{1,80}\) )?)?NCCL (?P<level>INFO|WARN|TRACE|VERSION)"
    r" ?(?P<text>.{0,16000})"
)
_BARE = re.compile(
    r"\s{0,40}(?:\[(?P<dev>\d{1,3})\] )?(?:(?P<where>[\w./-]{1,120}:\d{1,6}) )?NCCL (?P<level>INFO|WARN)"
    r" (?P<text>(?:NET/|GPU Direct|Channel |Ring |NCCL_|Call to |Cuda failure|comm |Using "
    r"|(?:socket|bootstrap|nccl)\w{2,60}: ).{1,16000})"
)
"""A line that lost who wrote it, as ``grep -o`` leaves it."""
_VERSION = re.compile(r"NCCL version (?P<version>\d{1,3}\.\d{1,3}\.\d{1,3})(?:[+.]\S{0,40})?")


class Line(Record):
    """One line of a rank."""

    number: int
    """From 0."""
    host: str
    """The first label of its name; empty for a placeholder, as in a log whose names were replaced, and for none."""
    device: int | None
    """CUDA's number of the GPU of the rank."""
    is_warning: bool
    text: str
    """Of a warning with its place in the source before it."""


def lines_of(text: tuple[str, ...]) -> Iterator[Line]:
    """NCCL's own lines, behind whatever a launcher put before them."""
    for number, line in enumerate(bounded(text)):
        match = (_LINE.search(line) if " NCCL " in line else None) or (
            _BARE.fullmatch(line) if "NCCL " in line else None
        )
        if match is not None:
            name = match["host"] if match.re is _LINE else "<"
            warning = match["level"] == "WARN"
            where = f"{match['where']} " if warning and match["where"] else ""
            yield Line(
                number=number, host="" if name[0] in "<*" else name.partition(".")[0], device=gpu(match["dev"] or ""),
                is_warning=warning, text=where + match["text"].strip(),
            )  # fmt: skip


def version_in(line: str) -> str:
    """``2.21.5``; empty where a line does not tell the version."""
    match = _VERSION.search(line) if "NCCL version" in line else None
    return match["version"] if match is not None else ""
