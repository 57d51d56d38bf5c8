"""The system graph in NCCL's log: which GPUs there are, and over what each pair talks.

NCCL's classes are its own: PHB includes NODE, and PIX what nvidia-smi calls PXB within one switch chip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.missing import Json
from dgxcheck.readers.listing import gpu_function
from dgxcheck.readers.nccl.gpus import bdf_of

_NODE = r"GPU/(?:(?P<{0}host>\d{{1,5}})-)?(?P<{0}bus>[0-9A-Fa-f]{{4,10}})"
_HANGS = re.compile(rf"\s{{0,64}}\+ (?:PCI|NVL|C2C)\[[\d.]{{1,12}}\] - {_NODE.format('')}(?: \(\d{{1,6}}\))?")
_FROM = re.compile(rf"{_NODE.format('')} :(?P<ways>GPU/.{{1,8000}})")
_WAY = re.compile(rf"{_NODE.format('')} \(\d{{1,4}}/[\d.]{{1,16}}/(?P<kind>[A-Z0-9]{{3}})\)")
_PLAIN = re.compile(r"=== System : .{1,80}|={10,80}|CPU/[\d-]{1,12} \(.{1,40}\)"
                    r"|\s{0,64}\+ (?:PCI|SYS|NVL|NET|C2C)\[.{1,120}|(?:NET|CPU|NVS)/\S{1,24} :.{1,8000}")  # fmt: skip


class Graph:
    """The GPUs of the host that a log's lines are of, and the classes of their pairs."""

    def __init__(self) -> None:
        self._gpus: dict[str, None] = {}
        self._pairs: dict[tuple[str, str], str] = {}

    def take(self, text: str) -> bool:
        """Is a line (without NCCL's prefix) one of the graph's? Hosts other than the first are left out."""
        if match := _HANGS.fullmatch(text):
            self._gpu(match)
        elif match := _FROM.fullmatch(text):
            begin = self._gpu(match)
            for way in _WAY.finditer(match["ways"]):
                end = self._gpu(way)
                if begin and end and begin != end:
                    self._pairs[begin, end] = way["kind"]
        else:
            return _PLAIN.fullmatch(text) is not None
        return True

    def kind(self, a: str, b: str) -> str:
        """NCCL's class of a pair of GPUs, ``NVL``, ``PIX`` ..; empty where the log does not show it."""
        return self._pairs.get((a, b)) or self._pairs.get((b, a), "")

    def facts(self) -> Iterator[tuple[str, Json]]:
        """What sysfs and ``nvidia-smi topo -mp`` would say."""
        for bdf in self._gpus:
            yield from gpu_function(bdf).items()
        for (a, b), kind in self._pairs.items():
            known = kind in ("SYS", "PXB")
            gap: Json = {"missing": "unrecorded", "detail": f"NCCL's log says {kind}, which may be another class here"}
            yield f"stated label-pci {a} {b}", kind if known else gap

    def _gpu(self, match: re.Match[str]) -> str | None:
        bdf = bdf_of(match["bus"])
        if bdf is None or int(match["host"] or 0):
            return None
        self._gpus[bdf] = None
        return bdf
