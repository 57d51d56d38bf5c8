"""What perftest prints where it uses the memory of a GPU (``--use_cuda``): the GPUs of the host, and which one.

Since 4.5; bus ids come without their domain (https://github.com/linux-rdma/perftest/blob/master/src/cuda_memory.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.missing import Json
from dgxcheck.readers.values import gpu, imported

_LISTED = re.compile(r"CUDA device (?P<number>\d{1,3}): PCIe address is (?P<place>[0-9A-Fa-f]{1,2}:[0-9A-Fa-f]{1,2})")
_PICKED = re.compile(r"Picking (?:device No\. (?P<number>\d{1,3})|CUDA device number (?P<other>\d{1,3})).{0,80}")
_NAMED = re.compile(r"\[pid = \d{1,10}, dev = (?P<number>\d{1,3})\] device name = \[(?P<name>[^\[\]]{1,80})\]")
_CHATTER = re.compile(
    r"initializing CUDA|Listing all CUDA devices in system:|creating CUDA Ctx|making it the current CUDA Ctx"
    r"|There (?:is|are) \d{1,3} (?:devices? supporting CUDA|CUDA devices?).{0,80}|CUDA device integrated: .{1,40}"
    r"|cuMemAlloc\(\) of a \d{1,15} bytes GPU buffer|allocated (?:\d{1,15} bytes of )?GPU buffer .{1,90}"
    r"|deallocating (?:RX )?GPU buffer.{0,40}|destroying current CUDA Ctx"
)


class GpuMemory:
    """The GPUs of one host, by CUDA's number."""

    def __init__(self) -> None:
        self.number: int | None = None
        """Whose memory the test uses that is printed now."""
        self._places: dict[int, tuple[str, int]] = {}
        self._names: dict[int, str] = {}

    def forget(self) -> None:
        """A test is over, and the next one may use host memory."""
        self.number = None

    @staticmethod
    def speaks(line: str) -> bool:
        """Is it a line about GPUs?"""
        return any(form.fullmatch(line) for form in (_LISTED, _PICKED, _NAMED, _CHATTER))

    def take(self, line: str, at: int) -> None:
        """One such line."""
        if listed := _LISTED.fullmatch(line):
            number, bdf = gpu(listed["number"]), as_bdf(listed["place"], short=True)
            if number is not None and bdf is not None:
                self._places[number] = (bdf, at)
        elif picked := _PICKED.fullmatch(line):
            self.number = gpu(picked["number"] or picked["other"])
        elif named := _NAMED.fullmatch(line):
            number = gpu(named["number"])
            self.number = self.number if number is None else number
            if number is not None:
                self._names[number] = named["name"]

    def facts(self) -> Iterator[tuple[str, Json]]:
        """``measure device N``: where each sits."""
        for number, (bdf, at) in self._places.items():
            name: dict[str, Json] = {"name": self._names[number]} if number in self._names else {}
            yield (
                f"measure device {number}",
                imported(None, "", tool="perftest", line=at, method="CUDA order", bdf=bdf, **name),
            )
